"""nuttcp and ethr, which can't be told a congestion control."""

import re

from ..process import RunFailed, free_port
from .tool import Measured, Tool


class Nuttcp(Tool):
    """nuttcp, its server in the foreground and without children (with -1 it would detach)."""

    name = "nuttcp"
    kinds = ("tcp_stream",)
    chooses_congestion = False

    def launch(self, work):
        self.port = free_port(1 + work.flows)
        self.serve([self.path, "-Sf", "--nofork", "-P", self.port], self.port)

    def client_argv(self, work):
        argv = [self.path, "-t", "-P", self.port, "-p", self.port + 1, f"-l{work.size}"]
        argv += [f"-N{work.flows}"] if work.flows > 1 else []
        return [*argv, f"-T{work.seconds:g}", "-fparse", self.placement.address]

    def read_result(self, work, client):
        return parse_nuttcp(client.output() + client.errors())


def parse_nuttcp(text):
    """A Measured from -fparse, which gives the receiver's figures; a megabyte has 2^20 bytes. Of
    more flows than it can have it only says so, and goes on with those."""
    if "MAXSTREAM" in text:
        raise RunFailed("nuttcp: more flows than it can have (128)")
    values = dict(pair.split("=", 1) for pair in text.split() if "=" in pair)
    try:
        return Measured(float(values["rate_Mbps"]) * 1e6, float(values["megabytes"]) * 2**20 / 1e9)
    except KeyError as missing:
        raise RunFailed(f"nuttcp: no {missing} in its output") from missing


class Ethr(Tool):
    """ethr, which prints rates for each second, as the sender counts."""

    name = "ethr"
    kinds = ("tcp_stream",)
    chooses_congestion = False

    def launch(self, work):
        self.port = free_port()
        argv = [self.path, "-s", "-ip", self.placement.address, "-port", self.port, "-no"]
        self.serve(argv, self.port)

    def client_argv(self, work):
        argv = [self.path, "-c", self.placement.address, "-port", self.port, "-no", "-dp", 2]
        return argv + ["-d", f"{work.whole_seconds}s", "-l", f"{work.size}B", "-n", work.flows]

    def read_result(self, work, client):
        return parse_ethr(client.output(), work.flows)


SECOND = re.compile(r"^\[ *(SUM|\d+) *\] +TCP +(\d+)-(\d+) sec +([\d.]+)([KMGT]?)\s*$", re.M)
PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def parse_ethr(text, flows):
    """A Measured from the client's table: the mean of its seconds."""
    lines = [line for line in SECOND.findall(text) if flows == 1 or line[0] == "SUM"]
    if not lines:
        raise RunFailed("ethr: no second was reported")
    bits_per_s = sum(float(rate) * PREFIXES[prefix] for *_, rate, prefix in lines) / len(lines)
    return Measured(bits_per_s, bits_per_s * len(lines) / 8e9)
