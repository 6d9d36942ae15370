"""The C loops of benches/baseline, and the loop over rustls of crates/engine/examples."""

import json
import os

from .profiled import Profiled
from .tool import GRACE_S, Measured, Tool


class BareLoop(Tool):
    """A C program; its server serves one client and ends."""

    name = "C loop"
    kinds = ("tcp_stream", "tcp_rr", "tcp_crr", "tcp_short", "udp_rr", "udp_stream", "udp_media")
    programs = (*kinds, "tcp_rr_many")

    def one_shot(self, work):
        return True

    def launch(self, work):
        self.serve([self._program(work), "server", "0", *self.options(work)])
        self.port = self.server.wait_for_line(lambda line: json.loads(line).get("port"))

    def client_argv(self, work):
        timing = ["--time", f"{work.seconds:g}"]
        return [self._program(work), "client", self.placement.address, self.port, *timing, *self.options(work)]

    def options(self, work):
        """What both ends are told."""
        argv = ["--size", work.size]
        argv += ["--connections", work.flows] if work.flows > 1 else []
        argv += ["--spin"] if work.spin else []
        argv += ["--mode", work.mode] if work.kind == "udp_stream" else []
        argv += ["--mode", work.close] if work.kind == "tcp_crr" else []
        if work.transport == "tcp" and work.congestion:
            argv += ["--congestion", work.congestion]
        return argv

    def _program(self, work):
        many = work.kind == "tcp_rr" and work.flows > 1
        return os.path.join(self.path, "tcp_rr_many" if many else work.kind)

    def finish_server(self, work):
        self.server.wait(GRACE_S)

    def read_result(self, work, client):
        received = json.loads(self.server.output().splitlines()[-1])
        sent = json.loads(client.output().splitlines()[-1])
        if work.kind == "udp_media":
            return Measured(sent[f"p{work.percentile}_us"], received["datagrams"])
        if not work.is_stream:
            return Measured(sent["transactions"] / sent["elapsed_s"], sent["transactions"])
        gigabytes = received["bytes"] / 1e9
        if work.kind in ("tcp_stream", "tls_stream"):
            return Measured(received["bytes"] * 8 / received["elapsed_s"], gigabytes)
        loss = 1 - received["datagrams"] / max(sent["datagrams"], 1)
        figure = received["timed_datagrams"] / received["elapsed_s"]
        extra = {"goodput_bps": received["timed_bytes"] * 8 / received["elapsed_s"]}
        return Measured(figure, gigabytes, loss=loss, extra=extra)


class BareStream(Profiled, BareLoop):
    """The loop of bulk TCP with a receiver that sleeps at once, or one that asks again before it does."""

    kinds = ("tcp_stream",)
    profiles = ("single", "ask")
    choice = "mode"

    @classmethod
    def parts(cls):
        return (BareLoop,)

    def start_server(self, placement, work):
        if placement.server_cpu is not None and placement.server_cpu == placement.client_cpu:
            self.profiles = ("single",)  # who asks keeps the processor from the sender
        super().start_server(placement, work)

    def options(self, work):
        return [*super().options(work), "--mode", self.profile]


class BareTls(Profiled, BareLoop):
    """A Rust program that does no more than rustls asks for; its path is the program's. rustls moves bytes
    through streams, or between its caller's buffers."""

    name = "rustls loop"
    kinds = ("tls_stream",)
    programs = ("tls_stream",)
    chooses_congestion = False
    profiles = ("streams", "buffers")
    choice = "by"

    def options(self, work):
        return super().options(work) + (["--unbuffered"] if self.profile == "buffers" else [])

    def _program(self, work):
        return self.path
