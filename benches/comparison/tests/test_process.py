"""Processes: none is waited for without end, none is left."""

import time
import unittest

from ..process import Child, RunFailed, free_port


class Children(unittest.TestCase):
    """What is started is ended."""

    def child(self, *argv):
        """A child whose output files are closed with the test."""
        child = Child(argv)
        self.addCleanup(child.out.close)
        self.addCleanup(child.err.close)
        return child

    def test_a_child_that_does_not_end_in_time_is_ended(self):
        child = self.child("sleep", "1000")
        with self.assertRaisesRegex(RunFailed, "sleep did not end"):
            child.wait(0.05)
        self.assertIsNotNone(child.code)

    def test_what_a_child_leaves_behind_ends_with_it(self):
        child = self.child("sh", "-c", "sleep 1000 & echo $!")
        self.assertEqual(child.wait(5.0), 0)
        deadline = time.monotonic() + 5.0
        while _runs(int(child.output())) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(_runs(int(child.output())))

    def test_a_server_that_ends_instead_of_listening_fails_at_once(self):
        began = time.monotonic()
        with self.assertRaisesRegex(RunFailed, "no such port"):
            child = self.child("sh", "-c", "echo no such port >&2; exit 1")
            child.wait_for_port(free_port())
        self.assertLess(time.monotonic() - began, 9.0)


def _runs(pid):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
