"""Clients that reach their server through `linerate proxy`, all three of linerate."""

import re

from ..process import Child
from .linerate import Linerate
from .personality import OwnSecnetperf
from .tool import Tool

LISTENS = re.compile(r"proxy on (\S+), ")


class Proxied(Tool):
    """Stands first among a class's parents, before the tool whose clients come through the proxy: what isn't
    here is as there."""

    carried = ()  # the proxy's options for what it carries
    proxy = None

    @classmethod
    def parts(cls):
        return (Linerate,)

    def __init__(self, path):
        super().__init__(*(path for _ in super().parts()))

    def serving_at(self):
        """Where the server listens, HOST:PORT."""
        raise NotImplementedError

    def turn_to(self, address):
        """Has clients connect there, HOST:PORT."""
        raise NotImplementedError

    def refusal(self, work, network):
        if not re.search(r"^ +proxy ", Linerate(self.path).help_of(), re.M):
            return "this linerate has no command `proxy`"
        return super().refusal(work, network)

    def launch(self, work):
        super().launch(work)
        argv = [self.path, "proxy", self.serving_at(), "--bind", self.placement.address, "--port", "0"]
        self.proxy = Child([*argv, "--quiet", *self.carried], None, self.environment())
        self.turn_to(self.proxy.wait_for_line(_listens))

    def run(self, work):
        """One run; CPU seconds are those of all three processes, and `proxy_cpu_s` the proxy's."""
        before_s = self.proxy.cpu_so_far_s()
        measured = super().run(work)
        proxy_cpu_s = self.proxy.cpu_so_far_s() - before_s
        measured.extra["proxy_cpu_s"] = proxy_cpu_s
        measured.cpu_s += proxy_cpu_s
        return measured

    def stop(self):
        if self.proxy is not None:
            self.proxy.end()
            self.proxy = None
        super().stop()


class ProxiedQuic(Proxied, OwnSecnetperf):
    """secnetperf's loads: they have one connection, over which the native protocol has two."""

    name = "proxy quic"
    kinds = ("quic_stream", "quic_rr")
    carried = ("--alpn", "perf")

    def serving_at(self):
        return f"{self.placement.address}:{self.port}"

    def turn_to(self, address):
        self.port = int(address.rpartition(":")[2])


class ProxiedTcp(Proxied, Linerate):
    """The native protocol, of which every connection goes to one port."""

    name = "proxy tcp"
    kinds = ("tcp_stream", "tcp_rr")
    carried = ("--tcp",)

    def serving_at(self):
        return self.address

    def turn_to(self, address):
        self.address = address


def _listens(line):
    match = LISTENS.match(line)
    return match and match[1]
