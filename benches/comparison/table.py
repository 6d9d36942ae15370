"""The table on the terminal, and the document for other programs."""

import json
from dataclasses import asdict

from . import machine
from .options import PAIRS, SECONDS
from .outcome import NOT_COMPLETED, SKIPPED

HEADING = (f"{'work':<45} {'placed':<6} {'median':>9} {'interval':>19} {'bar':>8}  {'result':<7}"
           f" {'ours':>9} {'theirs':>9} {'CPU ours':>9} {'theirs':>9} {'other':>5}")
LEGEND = ("# CPU: seconds of both ends per GB (streams) or per transaction (rr, connect);"
          " other: processors' worth of other work")


def render_value(unit, value):
    """A median, a bound or a bar in the unit that its row is judged in."""
    if value is None:
        return "-"
    if unit == "s":
        return f"{value * 1e3:.1f} ms"
    if unit == "bytes":
        return f"{value / 1024:.0f} KiB"
    if unit == "loss":
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


def first_line(text):
    """The first line of what a tool said; the document has it all."""
    return text.strip().partition("\n")[0]


def render_row(row):
    """A row and its bar, for --list."""
    if row.bar is None:
        bar = "-"
    elif row.measure in ("ratio", "growth"):
        bar = f">= {row.bar:g}"
    else:
        bar = f"<= {render_value(row.figure, row.bar)}"
    return f"{row.name:<45} {bar:<12} {' '.join(row.placements)}"


def entry_of(outcome):
    """What is kept of an outcome: figures in their units, as many digits as the table shows."""
    figure = "loss" if outcome.unit == "loss" else "figure"

    def rounded(value, digits):
        return None if value is None else float(f"{value:.{digits}g}")

    cpu = [outcome.side(side, "cpu_s_per_unit") for side in ("ours", "theirs")]
    return {
        "row": outcome.row,
        "placement": outcome.placement,
        "unit": outcome.unit,
        "median": rounded(outcome.median, 6),
        "interval": outcome.interval and [rounded(bound, 6) for bound in outcome.interval],
        "bar": outcome.bar,
        "verdict": outcome.verdict,
        "ours": rounded(outcome.side("ours", figure), 6),
        "theirs": rounded(outcome.side("theirs", figure), 6),
        "cpu": [rounded(used, 3) for used in cpu],
        "other": None if outcome.other_cpus is None else round(outcome.other_cpus, 2),
        "notes": [*outcome.notes,
                  *(f"FAILED {first_line(failure)}" for failure in outcome.failures),
                  *(f"the peer failed: {first_line(failure)}" for failure in outcome.peer_failures)],
    }


def render_outcome(outcome):
    """One row of the table, with a line for every note and failure below it."""
    if outcome.verdict == SKIPPED:
        return f"{outcome.row:<45} {outcome.placement:<6} skipped: {outcome.skipped}"
    return render_entry(entry_of(outcome))


def render_entry(entry):
    """A row of which this is kept. The mark of its machine, if it has one, is the last word of its first line."""
    name = f"{entry['row']:<45} {entry['placement']:<6}"
    if entry["verdict"] == NOT_COMPLETED:
        return f"{name} {NOT_COMPLETED}: {entry['notes'][-1].removeprefix('the peer failed: ')}"

    def value(number):
        return render_value(entry["unit"], number)

    interval = entry["interval"]
    bounds = "-" if interval is None else f"{value(interval[0])}..{value(interval[1])}"
    cpu = ["-" if used is None else f"{used:.3g}" for used in entry["cpu"]]
    other = "-" if entry["other"] is None else f"{entry['other']:.2f}"
    line = (f"{name} {value(entry['median']):>9} {bounds:>19} {value(entry['bar']):>8}"
            f"  {entry['verdict']:<7} {render_figure(entry['ours']):>9}"
            f" {render_figure(entry['theirs']):>9} {cpu[0]:>9} {cpu[1]:>9} {other:>5}"
            f"  {entry.get('machine', '')}")
    return "\n".join([line.rstrip(), *(f"    {note}" for note in entry["notes"])])


def render_summary(outcomes, minutes):
    """How many rows passed, failed, told or did not come about."""
    counts = {}
    for outcome in outcomes:
        counts[outcome.verdict] = counts.get(outcome.verdict, 0) + 1
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"# {told or 'no row'}; {minutes:.0f} minutes\n{LEGEND}"


def render_doubt(options):
    """What stands below verdicts of fewer pairs or shorter runs than those that count; else nothing."""
    fewer = ["fewer"] if options.pairs < PAIRS else []
    shorter = ["shorter"] if options.seconds < SECONDS else []
    if not options.is_judged or not fewer + shorter:
        return ""
    return (f"# judged with {options.pairs} pairs of {options.seconds:g} s:"
            f" {' and '.join(fewer + shorter)} than the {PAIRS} of {SECONDS:g} s that count\n")


def write_json(path, options, outcomes):
    """Every pair's figures."""
    document = {
        "schema": "linerate.compare/2",
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
