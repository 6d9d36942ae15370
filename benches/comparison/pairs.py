"""Running one row in one placement, and judging it."""

import json
import statistics
import time
from dataclasses import dataclass, field, replace

from . import machine
from .interval import median, median_interval
from .process import Child, RunFailed
from .tools import GRACE_S

GIVE_UP_AFTER_FAILURES = 3
CALIBRATION_RUNS = 3
SETTLE_S = 5.0


@dataclass
class Outcome:
    """What one row in one placement came to."""

    row: str
    placement: str
    bar: float | None
    unit: str
    values: list = field(default_factory=list)  # ratios, or differences, bytes, seconds
    pairs: list = field(default_factory=list)  # each pair's figures
    failures: list = field(default_factory=list)
    smaller_is_better: bool = False
    other_cpus: float | None = None  # processors' worth of other work meanwhile
    notes: list = field(default_factory=list)

    @property
    def median(self):
        return median(self.values)

    @property
    def interval(self):
        return median_interval(self.values)

    @property
    def verdict(self):
        """`pass`, `FAIL` or, without a bar, `info`. A failed run is never passed over."""
        if self.failures or not self.values:
            return "FAIL"
        if self.bar is None:
            return "info"
        good = self.median <= self.bar if self.smaller_is_better else self.median >= self.bar
        return "pass" if good else "FAIL"

    def side(self, name, key):
        """The median of one side's figure over the pairs; None where there is none."""
        values = [pair[name][key] for pair in self.pairs if pair[name].get(key) is not None]
        return statistics.median(values) if values else None


def run_row(row, placement, context):
    """One row in one placement; never raises for a run that failed."""
    runner = {
        "ratio": _run_pairs,
        "loss": _run_loss_pairs,
        "memory": _run_memory,
        "first_byte": _run_first_byte,
    }[row.measure]
    outcome = Outcome(row.name, placement.name, row.bar, row.figure)
    before = machine.busy_s()
    began = time.monotonic()
    try:
        own_cpu_s = runner(row, placement, context, outcome)
        elapsed_s = time.monotonic() - began
        outcome.other_cpus = max(0.0, (machine.busy_s() - before - own_cpu_s) / elapsed_s)
    except RunFailed as failure:
        outcome.failures.append(str(failure))
    return outcome


class _Sides:
    """Both tools with their servers, ended whatever happens."""

    def __init__(self, row, placement, context):
        self.placement = placement
        self.works = [context.prepared(row.ours[1]), context.prepared(row.theirs[1])]
        self.tools = [context.tool(row.ours[0]), context.tool(row.theirs[0])]

    def __enter__(self):
        try:
            for tool, work in zip(self.tools, self.works):
                tool.start_server(self.placement.server_cpu, work)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for tool in self.tools:
            tool.stop()

    def run(self, side, **changes):
        """One run of one side; a server that a failed run left behind is started anew."""
        tool, work = self.tools[side], replace(self.works[side], **changes)
        try:
            return tool.run(work, self.placement.client_cpu)
        except (RunFailed, ArithmeticError, ValueError, KeyError, TypeError, OSError) as failure:
            tool.stop()
            tool.start_server(self.placement.server_cpu, work)
            text = str(failure) if isinstance(failure, RunFailed) else repr(failure)
            raise RunFailed(text) from failure


def _side_record(measured):
    per_unit = measured.cpu_s / measured.units if measured.units else None
    return {
        "figure": measured.figure,
        "cpu_s": measured.cpu_s,
        "cpu_s_per_unit": per_unit,
        "loss": measured.loss,
        **measured.extra,
    }


def _each_pair(sides, context, outcome, value_of, changes):
    """Alternating pairs; `changes` are the two sides' departures from their work."""
    own_cpu_s = 0.0
    for index in range(context.pairs):
        try:
            ours = sides.run(0, **changes[0])
            theirs = sides.run(1, **changes[1])
        except RunFailed as failure:
            outcome.failures.append(f"pair {index + 1}: {failure}")
            if len(outcome.failures) >= GIVE_UP_AFTER_FAILURES:
                outcome.notes.append("given up after repeated failures")
                break
            continue
        own_cpu_s += ours.cpu_s + theirs.cpu_s
        outcome.pairs.append({"ours": _side_record(ours), "theirs": _side_record(theirs)})
        outcome.values.append(value_of(ours, theirs))
        context.progress(outcome, index + 1)
    return own_cpu_s


def _run_pairs(row, placement, context, outcome):
    def ratio(ours, theirs):
        return ours.figure / theirs.figure if theirs.figure else float("inf")

    with _Sides(row, placement, context) as sides:
        return _each_pair(sides, context, outcome, ratio, ({}, {}))


def _run_loss_pairs(row, placement, context, outcome):
    """linerate, paced at the best rate that the peer received at, against the peer at full speed."""
    outcome.smaller_is_better = True

    def difference(ours, theirs):
        if ours.loss is None or theirs.loss is None:
            raise RunFailed("a run without a loss figure")
        return ours.loss - theirs.loss

    with _Sides(row, placement, context) as sides:
        calibration = [sides.run(1) for _ in range(CALIBRATION_RUNS)]
        best_bps = max(run.extra["goodput_bps"] for run in calibration)
        outcome.notes.append(f"paced at {best_bps / 1e6:.0f} Mbit/s")
        used_s = sum(run.cpu_s for run in calibration)
        changes = ({"rate_bps": best_bps}, {})
        return used_s + _each_pair(sides, context, outcome, difference, changes)


def _run_memory(row, placement, context, outcome):
    """Resident memory of both ends, each second; the growth after the first seconds is judged."""
    outcome.smaller_is_better = True
    tool = context.tool(row.ours[0])
    work = replace(context.prepared(row.ours[1]), seconds=context.memory_seconds)
    tool.start_server(placement.server_cpu, work)
    try:
        client = Child(tool.client_argv(work), placement.client_cpu, tool.environment())
        began = time.monotonic()
        resident = []
        while not client.poll():
            at_s = time.monotonic() - began
            if at_s > work.seconds + GRACE_S:
                client.end()
                raise RunFailed("the client did not end in time")
            if SETTLE_S <= at_s <= work.seconds - 0.5:
                resident.append((client.resident_bytes(), tool.server.resident_bytes()))
            time.sleep(1.0)
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


def _run_first_byte(row, placement, context, outcome):
    """From exec of the client to the load's start as the run document dates it; the whole process
    is timed beside it."""
    outcome.smaller_is_better = True
    tool = context.tool(row.ours[0])
    work = context.prepared(row.ours[1])
    tool.start_server(placement.server_cpu, work)
    walls_s = []
    own_cpu_s = 0.0
    try:
        argv = [tool.path, "stream", tool.address, "--server-key", tool.fingerprint]
        argv += ["--tcp", "--bytes", "1", "--json"]
        for index in range(context.pairs):
            client = Child(argv, placement.client_cpu, tool.environment())
            if client.wait(GRACE_S) != 0:
                outcome.failures.append(f"run {index + 1}: {client.errors()}")
                if len(outcome.failures) >= GIVE_UP_AFTER_FAILURES:
                    break
                continue
            own_cpu_s += client.cpu_s
            walls_s.append(client.wall_s)
            started_ns = json.loads(client.output())["environment"].get("started_utc_ns")
            started_s = client.wall_s if started_ns is None else started_ns / 1e9 - client.started_utc_s
            outcome.values.append(started_s)
            outcome.pairs.append({"ours": {"figure": started_s}, "theirs": {"figure": client.wall_s}})
            context.progress(outcome, index + 1)
        if walls_s:
            outcome.notes.append(f"whole process {statistics.median(walls_s) * 1e3:.1f} ms")
        return own_cpu_s + tool.server.cpu_so_far_s()
    finally:
        tool.stop()
