"""Comparisons of equal paths, of which few may find a difference, and of paths of 100 and 97 Mbit/s, whose difference
most must find. Both rates rise by a tenth during each comparison, as a machine's speed drifts."""

import json
import subprocess
import threading

from trustbench.network import RatedAddresses, output_of
from trustbench.rates import Rate

EQUAL, SLOWER = "10.97.1.2", "10.97.1.3"
RATE_MBPS, SLOWER_BY, DRIFT = 100, 0.97, 0.10
PAIRS, STEPS = 15, 20
MOST_FALSE, LEAST_FOUND = 0.08, 0.95
LONGEST_S = 600


class TwoPaths(RatedAddresses):
    """Two addresses of the server, each behind a rate of its own at the router, and as long as this lasts."""

    def __init__(self, network):
        super().__init__(network, "server", "dst", (EQUAL, SLOWER), (RATE_MBPS, RATE_MBPS * SLOWER_BY))

    def drift(self, seconds, ended):
        """Raises both rates in steps, until the tenth is reached or the comparison has ended."""
        for step in range(STEPS + 1):
            for number in (1, 2):
                self.shape("change", number, 1.0 + DRIFT * step / STEPS)
            if ended.wait(seconds / STEPS):
                return


def compare(tests, other, seed, time_s):
    """The verdict on goodput of one comparison of the first path with `other`; `none` where there is no figure."""
    commands = [f"stream {address} --time {time_s}s --server-key {tests.key}" for address in (EQUAL, other)]
    argv = [tests.linerate, "compare", *commands, "--pairs", str(PAIRS), "--seed", str(seed), "--json", "--quiet"]
    ended = threading.Event()
    with TwoPaths(tests.network) as paths:
        # A run takes a little longer than its test.
        drift = threading.Thread(target=paths.drift, args=(2 * PAIRS * (time_s + 0.15), ended))
        drift.start()
        try:
            client = tests.network.start("client", argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         env=tests.environment)
            out = output_of(client, LONGEST_S)
        finally:
            ended.set()
            drift.join()
    verdicts = [metric["verdict"] for metric in json.loads(out)["metrics"] if metric["name"] == "goodput_bps"]
    return verdicts[0] if verdicts else "none"


def comparisons(pool, equal, apart, time_s, seed):
    """Rates of `equal` comparisons of one path with itself, and of `apart` ones with the slower path."""
    others = [EQUAL] * equal + [SLOWER] * apart
    verdicts = pool.map(lambda tests, job: compare(tests, job[1], seed + job[0], time_s), list(enumerate(others)))
    differences = sum(verdict != "no_difference_seen" for verdict in verdicts[:equal])
    found = sum(verdict == "a_higher" for verdict in verdicts[equal:])
    return [Rate("compare, a difference of equal paths", differences, equal, MOST_FALSE, is_most=True),
            Rate("compare, 97 against 100 Mbit/s", found, apart, LEAST_FOUND)]
