"""A row: what is compared with what, where, and the bar that the median must reach."""

from dataclasses import dataclass

from ..tools import BareLoop, Linerate, Work

PINNED = ("same", "split")


@dataclass(frozen=True)
class Row:
    """One comparison. `bar` is the least median ratio, or the most of what `measure` says is
    better small; None: for information only. Of "growth" it is the least share of linerate's own rate."""

    name: str
    ours: tuple  # (tool class, Work)
    theirs: tuple  # (None, None) where linerate alone is measured
    bar: float | None
    figure: str  # what the ratio is of
    # or "cpu", "latency", "loss", "memory", "first_byte", "percentile", "sides", "growth", "crowd"; of the proxy
    # "relay_cpu", "added", "relay_cost", "slow_receiver"
    measure: str = "ratio"
    placements: tuple = PINNED
    fraction: float = 1.0  # of the peer's best received rate, for "loss"

    @property
    def tools(self):
        """The classes of the tools that it needs."""
        return [part for tool, _ in (self.ours, self.theirs) if tool is not None
                for part in tool.parts()]

    @property
    def has_longer_packets(self):
        """Whether linerate's QUIC packets are longer than the peer's can be. Connections that come and go
        don't search for longer packets."""
        _, work = self.ours
        peer, _ = self.theirs
        return (work.transport == "quic" and work.kind != "quic_crr" and work.packet is None
                and peer is not None and peer.packet_bytes is not None)


def against(peer, name, work, bar, figure, **more):
    """linerate beside a peer, both with the same work."""
    return Row(f"{name} / {peer.name}", (Linerate, work), (peer, work), bar, figure, **more)


def replacing(personality, peer, name, work, bar, figure, **more):
    """linerate in the place of a tool, at both ends or at one, beside the original pair."""
    return Row(f"{personality.name} {name} / {peer.name}", (personality, work), (peer, work), bar,
               figure, **more)


def alone(name, work, bar, figure, measure, tool=Linerate, **more):
    """linerate by itself."""
    return Row(name, (tool, work), (None, None), bar, figure, measure, **more)


def self_check_rows():
    """The C loop against itself: what is not 1 here is the method's own error."""
    rows = []
    for kind, size, figure in (
        ("tcp_stream", 128 * 1024, "bit/s"),
        ("udp_stream", 64, "packets/s"),
        ("tcp_rr", 1, "transactions/s"),
        ("udp_rr", 16, "transactions/s"),
        ("tcp_crr", 1, "connections/s"),
    ):
        side = (BareLoop, Work(kind, size))
        rows.append(Row(f"self-check {kind}", side, side, 0.95, figure))
    return rows
