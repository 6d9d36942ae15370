"""linerate beside an earlier build of itself, named `linerate-before`: what a change costs or gains."""

from dataclasses import replace

from ..tools import (BeforeIperf3, BeforeNetperf, BeforeSecnetperf, LinerateBefore, OwnIperf3, OwnNetperf,
                     OwnSecnetperf, Work)
from .quic import CONNECT as QUIC_CONNECT
from .quic import REQUESTS, STREAM
from .row import PINNED, against, replacing
from .tcp import BULK
from .transactions import CONNECT, TCP, UDP

BAR = 0.97  # of equality, by the median
SPLIT, FREE = ("split",), ("free",)


def before_rows():
    """A row for each job."""
    rows = [against(LinerateBefore, name, work, BAR, figure, placements=placements)
            for name, work, figure, placements in _native()]
    return rows + [replacing(own, before, name, work, BAR, figure, placements=placements)
                   for own, before, name, work, figure, placements in _personalities()]


def _native():
    """Name, work, figure and placements of each."""
    jobs = [
        ("tcp stream", BULK, "bit/s", PINNED),
        ("tcp stream 64 B sends", replace(BULK, size=64), "bit/s", PINNED),
        ("tcp stream 128 flows", replace(BULK, flows=128), "bit/s", FREE),
        ("tls stream", replace(BULK, kind="tls_stream"), "bit/s", SPLIT),
        ("udp stream 64 B", Work("udp_stream", 64), "packets/s", SPLIT),
        ("udp stream 1400 B", Work("udp_stream", 1400), "packets/s", SPLIT),
        ("quic stream", STREAM, "bit/s", SPLIT),
        ("quic rr", REQUESTS, "transactions/s", SPLIT),
        ("quic connect", QUIC_CONNECT, "connections/s", SPLIT),
    ]
    for name, work in (("tcp rr", TCP), ("udp rr", UDP)):
        jobs += [
            (f"{name} waiting", work, "transactions/s", PINNED),
            (f"{name} --busy-poll", replace(work, spin=True), "transactions/s", SPLIT),
            (f"{name} 100 flows", replace(work, flows=100), "transactions/s", SPLIT),
        ]
    return jobs + [(f"connect --close {close}", replace(CONNECT, close=close), "connections/s", PINNED)
                   for close in ("fin", "rst", "server")]


def _personalities():
    """Each personality now and before, name, work, figure and placements."""
    iperf3, netperf = (OwnIperf3, BeforeIperf3), (OwnNetperf, BeforeNetperf)
    secnetperf = (OwnSecnetperf, BeforeSecnetperf)
    return (
        (*iperf3, "-P 1", BULK, "bit/s", SPLIT),
        (*iperf3, "-P 128", replace(BULK, flows=128), "bit/s", FREE),
        (*iperf3, "-u -l 1400", Work("udp_stream", 1400), "packets/s", SPLIT),
        (*netperf, "TCP_STREAM", replace(BULK, size=None), "bit/s", SPLIT),
        (*netperf, "TCP_RR", Work("tcp_rr", 1), "transactions/s", SPLIT),
        (*netperf, "UDP_RR", Work("udp_rr", 1), "transactions/s", SPLIT),
        (*netperf, "TCP_CRR", Work("tcp_crr", 1), "connections/s", SPLIT),
        (*secnetperf, "up", STREAM, "bit/s", SPLIT),
        (*secnetperf, "rps", REQUESTS, "transactions/s", SPLIT),
        (*secnetperf, "hps", QUIC_CONNECT, "connections/s", SPLIT),
        (*secnetperf, "-tcp:1 up", Work("framed_stream", None), "bit/s", SPLIT),
    )
