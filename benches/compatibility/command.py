"""The command line of `benches/compat`."""

import argparse
import fnmatch
import itertools
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .case import Excused, is_wrong
from .flent import Flent
from .iperf3 import Iperf3
from .netperf import Netperf
from .place import Link, Loopback
from .secnetperf import Secnetperf
from .table import count, render_page

DIALECTS = {dialect.name: dialect for dialect in (Iperf3, Netperf, Secnetperf, Flent)}
ROOT = Path(__file__).resolve().parents[2]


def parse_options(arguments):
    """The options, or a usage error."""
    parser = argparse.ArgumentParser(
        prog="benches/compat", description="Other tools' options with the originals and with ours.")
    add = parser.add_argument
    add("dialect", choices=DIALECTS)
    add("--linerate", type=Path, metavar="PATH", default=ROOT / "target/debug/linerate",
        help="the program (target/debug/linerate)")
    add("--original", action="append", default=[], metavar="PATH",
        help="an original; repeatable (the one on PATH)")
    add("--cases", action="append", default=[], metavar="PATTERN",
        help="cases whose name matches (shell pattern); repeatable")
    add("--path", action="append", default=[], metavar="FILE",
        help="run over the emulated link of this description (docs/link.md), or on `loopback`;"
        " repeatable (loopback); needs root")
    add("--jobs", type=int, default=4, help="cases at the same time (4)")
    add("--markdown", type=Path, metavar="FILE", help="write the table there")
    return parser.parse_args(arguments)


def pairings(dialect, case, original):
    """Server and client of each cell, the original against itself first."""
    ours = dialect.ours
    if case.kind == "refusal":
        return [("reference", original, original), ("ours", ours, ours)]
    if case.alone:
        return [("both", ours, ours)]
    if case.without:
        return [("client", original, ours), ("both", ours, ours)]
    return [("reference", original, original), ("client", original, ours),
            ("server", ours, original), ("both", ours, ours)]


# An original that failed by chance is no measure: its pair has so many tries more.
REFERENCE_TRIES = 3


def run_case(dialect, number, case):
    """The row of a case: for each original a dictionary from cell to None (right) or a reason."""
    numbers = itertools.count(number * 100, 2)
    return {original.label: run_cells(dialect, case, original, numbers) if dialect.knows(original, case) else {}
            for original in dialect.originals}


def run_cells(dialect, case, original, numbers):
    """The cells of a case with one original."""
    cells, references = {}, []
    for name, server, client in pairings(dialect, case, original):
        is_reference, is_ours = name == "reference", server.ours and client.ours
        may_break = is_reference or case.breaks and not is_ours
        for _ in range(dialect.place.tries * (REFERENCE_TRIES if may_break else 1)):
            try:
                run = dialect.run(case, server, client, original.label, next(numbers))
                wrong = judged(dialect, case, run, None if is_reference else reference_of(case, references))
                # Two of ours tell each other everything.
                wrong = str(wrong) if is_ours and wrong else wrong
                if is_reference:
                    references.append(run)
                    wrong = None if case.kind == "refusal" else wrong
                elif wrong and case.breaks:
                    wrong = excuse(dialect, case, run, client, references, lambda: dialect.run(
                        case, original, original, original.label, next(numbers))) or wrong
            except OSError as error:
                wrong = f"not judged: {error}"
                continue
            failed = is_reference and not case.fails and run.client.code
            if not is_wrong(wrong) and not failed:
                break
        cells[name] = wrong
    return cells


def judged(dialect, case, run, reference):
    """Why a run isn't right, or None; what can't be read, as the reference of originals that broke, is no reason less."""
    try:
        return dialect.judge(case, run, reference)
    except (ValueError, KeyError, TypeError) as error:
        return f"not judged: {type(error).__name__}: {error}"


def excuse(dialect, case, run, client, references, again):
    """Why a wrong run of a case that breaks the originals is no failure of ours, or None: it has a right result where
    no pair of them had one, or their client ends with our server as it has ended with its own."""
    if not is_broken(run):
        broken = references and all(is_broken(pair) for pair in references)
        if broken and judged(dialect, case, run, None) is None:
            return Excused(f"two originals: {last_line(references[-1])} ({case.breaks})")
        return None
    if client.ours:
        return None
    for tries_left in reversed(range(dialect.place.tries * REFERENCE_TRIES + 1)):
        if any(is_broken(pair) and last_line(pair) == last_line(run) for pair in references):
            return Excused(f"as two originals: {last_line(run)} ({case.breaks})")
        # What an original does now and then takes some tries to be seen.
        if tries_left:
            references.insert(0, again())
    return None


def reference_of(case, references):
    """The last run of two originals; where they break, the last one that came to a result."""
    whole = [run for run in references if case.breaks and not is_broken(run)]
    return (whole or references or [None])[-1]


def is_broken(run):
    """Whether a client came to no result."""
    return run.client.code != 0


def last_line(run):
    """What a client said in the end; how it ended where it said nothing."""
    said = (run.client.err or run.client.out).strip().splitlines()
    return said[-1].strip() if said else f"exit code {run.client.code}"


def uncovered(dialect):
    """Flags of ours that no case has."""
    words = " ".join(f"{case.client} {case.server} {' '.join(case.flags)}" for case in dialect.cases)
    words = set(words.replace("=", " ").split())
    return [name for name, letter in dialect.flags().items()
            if name not in words and letter not in words and name not in dialect.elsewhere]


def run_cases(dialect, chosen, jobs):
    """The rows of all cases, those that aren't right said as they come."""
    rows = {}
    with ThreadPoolExecutor(jobs) as pool:
        made = pool.map(lambda pair: run_case(dialect, *pair), enumerate(chosen))
        for case, row in zip(chosen, made):
            rows[case] = row
            for label, cells in row.items():
                for cell, wrong in cells.items():
                    if wrong is not None:
                        note = "" if is_wrong(wrong) else "(right) "
                        print(f"{dialect.place.name}: {case.name} | {label} {cell}: {note}{wrong}", flush=True)
    return rows


def run_over(dialect, options, chosen):
    """The rows of every place, by its description."""
    found = {}
    for path in options.path or ["loopback"]:
        place = Loopback() if path == "loopback" else Link(options.linerate, path)
        dialect.place = place
        # A refusal needs no network.
        here = [case for case in chosen
                if path == "loopback" or not (case.kind == "refusal" or case.resolves)]
        try:
            found[place] = run_cases(dialect, here, options.jobs)
        finally:
            place.close()
    return found


def main(arguments=None):
    """Runs the cases; 1 if a cell isn't right."""
    options = parse_options(arguments)
    kind = DIALECTS[options.dialect]
    absent = getattr(kind, "absent", lambda: None)()
    if absent:
        print(absent)
        return 0
    originals = options.original or kind.find()
    if not originals:
        print(f"no {kind.name} to compare with: name one with --original", file=sys.stderr)
        return 2
    dialect = kind(options.linerate, originals)
    chosen = [case for case in dialect.cases
              if not options.cases or any(fnmatch.fnmatch(case.name, p) for p in options.cases)]
    try:
        found = run_over(dialect, options, chosen)
    finally:
        shutil.rmtree(dialect.folder, ignore_errors=True)
    missing = [] if options.cases else uncovered(dialect)
    for name in missing:
        print(f"{name}: no case")
    if options.markdown:
        options.markdown.write_text(render_page(dialect, found, missing))
    every_wrong = 0
    for place, rows in found.items():
        total, wrong = count(rows)
        every_wrong += wrong
        print(f"{place.name}: {total - wrong} of {total} cells right")
    print(f"{len(missing)} flags without a case")
    return 1 if every_wrong or missing else 0
