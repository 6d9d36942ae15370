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
from ..tools import BareLoop, Work

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


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Programs(unittest.TestCase):
    """The loops themselves, for a moment."""

    def run_loop(self, kind, **more):
        """Both lines of a loop that was compiled for the test."""
        work = Work(kind, more.pop("size"), seconds=0.2, **more)
        warnings.simplefilter("ignore", ResourceWarning)  # the children's output files
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["cc", "-O2", "-o", f"{directory}/{kind}", SOURCE / f"{kind}.c"], check=True,
                           timeout=60)
            tool = BareLoop(directory)
            try:
                tool.start_server(Placement("free", None, None), work)
                measured = tool.run(work)
                return measured, json.loads(tool.server.output().splitlines()[-1])
            finally:
                tool.stop()

    def test_datagrams_after_the_last_reading_of_the_clock_are_not_in_the_rate(self):
        measured, received = self.run_loop("udp_stream", size=64, mode="batch")
        self.assertLessEqual(received["timed_datagrams"], received["datagrams"])
        self.assertGreaterEqual(received["timed_datagrams"], received["calls"] // 256 * 256)
        self.assertEqual(received["timed_bytes"], received["timed_datagrams"] * 64)
        self.assertGreater(measured.figure, 0)
