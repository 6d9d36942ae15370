"""`linerate proxy` beside the same load without it."""

from dataclasses import replace

from ..tools import Linerate, OwnSecnetperf, ProxiedQuic, ProxiedTcp
from .quic import REQUESTS, STREAM
from .row import Row, alone
from .tcp import BULK
from .transactions import TCP as TCP_REQUESTS

FREE = ("free",)
SLOW_GROWTH_BYTES = 1 << 20


def proxy_rows():
    """Rates; what the proxy costs beside both ends of a direct run, which receive once and send once; what it adds
    to a request; its memory while a receiver is slow."""
    return [
        row
        for proxied, direct, stream, requests in (
            (ProxiedQuic, OwnSecnetperf, STREAM, REQUESTS),
            (ProxiedTcp, Linerate, BULK, TCP_REQUESTS),
        )
        for row in _rows_of(proxied, direct, stream, requests)
    ]


def _rows_of(proxied, direct, stream, requests):
    name, down = proxied.name, replace(stream, down=True)
    median = replace(requests, percentile=50)
    return [
        *(_beside(proxied, direct, f"{name} {way}", work, 0.42, "bit/s")
          for way, work in (("down", down), ("up", stream))),
        *(_beside(proxied, direct, f"CPU of {name} {way}", work, 1.1, "bit/s", "relay_cpu")
          for way, work in (("down", down), ("up", stream))),
        _beside(proxied, direct, f"added p50 of {name} rr", median, 1.0, "us", "added"),
        alone(f"CPU of a request of {name} rr", requests, None, "us", "relay_cost", proxied, placements=FREE),
        alone(f"memory of {name}, slow receiver", down, SLOW_GROWTH_BYTES, "bytes", "slow_receiver", proxied,
              placements=FREE),
    ]


def _beside(proxied, direct, name, work, bar, figure, measure="ratio"):
    return Row(f"{name} / direct", (proxied, work), (direct, work), bar, figure, measure, placements=FREE)
