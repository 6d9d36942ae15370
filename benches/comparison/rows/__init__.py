"""The rows, in the order of the table."""

import fnmatch

from ..tools import BareLoop, Work
from .before import before_rows
from .personalities import personality_rows
from .proxy import proxy_rows
from .quic import quic_rows
from .regression import regression_rows
from .row import Row, against, alone, self_check_rows
from .tcp import BULK, tcp_rows
from .transactions import connect_rows, rr_rows
from .udp import udp_rows

__all__ = ["Row", "all_rows", "regression_rows", "self_check_rows", "selected"]


def all_rows():
    """Every row."""
    own = [
        alone("memory over 60 s", BULK, 1 << 20, "bytes", "memory", placements=("split",)),
        alone("start to first byte", BULK, 0.020, "s", "first_byte"),
        against(BareLoop, "cost growth", Work("tcp_rr", 1), 0.8, "transactions/s",
                measure="growth", placements=("split",)),
    ]
    peers = [*tcp_rows(), *udp_rows(), *rr_rows(), *connect_rows(), *quic_rows()]
    return [*peers, *personality_rows(), *proxy_rows(), *own, *before_rows()]


def selected(rows, patterns):
    """The rows that match a pattern, or have it as a part of their name; all without patterns."""
    if not patterns:
        return rows
    wanted = set()
    for text in patterns:
        # A name may have a comma: what a row matches as a whole is no list.
        parts = [text] if _matching(rows, text) else text.split(",")
        wanted.update(row.name for part in parts for row in _matching(rows, part))
    return [row for row in rows if row.name in wanted]


def _matching(rows, pattern):
    pattern = pattern.strip().lower()
    return [row for row in rows
            if fnmatch.fnmatchcase(row.name.lower(), pattern) or pattern in row.name.lower()]
