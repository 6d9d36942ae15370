"""QUIC against MsQuic's own tool, and the perf programs of quinn and s2n-quic."""

from dataclasses import replace

from ..tools import QuinnPerf, S2nPerf, Secnetperf, Work
from .row import PINNED, against

STREAM = Work("quic_stream", None)
REQUESTS = Work("quic_rr", 512, response=4000)  # of its scenario `rps`
CONNECT = Work("quic_crr", None)
MANY = {"flows": 10}
FREE = ("free",)
SPLIT = ("split",)


def quic_rows():
    """Streams down and up, requests, handshakes; one connection pinned, two and ten unpinned, so
    that both ends have a thread a processor; and what a gigabyte costs both ends."""
    down = replace(STREAM, down=True)
    rows = []
    for name, work, bar, figure, placements in (
        ("quic stream down", down, 1.15, "bit/s", PINNED),
        ("quic stream up", STREAM, 1.0, "bit/s", PINNED),
        ("quic stream down 2 connections", replace(down, flows=2), None, "bit/s", FREE),
        ("quic stream up 2 connections", replace(STREAM, flows=2), None, "bit/s", FREE),
        ("quic stream down 10 connections", replace(down, **MANY), 1.05, "bit/s", FREE),
        ("quic stream up 10 connections", replace(STREAM, **MANY), None, "bit/s", FREE),
        ("quic rr", REQUESTS, 1.0, "transactions/s", PINNED),
        ("quic rr --busy-poll", replace(REQUESTS, spin=True), 1.8, "transactions/s", SPLIT),
        ("quic rr 10 connections", replace(REQUESTS, **MANY), 2.0, "transactions/s", FREE),
        ("quic rr 100 streams", replace(REQUESTS, flows=100, streams=100), 2.0, "transactions/s",
         PINNED),
        ("quic connect", CONNECT, 1.3, "connections/s", PINNED),
        ("quic connect 16 flows", replace(CONNECT, flows=16), 1.3, "connections/s", PINNED),
    ):
        rows.append(against(Secnetperf, name, work, bar, figure, placements=placements))
    for name, work in (("down", down), ("up", STREAM)):
        rows.append(against(Secnetperf, f"CPU of quic stream {name}", work, 0.85, "bit/s",
                            measure="cpu", placements=SPLIT))
    ten = replace(REQUESTS, **MANY)
    for peer, name, work, bar, figure, placements in (
        (QuinnPerf, "quic stream down", down, 1.25, "bit/s", SPLIT),
        (QuinnPerf, "quic stream up", STREAM, 1.25, "bit/s", SPLIT),
        (S2nPerf, "quic stream down", down, 1.0, "bit/s", SPLIT),
        (S2nPerf, "quic stream up", STREAM, 1.0, "bit/s", SPLIT),
        (S2nPerf, "quic rr", REQUESTS, 1.0, "transactions/s", SPLIT),
        (S2nPerf, "quic rr 10 connections", ten, 1.3, "transactions/s", FREE),
        (Secnetperf, "quic rr 10 connections --threads 1", replace(ten, threads=1), None,
         "transactions/s", FREE),
        (Secnetperf, "quic stream down 10 connections --threads 1",
         replace(down, threads=1, **MANY), None, "bit/s", FREE),
    ):
        rows.append(against(peer, name, work, bar, figure, placements=placements))
    return rows
