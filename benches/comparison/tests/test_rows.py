"""How rows are run: what goes wrong in one is its own failure, whoever's output made it so."""

import unittest
from types import SimpleNamespace
from unittest.mock import patch

from .. import pairs
from ..command import outcome_of
from ..placement import Placement
from ..rows import Row
from ..tools import Linerate, Work

PLACE = Placement("free", None, None)
WORK = Work("tcp_stream", 1, seconds=0.5)


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
            outcome = pairs.run_row(alone("first_byte"), PLACE, SimpleNamespace())
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertEqual(outcome.failures, ["KeyError('environment')"])

    def test_a_tool_that_cannot_be_asked_fails_the_row(self):
        context = SimpleNamespace(tool=lambda kind: kind("/nowhere/linerate"))
        outcome = outcome_of(alone("memory"), "free", context, None)
        self.assertEqual(outcome.verdict, "FAIL")
        self.assertIn("FileNotFoundError", outcome.failures[0])
