"""The table for the documents."""

from .case import is_wrong

HEAD = """# {name}: every option, case by case

Made by `benches/compat {name} --markdown`; versions: linerate (ours), {versions}.
*ours to* a release: our client with its server; *to ours*: its client with our server. A cell is
right when both ends exit alike (of netperf the client: its server is ended), print the original's fields or lines, and agree on the bytes where
both tell them; of two tries one must be so, over emulated links of four, and of three times as many beside an original in cases in which originals fail
by themselves. A case that a release doesn't know has a dash. A cell that begins with *no failure of ours* is of a case in which two originals
fail by themselves, for the reason in brackets (there is a right result where no run of theirs had one, or their client ends with our server as
it did with its own), or lacks what the peer's release doesn't tell.

"""


def render_cell(cells, name):
    """One cell: right, or why not; a cell that was not run counts as failed."""
    if not cells:
        return "-"
    if name not in cells:
        return "not run"
    wrong = cells[name]
    if wrong is None:
        return "ok"
    note = "" if is_wrong(wrong) else "*no failure of ours*: "
    return note + wrong.replace("|", "/").replace("\n", " ")[:200 if note else 120]


def render_place(case, cells, name):
    """One cell, or why a case has none there."""
    if case.alone and name in ("client", "server"):
        return case.alone
    if case.without and name == "server":
        return case.without
    return render_cell(cells, name)


def count(rows):
    """Cells, and those that aren't right."""
    cells = [(name, wrong) for row in rows.values() for cells in row.values()
             for name, wrong in cells.items() if name != "reference"]
    return len(cells), sum(is_wrong(wrong) for _, wrong in cells)


def told_of(row):
    """What is said of the cells of a case."""
    return [cell for cells in row.values() for name, cell in cells.items() if name != "reference" and cell]


def render_page(dialect, found, missing):
    """Markdown: every case on loopback, and for the other places what differs from that."""
    labels = [program.label for program in dialect.originals]
    text = HEAD.format(name=dialect.name, versions=", ".join(f"{dialect.name} {v}" for v in labels))
    for place, rows in found.items():
        if place.name == "loopback":
            text += render_table(dialect, rows)
            continue
        total, wrong = count(rows)
        differing = {case: row for case, row in rows.items() if any(told_of(row))}
        text += (f"## The same cases {place.describe()}\n\n{total - wrong} of {total} cells are right"
                 f"{':' if differing else '.'}\n\n")
        if differing:
            text += render_table(dialect, differing).partition("\n\n")[2]
    if missing:
        text += f"Flags without a case: {', '.join(missing)}.\n"
    return text


def render_table(dialect, rows):
    """The cases one by one."""
    labels, text = [program.label for program in dialect.originals], ""
    kinds = (("Tests", lambda case: case.kind != "refusal",
              [("ours to {}", "client"), ("{} to ours", "server"), ("ours to ours, as {}", "both")]),
             ("Refusals", lambda case: case.kind == "refusal", [("as {}", "ours")]))
    for title, belongs, columns in kinds:
        if not any(belongs(case) for case in rows):
            continue
        heads = [head.format(label) for label in labels for head, _ in columns]
        text += f"## {title}\n\n| case | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}\n"
        for case, row in rows.items():
            if not belongs(case):
                continue
            cells = [render_place(case, row.get(label, {}), name) for label in labels for _, name in columns]
            mark = {"json": " (`-J`)", "stream": "", "text": ""}.get(case.kind, "")
            expected = ", to fail" if case.fails else ""
            text += f"| `{case.name}`{mark}{expected} | {' | '.join(cells)} |\n"
        text += "\n"
    return text
