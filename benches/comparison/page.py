"""Whether a run gives what a page of earlier figures shows."""

import re

NUMBER = r"([+-]?\d+(?:\.\d+)?)(?: %| ms)?"
FIGURES = rf"\s+{NUMBER}\s+{NUMBER}\.\.{NUMBER}\s"
PRINTED = {"loss": (100, 3), "s": (1000, 1)}  # units of which the table has not the value itself: scale and digits
AGREES, ABOVE, BELOW = "agrees", "above it", "below it"


class Page:
    """The rows of a text that has lines of the table."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.said = []

    def figures(self, row, placement):
        """A row's median and its interval, as they are printed; None where there is no such row or interval."""
        line = re.compile(rf"{re.escape(row)}\s*{placement}{FIGURES}")
        for match in filter(None, map(line.match, self.lines)):
            return tuple(float(number) for number in match.groups())
        return None

    def notes(self, outcome):
        """What an outcome is beside the page's row: it agrees where the intervals overlap."""
        if not outcome.came_about or outcome.interval is None:
            return []
        shown = self.figures(outcome.row, outcome.placement)
        if shown is None:
            return ["the page has no interval of it"]
        # As the page has them, to as many digits.
        scale, digits = PRINTED.get(outcome.unit, (1, 3))
        low, high = (round(bound * scale, digits) for bound in outcome.interval)
        median, shown_low, shown_high = shown
        word = ABOVE if low > shown_high else BELOW if high < shown_low else AGREES
        self.said.append(word)
        return [f"the page has {median:.3f}, {shown_low:.3f}..{shown_high:.3f}: {word}"]

    def summary(self):
        """How many rows agree, in a line."""
        counts = ", ".join(f"{self.said.count(word)} {word}" for word in (AGREES, ABOVE, BELOW))
        return f"# rows beside the page's: {counts}"
