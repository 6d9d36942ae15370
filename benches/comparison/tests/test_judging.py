"""Rows, verdicts, intervals and the drawing."""

import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

from ..interval import median_interval
from ..options import parse_options
from ..outcome import Outcome
from ..page import Page
from ..placement import NAMES
from ..plot import write_plot
from ..rows import all_rows, selected
from ..table import render_doubt, render_outcome


def outcome(values, bar=1.0, **more):
    """An outcome of a row with these ratios."""
    return Outcome("a row", "same", bar, "bit/s", values=values, **more)


class Verdicts(unittest.TestCase):
    """What passes and what fails."""

    def test_the_median_is_held_against_the_bar(self):
        self.assertEqual(outcome([0.5, 1.0, 1.0]).verdict, "pass")
        self.assertEqual(outcome([0.5, 0.99, 1.5]).verdict, "FAIL")
        self.assertEqual(outcome([0.5], bar=None).verdict, "info")

    def test_too_few_values_decide_nothing(self):
        for values in ([2.0] * 5, [0.5] * 5):
            self.assertEqual(outcome(values, least_values=6).verdict, "too few")
        self.assertEqual(outcome([2.0] * 6, least_values=6).verdict, "pass")

    def test_a_run_that_judges_nothing_still_tells_what_failed(self):
        self.assertEqual(outcome([0.5], is_judged=False, least_values=6).verdict, "info")
        self.assertEqual(outcome([2.0], is_judged=False, failures=["no server"]).verdict, "FAIL")
        for words, judged in (([], True), (["--quick"], False), (["--pairs", "5"], False),
                              (["--pairs", "6"], True), (["--quick", "--pairs", "20"], False)):
            self.assertEqual(parse_options([*words, "--congestion", "host"]).is_judged, judged, words)

    def test_less_than_what_counts_is_said_beside_its_verdicts(self):
        for words, doubt in (("", ""), ("--pairs 30 --seconds 5", ""), ("--quick", ""), ("--pairs 5", ""),
                             ("--pairs 6", "6 pairs of 2 s: fewer"),
                             ("--seconds 1", "20 pairs of 1 s: shorter"),
                             ("--pairs 6 --seconds 0.3", "6 pairs of 0.3 s: fewer and shorter")):
            said = render_doubt(parse_options([*words.split(), "--congestion", "host"]))
            expected = f"# judged with {doubt} than the 20 of 2 s that count\n" if doubt else ""
            self.assertEqual(said, expected, words)

    def test_a_row_agrees_with_a_page_where_the_intervals_overlap(self):
        lost = Outcome("a row", "split", 0, "loss", values=[-0.02, -0.01, 0, 0, 0.01, 0.02])
        shown = outcome([1.0 + 0.01 * index for index in range(6)])
        slow = Outcome("a row", "free", 0.02, "s", values=[0.004 + 0.0001 * index for index in range(6)])
        page = Page("\n".join(["a row", *map(render_outcome, (shown, lost, slow))]))
        self.assertEqual(page.figures("a row", "same"), (1.025, 1.0, 1.05))
        self.assertEqual(page.figures("a row", "split"), (0, -2, 2))
        for first, said in ((1.04, "agrees"), (1.06, "above it"), (0.9, "below it")):
            found = page.notes(outcome([first + 0.01 * index for index in range(6)]))
            self.assertEqual(found, [f"the page has 1.025, 1.000..1.050: {said}"])
        self.assertEqual(page.notes(lost), ["the page has 0.000, -2.000..2.000: agrees"])
        self.assertEqual(page.notes(outcome([1.0] * 5)), [])
        self.assertEqual(page.notes(slow), ["the page has 4.200, 4.000..4.500: agrees"])
        self.assertIsNone(page.figures("a", "same"))
        self.assertEqual(Page("").notes(lost), ["the page has no interval of it"])
        self.assertEqual(page.summary(), "# rows beside the page's: 3 agrees, 1 above it, 1 below it")

    def test_more_loss_than_the_bar_fails(self):
        self.assertEqual(outcome([0.001], bar=0, smaller_is_better=True).verdict, "FAIL")
        self.assertEqual(outcome([0.0], bar=0, smaller_is_better=True).verdict, "pass")

    def test_a_failed_run_of_ours_fails_the_row(self):
        self.assertEqual(outcome([2.0], failures=["no server"]).verdict, "FAIL")
        self.assertEqual(outcome([]).verdict, "FAIL")

    def test_a_peer_that_never_completes_is_said_and_no_failure(self):
        lost = outcome([], peer_failures=["too many flows\nusage: tool"])
        self.assertEqual(lost.verdict, "peer did not complete")
        self.assertIn("too many flows", render_outcome(lost))
        self.assertEqual(outcome([0.5], peer_failures=["a", "b"]).verdict, "peer did not complete")
        self.assertEqual(outcome([0.5, 0.5], peer_failures=["once"]).verdict, "FAIL")

    def test_a_skipped_row_says_why(self):
        self.assertIn("skipped: no root", render_outcome(outcome([], skipped="no root")))


class Rows(unittest.TestCase):
    """The table of rows."""

    def test_names_are_unique_and_placements_known(self):
        names = [row.name for row in all_rows()]
        self.assertEqual(len(names), len(set(names)))
        for row in all_rows():
            self.assertLessEqual(set(row.placements), set(NAMES))

    def test_every_tool_can_do_the_work_of_its_rows(self):
        for row in all_rows():
            for tool, work in (row.ours, row.theirs):
                if tool is not None:
                    self.assertIn(work.kind, tool.kinds, row.name)

    def test_patterns_select_by_shell_pattern_or_part(self):
        self.assertEqual(len(selected(all_rows(), [])), len(all_rows()))
        names = [row.name for row in selected(all_rows(), ["udp rr*,growth", "nuttcp"])]
        self.assertTrue(any(name.startswith("udp rr") for name in names))
        self.assertIn("cost growth / C loop", names)
        self.assertFalse(any("ethr" in name for name in names))
        self.assertEqual([row.name for row in selected(all_rows(), ["memory of 1,000"])],
                         ["our netserver memory of 1,000 tests / netperf"])


class Figures(unittest.TestCase):
    """Arithmetic and drawing."""

    def test_the_interval_of_twenty_is_from_the_sixth_to_the_fifteenth(self):
        self.assertEqual(median_interval(list(range(1, 21))), (6, 15))
        self.assertIsNone(median_interval([1, 2, 3, 4, 5]))

    def test_the_drawing_is_well_formed_and_has_a_dot_for_each_figure(self):
        points = [{"flows": 10**n, "transactions_per_s": 5e4 + n, "active_per_s": 6e4, "client_bytes": 8 << 20,
                   "server_bytes": 9 << 20} for n in range(6)]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "growth.svg"
            write_plot(path, points)
            drawing = xml.etree.ElementTree.parse(path)
        self.assertEqual(len(drawing.findall(".//{http://www.w3.org/2000/svg}circle")), 24)
