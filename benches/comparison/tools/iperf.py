"""iperf3, in a version with segmentation offload for UDP and in one without, and iperf 2."""

import json
import re

from ..process import RunFailed, free_port
from .tool import Measured, Tool


class Iperf3(Tool):
    """iperf3 without --gsro, as most hosts have it."""

    name = "iperf3"
    kinds = ("tcp_stream", "udp_stream")
    udp_options = ()

    def launch(self, work):
        self.port = free_port()
        argv = [*self.words("server"), "-s", "-B", self.placement.address, "-p", self.port]
        self.serve(argv, self.port)

    def client_argv(self, work):
        argv = [*self.words("client"), "-c", self.placement.address, "-p", self.port, "-J"]
        argv += ["-t", work.whole_seconds, "-l", work.size]
        argv += ["-P", work.flows] if work.flows > 1 else []
        if work.kind == "udp_stream":
            return argv + ["-u", "-b", f"{int(work.rate_bps or 0)}", *self.udp_options]
        return argv + (["-C", work.congestion] if work.congestion else [])

    def read_result(self, work, client):
        return parse_iperf3(client.output(), work.kind)


class Iperf3New(Iperf3):
    """iperf3 with --gsro (3.20 and later), with the buffers that suit it best."""

    name = "iperf3-new"
    udp_options = ("--gsro", "-w", "4M")


def parse_iperf3(text, kind):
    """A Measured from the document of -J. The received packets are the sender's less the lost
    ones, as its server counts."""
    document = json.loads(text)
    if document.get("error"):
        raise RunFailed(f"iperf3: {document['error']}")
    received = document["end"]["sum_received"]
    gigabytes = received["bytes"] / 1e9
    if kind == "tcp_stream":
        return Measured(received["bits_per_second"], gigabytes)
    packets = received["packets"] - received["lost_packets"]
    loss = received["lost_packets"] / max(received["packets"], 1)
    extra = {"goodput_bps": received["bits_per_second"],
             "sent_bps": document["end"].get("sum_sent", {}).get("bits_per_second")}
    return Measured(packets / received["seconds"], gigabytes, loss=loss, extra=extra)


REPORT = re.compile(r"^\[ *(SUM|\d+)\] +([\d.]+)-([\d.]+) sec +(\d+) Bytes +(\d+) bits/sec", re.M)


class Iperf2(Tool):
    """iperf 2, whose server prints the received bytes when all flows have ended."""

    name = "iperf2"
    kinds = ("tcp_stream",)

    def one_shot(self, work):
        return True

    def launch(self, work):
        self.port = free_port()
        self.flows = work.flows
        argv = [self.path, "-s", "-B", self.placement.address, "-p", self.port]
        self.serve([*argv, "-e", "-f", "b", "-l", work.size], self.port)

    def client_argv(self, work):
        argv = [self.path, "-c", self.placement.address, "-p", self.port, "-f", "b"]
        argv += ["-t", f"{work.seconds:g}", "-l", work.size]
        argv += ["-P", work.flows] if work.flows > 1 else []
        return argv + (["-Z", work.congestion] if work.congestion else [])

    def finish_server(self, work):
        # The line of a lone flow, or the sum, is its last.
        def is_last(line):
            match = REPORT.match(line)
            return match and (work.flows == 1 or match[1] == "SUM") or None

        self.server.wait_for_line(is_last)
        self.server.end()

    def read_result(self, work, client):
        return parse_iperf2(self.server.output(), work.flows)


def parse_iperf2(text, flows):
    """A Measured from the server's report in bits; every flow must be in it."""
    reports = REPORT.findall(text)
    single = [report for report in reports if report[0] != "SUM"]
    if len(single) != flows:
        raise RunFailed(f"iperf2: {len(single)} of {flows} flows reported")
    _, _, _, received, bits_per_s = reports[-1]
    return Measured(float(bits_per_s), int(received) / 1e9)
