"""The links, and the namespaces that they are between."""

import json
import os
import pathlib
import signal
import subprocess
import time
from collections import namedtuple

# As `linerate link` takes it, and in words of the page.
Description = namedtuple("Description", "toml words")
# As the profiles of `linerate link`, without their own losses: each row has its own.
LINKS = {
    "geo": Description("""
[both]
delay = '290ms'
rate = '20Mbit/s'
queue = '1MB'
""", "290 ms each way, 20 Mbit/s, queues of 1 MB"),
    "leo": Description("""
[to_right]
delay = '25ms'
jitter = '5ms'
distribution = 'normal'
rate = '15Mbit/s'
queue = '200kB'
[to_left]
delay = '25ms'
jitter = '5ms'
distribution = 'normal'
rate = '100Mbit/s'
queue = '1MB'
""", "25 ms each way with 5 ms of jitter; 100 Mbit/s and a queue of 1 MB to the client, 15 Mbit/s and 200 kB from it"),
}
RIGHT_ADDRESS = "10.77.0.2"
# The congestion control of all ends, of QUIC and TCP.
CONGESTION = "cubic"
# How long a program may take to begin.
BEGINS_S = 20


def description(name, loss_percent):
    """The link of this name with this loss on both directions, in TOML."""
    text = LINKS[name].toml
    if loss_percent:
        text = text.replace("delay =", f"loss = '{loss_percent}%'\ndelay =")
    return text


class Link:
    """Two namespaces and the link between them, until the block ends."""

    def __init__(self, linerate, folder, name, loss_percent):
        self.linerate = linerate
        self.name = name
        # Several may be there at a time, of several commands.
        self.left = f"pep{os.getpid()}{name}l"
        self.right = f"pep{os.getpid()}{name}r"
        self.path = folder / f"{name}.toml"
        self.path.write_text(description(name, loss_percent), encoding="utf-8")
        self.report_path = folder / f"{name}.json"
        self.programs = []
        self.report = None
        # How long the programs at the right have waited for a processor, until the last run.
        self.waited_s = 0.0

    def __enter__(self):
        words = [self.linerate, "link", str(self.path), "--left", self.left, "--right", self.right,
                 "--json", "--output", str(self.report_path), "--sleep"]
        self.link = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for_line(self.link.stderr, "the link is up")
            # Otherwise TCP has the host's, which may be another than that of QUIC's ends.
            for namespace in (self.left, self.right):
                change_route(namespace, "congctl", CONGESTION)
        except BaseException:
            end(self.link)
            raise
        return self

    def __exit__(self, *_):
        for program in reversed(self.programs):
            end(program)
        end(self.link)
        if self.report_path.exists():
            self.report = json.loads(self.report_path.read_text(encoding="utf-8"))

    def start(self, end_name, words, says, **options):
        """Starts a program in a namespace, which says this on one of its outputs when it has begun."""
        inside = ["ip", "netns", "exec", self.left if end_name == "left" else self.right, *words]
        program = subprocess.Popen(inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
        self.programs.append(program)
        wait_for_line(program.stdout, says)
        return program

    def run(self, words, limit_s):
        """Runs a program in the left namespace; its output."""
        inside = ["ip", "netns", "exec", self.left, *words]
        output = subprocess.run(inside, capture_output=True, text=True, timeout=limit_s, check=True).stdout
        self.waited_s = sum(waited_s(program.pid) for program in self.programs)
        return output

    def set_first_window(self, segments):
        """Has TCP connections from the right begin with so many segments."""
        change_route(self.right, "initcwnd", str(segments))


def waited_s(pid):
    """How long the threads of a process have waited for a processor (proc(5): schedstat)."""
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[1]) for thread in threads) / 1e9


def change_route(namespace, name, value):
    """Sets an attribute of the route over the link."""
    ip = ["ip", "-netns", namespace, "route"]
    shown = subprocess.run([*ip, "show", "10.77.0.0/24"], capture_output=True, text=True, check=True).stdout
    route = without_attribute(shown.partition("\n")[0].split(), name)
    subprocess.run([*ip, "change", *route, name, value], check=True)


def without_attribute(route, name):
    """The words of a route but this attribute and its value."""
    return [word for word, before in zip(route, ["", *route]) if name not in (word, before)]


def wait_for_line(stream, text):
    """Reads lines until one has this text."""
    until = time.monotonic() + BEGINS_S
    seen = []
    while time.monotonic() < until:
        line = stream.readline()
        if not line:
            break
        seen.append(line)
        if text in line:
            return
    raise RuntimeError(f"a program did not say '{text}', but: {''.join(seen)}")


def end(program):
    """Ends a program in order."""
    if program.poll() is None:
        program.send_signal(signal.SIGTERM)
    try:
        program.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
