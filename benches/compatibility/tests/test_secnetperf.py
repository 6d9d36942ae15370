"""What makes a run of secnetperf right."""

import unittest

from compatibility import secnetperf
from compatibility.case import Case, Ended, Run


def run(client, code=0, server=""):
    """A run that printed this."""
    return Run(Ended(code, client, ""), Ended(0, server, ""))


class Lines(unittest.TestCase):
    """Judging what is printed."""

    def test_figures_may_differ_and_counts_may_not(self):
        judge = secnetperf.judge_lines
        self.assertIsNone(judge("Result: Upload 17 kbps.\n", "Result: Upload 2 kbps.\n"))
        self.assertIn("does not print", judge("Completed 2 streams!\n", "Completed 3 streams!\n"))
        self.assertIsNone(judge("Completed 2 streams!\n", "Completed 3 streams!\n", lasts=True))

    def test_percentiles_keep_their_names(self):
        wrong = secnetperf.judge_lines("99th: 5, Max: 7\n", "99.9th: 5, Max: 7\n")
        self.assertIn("does not print", wrong)

    def test_a_figure_that_we_lack_is_no_fault_and_another_is(self):
        theirs = "  RTT                       5 us\n  RecvDroppedPackets        0\n"
        self.assertIsNone(secnetperf.judge_lines("  RTT                       7 us\n", theirs))
        self.assertIn("RTT", secnetperf.judge_lines("", theirs))


class Runs(unittest.TestCase):
    """Judging how programs ended."""

    def judged(self, ours, reference, words="-up:1000"):
        case = Case(words)
        return secnetperf.Secnetperf.judge(None, case, ours, reference)

    def test_another_exit_code_is_wrong(self):
        self.assertIn("111 and not 0", self.judged(run("", 111), run("")))

    def test_what_an_original_did_that_hung_is_no_measure(self):
        self.assertIsNone(self.judged(run("Completed 1 streams!"), run("", None)))
        self.assertIn("exit code", self.judged(run("", 5), run("", None)))

    def test_what_a_server_printed_counts(self):
        self.assertIn("TLS", self.judged(run(""), run("", server="TLS\n")))


if __name__ == "__main__":
    unittest.main()
