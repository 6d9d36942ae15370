"""Programs that get less of a processor than they want."""

import contextlib
import os
import signal
import threading

ROOT = "/sys/fs/cgroup"
PERIOD_US = 50_000
# How long a program is stopped and runs, by turns.
TURN_S = 0.2
# Joins a control group, then becomes the program.
JOIN = 'echo $$ > "$1"; shift; exec "$@"'


@contextlib.contextmanager
def quota(name, share):
    """The words that run a program with a share of one processor: by control groups, version 1 or 2."""
    is_first = os.path.isdir(f"{ROOT}/cpu")
    folder = f"{ROOT}/cpu/{name}" if is_first else f"{ROOT}/{name}"
    os.makedirs(folder)
    try:
        quota_us = int(PERIOD_US * share)
        values = ({"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": quota_us} if is_first
                  else {"cpu.max": f"{quota_us} {PERIOD_US}"})
        for file, value in values.items():
            with open(f"{folder}/{file}", "w", encoding="ascii") as target:
                target.write(str(value))
        yield ["sh", "-c", JOIN, "sh", f"{folder}/cgroup.procs"]
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


@contextlib.contextmanager
def stopped(program, share):
    """Stops a program for a share of the time, again and again."""
    over = threading.Event()

    def stop():
        while program.poll() is None:
            program.send_signal(signal.SIGSTOP)
            over.wait(TURN_S * share)
            program.send_signal(signal.SIGCONT)
            if over.wait(TURN_S * (1 - share)):
                return

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
