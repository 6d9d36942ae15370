"""Transfers that are limited in known ways, and what linerate says of them."""

import json
import random
from dataclasses import dataclass
from typing import Callable

from trustbench.rates import Rate

LEAST_CAUSES, LEAST_PLACES, LEAST_DATAGRAMS = 0.95, 0.99, 0.92
MOST_SURE_AND_WRONG = 0.01


@dataclass(frozen=True)
class Fixture:
    """What it does to a network, the words of a test, and the place and cause that are right."""

    name: str
    prepare: Callable
    words: Callable
    place: str
    cause: str


def draw(low, high):
    return random.uniform(low, high)


def unshaped(_network):
    pass


def slow_path(low_mbps, high_mbps, low_ms, high_ms):
    return lambda network: network.shape("router", network.devices["server"], draw(low_mbps, high_mbps),
                                         draw(low_ms, high_ms))


def slow_device(low_mbps, high_mbps, low_ms, high_ms):
    return lambda network: network.shape("client", "eth0", draw(low_mbps, high_mbps), draw(low_ms, high_ms))


def lossy(low_one_in, high_one_in):
    return lambda network: network.lose(int(draw(low_one_in, high_one_in)))


FIXTURES = [
    Fixture("tcp, own pacing", unshaped, lambda: f"stream --rate {draw(5, 80):.0f}M", "sender", "own_pacing"),
    Fixture("tcp, path's rate", slow_path(10, 90, 10, 60), lambda: "stream", "path", "path_rate"),
    Fixture("tcp, own queue", slow_device(10, 90, 20, 60), lambda: "stream", "local_queue", "local_queue"),
    Fixture("tcp, loss", lossy(8, 40), lambda: "stream", "path", "loss"),
    Fixture("datagrams, own pacing", unshaped, lambda: f"stream --udp --rate {draw(5, 40):.0f}M", "sender",
            "own_pacing"),
    Fixture("datagrams, path's rate", slow_path(10, 30, 20, 20), lambda: "stream --udp --rate 45M", "path",
            "path_rate"),
    Fixture("datagrams, loss", lossy(50, 300), lambda: "stream --udp --rate 20M", "path", "loss"),
    Fixture("datagrams, own queue", slow_device(10, 30, 20, 20), lambda: "stream --udp --rate 45M", "local_queue",
            "local_queue"),
]


def limits(pool, runs):
    """Rates of the right cause and place in `runs` runs of each fixture."""

    def found(tests, fixture):
        tests.network.clear()
        fixture.prepare(tests.network)
        document = tests.finish(tests.start(f"{fixture.words()} --time 3s --interval 100ms"))
        tests.network.clear()
        limit = (document["summary"].get("limits") or [{}])[0]
        is_cause = limit.get("cause") == fixture.cause
        if not is_cause:
            print(f"  {fixture.name}: {json.dumps(limit)}", flush=True)
        return is_cause, limit.get("place") == fixture.place, bool(limit.get("sure")) and not is_cause

    rates, sums = [], {"tcp": [0, 0, 0, 0], "datagrams": [0, 0, 0, 0]}
    for fixture in FIXTURES:
        counts = [sum(column) for column in zip(*pool.map(found, [fixture] * runs))] or [0, 0, 0]
        rates.append(Rate(f"limit, {fixture.name}", counts[0], runs))
        kind = sums[fixture.name.split(",")[0]]
        for number, count in enumerate([runs, *counts]):
            kind[number] += count
    for kind, causes_bar, places_bar in (("tcp", LEAST_CAUSES, LEAST_PLACES),
                                         ("datagrams", LEAST_DATAGRAMS, LEAST_DATAGRAMS)):
        count, causes, places, wrong = sums[kind]
        rates.append(Rate(f"limits of {kind}, cause", causes, count, causes_bar))
        rates.append(Rate(f"limits of {kind}, place", places, count, places_bar))
        rates.append(Rate(f"limits of {kind}, sure and wrong", wrong, count, MOST_SURE_AND_WRONG, is_most=True))
    return rates
