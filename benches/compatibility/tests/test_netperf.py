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

    def test_what_comes_now_and_then_is_no_difference(self):
        late = "catcher: timer popped with times_up != 0\n"
        self.assertIsNone(netperf.judge_lines(table(), late + table()))
        self.assertIn("only ours prints", netperf.judge_lines(late + table(), table()))
        interim = "Interim result: 12.34 10^6bits/s over 0.301 seconds ending at 1.234\n"
        self.assertIn("only ours prints", netperf.judge_lines(interim + table(), table()))
        self.assertIsNone(netperf.judge_lines(interim + table(), table(), over_link=True))

    def test_infinity_is_a_figure_of_the_originals_alone(self):
        self.assertIsNone(netperf.judge_lines(table(), table(rate="inf")))
        self.assertIn("does not print", netperf.judge_lines(table(rate="inf"), table()))

    def test_a_uuid_is_one_word(self):
        ours, theirs = "0c9b2a34-1234-4567-8901-123456789012\n", "bc63df32-e743-11f1-aa5f-07dec5125042\n"
        self.assertIsNone(netperf.judge_lines(ours, theirs))
        self.assertIn("does not print", netperf.judge_lines("text\n", theirs))

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


    def test_processors_may_be_measured_in_another_way(self):
        heads = "bytes  bytes   bytes    secs.    10^6bits/s  % {0}      % {0}      us/KB   us/KB\n"
        row = "16384  16384    1.00    10828.43   10.56  {0}  1.15  {0}  0.160 usec/KB\n"
        both = heads + row
        self.assertIsNone(netperf.judge_lines(both.format("R"), both.format("S")))
        self.assertIn("does not print", netperf.judge_lines(both.format("R"), both.format("?")))


class Bytes(unittest.TestCase):
    """Judging counts of both ends."""

    def judged(self, client, sent, arrived):
        return self.judged_both(client, (sent, arrived), (0, 0))

    def judged_both(self, client, up, down):
        return netperf.judge_bytes(Case(client), (
            f"LOCAL_BYTES_SENT={up[0]}\nREMOTE_BYTES_RECVD={up[1]}\n"
            f"REMOTE_BYTES_SENT={down[0]}\nLOCAL_BYTES_RECVD={down[1]}\nTHROUGHPUT=1.00\n"))

    def test_both_ends_count_the_same(self):
        self.assertIsNone(self.judged("-t TCP_STREAM", 5, 5))
        self.assertIn("5 bytes were sent and 4 arrived", self.judged("-t TCP_STREAM", 5, 4))

    def test_nothing_is_wrong(self):
        self.assertIn("0 bytes", self.judged("-t TCP_STREAM -l -1000000", 0, 0))

    def test_a_server_that_has_enough_leaves_the_rest(self):
        self.assertIsNone(self.judged("-t TCP_STREAM -l -1000000", 1_015_808, 1_002_496))

    def test_datagrams_get_lost(self):
        self.assertIsNone(self.judged("-t UDP_STREAM", 5, 4))
        self.assertIsNone(self.judged_both("-t omni -- -T udp -d recv", (0, 0), (5, 4)))

    def test_no_more_datagrams_arrive_than_were_sent(self):
        self.assertIn("4 bytes were sent and 5 arrived", self.judged("-t UDP_STREAM", 4, 5))
        self.assertIn("sent down", self.judged_both("-t omni -- -T udp -d recv", (0, 0), (4, 5)))
        self.assertIn("and 0 arrived", self.judged("-t UDP_STREAM", 4, 0))

    def test_only_open_transactions_may_be_missing(self):
        for client, open_bytes in (("-t TCP_RR -- -r 100,200", 100), ("-t TCP_RR -- -r 100 -b 3", 400)):
            right = self.judged_both(client, (9000, 9000 - open_bytes), (18000, 18000))
            self.assertIsNone(right, client)
            wrong = self.judged_both(client, (9000, 8999 - open_bytes), (18000, 18000))
            self.assertIn("bytes were sent and", wrong, client)
        self.assertIsNone(self.judged_both("-t UDP_RR", (9, 5), (5, 3)))
        self.assertIn("sent down", self.judged_both("-t UDP_RR", (9, 5), (5, 7)))

    def test_without_a_control_connection_nothing_is_known(self):
        self.assertIsNone(self.judged("-N -t TCP_STREAM", 5, -1))
        self.assertIn("arrived", self.judged("-t TCP_STREAM -- -n -N", 5, 4))


class RoundTrips(unittest.TestCase):
    """Judging the latency that a rate comes to."""

    def judged(self, client, latency_us, rate):
        return netperf.judge_round_trip(Case(client), f"RT_LATENCY={latency_us}\nTHROUGHPUT={rate}\n")

    def test_the_pace_is_no_round_trip(self):
        self.assertIsNone(self.judged("-t TCP_RR -l 1 -b 1 -w 10 -- -k X", 55.2, 99.9))
        self.assertIn("pace", self.judged("-t TCP_RR -l 1 -b 1 -w 10 -- -k X", 10005.0, 99.9))

    def test_connections_come_one_at_a_time(self):
        self.assertIsNone(self.judged("-t TCP_CRR -- -b 4", 100.0, 10000))
        self.assertIn("one at a time", self.judged("-t TCP_CRR -- -b 4", 500.0, 10000))


class Cases(unittest.TestCase):
    """The table of cases."""

    def test_flags_of_a_test_are_told_apart(self):
        flags = netperf.flags_of("-P 0 -t TCP_RR -l -100 -- -r 1 -k X")
        self.assertEqual(flags, ("-P", "-t", "-l", "--:-r", "--:-k"))


if __name__ == "__main__":
    unittest.main()
