"""How cost grows with flows: transaction rate and the resident memory of both ends, beside the rate
of a bare loop over as many connections, which is what the kernel alone makes of their number; where
`rr` by itself has only some of the connections busy at a time, also with all of them; and in pairs of
runs what the most keep of the rate of a thousand."""

import time
from dataclasses import replace

from .interval import LEAST_VALUES, median
from .plot import write_plot
from .process import BROKEN, Child, PeerFailed, RunFailed, reason_of

ALL_ACTIVE = 1_000  # flows that `rr` by itself has busy all at a time; of more it has some
BASE_FLOWS = 1_000  # whose rate is what more flows are held against
FLOWS = (1, 10, 100, BASE_FLOWS, 10_000, 100_000)
# One source address has fewer ports than this; a prefix has several addresses.
FLOWS_OF_AN_ADDRESS = 20_000
SOURCES = "127.0.0.0/29"
RUNS = 3  # of each point: the median rate, the most memory
TIME_OUT_S = 150.0
SAMPLE_S = 0.05


def run_growth(row, place, context, outcome):
    """A point for each number of flows, each with a server of its own; then pairs of runs, of a thousand
    flows and of the most, as `rr` by itself has them. Judged is what the most keep of the rate."""
    used_s = _run_points(row, place, context, outcome)
    outcome.least_values = LEAST_VALUES
    if not outcome.failures:
        used_s += _run_pairs(row, place, context, outcome)
    return used_s


def _run_points(row, place, context, outcome):
    """Finds the points, tells and draws them; the CPU time of all runs."""
    points = []
    used_s = 0.0
    for flows in FLOWS:
        runs, active, bare = [], [], []
        try:
            _run_point(row, place, context, flows, (runs, active, bare))
        except PeerFailed as failure:
            outcome.notes.append(f"{flows:>7} flows: the C loop did not complete: {failure}")
        except BROKEN as failure:
            outcome.failures.append(f"{flows} flows: {reason_of(failure)}")
        used_s += sum(run["cpu_s"] for run in runs + active + bare)
        if len(runs) == RUNS and len(active) in (0, RUNS):
            points.append(_point_of(runs, active, bare))
            outcome.notes.append(_told(points[-1], points[0]))
    if points:
        _sum_up(points, outcome)
        if context.plot:
            write_plot(context.plot, points)
            outcome.notes.append(f"drawn in {context.plot}")
    return used_s


def _run_pairs(row, place, context, outcome):
    """Both numbers of flows in turns, so that a machine which slows down meets both; a run that fails
    ends it."""
    used_s = 0.0
    for pair in range(1, context.pairs + 1):
        rates = []
        for flows in (BASE_FLOWS, FLOWS[-1]):
            try:
                run = _run(context.tool(row.ours[0]), place, _work_of(row, context, flows))
            except BROKEN as failure:
                outcome.failures.append(f"pair {pair}, {flows} flows: {reason_of(failure)}")
                return used_s
            used_s += run["cpu_s"]
            rates.append(run["transactions_per_s"])
        outcome.values.append(rates[1] / rates[0])
        context.progress(outcome, pair)
    return used_s


def _work_of(row, context, flows):
    source = SOURCES if flows > FLOWS_OF_AN_ADDRESS else None
    return replace(context.prepared(row.ours[1]), flows=flows, source=source)


def _run_point(row, place, context, flows, found):
    """Some runs of each kind in turns, into the lists; a failure of the C loop is raised after all of
    ours."""
    runs, active, bare = found
    work = _work_of(row, context, flows)
    bare_work = replace(context.prepared(row.theirs[1]), flows=flows)
    failure = None
    for _ in range(RUNS):
        runs.append(_run(context.tool(row.ours[0]), place, replace(work, active="all")))
        if flows > ALL_ACTIVE:
            active.append(_run(context.tool(row.ours[0]), place, work))
        if failure is None:
            try:
                bare.append(_run_bare(context.tool(row.theirs[0]), place, bare_work))
            except BROKEN as broken:
                failure = PeerFailed(reason_of(broken).partition("\n")[0])
    if failure is not None:
        raise failure


def _point_of(runs, active, bare):
    """Median rates, and the most memory, of the runs with one number of flows."""
    rates = [median([run["transactions_per_s"] for run in kind]) for kind in (runs, active or runs, bare)]
    point = dict(zip(("transactions_per_s", "active_per_s", "bare_per_s"), rates))
    memory = {key: max(run[key] for run in runs) for key in ("client_bytes", "server_bytes")}
    return {"flows": runs[0]["flows"], **point, **memory}


def _told(point, first):
    """A point as a note; memory a connection is what its flows have beyond the first point's."""
    flows = point["flows"]
    bare = "-" if point["bare_per_s"] is None else f"{point['bare_per_s']:.0f}"
    text = f"{flows:>7} flows: {point['active_per_s']:>9.0f} transactions/s"
    text += f", all active {point['transactions_per_s']:>9.0f}" if flows > ALL_ACTIVE else ""
    text += (f", C loop {bare:>9}, resident client {point['client_bytes'] >> 10} KiB,"
             f" server {point['server_bytes'] >> 10} KiB")
    if flows >= ALL_ACTIVE and first["flows"] == 1:
        more = [(point[end] - first[end]) / (flows - 1) / 1024 for end in ("client_bytes", "server_bytes")]
        text += f": {more[0]:.2f} and {more[1]:.2f} KiB a connection"
    return text


def _sum_up(points, outcome):
    """The row's figures, and what the most flows keep of each of the rates."""
    best = max(point["active_per_s"] for point in points)
    for point in points:
        bar = "#" * round(40 * point["active_per_s"] / best)
        outcome.notes.append(f"{point['flows']:>7} |{bar}")
    kept = {rate: _kept(points, rate) for rate in ("active_per_s", "transactions_per_s", "bare_per_s")}
    told = ["-" if share is None else f"{share:.3f}" for share in kept.values()]
    outcome.notes.append(f"of the rate at {BASE_FLOWS:,} flows {FLOWS[-1]:,} keep: by themselves"
                         f" {told[0]}, with all active {told[1]}, the C loop with all active {told[2]}")
    outcome.pairs = [{"ours": {"figure": point["transactions_per_s"], **point},
                      "theirs": {"figure": point["bare_per_s"]}} for point in points]


def _kept(points, rate):
    """What the most flows keep of the rate at a thousand; None where either was not measured."""
    rates = {point["flows"]: point[rate] for point in points}
    most, base = rates.get(FLOWS[-1]), rates.get(BASE_FLOWS)
    return most / base if most is not None and base else None


def _run_bare(tool, place, work):
    """The rate of a bare loop, and what it cost."""
    try:
        tool.start_server(place, work)
        measured = tool.run(work)
        return {"transactions_per_s": measured.figure, "cpu_s": measured.cpu_s}
    finally:
        tool.stop()


def _run(tool, place, work):
    """The rate, and the most memory that each end held at once."""
    peak = [0, 0]
    try:
        tool.start_server(place, work)
        client = Child(tool.client_argv(work), place.client_cpu, tool.environment())
        try:
            deadline = time.monotonic() + work.seconds + TIME_OUT_S
            while not client.poll():
                if time.monotonic() > deadline:
                    raise RunFailed(f"the client did not end in {TIME_OUT_S:.0f} s")
                resident = (client.resident_bytes() or 0, tool.server.resident_bytes() or 0)
                peak = [max(pair) for pair in zip(peak, resident)]
                time.sleep(SAMPLE_S)
        finally:
            client.end()
        if client.code != 0:
            raise RunFailed(f"the client ended with {client.code}: {client.errors()}")
        measured = tool.read_result(work, client)
        cpu_s = client.cpu_s + tool.server.cpu_so_far_s()
        return {"flows": work.flows, "transactions_per_s": measured.figure,
                "client_bytes": peak[0], "server_bytes": peak[1], "cpu_s": cpu_s}
    finally:
        tool.stop()
