"""secnetperf: its cases, how they are run, and what makes a run right."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import case as cases_
from .case import Case, Ended, Program, Run
from .place import Loopback

# The original's client doesn't always end.
SECONDS = 15.0
# A server that is asked for what it printed runs so long.
SERVED_MS = 6000
# The names of a server on a client's command line.
TARGETS = ("target", "server", "to", "remote", "peer")


def flags_of(words):
    """The options of a command line."""
    return tuple(f"-{word[1:].partition(':')[0]}" for word in words.split() if word[0] == "-")


def T(client, server="", **more):
    """A case that prints lines."""
    return Case(client, server, "text", flags=flags_of(f"{client} {server}"), **more)


def carried():
    """What is the same over QUIC and over TCP."""
    rps = "-rstream:1 -streams:1 -up:512 -down:4000 -run:1s"
    for words in (
            "", "-up:100kb", "-down:1mb", "-up:1000 -down:1000", "-up:8", "-up:4 -run:1s",
            "-upload:10kb -download:20kb", "-request:10kb -response:20kb", "-up:400ms", "-up:300ms -down:300ms", "-timed:1", "-up:100kb -down:100kb -pctput:1", "-up:400ms -pctput:1",
            "-up:1mb -ptput:1", "-down:1mb -ptput:1", "-conns:10 -up:10kb -down:10kb",
            "-iosize:1000 -up:100kb", "-iosize:1mb -up:3mb", f"{rps} -plat:1",
            f"{rps} -platency:1 -extraOutputFile:{{file}}", f"{rps} -prate:1",
            "-rc:1 -conns:4 -run:1s -prate:1", "-rconn:1 -up:1000 -down:1000 -time:1s",
            "-runtime:500ms -down:20s", "-maxruntime:1000 -down:20s", "-threads:2 -conns:4 -up:10kb",
            "-workers:1 -conns:2 -up:10kb", "-exec:lowlat -up:5mb", "-exec:maxtput -up:5mb",
            "-exec:scavenger -up:5mb", "-exec:realtime -up:5mb", "-scenario:upload -up:300ms",
            "-scenario:hps -run:1s -conns:4",
            "-scenario:latency -run:1s", "-pollidle:100 -up:5mb", "-affinitize:1 -up:5mb",
            "-io:epoll -up:1mb", "-cpu:0 -up:5mb", "-cpu:-1 -up:5mb", "-highpri:1 -up:5mb",
            "-bind:127.0.0.1 -up:10kb", "-up:10kb -trimout", "-watchdog:20000 -up:10kb"):
        yield words, ""
    for served in ("-delay:10ms", "-delay:1ms -delayType:variable", "-cipher:1", "-cipher:2",
                   "-cipher:4", "-exec:maxtput", "-pollidle:100", "-affinitize:1", "-highpri:1", "-cpu:1"):
        yield "-up:10kb -down:10kb", served


QUIC = [
    T("-down:400ms"), T("-scenario:download -down:300ms"),
    T("-streams:10 -up:10kb -down:10kb"), T("-requests:3 -up:1000"), T("-pconn:1 -up:1mb"),
    T("-pconnection:1 -down:1mb"), T("-pstream:1 -up:10mb"), T("-pstream:1 -streams:3 -down:100kb"),
    T("-scenario:rps -run:1s"), T("-scenario:rps-multi -run:1s -conns:2"),
    T("-rs:1 -streams:100 -up:512 -down:4000 -run:1s -plat:1"), T("-server:127.0.0.1"),
    T("-to:127.0.0.1"), T("-remote:127.0.0.1"), T("-peer:127.0.0.1"), T("-ip:4 -target:localhost"),
    T("-af:4 -target:localhost -up:1000"), T("-ip:6 -up:1000 -down:1000", host="[::1]"),
    T("-inctarget:0 -target:localhost -ip:4"), T("-incrementtarget:1 -target:localhost -ip:4"),
    T("-comp:1 -up:1000"), T("-share:1 -conns:3 -up:10kb"), T("-share:0 -conns:3 -up:10kb"),
    T("-encrypt:0 -up:1mb -down:1mb"), T("-encrypt:0 -down:300ms"), T("-pacing:0 -up:5mb"),
    T("-sendbuf:1 -up:5mb"), T("-hystart:1 -up:5mb"), T("-down:5mb", "-hystart:1"), T("-cc:bbr -up:5mb"),
    T("-down:5mb", "-cc:bbr"), T("-cc:x -up:1000"), T("-ecn:1 -up:1mb"), T("-down:1mb", "-ecn:1"),
    T("-dscp:10 -up:1000"), T("-dscp:77 -up:1000"), T("-down:1mb", "-dscp:10"), T("-qeo:1 -up:1000"),
    T("-io:xdp -up:1000"), T("-up:1mb", "-stats:1"), T("-up:1000", "-serverid:7"),
    T("-up:1000", "-delayType:x -delay:1ms"), T("-up:1000 -up:2000 junk -none:1"),
]

# The original gives its first two streams one number and waits for ever.
HANGS = "its client doesn't end, with its own server neither"
TCP = [
    T("-tcp:1 -streams:10 -up:10kb -down:10kb", without=HANGS),
    T("-tcp:1 -scenario:rps -run:1s", without=HANGS),
]
# It reads faster than it opens what it reads, with a fast server by gigabytes.
PILES = "its client piles up what comes and may not end, with its own server neither"
TCP += [T("-tcp:1 -down:400ms", without=PILES), T("-tcp:1 -scenario:download -down:300ms", without=PILES)]
CRASHES = "its client crashes"
CIBIR = [T("-cibir:aabb -up:10kb", "-cibir:aabb", without=CRASHES)]

REFUSALS = [Case(words, kind="refusal", flags=flags_of(words)) for words in (
    "-target:127.0.0.1 -rstream:1 -up:512", "-target:127.0.0.1 -rconn:1", "-cpu:99",
    "-target:127.0.0.1 -rstream:1 -run:1s", "-target:127.0.0.1 -tcp:1 -encrypt:0",
    "-target:127.0.0.1 -tcp:1 -cibir:aabb", "-target:127.0.0.1 -iosize:100 -up:1000",
    "-target:127.0.0.1 -cibir:00112233445566", "-target:127.0.0.1 -bind:bogus", "-bind:bogus",
    "-target:127.0.0.1 -io:iouring", "-exec:x", "-scenario:x", "-driverName:x", "-driverNamePriv:x",
    "-exec:x -abortOnFailure", "-exec:x -trimout", "-target:127.0.0.1 -port:1",
    "-target:127.0.0.1 -port:1 -tcp:1")]

CASES = ([T(*words) for words in carried()] + QUIC + [T(f"-tcp:1 {words}", served)
         for words, served in carried()] + TCP + CIBIR + REFUSALS)

ELSEWHERE = {
    "-help": "its text is ours", "-port": "every case", "-praw": "the original reads it no more",
    "-oldformat": "ours alone",
}

# Figures that we don't have, and blocks that the original has on Windows only.
OURS_MAY_LACK = re.compile(
    r"  (EcnCapable|SendSpuriousLostPackets|SendEcnCongestionCount|Recv\w+|SCHEDULING:|TlsGroup) ")


# Options by which a run lasts for a time.
LASTING = ("-run:", "-time:", "-runtime:", "-maxruntime:", "-rconn:", "-rc:")


class Secnetperf:
    """The dialect."""

    name = "secnetperf"
    cases = CASES
    elsewhere = ELSEWHERE

    def __init__(self, linerate, originals):
        self.folder = Path(tempfile.mkdtemp(prefix="compat-"))
        self.place = Loopback()
        self.ours = Program("ours", (str(linerate), "secnetperf"), True)
        self.originals = [Program("original", (str(Path(shutil.which(path) or path).resolve()),))
                          for path in originals]

    @staticmethod
    def find():
        """The original on PATH."""
        found = shutil.which("secnetperf")
        return [found] if found else []

    def knows(self, program, case):
        """Every release has all options."""
        return True

    def flags(self):
        """Every option of ours."""
        text = subprocess.run([*self.ours.argv, "-help"], capture_output=True, text=True).stdout
        return {name: name for name in re.findall(r"^  (-\w+)", text, re.M)}

    def run(self, case, server, client, release, number):
        """One case between two programs."""
        place = self.place
        words = place.words("client", case.client).format(file=self.folder / f"file-{number}").split()
        if case.kind == "refusal":
            return Run(cases_.finish(cases_.start([*client.argv, *words]), SECONDS), Ended(0, "", ""))
        port = cases_.free_port()
        host = place.host(case.host).strip("[]")
        serves = [f"-bind:{f'[{host}]' if ':' in host else host}:{port}", *case.server.split()]
        shows = "-stats:1" in serves
        if shows:
            serves.append(f"-maxruntime:{SERVED_MS}")
        serving = cases_.start(place.argv("server", [*server.argv, *serves]))
        try:
            if not cases_.wait_until_listening(serving, port) or not wait_for_datagrams(serving, port):
                return Run(Ended(None, "", ""), Ended(None, "", ""), ["the server does not listen"])
            names = {word[1:].partition(":")[0] for word in words}
            target = [] if names.intersection(TARGETS) else [f"-target:{host}"]
            argv = [*client.argv, *target, f"-port:{port}", *words]
            ended = cases_.finish(cases_.start(place.argv("client", argv)), SECONDS)
        finally:
            if not shows:
                serving.kill()
            served = cases_.finish(serving, SERVED_MS / 1000 + cases_.SERVER_ENDS_WITHIN_S)
        problems = [] if ended.code is not None else [f"the client was still there after {SECONDS:g} s"]
        return Run(ended, served, problems)

    def judge(self, case, run, reference):
        """Why a run isn't right, or None. `reference` is the original against itself."""
        if run.problems:
            return run.problems[0]
        if reference is None:
            return None
        code = reference.client.code
        if case.kind == "refusal" and code is None and run.client.code:
            return None  # the original hung, and ours refused
        if case.kind != "refusal" and (code is None or code < 0):
            # The original hung or crashed: that is nothing to be compared with.
            return None if run.client.code == 0 else f"the exit code is {run.client.code}"
        if run.client.code != code:
            said = (run.client.err or run.client.out).strip().splitlines()
            return f"the exit code is {run.client.code} and not {code}: {said[-1] if said else ''}"
        if code < 0:
            return None  # what an aborted original had to say stayed in its buffer
        lasts = any(word.startswith(LASTING) for word in case.client.split())
        return (judge_lines(run.client.out, reference.client.out, lasts)
                or judge_lines(run.server.out, reference.server.out, lasts))


def wait_for_datagrams(process, port):
    """Whether something receives datagrams on a port in time."""
    deadline = time.monotonic() + cases_.LISTEN_WITHIN_S
    while time.monotonic() < deadline:
        for table in ("udp", "udp6"):
            sockets = Path(f"/proc/{process.pid}/net/{table}").read_text(encoding="ascii")
            if re.search(rf":{port:04X} ", sockets):
                return True
        time.sleep(0.02)
    return False


def judge_lines(ours, theirs, lasts=False):
    """The same lines in the same order, figures aside, but for counts of a plan that doesn't last for a time."""
    ours, theirs = shapes(ours, lasts), shapes(theirs, lasts)
    needed = [line for line in theirs if not OURS_MAY_LACK.match(line)]
    for line in needed:
        if line not in ours:
            return f"does not print: {line}"
    for line in ours:
        if line not in theirs:
            return f"only ours prints: {line}"
    ours = [line for line in ours if line in needed]
    return None if ours == needed else "the lines are in another order"


def shapes(text, lasts=False):
    """Lines without what differs between two runs."""
    found = []
    for line in text.splitlines():
        line = line.rstrip()
        # What was completed is what was asked for, where that isn't a time.
        if lasts or not line.startswith("Completed "):
            line = re.sub(r"0x[0-9a-f]+", "0x#", line)
            line = re.sub(r"(?<![a-zA-Z0-9])\d+(\.\d+)?(?!\.?\d*th)", "#", line)
        if lasts:  # whether a stream that the end cuts is counted is a race in the original
            line = re.sub(r"^Completed # connections( and # streams)?!", "Completed #!", line)
        if not found or line != found[-1]:
            found.append(line)
    return found
