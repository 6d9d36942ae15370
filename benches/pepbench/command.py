"""The command line: which rows, and where their table goes."""

import argparse
import os
import pathlib
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from .bars import bars
from .download import download
from .page import render_page, render_table
from .picture import render_picture

Row = namedtuple("Row", "link loss_percent protocol is_proxied")
LOSSES = (0, 0.01, 0.1, 1)
VERDICTS = {True: "met", False: "NOT MET", None: "no verdict, as the machine was busy"}
ROOT = pathlib.Path(__file__).resolve().parents[2]


def all_rows():
    """Every row of the table."""
    return [Row(link, loss, protocol, is_proxied) for link in ("geo", "leo") for loss in LOSSES
            for protocol in ("QUIC", "TCP") for is_proxied in (False, True)]


def checked_rows():
    """The rows that the gate looks at."""
    return [Row(link, 0, "QUIC", is_proxied) for link in ("geo", "leo") for is_proxied in (False, True)]


def main(words=None):
    """Runs the command; its exit code."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--linerate", default=str(ROOT / "target/release/linerate"), help="the program")
    parser.add_argument("--time", type=int, default=30, help="seconds of each download")
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2), help="links at a time")
    parser.add_argument("--check", action="store_true", help="only the rows that the gate looks at")
    parser.add_argument("--rows", default="", help="only rows with this text, such as 'geo 1 %% QUIC'")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the page here")
    parser.add_argument("--plot", type=pathlib.Path, help="draw the curves of geo without loss here")
    options = parser.parse_args(words)
    if os.geteuid() != 0:
        print("benches/pep needs root, for network namespaces", file=sys.stderr)
        return 2
    rows = checked_rows() if options.check else all_rows()
    rows = [row for row in rows if options.rows in name(row)]
    curves = measure(rows, options)
    print()
    print(render_table(curves))
    judged = list(bars(curves))
    for text, is_met in judged:
        print(f"{VERDICTS[is_met]}: {text}")
    if options.markdown:
        options.markdown.write_text(render_page(curves, judged, options.time), encoding="utf-8")
    if options.plot:
        options.plot.write_text(render_picture(curves), encoding="utf-8")
    return 1 if False in (is_met for _, is_met in judged) else 0


def measure(rows, options):
    """The curves of all rows: those of one link one after the other, the links at once where that is asked for."""
    found = {}

    def of_link(link):
        with tempfile.TemporaryDirectory() as folder:
            for row in rows:
                if row.link != link:
                    continue
                curve = download(options.linerate, pathlib.Path(folder), row, options.time)
                found[row] = curve
                late = "" if curve.is_trusted else "  (the machine was busy)"
                print(f"{name(row)}: {line(curve)}{late}", flush=True)

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for done in [pool.submit(of_link, link) for link in ("geo", "leo")]:
            done.result()
    return {row: found[row] for row in rows}


def name(row):
    """A row in words."""
    return f"{row.link} {row.loss_percent} % {row.protocol} {'proxy' if row.is_proxied else 'direct'}"


def line(curve):
    """A download in words."""
    full = curve.full_after_s()
    full = "never" if full is None else f"{full:.1f} s"
    means = [curve.mean_kbps(seconds) for seconds in (1, 10, 30)]
    shown = ", ".join("-" if mean is None else f"{mean:.0f}" for mean in means)
    return f"15 Mbit/s after {full}; kbit/s of 1, 10 and 30 s: {shown}"
