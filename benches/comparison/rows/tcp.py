"""Bulk TCP."""

from dataclasses import replace

from ..tools import (BareStream, BareTls, Ethr, Iperf2, Iperf3, Iperf3New, Linerate, Neper, Netperf, Nuttcp,
                     Work)
from .row import Row, against

BULK = Work("tcp_stream", 128 * 1024)
PEERS = (Iperf3, Iperf3New, Iperf2, Netperf, Neper)
OTHERS = (Nuttcp, Ethr)  # what they reach is for information
MANY_FLOWS = (128, 1000)


def tcp_rows():
    """One flow, a few, many; small sends; across a veth pair; verified."""
    rows = [against(BareStream, "tcp stream", BULK, 0.97, "bit/s")]
    rows += [against(peer, "tcp stream", BULK, 1.0, "bit/s") for peer in PEERS]
    rows += [against(peer, "tcp stream", BULK, None, "bit/s") for peer in OTHERS]
    rows.append(against(BareTls, "tls stream", replace(BULK, kind="tls_stream"), 0.95, "bit/s"))
    verified = (Linerate, replace(BULK, verify=True))
    rows.append(Row("tcp stream --verify / without", verified, (Linerate, BULK), 0.9, "bit/s"))
    eight = replace(BULK, flows=8)
    rows.append(against(Iperf3New, "tcp stream 8 flows", eight, 1.0, "bit/s",
                        placements=("free",)))
    for flows in MANY_FLOWS:
        # netperf has one flow a process and no common start: it is no peer here.
        for peer in (Iperf3, Iperf3New, Iperf2, Neper, *OTHERS):
            rows.append(against(peer, f"tcp stream {flows} flows", replace(BULK, flows=flows),
                                1.0, "bit/s", placements=("free",)))
    for size in (1, 64):
        for peer in (Iperf3, Iperf3New, Netperf):
            rows.append(against(peer, f"tcp stream {size} B sends", replace(BULK, size=size),
                                1.0, "bit/s"))
    for peer in (BareStream, *PEERS):
        bar = 0.97 if peer is BareStream else 1.0
        rows.append(against(peer, "tcp stream veth", BULK, bar, "bit/s", placements=("veth",)))
    return rows
