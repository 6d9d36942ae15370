"""Every peer's output, as captured, and what is read from it."""

import re
import unittest
from pathlib import Path

from ..process import RunFailed
from ..tools.iperf import parse_iperf2, parse_iperf3
from ..tools.neper import parse_neper
from ..tools.netperf import parse_netperf
from ..tools import Work
from ..tools.others import parse_ethr, parse_nuttcp
from ..tools.quic_peers import parse_quinn
from ..tools.sockperf import parse_sockperf


def captured(name):
    """A peer's output, from the directory beside this file."""
    return (Path(__file__).parent / "captured" / name).read_text(encoding="utf-8")


class Streams(unittest.TestCase):
    """Bit/s, or packets/s, and gigabytes."""

    def test_iperf3_counts_received_datagrams_and_their_loss(self):
        measured = parse_iperf3(captured("iperf3_udp.json"), "udp_stream")
        self.assertAlmostEqual(measured.figure, (3791964 - 7222) / 1.001509)
        self.assertAlmostEqual(measured.loss, 7222 / 3791964)
        self.assertAlmostEqual(measured.extra["goodput_bps"], measured.figure * 1400 * 8)
        self.assertEqual(measured.extra["sent_bps"], 42467738741.0)

    def test_iperf3_that_reports_an_error_is_a_failed_run(self):
        with self.assertRaisesRegex(RunFailed, "the server is busy"):
            parse_iperf3('{"error": "the server is busy"}', "tcp_stream")

    def test_iperf2_is_read_from_the_sum_of_its_server(self):
        measured = parse_iperf2(captured("iperf2_8_flows.txt"), 8)
        self.assertEqual(measured.figure, 44739455534)
        self.assertAlmostEqual(measured.units, 2.818965984)

    def test_iperf2_that_lost_a_flow_is_a_failed_run(self):
        text = re.sub(r"^\[  4\] 0\.0.*\n", "", captured("iperf2_8_flows.txt"), flags=re.M)
        with self.assertRaisesRegex(RunFailed, "7 of 8 flows"):
            parse_iperf2(text, 8)

    def test_netperf_is_scaled_to_what_arrived(self):
        text = captured("netperf_stream.txt")
        self.assertAlmostEqual(parse_netperf(text, True).figure, 33953.75e6)
        half = text.replace("REMOTE_BYTES_RECVD=4245028864", "REMOTE_BYTES_RECVD=2122514432")
        self.assertAlmostEqual(parse_netperf(half, True).figure, 33953.75e6 / 2)

    def test_neper_counts_at_the_server(self):
        measured = parse_neper(captured("neper_stream_server.txt"), True)
        self.assertEqual(measured.figure, 36280391024)
        self.assertAlmostEqual(measured.units, 36280391024 * 1.009828706 / 8e9, places=6)

    def test_quinn_counts_the_streams_of_one_direction(self):
        down = Work("quic_stream", None, down=True)
        measured = parse_quinn(captured("quinn_down.json"), down)
        self.assertAlmostEqual(measured.figure, 7617970180.941205, delta=1)
        with self.assertRaisesRegex(RunFailed, "no bytes"):
            parse_quinn(captured("quinn_down.json"), Work("quic_stream", None))

    def test_nuttcp_gives_the_rate_of_its_receiver(self):
        measured = parse_nuttcp(captured("nuttcp.txt"))
        self.assertAlmostEqual(measured.figure, 16403.2123e6)
        self.assertAlmostEqual(measured.units, 1954.375 * 1048576 / 1e9)

    def test_nuttcp_with_fewer_flows_than_asked_is_a_failed_run(self):
        with self.assertRaisesRegex(RunFailed, "more flows"):
            parse_nuttcp("nstream = 1000 > MAXSTREAM, set to 128\n" + captured("nuttcp.txt"))

    def test_ethr_is_the_mean_of_its_seconds(self):
        self.assertAlmostEqual(parse_ethr(captured("ethr_1_flow.txt"), 1).figure, 33.9e9)
        self.assertAlmostEqual(parse_ethr(captured("ethr_8_flows.txt"), 8).figure, 55.7e9)


class Transactions(unittest.TestCase):
    """Transactions a second, and how many."""

    def test_netperf(self):
        self.assertAlmostEqual(parse_netperf(captured("netperf_crr.txt"), False).figure, 11256.25)

    def test_neper_counts_at_the_client(self):
        measured = parse_neper(captured("neper_rr_client.txt"), False)
        self.assertEqual((measured.figure, measured.units), (17302.07, 17304))

    def test_sockperf_counts_answers_of_its_valid_time(self):
        measured = parse_sockperf(captured("sockperf_udp.txt"))
        self.assertAlmostEqual(measured.figure, 84887 / 0.55)
        self.assertEqual(measured.units, 84887)


class Empty(unittest.TestCase):
    """A tool that ended well and printed nothing."""

    def test_no_output_is_a_failed_run(self):
        for parse in (lambda: parse_iperf2("", 1), lambda: parse_netperf("", True),
                      lambda: parse_neper("", True), lambda: parse_neper("", False),
                      lambda: parse_nuttcp(""), lambda: parse_ethr("", 1),
                      lambda: parse_sockperf("")):
            self.assertRaises(RunFailed, parse)
