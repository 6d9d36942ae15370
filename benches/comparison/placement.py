"""Where the two ends of a run stand: processors and network."""

import os
from dataclasses import dataclass

from .network import FAR_ADDRESS, LOOPBACK


@dataclass(frozen=True)
class Placement:
    """Whole processes are pinned; None: to no processor."""

    name: str
    server_cpu: int | None
    client_cpu: int | None
    address: str = LOOPBACK  # where the server listens
    namespace: int | None = None  # an open network namespace that the server enters

    @property
    def processors(self):
        """How many each end may use, for tools whose threads are chosen by hand."""
        return os.cpu_count() if self.client_cpu is None else 1


NAMES = ("same", "split", "free", "veth")


def placement(name, network):
    """The placement of that name; a veth pair is made when it is first needed."""
    if name == "same":
        return Placement(name, 0, 0)
    if name == "split":
        return Placement(name, 0, 1)
    if name == "free":
        return Placement(name, None, None)
    return Placement(name, 0, 1, FAR_ADDRESS, network.far_namespace())


def obstacle(name, network):
    """Why a placement can't be had here, or None."""
    if name == "veth" and not network.private:
        return "a veth pair needs root and iproute2"
    processors = {"same": {0}, "free": set()}.get(name, {0, 1})
    missing = processors - os.sched_getaffinity(0)
    return f"placement {name} needs processor {min(missing)}" if missing else None
