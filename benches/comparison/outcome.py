"""What one row in one placement came to, and its verdict."""

import statistics
from dataclasses import dataclass, field

from .interval import median, median_interval

PASS, FAIL, INFO = "pass", "FAIL", "info"
TOO_FEW = "too few"
NOT_COMPLETED = "peer did not complete"
SKIPPED = "skipped"


@dataclass
class Outcome:
    """A run of ours that fails, fails the row. A peer's is shown; where more of its runs failed than
    were completed the row says that it did not complete, and is no failure. Fewer values than the row
    needs decide nothing."""

    row: str
    placement: str
    bar: float | None
    unit: str
    values: list = field(default_factory=list)  # ratios, or differences, bytes, seconds
    pairs: list = field(default_factory=list)  # each pair's figures
    failures: list = field(default_factory=list)  # ours
    peer_failures: list = field(default_factory=list)
    skipped: str | None = None  # why
    smaller_is_better: bool = False
    is_judged: bool = True  # not in a run that only shows that the row works
    least_values: int = 1  # of which the median is held against the bar
    other_cpus: float | None = None  # processors' worth of other work meanwhile
    notes: list = field(default_factory=list)

    @property
    def median(self):
        """The median of the values, or None."""
        return median(self.values)

    @property
    def interval(self):
        """Its 95 % interval, or None."""
        return median_interval(self.values)

    @property
    def decides(self):
        """Whether there is enough of it to be held against a bar."""
        return (self.is_judged and len(self.values) >= self.least_values
                and len(self.peer_failures) <= len(self.values))

    @property
    def verdict(self):
        """`pass`, `FAIL`, where nothing is judged `info`, or why there is none of these."""
        if self.skipped:
            return SKIPPED
        if self.failures:
            return FAIL
        if len(self.peer_failures) > len(self.values):
            return NOT_COMPLETED
        if not self.values:
            return FAIL
        if self.bar is None or not self.is_judged:
            return INFO
        if len(self.values) < self.least_values:
            return TOO_FEW
        good = self.median <= self.bar if self.smaller_is_better else self.median >= self.bar
        return PASS if good else FAIL

    @property
    def came_about(self):
        """Whether there is a figure that says something."""
        return self.verdict in (PASS, FAIL, INFO)

    def side(self, name, key):
        """The median of one side's figure over the pairs; None where there is none."""
        values = [pair[name][key] for pair in self.pairs if pair[name].get(key) is not None]
        return statistics.median(values) if values else None
