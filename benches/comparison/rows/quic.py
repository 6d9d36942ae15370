"""QUIC against MsQuic's own tool, and the perf programs of quinn and s2n-quic."""

from dataclasses import replace

from ..tools import OurSecnetperf, QuinnPerf, S2nPerf, Secnetperf, Work
from .row import PINNED, against, replacing

STREAM = Work("quic_stream", None)
REQUESTS = Work("quic_rr", 512, response=4000)  # of its scenario `rps`
HUNDRED = replace(REQUESTS, flows=100, streams=100)
EQUAL = ("quic stream down", "quic stream up", "quic rr 10 connections", "quic rr 100 streams")
CONNECT = Work("quic_crr", None)
MANY = {"flows": 10}
FREE = ("free",)
SPLIT = ("split",)
SHARDS = (1, 2)


def quic_rows():
    """Some with packets no longer than the peer's. Then, with packets as long as linerate finds:
    streams down and up, requests, handshakes; one connection pinned, two and ten unpinned, so that
    both ends have a thread a processor; what a gigabyte costs both ends; how long requests take; all
    beside secnetperf again with one and with two threads at each of linerate's ends, where there are
    two connections."""
    rows = _equal_rows()
    rows += [against(Secnetperf, name, work, bar, figure, placements=placements)
             for name, work, bar, figure, placements in _beside_secnetperf()]
    for name, work in (("down", replace(STREAM, down=True)), ("up", STREAM)):
        rows.append(against(Secnetperf, f"CPU of quic stream {name}", work, 0.85, "bit/s",
                            measure="cpu", placements=SPLIT))
    return [*rows, *_latency_rows(), *_other_peers(), *_shard_rows()]


def _beside_secnetperf():
    """Name, work, bar, figure and placements of each."""
    down = replace(STREAM, down=True)
    return (
        ("quic stream down", down, 1.15, "bit/s", PINNED),
        ("quic stream up", STREAM, 1.0, "bit/s", PINNED),
        ("quic stream down 2 connections", replace(down, flows=2), None, "bit/s", FREE),
        ("quic stream up 2 connections", replace(STREAM, flows=2), None, "bit/s", FREE),
        ("quic stream down 10 connections", replace(down, **MANY), 1.05, "bit/s", FREE),
        ("quic stream up 10 connections", replace(STREAM, **MANY), None, "bit/s", FREE),
        ("quic rr", REQUESTS, 1.0, "transactions/s", PINNED),
        ("quic rr --busy-poll", replace(REQUESTS, spin=True), 1.8, "transactions/s", SPLIT),
        ("quic rr 10 connections", replace(REQUESTS, **MANY), 2.0, "transactions/s", FREE),
        ("quic rr 100 streams", HUNDRED, 2.0, "transactions/s", PINNED),
        ("quic connect", CONNECT, 1.3, "connections/s", PINNED),
        ("quic connect 16 flows", replace(CONNECT, flows=16), 1.3, "connections/s", PINNED),
        ("quic connect RSA", replace(CONNECT, rsa=True), 1.3, "connections/s", PINNED),
        ("quic connect RSA 16 flows", replace(CONNECT, rsa=True, flows=16), 1.3, "connections/s",
         PINNED),
    )


def _equal_rows():
    """linerate with packets as long as secnetperf's, as over Ethernet: what of a ratio isn't their
    length. s2n-quic's packets are as long as it is told."""
    def equal(work):
        return replace(work, packet=Secnetperf.packet_bytes)

    rows = [against(Secnetperf, f"{name} equal packets", equal(work), None, figure,
                    placements=SPLIT if placements == PINNED else placements)
            for name, work, _, figure, placements in _beside_secnetperf() if name in EQUAL]
    for name, work in (("down", replace(STREAM, down=True)), ("up", STREAM)):
        name = f"quic stream {name} equal packets"
        rows += [against(S2nPerf, name, equal(work), None, "bit/s", placements=SPLIT),
                 against(S2nPerf, f"CPU of {name}", equal(work), 1.0, "bit/s", measure="cpu", placements=SPLIT)]
    return rows


def _latency_rows():
    """Percentiles of the requests' latency, of which less is better. With equal work, where both
    ends of either pair open a stream for each request, they are for information."""
    rows = []
    for name, work, percentiles, placements in (
        ("quic rr", REQUESTS, ((50, 1.0), (99, None)), SPLIT),
        ("quic rr --busy-poll", replace(REQUESTS, spin=True), ((50, None), (99, None)), SPLIT),
        ("quic rr 10 connections", replace(REQUESTS, **MANY), ((50, 1.0), (99, 1.0)), FREE),
        ("quic rr 100 streams", HUNDRED, ((50, 1.0), (99, 1.0)), SPLIT),
    ):
        rows += [against(Secnetperf, f"p{percentile} of {name}", replace(work, percentile=percentile),
                         bar, "us", measure="latency", placements=placements)
                 for percentile, bar in percentiles]
    for name, work, placements in (
        ("rps", REQUESTS, SPLIT),
        ("rps 10 connections", replace(REQUESTS, **MANY), FREE),
        ("rps 100 streams", HUNDRED, SPLIT),
    ):
        rows += [replacing(OurSecnetperf, Secnetperf, f"{name} p{percentile}",
                           replace(work, percentile=percentile), None, "us", measure="latency",
                           placements=placements)
                 for percentile in (50, 99)]
    return rows


def _other_peers():
    """quinn's and s2n-quic's perf programs."""
    down = replace(STREAM, down=True)
    ten = replace(REQUESTS, **MANY)
    return [
        against(peer, name, work, bar, figure, placements=placements)
        for peer, name, work, bar, figure, placements in (
            (QuinnPerf, "quic stream down", down, 1.25, "bit/s", SPLIT),
            (QuinnPerf, "quic stream up", STREAM, 1.25, "bit/s", SPLIT),
            (S2nPerf, "quic stream down", down, 1.0, "bit/s", SPLIT),
            (S2nPerf, "quic stream up", STREAM, 1.0, "bit/s", SPLIT),
            (S2nPerf, "quic rr", REQUESTS, 1.0, "transactions/s", SPLIT),
            (S2nPerf, "quic rr 10 connections", ten, 1.3, "transactions/s", FREE),
        )
    ]


def _shard_rows():
    """Unpinned, so that two threads have two processors; secnetperf has what it takes unasked. A
    connection is one thread's, so that a row of one has no second."""
    return [
        against(Secnetperf, f"{name} --threads {threads}", replace(work, threads=threads), None,
                figure, placements=FREE)
        for name, work, _, figure, _ in _beside_secnetperf() if not work.rsa
        for threads in SHARDS if threads <= work.connections
    ]
