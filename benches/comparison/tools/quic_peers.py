"""The perf programs of quinn and s2n-quic: QUIC streams, and s2n-quic's requests."""

import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ..process import RunFailed, free_port
from .tool import Measured, Tool

LONGEST_BYTES = 10**12  # more than any run moves
FIRST_BYTES = 100_000_000
FIRST_REQUESTS = 2000
EMPTY_RUNS = 3
LEAST_S = 1.0  # an end is noticed up to 20 ms late
PACKET_BYTES = 9000  # of IP, as long as linerate's over loopback
HEADER_BYTES = 28  # of IP and UDP


class QuinnPerf(Tool):
    """quinn's perf, whose runs take whole seconds. It sends and receives what one request has."""

    name = "quinn"
    kinds = ("quic_stream",)
    chooses_congestion = False  # cubic, as linerate over QUIC
    packet_bytes = 1452

    def refusal(self, work, network):
        if work.flows > 1:
            return "quinn's perf client has one connection"
        return super().refusal(work, network)

    def launch(self, work):
        self.port = free_port()
        argv = [self.path, "server", "--listen", f"{self.placement.address}:{self.port}"]
        self.serve(argv, self.port, "udp")

    def client_argv(self, work):
        # Where it writes the intervals.
        self.intervals = tempfile.NamedTemporaryFile(prefix="linerate-compare-", suffix=".json")
        down, up = (LONGEST_BYTES, 0) if work.down else (0, LONGEST_BYTES)
        argv = [self.path, "client", f"{self.placement.address}:{self.port}"]
        argv += ["--duration", work.whole_seconds, "--download-size", down, "--upload-size", up]
        return [*argv, "--json", self.intervals.name]

    def read_result(self, work, client):
        return parse_quinn(Path(self.intervals.name).read_text(encoding="utf-8"), work)


def parse_quinn(text, work):
    """A Measured from the intervals, the client's count; of its streams those of the direction."""
    moved, elapsed_s = 0, 0.0
    for interval in json.loads(text)["intervals"]:
        streams = [one for one in interval["streams"] if one["sender"] != work.down]
        moved += sum(one["bytes"] for one in streams)
        elapsed_s += max((one["seconds"] for one in streams), default=0.0)
    if moved == 0:
        raise RunFailed("quinn: no bytes in its intervals")
    return Measured(moved * 8 / elapsed_s, moved / 1e9)


class S2nPerf(Tool):
    """s2n-quic's perf, which prints no figures: a run is so much work as takes about as long as is
    asked for, and its time is the program's, less that of a connection that does nothing."""

    name = "s2n-quic"
    kinds = ("quic_stream", "quic_rr")
    chooses_congestion = False  # by an option that is given here: cubic

    def __init__(self, *paths):
        super().__init__(*paths)
        self.amount = 0  # bytes or requests of a connection
        self.empty_s = 0.0

    def refusal(self, work, network):
        if work.streams > 1 or work.spin:
            return "s2n-quic's perf client has one stream at a time, and doesn't spin"
        return super().refusal(work, network)

    def start_server(self, placement, work):
        super().start_server(placement, work)
        connections = work.connections
        try:
            spent = [self._spent(work, 0) for _ in range(EMPTY_RUNS)]
            self.empty_s = statistics.median(spent)
            first = (FIRST_BYTES if work.is_stream else FIRST_REQUESTS) // connections
            took_s = max(self._spent(work, first) - self.empty_s, 0.01)
            self.amount = max(int(first * max(work.seconds, LEAST_S) / took_s), 1)
        except RunFailed:
            self.stop()
            raise

    def _spent(self, work, amount):
        """Seconds of a run that has so much to do, all of whose CPU is counted as preparation."""
        self.amount, self.empty_s = amount, 0.0
        measured = self.run(replace(work, seconds=2.0))
        self.prepared_cpu_s += measured.cpu_s
        return measured.extra["elapsed_s"]

    def launch(self, work):
        self.port = free_port()
        argv = [self.path, "perf", "server", "--ip", self.placement.address, "--port", self.port]
        self.serve([*argv, *_common(work)], self.port, "udp")

    def client_argv(self, work):
        argv = [self.path, "perf", "client", "--ip", self.placement.address, "--port", self.port]
        argv += ["--local-ip", "0.0.0.0", "--tls", "rustls", "--disable-cert-verification"]
        argv += ["--connections", work.connections, "--concurrency", work.connections]
        if self.amount == 0:
            amounts = []
        elif work.is_stream:
            amounts = ["--receive" if work.down else "--send", self.amount]
        else:
            amounts = ["--send", work.size, "--receive", work.response or work.size]
            amounts += ["--streams", self.amount]
        self.started_s = time.monotonic()
        return [*argv, *amounts, *_common(work)]

    def read_result(self, work, client):
        elapsed_s = time.monotonic() - self.started_s
        did = self.amount * work.connections
        figure = did / max(elapsed_s - self.empty_s, 0.001)
        extra = {"elapsed_s": elapsed_s}
        if work.is_stream:
            return Measured(figure * 8, max(did, 1) / 1e9, extra=extra)
        return Measured(figure, max(did, 1), extra=extra)


def _common(work):
    # It stays at Ethernet's frames for long unless it begins with longer ones. What it takes for the
    # path's rate bounds its windows.
    packet = work.packet + HEADER_BYTES if work.packet else PACKET_BYTES
    return ["--cc", "cubic", "--initial-mtu", packet, "--max-mtu", packet, "--max-throughput", 10_000]
