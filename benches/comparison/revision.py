"""Which commit a measured program is of, and which figures are older than the code that they are about."""

import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CODE = ("crates", "Cargo.toml", "Cargo.lock")
ENGINE = "crates/engine/src"
# Words of a row's name, and the tool's name in the crates. One word is a part of another: the longer one is first.
DIALECTS = (("iperf3", "iperf3"), ("secnetperf", "secnetperf"), ("netperf", "netperf"), ("netserver", "netperf"),
            ("ctstraffic", "ctstraffic"), ("proxy", "relay"))
FOLDERS = {"secnetperf": ("secnetperf", "perf")}
HOUSES = (ENGINE, "crates/wire/src", "crates/personality/src", "crates/linerate/src/personality")
OWN_FOLDERS = ("iperf3", "netperf", "perf", "ctstraffic", "qperf", "relay")


def _git(*words):
    """What git prints; None where there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, timeout=60,
                              check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def revision_of(program):
    """The commit and the day of a program that was built from this checkout, or a sentence that says why they can't be
    told: figures of an unknown program are not kept."""
    if _git("rev-parse", "HEAD") is None:
        return None, "this is no git checkout, so that the program's commit is unknown"
    if _git("status", "--porcelain", "--untracked-files=no", "--", *CODE):
        return None, "the code has changes that are in no commit: commit them and build again"
    commit, day, seconds = _git("log", "-1", "--format=%h %cs %ct", "--", *CODE).split()
    if program.stat().st_mtime < int(seconds):
        return None, f"{program} is older than the last commit of its code, {commit}: build it again"
    return {"commit": commit, "day": day}, None


def dialect_of(row):
    """The folder name of the tool that a row replaces or relays with; None: linerate's own tests."""
    name = row.partition(" / ")[0].lower()
    is_own = not name.startswith("our ") and "proxy" not in name and "ctstraffic" not in name
    return None if is_own else next((folder for word, folder in DIALECTS if word in name), None)


def paths_of(row):
    """Where the code of a row stands: the engine without the tools, and the row's own tool."""
    dialect = dialect_of(row)
    own = FOLDERS.get(dialect, (dialect,)) if dialect else ()
    others = [f":(exclude){ENGINE}/{folder}" for folder in OWN_FOLDERS if folder not in own]
    return [ENGINE, *(f"{house}/{folder}" for house in HOUSES[1:] for folder in own), *others, ":(exclude)**/tests/**",
            ":(exclude)**/tests.rs"]


def older_rows(entries):
    """The (row, placement) of the entries whose code changed after the commit that they were measured with. An entry of
    an unknown commit is one of them."""
    changed = {}  # by commit and dialect
    older = set()
    for entry in entries:
        commit = entry.get("commit")
        key = (commit, dialect_of(entry["row"]))
        if key not in changed:
            since = commit and _git("rev-list", "--count", f"{commit}..HEAD", "--", *paths_of(entry["row"]))
            changed[key] = since != "0"
        if changed[key]:
            older.add((entry["row"], entry["placement"]))
    return older
