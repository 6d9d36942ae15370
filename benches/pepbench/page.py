"""The table, and the page around it."""

from .link import LINKS

HEAD = ("link", "loss", "protocol", "", "15 Mbit/s after", "1 s", "10 s", "30 s")


def cells(row, curve):
    """A row of the table as text."""
    full = curve.full_after_s()
    means = [curve.mean_kbps(seconds) for seconds in (1, 10, 30)]
    return (row.link, f"{row.loss_percent} %", row.protocol, "proxy" if row.is_proxied else "direct",
            "-" if full is None else f"{full:.1f} s",
            *("-" if mean is None else f"{mean:,.0f}" for mean in means))


def render_table(curves):
    """The table in Markdown; goodput in kbit/s."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(cells(row, curve) for row, curve in curves.items())]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def render_page(curves, judged, seconds):
    """docs/pep.md."""
    links = {row.link for row in curves}
    described = "".join(f"| {link} | {of.words} |\n" for link, of in LINKS.items() if link in links)
    busy = sum(not curve.is_trusted for curve in curves.values())
    bars = "\n".join(f"* {text}: {'met' if is_met else 'not met' if is_met is False else 'no verdict'}" for text, is_met in judged)
    return f"""# What the proxy is for

`benches/pep` downloads over emulated satellite links, direct and through `linerate proxy` beside
the server. It wrote this page. Each row is one download of {seconds} s. Goodput is in kbit/s of the
first 1, 10 and 30 s, counted from the first byte. The time to 15 Mbit/s is when the first half
second at this rate begins.

![Goodput over time, geo without loss](pictures/pep.svg)

| link | what it is |
|---|---|
{described}
QUIC is `linerate qperf` with CUBIC. TCP is `linerate iperf3 -R`, also with CUBIC, through
`linerate proxy --tcp`. Every connection begins with 10 packets. Connections of the proxy to its
clients begin with 100, as in the published measurements (`--iw 100`; for TCP `initcwnd 100` of the
route).

In {busy} of {len(curves)} rows the machine was busy: the emulator sent packets late, or programs
waited for a processor.

{render_table(curves)}
The bars come from Kosek and others, "Exploring Proxying QUIC and HTTP/3 for Satellite
Communication" (IFIP Networking 2022). Over geo without loss they measured 4.0 s to 15 Mbit/s and
416 kbit/s in the first second direct, and 2.2 s and 3,673 kbit/s with a proxy.

{bars}

To repeat all of it, as root:

    cargo build --release -p linerate
    benches/pep --markdown docs/pep.md --plot docs/pictures/pep.svg
"""
