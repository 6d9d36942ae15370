"""What linerate is measured by alone: memory over time, the time to its first byte, a percentile of
latency, and the processors that each end takes."""

import json
import statistics
import time
from dataclasses import replace

from .interval import LEAST_VALUES
from .process import Child, RunFailed
from .tools import GRACE_S

GIVE_UP_AFTER_FAILURES = 3
SETTLE_S = 5.0


def run_memory(row, place, context, outcome):
    """Resident memory of both ends, each second; the growth after the first seconds is judged."""
    outcome.smaller_is_better = True
    tool = context.tool(row.ours[0])
    work = replace(context.prepared(row.ours[1]), seconds=context.memory_seconds)
    try:
        tool.start_server(place, work)
        client = Child(tool.client_argv(work), place.client_cpu, tool.environment())
        try:
            resident = _watched(client, tool.server, work)
        finally:
            client.end()
        if client.code != 0 or not resident or None in resident[-1]:
            raise RunFailed(f"the client ended with {client.code}: {client.errors()}")
        growth = [last - first for first, last in zip(resident[0], resident[-1])]
        outcome.values.append(float(max(growth)))
        outcome.pairs.append({
            "ours": {"figure": resident[-1][0], "growth_bytes": growth[0]},
            "theirs": {"figure": resident[-1][1], "growth_bytes": growth[1]},
        })
        outcome.notes.append(
            f"client {resident[-1][0] >> 10} KiB, {growth[0] >> 10:+} KiB;"
            f" server {resident[-1][1] >> 10} KiB, {growth[1] >> 10:+} KiB"
        )
        return client.cpu_s + tool.server.cpu_so_far_s()
    finally:
        tool.stop()


def _watched(client, server, work):
    """(client, server) resident bytes each second, once both have settled."""
    began = time.monotonic()
    resident = []
    while not client.poll():
        at_s = time.monotonic() - began
        if at_s > work.seconds + GRACE_S:
            raise RunFailed("the client did not end in time")
        if SETTLE_S <= at_s <= work.seconds - 0.5:
            resident.append((client.resident_bytes(), server.resident_bytes()))
        time.sleep(1.0)
    return resident


def run_first_byte(row, place, context, outcome):
    """From exec of the client to the load's start as the run document dates it; the whole process
    is timed beside it."""
    outcome.smaller_is_better = True
    outcome.least_values = LEAST_VALUES
    tool = context.tool(row.ours[0])
    walls_s = []
    own_cpu_s = 0.0
    try:
        tool.start_server(place, context.prepared(row.ours[1]))
        argv = [tool.path, "stream", tool.address, "--server-key", tool.fingerprint]
        argv += ["--tcp", "--bytes", "1", "--json"]
        for index in range(context.pairs):
            client = Child(argv, place.client_cpu, tool.environment())
            if client.wait(GRACE_S) != 0:
                outcome.failures.append(f"run {index + 1}: {client.errors()}")
                if len(outcome.failures) >= GIVE_UP_AFTER_FAILURES:
                    break
                continue
            own_cpu_s += client.cpu_s
            walls_s.append(client.wall_s)
            started_s = _started_s(client)
            outcome.values.append(started_s)
            outcome.pairs.append({"ours": {"figure": started_s}, "theirs": {"figure": client.wall_s}})
            context.progress(outcome, index + 1)
        if walls_s:
            outcome.notes.append(f"whole process {statistics.median(walls_s) * 1e3:.1f} ms")
        return own_cpu_s + tool.server.cpu_so_far_s()
    finally:
        tool.stop()


def _started_s(client):
    """When the load began, seconds after exec; the whole process where the document lacks it."""
    started_ns = json.loads(client.output())["environment"].get("started_utc_ns")
    return client.wall_s if started_ns is None else started_ns / 1e9 - client.started_utc_s


def run_percentile(row, place, context, outcome):
    """A percentile by itself; less is better."""
    return run_alone(row, place, context, outcome, lambda tool, _work, measured: measured.figure)


def run_sides(row, place, context, outcome):
    """Processors that the busier end takes; a run in which anything was dropped is a failed one."""

    ends = []

    def processors(tool, work, measured):
        if measured.extra["dropped"]:
            raise RunFailed(f"{measured.extra['dropped']} frames were dropped")
        seconds = (tool.client_cpu_s, measured.cpu_s - tool.client_cpu_s)
        ends.append([cpu_s / work.seconds for cpu_s in seconds])
        return max(ends[-1])

    own_cpu_s = run_alone(row, place, context, outcome, processors)
    if ends:
        client, server = map(statistics.median, zip(*ends))
        outcome.notes.append(f"processors, medians: client {client:.3f}, server {server:.3f}")
    return own_cpu_s


def run_alone(row, place, context, outcome, value_of):
    """Runs of one tool, each with a value; less is better."""
    outcome.smaller_is_better = True
    outcome.least_values = LEAST_VALUES
    tool = context.tool(row.ours[0])
    work = context.prepared(row.ours[1])
    own_cpu_s = 0.0
    try:
        tool.start_server(place, work)
        tried = 0
        while len(outcome.values) < context.pairs:
            tried += 1
            try:
                measured = tool.run(work)
                value = value_of(tool, work, measured)
            except RunFailed as failure:
                outcome.failures.append(f"run {tried}: {failure}")
                if len(outcome.failures) >= GIVE_UP_AFTER_FAILURES:
                    break
                tool.stop()
                tool.start_server(place, work)
                continue
            own_cpu_s += measured.cpu_s
            outcome.values.append(value)
            outcome.pairs.append({"ours": {"figure": value}, "theirs": {"figure": None}})
            context.progress(outcome, len(outcome.values))
        return own_cpu_s
    finally:
        tool.stop()
