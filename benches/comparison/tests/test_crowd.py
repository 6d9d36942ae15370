"""The memory of many tests at once: what is counted, and that clients that stand still are ended."""

import io
import os
import signal
import time
import unittest
from types import SimpleNamespace
from unittest.mock import patch

from .. import crowd
from ..outcome import Outcome
from ..process import Child, RunFailed
from ..tools import Netperf, OurNetserver, Work

SOCKETS = {
    "/proc/net/sockstat": "sockets: used 34\nTCP: inuse 4 orphan 0 tw 131072 alloc 7 mem 130\nUDP: inuse 9 mem 0\n",
    "/proc/net/sockstat6": "TCP6: inuse 3\nUDP6: inuse 5\n",
}


class Crowd(unittest.TestCase):
    """A thousand tests, without them."""

    def child(self, *argv):
        """A child that is ended with the test."""
        child = Child(argv)
        for end in (child.kill, child.out.close, child.err.close):
            self.addCleanup(end)
        return child

    def test_sockets_in_time_wait_are_not_counted(self):
        with patch.object(crowd, "open", lambda path, **_: io.StringIO(SOCKETS[path]), create=True):
            self.assertEqual(crowd._sockets(), 7)

    def test_a_client_that_ends_instead_of_beginning_is_a_failed_run(self):
        child = self.child("sh", "-c", "echo no such host >&2; exit 1")
        with self.assertRaisesRegex(RunFailed, "ended with 1: no such host"):
            crowd._await_test(child)

    def test_a_client_that_waits_again_and_again_has_begun(self):
        crowd._await_test(self.child("sh", "-c", "while :; do sleep 0.001; done"))

    def test_memory_is_that_of_the_server_and_of_what_it_forked(self):
        alone = self.child("sleep", "1000")
        forked = self.child("sh", "-c", "sleep 1000 & echo begun; wait")
        forked.wait_for_line(lambda line: line == "begun" or None)
        with open(f"/proc/{forked.pid}/task/{forked.pid}/children", encoding="ascii") as children:
            (child,) = children.read().split()
        self.assertGreater(crowd._memory_bytes(alone.pid), 0)
        self.assertGreater(crowd._memory_bytes(forked.pid), crowd._memory_bytes(int(child)))

    def test_a_client_that_stands_still_is_ended(self):
        child = self.child("sleep", "1000")
        os.kill(child.pid, signal.SIGSTOP)
        began = time.monotonic()
        child.kill()
        self.assertEqual(child.code, -signal.SIGKILL)
        self.assertLess(time.monotonic() - began, 2.0)

    def test_the_value_is_the_ratio_of_both_servers_memory(self):
        work = Work("tcp_rr", 1)
        row = SimpleNamespace(ours=(OurNetserver, work), theirs=(Netperf, work))
        outcome = Outcome("a row", "free", 1.0, "resident bytes", smaller_is_better=True)
        context = SimpleNamespace(tool=lambda kind: kind)
        totals = {OurNetserver: (51 << 20, 1 << 20, 0.5), Netperf: (102 << 20, 2 << 20, 0.25)}
        with patch.object(crowd, "_run", lambda tool, *_: totals[tool]):
            used_s = crowd.run_crowd(row, None, context, outcome)
        self.assertEqual((outcome.values, used_s), ([0.5] * crowd.RUNS, 0.75 * crowd.RUNS))
        self.assertEqual(outcome.verdict, "pass")
        self.assertIn("ours 1024 KiB without a test, 51.2 KiB more", outcome.notes[0])
