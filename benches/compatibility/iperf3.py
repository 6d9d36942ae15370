"""iperf3: its cases, how they are run, and what makes a run right."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import case as cases_
from .case import Case, Ended, Excused, Program, Run, is_wrong
from .place import Loopback

SECONDS = 25.0
PACE = "-t 1 -b 20M"


# Over a path that loses packets.
UNHEARD = "the original says each greeting and each answer once, and waits for 30 s"
UNTOLD = r"\.lost_(packets|percent):"


def J(client, server="", **more):
    """A case whose ends print documents."""
    return Case(client, server, "json", **more)


def T(client, server="", **more):
    """A case whose ends print text."""
    return Case(client, server, "text", **more)


CASES = [
    J("-t 1"), J(f"{PACE} -P 3"), J(f"{PACE} -R"), J(f"{PACE} -R -P 2"), J(f"{PACE} --bidir"),
    J(f"{PACE} --bidir -P 2"), J("-n 2M -b 40M --bidir"), J("-n 2M -b 40M"),
    J("-n 2M -b 40M -R"), J("-k 20 -b 40M"),
    J("-k 20 -b 40M -R"), J(f"{PACE} -O 1"), J(f"{PACE} -O 1 -R"), J(f"{PACE} -i 0"),
    J(f"{PACE} -i 0.25"), J("-t 1 -l 16K -b 20M"), J(f"{PACE} -w 128K"), J(f"{PACE} -M 1000"),
    J(f"{PACE} -C reno"), J(f"{PACE} --linux-congestion cubic"), J(f"{PACE} -N"),
    J(f"{PACE} -S 0x20"), J(f"{PACE} --dscp ef"), J(f"{PACE} -Z"), J(f"{PACE} -Z -R"),
    J(f"{PACE} --fq-rate 50M"), J(f"{PACE} --pacing-timer 2000"), J("-t 1 -b 20M/10"),
    J("-t 1 --bandwidth 20M"), J(f"{PACE} -4"), J(f"{PACE} -6", host="::1"),
    J(f"{PACE} -6 -L 5", host="::1"), J(f"{PACE} -B 127.0.0.1 --cport {{port}}"),
    J(f"{PACE} --bind-dev lo"), J(f"{PACE} -A 0,0"), J(f"{PACE} -A 0", "-A 0"),
    J(f"{PACE} -T title --extra-data data"), J(f"{PACE} --connect-timeout 1000"),
    J(f"{PACE} -R --rcv-timeout 5000"), J(f"{PACE} --snd-timeout 5000", "--rcv-timeout 5000"),
    J(f"{PACE} --cntl-ka=10/2/3", "--cntl-ka", since="3.19"), J(f"{PACE} --repeating-payload"),
    J(f"{PACE} --skip-rx-copy", since="3.19"), Case(f"{PACE} --no-fq-socket-pacing", "", "exit"),
    J(f"{PACE} --forceflush", "--forceflush"), J(f"{PACE} --get-server-output"),
    J("-F {file} -b 40M"), J(f"{PACE}", "-F {copy}"),
    J("-u -t 1 -b 10M"), J("-u -t 1 -b 10M -P 2"), J("-u -t 1 -b 10M -R"),
    J("-u -t 1 -b 10M -R -P 2"), J("-u -t 1 -b 10M --bidir"), J("-u -t 1 -b 10M --bidir -P 2"),
    J("-u -t 1 -b 10M -O 1", untold=UNTOLD), J("-u -t 1 -b 10M -l 1000"), J("-u -n 1M -b 20M"),
    J("-u -k 100 -b 20M -l 1000"), J("-u -t 1"), J("-u -t 1 -b 10M/5 -l 1000"),
    J("-u -t 1 -b 20M/50"), J("-u -t 1 -b 10M -l 8K"),
    J("-u -t 1 -b 10M --udp-counters-64bit"), J("-u -t 1 -b 10M --repeating-payload"),
    J("-u -t 1 -b 10M --dont-fragment -4"), J("-u -t 1 -b 10M -w 256K"),
    J("-u -t 1 -b 10M -6", host="::1"), J("-u -t 1 -b 20M -l 1400 --gsro", since="3.21"),
    J("-u -t 1 -b 20M -l 1400 --gsro -R", since="3.21"), J("-u -t 1 -b 5M -l 100 --gsro -R", since="3.21"),
    J("-u -t 1 -b 10M -O 1 -R", untold=UNTOLD), J("-u -t 1 -b 10M -S 8"),
    J(f"{PACE}", "--server-bitrate-limit 1G/5"), J(f"{PACE}", "--idle-timeout 20"),
    J(f"{PACE}", "--server-max-duration 5", since="3.20"), J(f"{PACE}", "-4"), J(f"{PACE}", "-B 127.0.0.1"),
    J(f"{PACE}", "--bind-dev lo"),
    J("-t 1 -b 20M", "--server-bitrate-limit 1M", fails=True),
    J("-t 1 --fq-rate 20M", "--server-bitrate-limit 1M", fails=True, since="3.21"),
    J("-u -t 1 -b 10M", "-F {copy}", fails=True, since="3.20"),
    J("-t 9", "--server-max-duration 5", fails=True, since="3.20"),
    J(f"{PACE} --username user --rsa-public-key-path {{public}}",
      "--rsa-private-key-path {private} --authorized-users-path {users} --time-skew-threshold 60"),
    # A server of 3.12 goes on after a client that it has refused, with -1 too.
    J(f"{PACE} --username nobody --rsa-public-key-path {{public}}",
      "--rsa-private-key-path {private} --authorized-users-path {users}", fails=True, since="3.17"),
    Case(f"{PACE} --json-stream", "--json-stream", "stream", since="3.17"),
    Case(f"{PACE} --json-stream --json-stream-full-output", "", "stream", since="3.20"),
    T(PACE), T(f"{PACE} -V", "-V"), T(f"{PACE} -P 2"), T(f"{PACE} -R -V", "-V"),
    T(f"{PACE} --bidir -V", "-V"), T(f"{PACE} --bidir -P 2"), T(f"{PACE} -O 1"),
    T(f"{PACE} -T title"), T(f"{PACE} --timestamps=%s%t"), T(f"{PACE} --timestamps", "--timestamps"),
    T(f"{PACE} -V -i 0 -O 1", "-V -i 0"), T(f"{PACE} -V --cntl-ka=10/2/3", "-V --cntl-ka", since="3.19"),
    T(f"{PACE} -f m"), T(f"{PACE} -f K"), T(f"{PACE} -i 0"), T(f"{PACE} --get-server-output"),
    T(f"{PACE} --logfile {{log}}"), T("-k 20 -b 40M -V"), T("-n 1M -b 40M -V"),
    T("-u -t 1 -b 10M"), T("-u -t 1 -b 10M -P 2 -V", "-V"), T("-u -t 1 -b 10M -R"),
    T("-u -t 1 -b 10M --bidir -V", "-V"), T(f"{PACE}", "--logfile {log}"),
    T(f"{PACE}", "-I {pid}"), T("-F {file} -b 40M"), Case(f"{PACE} -d", "", "exit", flags=("--debug",)),
    J("-t 1 -b 100K -l 4K -P 128"), J("-t 1 -b 100K -l 4K -P 128 -R"), T("-t 1 -b 100K -l 4K -P 128"),
    J("-u -t 1 -b 100K -l 1000 -P 128", breaks=UNHEARD),
    J("-t 1 -b 100K -l 4K -P 1000", alone="128 streams at most"),
    J("-t 1 -b 100K -l 4K -P 1000 -R", alone="128 streams at most"),
    J("-u -t 1 -b 100K -l 1000 -P 1000", alone="128 streams at most"),
    J(f"{PACE} -6 -R", host="::1"), J(f"{PACE} -6 --bidir -P 2", host="::1"),
    J(f"{PACE} -6 -B ::1 --cport {{port}}", "-6 -B ::1", host="::1"),
    J(f"{PACE} -6 --bind-dev lo", host="::1"), J(f"{PACE} -6 -M 1000 -S 8", host="::1"),
    J("-u -t 1 -b 10M -6 -R -P 2", host="::1"), J("-u -t 1 -b 10M -6 --bidir", host="::1"),
    J("-u -t 1 -b 20M -l 1400 -6 --gsro", host="::1", since="3.21"),
    J(f"{PACE} -6 --skip-rx-copy", host="::1", since="3.19"), T(f"{PACE} -6 -V", "-6 -V", host="::1"),
    T("-u -t 1 -b 10M -6 -P 2", host="::1"), J(f"{PACE} -6 -m", host="::1", since="3.19"),
    Case(f"{PACE} -6 --json-stream", "--json-stream", "stream", host="::1", since="3.17"),
    J("-u -t 1 -b 20M -l 1400 --gsro -P 2 --bidir", since="3.21"), J(f"{PACE} --skip-rx-copy -R", since="3.19"),
    J(f"{PACE} -m", since="3.19"), J(f"{PACE} --mptcp -R -P 2", since="3.19"),
] + [Case(words, kind="refusal") for words in (
    "", "-s -c h", "-c h -p 0", "-c h -f x", "-c h -i 61", "-s -u", "-c h -D", "-c h -t 86401",
    "-c h -l 2M", "-c h -u -l 15", "-c h -w 513M", "-c h -M 40000", "-c h -O 601",
    "-c h -n 5 -t 5", "-c h -b 1M/1001", "-c h -S 256", "-c h --dscp 64", "-c h -L 1048576",
    "-c h -R --bidir", "-c h -A x", "-c h --rcv-timeout 500", "-c h -R --rcv-timeout 50",
    "-c h --snd-timeout -1", "-c h --username x", "-s --rsa-private-key-path x",
    "-s --time-skew-threshold 0", "-s --idle-timeout 0", "-c h --nosuch", "-c", "-c h -q",
    "-c 127.0.0.1 -p 1", "-c nowhere.invalid", "-c h --logfile /nowhere/x",
)] + [Case("-c 127.0.0.1 -p 1 -J", kind="refusal", since="3.19")]

# Covered by hand or by other tests, with the place.
ELSEWHERE = {
    "--version": "errors.rs", "--help": "errors.rs", "--daemon": "cli.rs", "--one-off": "every case",
    "--server": "every case", "--client": "every case", "--port": "every case",
    "--json": "every case", "--max-tests": "cli.rs", "--use-pkcs1-padding": "credentials.rs",
    "--sctp": "refused", "--xbind": "refused", "--nstreams": "refused",
}


class Iperf3:
    """The dialect."""

    name = "iperf3"
    cases = CASES
    elsewhere = ELSEWHERE

    def __init__(self, linerate, originals):
        self.folder = Path(tempfile.mkdtemp(prefix="compat-"))
        self.place = Loopback()
        self.ours = Program("ours", (str(linerate), "iperf3"), True)
        self.originals = [self._original(path) for path in originals]
        self._make_files()

    def _original(self, path):
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        return Program(text.split()[1].rstrip("+"), (str(path),))

    @staticmethod
    def find():
        """The originals on PATH."""
        found = shutil.which("iperf3")
        return [found] if found else []

    def knows(self, program, case):
        """Whether a release has what a case needs."""
        number = lambda text: [int(part) for part in text.split(".")]  # noqa: E731
        return program.ours or not case.since or number(program.label) >= number(case.since)

    def flags(self):
        """Every flag of ours, each with its letter."""
        text = subprocess.run([*self.ours.argv, "--help"], capture_output=True, text=True).stdout
        found = re.findall(r"^    (?:(-\w), )?(--[a-z0-9-]+)", text, re.M)
        return {name: letter for letter, name in found}

    def _make_files(self):
        (self.folder / "file").write_bytes(bytes(range(256)) * 8192)
        (self.folder / "users").write_text(
            "user,0f3e8f3ed85bf4c01e2db4a4c56a9c21d02b5e9d9ed9ea3a7d2dbb47c1ab4d08\n")
        if shutil.which("openssl"):
            private, public = self.folder / "private", self.folder / "public"
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, **quiet)
            subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public],
                           check=True, **quiet)
            import hashlib
            digest = hashlib.sha256(b"{user}secret").hexdigest()
            (self.folder / "users").write_text(f"user,{digest}\n")

    def _words(self, text, number):
        names = {name: self.folder / name for name in ("file", "users", "private", "public")}
        for name in ("copy", "log", "pid"):
            names[name] = self.folder / f"{name}-{number}"
        return text.format(port=20_000 + number % 10_000, **names).split()

    def run(self, case, server, client, release, number):
        """One case between two programs; ours print what this release prints."""
        claim = (("LINERATE_IPERF3_VERSION", release),)
        if case.kind == "refusal":
            argv = [*client.argv, *case.client.split()]
            return Run(cases_.finish(cases_.start(argv, claim), SECONDS), Ended(0, "", ""))
        form = ["-J"] if case.kind == "json" else []
        port = cases_.free_port()
        place = self.place
        client_words = self._words(place.words("client", case.client), number)
        server_argv = place.argv("server", [
            *server.argv, "-s", "-1", "-p", str(port), *form,
            *self._words(place.words("server", case.server), number + 1)])
        client_argv = place.argv("client", [
            *client.argv, "-c", place.host(case.host), "-p", str(port), *form, *client_words])
        secret = (("IPERF3_PASSWORD", "secret"),)
        run = cases_.run_pair(server_argv, client_argv, port, (claim, claim + secret), SECONDS)
        for end, words in ((run.client, case.client), (run.server, case.server)):
            if "{log}" in words:
                used = number if end is run.client else number + 1
                log = self.folder / f"log-{used}"
                end.out = log.read_text(errors="replace") if log.exists() else ""
                log.unlink(missing_ok=True)
        return run

    def judge(self, case, run, reference):
        """Why a run isn't right, or None. `reference` is the original against itself."""
        if run.problems:
            return run.problems[0]
        if case.kind == "refusal":
            return judge_refusal(run.client, reference and reference.client)
        if case.fails:
            # Old releases exit with 0 after an error in a document.
            told = run.client.code == 1 or '"error":' in run.client.out
            return None if told else f"the client's exit code is {run.client.code}"
        for name, end in (("client", run.client), ("server", run.server)):
            if end.code != 0:
                said = (end.err or end.out).strip().splitlines()
                return f"the {name}'s exit code is {end.code}: {said[-1] if said else ''}"
        if case.kind == "exit":
            return None
        judged = {"json": judge_documents, "text": judge_text, "stream": judge_stream}[case.kind]
        return judged(case, run, reference)


def judge_refusal(client, reference):
    """The same exit code and the same first line. Originals end a text with a colon where the system said nothing."""
    if reference is None:
        return "the original was not run"
    told = lambda end: (end.code, first_line(end.err or end.out).rstrip(":"))  # noqa: E731
    if told(client) != told(reference):
        return f"{told(client)} and not {told(reference)}"
    return None


def first_line(text):
    """The first line, without the directory of the program's name."""
    return re.sub(r"^\S*/iperf3:", "iperf3:", text.strip().partition("\n")[0]).strip()


def judge_documents(case, run, reference):
    """Both documents whole, the same fields as the original's, and the same bytes at both ends."""
    try:
        client, server = json.loads(run.client.out), json.loads(run.server.out)
    except ValueError as error:
        return f"no document: {error}"
    for document in (client, server):
        if "error" in document:
            return f"error: {document['error']}"
    wrong = judge_bytes(client, server) or judge_packets(client) or judge_packets(server)
    if wrong or reference is None:
        return wrong
    excused = None
    for name, document, other in (("client", client, reference.client.out),
                                  ("server", server, reference.server.out)):
        found = judge_fields(case, name, document, json.loads(other))
        if is_wrong(found):
            return found
        excused = excused or found
    return excused


def judge_bytes(client, server):
    """What one end says it received is what the other one is told, and it isn't nothing."""
    end, served = client["end"], server["end"]
    names = ["sum_sent", "sum_received"]
    names += [name + "_bidir_reverse" for name in names if name + "_bidir_reverse" in end]
    for name in names:
        if not end.get(name, {}).get("bytes"):
            return f"the client's {name} is nothing"
    # A server's directions are the other way round.
    both = "sum_sent_bidir_reverse" in end
    reverse = client["start"]["test_start"].get("reverse", 0)
    own = "sum_sent" if reverse and not both else "sum_received"
    if end[own]["bytes"] != served[own]["bytes"]:
        return f"{own}: {end[own]['bytes']} bytes at the client, {served[own]['bytes']} at the server"
    if end["sum_received"]["bytes"] > end["sum_sent"]["bytes"] * 1.05 + 4e6:
        return "more was received than sent"
    return None


def judge_packets(document):
    """Datagrams are as many as the bytes make, those of the omitted time left out."""
    length = document["start"]["test_start"].get("blksize", 0)
    for name in ("sum_sent", "sum_received"):
        figures = document["end"].get(name, {})
        if not figures.get("bytes") or "packets" not in figures:
            continue
        arrived = figures["packets"] - figures.get("lost_packets", 0)
        if abs(arrived * length - figures["bytes"]) > figures["bytes"] * 0.1 + 20 * length:
            return f"{name}: {arrived} packets of {length} bytes, and {figures['bytes']} bytes"
    return None


def fields(value, path=""):
    """Every field of a document, with its kind."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from fields(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, path + "[]")
    else:
        kind = "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
        yield f"{path}:{kind}"


def judge_fields(case, name, document, other):
    """The same fields of the same kinds, and the same test; excused where a case may leave some untold."""
    ours, theirs = list(dict.fromkeys(fields(document))), list(dict.fromkeys(fields(other)))
    untold = [field for field in theirs if field not in ours and case.untold and re.search(case.untold, field)]
    theirs = [field for field in theirs if field not in untold]
    missing = [field for field in theirs if field not in ours]
    more = [field for field in ours if field not in theirs]
    if missing or more:
        return f"the {name}'s fields: without {missing[:3]}, with {more[:3]}"
    if ours != theirs:
        return f"the {name}'s fields are in another order"
    for field, value in other["start"]["test_start"].items():
        if document["start"]["test_start"].get(field) != value:
            found = document["start"]["test_start"].get(field)
            return f"the {name}'s test_start.{field} is {found} and not {value}"
    return Excused(f"the {name} doesn't know {untold}: the peer's release doesn't tell") if untold else None


def judge_stream(case, run, reference):
    """The same events in the same order."""
    if reference is None:
        return None
    for name, end, other in (("client", run.client, reference.client),
                             ("server", run.server, reference.server)):
        if events(end.out) != events(other.out):
            return f"the {name}'s events: {events(end.out)} and not {events(other.out)}"
    return None


def events(text):
    """Names of events; intervals in a row count once, and so does what is no event."""
    names = []
    for line in text.splitlines():
        found = re.match(r'\{"event":"(\w+)"', line)
        name = found.group(1) if found else ("document" if line == "{" else "")
        if name and names[-1:] != [name]:
            names.append(name)
    return names


def judge_text(case, run, reference):
    """The same lines, figures aside, and the same bytes at both ends."""
    wrong = judge_amounts(run.client.out, run.server.out)
    if wrong or reference is None:
        return wrong
    for name, end, other in (("client", run.client, reference.client),
                             ("server", run.server, reference.server)):
        ours, theirs = shapes(end.out), shapes(other.out)
        for line in theirs:
            if line not in ours:
                return f"the {name} does not print: {line.strip()}"
        for line in ours:
            if line not in theirs:
                return f"only ours prints at the {name}: {line.strip()}"
    return None


def judge_amounts(client, server):
    """What a server says that it sent or received, its client says of it, and nothing is nothing."""
    told, known = amounts(server), amounts(client)
    for line in told + known:
        if line[1].startswith("0.00 "):
            return f"{line[0]}: nothing"
    for line in told:
        if line not in known:
            return f"{line[0]}: {line[1]} at the server, not so at the client"
        known.remove(line)
    return None if told else "the server tells no bytes"


def amounts(text):
    """Which end counted, and how much: of every line of a summary."""
    lines = re.finditer(r" sec +([\d.]+ [KMGT]?Bytes) .*?(sender|receiver) *$", text, re.M)
    return [(line.group(2), line.group(1)) for line in lines]


def shapes(text):
    """Lines without what differs between two runs: figures, units, and how wide they are."""
    found = []
    for line in text.splitlines():
        line = re.sub(r"^iperf 3\.\S+", "iperf 3", line)
        line = re.sub(r"Cookie: \w+", "Cookie: x", line)
        line = re.sub(r"\b[KMGT]?(Bytes|bits)\b", r"\1", line)
        line = re.sub(r"[-+]?\d+(\.\d+)?(e[+-]\d+)?", "#", line)
        line = re.sub(r"[A-Z][a-z]{2}(,)? [A-Z#][a-z#]* ?[A-Z#]?[a-z]* ", "Day ", line)
        line = re.sub(r"\S*(file|log|copy)-?#?$", "file", line)
        line = re.sub(r" +", " ", line)
        # A receiving original prints one head or the other, as its threads come.
        line = line.replace(" Retr Cwnd", "")
        if line not in found:
            found.append(line)
    return found
