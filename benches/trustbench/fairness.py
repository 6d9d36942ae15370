"""Two flows that a router gives three quarters and one quarter of a rate: Jain's index of such shares is 0.8."""

import contextlib

from trustbench.network import run
from trustbench.rates import Rate

# The second flow's address. The first has that of the client.
SECOND = "10.97.0.3"
RATES_MBPS = (75, 25)
QUEUE_BYTES = 125_000
TIME_S = 2.0
NEAR, LEAST_NEAR = 0.02, 0.95
WORKLOADS = {"tcp": "stream", "udp": "stream --udp --rate 200M", "quic": "stream --quic"}


def jain_index(shares):
    """Of shares of any unit."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


class Shares:
    """A rate for each of the client's two addresses, as long as this lasts."""

    def __init__(self, network):
        self.client, self.router, self.device = network.names["client"], network.names["router"], network.devices["server"]

    def __enter__(self):
        with contextlib.ExitStack() as made:
            made.push(self.__exit__)
            run("ip", "-n", self.client, "addr", "add", f"{SECOND}/24", "dev", "eth0")
            # The control connection shares the first rate.
            self.tc("qdisc", "replace", "root", "handle", "1:", "htb")
            for number, (mbps, address) in enumerate(zip(RATES_MBPS, ("10.97.0.2", SECOND)), 1):
                self.tc("class", "add", "parent", "1:", "classid", f"1:{number}", "htb", "rate", f"{mbps}mbit",
                        "burst", "32kb", "quantum", "15140")
                self.tc("qdisc", "add", "parent", f"1:{number}", "bfifo", "limit", str(QUEUE_BYTES))
                self.tc("filter", "add", "parent", "1:", "protocol", "ip", "prio", "1", "u32", "match", "ip", "src",
                        f"{address}/32", "flowid", f"1:{number}")
            made.pop_all()
        return self

    def __exit__(self, *_):
        run("tc", "-n", self.router, "qdisc", "del", "dev", self.device, "root")
        run("ip", "-n", self.client, "addr", "del", f"{SECOND}/24", "dev", "eth0")

    def tc(self, kind, verb, *words):
        run("tc", "-n", self.router, kind, verb, "dev", self.device, *words)


def fairness(pool, runs):
    """Rates of runs of each transport whose index is near that of the rates."""
    expected = jain_index(RATES_MBPS)

    def is_near(tests, name):
        with Shares(tests.network):
            words = f"{WORKLOADS[name]} --flows 2 --bind 10.97.0.2,{SECOND} --time {TIME_S}s"
            document = tests.finish(tests.start(words))
        index = document["summary"].get("fairness")
        near = index is not None and abs(index - expected) <= NEAR
        if not near:
            print(f"  {name}, fairness: {index}, expected {expected}", flush=True)
        return near

    names = list(WORKLOADS)
    near = pool.map(is_near, names * runs)
    return [Rate(f"fairness of shares of 3 to 1, {name}", sum(near[number::len(names)]), runs, LEAST_NEAR)
            for number, name in enumerate(names)]
