"""The command line of `benches/compare`: options, the table, the exit code."""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import machine
from .pairs import run_row
from .rows import all_rows, self_check_rows
from .tools import BareLoop, Iperf3, Linerate, find_peer

REPOSITORY = Path(__file__).resolve().parents[2]
PEER_PROGRAMS = {Iperf3: "iperf3"}


@dataclass
class Placement:
    """Where the two ends run: whole processes are pinned."""

    name: str
    server_cpu: int
    client_cpu: int


PLACEMENTS = [Placement("same", 0, 0), Placement("split", 0, 1)]


class Context:
    """What every row needs: the tools' paths and the options."""

    def __init__(self, options, paths):
        self.pairs = options.pairs
        self.seconds = options.seconds
        self.memory_seconds = options.memory_seconds
        self.congestion = options.congestion
        self.paths = paths

    def tool(self, kind):
        """A fresh tool of a kind."""
        return kind(self.paths[kind])

    def prepared(self, work):
        """A row's work with this run's options."""
        return replace(work, seconds=self.seconds, congestion=self.congestion)

    def progress(self, outcome, done):
        """One line on the terminal that overwrites itself."""
        if sys.stderr.isatty():
            text = f"{outcome.row} [{outcome.placement}] {done}/{self.pairs}: {outcome.median:.3f}"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def parse_options(arguments):
    """The options, or a usage error."""
    parser = argparse.ArgumentParser(
        prog="benches/compare", description="linerate beside bare C loops and other tools."
    )
    parser.add_argument("--rows", default="*", metavar="PATTERN",
                        help="rows whose name matches (shell pattern, or a part of the name)")
    parser.add_argument("--placement", choices=["same", "split", "both"], default="both")
    parser.add_argument("--pairs", type=int, default=20, help="alternating pairs a row (20)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run (2)")
    parser.add_argument("--memory-seconds", type=float, default=60.0,
                        help="length of the memory row's run (60)")
    parser.add_argument("--linerate", type=Path, metavar="PATH",
                        help="the program (target/release/linerate)")
    parser.add_argument("--peers", default="", metavar="DIR:DIR",
                        help="directories to look for peers in before PATH")
    parser.add_argument("--congestion", default="cubic", metavar="NAME",
                        help="TCP congestion control of every side; `host`: as the kernel has it (cubic)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every pair's figures")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--self-check", action="store_true",
                        help="compare the C loops with themselves: the ratio must be near 1")
    options = parser.parse_args(arguments)
    if options.pairs < 1 or options.seconds <= 0 or options.memory_seconds < 10:
        parser.error("--pairs is at least 1, --seconds above 0, --memory-seconds at least 10")
    if options.congestion == "host":
        options.congestion = None
    elif not machine.has_congestion(options.congestion):
        parser.error(f"this kernel doesn't offer {options.congestion}; try --congestion host")
    return options


def build_directory():
    """Where cargo builds, and where the C loops go."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")


def compile_baselines():
    """Compiles the C loops that are older than their source; the directory they are in."""
    source = REPOSITORY / "benches" / "baseline"
    target = build_directory() / "baseline"
    target.mkdir(parents=True, exist_ok=True)
    for name in BareLoop.PROGRAMS:
        inputs = [source / f"{name}.c", source / "bare.h"]
        program = target / name
        newest = max(path.stat().st_mtime for path in inputs)
        if not program.exists() or program.stat().st_mtime < newest:
            compiler = os.environ.get("CC", "cc")
            argv = [compiler, "-O2", "-Wall", "-Wextra", "-o", program, inputs[0]]
            subprocess.run([str(part) for part in argv], check=True, timeout=120)
    return target


def selected_rows(options):
    """The rows that the user asked for."""
    rows = self_check_rows() if options.self_check else all_rows()
    pattern = options.rows.lower()
    return [row for row in rows
            if fnmatch.fnmatch(row.name.lower(), pattern) or pattern in row.name.lower()]


def find_tools(options, rows):
    """Paths of all tools that the rows need; what is missing ends the command."""
    needed = {side[0] for row in rows for side in (row.ours, row.theirs)} - {None}
    paths = {}
    if BareLoop in needed:
        paths[BareLoop] = compile_baselines()
    if Linerate in needed:
        path = options.linerate or build_directory() / "release" / "linerate"
        if not os.access(path, os.X_OK):
            sys.exit(f"{path} is not there: build it with `cargo build --release -p linerate`")
        paths[Linerate] = Path(path).resolve()
    directories = [part for part in options.peers.split(":") if part]
    for kind, program in PEER_PROGRAMS.items():
        if kind in needed:
            paths[kind] = find_peer(program, directories)
            if paths[kind] is None:
                sys.exit(f"{program} is not on PATH: install it, name its directory with --peers,"
                         " or leave its rows out with --rows")
    return paths


def print_header(options, paths):
    """Machine and tools."""
    for name, value in machine.facts(options.congestion).items():
        print(f"# {name}: {value}")
    for kind, path in paths.items():
        print(f"# {kind.name}: {path}")
    print(f"# {options.pairs} alternating pairs of {options.seconds:g} s a row and placement;"
          " median with its 95 % interval")
    print(f"{'work':<43} {'placed':<6} {'median':>9} {'interval':>19} {'bar':>8}  {'result':<6}"
          f" {'ours':>12} {'theirs':>12} {'CPU ours':>10} {'theirs':>10} {'other':>6}", flush=True)


def render_value(outcome, value):
    """A figure in the unit that its row is judged in."""
    if value is None:
        return "-"
    if outcome.unit == "s":
        return f"{value * 1e3:.1f} ms"
    if outcome.unit == "bytes":
        return f"{value / 1024:.0f} KiB"
    if outcome.unit == "loss":
        return f"{value * 100:+.3f} %"
    return f"{value:.3f}"


def render_figure(value):
    """A rate with an SI prefix."""
    if value is None:
        return "-"
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.2f} {prefix}"
    return f"{value:.3g}"


def render_outcome(outcome):
    """One row of the table, with a line for every note and failure below it."""
    interval = outcome.interval
    bounds = "-" if interval is None else (
        f"{render_value(outcome, interval[0])}..{render_value(outcome, interval[1])}")
    figure = "loss" if outcome.unit == "loss" else "figure"
    cpu = [outcome.side(side, "cpu_s_per_unit") for side in ("ours", "theirs")]
    cpu = ["-" if value is None else f"{value:.3g}" for value in cpu]
    other = "-" if outcome.other_cpus is None else f"{outcome.other_cpus:.2f}"
    bar = "-" if outcome.bar is None else render_value(outcome, outcome.bar)
    lines = [
        f"{outcome.row:<43} {outcome.placement:<6} {render_value(outcome, outcome.median):>9}"
        f" {bounds:>19} {bar:>8}  {outcome.verdict:<6}"
        f" {render_figure(outcome.side('ours', figure)):>12}"
        f" {render_figure(outcome.side('theirs', figure)):>12}"
        f" {cpu[0]:>10} {cpu[1]:>10} {other:>6}"
    ]
    lines += [f"    {note}" for note in outcome.notes]
    lines += [f"    FAILED {failure}" for failure in outcome.failures]
    return "\n".join(lines)


def write_json(path, options, outcomes):
    """Every pair's figures, for other programs."""
    document = {
        "schema": "linerate.compare/1",
        "machine": machine.facts(options.congestion),
        "pairs": options.pairs,
        "seconds": options.seconds,
        "rows": [
            dict(asdict(outcome), median=outcome.median, interval=outcome.interval,
                 verdict=outcome.verdict)
            for outcome in outcomes
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(arguments=None):
    """0: every row passed; 1: one failed; 2: usage."""
    options = parse_options(arguments)
    rows = selected_rows(options)
    if options.list or not rows:
        names = [row.name for row in (rows or all_rows())]
        try:
            print("\n".join(names), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if options.list else 2
    placements = [p for p in PLACEMENTS if options.placement in (p.name, "both")]
    if any(p.client_cpu not in os.sched_getaffinity(0) for p in placements):
        sys.exit("placement `split` needs processors 0 and 1: use --placement same")
    context = Context(options, find_tools(options, rows))
    began = time.monotonic()
    print_header(options, context.paths)
    outcomes = []
    for row in rows:
        for placement in placements:
            outcomes.append(run_row(row, placement, context))
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr)
            print(render_outcome(outcomes[-1]), flush=True)
    failed = sum(outcome.verdict == "FAIL" for outcome in outcomes)
    minutes = (time.monotonic() - began) / 60
    print(f"# {len(outcomes) - failed} rows passed or informed, {failed} failed,"
          f" {minutes:.0f} minutes")
    print("# CPU: seconds of both ends per GB (streams) or per transaction (rr);"
          " other: processors' worth of other work")
    if options.json:
        write_json(options.json, options, outcomes)
    return 1 if failed else 0
