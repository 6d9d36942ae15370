"""flent: tests that run many netperfs at once and read what they print as it comes."""

import gzip
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from . import case as cases_
from .case import Case, Ended, Program, Run
from .place import Loopback

SECONDS = 90.0

CASES = [Case(words, kind="text", flags=()) for words in (
    "tcp_upload -l 3", "tcp_download -l 3", "tcp_bidirectional -l 3",
    "tcp_nup -l 3 --test-parameter upload_streams=3",
    "udp_flood -l 3", "rrul -l 3 --control-host 127.0.0.1")]

# Its tests begin a ping whatever they are about; where there is none, this answers in its words.
PING = """#!{python}
import sys, time
words = sys.argv[1:]
value = lambda flag, default: float(words[words.index(flag) + 1]) if flag in words else default
until, number = time.time() + min(value("-w", 3.0), 0.3 if "-c" in words else 60.0), 0
print("PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.", flush=True)
while time.time() < until:
    number += 1
    print("[%.6f] 64 bytes from 127.0.0.1: icmp_seq=%d ttl=64 time=0.050 ms" % (time.time(), number), flush=True)
    time.sleep(value("-i", 0.2))
print("\\n--- 127.0.0.1 ping statistics ---\\nrtt min/avg/max/mdev = 0.05/0.05/0.05/0.0 ms")
"""


class Flent:
    """The dialect: who stands for netperf on flent's path, and which netserver it runs against."""

    name = "flent"
    cases = CASES
    elsewhere = {}

    def __init__(self, linerate, originals):
        self.folder = Path(tempfile.mkdtemp(prefix="flent-"))
        self.place = Loopback()
        self.ours = self._program("ours", linerate, True)
        self.originals = [self._program("netperf", Path(shutil.which(path) or path).resolve(), False)
                          for path in originals]

    def _program(self, label, path, ours):
        """A directory in which a program is called netperf."""
        directory = self.folder / f"{label}-{len(list(self.folder.iterdir()))}"
        directory.mkdir()
        (directory / "netperf").symlink_to(Path(path).resolve())
        if not shutil.which("ping"):
            (directory / "ping").write_text(PING.format(python=sys.executable))
            (directory / "ping").chmod(0o755)
        return Program(label, (str(path),), ours, (("PATH", f"{directory}:{os.environ['PATH']}"),))

    @staticmethod
    def absent():
        """Why nothing can be checked, or None."""
        return None if shutil.which("flent") else "flent isn't on PATH (pip install flent): nothing was checked"

    @staticmethod
    def find():
        """The original netperf on PATH."""
        found = shutil.which("netperf")
        return [found] if found else []

    def knows(self, program, case):
        """Whichever release."""
        return True

    def flags(self):
        """Which options flent gives is its own business."""
        return {}

    def run(self, case, server, client, release, number):
        """One of its tests; what the client printed is the data file."""
        port = cases_.free_port()
        if server.ours:
            argv = [server.argv[0], "netserver"]
        else:
            argv = [str(Path(server.argv[0]).with_name("netserver"))]
        serving = cases_.start([*argv, "-D", "-p", str(port)])
        data = self.folder / str(number)
        try:
            if not cases_.wait_until_listening(serving, port):
                return Run(Ended(None, "", ""), Ended(None, "", ""), ["the server does not listen"])
            words = ["flent", *case.client.split(), "-H", "127.0.0.1", "--netperf-control-port", str(port),
                     "-D", str(data), "-f", "summary"]
            data.mkdir()
            ended = cases_.finish(cases_.start(words, client.environment), SECONDS)
        finally:
            serving.terminate()
            served = cases_.finish(serving, cases_.SERVER_ENDS_WITHIN_S)
        files = list(data.glob("*.flent.gz"))
        if ended.code is None or len(files) != 1:
            said = (ended.err or ended.out).strip().splitlines()
            return Run(ended, served, [f"no data file: {said[-1] if said else ''}"])
        return Run(Ended(ended.code, gzip.decompress(files[0].read_bytes()).decode(), ended.err), served)

    def judge(self, case, run, reference):
        """Why a run isn't right, or None. `reference` is the original against itself."""
        if run.problems:
            return run.problems[0]
        return judge_data(run.client.out, reference.client.out if reference else None) or judge_words(run.client.err)


def judge_words(err):
    """flent goes on where a netperf fails, and says so."""
    failed = re.search(r"^.*(?:exited non-zero|ERROR|Traceback).*$", err, re.M)
    return failed[0].strip() if failed else None


def judge_data(text, reference):
    """Every series has values, and no fact of one is missing that an original's has."""
    data = json.loads(text)
    if data["metadata"]["FAILED_RUNNERS"]:
        return f"{data['metadata']['FAILED_RUNNERS']} of its runners failed"
    for name, values in data["results"].items():
        if len([value for value in values if value]) < 3:
            return f"{name}: hardly a value"
    if reference is None:
        return None
    facts = data["metadata"]["SERIES_META"]
    for name, wanted in json.loads(reference)["metadata"]["SERIES_META"].items():
        missing = wanted.keys() - facts.get(name, {}).keys()
        if missing:
            return f"{name}: without {', '.join(sorted(missing))}"
    return None
