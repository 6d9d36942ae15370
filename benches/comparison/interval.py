"""The median, and its confidence interval from order statistics.

The interval needs no distribution: the median lies between the k-th smallest and the k-th largest
of n independent observations with probability 1 - 2 P(B < k), B binomial(n, 1/2) (David and
Nagaraja, Order Statistics, 3rd edition, section 7.1).
"""

import math
import statistics

CONFIDENCE = 0.95
LEAST_VALUES = 6  # fewer have no interval at that confidence


def median(values):
    """The median, or None of nothing."""
    return statistics.median(values) if values else None


def rank(count, confidence=CONFIDENCE):
    """The largest k whose interval covers the median with the confidence; 0 where none does."""
    tail = (1.0 - confidence) / 2.0
    below = 0.0
    best = 0
    for k in range(1, count // 2 + 1):
        below += math.comb(count, k - 1) / 2.0**count
        if below > tail:
            break
        best = k
    return best


def median_interval(values):
    """(low, high), or None where there are too few values (LEAST_VALUES)."""
    k = rank(len(values))
    if k == 0:
        return None
    ordered = sorted(values)
    return ordered[k - 1], ordered[-k]
