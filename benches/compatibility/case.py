"""What all dialects share: a case, a program, and a run of one against the other."""

import os
import re
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field

LISTEN_WITHIN_S = 5.0
SERVER_ENDS_WITHIN_S = 4.0


@dataclass(frozen=True)
class Program:
    """One implementation of a dialect."""

    label: str
    argv: tuple  # what the words of a role follow
    ours: bool = False
    environment: tuple = ()


@dataclass(frozen=True)
class Case:
    """One command line of a client, and what its server was started with."""

    client: str
    server: str = ""
    kind: str = "json"  # "json", "text", "stream" (lines of JSON) or "refusal" (no server at all)
    flags: tuple = ()  # covered beside those that can be read off
    host: str = "127.0.0.1"
    fails: bool = False  # both ends are expected to say why not
    since: str = ""  # the first release that knows it
    without: str = ""  # why the original's client isn't run
    alone: str = ""  # why the original isn't run at either end
    breaks: str = ""  # why two originals may fail by themselves
    untold: str = ""  # fields that ours leaves out where a peer's release doesn't tell enough for them: a pattern
    resolves: bool = False  # asks for a name, to which nobody answers over a link

    @property
    def name(self):
        """How the table calls it."""
        words = [self.client or "(no words)"]
        if self.server:
            words.append(f"with server {self.server}")
        return " ".join(words)


class Excused(str):
    """Why a run that isn't like the original's is right all the same: two originals fail by themselves."""


def is_wrong(cell):
    """Whether a cell tells a failure of ours."""
    return cell is not None and not isinstance(cell, Excused)


@dataclass
class Ended:
    """How a process ended."""

    code: int | None
    out: str
    err: str


@dataclass
class Run:
    """A client and its server, both ended."""

    client: Ended
    server: Ended
    problems: list = field(default_factory=list)


_ports = threading.Lock()
_taken = set()


def free_port():
    """A port that nothing listens on and no other case of this run uses."""
    with _ports:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            # Below the ephemeral ports, which data connections take.
            port = 10_000 + port % 20_000
            with socket.socket() as probe:
                try:
                    probe.bind(("0.0.0.0", port))
                except OSError:
                    continue
            if port not in _taken:
                _taken.add(port)
                return port


def start(argv, environment=()):
    """A process with its output in pipes."""
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TZ": "UTC", **dict(environment)}, text=True, errors="replace",
        start_new_session=True)


def finish(process, seconds):
    """Waits for its end; a process that takes too long is ended, and has no exit code."""
    try:
        out, err = process.communicate(timeout=seconds)
        return Ended(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Ended(None, out, err)


def listens(process, port):
    """Whether something listens on a TCP port of the process's network."""
    for name in ("tcp", "tcp6"):
        with open(f"/proc/{process.pid}/net/{name}", encoding="ascii") as table:
            if re.search(rf":{port:04X} [0-9A-F:]+ 0A ", table.read()):
                return True
    return False


def wait_until_listening(process, port):
    """Whether it listens in time."""
    deadline = time.monotonic() + LISTEN_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if listens(process, port):
            return True
        time.sleep(0.02)
    return False


def run_pair(server_argv, client_argv, port, environments, seconds):
    """A server for one test, and its client."""
    server = start(server_argv, environments[0])
    if not wait_until_listening(server, port):
        ended = finish(server, 0.1)
        return Run(Ended(None, "", "not started"), ended, ["the server does not listen"])
    client = finish(start(client_argv, environments[1]), seconds)
    served = finish(server, SERVER_ENDS_WITHIN_S)
    run = Run(client, served)
    if client.code is None:
        run.problems.append(f"the client was still there after {seconds:g} s")
    if served.code is None:
        run.problems.append("the server did not end after its one test")
    return run
