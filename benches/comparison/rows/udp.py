"""Bulk UDP: received packets, and loss at the same offered rate. Media: how late frames are sent."""

from dataclasses import replace

from ..tools import BareLoop, Iperf3, Iperf3New, Work
from .row import against, alone

SIZES = (64, 1400)
FRACTIONS = (0.5, 0.8, 1.0)


def udp_rows():
    """With offload against iperf3 --gsro, one packet a call against the batched C loop."""
    rows = []
    for size, bar_new, bar_old in ((64, 1.3, 50), (1400, 1.0, 8)):
        work, name = Work("udp_stream", size), f"udp stream {size} B"
        rows += [
            against(Iperf3New, name, work, bar_new, "packets/s"),
            against(Iperf3, name, work, bar_old, "packets/s"),
            against(BareLoop, name, work, None, "packets/s"),
        ]
    for size in SIZES:
        batched = replace(Work("udp_stream", size), mode="batch")
        rows.append(against(BareLoop, f"udp stream --no-offload {size} B", batched, 0.97,
                            "packets/s"))
    for size in SIZES:
        for fraction in FRACTIONS:
            rows.append(against(Iperf3New, f"udp loss {size} B at {fraction:g} x its best",
                                Work("udp_stream", size), 0, "loss", measure="loss",
                                fraction=fraction))
        rows.append(against(Iperf3, f"udp loss {size} B at 1 x its best",
                            Work("udp_stream", size), 0, "loss", measure="loss"))
    # Frames of 36 datagrams, 60 a second.
    media = Work("udp_media", 1448, rate_bps=25e6, percentile=99)
    for name, work, bar in (("", media, 1.5), (" --busy-poll", replace(media, spin=True), None)):
        rows.append(against(BareLoop, f"p99 of media send delay{name}", work, bar, "us",
                            measure="latency", placements=("split",)))
    rows.append(alone("p99 of media send delay --busy-poll alone", replace(media, spin=True), 100, "us",
                      "percentile", placements=("split",)))
    # A thousand video calls; the processors of the busier end.
    many = replace(media, flows=1000, rate_bps=2e6)
    rows.append(alone("media 1,000 flows", many, 0.6, "processors", "sides", placements=("free",)))
    return rows
