"""netperf: its cases, how they are run, and what makes a run right."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import case as cases_
from . import services
from .case import Case, Ended, Program, Run
from .place import Loopback

SECONDS = 25.0
# Counts of both ends; bytes that one sent the other received.
COUNTS = "LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,REMOTE_BYTES_SENT,LOCAL_BYTES_RECVD,THROUGHPUT"
CALLS = "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS"
# What befalls an original that counts datagrams.
FOREVER = "one that is lost is awaited for ever"
# What befalls an original that paces.
TIMER = "its pacing timer interrupts its wait for the results"


def flags_of(client):
    """The flags of a command line; those behind `--` have it before them."""
    own, _, test = client.partition(" -- ")
    letters = [f"-{letter}" for letter in re.findall(r"(?:^| )-([A-Za-z46])", own)]
    return tuple(letters + [f"--:-{letter}" for letter in re.findall(r"(?:^| )-([A-Za-z46])", test)])


def T(client, server="", **more):
    """A case that prints a table or selected figures."""
    return Case(client, server, "text", flags=flags_of(client), **more)


def options():
    """Options one by one, with a test for which they matter; figures of both ends are compared."""
    bulk, ask = "-t TCP_STREAM -l -1000000", "-t TCP_RR -l 1"
    for option in ("-a 16", "-A 16,8", "-o 1", "-O 1", "-S", "-T 0,0", "-W 3,4", "-n 2", "-y 2,3",
                   "-Y cs1,0x10", "-Y lowdelay,throughput", "-Y reliability", "-b 0", "-w 5",
                   "-F {file}", "-s 1", "-4", "-L 127.0.0.1", "-f K", "-B brand",
                   "-v 2", "-j", "-r -i 3 -I 95,90", "-Z word", "-c", "-C", "-c 100 -C 100",
                   "-k 1000,2000", "-K 1000,2000", "-k 5 -K ,6", "-F {file} -k 1000 -W 9,9"):
        yield T(f"{option} -P 0 {bulk} -- -k {COUNTS}")
    for option in ("-m 1K,2K", "-M 3K,4K", "-s 32K", "-S 64K,32K", "-D", "-C", "-V", "-K cubic,reno",
                   "-G 1000", "-R 1", "-a", "-4", "-u name", "-P ,{port}", "-W 3",
                   "-L 127.0.0.1 -H 127.0.0.1", "-m 0", "-w 5", "-I", "-U", "-i 1 -j 1", "-l 3", "-f", "-g",
                   "-H 127.0.0.0/8"):
        yield T(f"-P 0 {bulk} -- {option} -k {COUNTS}")
    for option in ("-b 3", "-r 100,200", "-D -r 1000 -b 4", "-R 0"):
        yield T(f"-P 0 {ask} -- {option} -k {COUNTS},REQUEST_SIZE,RESPONSE_SIZE,BURST_SIZE")
    yield T(f"-P 0 -t TCP_STREAM -l 1 -- -q 10M -k ELAPSED_TIME")
    yield T(f"-P 0 -t TCP_RR -l -10 -- -6 -H ::1 -L ::1 -k {COUNTS}")
    for option in ("-e 1", "-n -N", "-B", "-r 100"):
        yield T(f"-P 0 -t UDP_RR -l 1 -- {option} -k {COUNTS}")
    for test in ("TCP_MAERTS -l 1", "TCP_RR -l 1", "TCP_CRR -l -100", "UDP_STREAM -l 1", "UDP_RR -l 1"):
        yield T(f"-t {test} -k 100,200 -K 300,400 -F {{file}}")
    yield T("-t TCP_CRR -l -100 -- -F")
    yield T("-t TCP_CRR -l -100 -- -H 127.0.0.0/8")


def omni():
    """Where omni tests take their direction from, each with figures of both ends."""
    for option in ("-d send", "-d recv", "-m 1K", "-m ,1000", "-m 1000,2000", "-M 2K", "-M ,2K", "-M 1000,2000",
                   "-m 1K -M ,2K", "-d recv -m 1K", "-r 5 -d send", "-d rr -r 100,200"):
        yield T(f"-t omni -l 1 -- {option} -k DIRECTION,{COUNTS}")
    for option in ("-d send -m 1000", "-d recv -m ,1000 -L 127.0.0.1", "-d rr -r 100,200"):
        yield T(f"-t omni -l 1 -- -T udp {option} -k DIRECTION,{COUNTS}")
    yield T("-t omni -l -100 -- -c")
    yield T("-t omni -l -100 -- -c -r 100,200 -k DIRECTION,THROUGHPUT,TRANSACTION_RATE")
    for option in ("", "-d rr", "-d maerts", "-c -r 1"):
        yield T(f"-t omni -v 2 -l {'-100' if '-c' in option else '1'} -- {option}")


def over_ipv6():
    """Each test over IPv6: the server is where `-6` alone says, too."""
    for test in ("TCP_MAERTS -l 1", "TCP_SENDFILE -l 1 -F {file}", "TCP_RR -l 1", "TCP_CRR -l -100", "TCP_CC -l -100",
                 "UDP_STREAM -l 1", "omni -l 1"):
        yield T(f"-6 -t {test}", host="::1")
    for test, option in (("TCP_STREAM -l -1000000", ""), ("TCP_MAERTS -l 1", ""), ("TCP_RR -l 1", "-r 100,200"),
                         ("UDP_STREAM -l 1", "-m 1000"), ("UDP_RR -l 1", "-r 100,200"), ("omni -l 1", "-d recv")):
        yield T(f"-6 -P 0 -t {test} -- {option} -k {COUNTS}", host="::1")


def alone():
    """Tests without a control connection, against services that discard, echo or generate."""
    for test, service in (("TCP_STREAM", "discard"), ("TCP_MAERTS", "chargen"), ("TCP_RR", "echo"),
                          ("TCP_CRR", "echo"), ("UDP_STREAM", "discard"), ("UDP_RR", "echo"),
                          ("TCP_MSS", "echo"), ("omni", "discard")):
        yield T(f"-N -t {test} -l 1 -- -P ,{{{service}}}")
    yield T(f"-N -t TCP_STREAM -l -1000000 -- -P ,{{discard}} -k {COUNTS}")
    yield T("-N -c -t TCP_RR -l 1 -- -P ,{echo}")
    yield T("-N -t LOC_CPU")


CASES = [
    T("-t TCP_STREAM -l 1"), T("-t TCP_STREAM -l 1 -P 0"), T("-t TCP_STREAM -l 1 -v 0"),
    T("-t TCP_STREAM -l 1 -v 2"), T("-t TCP_STREAM -l 1 -c -C"), T("-t TCP_STREAM -l 1 -c -v 0 -P 0"),
    T("-t TCP_STREAM -l 1 -f G"), T("-t TCP_STREAM -l 1 -f x"), T("-t TCP_STREAM -l 1 -P 0 -B brand"),
    T("-t TCP_STREAM -l 2 -D 0.3"), T("-t TCP_STREAM -l 2 -D -0.3 -- -k THROUGHPUT,ELAPSED_TIME"),
    T("-t TCP_STREAM -l 2 -D 0.3 -- -o THROUGHPUT,ELAPSED_TIME"), T("-t TCP_STREAM -l 2 -D ,1000"),
    T("-t TCP_STREAM -l 1 -- -k 'THROUGHPUT, ELAPSED_TIME UUID'"), T("-t TCP_STREAM -l 1 -- -k {selection}"),
    T("-t TCP_STREAM -l 1 -- -O THROUGHPUT;"), T("-t TCP_STREAM -l 1 -- -O THROUGHPUT;;ELAPSED_TIME"),
    T("-t TCP_STREAM -l 1 -- -O UUID;THROUGHPUT;PROTOCOL;DIRECTION;ELAPSED_TIME"),
    T("-t TCP_STREAM -l 1 -- -O THROUGHPUT,OUTPUT_NONE,UUID"), T("-t TCP_STREAM -l 1 -- -o ;"),
    T("-L 127.0.0.1 -t TCP_RR -l -10 -- -H 127.0.0.1"), T("-t UUID"), T("-t UUID -- -u text"),
    T("-- -H nowhere.invalid", resolves=True), T("-- -L nowhere.invalid", resolves=True),
    T("-t TCP_STREAM -l 1 -- -k all"), T("-t TCP_STREAM -l 1 -- -o all"), T("-t TCP_STREAM -l 1 -- -O"),
    T("-6 -t TCP_STREAM -l 1", host="::1"), T("-t TCP_MAERTS -l 1"), T("-t TCP_MAERTS -l 1 -v 2"),
    T(f"-t TCP_MAERTS -l 1 -- -k {COUNTS}"), T("-t TCP_MAERTS -l 1 -c -C"), T("-t TCP_MAERTS -l 1 -- -m ,1000 -M ,2000"),
    T(f"-t TCP_MAERTS -l 1 -- -M ,0 -k {COUNTS}"),
    T("-t TCP_SENDFILE -l 1 -F {file}"), T("-t TCP_SENDFILE -l 1 -c -C -F {file}"),
    T("-t TCP_RR -l 1"), T("-t TCP_RR -l 1 -v 0"), T("-t TCP_RR -l 1 -v 2"), T("-t TCP_RR -l 1 -c -C"),
    T("-t TCP_RR -l 1 -c -C -f m"), T("-t TCP_RR -l 1 -f k -D 0.3"),
    T("-t TCP_RR -l 1 -j -- -k MIN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY"),
    T("-t TCP_STREAM -l 1 -j -- -k MIN_LATENCY,P99_LATENCY,MEAN_LATENCY"), T("-t UDP_STREAM -l 1 -v 2"),
    T("-t TCP_MAERTS -l 1 -- -k MAX_LATENCY,P50_LATENCY"),
    T("-t UDP_STREAM -l 1 -- -m 1000 -k P90_LATENCY,STDDEV_LATENCY"),
    T("-t TCP_CRR -l 1"), T("-t TCP_CRR -l 1 -c -C"), T("-t TCP_CRR -l -100 -v 2"),
    T("-t TCP_CRR -l -100 -- -p 20000,30000"), T("-t TCP_CC -l 1"), T("-t TCP_CC -l -100 -v 2"),
    T("-t UDP_STREAM -l 1"), T("-t UDP_STREAM -l 1 -v 0"), T("-t UDP_STREAM -l 1 -c -C -- -m 1000"),
    T("-t UDP_STREAM -l 1 -D 0.3 -- -m 1000 -R 1"), T("-t UDP_STREAM -l 1 -- -m 1000 -k all"),
    T("-6 -t UDP_RR -l 1", host="::1"), T("-t UDP_RR -l 1"), T("-t UDP_RR -l 1 -c -C"),
    T("-t UDP_RR -l 1 -- -k all"), T("-t omni -l 1"), T("-t omni -l 1 -c -C"), T("-t omni -l 1 -- -d rr"),
    T("-t omni -l 1 -- -d maerts"), T("-t omni -l 1 -- -T udp -m 1000"), T("-t omni -l 1 -- -T udp -d rr"),
    T("-t omni -l -100 -- -c -r 1"), T("-t omni -l 1 -- -t stream"), T("-t LOC_CPU"), T("-t REM_CPU"),
    T("-t REM_CPU -v 2"), T("-t TCP_RR -l -10", "-Z word", fails=True),
    T("-Z word -t TCP_RR -l -10", "-Z word"), T("-t nothing"), T("-I 90,5 -t TCP_RR"),
    # The original must be built with --enable-intervals and --enable-burst.
    T("-t TCP_STREAM -l 1 -b 100 -w 10", breaks=TIMER), T("-t TCP_MAERTS -l 1 -b 100 -w 10", breaks=TIMER),
    T("-t UDP_STREAM -l 1 -b 10 -w 10 -- -m 1000", breaks=TIMER), T("-t TCP_RR -l 1 -b 10 -w 10", breaks=TIMER),
    T("-t TCP_RR -l 1", "-f"), T("-t TCP_STREAM -l 1 -C -- -k REMOTE_CPU_COUNT", "-n 4"),
    T("-t TCP_RR -l 1 -b 1 -w 10 -- -k RT_LATENCY,THROUGHPUT", breaks=TIMER),
    T("-t TCP_RR -l 1 -b 1 -w 10 -v 2", breaks=TIMER),
    T("-t TCP_CRR -l -100 -- -b 4 -k RT_LATENCY,TRANSACTION_RATE,BURST_SIZE"),
    T("-t TCP_CRR -l 1 -b 1 -w 10 -- -k RT_LATENCY,TRANSACTION_RATE",
      without=TIMER),
    T("-t TCP_CC -l -100 -f k"), T("-t TCP_CC -l -100 -f M -v 0"), T("-t TCP_CC -l -100 -f g -c -C"),
    T("-t UDP_STREAM -l 1 -P 0 -- -m 1000 -k " + COUNTS + "," + CALLS),
    T("-t TCP_STREAM -l 1 -v 2 -- -k THROUGHPUT"), T("-t TCP_MAERTS -l 1 -v 2 -- -k THROUGHPUT"),
    T("-t TCP_RR -l 1 -v 2 -- -k THROUGHPUT"), T("-t TCP_CRR -l -100 -v 2 -- -o THROUGHPUT"),
    T("-t TCP_RR -l 1 -i 2,4 -I 95,90 -r -P 0 -- -k CONFIDENCE_ITERATION"),
    T("-t UDP_RR -l -100", breaks=FOREVER), T("-t omni -l -50 -- -d rr -T udp", breaks=FOREVER),
    T("-t UDP_STREAM -l -1000000 -- -m 1000", breaks=FOREVER),
    T("-t TCP_CRR -l -100 -- -P {port}"),
] + list(options()) + list(omni()) + list(over_ipv6()) + list(alone()) + [Case(words, kind="refusal", flags=flags_of(words)) for words in (
    "-x", "-t", "-I 90,5", "-V", "-h", "-H nowhere.invalid", "-H 127.0.0.1 -p 1", "-4 -H 127.0.0.1 -p 1", "-6 -p 1",
    "-6 -t TCP_RR -p 1", "-p 1", "-- -o missing.file", "-- -k THROUGHPUTS")]

# Refused in a sentence, or not a test: told by the command line's own tests.
ELSEWHERE = {
    "-d": "for the eye", "--:-h": "for the eye", "-p": "every case", "-H": "every case",
}


class Netperf:
    """The dialect."""

    name = "netperf"
    cases = CASES
    elsewhere = ELSEWHERE

    def __init__(self, linerate, originals):
        self.folder = Path(tempfile.mkdtemp(prefix="compat-"))
        (self.folder / "file").write_bytes(bytes(range(256)) * 4096)
        (self.folder / "selection").write_text("throughput units,Elapsed Time (sec)\nUUID,Local CPU Model\n")
        self.place = Loopback()
        self.ours = Program("ours", (str(linerate), "netperf"), True)
        self.originals = [self._original(path) for path in originals]

    def _original(self, path):
        path = Path(shutil.which(path) or path).resolve()
        text = subprocess.run([path, "-V"], capture_output=True, text=True).stdout
        return Program(text.split()[-1], (str(path),))

    @staticmethod
    def find():
        """The original on PATH."""
        found = shutil.which("netperf")
        return [found] if found else []

    def knows(self, program, case):
        """Every release has all options."""
        return True

    def flags(self):
        """Every flag of ours but those with a name, which the original lacks; those of the tests have `--:` before them."""
        text = subprocess.run([*self.ours.argv, "-h"], capture_output=True, text=True).stderr
        own, _, test = text.partition("Test options:")
        letters = lambda part: re.findall(r"^    (-\w)", part, re.M)  # noqa: E731
        return {name: name for name in letters(own) + [f"--:{flag}" for flag in letters(test)]}

    def run(self, case, server, client, release, number):
        """One case between two programs."""
        place, port = self.place, cases_.free_port()
        names = {name: self.folder / name for name in ("file", "selection")}
        names |= {"port": 20_000 + number % 10_000}
        # Without a control connection three services stand where the server would.
        names |= {service: port + offset for offset, service in enumerate(services.SERVICES)}
        words = shlex.split(place.words("client", case.client).format(**names))
        if case.kind == "refusal":
            return Run(cases_.finish(cases_.start([*client.argv, *words]), SECONDS), Ended(0, "", ""))
        if "-N" in case.flags:
            argv = [sys.executable, services.__file__, str(port)]
        elif server.ours:
            argv = [server.argv[0], "netserver", "-D", "-p", str(port), *case.server.split()]
        else:
            program = str(Path(server.argv[0]).with_name("netserver"))
            argv = [program, "-D", "-p", str(port), *case.server.split()]
        serving = cases_.start(place.argv("server", argv))
        try:
            if not cases_.wait_until_listening(serving, port):
                return Run(Ended(None, "", ""), Ended(None, "", ""), ["the server does not listen"])
            argv = [*client.argv, "-H", place.host(case.host), "-p", str(port), *words]
            ended = cases_.finish(cases_.start(place.argv("client", argv)), SECONDS)
        finally:
            serving.terminate()
            served = cases_.finish(serving, cases_.SERVER_ENDS_WITHIN_S)
        problems = [] if ended.code is not None else [f"the client was still there after {SECONDS:g} s"]
        return Run(ended, served, problems)

    def judge(self, case, run, reference):
        """Why a run isn't right, or None. `reference` is the original against itself."""
        if run.problems:
            return run.problems[0]
        if case.fails:
            return None if run.client.code else "the client's exit code is 0"
        wrong = judge_bytes(case, run.client.out) or judge_round_trip(case, run.client.out)
        if wrong or reference is None:
            return wrong
        if run.client.code != reference.client.code:
            said = (run.client.err or run.client.out).strip().splitlines()
            return f"the exit code is {run.client.code}: {said[-1] if said else ''}"
        return judge_lines(run.client.out, reference.client.out, over_link=self.place.name != "loopback")


def judge_bytes(case, text):
    """Over TCP what one end sent the other received, and it isn't nothing; over UDP no more than that."""
    counts = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z0-9_]+=", line))
    if any(count not in counts for count in COUNTS.split(",")) or "-N" in flags_of(case.client):
        # Without a control connection the other end's aren't known.
        return None
    up = int(counts["LOCAL_BYTES_SENT"]), int(counts["REMOTE_BYTES_RECVD"])
    down = int(counts["REMOTE_BYTES_SENT"]), int(counts["LOCAL_BYTES_RECVD"])
    udp = "UDP" in case.client or "-T udp" in case.client
    if up[0] > 0 and down[1] > 0:
        return judge_transactions(case, up, down, udp)
    if down[0] > 0:
        sent, arrived = down
        # The client ends before all has come; of the original's count, see below.
        right = 0 < arrived <= sent + (0 if udp else 65_536)
        return None if right else f"{sent} bytes were sent down and {arrived} arrived"
    sent, arrived = up
    if udp:
        return None if 0 < arrived <= sent else f"{sent} bytes were sent and {arrived} arrived"
    # A server that is told a number of bytes ends when it has them, not when all have come; the
    # original doesn't count what went of a send that its timer interrupted.
    left = 65_536 if " -l -" in case.client else 0
    if not 0 < arrived <= sent + 65_536 or sent > arrived + left:
        return f"{sent} bytes were sent and {arrived} arrived"
    return None


def judge_transactions(case, up, down, udp):
    """Both ends count the same, but for the transactions on their way at the end, and those that UDP loses."""
    test = case.client.partition(" -- ")[2]
    burst = re.search(r"(?:^| )-b (\d+)", test)
    sizes = re.search(r"(?:^| )-r (\d+)(?:,(\d+))?", test)
    request = int(sizes[1]) if sizes else 1
    response = int(sizes[2] or sizes[1]) if sizes else 1
    open_ones = 1 + (int(burst[1]) if burst else 0)
    for size, (sent, arrived), where in ((request, up, ""), (response, down, " down")):
        most = size * open_ones
        if arrived <= 0 or arrived > sent + most or (not udp and sent > arrived + most):
            return f"{sent} bytes were sent{where} and {arrived} arrived"
    return None


def judge_round_trip(case, text):
    """A round trip isn't the pace, and a connection's without one is what its rate says."""
    counts = dict(re.findall(r"^([A-Z_]+)=([\d.]+)$", text, re.M))
    if "RT_LATENCY" not in counts:
        return None
    latency_s = float(counts["RT_LATENCY"]) / 1e6
    rate = float(counts.get("TRANSACTION_RATE") or counts["THROUGHPUT"])
    if "-t TCP_CRR" in case.client and " -w " not in case.client:
        return None if 0.99 < latency_s * rate < 1.01 else f"{latency_s} s at {rate}/s, one at a time"
    # One connection that waits a second for a lost packet at the end makes the mean much longer.
    if re.search(r" -b 1 -w 10 ", case.client) and rate > 95 and 0.9 < latency_s * rate < 1.1:
        return f"{latency_s} s is the pace, not the round trip"
    return None


# What the original says when its timer comes once more after a test's end, which it does now and then.
TIMER_AGAIN = re.compile(r"^catcher: timer popped with times_up != 0\n", re.M)
INTERIM = re.compile(r"^Interim result: .*\n", re.M)


def judge_lines(ours, theirs, over_link=False):
    """The same lines in the same order, figures aside; over a link, where all may be lost for a while, an interim result comes or not."""
    # Two originals that came to no transaction in time divide by 0; whoever is judged may not.
    theirs = TIMER_AGAIN.sub("", re.sub(r"\binf\b", "0", theirs))
    if over_link:
        ours, theirs = INTERIM.sub("", ours), INTERIM.sub("", theirs)
    ours, theirs = shapes(ours), shapes(theirs)
    for line in theirs:
        if line not in ours:
            return f"does not print: {line}"
    for line in ours:
        if line not in theirs:
            return f"only ours prints: {line}"
    return None if ours == theirs else "the lines are in another order"


# What an original that was built without histograms, pacing or dirt doesn't print.
EXTRA = re.compile(r" : (histogram|interval|dirty data)(?= |$)")
HISTOGRAM = re.compile(r"\n\n?Histogram of .*?HIST_TOTAL: +\d+\n", re.S)


def shapes(text):
    """Lines without what differs between two runs: figures and the width of columns."""
    found = []
    for line in HISTOGRAM.sub("\n", text.replace("\0", " ")).splitlines():
        line = EXTRA.sub("", line).strip()
        if line.count(",") > 20:
            line = f"{line.count(',')} commas"
        if re.match(r"[A-Z0-9_]+(\[\d+\])?=", line):
            line = re.sub(r"\[\d+\]", "[]", line).partition("=")[0]
        # The directory of the program's name, in usage and errors.
        line = re.sub(r"\S*/netperf\b", "netperf", line)
        line = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "uuid", line)
        line = re.sub(r"(?<![\^A-Za-z0-9])-?\d+(\.\d+)?(?![\^A-Za-z])", "#", line)
        line = re.sub(r"-nan", "#", line)
        # How processors were measured: of the whole machine, or of each end's own test.
        line = re.sub(r"(?<=[#%] )( *)[RS]+(?= |$)", r"\1R", line)
        line = re.sub(r'"netperf [^"]*"', '"command"', line)
        line = re.sub(r" +", " ", line)
        # Whether results agree isn't for a second run to repeat; a build without dirt says so.
        if line.startswith("!!!") or "how to get dirty" in line:
            continue
        if line and line not in found:
            found.append(line)
    return found
