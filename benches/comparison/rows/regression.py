"""A row for each kind of work that is quick to run and needs no peer: linerate beside the C loops, or over TLS and QUIC
beside itself over TCP."""

from dataclasses import replace

from ..tools import BareLoop, Linerate, Work
from .quic import CONNECT as QUIC_CONNECT
from .quic import REQUESTS, STREAM
from .row import Row, against
from .tcp import BULK
from .transactions import CONNECT, RATE, TCP, UDP

SPLIT = ("split",)


def regression_rows():
    """Both ends pinned, one processor each."""
    batched = replace(Work("udp_stream", 64), mode="batch")
    beside_loops = (
        ("tcp stream", BULK, "bit/s"),
        ("udp stream 1400 B", Work("udp_stream", 1400), "packets/s"),
        ("udp stream --no-offload 64 B", batched, "packets/s"),
        ("tcp rr waiting", TCP, RATE),
        ("tcp rr --busy-poll", replace(TCP, spin=True), RATE),
        ("udp rr --busy-poll", replace(UDP, spin=True), RATE),
        ("connect", CONNECT, "connections/s"),
    )
    beside_itself = (
        ("tls stream / tcp stream", replace(BULK, kind="tls_stream"), BULK, "bit/s"),
        ("quic stream / tcp stream", STREAM, BULK, "bit/s"),
        ("quic rr / tcp rr", REQUESTS, TCP, RATE),
        ("quic connect / connect", QUIC_CONNECT, CONNECT, "connections/s"),
    )
    rows = [against(BareLoop, name, work, None, figure, placements=SPLIT)
            for name, work, figure in beside_loops]
    return rows + [Row(name, (Linerate, ours), (Linerate, theirs), None, figure, placements=SPLIT)
                   for name, ours, theirs, figure in beside_itself]
