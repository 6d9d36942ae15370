"""The table for the documents."""

HEAD = """# {name}: every option, case by case

Made by `benches/compat {name} --markdown`; versions: linerate (ours), {versions}.
*ours to* a release: our client with its server; *to ours*: its client with our server. A cell is
right when both ends exit alike, print the original's fields or lines, and agree on the bytes.
A case that a release doesn't know has a dash.

"""


def render_cell(cells, name):
    """One cell: right, or why not; a cell that was not run counts as failed."""
    if not cells:
        return "-"
    if name not in cells:
        return "not run"
    wrong = cells[name]
    return "ok" if wrong is None else wrong.replace("|", "/").replace("\n", " ")[:120]


def render_table(dialect, rows, missing):
    """Markdown."""
    labels = [program.label for program in dialect.originals]
    text = HEAD.format(name=dialect.name, versions=", ".join(f"{dialect.name} {v}" for v in labels))
    kinds = (("Tests", lambda case: case.kind != "refusal",
              [("ours to {}", "client"), ("{} to ours", "server"), ("ours to ours, as {}", "both")]),
             ("Refusals", lambda case: case.kind == "refusal", [("as {}", "ours")]))
    for title, belongs, columns in kinds:
        heads = [head.format(label) for label in labels for head, _ in columns]
        text += f"## {title}\n\n| case | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}\n"
        for case, row in rows.items():
            if not belongs(case):
                continue
            cells = [case.without if case.without and name == "server"
                     else render_cell(row.get(label, {}), name) for label in labels for _, name in columns]
            mark = {"json": " (`-J`)", "stream": "", "text": ""}.get(case.kind, "")
            expected = ", to fail" if case.fails else ""
            text += f"| `{case.name}`{mark}{expected} | {' | '.join(cells)} |\n"
        text += "\n"
    if missing:
        text += f"Flags without a case: {', '.join(missing)}.\n"
    return text
