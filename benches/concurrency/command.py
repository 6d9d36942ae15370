"""What `benches/crowd` does: run each number of connections, print it, judge it, draw all."""

import argparse
import json
import resource
import signal
import sys
from pathlib import Path

from comparison import machine, network
from comparison.process import BROKEN, adopt_orphans, end_orphans, reason_of

from . import drawing, report
from .run import run_crowd

REPOSITORY = Path(__file__).resolve().parents[2]
CONNECTIONS = (1_000, 10_000, 100_000, 500_000)
BYTES = 64 << 10
INTERRUPTED = 130


def parse_options(words):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="crowd", description="Holds many TCP connections open at once and says what they cost.")
    parser.add_argument("--connections", type=int, nargs="+", default=list(CONNECTIONS), metavar="N",
                        help="how many at once, one run each (default: 1000 10000 100000 500000)")
    parser.add_argument("--bytes", type=int, default=BYTES,
                        help=f"what each moves, at least {BYTES} to count (default: {BYTES})")
    parser.add_argument("--pattern", default="push", choices=("push", "pull", "pushpull", "duplex"),
                        help="who sends (default: push, the client)")
    parser.add_argument("--open-files", type=int, default=20_000,
                        help="most open files of each process (default: 20000)")
    parser.add_argument("--hold-s", type=float,
                        help="how long each stays open (default: 5 s and 1 s for each 2500 connections)")
    parser.add_argument("--program", type=Path, default=REPOSITORY / "target/release/linerate",
                        help="linerate (default: target/release/linerate)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw memory and rate in this SVG file")
    parser.add_argument("--redraw", type=Path, metavar="FILE",
                        help="run nothing: print and draw the figures of a file of --json")
    return parser.parse_args(words)


def main(words=None):
    """Exit code 0: all runs held what was asked of them, or ended for lack of memory and said so."""
    options = parse_options(words)
    if options.redraw:
        found = json.loads(options.redraw.read_text(encoding="utf-8"))
        return _conclude(found["runs"], options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    adopt_orphans()
    most = min(options.open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    place = network.enter(None)
    runs, facts = [], {**machine.facts(None), "open files of a process": str(most),
                       "network": "a namespace of its own" if place.private else "the host's"}
    print("; ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    try:
        for connections in options.connections:
            try:
                runs.append(run_crowd(connections, options))
            except BROKEN as failure:
                runs.append({"connections": connections, "failures": [reason_of(failure)]})
            print(report.render_run(runs[-1]), flush=True)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        end_orphans()
    if options.json:
        text = json.dumps({"machine": facts, "bytes": options.bytes, "runs": runs}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    return _conclude(runs, options)


def _conclude(runs, options):
    print(report.render_table(runs))
    drawn = [run for run in runs if run.get("peak_sockets")]
    if options.plot and drawn:
        drawing.write(options.plot, drawn)
        print(f"drawn in {options.plot}")
    return 1 if any(run["failures"] for run in runs) else 0
