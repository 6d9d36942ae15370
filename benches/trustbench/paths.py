"""Real-looking paths: round trips, jitter, deep and short queues, mobile, wireless and satellite links, proxies."""

import math
import random

from trustbench.fixture import Fixture, draw, draw_times

# Delay and jitter in ms, distribution of the jitter, rate in Mbit/s, queue in kB, chances to enter and leave a burst of
# loss in percent; up and down. The values are those of the program's own profiles.
PROFILES = {
    "geo": ((290, 0, "", 20, 1000, None), (290, 0, "", 20, 1000, None)),
    "leo": ((25, 5, "normal", 15, 200, (0.05, 20)), (25, 5, "normal", 100, 1000, (0.05, 20))),
    "lte": ((25, 8, "normal", 10, 750, None), (25, 4, "normal", 40, 3000, None)),
    "wifi": ((2, 2, "pareto", 80, 500, (0.1, 50)), (2, 2, "pareto", 80, 500, (0.1, 50))),
    "dsl": ((12, 0, "", 10, 150, None), (12, 0, "", 50, 600, None)),
}
# A datagram of 1,400 bytes takes so many on a device: headers of UDP, IP and Ethernet.
DATAGRAM_BYTES, DEVICE_BYTES = 1400, 1442


def direction(name, delay_ms, jitter_ms=0.0, distribution="", mbps=0.0, queue_kb=0.0, burst=None):
    """A direction of an emulated path."""
    lines = [f"[{name}]", f"delay = '{delay_ms:.3f}ms'"]
    if jitter_ms:
        lines += [f"jitter = '{jitter_ms:.3f}ms'", f"distribution = '{distribution or 'uniform'}'"]
    if mbps:
        lines += [f"rate = '{mbps:.3f}Mbit/s'", f"queue = '{queue_kb:.0f}kB'"]
    if burst:
        lines.append(f"burst_loss = {{ enter = '{burst[0]:.3f}%', leave = '{burst[1]:.1f}%' }}")
    return "\n".join(lines) + "\n"


def both(**values):
    """A path that is the same in both directions."""
    return seed() + direction("both", **values)


def seed():
    return f"seed = {random.randrange(1 << 30)}\n"


def like(name):
    """A path like a profile, with its delays and rates drawn; and its rates up and down in Mbit/s."""
    longer, faster = draw_times(0.7, 1.4), draw_times(0.7, 1.4)
    text, rates = seed(), []
    for end, (delay, jitter, distribution, mbps, queue, burst) in zip(("to_right", "to_left"), PROFILES[name]):
        rates.append(mbps * faster)
        text += direction(end, delay * longer, jitter * longer, distribution, mbps * faster, queue * faster, burst)
    return text, rates


def way():
    """A direction, as words and as its place in the rates of a path."""
    return random.choice((("", 0), (" --down", 1)))


def over(words, *names):
    """One of these words over a path like one of these profiles."""

    def drawn():
        chosen = random.choice(words)
        text, _ = like(random.choice(names))
        return {"words": lambda: chosen, "path": lambda: text}

    return drawn


def share_of(words, low, high, *names):
    """Words at a share of the rate of a path like one of these profiles, in either direction."""

    def drawn():
        text, rates = like(random.choice(names))
        flag, place = way()
        chosen = f"{random.choice(words)} --rate {rates[place] * draw(low, high) * 1000:.0f}k{flag}"
        return {"words": lambda: chosen, "path": lambda: text}

    return drawn


def paced(transports, low_mbps, high_mbps, low_ms, high_ms, jitter=0.0):
    """A rate that is asked for, over a path of that round trip that has room for it."""

    def drawn():
        delay_ms = draw_times(low_ms, high_ms) / 2
        text = both(delay_ms=delay_ms, jitter_ms=delay_ms * jitter * random.random())
        words = f"stream {random.choice(transports)}{way()[0]} --rate {draw_times(low_mbps, high_mbps) * 1000:.0f}k"
        return {"words": lambda: words, "path": lambda: text}

    return drawn


def above(words, low, high, low_ms, high_ms, device=("router", "server")):
    """A rate asked for that is times the one of a queue, which holds that long."""

    def drawn():
        mbps, queue_ms = draw(8, 30), draw_times(low_ms, high_ms)
        rate = mbps * DATAGRAM_BYTES / DEVICE_BYTES * draw(low, high)
        chosen = f"{random.choice(words)} --rate {rate * 1000:.0f}k"
        space, towards = device

        def prepare(network):
            network.shape(space, network.devices[towards] if space == "router" else "eth0", mbps, queue_ms)

        return {"words": lambda: chosen, "prepare": prepare}

    return drawn


def filled(low, high, mean):
    """Requests or responses that take that many times the round trip to cross a slow path: `mean` says how."""

    def drawn():
        mbps, delay_ms, times = draw(4, 20), draw(2, 20), draw(low, high)
        bytes_of_path = mbps * 1e6 / 8 * 2 * delay_ms / 1000
        queue_kb = bytes_of_path * times * 1.5 / 1000 + 60
        if mean == "size":
            message = random.choice(("request", "response"))
            words = f"rr {random.choice(('', '--tls'))} --{message} {bytes_of_path * times:.0f}"
        elif mean == "outstanding":
            count = max(2, math.ceil(bytes_of_path * times / 1300))
            words = f"rr {random.choice(('', '--tls', '--udp'))} --outstanding {min(count, 200)} --request 1200"
        else:
            per_s = mbps * 1e6 / 8 / 1240 * draw(1.3, 3)
            words = f"rr {random.choice(('', '--tls', '--udp'))} --rate {per_s:.0f} --request 1200"
        text = both(delay_ms=delay_ms, mbps=mbps, queue_kb=queue_kb)
        return {"words": lambda: words, "path": lambda: text}

    return drawn


def jittery(words):
    """Words over a path whose jitter is up to its delay."""

    def drawn():
        delay_ms = draw_times(3, 60)
        text = both(delay_ms=delay_ms, jitter_ms=delay_ms * draw(0.2, 0.9),
                    distribution=random.choice(("uniform", "normal", "pareto")))
        chosen = random.choice(words)
        return {"words": lambda: chosen, "path": lambda: text}

    return drawn


def windowed(flag, low_kib, high_kib):
    """Several streams of one QUIC connection whose windows are small for the path."""

    def drawn():
        flows = random.randint(2, 6)
        words = f"stream --quic{way()[0]} --flows {flows} --streams {flows} --{flag} {draw(low_kib, high_kib):.0f}Ki"
        text = both(delay_ms=draw(15, 40))
        return {"words": lambda: words, "path": lambda: text}

    return drawn


def shorter_path(words):
    """The path's MTU falls below what the datagrams need."""

    def drawn():
        mtu, chosen = int(draw(1281, 1380)), f"{random.choice(words)} --size 1400 --rate {draw(4, 20):.0f}M"
        return {"words": lambda: chosen, "change": lambda network: network.set_mtu(mtu)}

    return drawn


def proxied():
    """A proxy that takes bytes faster than the path behind it carries them."""
    flag, place = way()
    towards = ("server", "client")[place]
    mbps, queue_ms = draw(5, 30), draw(20, 60)
    return {"words": lambda: f"stream{flag}",
            "prepare": lambda network: network.shape("router", network.devices[towards], mbps, queue_ms)}


def quic_datagrams():
    """QUIC datagrams as fast as a slow path lets them."""
    text = both(delay_ms=draw(3, 20), mbps=draw(5, 20), queue_kb=draw(30, 150))
    words = f"stream --quic --datagram{way()[0]}"
    return {"words": lambda: words, "path": lambda: text}


def fixture(name, drawn, places, causes, **more):
    return Fixture(f"paths, {name}", lambda: "", places, causes, drawn=drawn, **more)


PACING, RATE, DELAY = ("sender", "own_pacing"), ("path", "path_rate"), ("path", "path_delay")
UDP, MEDIA = ["stream --udp --size 1400"], ["media"]
SMALL = ["rr", "rr --tls", "rr --udp", "rr --quic"]

PATHS = [
    fixture("tcp at a rate over a round trip", paced(("", "--tls"), 0.5, 40, 1, 80), *PACING),
    fixture("tcp at a rate over jitter", paced(("", "--tls"), 0.5, 20, 5, 80, 0.3), *PACING),
    fixture("tcp at a rate above a slow path", above(["stream", "stream --tls"], 1.1, 2.5, 20, 200), *RATE),
    fixture("tcp over lte and dsl", over(["stream", "stream --down", "stream --tls"], "lte", "dsl"), *RATE),
    fixture("tcp over leo and wifi", over(["stream", "stream --down"], "leo", "wifi"), "path", "loss path_rate path"),
    fixture("tcp over geo", over(["stream", "stream --down"], "geo"), "path", "start_up path_rate"),
    fixture("tcp through a proxy", proxied, "path", "path_rate path", is_proxied=True),
    fixture("quic at a rate over a round trip", paced(("--quic",), 0.5, 20, 1, 80), *PACING),
    fixture("quic over lte and dsl", over(["stream --quic", "stream --quic --down"], "lte", "dsl"), *RATE),
    fixture("quic streams under a connection's window", windowed("connection-window", 64, 256), "receive_window",
            "receive_window"),
    fixture("quic streams under windows of their own", windowed("stream-window", 16, 48), "receive_window",
            "receive_window"),
    fixture("datagrams above the path, short queue", above(UDP, 1.01, 1.08, 4, 20), *RATE),
    fixture("datagrams above the path, deep queue", above(UDP, 1.02, 1.1, 150, 800), *RATE),
    fixture("datagrams over jitter", jittery(["stream --udp --rate 2M", "stream --udp --rate 8M"]), *PACING),
    fixture("datagrams over lte, dsl and geo", share_of(UDP, 0.2, 0.85, "lte", "dsl", "geo"), *PACING),
    fixture("datagrams above lte, dsl and geo", share_of(UDP, 1.1, 1.8, "lte", "dsl", "geo"), *RATE),
    fixture("quic datagrams", quic_datagrams, *RATE),
    fixture("quic datagrams, mtu shrinks", shorter_path(["stream --quic --datagram"]), "path", "path_mtu"),
    fixture("media over lte and dsl", share_of(MEDIA, 0.2, 0.7, "lte", "dsl"), *PACING),
    fixture("media above the path", above(MEDIA, 1.1, 1.6, 20, 200), *RATE),
    fixture("media through the own queue", above(MEDIA, 1.1, 1.6, 20, 100, ("client", "")), "local_queue", "local_queue"),
    fixture("rr over jitter", jittery(SMALL), *DELAY),
    fixture("rr over lte, leo, geo and dsl", over(SMALL, "lte", "leo", "geo", "dsl"), *DELAY),
    fixture("rr over wifi", over(["rr", "rr --tls"], "wifi"), *DELAY),
    fixture("rr by a schedule over lte, dsl and geo", over(["rr --rate 50", "rr --udp --rate 200"], "lte", "dsl", "geo"),
            *PACING),
    fixture("rr, large messages", filled(3, 10, "size"), *RATE),
    fixture("rr, many outstanding", filled(2.5, 8, "outstanding"), *RATE),
    fixture("rr, a schedule above the path", filled(2.5, 8, "schedule"), *RATE),
]
