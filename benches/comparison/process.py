"""Starting, pinning, timing and ending processes. Only what was started here is ever ended."""

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

# prctl(2): the signal that a process gets when its parent has died.
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class RunFailed(Exception):
    """A run that gave no figure; the text says why."""


def _pinned_to(cpu):
    """What a child does before exec: stay on one processor, die with this command."""

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    return prepare


class Child:
    """One process with its output in files, so that no pipe can fill up and stop it."""

    def __init__(self, argv, cpu=None, environment=None):
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
            preexec_fn=_pinned_to(cpu),
        )
        self.pid = self._process.pid

    def output(self):
        """What it wrote to standard output so far."""
        return _content(self.out)

    def errors(self):
        """The end of what it wrote to standard error."""
        return _content(self.err)[-400:].strip()

    def poll(self):
        """Reaps it if it has ended; whether it has."""
        if self.code is not None:
            return True
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return False
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

    def end(self):
        """Ends it, gently first."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if self.poll():
                return
            os.kill(self.pid, kind)
            deadline = time.monotonic() + 2.0
            while not self.poll() and time.monotonic() < deadline:
                time.sleep(0.005)

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


def free_port():
    """A TCP port of loopback that was free a moment ago, for tools that can't choose one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
