"""netperf, whose netserver stands in the same directory."""

import os

from ..process import RunFailed, free_port
from .tool import Measured, Tool

TESTS = {"tcp_stream": "TCP_STREAM", "tcp_rr": "TCP_RR", "udp_rr": "UDP_RR", "tcp_crr": "TCP_CRR"}
KEYS = "THROUGHPUT,ELAPSED_TIME,REMOTE_BYTES_RECVD"


class Netperf(Tool):
    """One flow a process. In TCP_CRR its server closes first (seen in ss)."""

    name = "netperf"
    kinds = tuple(TESTS)

    def launch(self, work):
        self.port = free_port()
        server = os.path.join(os.path.dirname(self.path), "netserver")
        # -f: no child a test; its CPU time would be nobody's, since netserver ignores SIGCHLD.
        argv = [server, "-D", "-f", "-L", self.placement.address, "-p", self.port]
        self.serve(argv, self.port)

    def client_argv(self, work):
        argv = [self.path, "-H", self.placement.address, "-p", self.port, "-P", "0"]
        argv += ["-l", work.whole_seconds, "-t", TESTS[work.kind], "--", "-k", KEYS]
        if work.is_stream:
            argv += ["-m", work.size, "-M", max(work.size, 131072)]
        else:
            argv += ["-r", f"{work.size},{work.size}"]
        if work.transport == "tcp" and work.congestion:
            argv += ["-K", f"{work.congestion},{work.congestion}"]
        return argv

    def read_result(self, work, client):
        return parse_netperf(client.output(), work.is_stream)


def parse_netperf(text, is_stream):
    """A Measured from keyval output."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        elapsed_s = float(values["ELAPSED_TIME"])
        if not is_stream:
            per_s = float(values["THROUGHPUT"])
            return Measured(per_s, per_s * elapsed_s)
        received = int(values["REMOTE_BYTES_RECVD"])
        return Measured(received * 8 / elapsed_s, received / 1e9)
    except KeyError as missing:
        raise RunFailed(f"netperf: no {missing} in its output") from missing
