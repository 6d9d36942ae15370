"""What `benches/compare` does: find the tools, run the rows, print the table, judge."""

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from . import figures, machine, network, placement, regressions, table
from .options import parse_options
from .outcome import FAIL, Outcome
from .page import Page
from .pairs import run_row
from .process import BROKEN, adopt_orphans, end_orphans, reason_of
from .revision import older_rows, revision_of
from .rows import all_rows, self_check_rows, selected
from .tools import BareLoop, BareTls, Linerate
from .tools.search import PROGRAMS, find_peers, version

REPOSITORY = Path(__file__).resolve().parents[2]
INTERRUPTED = 130
LEAST_MEDIA_S = 20.0  # 1,200 frames, of which a 99th percentile can be told
LEAST_LATENCY_S = 1.0  # secnetperf tells no latency of a shorter run


class Context:
    """What every row needs: the tools' paths and the options."""

    def __init__(self, options, paths):
        self.pairs = options.pairs
        self.is_judged = options.is_judged
        self.seconds = options.seconds
        self.memory_seconds = options.memory_seconds
        self.congestion = options.congestion
        self.plot = options.plot
        self.paths = paths

    def tool(self, kind):
        """A fresh tool of a kind."""
        return kind(*(self.paths[part] for part in kind.parts()))

    def prepared(self, work):
        """A row's work with this run's options."""
        seconds = max(self.seconds, LEAST_LATENCY_S) if work.percentile else self.seconds
        seconds = max(seconds, LEAST_MEDIA_S) if work.kind == "udp_media" else seconds
        return replace(work, seconds=seconds, congestion=self.congestion)

    def progress(self, outcome, done):
        """One line on the terminal that overwrites itself."""
        if sys.stderr.isatty():
            text = f"{outcome.row} [{outcome.placement}] {done}/{self.pairs}: {outcome.median:.3f}"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def build_directory():
    """Where cargo builds, and where the C loops go."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")


def compile_baselines():
    """Compiles the C loops that are older than their source; the directory they are in."""
    source = REPOSITORY / "benches" / "baseline"
    target = build_directory() / "baseline"
    target.mkdir(parents=True, exist_ok=True)
    for name in BareLoop.programs:
        inputs = [source / f"{name}.c", source / "bare.h"]
        program = target / name
        newest = max(path.stat().st_mtime for path in inputs)
        if not program.exists() or program.stat().st_mtime < newest:
            compiler = os.environ.get("CC", "cc")
            argv = [compiler, "-O2", "-Wall", "-Wextra", "-o", program, inputs[0]]
            subprocess.run([str(part) for part in argv], check=True, timeout=120)
    return target


def build_example(name):
    """Builds an example of the engine; its program."""
    argv = ["cargo", "build", "--quiet", "--release", "-p", "linerate-engine", "--example", name]
    subprocess.run(argv, cwd=REPOSITORY, check=True, timeout=1800)
    return build_directory() / "release" / "examples" / name


def find_tools(options, rows):
    """Paths of the tools that the rows need and that are here; without linerate nothing runs."""
    needed = {tool for row in rows for tool in row.tools}
    directories = [part for part in options.peers.split(":") if part]
    paths = {kind: path for kind, path in find_peers(directories).items() if kind in needed}
    if BareLoop in needed:
        paths[BareLoop] = compile_baselines()
    if BareTls in needed:
        paths[BareTls] = build_example("tls_stream")
    if Linerate in needed:
        paths[Linerate] = program_of(options)
    return paths


def program_of(options):
    """The linerate that is measured."""
    build = options.regressions or "release"
    path = options.linerate or build_directory() / build / "linerate"
    if not os.access(path, os.X_OK):
        flag = "--release " if build == "release" else ""
        sys.exit(f"{path} is not there: build it with `cargo build {flag}-p linerate`")
    return Path(path).resolve()


def print_header(options, net, paths, rows):
    """Machine, tools, and the peers that are not here."""
    for name, value in machine.facts(options.congestion).items():
        print(f"# {name}: {value}")
    print(f"# network: {'a namespace of its own' if net.private else 'the loopback of the host'}")
    for kind, path in paths.items():
        print(f"# {kind.name}: {path} {version(kind, path) if kind in PROGRAMS else ''}".rstrip())
    for kind in PROGRAMS:
        if kind not in paths and any(kind in row.tools for row in rows):
            print(f"# {kind.name}: not found on PATH or in --peers; its rows are skipped")
    print(f"# {options.pairs} alternating pairs of {options.seconds:g} s a row and placement;"
          " median with its 95 % interval")
    if not options.is_judged:
        print("# shows that the rows work, and judges nothing")
    print(table.HEADING, flush=True)


def outcome_of(row, name, context, net):
    """Runs a row in a placement, or says why not."""
    outcome = Outcome(row.name, name, row.bar, row.figure)
    try:
        outcome.skipped = placement.obstacle(name, net)
        for tool, work in (row.ours, row.theirs):
            if tool is not None and outcome.skipped is None:
                outcome.skipped = context.tool(tool).refusal(work, net)
        if outcome.skipped is None:
            return run_row(row, placement.placement(name, net), context)
    except BROKEN as failure:
        outcome.failures.append(reason_of(failure))
    return outcome


def run_rows(options, rows, outcomes, page=None):
    """Every row in every placement, into `outcomes`; beside a page's where there is one."""
    adopt_orphans()
    net = network.enter(options.congestion, not options.host_network)
    try:
        paths = find_tools(options, rows)
        print_header(options, net, paths, rows)
        context = Context(options, paths)
        for row in rows:
            missing = [tool.name for tool in row.tools if tool not in paths]
            for name in row.placements:
                if options.placement not in (name, "all"):
                    continue
                if missing:
                    # The header has said so; a line for each such row would hide the others.
                    outcomes.append(Outcome(row.name, name, row.bar, row.figure,
                                            skipped=f"{missing[0]} not found"))
                    continue
                attempt = lambda: outcome_of(row, name, context, net)  # noqa: B023, E731
                is_recorded = options.regressions and options.record is None
                outcomes.append(regressions.attempted(row, attempt) if is_recorded else attempt())
                if page:
                    outcomes[-1].notes += page.notes(outcomes[-1])
                if sys.stderr.isatty():
                    print("\r\033[K", end="", file=sys.stderr)
                print(table.render_outcome(outcomes[-1]), flush=True)
    finally:
        net.close()
        end_orphans()


def _interrupt(_signal, _frame):
    raise KeyboardInterrupt


def rows_of(options):
    """The rows that the options choose."""
    if options.self_check:
        rows = self_check_rows()
    elif options.regressions:
        rows = regressions.judged_rows(figures.load(), options.regressions)
    else:
        rows = all_rows()
    return selected(rows, options.rows)


def listed(options, rows):
    """The exit code of an option that only prints or remakes a page; None: rows are to be run."""
    try:
        if options.list:
            print("\n".join(table.render_row(row) for row in rows), flush=True)
            return 0
        if options.older:
            older = sorted(older_rows(figures.load()["rows"]))
            print("".join(f"{row:<45} {place}\n" for row, place in older), end="", flush=True)
            return 1 if older else 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if options.remake_page:
        figures.keep(figures.load())
        return 0
    return None


def recorded_revision(options):
    """The commit and day that figures are kept with; a sentence where they can't be."""
    if options.record not in figures.load()["machines"]:
        return None, f"describe this machine under `machines` in {figures.FIGURES} first"
    return revision_of(program_of(options))


def main(arguments=None):
    """0: no row failed; 1: one failed, or none came to a figure; 2: usage; 130: interrupted."""
    options = parse_options(arguments)
    rows = rows_of(options)
    if not rows:
        print("no row has such a name; --list shows them all", file=sys.stderr)
        return 2
    code = listed(options, rows)
    if code is not None:
        return code
    revision = None
    if options.record is not None:
        revision, problem = recorded_revision(options)
        if problem:
            print(f"--record {options.record}: {problem}", file=sys.stderr)
            return 2
    for kind in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, _interrupt)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    began = time.monotonic()
    outcomes = []
    page = Page(options.against.read_text(encoding="utf-8")) if options.against else None
    interrupted = False
    try:
        run_rows(options, rows, outcomes, page)
    except KeyboardInterrupt:
        interrupted = True
        print("\n# interrupted; everything that was started has been ended")
    print(table.render_summary(outcomes, (time.monotonic() - began) / 60))
    if page:
        print(page.summary())
    print(table.render_doubt(options), end="")
    if options.json:
        table.write_json(options.json, options, outcomes)
    if options.record is not None and options.regressions:
        figures.record_regressions(outcomes, options.record, options.regressions, revision)
    elif options.record is not None:
        figures.record(outcomes, options.record, revision)
    if interrupted:
        return INTERRUPTED
    return exit_code(outcomes)


def exit_code(outcomes):
    """Of the rows' verdicts; that nothing was measured must not look like success."""
    if not any(outcome.came_about for outcome in outcomes):
        print("no row came to a figure", file=sys.stderr)
        return 1
    return 1 if any(outcome.verdict == FAIL for outcome in outcomes) else 0
