"""Rows of the proxy: its command line, what it costs, and where its rows stand."""

import unittest
from unittest.mock import Mock, patch

from .. import figures, pairs
from ..placement import Placement
from ..rows import Row, all_rows
from ..tools import Linerate, Measured, OwnSecnetperf, ProxiedQuic, ProxiedTcp, Work
from ..tools import proxied
from .test_rows import PLACE, WORK, OurScripted, context_of

BEGINNING = "proxy on 127.0.0.1:40123, QUIC, to 127.0.0.1:5300\n"


class FakeProxy:
    """No process: it listens at once, and has used another half second whenever it is asked."""

    started = []

    def __init__(self, argv, _cpu, _environment):
        self.started.append([str(word) for word in argv])
        self.cpu_s = 0.0

    def wait_for_line(self, wanted):
        return wanted("another line\n") or wanted(BEGINNING)

    def cpu_so_far_s(self):
        self.cpu_s += 0.5
        return self.cpu_s

    def end(self):
        pass


def launched(tool, server, **found):
    """A tool whose server listens where `found` says."""
    tool.placement = Placement("free", None, None)
    vars(tool).update(found)
    with patch.object(proxied, "Child", FakeProxy), patch.object(server, "launch", Mock()):
        tool.launch(Work(tool.kinds[0], None))
    return tool


class Commands(unittest.TestCase):
    """What the proxy and the clients are told."""

    def test_clients_of_secnetperf_come_through_a_proxy_of_quic(self):
        tool = launched(ProxiedQuic("/o/linerate"), OwnSecnetperf, port=5300, profile="lowlat")
        self.assertEqual(" ".join(FakeProxy.started[-1]),
                         "/o/linerate proxy 127.0.0.1:5300 --bind 127.0.0.1 --port 0 --quiet --alpn perf")
        argv = [str(word) for word in tool.client_argv(Work("quic_stream", None))]
        self.assertEqual(argv[:2], ["/o/linerate", "secnetperf"])
        self.assertIn("-port:40123", argv)

    def test_clients_of_the_native_protocol_come_through_a_proxy_of_tcp(self):
        tool = launched(ProxiedTcp("/o/linerate"), Linerate, address="127.0.0.1:5300", fingerprint="00")
        self.assertEqual(" ".join(FakeProxy.started[-1]),
                         "/o/linerate proxy 127.0.0.1:5300 --bind 127.0.0.1 --port 0 --quiet --tcp")
        argv = [str(word) for word in tool.client_argv(Work("tcp_stream", 1))]
        self.assertEqual(argv[:3], ["/o/linerate", "stream", "127.0.0.1:40123"])

    def test_the_proxy_costs_what_it_used_during_the_run(self):
        tool = launched(ProxiedTcp("/o/linerate"), Linerate, address="127.0.0.1:5300")
        with patch.object(Linerate, "run", Mock(return_value=Measured(1.0, 2.0, cpu_s=3.0))):
            measured = tool.run(WORK)
        self.assertEqual((measured.extra["proxy_cpu_s"], measured.cpu_s), (0.5, 3.5))


class Values(unittest.TestCase):
    """What is judged."""

    def value(self, measure, ours, theirs):
        """The median of a row of this measure."""
        class Direct(OurScripted):
            pass

        row = Row("a row", (Linerate, WORK), (Direct, WORK), 1.0, "us", measure)
        tools = {Linerate: OurScripted([ours] * 6), Direct: Direct([theirs] * 6)}
        return pairs.run_row(row, PLACE, context_of(tools)).median

    def test_latency_added_is_that_beyond_a_direct_request(self):
        self.assertAlmostEqual(self.value("added", Measured(90, 1.0), Measured(50, 1.0)), 0.8)

    def test_cpu_of_the_proxy_is_held_against_both_ends(self):
        ours = Measured(1.0, 2.0, cpu_s=9.0, extra={"proxy_cpu_s": 3.0})
        self.assertAlmostEqual(self.value("relay_cpu", ours, Measured(1.0, 4.0, cpu_s=8.0)), 0.75)

    def test_each_row_of_the_proxy_stands_in_its_section(self):
        rows = [row.name for row in all_rows() if ProxiedQuic.name in row.name or ProxiedTcp.name in row.name]
        self.assertEqual(len(rows), 14)
        self.assertEqual({figures.section_of(name) for name in rows}, {figures.PROXY})
