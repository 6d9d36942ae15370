"""secnetperf's output, the choice of its profile, and which end of a pair is whose."""

import unittest
from dataclasses import replace
from unittest.mock import Mock

from ..placement import Placement
from ..process import RunFailed
from ..tools import (Iperf3New, Linerate, Measured, OurIperf3Client, OurIperf3Server, OurNetperf,
                     OurNetperfClient, OurNetserver, OurSecnetperf, Secnetperf, Work)
from ..tools.secnetperf import parse_secnetperf
from .test_parsers import captured

DOWN = Work("quic_stream", None, down=True, flows=10)
REQUESTS = Work("quic_rr", 512, response=4000, seconds=0.5, flows=100, streams=100)
PLACE = Placement("same", 0, 0)


def argv_of(tool, work):
    """A client's command line against a server on port 4433."""
    tool.placement, tool.port, tool.profile = PLACE, 4433, "maxtput"
    return [str(word) for word in tool.client_argv(work)]


class FakeSecnetperf(Secnetperf):
    """No process: the figure of a run is its profile's."""

    figures = {"lowlat": 2.0, "maxtput": 3.0}

    def launch(self, work):
        pass

    def run(self, work):
        figure = self.figures[self.profile]
        if figure is None:
            raise RunFailed("the client did not end in time")
        return Measured(figure, 1.0, cpu_s=0.25)


class Output(unittest.TestCase):
    """What is read from its lines."""

    def test_streams_are_all_bytes_over_the_longest_time(self):
        measured = parse_secnetperf(captured("secnetperf_down_10.txt"), DOWN)
        self.assertAlmostEqual(measured.units, 0.077348306)
        self.assertAlmostEqual(measured.figure, 77348306 * 8 / 0.407866)

    def test_a_stream_that_did_not_report_is_a_failed_run(self):
        text = captured("secnetperf_down_10.txt").partition("\n")[2]
        with self.assertRaisesRegex(RunFailed, "9 of 10 streams"):
            parse_secnetperf(text, DOWN)

    def test_streams_of_the_other_direction_are_not_counted(self):
        with self.assertRaisesRegex(RunFailed, "0 of 10 streams"):
            parse_secnetperf(captured("secnetperf_down_10.txt"), replace(DOWN, down=False))

    def test_requests_and_handshakes_are_told_apart(self):
        text = captured("secnetperf_rps.txt")
        measured = parse_secnetperf(text, REQUESTS)
        self.assertEqual((measured.figure, measured.units), (84213, 42106.5))
        self.assertEqual(parse_secnetperf(text, Work("quic_crr", None)).figure, 1)

    def test_a_percentile_of_the_latency_is_told_where_it_counts(self):
        text = captured("secnetperf_latency.txt")
        for percentile, latency_us in ((50, 926), (99, 2605)):
            measured = parse_secnetperf(text, replace(REQUESTS, percentile=percentile, seconds=1))
            self.assertEqual((measured.figure, measured.units), (latency_us, 98886))
        with self.assertRaisesRegex(RunFailed, "no 50th percentile"):
            parse_secnetperf(captured("secnetperf_rps.txt"), replace(REQUESTS, percentile=50))

    def test_no_output_is_a_failed_run(self):
        for work in (DOWN, REQUESTS):
            self.assertRaises(RunFailed, parse_secnetperf, "", work)


class Profiles(unittest.TestCase):
    """Which of its execution profiles a row has."""

    def chosen(self, work=DOWN, **figures):
        """A tool that has been made ready, where its profiles reach these figures."""
        tool = FakeSecnetperf("secnetperf")
        tool.figures = {**tool.figures, **figures}
        tool.start_server(PLACE, work)
        return tool

    def test_the_faster_one_is_taken_and_both_are_told(self):
        tool = self.chosen()
        self.assertEqual(tool.profile, "maxtput")
        self.assertIn("lowlat 2, maxtput 3", tool.notes[0])
        self.assertEqual(tool.prepared_cpu_s, 6 * 0.25)
        self.assertEqual(self.chosen(lowlat=4.0).profile, "lowlat")

    def test_one_that_fails_is_not_taken(self):
        tool = self.chosen(maxtput=None)
        self.assertEqual(tool.profile, "lowlat")
        self.assertIn("lowlat 2, maxtput failed", tool.notes[0])

    def test_less_latency_is_better(self):
        self.assertEqual(self.chosen(replace(REQUESTS, percentile=99)).profile, "lowlat")
        one_failed = self.chosen(replace(REQUESTS, percentile=99), lowlat=None)
        self.assertEqual(one_failed.profile, "maxtput")

    def test_a_server_started_anew_keeps_its_profile(self):
        tool = self.chosen()
        tool.start_server(PLACE, DOWN)
        self.assertEqual(len(tool.notes), 1)


class Commands(unittest.TestCase):
    """Whose program is which end, and what it is told."""

    def test_a_mixed_pair_has_one_end_of_each(self):
        client = OurIperf3Client("/p/iperf3", "/o/linerate")
        self.assertEqual(client.words("client"), ["/o/linerate", "iperf3"])
        self.assertEqual(client.words("server"), ["/p/iperf3"])
        server = OurIperf3Server("/p/iperf3", "/o/linerate")
        self.assertEqual(server.words("client"), ["/p/iperf3"])
        self.assertEqual(server.words("server"), ["/o/linerate", "iperf3"])
        self.assertEqual(client.parts(), (Iperf3New, Linerate))

    def test_our_netserver_is_no_process_a_client(self):
        ours = OurNetperf("/p/netperf", "/o/linerate")
        self.assertEqual(ours.words("server"), ["/o/linerate", "netserver"])

    def test_only_our_ends_spin(self):
        work = Work("tcp_rr", 1, spin=True)
        for tool, spinning in ((OurNetperf, {"client", "server"}), (OurNetperfClient, {"client"}),
                               (OurNetserver, {"server"})):
            ours = tool("/p/netperf", "/o/linerate")
            ours.spins = work.spin
            self.assertEqual({end for end in ("client", "server")
                              if "--busy-poll" in ours.words(end)}, spinning)

    def test_our_secnetperf_is_told_how_long_packets_may_be(self):
        ours = OurSecnetperf("/p/secnetperf", "/o/linerate")
        self.assertIn("--mtu-limit:1472", argv_of(ours, replace(DOWN, packet=1472)))
        self.assertNotIn("--mtu-limit:1472", argv_of(ours, DOWN))

    def test_both_pairs_are_told_the_same(self):
        work = replace(REQUESTS, clear=True)
        theirs = argv_of(Secnetperf("/p/secnetperf"), work)
        ours = argv_of(OurSecnetperf("/p/secnetperf", "/o/linerate"), work)
        self.assertEqual(ours[2:], theirs[1:])
        self.assertLessEqual({"-conns:1", "-streams:100", "-up:512", "-down:4000", "-encrypt:0",
                              "-runtime:500ms"}, set(theirs))

    def test_both_ends_of_secnetperf_poll_where_linerate_does(self):
        work = replace(REQUESTS, spin=True)
        tool = Secnetperf("/p/secnetperf")
        self.assertIn("-pollidle:1000000", argv_of(tool, work))
        self.assertNotIn("-pollidle:1000000", argv_of(tool, REQUESTS))

    def test_flows_that_share_a_connection_are_told_to_linerate(self):
        tool = Linerate("/o/linerate")
        tool.address, tool.fingerprint = "127.0.0.1:1", "00"
        argv = [str(word) for word in tool.client_argv(REQUESTS)]
        self.assertIn("--quic --request 512 --response 4000 --flows 100 --streams 100",
                      " ".join(argv))

    def test_only_linerate_is_told_how_long_packets_may_be(self):
        work = replace(DOWN, packet=1472)
        tool = Linerate("/o/linerate")
        tool.address, tool.fingerprint = "127.0.0.1:1", "00"
        argv = [str(word) for word in tool.client_argv(work)]
        self.assertIn("--mtu-limit 1472", " ".join(argv))
        self.assertNotIn("--mtu-limit", tool.client_argv(DOWN))
        secnetperf = Secnetperf("/p/secnetperf")
        self.assertEqual(argv_of(secnetperf, work), argv_of(secnetperf, DOWN))

    def test_latency_is_asked_for_where_it_counts(self):
        tool = Secnetperf("/p/secnetperf")
        self.assertIn("-plat:1", argv_of(tool, replace(REQUESTS, percentile=50)))
        self.assertNotIn("-plat:1", argv_of(tool, REQUESTS))

    def test_sealed_frames_are_skipped_where_their_congestion_control_cant_be_had(self):
        tool = Secnetperf("/p/secnetperf")
        network = Mock(chooses_congestion=lambda: False)
        self.assertIn("congestion", tool.refusal(Work("framed_stream", None), network))
        self.assertIsNone(tool.refusal(DOWN, network))
