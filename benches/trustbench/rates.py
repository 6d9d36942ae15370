"""Rates of right judgements, and the bars that they are held to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """How many of `count` judgements were right, or wrong where the bar is the most that may be. Without a bar it is
    printed only. With `most` it is too much above that as well."""

    what: str
    good: int
    count: int
    bar: float | None = None
    is_most: bool = False
    most: float | None = None

    def keeps(self, slack=0.0):
        """Whether the bar is kept. A part of the judgements, `slack`, may miss it."""
        if self.count == 0 or self.bar is None:
            return True
        share = self.good / self.count
        if self.most is not None and share > self.most + slack:
            return False
        return share <= self.bar + slack if self.is_most else share >= self.bar - slack

    def line(self, slack=0.0):
        share = self.good / max(self.count, 1)
        line = f"{self.what:44} {self.good:5} of {self.count:5}  {share:7.1%}"
        if self.bar is None:
            return line
        bar = f"at most {min(self.bar + slack, 1):.0%}" if self.is_most else f"at least {self.bar - slack:.0%}"
        if self.most is not None:
            bar += f", at most {min(self.most + slack, 1):.0%}"
        return f"{line}  {bar}{'' if self.keeps(slack) else '  MISSED'}"
