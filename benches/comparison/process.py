"""Starting, pinning, timing and ending processes. Only what was started here is ever ended."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import tempfile
import time

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

# prctl(2): the signal that a process gets when its parent has died.
PR_SET_PDEATHSIG = 1
# And who becomes the parent of a descendant whose own parent has died.
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)

# Servers that can't choose a port get one below every range of ephemeral ports in use here.
SERVER_PORTS = range(5300, 16000)
LISTENING = "0A"  # of /proc/net/tcp; a bound UDP socket is always found


class RunFailed(Exception):
    """A run that gave no figure; the text says why."""


class PeerFailed(RunFailed):
    """A run of a peer that gave no figure."""


# What a tool's output or its end may make go wrong here.
BROKEN = (RunFailed, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, OSError,
          subprocess.SubprocessError)


def reason_of(failure):
    """What went wrong, for a reader of the row."""
    return str(failure) if isinstance(failure, RunFailed) else repr(failure)


def _prepared(cpu, namespace):
    """What a child does before exec: stay on one processor, enter a network namespace (an open
    file), lead a process group of its own, die with this command."""

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setpgid(0, 0)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        if namespace is not None and LIBC.setns(namespace, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    return prepare


def adopt_orphans():
    """Makes this command the parent of what a tool detaches, so that `end_orphans` finds it."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_orphans():
    """Ends every process that descends from this command and is still there."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            pids = [int(pid) for pid in children.read().split()]
        if not pids:
            return
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class Child:
    """One process with its output in files, so that no pipe can fill up and stop it."""

    def __init__(self, argv, cpu=None, environment=None, namespace=None):
        self.argv = [str(part) for part in argv]
        self.out = tempfile.TemporaryFile(mode="w+")
        self.err = tempfile.TemporaryFile(mode="w+")
        self.started_utc_s = time.time()
        self.started_s = time.monotonic()
        self.cpu_s = None
        self.code = None
        self._process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.err,
            env=environment,
            preexec_fn=_prepared(cpu, namespace),
        )
        self.pid = self._process.pid

    def output(self):
        """What it wrote to standard output so far."""
        return _content(self.out)

    def errors(self):
        """The end of what it wrote to standard error."""
        return _content(self.err)[-400:].strip()

    def poll(self):
        """Reaps it if it has ended, and ends what it left in its group; whether it has ended."""
        if self.code is not None:
            return True
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        # While it is a zombie its number can't be another group's.
        os.killpg(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self.wall_s = time.monotonic() - self.started_s
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.code = os.waitstatus_to_exitcode(status)
        self._process.returncode = self.code
        return True

    def wait(self, timeout_s):
        """Waits for its end; a process that outlives the time-out is ended and RunFailed raised."""
        deadline = time.monotonic() + timeout_s
        pause_s = 0.001
        while not self.poll():
            if time.monotonic() > deadline:
                self.end()
                raise RunFailed(f"{self._name()} did not end within {timeout_s:.0f} s")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.02)
        return self.code

    def wait_for_line(self, wanted, timeout_s=10.0):
        """The first line of output for which `wanted(line)` is not None: that value."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            ended = self.poll()
            for line in self.output().splitlines():
                value = wanted(line)
                if value is not None:
                    return value
            if ended:
                raise RunFailed(f"{self._name()} ended with {self.code}: {self.errors()}")
            time.sleep(0.005)
        self.end()
        raise RunFailed(f"{self._name()} was not ready within {timeout_s:.0f} s")

    def wait_for_port(self, port, kind="tcp", timeout_s=10.0):
        """Waits until somebody in its network namespace listens on a port."""
        deadline = time.monotonic() + timeout_s
        while not self._listens(port, kind):
            if self.poll():
                raise RunFailed(f"{self._name()} ended with {self.code}: {self.errors()}")
            if time.monotonic() > deadline:
                self.end()
                raise RunFailed(f"{self._name()} did not listen on {port} in {timeout_s:.0f} s")
            time.sleep(0.005)

    def _listens(self, port, kind):
        wanted = f":{port:04X}"
        for table in (kind, f"{kind}6"):
            try:
                with open(f"/proc/{self.pid}/net/{table}", encoding="ascii") as sockets:
                    rows = [line.split() for line in sockets.readlines()[1:]]
            except OSError:
                continue
            if any(row[1].endswith(wanted) and (kind == "udp" or row[3] == LISTENING)
                   for row in rows):
                return True
        return False

    def end(self):
        """Ends it and its group, gently first."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if self.poll():
                return
            os.killpg(self.pid, kind)
            deadline = time.monotonic() + 2.0
            while not self.poll() and time.monotonic() < deadline:
                time.sleep(0.005)

    def stand_still(self, stands):
        """Has it and its group stand still, or go on."""
        if not self.poll():
            os.killpg(self.pid, signal.SIGSTOP if stands else signal.SIGCONT)

    def kill(self):
        """Ends it and its group at once, even while they stand still."""
        if not self.poll():
            os.killpg(self.pid, signal.SIGKILL)
            self.wait(2.0)

    def cpu_so_far_s(self):
        """CPU seconds of all its threads, ended ones included; of the dead process, its total."""
        if self.poll():
            return self.cpu_s
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def resident_bytes(self):
        """Resident memory now; None once it has ended."""
        if self.poll():
            return None
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _name(self):
        return os.path.basename(self.argv[0])


def _content(file):
    """All of a file that another process may still be writing at its own offset."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def free_port(count=1):
    """The first of some neighbouring ports that were free a moment ago, for TCP and for UDP."""
    for first in random.sample(SERVER_PORTS, 200):
        try:
            for port in range(first, first + count):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(type=kind) as probe:
                        probe.bind(("", port))
        except OSError:
            continue
        return first
    raise RunFailed(f"no {count} free ports between {SERVER_PORTS[0]} and {SERVER_PORTS[-1]}")
