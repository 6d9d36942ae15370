"""How cost grows with flows: transaction rate and the resident memory of both ends, beside the rate
of a bare loop over as many connections, which is what the kernel alone makes of their number, and
beside the rate where only some of the connections are busy at a time."""

import time
from dataclasses import replace

from .interval import median
from .plot import write_plot
from .process import Child, RunFailed

ACTIVE = 100  # flows that are busy at a time where not all are
FLOWS = (1, 10, 100, 1_000, 10_000, 100_000)
# One source address has fewer ports than this; a prefix has several addresses.
FLOWS_OF_AN_ADDRESS = 20_000
SOURCES = "127.0.0.0/29"
RUNS = 3  # of each point: the median rate, the most memory
TIME_OUT_S = 150.0
SAMPLE_S = 0.05


def run_growth(row, place, context, outcome):
    """A point for each number of flows, each with a server of its own. What can't be run is said
    and left out; that nothing could be run is a failure."""
    points = []
    used_s = 0.0
    for flows in FLOWS:
        source = SOURCES if flows > FLOWS_OF_AN_ADDRESS else None
        work = replace(context.prepared(row.ours[1]), flows=flows, source=source)
        bare_work = replace(context.prepared(row.theirs[1]), flows=flows)
        runs, active, bare = [], [], []
        try:
            for _ in range(RUNS):
                runs.append(_run(context.tool(row.ours[0]), place, work))
                if flows > ACTIVE:
                    active.append(_run(context.tool(row.ours[0]), place,
                                       replace(work, active=ACTIVE)))
                bare.append(_run_bare(context.tool(row.theirs[0]), place, bare_work))
        except (RunFailed, ValueError, KeyError) as failure:
            reason = str(failure).partition("\n")[0]
            outcome.notes.append(f"{flows:>7} flows: not completed: {reason}")
            continue
        used_s += sum(run.pop("cpu_s") for run in runs + active)
        point = {key: max(run[key] for run in runs) for key in runs[0]}
        point["transactions_per_s"] = median([run["transactions_per_s"] for run in runs])
        point["active_per_s"] = median([run["transactions_per_s"] for run in active or runs])
        point["bare_per_s"] = median(bare)
        points.append(point)
        with_active = f", {ACTIVE} active {point['active_per_s']:>9.0f}" if active else ""
        outcome.notes.append(
            f"{flows:>7} flows: {point['transactions_per_s']:>9.0f} transactions/s{with_active}, C loop"
            f" {point['bare_per_s']:>9.0f}, resident"
            f" client {point['client_bytes'] >> 10} KiB, server {point['server_bytes'] >> 10} KiB")
    if not points:
        raise RunFailed("no number of flows completed")
    best = max(point["transactions_per_s"] for point in points)
    for point in points:
        bar = "#" * round(40 * point["transactions_per_s"] / best)
        outcome.notes.append(f"{point['flows']:>7} |{bar}")
    # The value of the row: how much of its best rate the largest load keeps.
    outcome.values.append(points[-1]["transactions_per_s"] / best)
    outcome.notes.append("of the rate at 1,000 flows the largest load keeps"
                         f" {_kept(points, 'transactions_per_s')},"
                         f" the C loop's {_kept(points, 'bare_per_s')};"
                         f" with {ACTIVE} active {_kept(points, 'active_per_s', 'transactions_per_s')},"
                         f" and {_kept(points, 'active_per_s')} of 1,000 flows with {ACTIVE} active")
    outcome.pairs = [{"ours": {"figure": point["transactions_per_s"], **point},
                      "theirs": {"figure": point["bare_per_s"]}} for point in points]
    if context.plot:
        write_plot(context.plot, points)
        outcome.notes.append(f"drawn in {context.plot}")
    return used_s


def _kept(points, rate, of=None):
    """The last point's share of the rate (or of another one) at 1,000 flows, as text."""
    thousand = [point[of or rate] for point in points if point["flows"] == 1_000]
    return f"{points[-1][rate] / thousand[0]:.3f}" if thousand else "-"


def _run_bare(tool, place, work):
    """The rate of a bare loop."""
    try:
        tool.start_server(place, work)
        return tool.run(work).figure
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
