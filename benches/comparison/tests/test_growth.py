"""Cost growth: whose failure is whose, and what is judged."""

import unittest
from types import SimpleNamespace
from unittest.mock import patch

from .. import growth
from ..outcome import Outcome
from ..process import RunFailed
from ..rows import all_rows
from ..table import render_row

ROW = next(row for row in all_rows() if row.name.startswith("cost growth"))
RATES = {1: 10e3, 10: 100e3, 100: 180e3, 1_000: 120e3, 10_000: 100e3, 100_000: 60e3}


def ours(_tool, _place, work):
    """A run of ours with all flows active, or by itself: then a tenth is lost from 1,000 to 100,000."""
    rate = RATES[work.flows] if work.active == "all" or work.flows <= 1_000 else 108e3
    return {"flows": work.flows, "transactions_per_s": rate,
            "client_bytes": (10 << 20) + 2048 * (work.flows - 1),
            "server_bytes": (9 << 20) + 1024 * (work.flows - 1), "cpu_s": 2.0}


def bare(_tool, _place, work):
    """A run of the C loop."""
    return {"transactions_per_s": RATES[work.flows] / 2, "cpu_s": 0.5}


class Growth(unittest.TestCase):
    """The row without its processes."""

    def grown(self, ours_run=ours, bare_run=bare):
        """The outcome and the CPU seconds of a row with these runs."""
        outcome = Outcome(ROW.name, "split", ROW.bar, ROW.figure)
        context = SimpleNamespace(tool=lambda kind: kind, prepared=lambda work: work, plot=None, pairs=6,
                                  progress=lambda _outcome, _done: None)
        with patch.object(growth, "_run", ours_run), patch.object(growth, "_run_bare", bare_run):
            return outcome, growth.run_growth(ROW, None, context, outcome)

    def test_the_rates_that_rr_has_by_itself_are_held_against_each_other(self):
        outcome, used_s = self.grown()
        self.assertEqual((outcome.values, outcome.verdict), ([0.9] * 6, "pass"))
        self.assertIn("by themselves 0.900, with all active 0.500, the C loop with all active 0.500",
                      outcome.notes[-1])
        self.assertEqual(used_s, 3 * (6 * 2.0 + 2 * 2.0 + 6 * 0.5) + 6 * 2 * 2.0)

    def test_memory_a_connection_is_told(self):
        notes = self.grown()[0].notes
        self.assertTrue(notes[3].endswith(": 2.00 and 1.00 KiB a connection"), notes[3])

    def test_a_failed_run_of_ours_fails_the_row_and_no_smaller_load_takes_its_place(self):
        def failing(tool, place, work):
            if work.flows == 100_000:
                raise RunFailed("too many open files")
            return ours(tool, place, work)

        outcome, _ = self.grown(failing)
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertEqual((outcome.values, outcome.failures), ([], ["100000 flows: too many open files"]))

    def test_a_run_that_fails_ends_the_pairs_and_fails_the_row(self):
        runs = []

        def failing(tool, place, work):
            runs.append(work.flows)
            if runs.count(100_000) > 8:
                raise RunFailed("no ports")
            return ours(tool, place, work)

        outcome, _ = self.grown(failing)
        self.assertEqual((outcome.verdict, outcome.values), ("FAIL", [0.9, 0.9]))
        self.assertEqual(outcome.failures, ["pair 3, 100000 flows: no ports"])

    def test_a_failure_of_the_c_loop_is_a_note(self):
        def failing(_tool, _place, work):
            raise RunFailed("too many processes")

        outcome, _ = self.grown(bare_run=failing)
        self.assertEqual((outcome.verdict, outcome.values), ("pass", [0.9] * 6))
        self.assertIn("the C loop with all active -", outcome.notes[-1])
        self.assertIn("too many processes", outcome.notes[0])
        self.assertIsNone(outcome.side("theirs", "figure"))

    def test_its_bar_is_the_least(self):
        self.assertIn(">= 0.8", render_row(ROW))
