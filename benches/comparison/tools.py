"""The tools that are compared. A tool is a small class: how its server starts, how one client run
is done, and where its figure stands. A new peer is a new class and its rows in rows.py."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field

from .process import Child, RunFailed, free_port

GRACE_S = 20.0


@dataclass
class Work:
    """One piece of work, in words that every tool translates into its own."""

    kind: str  # "tcp_stream", "udp_stream", "tcp_rr" or "udp_rr"
    size: int  # bytes of a call, a datagram or a message
    seconds: float = 2.0
    spin: bool = False
    verify: bool = False
    rate_bps: float | None = None
    mode: str = "offload"  # of the C UDP loop
    congestion: str | None = None


@dataclass
class Measured:
    """What came out of one run."""

    figure: float  # bit/s, packets/s or transactions/s, by the receiver's count
    units: float  # gigabytes or transactions, what CPU time is divided by
    cpu_s: float = 0.0  # both ends, all threads
    loss: float | None = None
    extra: dict = field(default_factory=dict)


class Tool:
    """What all tools share: a server that is started once a row, and runs against it."""

    name = ""

    def __init__(self, path):
        self.path = path
        self.server = None

    def start_server(self, cpu, work):
        """Starts the server on a processor."""
        raise NotImplementedError

    def client_argv(self, work):
        """The client's command line."""
        raise NotImplementedError

    def read_result(self, work, client):
        """A Measured from the client's (and server's) output."""
        raise NotImplementedError

    def run(self, work, client_cpu):
        """One run; CPU seconds are those of both processes, whole."""
        if self.server.poll():
            raise RunFailed(f"{self.name}: the server ended with {self.server.code}")
        before_s = self.server.cpu_so_far_s()
        client = Child(self.client_argv(work), client_cpu, self.environment())
        code = client.wait(work.seconds + GRACE_S)
        if code != 0:
            detail = client.errors() or client.output()[-400:].strip()
            raise RunFailed(f"{self.name}: the client ended with {code}: {detail}")
        self.finish_server(work)
        measured = self.read_result(work, client)
        measured.cpu_s = client.cpu_s + self.server.cpu_so_far_s() - before_s
        return measured

    def finish_server(self, work):
        """Waits for a server that serves one client only."""

    def environment(self):
        """The children's environment; None: this command's own."""
        return None

    def stop(self):
        """Ends the server, if there is one."""
        if self.server is not None:
            self.server.end()
            self.server = None


class Linerate(Tool):
    """linerate itself. Its files go to a directory of this run, not to the user's home."""

    name = "linerate"
    home = None

    def environment(self):
        if Linerate.home is None:
            Linerate.home = tempfile.TemporaryDirectory(prefix="linerate-compare-")
        home = Linerate.home.name
        return dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home)

    def start_server(self, cpu, work):
        argv = [self.path, "serve", "--bind", "127.0.0.1", "--port", "0", "--ndjson"]
        self.server = Child(argv, cpu, self.environment())
        record = self.server.wait_for_line(_listening_record)
        self.address = record["address"]
        self.fingerprint = record["fingerprint"]

    def client_argv(self, work):
        command = "stream" if work.kind.endswith("stream") else "rr"
        argv = [self.path, command, self.address, "--server-key", self.fingerprint, "--json"]
        argv += ["--time", f"{work.seconds:g}s"]
        argv += ["--udp" if work.kind.startswith("udp") else "--tcp"]
        if command == "stream":
            argv += ["--up", "--size", work.size]
        else:
            argv += ["--request", work.size, "--response", work.size]
        if work.kind.startswith("tcp") and work.congestion:
            argv += ["--congestion", work.congestion]
        argv += ["--verify"] if work.verify else []
        argv += ["--busy-poll"] if work.spin else []
        argv += ["--rate", f"{int(work.rate_bps)}"] if work.rate_bps else []
        return argv

    def read_result(self, work, client):
        run = json.loads(client.output())
        summary = run["summary"]
        if work.kind.endswith("rr"):
            return Measured(summary["transactions_per_s"], summary["transactions"])
        gigabytes = summary["received_bytes"] / 1e9
        if work.kind == "udp_stream":
            extra = {"goodput_bps": summary["goodput_bps"]}
            figure = summary["datagrams_per_s"]
            return Measured(figure, gigabytes, loss=summary.get("loss_ratio"), extra=extra)
        if work.verify and summary.get("verified_bytes") != summary["received_bytes"]:
            raise RunFailed("linerate: not every received byte was verified")
        return Measured(summary["goodput_bps"], gigabytes)


def _listening_record(line):
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if record.get("record") == "listening" else None


class BareLoop(Tool):
    """A C program of benches/baseline; its server serves one client and ends."""

    name = "C loop"
    PROGRAMS = ("tcp_stream", "tcp_rr", "udp_rr", "udp_stream")

    def start_server(self, cpu, work):
        self.cpu = cpu

    def run(self, work, client_cpu):
        program = os.path.join(self.path, work.kind)
        self.server = Child([program, "server", "0", *self._options(work)], self.cpu)
        self.port = self.server.wait_for_line(lambda line: json.loads(line).get("port"))
        return super().run(work, client_cpu)

    def client_argv(self, work):
        program = os.path.join(self.path, work.kind)
        timing = ["--time", f"{work.seconds:g}"]
        return [program, "client", "127.0.0.1", self.port, *timing, *self._options(work)]

    @staticmethod
    def _options(work):
        argv = ["--size", work.size]
        argv += ["--spin"] if work.spin else []
        argv += ["--mode", work.mode] if work.kind == "udp_stream" else []
        if work.kind.startswith("tcp") and work.congestion:
            argv += ["--congestion", work.congestion]
        return argv

    def finish_server(self, work):
        self.server.wait(GRACE_S)

    def read_result(self, work, client):
        received = json.loads(self.server.output().splitlines()[-1])
        sent = json.loads(client.output().splitlines()[-1])
        if work.kind.endswith("rr"):
            return Measured(sent["transactions"] / sent["elapsed_s"], sent["transactions"])
        gigabytes = received["bytes"] / 1e9
        bits_per_s = received["bytes"] * 8 / received["elapsed_s"]
        if work.kind == "tcp_stream":
            return Measured(bits_per_s, gigabytes)
        loss = 1 - received["datagrams"] / max(sent["datagrams"], 1)
        figure = received["datagrams"] / received["elapsed_s"]
        return Measured(figure, gigabytes, loss=loss, extra={"goodput_bps": bits_per_s})


class Iperf3(Tool):
    """iperf3. The received packets are the sender's less the lost ones, as its server counts."""

    name = "iperf3"

    def start_server(self, cpu, work):
        self.port = free_port()
        argv = [self.path, "-s", "-B", "127.0.0.1", "-p", self.port, "--forceflush"]
        self.server = Child(argv, cpu)
        self.server.wait_for_line(lambda line: True if "listening" in line else None)

    def client_argv(self, work):
        # Whole seconds only: it reads 0.5 as 0, and 0 as for ever.
        seconds = max(1, round(work.seconds))
        argv = [self.path, "-c", "127.0.0.1", "-p", self.port, "-J", "-t", seconds]
        if work.kind == "udp_stream":
            return argv + ["-u", "-b", f"{int(work.rate_bps or 0)}", "-l", work.size]
        return argv + ["-l", work.size] + (["-C", work.congestion] if work.congestion else [])

    def read_result(self, work, client):
        end = json.loads(client.output())["end"]
        received = end["sum_received"]
        gigabytes = received["bytes"] / 1e9
        if work.kind == "tcp_stream":
            return Measured(received["bits_per_second"], gigabytes)
        packets = received["packets"] - received["lost_packets"]
        extra = {"goodput_bps": received["bits_per_second"]}
        loss = received["lost_packets"] / max(received["packets"], 1)
        return Measured(packets / received["seconds"], gigabytes, loss=loss, extra=extra)


def find_peer(name, directories):
    """The path of a peer's program: in the given directories first, then on PATH."""
    for directory in directories:
        candidate = os.path.join(directory, name)
        if os.access(candidate, os.X_OK):
            return candidate
    return shutil.which(name)
