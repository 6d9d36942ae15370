"""Two flows that a router gives three quarters and one quarter of a rate: Jain's index of such shares is 0.8."""

from trustbench.network import RatedAddresses
from trustbench.rates import Rate

# The client's own address, which the control connection has too, and the second flow's.
ADDRESSES = ("10.97.0.2", "10.97.0.3")
RATES_MBPS = (75, 25)
# (75 + 25)^2 / (2 (75^2 + 25^2))
EXPECTED = 0.8
TIME_S = 2.0
NEAR, LEAST_NEAR = 0.02, 0.95
WORKLOADS = {"tcp": "stream", "udp": "stream --udp --rate 200M", "quic": "stream --quic"}


def fairness(pool, runs):
    """Rates of runs of each transport whose index is near that of the rates."""

    def is_near(tests, name):
        with RatedAddresses(tests.network, "client", "src", ADDRESSES, RATES_MBPS):
            words = f"{WORKLOADS[name]} --flows 2 --bind {','.join(ADDRESSES)} --time {TIME_S}s"
            document = tests.finish(tests.start(words))
        index = document["summary"].get("fairness")
        near = index is not None and abs(index - EXPECTED) <= NEAR
        if not near:
            print(f"  {name}, fairness: {index}, expected {EXPECTED}", flush=True)
        return near

    names = list(WORKLOADS)
    near = pool.map(is_near, names * runs)
    return [Rate(f"fairness of shares of 3 to 1, {name}", sum(near[number::len(names)]), runs, LEAST_NEAR)
            for number, name in enumerate(names)]
