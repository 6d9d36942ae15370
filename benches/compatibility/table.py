"""The table for the documents."""

from .case import is_wrong

HEAD = """# {name}: every option, case by case

Made by `benches/compat {name} --markdown`. Versions: linerate (ours), {versions}.

* *ours to* a release: our client with its server. *to ours*: its client with our server.
* `ok`: both ends exit alike, print the original's fields or lines, and agree on the bytes. Of
  netperf only the client's exit counts. One of two tries must be so, over emulated links one of
  four. In cases that break the originals, an original gets three times as many tries.
* `-`: the release doesn't know the case.
* *no failure of ours*, with a reason in brackets: two originals fail by themselves. Our run had a
  result where no pair of originals had one. Or an original's client ended with our server as it did
  with its own.
* *no failure of ours*, with a list of fields: the peer's release doesn't send these figures.

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
