"""`--regressions`: whether a row fell far below what was recorded of it.

The bar is so low that a busy machine doesn't fail a row, and a fall to 0.4 of what was recorded always does.
"""

from dataclasses import replace

from .options import LEAST_SHARE
from .outcome import FAIL
from .rows import regression_rows

ATTEMPTS = 3  # a row is low where each of these is


def recorded(document, row, build):
    """The least ratio that any machine has on record for a row and a build of linerate; None: there is none."""
    ratios = [entry["median"] for entry in document["regressions"]
              if entry["row"] == row and entry["build"] == build]
    return min(ratios, default=None)


def judged_rows(document, build):
    """The rows with their bars. Rows without a recorded ratio have none, and `run` fails them."""
    rows = []
    for row in regression_rows():
        ratio = recorded(document, row.name, build)
        rows.append(row if ratio is None else replace(row, bar=LEAST_SHARE * ratio))
    return rows


def attempted(row, attempt):
    """The outcome of the first attempt that isn't low; `attempt()` gives an outcome."""
    outcome = attempt()
    if row.bar is None and outcome.skipped is None:
        outcome.failures.append("no ratio is recorded for this build: record one with --record")
        return outcome
    for _ in range(ATTEMPTS - 1):
        if outcome.verdict != FAIL:
            break
        outcome = attempt()
    return outcome


def merged(document, outcomes, mark, build, revision):
    """The document with these ratios in the place of those of the same row, build and machine."""
    key = lambda entry: (entry["row"], entry["build"], entry["machine"])  # noqa: E731
    entries = {key(entry): entry for entry in document["regressions"]}
    for outcome in outcomes:
        if outcome.values:
            entry = {"row": outcome.row, "build": build, "machine": mark,
                     "median": float(f"{outcome.median:.4g}"), **revision}
            entries[key(entry)] = entry
    return dict(document, regressions=list(entries.values()))
