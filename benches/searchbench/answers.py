"""Asking linerate and the original's query tools, and comparing what they answer."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

# Answers may differ by so much, relatively.
WITHIN = 0.001
JUDGE_PORT = 3000
JUDGE = f"http://localhost:{JUDGE_PORT}"


class Program:
    """The program, with the store of one run."""

    def __init__(self, linerate, place):
        self.linerate = os.path.abspath(linerate)
        self.store = os.path.join(place, "results.db")

    def run(self, *words, **more):
        return subprocess.run([self.linerate, *words], capture_output=True, text=True, check=False, **more)

    def ask(self, *words, codes=(0,)):
        done = self.run(*words)
        if done.returncode not in codes:
            raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


class Judge:
    """The original's query server and its tools: `directory` is queries/cdmq of CommonDataModel."""

    def __init__(self, directory, search):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", JUDGE_PORT)) == 0:
                raise SystemExit(f"port {JUDGE_PORT}, on which the original's query server listens, is taken")
        self.directory = directory
        self.address = search.address
        server = ["node", "server.js", "--host", search.address, "--ver", "v10dev"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(server, cwd=directory, start_new_session=True, **quiet)
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{JUDGE}/health", timeout=5)
                return
            except OSError:
                time.sleep(0.5)
        self.close()
        raise SystemExit("the original's query server did not start")

    def run(self, tool, *words):
        """Whether a tool succeeds, and what it prints."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
            # It leaves a helper behind, which would keep a pipe open.
            tool = subprocess.Popen(
                ["node", tool, *words], cwd=self.directory, stdout=printed, stderr=printed, start_new_session=True
            )
            exit_code = tool.wait()
            end_group(tool.pid)
            printed.seek(0)
            return exit_code == 0, printed.read()

    def ask(self, tool, *words):
        succeeds, told = self.run(tool, *words)
        if not succeeds:
            raise SystemExit(f"{tool} {' '.join(words)}: {told}")
        return told

    def metric(self, words):
        """Whether it answers, and what it prints."""
        return self.run("get-metric-data.js", "--server-url", f"{JUDGE}/api/v1/metric-data", *words)

    def result(self, run):
        return self.ask("get-result-summary.js", "--server-url", JUDGE, "--run", run)

    def add(self, directory):
        """Indexes the documents of a folder as the original does."""
        return self.ask("add-run.js", "--host", self.address, "--ver", "v10dev", "--dir", directory)

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        end_group(self.process.pid)


def end_group(group):
    """Ends what is left of a group of processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def values_of(text):
    """The windows' values by label, of any answer."""
    answer = json.loads(text[text.index("{"):])
    return {label: [float(window["value"]) for window in windows] for label, windows in answer["values"].items()}


def difference(one, other):
    """The greatest relative difference; infinite where labels or windows differ."""
    if one.keys() != other.keys() or any(len(one[label]) != len(other[label]) for label in one):
        return float("inf")
    pairs = [pair for label in one for pair in zip(one[label], other[label])]
    return max((abs(a - b) / max(abs(a), abs(b), 1e-9) for a, b in pairs), default=0.0)


class Comparison:
    """Answers that should be equal."""

    def __init__(self):
        self.asked = 0
        self.worst = 0.0
        self.failures = []

    def add(self, what, own, values):
        self.asked += 1
        found = difference(own, values)
        self.worst = max(self.worst, found)
        if found > WITHIN:
            self.failures.append(f"{what}: {own} and {values}")

    def require(self, holds, what):
        if not holds:
            self.failures.append(what)

    def results(self, what, told, own):
        """Each result that the original prints stands in linerate's."""
        lines = [line.strip() for line in told.splitlines() if "result:" in line]
        self.failures += [f"{what}: linerate lacks {line}" for line in lines if line not in own]
        self.require(lines, f"{what}: the original has no result")

    def tell(self, what):
        """Prints what came out; whether all agreed."""
        print(f"{what}: {self.asked} answers differ by at most {self.worst * 100:.4f} %")
        for failure in self.failures:
            print(f"  FAILED {failure}")
        return not self.failures
