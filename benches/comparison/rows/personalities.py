"""linerate in the place of other tools, beside the originals with the same options."""

from dataclasses import replace

from ..tools import (BareLoop, CtsTrafficOneWay, Iperf3New, Linerate, Netperf, OurCtsTraffic, OurIperf3,
                     OurIperf3Client, OurIperf3Server, OurNetperf, OurNetperfClient, OurNetserver,
                     OurSecnetperf, Secnetperf, Work)
from .quic import REQUESTS, STREAM
from .row import PINNED, Row, alone, replacing

BULK = Work("tcp_stream", 128 * 1024)
FREE = ("free",)
LONG_S = 600.0  # longer than a thousand tests take to begin


def personality_rows():
    """Every tool whose place linerate takes."""
    return [*_netperf_rows(), *_iperf3_rows(), *_secnetperf_rows(), *_ctstraffic_rows()]


def _netperf_rows():
    return [
        replacing(ours, Netperf, name, work, bar, figure)
        for ours in (OurNetperf, OurNetperfClient, OurNetserver)
        for name, work, bar, figure in (
            ("TCP_STREAM", replace(BULK, size=None), 1.0, "bit/s"),
            ("TCP_STREAM -m 131072", BULK, 1.0, "bit/s"),
            ("TCP_RR", Work("tcp_rr", 1), 0.97, "transactions/s"),
            ("UDP_RR", Work("udp_rr", 1), 0.97, "transactions/s"),
            ("TCP_CRR", Work("tcp_crr", 1), 1.0, "connections/s"),
        )
    ] + [
        replacing(OurNetperf, Netperf, f"{name} --busy-poll", Work(kind, 1, spin=True), 1.0,
                  "transactions/s", placements=("split",))
        for name, kind in (("TCP_RR", "tcp_rr"), ("UDP_RR", "udp_rr"))
    ] + [
        replacing(OurNetserver, Netperf, "memory of 1,000 tests",
                  Work("tcp_rr", 1, seconds=LONG_S), 1.0, "resident bytes", measure="crowd",
                  placements=FREE)
    ]


def _iperf3_rows():
    rows = []
    for ours in (OurIperf3, OurIperf3Client, OurIperf3Server):
        for flows, placements in ((1, PINNED), (8, FREE), (128, FREE)):
            rows.append(replacing(ours, Iperf3New, f"-P {flows}", replace(BULK, flows=flows), 1.0,
                                  "bit/s", placements=placements))
        for size in (64, 1400):
            rows.append(replacing(ours, Iperf3New, f"-u -l {size}",
                                  Work("udp_stream", size), 1.0, "packets/s"))
    return rows


def _secnetperf_rows():
    """The perf dialect over QUIC is for information but in clear: its bars are those of `quic ...`,
    where linerate's own words are used. What a client sends goes in packets as long as its
    interface carries, but in rows with equal packets."""
    framed = Work("framed_stream", None)
    framed_requests = replace(REQUESTS, kind="framed_rr")
    down = replace(STREAM, down=True)
    return [
        replacing(OurSecnetperf, Secnetperf, name, work, bar, figure)
        for name, work, bar, figure in (
            ("-tcp:1 down", replace(framed, down=True), 1.5, "bit/s"),
            ("-tcp:1 up", framed, 1.5, "bit/s"),
            ("-tcp:1 rps", framed_requests, 1.5, "transactions/s"),
            ("-encrypt:0 down", replace(down, clear=True), 1.05, "bit/s"),
            ("-encrypt:0 up", replace(STREAM, clear=True), 1.05, "bit/s"),
            ("-encrypt:0 up equal packets",
             replace(STREAM, clear=True, packet=Secnetperf.packet_bytes), None, "bit/s"),
            ("down", down, None, "bit/s"),
            ("up", STREAM, None, "bit/s"),
            ("up equal packets", replace(STREAM, packet=Secnetperf.packet_bytes), None, "bit/s"),
            ("rps", REQUESTS, None, "transactions/s"),
            ("rps 100 streams", replace(REQUESTS, flows=100, streams=100), None,
             "transactions/s"),
            ("hps", Work("quic_crr", None), None, "connections/s"),
        )
    ]


def _ctstraffic_rows():
    """The original doesn't run here. Transfers are verified, and held against linerate's own streams that
    aren't; short connections that the client resets against a bare loop with as many at once; media streams against a bare loop, and by the processors of the busier end."""
    plain = Work("tcp_stream", 64 * 1024, flows=8)
    verified, name = replace(plain, verify=True), OurCtsTraffic.name
    rows = [
        Row(f"{name} {pattern} / {Linerate.name}", (OurCtsTraffic, replace(verified, down=down)),
            (Linerate, replace(plain, down=down)), 0.9, "bit/s", placements=FREE)
        for pattern, down in (("push", False), ("pull", True))
    ]
    both = replace(verified, both=True)
    rows.append(Row(f"{name} duplex / {CtsTrafficOneWay.name}", (OurCtsTraffic, both),
                    (CtsTrafficOneWay, both), 0.9, "bit/s", placements=FREE))
    short = Work("tcp_short", 64, flows=8)
    rows.append(Row(f"{name} short connections / {BareLoop.name}", (OurCtsTraffic, short), (BareLoop, short), 0.9,
                    "connections/s"))
    stream = Work("udp_media", 1400)
    rows.append(alone(f"{name} 1,000 streams", replace(stream, flows=1000), 0.6, "processors", "sides",
                      tool=OurCtsTraffic, placements=FREE))
    late = replace(stream, percentile=99)
    rows.append(Row(f"{name} p99 of send delay / {BareLoop.name}", (OurCtsTraffic, late),
                    (BareLoop, replace(late, size=1448)), 1.5, "us", measure="latency",
                    placements=("split",)))
    rows.append(alone(f"{name} p99 of send delay --busy-poll", replace(late, spin=True), 100, "us",
                      "percentile", tool=OurCtsTraffic, placements=("split",)))
    return rows
