"""linerate as ctsTraffic, at both ends: there is no original that runs here."""

import csv
import json
import os
import re
from dataclasses import replace

from ..process import RunFailed, free_port
from .linerate import Linerate
from .tool import Measured, Tool

FRAMES_PER_S = 60
STREAM_BPS = 2_000_000
PRECISION_BPS = 25_000_000
# Each connection is followed by another one: a run that its time ends has completed some.
TRANSFER_BYTES = 64 << 20


SUMMARY = re.compile(r"SuccessfulConnections \[(\d+)\] +NetworkErrors \[(\d+)\] +ProtocolErrors \[(\d+)\]")


class OurCtsTraffic(Tool):
    """Transfers over TCP, short ones that the client resets among them, or media streams over UDP; every byte is
    verified."""

    name = "our ctsTraffic"
    kinds = ("tcp_stream", "tcp_short", "udp_media")
    chooses_congestion = False

    @classmethod
    def parts(cls):
        return (Linerate,)

    def environment(self):
        return Linerate(self.path).environment()

    def refusal(self, work, network):
        if "ctstraffic" not in Linerate(self.path).help_of():
            return "this linerate has no `ctstraffic`"
        return super().refusal(work, network)

    def one_shot(self, work):
        return True

    def launch(self, work):
        self.port = free_port()
        argv = [self.path, "ctstraffic", f"-listen:{self.placement.address}", f"-port:{self.port}"]
        argv += ["--busy-poll"] if work.spin else []
        kind = "udp" if work.kind == "udp_media" else "tcp"
        self.serve([*argv, *self._both(work), *_printed(work)], self.port, kind)

    def client_argv(self, work):
        argv = [self.path, "ctstraffic", f"-target:{self.placement.address}", f"-port:{self.port}"]
        argv += [f"-connections:{work.flows}", *_printed(work), *self._both(work)]
        argv += ["-shutdown:rude"] if work.kind == "tcp_short" else []
        if work.kind != "udp_media":
            return argv + [f"-timelimit:{int(work.seconds * 1000)}"]
        if work.percentile:
            self.jitter = os.path.join(self.environment()["HOME"], "jitter.csv")
            argv.append(f"-jitterfilename:{self.jitter}")
        return argv + ["-iterations:1"]

    def _both(self, work):
        """What both ends must be told alike."""
        if work.kind == "udp_media":
            bps = PRECISION_BPS if work.percentile else STREAM_BPS
            stream = [f"-bitspersecond:{bps}", f"-framerate:{FRAMES_PER_S}"]
            return ["-protocol:udp", *stream, f"-streamlength:{work.whole_seconds}",
                    f"-datagrambytesize:{work.size}"]
        if work.kind == "tcp_short":
            return ["-pattern:push", f"-transfer:{work.size}"]
        pattern = "duplex" if work.both else "pull" if work.down else "push"
        verify = "data" if work.verify else "connection"
        return [f"-pattern:{pattern}", f"-buffer:{work.size}", f"-transfer:{TRANSFER_BYTES}",
                f"-verify:{verify}"]

    def finish_server(self, work):
        self.server.end()

    def read_result(self, work, client):
        if work.kind == "tcp_short":
            return short_result(client.output())
        ours, theirs = json.loads(client.output()), json.loads(self.server.output())
        # A server takes connections that the client's time ends for failed ones.
        if ours["network_errors"] or ours["data_errors"]:
            failed = {end["result"] for end in ours["connections"]} - {"Succeeded"}
            raise RunFailed(f"{self.name}: connections failed: {', '.join(sorted(failed))}")
        if work.kind != "udp_media":
            received = ours["received_bytes"] + theirs["received_bytes"]
            return Measured(received * 8e6 / ours["elapsed_us"], received / 1e9)
        frames = ours["frames"]
        extra = {"dropped": frames["dropped"] + frames["repeated"] + frames["errors"]}
        if not work.percentile:
            return Measured(frames["completed"], frames["completed"], extra=extra)
        with open(self.jitter, encoding="ascii", newline="") as rows:
            late_us = lateness_us(csv.DictReader(rows))
        return Measured(late_us[len(late_us) * work.percentile // 100], frames["completed"], extra=extra)


class CtsTrafficOneWay(OurCtsTraffic):
    """One direction after the other: the figure is their mean."""

    name = "one way"

    def run(self, work):
        ways = [super(CtsTrafficOneWay, self).run(replace(work, both=False, down=down))
                for down in (False, True)]
        return Measured(sum(way.figure for way in ways) / 2, sum(way.units for way in ways),
                        cpu_s=sum(way.cpu_s for way in ways))


def _printed(work):
    """A document; of short connections, of which there are very many, nothing but the summary."""
    return ["-consoleverbosity:0"] if work.kind == "tcp_short" else ["--json"]


def short_result(text):
    """The rate of a client's connections, by its summary."""
    completed, *failed = (int(count) for count in SUMMARY.search(text).groups())
    if any(failed):
        raise RunFailed(f"{OurCtsTraffic.name}: {sum(failed)} connections failed")
    elapsed_ms = int(re.search(r"Total Time : (\d+) ms", text)[1])
    return Measured(completed * 1000 / elapsed_ms, completed)


def lateness_us(rows):
    """How much later than the most punctual frame each was sent, sorted: the frames of a stream are due at even
    times by the sender's counter."""
    late_us = []
    for row in rows:
        number, counter, per_s = (int(row[name]) for name in ("SequenceNumber", "SenderQpc", "SenderQpf"))
        if per_s:  # a dropped frame has zeros
            late_us.append((counter / per_s - number / FRAMES_PER_S) * 1e6)
    if not late_us:
        raise RunFailed("no frame arrived")
    least = min(late_us)
    return sorted(late - least for late in late_us)
