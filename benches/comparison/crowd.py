"""How much memory a netserver has with many tests at once, which the original forks a process for."""

import os
import signal
import time

from .process import BROKEN, Child, PeerFailed, RunFailed, reason_of
from .tools import Netperf

TESTS = 1_000
RUNS = 3
# Both ends of the control connection and of the data connection, all in this network namespace.
SOCKETS_A_TEST = 4
TABLES = ("sockstat", "sockstat6")
# Of a client, which waits for each answer: far more than it needs to begin, and made in milliseconds.
WAITS_OF_A_TEST = 100
BEGINS_WITHIN_S = 10.0
SETTLES_IN_S = 1.0


def run_crowd(row, place, context, outcome):
    """Both sides' servers, one after the other, with the original's clients; less is better."""
    outcome.smaller_is_better = True
    used_s = 0.0
    for _ in range(RUNS):
        sides = []
        for kind, work in (row.ours, row.theirs):
            tools = context.tool(kind), context.tool(Netperf)
            try:
                total_bytes, alone_bytes, cpu_s = _run(*tools, place, work)
            except BROKEN as broken:
                if kind is row.theirs[0]:
                    raise PeerFailed(reason_of(broken)) from broken
                raise
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
        alone_bytes = _memory_bytes(tool.server.pid)
        for _ in range(TESTS):
            held.append(Child(clients.client_argv(work), place.client_cpu))
            _await_test(held[-1])
            # Who stands still leaves the processors to those that begin.
            os.kill(held[-1].pid, signal.SIGSTOP)
        time.sleep(SETTLES_IN_S)
        if _sockets() < TESTS * SOCKETS_A_TEST:
            raise RunFailed(f"the connections of {TESTS} tests were not there to the end")
        total_bytes = _memory_bytes(tool.server.pid)
        return total_bytes, alone_bytes, _cpu_s(held, tool)
    finally:
        for client in held:
            client.kill()
        tool.stop()


def _await_test(client):
    """Waits until a client exchanges requests. Its sockets would not tell: a server has one that listens
    for a test's data until some time after they came."""
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while _waits(client.pid) < WAITS_OF_A_TEST:
        if client.poll():
            raise RunFailed(f"a client ended with {client.code}: {client.errors()}")
        if time.monotonic() > deadline:
            raise RunFailed(f"no test began within {BEGINS_WITHIN_S:.0f} s")
        time.sleep(0.001)


def _waits(pid):
    """How often a process has given its processor away to wait; 0 of one that has ended."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))


def _sockets():
    """TCP sockets of this network namespace but those in TIME-WAIT. The kernel counts these; a list of them
    goes through those of all namespaces."""
    count = 0
    for table in TABLES:
        with open(f"/proc/net/{table}", encoding="ascii") as kinds:
            count += sum(int(line.split()[2]) for line in kinds if line.startswith("TCP"))
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
