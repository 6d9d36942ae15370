"""One run: a server, a client, and what the kernel says of both until they have ended."""

import json
import os
import signal
import tempfile
import time

from comparison.process import Child, RunFailed, free_port

from . import report, system

HOST = "127.0.0.1"
# One source address has at least 28,000 ports for a server's port; 64 addresses have room for more than a million.
SOURCES = "127.0.0.0/26"
LEAST_AVAILABLE = 1 << 30
LOOK_S = 0.1
# A client that fails may wait for its time-outs.
GRACE_S = 90.0
CLOSES_IN_S = 10.0
BEGINS_AT_A_SECOND = 2_500


def client_words(connections, options, hold_s):
    """The client's command line behind its server's key."""
    return ["connect", HOST, "--flows", connections, "--count", connections,
            "--transfer", options.bytes, "--pattern", options.pattern, "--verify",
            "--hold", f"{int(hold_s * 1000)}ms", "--close", "rst", "--timeout", "60s",
            "--bind", SOURCES, "--interval", "1s", "--json", "--quiet"]


def hold_time(connections, options):
    """How long each connection stays open: until all are there."""
    return 5.0 + connections / BEGINS_AT_A_SECOND if options.hold_s is None else options.hold_s


def run_crowd(connections, options):
    """Holds so many connections at once; what was seen."""
    if not os.access(options.program, os.X_OK):
        raise RunFailed(f"{options.program} is not there: cargo build --release -p linerate")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home}
        port = free_port()
        server = Child([options.program, "serve", "--bind", HOST, "--port", port, "--ndjson"],
                       environment=environment)
        client = None
        try:
            key = server.wait_for_line(_fingerprint)
            before = (system.count_sockets(), system.kernel_objects())
            hold_s = hold_time(connections, options)
            client = Child([options.program, *client_words(connections, options, hold_s),
                            "--port", port, "--server-key", key], environment=environment)
            seen = _watch(client, server, connections, hold_s)
            run = {"connections": connections, "hold_s": hold_s, **seen,
                   "kernel_bytes": max(seen.pop("slab_bytes", 0) - before[1], 0),
                   **_outcome(client, options)}
            run["sockets_left"] = _sockets_left(before[0])
            run["server_runs"] = not server.poll()
            run["failures"] = report.failures(run, options.bytes)
            return run
        finally:
            if client:
                client.end()
            server.end()


def _watch(client, server, connections, hold_s):
    """Looks on until the client has ended: the peak, and what both ends had then."""
    seen = {"peak_sockets": 0, "stopped": None}
    started_s = time.monotonic()
    deadline = started_s + 2 * hold_s + GRACE_S
    wanted = 2 * connections
    while not client.poll():
        now_s = time.monotonic()
        sockets, available = system.count_sockets(), system.memory_available()
        if sockets >= seen["peak_sockets"]:
            if sockets > seen["peak_sockets"] and seen["peak_sockets"] < wanted:
                seen["reached_s"] = now_s - started_s
            seen.update(peak_sockets=sockets, available_bytes=available,
                        slab_bytes=system.kernel_objects())
            for end, process in (("client", client), ("server", server)):
                seen[f"{end}_bytes"] = system.resident(process.pid)[0]
                seen[f"{end}_threads"] = system.threads(process.pid)
        for end, process in (("client", client), ("server", server)):
            seen[f"{end}_most_bytes"] = max(system.resident(process.pid)[1],
                                            seen.get(f"{end}_most_bytes", 0))
        if available < LEAST_AVAILABLE and not seen["stopped"]:
            seen["stopped"] = (f"MemAvailable fell to {available >> 20} MiB, below {LEAST_AVAILABLE >> 20} MiB,"
                               f" at {sockets} sockets")
            os.kill(client.pid, signal.SIGINT)
        if now_s > deadline:
            raise RunFailed(f"the client did not end in {now_s - started_s:.0f} s")
        time.sleep(LOOK_S)
    seen["ended_s"] = time.monotonic() - started_s
    seen["cpu_s"] = client.cpu_s + server.cpu_so_far_s()
    return seen


def _fingerprint(line):
    record = json.loads(line)
    return record.get("fingerprint") if record.get("record") == "listening" else None


def _outcome(client, options):
    """What the client's document says."""
    try:
        document = json.loads(client.output())
    except ValueError as error:
        raise RunFailed(f"the client ended with {client.code}: {client.errors()}") from error
    return {"exit_code": client.code, **report.of_document(document, options.bytes)}


def _sockets_left(before):
    """Sockets beyond those before the client, once closed ones have gone."""
    deadline = time.monotonic() + CLOSES_IN_S
    while time.monotonic() < deadline and system.count_sockets() > before:
        time.sleep(LOOK_S)
    return max(system.count_sockets() - before, 0)
