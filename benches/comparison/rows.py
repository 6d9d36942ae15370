"""The rows: what is compared with what, and the bar that the median must reach."""

from dataclasses import dataclass, replace

from .tools import BareLoop, Iperf3, Linerate, Work

BULK_BYTES = 128 * 1024
UDP_RR_BYTES = 16  # linerate numbers its UDP transactions: 16 bytes are its least


@dataclass
class Row:
    """One comparison. `bar` is the least median ratio; None: for information only."""

    name: str
    ours: tuple  # (tool class, Work)
    theirs: tuple
    bar: float | None
    figure: str  # what the ratio is of
    measure: str = "ratio"  # or "loss", "memory", "first_byte"


def _against_loop(name, work, bar, figure):
    return Row(f"{name} / C loop", (Linerate, work), (BareLoop, work), bar, figure)


def _against_iperf3(name, work, bar, figure, measure="ratio"):
    return Row(f"{name} / iperf3", (Linerate, work), (Iperf3, work), bar, figure, measure)


def all_rows():
    """Every row, in the order of the table."""
    bulk = Work("tcp_stream", BULK_BYTES)
    rr_tcp = Work("tcp_rr", 1)
    rr_udp = Work("udp_rr", UDP_RR_BYTES)
    udp_64 = Work("udp_stream", 64)
    udp_1400 = Work("udp_stream", 1400)
    return [
        _against_loop("tcp stream", bulk, 0.97, "bit/s"),
        _against_iperf3("tcp stream", bulk, 1.0, "bit/s"),
        Row(
            "tcp stream --verify / without",
            (Linerate, replace(bulk, verify=True)),
            (Linerate, bulk),
            0.9,
            "bit/s",
        ),
        _against_iperf3("udp stream 64 B", udp_64, 50, "packets/s"),
        _against_iperf3("udp stream 1400 B", udp_1400, 8, "packets/s"),
        _against_loop("udp stream 64 B", udp_64, None, "packets/s"),
        _against_loop("udp stream 1400 B", udp_1400, None, "packets/s"),
        _against_iperf3("udp loss 64 B at the peer's best", udp_64, 0, "loss", "loss"),
        _against_iperf3("udp loss 1400 B at the peer's best", udp_1400, 0, "loss", "loss"),
        _against_loop("tcp rr waiting", rr_tcp, 0.97, "transactions/s"),
        _against_loop("tcp rr spinning", replace(rr_tcp, spin=True), 0.97, "transactions/s"),
        _against_loop("udp rr waiting", rr_udp, 0.97, "transactions/s"),
        _against_loop("udp rr spinning", replace(rr_udp, spin=True), 0.97, "transactions/s"),
        Row("memory over 60 s", (Linerate, bulk), (None, None), 1 << 20, "bytes", "memory"),
        Row("start to first byte", (Linerate, bulk), (None, None), 0.020, "s", "first_byte"),
    ]


def self_check_rows():
    """The C loop against itself: what is not 1 here is the method's own error."""
    rows = []
    for kind, size, figure in (
        ("tcp_stream", BULK_BYTES, "bit/s"),
        ("udp_stream", 64, "packets/s"),
        ("tcp_rr", 1, "transactions/s"),
        ("udp_rr", UDP_RR_BYTES, "transactions/s"),
    ):
        side = (BareLoop, Work(kind, size))
        rows.append(Row(f"self-check {kind}", side, side, 0.95, figure))
    tcp = Work("tcp_stream", BULK_BYTES)
    rows.append(Row("C loop / iperf3", (BareLoop, tcp), (Iperf3, tcp), None, "bit/s"))
    return rows
