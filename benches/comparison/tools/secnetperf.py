"""secnetperf, MsQuic's own tool: QUIC, and sealed frames in TCP."""

import re

from ..process import RunFailed, free_port
from .profiled import Profiled
from .tool import Measured

AES_128 = 1  # linerate's first choice; secnetperf's would be AES-256
POLL_IDLE_US = 1_000_000  # where both sides poll without sleep
STREAM = re.compile(r"^Result: (Upload|Download) (\d+) bytes @ \d+ kbps \(([\d.]+) ms\)\.$", re.M)
LATENCY = re.compile(r"^Result: \d+ RPS, Latency,us (.*)$", re.M)
PERCENTILE = re.compile(r"([\d.]+)th: (\d+)")
RATE = re.compile(r"^Result: (\d+) (RPS|HPS)$", re.M)


class Secnetperf(Profiled):
    """With the execution profile that does a row's work best in that row's placement."""

    name = "secnetperf"
    kinds = ("quic_stream", "quic_rr", "quic_crr", "framed_stream", "framed_rr")
    chooses_congestion = False  # of TCP; over QUIC it has cubic, as linerate
    packet_bytes = 1472  # MsQuic has no packets above 1,500 bytes
    profiles = ("lowlat", "maxtput")
    choice = "-exec"

    def launch(self, work):
        self.port = free_port()
        argv = [*self.words("server"), f"-bind:{self.placement.address}:{self.port}"]
        # Its TCP listener is the last that it opens.
        argv += [f"-exec:{self.profile}", f"-cipher:{AES_128}", *_polling(work)]
        self.serve(argv, self.port)

    def client_argv(self, work):
        argv = [*self.words("client"), f"-target:{self.placement.address}", f"-port:{self.port}"]
        argv += [f"-exec:{self.profile}", "-trimout", f"-conns:{work.connections}"]
        argv += ["-tcp:1"] if work.transport == "framed" else []
        argv += ["-encrypt:0"] if work.clear else []
        argv += _polling(work)
        time = f"{max(1, round(work.seconds * 1000))}ms"
        if work.is_stream:
            return argv + [f"-{'down' if work.down else 'up'}:{time}", "-pctput:1"]
        argv += [f"-runtime:{time}", "-prate:1"]
        if work.kind == "quic_crr":
            return argv + ["-rconn:1"]
        argv += ["-plat:1"] if work.percentile else []
        argv += [f"-up:{work.size}", f"-down:{work.response or work.size}"]
        return argv + [f"-streams:{work.streams}", "-rstream:1"]

    def read_result(self, work, client):
        return parse_secnetperf(client.output(), work)


def _polling(work):
    return [f"-pollidle:{POLL_IDLE_US}"] if work.spin else []


def parse_secnetperf(text, work):
    """A Measured from the client's lines. Of streams: the bytes of all over the longest time, since
    the sum that it can print adds rates of unequal times. An upload's are what was acknowledged."""
    if not work.is_stream:
        rates = {unit: float(rate) for rate, unit in RATE.findall(text)}
        rate = rates.get("HPS" if work.kind == "quic_crr" else "RPS")
        if rate is None:
            raise RunFailed("secnetperf: no rate in its output")
        figure = _percentile_us(text, work.percentile) if work.percentile else rate
        return Measured(figure, rate * work.seconds)
    direction = "Download" if work.down else "Upload"
    streams = [(int(bytes_), float(time_ms)) for kind, bytes_, time_ms in STREAM.findall(text)
               if kind == direction]
    if len(streams) != work.flows:
        raise RunFailed(f"secnetperf: {len(streams)} of {work.flows} streams reported")
    moved = sum(bytes_ for bytes_, _ in streams)
    longest_s = max(time_ms for _, time_ms in streams) / 1e3
    return Measured(moved * 8 / longest_s, moved / 1e9)


def _percentile_us(text, percentile):
    """Of the latencies from a stream's creation to the end of its answer; whole microseconds."""
    line = LATENCY.search(text)
    latencies = dict(PERCENTILE.findall(line[1])) if line else {}
    if str(percentile) not in latencies:
        raise RunFailed(f"secnetperf: no {percentile}th percentile in its output")
    return float(latencies[str(percentile)])
