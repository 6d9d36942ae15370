"""The newest figures of every row, as data, and the page that shows them."""

import json
import re
from pathlib import Path

from . import regressions
from .outcome import NOT_COMPLETED
from .revision import older_rows
from .rows import all_rows
from .table import HEADING, entry_of, render_entry

SCHEMA = "linerate.figures/2"
FIGURES = Path(__file__).resolve().parents[1] / "figures.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmark.md"
BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures -->"
MACHINES = "machines"
STREAMS, QUIC, PERSONALITIES, PROXY, GROWTH = (
    "TCP, UDP, requests and connections", "QUIC", "Personalities", "Proxy", "Cost growth")
SECTIONS = (STREAMS, QUIC, PERSONALITIES, PROXY, GROWTH)
LONGER_MARK = "*"  # behind a row's first line
OLDER_MARK = "older"  # behind the day


def section_of(row):
    """The page's section that has a row of this name."""
    if row.startswith("our "):
        return PERSONALITIES
    if re.search(r"\bproxy (quic|tcp)\b", row):
        return PROXY
    if row.startswith("cost growth"):
        return GROWTH
    return QUIC if "quic" in row else STREAMS


def load(path=FIGURES):
    """The document: the machines by their marks, an entry a row and placement, and the ratios that
    `--regressions` holds a program against."""
    return json.loads(path.read_text(encoding="utf-8"))


def render(document):
    """The document's text, with one line for each entry, so that a new run changes few lines."""
    machines = ",\n".join(f"  {json.dumps(mark)}: {json.dumps(text, ensure_ascii=False)}"
                          for mark, text in document["machines"].items())
    lists = "".join(f',\n "{name}": [\n{_entries(document[name])}\n ]' for name in ("rows", "regressions"))
    return f'{{\n "schema": "{SCHEMA}",\n "machines": {{\n{machines}\n }}{lists}\n}}\n'


def _entries(entries):
    return ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in entries)


def merged(document, outcomes, mark, revision):
    """The document with the outcomes that came to a verdict in the place of older entries.

    An earlier build of linerate is no peer: rows against it are left out.
    """
    entries = {(entry["row"], entry["placement"]): entry for entry in document["rows"]}
    peers = (outcome for outcome in outcomes if not outcome.row.endswith("/ linerate-before"))
    for outcome in peers:
        if outcome.is_judged and (outcome.came_about or outcome.verdict == NOT_COMPLETED):
            entries[(outcome.row, outcome.placement)] = dict(entry_of(outcome), machine=mark, **revision)
    order = {row.name: index for index, row in enumerate(all_rows())}
    place = lambda entry: order.get(entry["row"], len(order))  # noqa: E731
    return dict(document, rows=sorted(entries.values(), key=place))


def remade(page, document, older):
    """The page with the document's machines and figures between its marks; `older` has the rows and placements that
    are older than their code."""
    machines = ["| mark | two processors of | runs |", "|---|---|---|"]
    machines += [f"| {f'`{mark}`' if mark else 'none'} | {of['processors']} | {of['runs']} |"
                 for mark, of in document["machines"].items()]
    page = _between_marks(page, MACHINES, machines)
    longer = {row.name for row in all_rows() if row.has_longer_packets}
    for section in SECTIONS:
        entries = [entry for entry in document["rows"] if section_of(entry["row"]) == section]
        if section == QUIC:
            entries.sort(key=lambda entry: entry["row"] in longer)
        lines = [_line(entry, entry["row"] in longer, (entry["row"], entry["placement"]) in older)
                 for entry in entries]
        page = _between_marks(page, section, ["```", HEADING, *lines, "```"] if lines else [])
    return page


def _line(entry, has_longer_packets, is_older):
    """A row as the table shows it, with the day of its program; marked where the code is newer, and where linerate's
    packets are longer than the peer's."""
    head, *notes = render_entry(entry).splitlines()
    marks = [entry["day"], OLDER_MARK if is_older else "", LONGER_MARK if has_longer_packets else ""]
    return "\n".join([" ".join([head, *filter(None, marks)]), *notes])


def _between_marks(page, name, lines):
    begin = BEGIN.format(name)
    head, found, rest = page.partition(begin + "\n")
    if not found:
        raise ValueError(f"the page has no line `{begin}`")
    _, found, rest = rest.partition(END + "\n")
    if not found:
        raise ValueError(f"the page has no `{END}` below `{begin}`")
    return "\n".join([head + begin, *lines, END, rest])


def record(outcomes, mark, revision):
    """Keeps a run's figures, and remakes the page from all."""
    keep(merged(load(), outcomes, mark, revision))


def record_regressions(outcomes, mark, build, revision):
    """Keeps the ratios that later programs are held against."""
    keep(regressions.merged(load(), outcomes, mark, build, revision))


def keep(document):
    """Writes the document and the page."""
    page = remade(PAGE.read_text(encoding="utf-8"), document, older_rows(document["rows"]))
    FIGURES.write_text(render(document), encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
