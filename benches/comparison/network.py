"""Where the traffic runs: loopback of a network namespace of this command's own, or a veth pair
between two. Nothing of the host's network is changed, and the kernel removes both namespaces with
the processes in them, however these end.

The congestion control of tools that can't choose one comes from the route (ip-route(8), congctl).
"""

import os
import shutil

from . import machine
from .process import LIBC, Child, RunFailed

CLONE_NEWNET = 0x40000000
LOOPBACK = "127.0.0.1"
# RFC 2544 sets 198.18.0.0/15 aside for benchmarks. getaddrinfo(AI_ADDRCONFIG), as netperf calls it,
# finds no IPv4 where only loopback addresses are.
OWN_ADDRESS = "198.18.0.1"
NEAR_ADDRESS, FAR_ADDRESS = "198.18.1.1", "198.18.1.2"
EPHEMERAL_PORTS = "16384 65535"


class Network:
    """This command's network: `private` when it has a namespace of its own."""

    def __init__(self, congestion, private):
        self.congestion = congestion
        self.private = private
        self._holder = None
        self._far = None

    def chooses_congestion(self):
        """Whether every connection uses the congestion control that was asked for, whatever the
        tool does."""
        host = machine.host_congestion()
        return self.private or self.congestion in (None, host)

    def far_namespace(self):
        """An open file of the namespace at the other end of a veth pair, made when first asked."""
        if self._far is None:
            self._make_veth_pair()
        return self._far

    def close(self):
        """Ends the process that keeps the far namespace alive."""
        if self._holder is not None:
            os.close(self._far)
            self._holder.end()
            self._holder = self._far = None

    def _make_veth_pair(self):
        # The holder starts in a namespace of its own by way of unshare(1).
        self._holder = Child(["unshare", "--net", "sh", "-c", "echo ready; exec sleep 1000000"])
        self._holder.wait_for_line(lambda line: True if line == "ready" else None)
        self._far = os.open(f"/proc/{self._holder.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _ip("link add near type veth peer name far netns", self._holder.pid)
        for name, address, namespace in (("near", NEAR_ADDRESS, None),
                                         ("far", FAR_ADDRESS, self._far)):
            _ip(f"address add {address}/30 dev {name}", namespace=namespace)
            _ip("link set lo up", namespace=namespace)
            _ip(f"link set {name} up", namespace=namespace)
            if self.congestion:
                _ip(f"route change 198.18.1.0/30 dev {name} proto kernel scope link src {address}"
                    f" congctl {self.congestion}", namespace=namespace)


def enter(congestion, wanted=True):
    """Moves this process, and so every later child, to a namespace of its own where it may."""
    able = wanted and os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare")
    if not able or LIBC.unshare(CLONE_NEWNET) != 0:
        return Network(congestion, private=False)
    _ip("link set lo up")
    _ip(f"address add {OWN_ADDRESS}/32 dev lo")
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as ports:
        ports.write(EPHEMERAL_PORTS)
    if congestion:
        for destination in ("127.0.0.0/8", "127.0.0.1"):
            _ip(f"route change local {destination} dev lo table local proto kernel scope host"
                f" src 127.0.0.1 congctl {congestion}")
    return Network(congestion, private=True)


def _ip(words, *more, namespace=None):
    command = Child(["ip", *words.split(), *more], namespace=namespace)
    if command.wait(10.0) != 0:
        raise RunFailed(f"ip {words}: {command.errors()}")
