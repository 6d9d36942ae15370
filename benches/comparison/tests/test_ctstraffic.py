"""ctsTraffic at both ends: its command lines, what is read from its documents, and rows of linerate alone."""

import json
import unittest
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

from .. import own
from ..outcome import Outcome
from ..placement import Placement
from ..process import RunFailed
from ..rows import all_rows
from ..rows.row import alone
from ..tools import CtsTrafficOneWay, Linerate, Measured, OurCtsTraffic, Work
from ..tools.ctstraffic import lateness_us, short_result

PUSH = Work("tcp_stream", 65_536, seconds=0.5, flows=8, verify=True)
STREAM = Work("udp_media", 1400, seconds=20.0)


def words_of(work, tool=OurCtsTraffic):
    """A client's command line against a server on port 4433."""
    made = tool("linerate")
    made.placement, made.port = Placement("same", 0, 0), 4433
    return [str(word) for word in made.client_argv(work)]


def printed(**fields):
    """A process that has printed this document."""
    document = {"network_errors": 0, "data_errors": 0, "elapsed_us": 500_000, **fields}
    return SimpleNamespace(output=lambda: json.dumps(document))


class CtsTraffic(unittest.TestCase):
    """What is asked of it and what it says."""

    def test_a_transfer_has_a_time_and_a_stream_has_a_length(self):
        push = words_of(PUSH)
        for word in ("-pattern:push", "-buffer:65536", "-verify:data", "-connections:8", "-timelimit:500"):
            self.assertIn(word, push)
        self.assertIn("-pattern:pull", words_of(replace(PUSH, down=True)))
        self.assertIn("-pattern:duplex", words_of(replace(PUSH, both=True)))
        stream = words_of(replace(STREAM, flows=1000))
        for word in ("-protocol:udp", "-bitspersecond:2000000", "-framerate:60", "-streamlength:20",
                     "-iterations:1", "-connections:1000"):
            self.assertIn(word, stream)

    def test_short_connections_are_reset_and_counted_by_the_summary(self):
        short = words_of(Work("tcp_short", 64, flows=8))
        for word in ("-transfer:64", "-connections:8", "-shutdown:rude", "-consoleverbosity:0", "-timelimit:2000"):
            self.assertIn(word, short)
        self.assertNotIn("--json", short)
        summary = ("  SuccessfulConnections [900]   NetworkErrors [0]   ProtocolErrors [0]\n"
                   "  Total Bytes Recv : 1\n  Total Time : 3000 ms.\n")
        self.assertEqual(short_result(summary).figure, 300.0)
        with self.assertRaisesRegex(RunFailed, "5 connections failed"):
            short_result(summary.replace("NetworkErrors [0]", "NetworkErrors [5]"))

    def test_both_ends_receipts_are_the_figure(self):
        tool = OurCtsTraffic("linerate")
        tool.server = printed(received_bytes=1_000_000)
        measured = tool.read_result(PUSH, printed(received_bytes=250_000))
        self.assertEqual((measured.figure, measured.units), (20e6, 0.00125))

    def test_a_failed_connection_fails_the_run(self):
        tool = OurCtsTraffic("linerate")
        # The server's connections that the client's time ended have failed there.
        tool.server = printed(received_bytes=1, data_errors=1)
        self.assertEqual(tool.read_result(PUSH, printed(received_bytes=1)).units, 2e-9)
        wrong = printed(received_bytes=1, data_errors=1, connections=[{"result": "Succeeded"}, {"result": "x"}])
        with self.assertRaisesRegex(RunFailed, "connections failed: x$"):
            tool.read_result(PUSH, wrong)

    def test_one_way_is_the_mean_of_both(self):
        figures = iter([3.0, 5.0])
        with patch.object(OurCtsTraffic, "run", lambda self, work: Measured(next(figures), 1.0, cpu_s=0.5)):
            mean = CtsTrafficOneWay("linerate").run(replace(PUSH, both=True))
        self.assertEqual((mean.figure, mean.units, mean.cpu_s), (4.0, 2.0, 1.0))

    def test_frames_are_late_by_the_most_punctual_one(self):
        def row(number, late_us, per_s=10_000_000):
            ticks = (number / 60 + late_us / 1e6 + 77) * per_s
            return {"SequenceNumber": number, "SenderQpc": round(ticks), "SenderQpf": per_s}

        rows = [row(1, 50), row(2, 30), row(3, 430), {"SequenceNumber": 4, "SenderQpc": 0, "SenderQpf": 0}]
        self.assertEqual([round(late) for late in lateness_us(rows)], [0, 20, 400])
        with self.assertRaises(RunFailed):
            lateness_us(rows[3:])


class Alone(unittest.TestCase):
    """Rows of linerate by itself."""

    def outcome(self, measure, runs):
        """The outcome of a row whose runs are these: client's CPU seconds, both ends', dropped frames."""
        runs = iter(runs)

        class Scripted:
            """No process."""

            client_cpu_s = 0.0

            def start_server(self, place, work):
                pass

            def stop(self):
                pass

            def run(self, work):
                self.client_cpu_s, cpu_s, dropped = next(runs)
                return Measured(42.0, 1.0, cpu_s=cpu_s, extra={"dropped": dropped})

        row = alone("a row", STREAM, 0.6, "processors", measure)
        outcome = Outcome(row.name, "free", row.bar, row.figure)
        context = SimpleNamespace(tool=lambda kind: Scripted(), prepared=lambda work: work, pairs=6,
                                  progress=lambda outcome, done: None)
        getattr(own, f"run_{measure}")(row, None, context, outcome)
        return outcome

    def test_the_busier_end_counts(self):
        outcome = self.outcome("sides", [(4.0, 12.0, 0)] * 3 + [(10.0, 12.0, 0)] * 3)
        self.assertEqual(outcome.values, [0.4] * 3 + [0.5] * 3)
        self.assertEqual(outcome.verdict, "pass")
        self.assertIn("processors, medians: client 0.350, server 0.250", outcome.notes)

    def test_a_dropped_frame_fails_the_row(self):
        outcome = self.outcome("sides", [(4.0, 12.0, 0), (4.0, 12.0, 3)] + [(4.0, 12.0, 0)] * 8)
        self.assertEqual((outcome.verdict, len(outcome.values)), ("FAIL", 6))
        self.assertIn("3 frames were dropped", outcome.failures[0])

    def test_a_percentile_is_held_against_its_bar(self):
        outcome = self.outcome("percentile", [(1.0, 2.0, 0)] * 6)
        self.assertEqual((outcome.values, outcome.verdict), ([42.0] * 6, "FAIL"))

    def test_every_row_has_a_runner(self):
        measures = {row.measure for row in all_rows() if row.theirs[0] is None}
        self.assertLessEqual(measures, {"memory", "first_byte", "sides", "percentile", "relay_cost", "slow_receiver"})
        self.assertTrue(all(row.ours[0] in (Linerate, OurCtsTraffic) for row in all_rows()
                            if row.measure in ("sides", "percentile")))
