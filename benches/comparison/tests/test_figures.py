"""The figures that are kept, and the page that is made of them."""

import json
import re
import unittest

from .. import figures
from ..outcome import Outcome
from ..rows import all_rows
from ..table import entry_of, render_entry, render_outcome

REVISION = {"commit": "0123abcd", "day": "2026-11-01"}


def outcome(row, values, **more):
    """An outcome of six pairs or more in one placement."""
    return Outcome(row, "same", 1.0, "bit/s", values=values, **more)


class Figures(unittest.TestCase):
    """benches/figures.json and docs/benchmark.md."""

    def test_the_page_shows_the_figures_that_are_kept(self):
        page = figures.PAGE.read_text(encoding="utf-8")
        document = figures.load()
        shown = [re.sub(rf" {figures.OLDER_MARK}( \*)?$", lambda match: match[1] or "", line) for line in page.splitlines()]
        remade = figures.remade(page, document, set()).splitlines()
        self.assertTrue(shown == remade, "run benches/compare --remake-page")

    def test_every_figure_has_the_commit_and_the_day_of_its_program(self):
        document = figures.load()
        for entry in document["rows"] + document["regressions"]:
            self.assertRegex(entry["commit"], "^[0-9a-f]{7,40}$")
            self.assertRegex(entry["day"], "^20[0-9]{2}-[0-9]{2}-[0-9]{2}$")

    def test_a_row_that_is_older_than_its_code_is_marked(self):
        document = figures.load()
        entry = document["rows"][0]
        remade = figures.remade(figures.PAGE.read_text(encoding="utf-8"), document, {(entry["row"], entry["placement"])})
        marked = [line for line in remade.splitlines() if re.search(rf" {figures.OLDER_MARK}( \*)?$", line)]
        self.assertEqual(len(marked), 1)
        self.assertTrue(marked[0].startswith(entry["row"]))

    def test_rows_at_equal_packets_come_first_and_longer_packets_are_marked(self):
        remade = figures.remade(figures.PAGE.read_text(encoding="utf-8"), figures.load(), set())
        _, _, rest = remade.partition(figures.BEGIN.format(figures.QUIC))
        lines = [line for line in rest.partition(figures.END)[0].splitlines() if re.match("[a-zC]", line)]
        marks = [line.endswith(f" {figures.LONGER_MARK}") for line in lines if " / " in line]
        self.assertTrue(any(marks) and not all(marks))
        self.assertEqual(marks, sorted(marks))
        for line, marked in zip(lines[1:], marks, strict=True):
            if "equal packets" in line or line.startswith("quic connect"):
                self.assertFalse(marked, line)
            elif "/ secnetperf" in line or "/ quinn" in line:
                self.assertTrue(marked, line)

    def test_the_document_is_kept_in_one_form(self):
        text = figures.FIGURES.read_text(encoding="utf-8")
        self.assertEqual(figures.render(json.loads(text)), text)

    def test_each_row_is_kept_once_and_its_machine_is_described(self):
        document = figures.load()
        kept = [(entry["row"], entry["placement"]) for entry in document["rows"]]
        self.assertEqual(len(kept), len(set(kept)))
        self.assertLessEqual({entry["machine"] for entry in document["rows"]}, document["machines"].keys())
        self.assertLessEqual({row for row, _ in kept}, {row.name for row in all_rows()})

    def test_a_new_run_takes_the_place_of_the_older_one(self):
        document = {"machines": {"z": {}}, "rows": []}
        row = all_rows()[0].name
        for median in (1.1, 1.2):
            document = figures.merged(document, [outcome(row, [median] * 6, least_values=6)], "z", REVISION)
        self.assertEqual([entry["median"] for entry in document["rows"]], [1.2])
        self.assertEqual([(entry["commit"], entry["day"]) for entry in document["rows"]], [tuple(REVISION.values())])
        for undecided in (outcome(row, [1.3], least_values=6), outcome(row, [1.3] * 6, is_judged=False)):
            self.assertEqual(figures.merged(document, [undecided], "z", REVISION), document)

    def test_rows_against_an_earlier_build_are_not_kept(self):
        document = {"machines": {"": {}}, "rows": []}
        names = [row.name for row in all_rows() if row.name.endswith("/ linerate-before")]
        self.assertTrue(names)
        measured = [outcome(name, [1.0] * 6, least_values=6) for name in names]
        self.assertEqual(figures.merged(document, measured, "", REVISION), document)

    def test_a_kept_row_is_shown_as_the_table_showed_it(self):
        measured = outcome("a row", [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], notes=["a note"],
                           peer_failures=["it died"], other_cpus=0.123)
        kept = json.loads(json.dumps(entry_of(measured)))
        self.assertEqual(render_entry(kept), render_outcome(measured))
        self.assertTrue(render_entry(dict(kept, machine="z")).splitlines()[0].endswith("  z"))
