"""What makes a run of flent right."""

import json
import unittest

from compatibility import flent


def data(values, failed=0, **facts):
    """A data file of one series."""
    return json.dumps({"results": {"TCP upload": values}, "metadata": {
        "FAILED_RUNNERS": failed, "SERIES_META": {"TCP upload": facts}}})


class Data(unittest.TestCase):
    """Judging data files."""

    def test_values_may_differ(self):
        theirs = data([9.0, 8.0, 7.0], MEAN_VALUE=8)
        self.assertIsNone(flent.judge_data(data([None, 1.0, 2.0, 3.0], MEAN_VALUE=2, MORE=1), theirs))

    def test_a_series_without_values_is_wrong(self):
        self.assertIn("hardly a value", flent.judge_data(data([None, None, 0.0, 1.0]), None))

    def test_a_runner_that_failed_is_wrong(self):
        self.assertIn("runners failed", flent.judge_data(data([1.0, 2.0, 3.0], failed=1), None))

    def test_a_fact_that_only_the_original_has_is_missed(self):
        ours, theirs = data([1.0, 2.0, 3.0]), data([1.0, 2.0, 3.0], TCP_MSS=1448)
        self.assertEqual(flent.judge_data(ours, theirs), "TCP upload: without TCP_MSS")

    def test_what_flent_says_of_a_netperf_that_failed_is_wrong(self):
        self.assertIsNone(flent.judge_words("Starting Flent 2.3.0\n"))
        self.assertIn("non-zero", flent.judge_words("WARNING: Program exited non-zero (1).\n"))


if __name__ == "__main__":
    unittest.main()
