"""What a run is judged by, and how it is told."""

import unittest

from .. import report, system

DOCUMENT = {
    "status": {"outcome": "complete"},
    "summary": {"transactions": 3},
    "reports": [
        {"role": "client", "flows": [{"sent": {"bytes": 100}}, {"sent": {"bytes": 50}, "received": {"bytes": 7}}],
         "unlisted": {"up": {"flows": 1, "sent": {"bytes": 30}}}, "errors": {"reset": 1}},
        {"role": "server", "flows": [{"received": {"bytes": 180}}], "errors": {"reset": 1, "corrupt": 2}},
    ],
}


def run(**changes):
    """A run of 100,000 connections that held."""
    held = {"connections": 100_000, "outcome": "complete", "exit_code": 0, "message": "", "errors": {},
            "sockets_left": 0, "server_runs": True, "stopped": None, "peak_sockets": 200_003,
            "completed": 100_000, "moved_bytes": 100_000 << 16, "reached_s": 4.0, "ended_s": 40.0, "cpu_s": 9.0,
            "client_bytes": 100_000 * 1000, "server_bytes": 100_000 * 500, "client_most_bytes": 100_000 * 1001,
            "server_most_bytes": 100_000 * 501, "client_threads": 7, "server_threads": 8,
            "kernel_bytes": 200_000 * 3000, "available_bytes": 5 << 30, "failures": []}
    return {**held, **changes}


class Report(unittest.TestCase):
    """Figures and failures."""

    def failures(self, **changes):
        """Those of a run with these changes."""
        return report.failures(run(**changes), 1 << 16)

    def test_bytes_and_errors_of_a_document_are_added_up(self):
        counts = report.of_document(DOCUMENT, 60)
        self.assertEqual((counts["moved_bytes"], counts["completed"], counts["outcome"]), (187, 3, "complete"))
        self.assertEqual(counts["errors"], {"reset": 2, "corrupt": 2})

    def test_a_run_that_held_all_has_no_failure(self):
        self.assertEqual(self.failures(), [])

    def test_each_thing_that_was_not_held_is_named(self):
        for changes, word in (({"errors": {"timed_out": 4}}, "4 timed_out"),
                              ({"peak_sockets": 199_999}, "199999 of 200000 sockets"),
                              ({"completed": 99_999}, "99999 of 100000 connections"),
                              ({"moved_bytes": 5}, "bytes were moved"),
                              ({"sockets_left": 2}, "left over"),
                              ({"server_runs": False}, "outlive"),
                              ({"outcome": "failed", "message": "why"}, "failed with exit code 0: why"),
                              ({"client_bytes": 100_000 * 1025}, "client had 1025 bytes")):
            (failure,) = self.failures(**changes)
            self.assertIn(word, failure)

    def test_memory_of_few_connections_is_not_judged(self):
        few = {"connections": 1000, "completed": 1000, "client_bytes": 13 << 20}
        self.assertEqual(self.failures(**few), [])

    def test_a_run_that_ended_for_lack_of_memory_says_so_and_is_held_to_its_errors_alone(self):
        stopped = {"stopped": "MemAvailable fell to 900 MiB", "outcome": "stopped", "completed": 5}
        self.assertEqual(self.failures(**stopped), [])
        self.assertIn("stopped early: MemAvailable", report.render_run(run(**stopped)))
        self.assertEqual(len(self.failures(**stopped, errors={"reset": 1})), 1)

    def test_a_run_is_told_by_connection_and_by_second(self):
        told = report.render_run(run())
        for part in ("200,003 TCP sockets", "25,000 connections/s", "1,638 MB/s", "client 1000 bytes",
                     "server 500", "3000 bytes a socket", "100,000 completed, 0 failed", "held"):
            self.assertIn(part, told)
        self.assertIn("| 100,000 | 200,003 | 1,000 | 500 | 3,000 | 25,000 | 1,638 |", report.render_table([run()]))

    def test_a_run_without_figures_has_its_reason_and_no_row(self):
        broken = {"connections": 10, "failures": ["no server"]}
        self.assertEqual(report.render_run(broken), "10 connections: FAILED: no server")
        self.assertEqual(len(report.render_table([broken]).splitlines()), 2)


class System(unittest.TestCase):
    """The kernel's texts."""

    def test_sockets_in_use_leave_time_wait_out(self):
        text = ("sockets: used 300\nTCP: inuse 42 orphan 1 tw 7 alloc 50 mem 3\nUDP: inuse 9 mem 1\n"
                "UDPLITE: inuse 0\n")
        self.assertEqual(system.sockets_in_use(text), 42)
        self.assertEqual(system.sockets_in_use("TCP6: inuse 5\nUDP6: inuse 9\n"), 5)
        self.assertEqual(system.sockets_in_use(""), 0)

    def test_memory_is_read_in_bytes(self):
        self.assertEqual(system.memory_bytes("MemFree: 9 kB\nMemAvailable:    1024 kB\n", "MemAvailable"), 1 << 20)
        self.assertEqual(system.memory_bytes("VmHWM:\t 20 kB\nVmRSS:\t 10 kB\n", "VmRSS"), 10 << 10)
        self.assertEqual(system.memory_bytes("", "VmRSS"), 0)
