"""netperf, whose netserver stands in the same directory."""

import os

from ..process import RunFailed, free_port
from .tool import Measured, Tool

TESTS = {"tcp_stream": "TCP_STREAM", "tcp_rr": "TCP_RR", "udp_rr": "UDP_RR", "tcp_crr": "TCP_CRR"}
KEYS = "THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD"


class Netperf(Tool):
    """One flow a process. In TCP_CRR its server closes first (seen in ss)."""

    name = "netperf"
    forks = False  # a process for each test, as netserver does unasked
    kinds = tuple(TESTS)

    def launch(self, work):
        self.port = free_port()
        argv = [*self.words("server"), "-D", "-L", self.placement.address, "-p", self.port]
        self.serve(argv, self.port)

    def words(self, end):
        if end == "client":
            return [self.path]
        program = os.path.join(os.path.dirname(self.path), "netserver")
        # -f: no child a test; its CPU time would be nobody's, since netserver ignores SIGCHLD.
        return [program] if self.forks else [program, "-f"]

    def client_argv(self, work):
        argv = [*self.words("client"), "-H", self.placement.address, "-p", self.port, "-P", "0"]
        argv += ["-l", work.whole_seconds, "-t", TESTS[work.kind], "--", "-k", KEYS]
        if work.is_stream and work.size is not None:
            argv += ["-m", work.size, "-M", max(work.size, 131072)]
        elif not work.is_stream:
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
        per_s = float(values["THROUGHPUT"])
        if not is_stream:
            return Measured(per_s, per_s * float(values["ELAPSED_TIME"]))
        if values["THROUGHPUT_UNITS"] != "10^6bits/s":
            raise RunFailed(f"netperf: a throughput in {values['THROUGHPUT_UNITS']}")
        # Its elapsed time has two decimals only, so what was received is put in proportion.
        received = int(values["REMOTE_BYTES_RECVD"])
        share = received / max(int(values["LOCAL_BYTES_SENT"]), 1)
        return Measured(per_s * 1e6 * share, received / 1e9)
    except KeyError as missing:
        raise RunFailed(f"netperf: no {missing} in its output") from missing
