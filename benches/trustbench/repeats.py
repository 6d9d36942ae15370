"""The interval over 8 runs of a lossy link: how often it holds the mean of all runs of a pool.

The runs are real ones, which `linerate stream --repeat 8` makes. The interval that each of these documents has must be
the one that is computed here. Then series of 8 runs are drawn from the pool."""

import contextlib
import json
import math
import os
import random
import statistics
import subprocess

from trustbench.network import LARGE_BUFFER_BYTES, LONGEST_S, Delayed, Tests, output_of
from trustbench.rates import Rate

# A series, Student's t of 7 degrees of freedom at 95 %, and how many series are drawn.
RUNS, STUDENT, DRAWS = 8, 2.365, 10_000
DELAY_MS, LOSS_PERCENT = 10, 0.1
LEAST, MOST = 0.92, 0.97
GOODPUT = "goodput_bps"


def path(seed):
    """The description of the path."""
    delay = f"delay = '{DELAY_MS}ms'\n"
    return f"seed = {seed}\n[to_right]\n{delay}loss = '{LOSS_PERCENT}%'\n[to_left]\n{delay}"


def interval_of(values):
    """The ends of the 95 % interval of the mean."""
    mean = statistics.fmean(values)
    half = STUDENT * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def series(tests, job):
    """The rates of 8 runs over a path of its own, and the ends of the interval in their document."""
    seed, time_s = job
    number = f"{tests.network.number}r"
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Delayed(tests.linerate, tests.home, path(seed), number))
        tests = stack.enter_context(Tests(network, tests.linerate, os.path.join(tests.home, number)))
        client = tests.start(f"stream --congestion cubic --time {time_s}s --repeat {RUNS}")
        document = json.loads(output_of(client, LONGEST_S + 2 * RUNS * time_s))
    rates = [run["figures"].get(GOODPUT) for run in document["runs"]]
    told = [metric for metric in document["metrics"] if metric["name"] == GOODPUT]
    if len(rates) != RUNS or None in rates or not told:
        raise RuntimeError(f"a series of {RUNS} runs ended as {document['status']}")
    return rates, (told[0]["low"], told[0]["high"])


def repeats(pool, runs, time_s, seed):
    """Rates of a pool of so many runs."""
    jobs = [(seed + number, time_s) for number in range(math.ceil(runs / RUNS))]
    made = pool.map(series, jobs)
    same = sum(all(math.isclose(one, other, rel_tol=1e-9) for one, other in zip(interval_of(rates), told, strict=True))
               for rates, told in made)
    rates = [rate for rates, _ in made for rate in rates]
    if not rates:
        return []
    mean = statistics.fmean(rates)
    draws = random.Random(seed)
    covered = 0
    for _ in range(DRAWS):
        low, high = interval_of(draws.choices(rates, k=RUNS))
        covered += low <= mean <= high
    spread = statistics.stdev(rates) / mean
    what = f"repeats, mean of {len(rates)} runs that vary by {spread:.0%}"
    return [Rate("repeats, the document's own interval", same, len(made), 1.0),
            Rate(what, covered, DRAWS, LEAST, most=MOST)]
