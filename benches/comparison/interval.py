"""The median, and its confidence interval from order statistics.

The ranks are those of `linerate compare`: crates/measure/src/comparison/interval.rs has the formula, and a test there
holds ranks.json equal to it.
"""

import json
import statistics
from pathlib import Path

RANKS = json.loads(Path(__file__).with_name("ranks.json").read_text(encoding="utf-8"))["ranks"]
LEAST_VALUES = next(count for count, k in enumerate(RANKS) if k > 0)  # fewer have no interval
MOST_VALUES = len(RANKS) - 1


def median(values):
    """The median, or None of nothing."""
    return statistics.median(values) if values else None


def rank(count):
    """The largest k whose interval, from the k-th smallest to the k-th largest, covers the median with a probability of
    95 %; 0 where none does."""
    return RANKS[count]


def median_interval(values):
    """(low, high), or None where there are too few values (LEAST_VALUES)."""
    k = rank(len(values))
    if k == 0:
        return None
    ordered = sorted(values)
    return ordered[k - 1], ordered[-k]
