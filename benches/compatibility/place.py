"""Where cases run: on loopback, or in two namespaces with an emulated link between them."""

import os
import re
import subprocess
import time
from pathlib import Path

READY_WITHIN_S = 10.0


class Loopback:
    """This machine, as it is."""

    name = "loopback"
    tries = 2  # a run that failed is run once more: machines under load drop connections

    def argv(self, end, words):
        """A program of this end: "client" or "server"."""
        return list(words)

    def host(self, asked):
        """Where a client finds its server."""
        return asked

    def words(self, end, text):
        """A command line as it is meant here."""
        return text

    def describe(self):
        """A sentence of it for the page."""
        return "on loopback"

    def close(self):
        """Nothing was made."""


class Link:
    """Two namespaces with `linerate link` between them: the client left, the server right."""

    ADDRESSES = {"client": ("10.77.0.1", "fd77::1"), "server": ("10.77.0.2", "fd77::2")}
    DEVICE = "link0"
    tries = 4  # the originals have no answer to some losses

    def __init__(self, linerate, path):
        self.path = Path(path)
        self.name = self.path.stem
        self.namespaces = {"client": f"compat-{os.getpid()}-l", "server": f"compat-{os.getpid()}-r"}
        left, right = self.namespaces.values()
        words = [str(linerate), "link", str(path), "--left", left, "--right", right, "--quiet"]
        self.emulator = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         text=True, start_new_session=True)
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._ready():
            if self.emulator.poll() is not None or time.monotonic() > deadline:
                self.emulator.terminate()
                raise OSError(f"no link of {path}: {self.emulator.communicate()[1].strip()}")
            time.sleep(0.05)
        for namespace in self.namespaces.values():
            # Fast Open at both ends, which a fresh namespace has at the client alone.
            setting = "echo 3 > /proc/sys/net/ipv4/tcp_fastopen"
            subprocess.run(["ip", "netns", "exec", namespace, "sh", "-c", setting], check=True)

    def _ready(self):
        right = self.namespaces["server"]
        shown = subprocess.run(["ip", "-n", right, "address", "show", "dev", self.DEVICE],
                               capture_output=True, text=True).stdout
        return all(address in shown for address in self.ADDRESSES["server"])

    def argv(self, end, words):
        """A program of this end, in its namespace."""
        return ["ip", "netns", "exec", self.namespaces[end], *words]

    def host(self, asked):
        """Where a client finds its server."""
        return self.ADDRESSES["server"][":" in asked]

    def words(self, end, text):
        """A command line with this link's addresses and device in the place of loopback's: behind
        -H the server's, else the end's own."""
        v4, v6 = self.ADDRESSES[end]
        far4, far6 = self.ADDRESSES["server"]
        text = re.sub(r"-H 127\.0\.0\.[01]", f"-H {far4}", text).replace("-H ::1", f"-H {far6}")
        text = re.sub(r"(?<!\w)::1\b", v6, text.replace("127.0.0.1", v4))
        return re.sub(r"(?<=\d)/8\b", "/32", text).replace("--bind-dev lo", f"--bind-dev {self.DEVICE}")

    def describe(self):
        """The first line of its file, which is a comment."""
        return self.path.read_text().splitlines()[0].lstrip("# ").rstrip(".")

    def close(self):
        """Ends the emulator, which takes the namespaces with it."""
        self.emulator.terminate()
        self.emulator.communicate(timeout=READY_WITHIN_S)
