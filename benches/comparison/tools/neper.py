"""neper: one program a workload, the same at both ends."""

import os

from ..process import RunFailed, free_port
from .tool import GRACE_S, Measured, Tool

SAMPLES_S = "0.1"  # its rate runs from its first sample to its last: with 1 s much is left out


class Neper(Tool):
    """Its server serves one run; both ends must be told the same flows, threads and time."""

    name = "neper"
    kinds = ("tcp_stream", "tcp_rr", "udp_rr", "tcp_crr")

    def one_shot(self, work):
        return True

    def launch(self, work):
        # UDP takes a port a flow.
        self.port = free_port(1 + (work.flows if work.transport == "udp" else 1))
        self.serve([*self._both(work), "-H", self.placement.address], self.port)

    def _both(self, work):
        threads = min(work.flows, self.placement.processors)
        argv = [os.path.join(os.path.dirname(self.path), work.kind), "--nolog"]
        argv += ["-C", self.port, "-P", self.port + 1, "-l", work.whole_seconds]
        argv += ["-F", work.flows, "-T", threads, "-I", SAMPLES_S, "--listen-backlog", 4096]
        if work.is_stream:
            argv += ["-B", work.size]
        else:
            argv += ["-Q", work.size, "-R", work.size]
        if work.kind == "tcp_crr" and work.close == "fin":
            argv += ["--time-wait"]
        if work.transport == "tcp" and work.congestion:
            argv += ["--congestion-control", work.congestion]
        return argv

    def client_argv(self, work):
        return [*self._both(work), "-c", "-H", self.placement.address]

    def finish_server(self, work):
        self.server.wait(GRACE_S)

    def read_result(self, work, client):
        text = self.server.output() if work.is_stream else client.output()
        return parse_neper(text, work.is_stream)


def parse_neper(text, is_stream):
    """A Measured from the keys of the end that counts: a stream's receiver, a client else."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        elapsed_s = float(values["time_end"]) - float(values["time_start"])
        if is_stream:
            bits_per_s = float(values["local_throughput"])
            return Measured(bits_per_s, bits_per_s * elapsed_s / 8e9)
        return Measured(float(values["throughput"]), int(values["num_transactions"]))
    except KeyError as missing:
        raise RunFailed(f"neper: no {missing} in its output") from missing
