"""The C loops: what is read from their lines, and what they count."""

import json
import shutil
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace

from ..placement import Placement
from ..rows import all_rows
from ..tools import BareLoop, BareStream, Measured, Work

BULK = Work("tcp_stream", 128 * 1024)
SOURCE = Path(__file__).resolve().parents[2] / "baseline"


def said(**fields):
    """A child that has printed one line."""
    return SimpleNamespace(output=lambda: json.dumps(fields) + "\n")


class Lines(unittest.TestCase):
    """A Measured from both ends' lines."""

    def test_a_rate_of_datagrams_is_of_those_in_its_time(self):
        tool = BareLoop("/b")
        tool.server = said(datagrams=1000, bytes=64_000, timed_datagrams=900, timed_bytes=57_600,
                           elapsed_s=0.5)
        measured = tool.read_result(Work("udp_stream", 64), said(datagrams=2000))
        self.assertEqual((measured.figure, measured.loss, measured.units), (1800, 0.5, 64_000 / 1e9))
        self.assertEqual(measured.extra["goodput_bps"], 57_600 * 8 / 0.5)


class FakeStream(BareStream):
    """No process: the figure of a run is its mode's."""

    def run(self, work):
        return Measured({"single": 2.0, "ask": 3.0}[self.profile], 1.0)


class Modes(unittest.TestCase):
    """Which receiver bulk TCP is compared with."""

    def test_the_better_one_is_taken_where_each_end_has_a_processor(self):
        tool = FakeStream("/b")
        tool.start_server(Placement("split", 0, 1), BULK)
        self.assertEqual(tool.options(BULK)[-2:], ["--mode", "ask"])
        self.assertIn("C loop mode, medians of up to 3 runs: single 2, ask 3", tool.notes[0])

    def test_it_sleeps_where_both_ends_share_one(self):
        tool = FakeStream("/b")
        tool.start_server(Placement("same", 0, 0), BULK)
        self.assertEqual((tool.options(BULK)[-2:], tool.notes), (["--mode", "single"], []))

    def test_the_rows_of_bulk_tcp_have_it(self):
        peers = {row.name: row.theirs[0] for row in all_rows()}
        for name in ("tcp stream / C loop", "tcp stream veth / C loop"):
            self.assertIs(peers[name], BareStream)


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Programs(unittest.TestCase):
    """The loops themselves, for a moment."""

    def test_both_receivers_of_bulk_tcp_get_bytes(self):
        for mode in ("single", "ask"):
            measured, received = self.run_loop("tcp_stream", size=128 * 1024, mode=mode)
            self.assertGreater(received["bytes"], 1 << 20)
            self.assertEqual(measured.units, received["bytes"] / 1e9)

    def run_loop(self, kind, **more):
        """Both lines of a loop that was compiled for the test."""
        work = Work(kind, more.pop("size"), seconds=0.2, **more)
        warnings.simplefilter("ignore", ResourceWarning)  # the children's output files
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["cc", "-O2", "-o", f"{directory}/{kind}", SOURCE / f"{kind}.c"], check=True,
                           timeout=60)
            tool = BareStream(directory) if kind == "tcp_stream" else BareLoop(directory)
            tool.profile = work.mode
            try:
                tool.start_server(Placement("free", None, None), work)
                measured = tool.run(work)
                return measured, json.loads(tool.server.output().splitlines()[-1])
            finally:
                tool.stop()

    def test_datagrams_after_the_last_reading_of_the_clock_are_not_in_the_rate(self):
        measured, received = self.run_loop("udp_stream", size=64, mode="single")
        self.assertEqual(received["datagrams"], received["calls"])
        self.assertEqual(received["timed_datagrams"], received["calls"] // 256 * 256)
        self.assertEqual(received["timed_bytes"], received["timed_datagrams"] * 64)
        self.assertGreater(measured.figure, 0)
