"""What `--regressions` takes for a fall, and for noise."""

import unittest

from .. import regressions
from ..options import BUILDS, LEAST_SHARE
from ..outcome import FAIL, Outcome
from ..revision import dialect_of, paths_of
from ..rows import regression_rows

ROW = regression_rows()[0].name
REVISION = {"commit": "0123abcd", "day": "2026-11-01"}


def kept(*medians):
    """A document with a ratio of the first row from each of some machines."""
    return {"regressions": [{"row": ROW, "build": "debug", "machine": str(mark), "median": median}
                            for mark, median in enumerate(medians)]}


def attempts(row, medians):
    """The outcome of attempts that come to these medians, and how many were made."""
    left = list(medians)
    outcome = regressions.attempted(
        row, lambda: Outcome(row.name, "split", row.bar, row.figure, values=[left.pop(0)] * 6, least_values=6))
    return outcome, len(medians) - len(left)


class Regressions(unittest.TestCase):
    """Rows beside what is on record."""

    def test_the_bar_is_a_share_of_the_least_ratio_on_record(self):
        rows = regressions.judged_rows(kept(1.0, 0.8), "debug")
        self.assertAlmostEqual(rows[0].bar, LEAST_SHARE * 0.8)
        self.assertTrue(all(row.bar is None for row in rows[1:]))
        self.assertTrue(all(row.bar is None for row in regressions.judged_rows(kept(1.0), "release")))

    def test_a_row_without_a_ratio_on_record_fails(self):
        outcome, made = attempts(regressions.judged_rows(kept(), "debug")[0], [1.0])
        self.assertEqual((outcome.verdict, made), (FAIL, 1))

    def test_a_fall_to_two_fifths_fails_and_one_low_attempt_does_not(self):
        row = regressions.judged_rows(kept(0.978), "debug")[0]
        fallen, made = attempts(row, [0.4, 0.41, 0.39])
        self.assertEqual((fallen.verdict, made), (FAIL, 3))
        noisy, made = attempts(row, [0.5, 0.9])
        self.assertEqual((noisy.verdict, made), ("pass", 2))

    def test_a_new_ratio_takes_the_place_of_that_of_the_same_machine_and_build(self):
        document = kept(1.0)
        measured = [Outcome(ROW, "split", None, "bit/s", values=[0.9] * 6)]
        for build in BUILDS:
            document = regressions.merged(document, measured, "0", build, REVISION)
        self.assertEqual([(entry["build"], entry["median"]) for entry in document["regressions"]],
                         [("debug", 0.9), ("release", 0.9)])

    def test_a_row_is_of_its_own_tool_and_of_the_engine(self):
        self.assertIsNone(dialect_of("tcp stream / iperf3"))
        self.assertEqual(dialect_of("our iperf3 client -P 1 / iperf3"), "iperf3")
        self.assertEqual(dialect_of("our netserver TCP_RR / netperf"), "netperf")
        self.assertIn("crates/engine/src", paths_of("tcp stream / iperf3"))
        self.assertIn(":(exclude)crates/engine/src/iperf3", paths_of("tcp stream / iperf3"))
        self.assertNotIn(":(exclude)crates/engine/src/iperf3", paths_of("our iperf3 -u / iperf3"))
        self.assertIn("crates/wire/src/perf", paths_of("our secnetperf up / secnetperf"))
