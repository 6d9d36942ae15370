"""What makes a run of netperf right."""

import unittest

from compatibility import netperf
from compatibility.case import Case

TABLE = """MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET : demo
Recv   Send    Send
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    {elapsed}    {rate}
"""


def table(elapsed="1.00", rate="10650.25"):
    """What a test printed."""
    return TABLE.format(elapsed=elapsed, rate=rate)


class Lines(unittest.TestCase):
    """Judging what is printed."""

    def test_figures_may_differ(self):
        self.assertIsNone(netperf.judge_lines(table(), table("12.01", "   9.5")))

    def test_a_missing_line_is_wrong(self):
        wrong = netperf.judge_lines(table().replace("Recv", "Sent"), table())
        self.assertEqual(wrong, "does not print: Recv Send Send")

    def test_a_missing_column_is_wrong(self):
        self.assertIn("does not print", netperf.judge_lines(table(rate=""), table()))

    def test_a_further_line_is_wrong(self):
        self.assertEqual(netperf.judge_lines(table() + "more\n", table()), "only ours prints: more")

    def test_another_order_is_wrong(self):
        self.assertIn("order", netperf.judge_lines("A=1\nB=2\n", "B=1\nA=2\n"))

    def test_a_histogram_is_for_builds_that_have_it(self):
        histogram = "\nHistogram of request/response times\nUNIT_USEC     :    0\nHIST_TOTAL:      5\n"
        ours = table().replace(" : demo", " : histogram : demo") + histogram
        self.assertIsNone(netperf.judge_lines(ours, table()))


class Bytes(unittest.TestCase):
    """Judging counts of both ends."""

    def judged(self, client, sent, arrived):
        return netperf.judge_bytes(Case(client), f"LOCAL_BYTES_SENT={sent}\nREMOTE_BYTES_RECVD={arrived}\n")

    def test_both_ends_count_the_same(self):
        self.assertIsNone(self.judged("-t TCP_STREAM", 5, 5))
        self.assertIn("5 bytes were sent and 4 arrived", self.judged("-t TCP_STREAM", 5, 4))

    def test_nothing_is_wrong(self):
        self.assertIn("0 bytes", self.judged("-t TCP_STREAM -l -1000000", 0, 0))

    def test_a_server_that_has_enough_leaves_the_rest(self):
        self.assertIsNone(self.judged("-t TCP_STREAM -l -1000000", 1_015_808, 1_002_496))

    def test_datagrams_get_lost(self):
        self.assertIsNone(self.judged("-t UDP_STREAM", 5, 4))


class Cases(unittest.TestCase):
    """The table of cases."""

    def test_flags_of_a_test_are_told_apart(self):
        flags = netperf.flags_of("-P 0 -t TCP_RR -l -100 -- -r 1 -k X")
        self.assertEqual(flags, ("-P", "-t", "-l", "--:-r", "--:-k"))


if __name__ == "__main__":
    unittest.main()
