"""A download as bytes per interval, and what is told of it."""

import re

# Of `linerate qperf -c --print-raw`.
LINE = re.compile(r"^second (\d+(?:\.\d+)?): (\d+(?:\.\d+)?) bit/s, bytes received: (\d+), packets received: \d+$")
# The rate that a download is to reach, and for how many intervals it must keep it.
FULL_BPS = 15e6
SUSTAINED = 5


class Curve:
    """Bytes that came in each interval of `interval_s`, from the first byte on."""

    def __init__(self, interval_s, interval_bytes):
        self.interval_s = interval_s
        self.interval_bytes = list(interval_bytes)
        # Whether the emulator kept its own times, and the programs had processors.
        self.is_trusted = True

    @classmethod
    def of_qperf(cls, text, interval_s):
        """From the lines of qperf's client."""
        found = [LINE.match(line.strip()) for line in text.splitlines()]
        return cls(interval_s, [int(match.group(3)) for match in found if match])

    @classmethod
    def of_iperf3(cls, document, interval_s):
        """From the JSON document of iperf3's client; leading intervals without a byte are left out."""
        counts = [interval["sum"]["bytes"] for interval in document["intervals"]]
        while counts and counts[0] == 0:
            counts.pop(0)
        return cls(interval_s, counts)

    def seconds(self):
        """How long it was."""
        return self.interval_s * len(self.interval_bytes)

    def mean_kbps(self, seconds):
        """Goodput of the first seconds; None where it was shorter."""
        count = round(seconds / self.interval_s)
        # An interval may be missing at the end, where the last one was cut.
        if len(self.interval_bytes) < count - 2:
            return None
        return sum(self.interval_bytes[:count]) * 8 / seconds / 1000

    def first_second_bytes(self):
        """Bytes of the first second."""
        return sum(self.interval_bytes[:round(1 / self.interval_s)])

    def full_after_s(self):
        """When the first half second at 15 Mbit/s begins; None: there is none."""
        for start in range(len(self.interval_bytes) - SUSTAINED + 1):
            part = self.interval_bytes[start:start + SUSTAINED]
            if sum(part) * 8 / (SUSTAINED * self.interval_s) >= FULL_BPS:
                return start * self.interval_s
        return None

    def points(self):
        """Time and Mbit/s of half seconds, for a drawing."""
        step = SUSTAINED
        starts = range(0, len(self.interval_bytes) - step + 1, step)
        return [((start + step) * self.interval_s,
                 sum(self.interval_bytes[start:start + step]) * 8 / (step * self.interval_s) / 1e6)
                for start in starts]
