"""The command line of benches/trust."""

import argparse
import os
import random
import signal
import sys
import tempfile

from trustbench.comparisons import comparisons
from trustbench.fairness import fairness
from trustbench.faults import faults
from trustbench.freezes import freezes
from trustbench.limits import FIXTURES, is_asked, limits
from trustbench.pool import Pool
from trustbench.repeats import repeats

DESCRIPTION = """Counts how often the judgements of linerate are right.

Faults: five faults in five workloads, with the right code in 98 % of the runs, and runs without a fault, of which at
most 1 % may be flagged. Freezes: the server stops for 200 ms, and in 95 % of the runs p99 and p99.9 of requests at a fixed
rate are within 5 % of what follows from the length of the stop. Limits: transfers over TCP with drawn parameters, with the right cause in 95 % and the right
place in 99 % of the runs; of datagrams, over QUIC and of requests 92 %, and of real-looking paths 95 %. Comparisons: equal paths, of which at most 8 %
may differ, and paths of 100 and 97 Mbit/s, of which 95 % must. Repeats: intervals over 8 runs, drawn from a pool of runs
over a lossy path, of which 92 to 97 % hold the mean of the pool. Fairness: two flows that a router gives 75 and 25 Mbit/s,
whose index is within 0.02 of 0.8 in 95 % of the runs. Client, router and server are network namespaces. Needs
root, ip, tc, nft, taskset and control groups. The machine should do nothing else: what it does is a fault that nobody
injected.

Prints each rate with its count, and exits with 1 where one is below its bar or nothing was judged."""


def parse():
    parser = argparse.ArgumentParser(prog="trust", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linerate", default="target/release/linerate", help="the program [default: %(default)s]")
    for flag, count, what in (("--faults", 20, "runs of each fault in each workload"),
                              ("--clean", 200, "runs without a fault"),
                              ("--freezes", 20, "runs over each transport whose server stops for 200 ms"),
                              ("--limits", 50, "runs of each known limit"),
                              ("--equal", 100, "comparisons of equal paths"),
                              ("--apart", 40, "comparisons of paths that differ by 3 %%"),
                              ("--shares", 20, "runs of each transport whose two flows get 75 and 25 Mbit/s"),
                              ("--pool", 104, "runs over a lossy path, in series of 8, of which intervals are drawn")):
        parser.add_argument(flag, type=int, default=count, metavar="N", help=f"{what} [default: %(default)s]")
    parser.add_argument("--fixture", default="", metavar="WORDS",
                        help="only the known limits whose names have these words")
    parser.add_argument("--only", default=None, metavar="WORDS",
                        help="judge the known limits whose names have these words, and nothing else")
    parser.add_argument("--documents", default=None, metavar="FOLDER",
                        help="keep the documents of the runs whose limits are judged in this folder")
    parser.add_argument("--compare-time", type=float, default=2.0, metavar="SECONDS",
                        help="each run of a comparison [default: %(default)s]")
    parser.add_argument("--pool-time", type=float, default=1.0, metavar="SECONDS",
                        help="each run over the lossy path [default: %(default)s]")
    parser.add_argument("--beside", type=int, default=1, metavar="N",
                        help="tests at the same time, each in a network of its own [default: %(default)s]")
    parser.add_argument("--busy", action="store_true",
                        help="the machine does other things too: to say so is no flag without a fault, no processor is made "
                             "busy, and stops over QUIC are left out")
    parser.add_argument("--slack", type=float, default=0.0, metavar="SHARE",
                        help="the part of the judgements by which a rate may miss its bar [default: %(default)s]")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn [default: %(default)s]")
    args = parser.parse_args()
    if args.only is not None:
        args.fixture = args.only
        args.faults = args.clean = args.freezes = args.equal = args.apart = args.shares = args.pool = 0
    if args.documents:
        os.makedirs(args.documents, exist_ok=True)
    if args.beside < 1:
        parser.error(f"--beside {args.beside}: at least one test runs at a time")
    if not any(is_asked(fixture, args.fixture, args.busy) for fixture in FIXTURES):
        on_such = " that is judged with --busy" if args.busy else ""
        parser.error(f"--fixture {args.fixture!r}: no known limit{on_such} has these words in its name: "
                     + "; ".join(fixture.name for fixture in FIXTURES if is_asked(fixture, "", args.busy)))
    return args


def main():
    args = parse()
    random.seed(args.seed)
    # What was begun is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    keeps, is_judged = True, False
    with tempfile.TemporaryDirectory() as home, Pool(os.path.abspath(args.linerate), home, args.beside) as pool:
        parts = (lambda: faults(pool, args.faults, args.clean, args.busy),
                 lambda: freezes(pool, args.freezes, args.busy),
                 lambda: limits(pool, args.limits, args.fixture, args.busy, args.documents),
                 lambda: fairness(pool, args.shares),
                 lambda: comparisons(pool, args.equal, args.apart, args.compare_time, args.seed),
                 lambda: repeats(pool, args.pool, args.pool_time, args.seed))
        for part in parts:
            for rate in part():
                if rate.count:
                    is_judged = True
                    print(rate.line(args.slack), flush=True)
                    keeps = rate.keeps(args.slack) and keeps
    if not is_judged:
        print("nothing was judged: all counts are 0", file=sys.stderr)
    return 0 if keeps and is_judged else 1
