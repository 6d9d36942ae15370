"""sockperf in ping-pong mode, the yardstick of latency."""

import re

from ..process import RunFailed, free_port
from .tool import Measured, Tool

LEAST_BYTES = 14
VALID = re.compile(r"\[Valid Duration\] RunTime=([\d.]+) sec; "
                   r"SentMessages=(\d+); ReceivedMessages=(\d+)")


class Sockperf(Tool):
    """Spinning is `--nonblocked` at both ends."""

    name = "sockperf"
    kinds = ("tcp_rr", "udp_rr")

    def one_shot(self, work):
        # A server that spins would use up a processor while the other side runs.
        return True

    def finish_server(self, work):
        self.server.end()

    def launch(self, work):
        self.port = free_port()
        self.serve([self.path, "server", *self._both(work)], self.port, work.transport)

    def _both(self, work):
        argv = ["-i", self.placement.address, "-p", self.port]
        argv += ["--tcp"] if work.transport == "tcp" else []
        return argv + (["--nonblocked"] if work.spin else [])

    def client_argv(self, work):
        argv = [self.path, "ping-pong", *self._both(work), "--full-rtt"]
        return argv + ["-t", work.whole_seconds, "-m", max(work.size, LEAST_BYTES)]

    def read_result(self, work, client):
        return parse_sockperf(client.output())


def parse_sockperf(text):
    """A Measured from the answers within the time that it calls valid, warm-up left out."""
    match = VALID.search(text)
    if not match or float(match[1]) <= 0:
        raise RunFailed("sockperf: no valid duration in its output")
    answers = int(match[3])
    return Measured(answers / float(match[1]), answers)
