"""How much memory a netserver has with many tests at once, which the original forks a process for."""

import os
import signal
import time

from .process import Child, RunFailed
from .tools import Netperf

TESTS = 1_000
RUNS = 3
ESTABLISHED = "01"  # of /proc/net/tcp
# Both ends of the control connection and of the data connection, all in this network namespace.
SOCKETS_A_TEST = 4
BEGINS_WITHIN_S = 10.0
SETTLES_IN_S = 1.0


def run_crowd(row, place, context, outcome):
    """Both sides' servers, one after the other, with the original's clients; less is better."""
    outcome.smaller_is_better = True
    used_s = 0.0
    for _ in range(RUNS):
        sides = []
        for kind, work in (row.ours, row.theirs):
            clients = context.tool(Netperf)
            total_bytes, alone_bytes, cpu_s = _run(context.tool(kind), clients, place, work)
            used_s += cpu_s
            sides.append({"figure": total_bytes, "alone_bytes": alone_bytes})
        outcome.pairs.append(dict(zip(("ours", "theirs"), sides)))
        outcome.values.append(sides[0]["figure"] / sides[1]["figure"])
    told = [f"{name} {side['alone_bytes'] >> 10} KiB without a test, "
            f"{(side['figure'] - side['alone_bytes']) / TESTS / 1024:.1f} KiB more for each of {TESTS}"
            for name, side in outcome.pairs[-1].items()]
    outcome.notes.append("; ".join(told))
    return used_s


def _run(tool, clients, place, work):
    """The server's memory with all tests under way, before the first, and the CPU time of it all."""
    tool.forks = True
    held = []
    try:
        tool.start_server(place, work)
        clients.placement, clients.port = place, tool.port
        before = _established()
        alone_bytes = _memory_bytes(tool.server.pid)
        for count in range(1, TESTS + 1):
            held.append(Child(clients.client_argv(work), place.client_cpu))
            _await_test(held[-1], before + count * SOCKETS_A_TEST)
            # Who stands still leaves the processors to those that begin.
            os.kill(held[-1].pid, signal.SIGSTOP)
        time.sleep(SETTLES_IN_S)
        total_bytes = _memory_bytes(tool.server.pid)
        return total_bytes, alone_bytes, _cpu_s(held, tool)
    finally:
        for client in held:
            client.kill()
        tool.stop()


def _await_test(client, sockets):
    """Waits until so many sockets are connected here."""
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while _established() < sockets:
        if client.poll():
            raise RunFailed(f"a client ended with {client.code}: {client.errors()}")
        if time.monotonic() > deadline:
            raise RunFailed(f"no test began within {BEGINS_WITHIN_S:.0f} s")
        time.sleep(0.001)


def _established():
    """Connected TCP sockets of this network namespace."""
    count = 0
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as sockets:
            next(sockets)
            count += sum(row.split(None, 4)[3] == ESTABLISHED for row in sockets)
    return count


def _memory_bytes(pid):
    """Memory of a process and its descendants, what they share divided among them."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        total = sum(int(line.split()[1]) << 10 for line in rollup if line.startswith("Pss:"))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return total + sum(_memory_bytes(int(child)) for child in children.read().split())


def _cpu_s(held, tool):
    """CPU seconds so far of the clients and of the server itself."""
    return sum(client.cpu_so_far_s() for client in held) + tool.server.cpu_so_far_s()
