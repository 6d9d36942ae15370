"""The command line of `benches/compare`."""

import argparse
from pathlib import Path

from . import machine
from .interval import LEAST_VALUES, MOST_VALUES
from .placement import NAMES

PAIRS, SECONDS = 20, 2.0
QUICK_PAIRS, QUICK_SECONDS = 6, 0.5
REGRESSION_PAIRS, REGRESSION_SECONDS = 6, 0.3
LEAST_SHARE = 0.6  # of a ratio on record: less is a regression
BUILDS = ("release", "debug")  # of linerate, each with ratios of its own


def parse_options(arguments):
    """The options, or a usage error."""
    parser = argparse.ArgumentParser(
        prog="benches/compare", description="linerate beside bare C loops and other tools.")
    add = parser.add_argument
    add("--rows", action="append", default=[], metavar="PATTERN,...",
        help="rows whose name matches (shell pattern, or a part of the name); repeatable")
    add("--placement", choices=[*NAMES, "all"], default="all",
        help="where the ends run: on one processor, one each, unpinned, across a veth pair (all)")
    add("--pairs", type=int, help=f"alternating pairs a row ({PAIRS}); below {LEAST_VALUES} nothing is judged")
    add("--seconds", type=float, help="length of a run (2)")
    add("--quick", action="store_true",
        help=f"{QUICK_PAIRS} pairs of {QUICK_SECONDS:g} s: to see that it works, not to judge")
    add("--memory-seconds", type=float, default=60.0, help="length of the memory row's run (60)")
    add("--linerate", type=Path, metavar="PATH", help="the program (target/release/linerate)")
    add("--peers", default="", metavar="DIR:DIR",
        help="directories to look for peers in (and in DIR/*, DIR/*/bin, DIR/*/src) before PATH")
    add("--congestion", default="cubic", metavar="NAME",
        help="TCP congestion control of every side; `host`: as the kernel has it (cubic)")
    add("--host-network", action="store_true",
        help="use the host's loopback, not a network namespace of this command's own (root has one)")
    add("--plot", type=Path, metavar="FILE.svg", help="draw the cost growth row")
    add("--json", type=Path, metavar="FILE", help="write every pair's figures")
    add("--against", type=Path, metavar="FILE",
        help="say of each row whether its interval overlaps the one that this page has (docs/benchmark.md)")
    add("--record", metavar="MACHINE",
        help="keep the figures in benches/figures.json under this machine's mark, in the place of the"
             " rows' older ones, and remake docs/benchmark.md from all of them")
    add("--regressions", nargs="?", const=BUILDS[0], choices=BUILDS, metavar="BUILD",
        help=f"a few rows that need no peer, {REGRESSION_PAIRS} pairs of {REGRESSION_SECONDS:g} s: fail where one is"
             f" below {LEAST_SHARE:g} of what is recorded for this build of linerate"
             f" ({' or '.join(BUILDS)}; {BUILDS[0]})")
    add("--older", action="store_true",
        help="list the kept rows whose code changed after they were measured, and stop; 1: there are some")
    add("--remake-page", action="store_true", help="remake docs/benchmark.md from benches/figures.json and stop")
    add("--list", action="store_true", help="list the rows with their bars and stop")
    add("--self-check", action="store_true",
        help="compare the C loops with themselves: the ratio must be near 1")
    options = parser.parse_args(arguments)
    pairs, seconds = (QUICK_PAIRS, QUICK_SECONDS) if options.quick else (PAIRS, SECONDS)
    if options.regressions:
        pairs, seconds = REGRESSION_PAIRS, REGRESSION_SECONDS
    options.pairs = pairs if options.pairs is None else options.pairs
    options.seconds = seconds if options.seconds is None else options.seconds
    if options.quick:
        options.memory_seconds = min(options.memory_seconds, 12.0)
    if options.pairs < 1 or options.seconds <= 0 or options.memory_seconds < 10:
        parser.error("--pairs is at least 1, --seconds above 0, --memory-seconds at least 10")
    if options.pairs > MOST_VALUES:
        parser.error(f"--pairs {options.pairs}: at most {MOST_VALUES}")
    if options.against and not options.against.is_file():
        parser.error(f"--against {options.against}: there is no such file")
    options.is_judged = not options.quick and options.pairs >= LEAST_VALUES
    if options.congestion == "host":
        options.congestion = None
    elif not machine.has_congestion(options.congestion):
        parser.error(f"this kernel doesn't offer {options.congestion}; try --congestion host")
    return options
