"""linerate itself."""

import json
import os
import shutil
import subprocess
import tempfile

from ..process import RunFailed
from .tool import Measured, Tool


class Linerate(Tool):
    """Its files go to a directory of this run, not to the user's home."""

    name = "linerate"
    kinds = ("tcp_stream", "tls_stream", "udp_stream", "tcp_rr", "udp_rr", "tcp_crr", "udp_media",
             "quic_stream", "quic_rr", "quic_crr")
    home = None
    answers = {}  # of a program's path and command: its help, or nothing

    def environment(self):
        if Linerate.home is None:
            Linerate.home = tempfile.TemporaryDirectory(prefix="linerate-compare-")
        home = Linerate.home.name
        return dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home)

    def certified(self):
        """Options of a server with a certificate of its own, whose key is RSA."""
        home = self.environment()["HOME"]
        paths = [os.path.join(home, name) for name in ("rsa-certificate.pem", "rsa-key.pem")]
        if not all(map(os.path.exists, paths)):
            argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
            argv += ["-subj", "/CN=localhost", "-out", paths[0], "-keyout", paths[1]]
            made = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
            if made.returncode != 0:
                raise RunFailed(f"openssl made no certificate: {made.stderr.strip()[-400:]}")
        return ["--cert", paths[0], "--key", paths[1]]

    def refusal(self, work, network):
        if work.rsa and shutil.which("openssl") is None:
            return "openssl isn't there, which makes the server's certificate"
        command = command_of(work)
        text = self.help_of(command)
        if work.transport == "quic" and text and "--quic" not in text:
            return f"this linerate has no `{command} --quic`"
        return None if text else f"this linerate has no command `{command}`"

    def help_of(self, *words):
        """What the program says to `words --help`; nothing where it doesn't know them."""
        key = (self.path, *words)
        if key not in Linerate.answers:
            answer = subprocess.run([self.path, *words, "--help"], capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, timeout=10, check=False)
            Linerate.answers[key] = answer.stdout if answer.returncode == 0 else ""
        return Linerate.answers[key]

    def one_shot(self, work):
        # The ports that closed connections still hold belong to one address and port of a server:
        # the others get a new port every run, too.
        return work.kind == "tcp_crr"

    def launch(self, work):
        address = self.placement.address
        argv = [self.path, "serve", "--bind", address, "--port", "0", "--ndjson"]
        # It spins in the tests that ask for it alone. Before it had the option every client could have it spin.
        argv += ["--busy-poll"] if work.spin and "--busy-poll" in self.help_of("serve") else []
        self.serve(argv + (self.certified() if work.rsa else []))
        record = self.server.wait_for_line(_listening_record)
        self.address = record["address"]
        self.fingerprint = record["fingerprint"]

    def finish_server(self, work):
        if self.one_shot(work):
            self.server.end()

    def client_argv(self, work):
        argv = [self.path, command_of(work), self.address, "--server-key", self.fingerprint]
        argv += ["--json", "--time", f"{work.seconds:g}s", f"--{work.transport}"]
        if work.kind == "tcp_crr":
            argv.remove("--tcp")
            argv += ["--close", work.close]
        elif work.kind == "udp_media":
            argv += ["--size", work.size]
        elif work.is_stream:
            argv += ["--down" if work.down else "--up"]
            argv += ["--size", work.size] if work.size is not None else []
        elif work.kind != "quic_crr":
            argv += ["--request", work.size, "--response", work.response or work.size]
        if work.transport in ("tcp", "tls") and work.congestion:
            argv += ["--congestion", work.congestion]
        argv += ["--flows", work.flows] if work.flows > 1 else []
        argv += ["--active", work.active] if work.active else []
        argv += ["--threads", work.threads] if work.threads else []
        argv += ["--streams", work.streams] if work.streams > 1 else []
        argv += ["--mtu-limit", work.packet] if work.packet else []
        argv += ["--bind", work.source] if work.source else []
        argv += ["--verify"] if work.verify else []
        argv += ["--busy-poll"] if work.spin else []
        argv += ["--no-offload"] if work.kind == "udp_stream" and work.mode != "offload" else []
        argv += ["--rate", f"{int(work.rate_bps)}"] if work.rate_bps else []
        return argv

    def read_result(self, work, client):
        summary = json.loads(client.output())["summary"]
        if work.kind == "udp_media":
            late_us = summary["send_delay_ns"][f"p{work.percentile}"] / 1e3
            frames = summary["datagrams"]["frames"]
            extra = {"dropped": frames["dropped"] + frames["late"]}
            return Measured(late_us, summary["datagrams"]["received"], extra=extra)
        if work.kind.endswith("_crr"):
            return Measured(summary["connections_per_s"], summary["transactions"])
        if not work.is_stream:
            figure = summary["transactions_per_s"]
            if work.percentile:
                figure = summary["latency_ns"][f"p{work.percentile}"] / 1e3
            return Measured(figure, summary["transactions"])
        gigabytes = summary["received_bytes"] / 1e9
        if work.kind == "udp_stream":
            extra = {"goodput_bps": summary["goodput_bps"], "sent_bps": summary.get("sent_bps")}
            figure = summary["datagrams_per_s"]
            return Measured(figure, gigabytes, loss=summary.get("loss_ratio"), extra=extra)
        if work.verify and summary.get("verified_bytes") != summary["received_bytes"]:
            raise RunFailed("linerate: not every received byte was verified")
        return Measured(summary["goodput_bps"], gigabytes)


class LinerateBefore(Linerate):
    """An earlier build, which stands in `--peers` or on PATH as `linerate-before`."""

    name = "linerate-before"


def command_of(work):
    """The command of linerate that does the work."""
    if work.kind == "udp_media":
        return "media"
    return "stream" if work.is_stream else "connect" if work.kind.endswith("_crr") else "rr"


def _listening_record(line):
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if record.get("record") == "listening" else None
