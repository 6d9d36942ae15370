"""The newest figures of every row, as data, and the page that shows them."""

import json
import re
from pathlib import Path

from .outcome import NOT_COMPLETED
from .rows import all_rows
from .table import HEADING, entry_of, render_entry

SCHEMA = "linerate.figures/1"
FIGURES = Path(__file__).resolve().parents[1] / "figures.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmark.md"
BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures -->"
MACHINES = "machines"
STREAMS, QUIC, PERSONALITIES, PROXY, GROWTH = (
    "TCP, UDP, requests and connections", "QUIC", "Personalities", "Proxy", "Cost growth")
SECTIONS = (STREAMS, QUIC, PERSONALITIES, PROXY, GROWTH)
LONGER_MARK = "*"  # behind a row's first line


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
    """The document: the machines by their marks, and an entry a row and placement."""
    return json.loads(path.read_text(encoding="utf-8"))


def render(document):
    """The document's text, with one line for each entry, so that a new run changes few lines."""
    machines = ",\n".join(f"  {json.dumps(mark)}: {json.dumps(text, ensure_ascii=False)}"
                          for mark, text in document["machines"].items())
    rows = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in document["rows"])
    return (f'{{\n "schema": "{SCHEMA}",\n "machines": {{\n{machines}\n }},\n'
            f' "rows": [\n{rows}\n ]\n}}\n')


def merged(document, outcomes, mark):
    """The document with the outcomes that came to a verdict in the place of older entries.

    An earlier build of linerate is no peer: rows against it are left out.
    """
    entries = {(entry["row"], entry["placement"]): entry for entry in document["rows"]}
    peers = (outcome for outcome in outcomes if not outcome.row.endswith("/ linerate-before"))
    for outcome in peers:
        if outcome.is_judged and (outcome.came_about or outcome.verdict == NOT_COMPLETED):
            entries[(outcome.row, outcome.placement)] = dict(entry_of(outcome), machine=mark)
    order = {row.name: index for index, row in enumerate(all_rows())}
    place = lambda entry: order.get(entry["row"], len(order))  # noqa: E731
    return dict(document, rows=sorted(entries.values(), key=place))


def remade(page, document):
    """The page with the document's machines and figures between its marks."""
    machines = ["| mark | two processors of | runs |", "|---|---|---|"]
    machines += [f"| {f'`{mark}`' if mark else 'none'} | {of['processors']} | {of['runs']} |"
                 for mark, of in document["machines"].items()]
    page = _between_marks(page, MACHINES, machines)
    longer = {row.name for row in all_rows() if row.has_longer_packets}
    for section in SECTIONS:
        entries = [entry for entry in document["rows"] if section_of(entry["row"]) == section]
        if section == QUIC:
            entries.sort(key=lambda entry: entry["row"] in longer)
        lines = [_line(entry, entry["row"] in longer) for entry in entries]
        page = _between_marks(page, section, ["```", HEADING, *lines, "```"] if lines else [])
    return page


def _line(entry, has_longer_packets):
    """A row as the table shows it, marked where linerate's packets are longer than the peer's."""
    head, *notes = render_entry(entry).splitlines()
    return "\n".join([f"{head} {LONGER_MARK}" if has_longer_packets else head, *notes])


def _between_marks(page, name, lines):
    begin = BEGIN.format(name)
    head, found, rest = page.partition(begin + "\n")
    if not found:
        raise ValueError(f"the page has no line `{begin}`")
    _, found, rest = rest.partition(END + "\n")
    if not found:
        raise ValueError(f"the page has no `{END}` below `{begin}`")
    return "\n".join([head + begin, *lines, END, rest])


def record(outcomes, mark):
    """Keeps a run's figures, and remakes the page from all."""
    document = merged(load(), outcomes, mark)
    page = remade(PAGE.read_text(encoding="utf-8"), document)
    FIGURES.write_text(render(document), encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
