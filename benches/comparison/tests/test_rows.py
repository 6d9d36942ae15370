"""How rows are run: what goes wrong in one is its own failure, whoever's output made it so."""

import unittest
from types import SimpleNamespace
from unittest.mock import patch

from .. import command, pairs
from ..outcome import Outcome
from ..placement import Placement
from ..process import RunFailed
from ..rows import Row
from ..rows.row import against
from ..table import render_summary
from ..tools import Linerate, Measured, Netperf, Tool, Work

PLACE = Placement("free", None, None)
WORK = Work("tcp_stream", 1, seconds=0.5)


class Scripted:
    """No process: each run is the next of a list, a figure or what went wrong."""

    def __init__(self, runs):
        self.notes, self.prepared_cpu_s = [], 0.0
        self.runs = iter(runs)

    def start_server(self, place, work):
        pass

    def stop(self):
        pass

    def run(self, work):
        run = next(self.runs)
        if isinstance(run, str):
            raise RunFailed(run)
        return run if isinstance(run, Measured) else Measured(run, 1.0)


class OurScripted(Scripted, Linerate):
    """Its failures are this project's."""


def context_of(tools, asked=6, is_judged=True):
    """What a row needs, with the tools that it gets."""
    return SimpleNamespace(tool=lambda kind: tools[kind], prepared=lambda work: work, pairs=asked,
                           is_judged=is_judged, progress=lambda outcome, done: None)


def paired(ours, theirs, row=None, **more):
    """The outcome of a row of pairs with these runs."""
    row = row or Row("a row", (Linerate, WORK), (Tool, WORK), 1.0, "bit/s")
    return pairs.run_row(row, PLACE, context_of({Linerate: OurScripted(ours), Tool: Scripted(theirs)},
                                                **more))


def alone(measure):
    """A row of linerate by itself."""
    return Row("a row", (Linerate, WORK), (None, None), 1.0, "s", measure, placements=("free",))


class Breaking(unittest.TestCase):
    """What a program's output makes go wrong ends a row, not the table."""

    def test_a_document_without_a_field_fails_the_row(self):
        def runner(_row, _place, _context, outcome):
            outcome.values.append(0.01)
            return {}["environment"]

        with patch.object(pairs, "run_first_byte", runner):
            outcome = pairs.run_row(alone("first_byte"), PLACE, context_of({}))
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertEqual(outcome.failures, ["KeyError('environment')"])

    def test_a_tool_that_cannot_be_asked_fails_the_row(self):
        context = SimpleNamespace(tool=lambda kind: kind("/nowhere/linerate"))
        outcome = command.outcome_of(alone("memory"), "free", context, None)
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertIn("FileNotFoundError", outcome.failures[0])


class Pairs(unittest.TestCase):
    """How many pairs a row has."""

    def test_failed_pairs_of_a_peer_are_made_up_for(self):
        outcome = paired([2.0] * 20, [1.0, "a", 1.0, "b", 1.0, "c", *[1.0] * 17])
        self.assertEqual((len(outcome.values), len(outcome.peer_failures)), (6, 3))
        self.assertEqual(outcome.verdict, "pass")
        self.assertIsNotNone(outcome.interval)

    def test_a_peer_that_fails_more_often_than_it_completes_is_given_up(self):
        outcome = paired([2.0] * 20, [1.0, "a", "b", "c", *[1.0] * 16])
        self.assertEqual((len(outcome.values), len(outcome.peer_failures)), (1, 3))
        self.assertEqual(outcome.verdict, "peer did not complete")
        self.assertEqual(len(paired([2.0] * 20, ["x"] * 20).peer_failures), 2)
        self.assertEqual(len(paired([2.0] * 40, [1.0, "a"] * 20).values), 6)

    def test_our_failures_fail_the_row_and_end_it_after_three(self):
        outcome = paired([1.0, "x", "y", 1.0, "z", 1.0], [1.0] * 20)
        self.assertEqual((outcome.verdict, len(outcome.failures)), ("FAIL", 3))

    def test_fewer_pairs_than_an_interval_needs_judge_nothing(self):
        self.assertEqual(paired([2.0] * 5, [1.0] * 5, asked=5).verdict, "too few")
        self.assertEqual(paired([2.0] * 5, [1.0] * 5, asked=5, is_judged=False).verdict, "info")


class Loss(unittest.TestCase):
    """Loss at the same offered rate."""

    def lost(self, ours_sent, theirs_sent):
        """The outcome where both lose 1 % of so much of a rate of 1 Gbit/s."""
        def runs(sent):
            return [Measured(1.0, 1.0, loss=0.01, extra={"goodput_bps": 1e9, "sent_bps": 1e9 * sent})] * 20

        row = Row("a row", (Linerate, WORK), (Tool, WORK), 0, "loss", measure="loss")
        return paired(runs(ours_sent), runs(theirs_sent), row)

    def test_what_both_sent_is_told(self):
        outcome = self.lost(0.99, 0.9)
        self.assertEqual((outcome.verdict, outcome.values), ("pass", [0.0] * 6))
        self.assertEqual(outcome.notes[-1], "sent of that rate, medians: ours 0.990, theirs 0.900")

    def test_linerate_must_send_at_the_rate_asked_for(self):
        outcome = self.lost(0.97, 1.0)
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertIn("sent 0.970 of the rate asked for", outcome.failures[0])


class Missing(unittest.TestCase):
    """Rows of peers that aren't here."""

    def test_they_are_skipped_outcomes_for_each_placement_asked_for(self):
        outcomes = []
        options = SimpleNamespace(congestion=None, host_network=True, placement="split", pairs=6,
                                  seconds=0.5, memory_seconds=10, plot=None, is_judged=True)
        with (patch.object(command, "find_tools", return_value={Linerate: "linerate"}),
              patch.object(command, "print_header"), patch.object(command, "adopt_orphans"),
              patch.object(command, "end_orphans")):
            command.run_rows(options, [against(Netperf, "a row", WORK, 1.0, "bit/s")], outcomes)
        self.assertEqual([(outcome.placement, outcome.skipped) for outcome in outcomes],
                         [("split", "netperf not found")])
        self.assertIn("1 skipped", render_summary(outcomes, 0))

    def test_the_exit_code_is_one_where_a_row_failed_or_nothing_was_measured(self):
        def row(values, **more):
            return Outcome("a row", "same", 1.0, "bit/s", values=values, **more)

        skipped, passed, failed = row([], skipped="no root"), row([1.0]), row([0.5])
        few = row([2.0], least_values=6)
        for outcomes, code in (([skipped, passed], 0), ([passed, few], 0), ([passed, failed], 1),
                               ([row([0.5], is_judged=False)], 0)):
            self.assertEqual(command.exit_code(outcomes), code)
        for outcomes in ([], [skipped], [skipped, few]):
            with patch("sys.stderr"):
                self.assertEqual(command.exit_code(outcomes), 1)
