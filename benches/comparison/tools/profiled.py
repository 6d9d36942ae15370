"""Tools that can do the same work in several ways, of which a row gets the best."""

import statistics

from ..process import BROKEN
from ..table import render_figure
from .tool import Tool

CHOOSING_RUNS = 3


class Profiled(Tool):
    """With the profile that does a row's work best in that row's placement."""

    profiles = ()
    choice = ""  # what is chosen, in words of the tool

    def __init__(self, *paths):
        super().__init__(*paths)
        self.profile = None

    def start_server(self, placement, work):
        if self.profile is None:
            self._choose_profile(placement, work)
        super().start_server(placement, work)

    def _choose_profile(self, placement, work):
        best = {}
        if len(self.profiles) > 1:
            for self.profile in self.profiles:
                best[self.profile] = self._median(placement, work)
            told = ", ".join(f"{name} {render_figure(figure) if figure else 'failed'}"
                             for name, figure in best.items())
            self.notes.append(f"{self.name} {self.choice}, medians of up to {CHOOSING_RUNS} runs: {told}")
        self.profile = max(self.profiles, key=lambda name: _merit(best.get(name, 0.0), work))

    def _median(self, placement, work):
        """The median of some runs with this profile, up to the first that fails; 0 without one."""
        figures = []
        try:
            super().start_server(placement, work)
            for _ in range(CHOOSING_RUNS):
                measured = self.run(work)
                self.prepared_cpu_s += measured.cpu_s
                figures.append(measured.figure)
        except BROKEN:
            pass  # That it fails is shown where it does so in a pair.
        finally:
            self.stop()
        return statistics.median(figures) if figures else 0.0


def _merit(figure, work):
    """The greater the better; nothing where no run was completed."""
    return 1 / figure if figure and work.percentile else figure
