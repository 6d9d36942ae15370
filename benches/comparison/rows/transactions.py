"""Request and response, and connections."""

from dataclasses import replace

from ..tools import BareLoop, Neper, Netperf, Sockperf, Work
from .row import against

TCP = Work("tcp_rr", 1)
UDP = Work("udp_rr", 16)  # linerate numbers its UDP transactions: 16 bytes are its least
SOCKPERF_TCP = Work("tcp_rr", 14)  # the least of sockperf
CONNECT = Work("tcp_crr", 1)
RATE = "transactions/s"


def rr_rows():
    """One flow, waiting and spinning, and a hundred flows."""
    rows = []
    for name, work in (("tcp rr", TCP), ("udp rr", UDP)):
        rows.append(against(BareLoop, f"{name} waiting", work, 0.97, RATE))
        rows += [against(peer, f"{name} waiting", work, 0.97, RATE) for peer in (Netperf, Neper)]
        sockperf = SOCKPERF_TCP if work is TCP else work
        rows.append(against(Sockperf, f"{name} waiting", sockperf, 0.97, RATE))
        # Two spinning ends on one processor only take turns at the scheduler's leisure.
        rows.append(against(BareLoop, f"{name} --busy-poll", replace(work, spin=True), 0.97, RATE,
                            placements=("split",)))
        rows.append(against(Sockperf, f"{name} --busy-poll", replace(sockperf, spin=True), 1.0,
                            RATE, placements=("split",)))
        # netperf always waits: what a user of either gets from one flow at its best.
        rows.append(against(Netperf, f"{name} --busy-poll", replace(work, spin=True), 1.0, RATE,
                            placements=("split",)))
        rows.append(against(Neper, f"{name} 100 flows", replace(work, flows=100), 1.2, RATE))
    return rows


def connect_rows():
    """Connect, request, response, close; each peer in the close mode that it has."""
    rows = []
    for close, peers in (("fin", (Neper,)), ("rst", (Neper,)), ("server", (Netperf,))):
        work = replace(CONNECT, close=close)
        rows.append(against(BareLoop, f"connect --close {close}", work, 0.95, "connections/s"))
        rows += [against(peer, f"connect --close {close}", work, 1.0, "connections/s")
                 for peer in peers]
    return rows
