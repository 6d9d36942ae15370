"""Transfers that are limited in known ways, and what linerate says of them."""

import json
import os
from collections import defaultdict
from dataclasses import replace

from trustbench.fixture import SHORT_INTERVALS, Fixture, draw, plain, run_fixture
from trustbench.paths import PATHS
from trustbench.rates import Rate

# Of the causes and of the places of each kind of load.
BARS = {"tcp": (0.95, 0.99), "datagrams": (0.92, 0.92), "quic": (0.92, 0.92), "rr": (0.92, 0.92), "paths": (0.95, 0.95)}
MOST_SURE_AND_WRONG = 0.01
ONE_PROCESSOR = ("taskset", "-c", "0")
ANY_PROCESSOR = ("sender receiver", "local_cpu remote_cpu")


def slow_path(low_mbps, high_mbps, low_ms, high_ms):
    return lambda network: network.shape("router", network.devices["server"], draw(low_mbps, high_mbps),
                                         draw(low_ms, high_ms))


def slow_device(low_mbps, high_mbps, low_ms, high_ms):
    return lambda network: network.shape("client", "eth0", draw(low_mbps, high_mbps), draw(low_ms, high_ms))


def lossy(low_one_in, high_one_in, longer_than=500):
    return lambda network: network.lose(int(draw(low_one_in, high_one_in)), longer_than)


def policed(low_mbps, high_mbps):
    return lambda network: network.police(draw(low_mbps, high_mbps), int(draw(64, 256)))


def delayed(low_ms, high_ms):
    return lambda: f"[both]\ndelay = '{draw(low_ms, high_ms):.1f}ms'\n"


def lossy_and_delayed(low_ms, high_ms, low_percent, high_percent):
    return lambda: (f"[to_right]\ndelay = '{draw(low_ms, high_ms):.1f}ms'\n"
                    f"loss = '{draw(low_percent, high_percent):.3f}%'\n"
                    f"[to_left]\ndelay = '{draw(low_ms, high_ms):.1f}ms'\n")


def buffer(role, which, low, high):
    return lambda: (role, which, int(draw(low, high)))


def hindered_end(role, low, high):
    return lambda: (role, draw(low, high))


ALONE = [
    Fixture("tcp, own pacing", lambda: f"stream --rate {draw(5, 80):.0f}M", "sender", "own_pacing",
            when_busy=True),
    Fixture("tcp, path's rate", plain("stream"), "path", "path_rate", slow_path(10, 90, 10, 60), when_busy=True),
    Fixture("tcp, own queue", plain("stream"), "local_queue", "local_queue", slow_device(10, 90, 20, 60),
            when_busy=True),
    Fixture("tcp, loss", plain("stream"), "path", "loss", lossy(8, 40), when_busy=True),
    Fixture("tcp, rare loss", plain("stream"), "path", "loss", path=lossy_and_delayed(30, 60, 0.01, 0.04)),
    Fixture("tcp, policer", plain("stream"), "path", "loss path", policed(10, 60)),
    Fixture("tcp, receive window", plain("stream"), "receive_window", "receive_window", path=delayed(10, 40),
            buffer=buffer("server", "rmem", 64 << 10, 256 << 10)),
    Fixture("tcp, send buffer", plain("stream"), "send_buffer", "send_buffer", path=delayed(10, 40),
            buffer=buffer("client", "wmem", 64 << 10, 256 << 10)),
    Fixture("tcp, start-up", plain("stream"), "path", "start_up", path=delayed(130, 220)),
    Fixture("tcp, sender stopped", plain("stream"), "sender", "sender_idle", slow_path(90, 400, 20, 40),
            stopped=hindered_end("client", 0.6, 0.85)),
    Fixture("tcp, receiver stopped", plain("stream"), "receiver", "receiver_idle",
            stopped=hindered_end("server", 0.6, 0.85)),
    Fixture("tcp, sender's quota", plain("stream"), "sender", "local_cpu", quota=hindered_end("client", 0.1, 0.25)),
    Fixture("tcp, receiver's quota", plain("stream"), "receiver", "remote_cpu receiver_idle",
            quota=hindered_end("server", 0.1, 0.25)),
    Fixture("tcp, one processor", plain("stream"), *ANY_PROCESSOR, before=ONE_PROCESSOR),
    Fixture("datagrams, own pacing", lambda: f"stream --udp --rate {draw(5, 40):.0f}M", "sender", "own_pacing",
            when_busy=True),
    Fixture("datagrams, path's rate", plain("stream --udp --rate 45M"), "path", "path_rate",
            slow_path(10, 30, 20, 20), when_busy=True),
    Fixture("datagrams, loss", plain("stream --udp --rate 20M"), "path", "loss", lossy(50, 300), when_busy=True),
    Fixture("datagrams, own queue", plain("stream --udp --rate 45M"), "local_queue", "local_queue",
            slow_device(10, 30, 20, 20), when_busy=True),
    Fixture("quic, own pacing", lambda: f"stream --quic --rate {draw(5, 40):.0f}M", "sender", "own_pacing"),
    Fixture("quic, path's rate", plain("stream --quic"), "path", "path_rate", slow_path(5, 40, 30, 80),
            when_busy=True),
    Fixture("quic, loss", plain("stream --quic"), "path", "loss", path=lossy_and_delayed(10, 30, 0.5, 3),
            when_busy=True),
    Fixture("quic, rare loss", plain("stream --quic"), "path", "loss", path=lossy_and_delayed(30, 60, 0.01, 0.04)),
    Fixture("quic, start-up", plain("stream --quic"), "path", "start_up", path=delayed(130, 220)),
    Fixture("quic, flow control", lambda: f"stream --quic --stream-window {draw(64, 256):.0f}Ki", "receive_window",
            "receive_window", path=delayed(15, 40), when_busy=True),
    Fixture("quic, receiver stopped", plain("stream --quic"), "receiver", "receiver_idle",
            stopped=hindered_end("server", 0.6, 0.85)),
    Fixture("quic, receiver's buffer", lambda: f"stream --quic --window {draw(4, 16):.0f}Ki", "receiver",
            "receiver_socket", path=delayed(10, 40)),
    Fixture("quic, sender's quota", plain("stream --quic"), "sender", "local_cpu",
            quota=hindered_end("client", 0.15, 0.3)),
    Fixture("quic, receiver's quota", plain("stream --quic"), "receiver", "remote_cpu receiver_socket",
            quota=hindered_end("server", 0.15, 0.3)),
    Fixture("rr, own schedule", lambda: f"rr --rate {draw(50, 400):.0f}", "sender", "own_pacing",
            when_busy=True),
    Fixture("rr, path's delay", plain("rr"), "path", "path_delay", path=delayed(5, 50), when_busy=True),
    Fixture("rr, loss", plain("rr --udp --timeout 200ms"), "path", "loss", lossy(8, 30, 0),
            when_busy=True),
    Fixture("rr, server stopped", plain("rr"), "receiver", "stalls", stopped=hindered_end("server", 0.65, 0.9)),
    Fixture("rr, both ends", plain("rr"), "sender", "both_cpus"),
]

# Short intervals, as they have always been judged by; and real-looking paths, with the program's own.
FIXTURES = [replace(fixture, intervals=SHORT_INTERVALS) for fixture in ALONE] + PATHS


def is_asked(fixture, only, is_busy):
    """Whether a fixture's name has `only`, and is judged on such a machine."""
    return only in fixture.name and (fixture.when_busy or not is_busy)


def limits(pool, runs, only="", is_busy=False, documents=None):
    """Rates of the right cause and place in `runs` runs of each fixture whose name has `only`; where the machine is
    busy of those that other work changes little. The runs' documents go to the folder `documents`."""

    def found(tests, job):
        number, fixture = job
        tests.network.clear()
        document = run_fixture(tests, fixture)
        if documents:
            with open(os.path.join(documents, f"{fixture.name} {number}.json"), "w", encoding="utf-8") as file:
                json.dump(document, file)
        limit = (document["summary"].get("limits") or [{}])[0]
        is_cause, is_place = fixture.judges(limit)
        if not is_cause:
            print(f"  {fixture.name}: {json.dumps(limit)}", flush=True)
        return is_cause, is_place, bool(limit.get("sure")) and not is_cause

    asked = [fixture for fixture in FIXTURES if is_asked(fixture, only, is_busy)]
    judged = pool.map(found, [(number, fixture) for fixture in asked for number in range(runs)])
    rates, sums = [], defaultdict(lambda: [0, 0, 0, 0])
    for number, fixture in enumerate(asked):
        of_it = judged[number * runs:(number + 1) * runs]
        counts = [sum(column) for column in zip(*of_it)] or [0, 0, 0]
        rates.append(Rate(f"limit, {fixture.name}", counts[0], runs))
        kind = sums[fixture.name.split(",")[0]]
        for column, count in enumerate([runs, *counts]):
            kind[column] += count
    for kind, (count, causes, places, wrong) in sums.items():
        causes_bar, places_bar = BARS[kind]
        rates.append(Rate(f"limits of {kind}, cause", causes, count, causes_bar))
        rates.append(Rate(f"limits of {kind}, place", places, count, places_bar))
        rates.append(Rate(f"limits of {kind}, sure and wrong", wrong, count, MOST_SURE_AND_WRONG, is_most=True))
    return rates
