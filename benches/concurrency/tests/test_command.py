"""The command line, the client's words, and the drawing."""

import tempfile
import unittest
from pathlib import Path

from .. import command, drawing, run
from .test_report import run as held


class Command(unittest.TestCase):
    """What needs no process."""

    def test_all_numbers_of_connections_run_unless_some_are_named(self):
        self.assertEqual(command.parse_options([]).connections, [1_000, 10_000, 100_000, 500_000])
        self.assertEqual(command.parse_options(["--connections", "7", "8"]).connections, [7, 8])

    def test_connections_are_held_until_all_are_there(self):
        options = command.parse_options([])
        self.assertEqual(run.hold_time(500_000, options), 205.0)
        self.assertEqual(run.hold_time(10, command.parse_options(["--hold-s", "3"])), 3.0)

    def test_each_connection_moves_and_verifies_the_bytes_once(self):
        words = [str(word) for word in run.client_words(20, command.parse_options([]), 5.5)]
        text = " ".join(words)
        for part in ("--flows 20 --count 20", "--transfer 65536 --pattern push --verify", "--hold 5500ms"):
            self.assertIn(part, text)

    def test_a_drawing_has_a_line_for_each_end(self):
        runs = [held(connections=count) for count in (100_000, 1_000, 10_000)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "crowd.svg"
            drawing.write(path, runs)
            text = path.read_text(encoding="utf-8")
        for part in (">client<", ">server<", "connections open at once", ">100k<"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
