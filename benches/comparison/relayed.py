"""What only rows of the proxy measure: what a request costs it, and its memory while a receiver is slow."""

import time
from dataclasses import replace

from .own import SETTLE_S, run_alone
from .process import Child, RunFailed

# A slow receiver runs for so long, and then stands still.
RUNS_S, STANDS_S = 0.02, 0.18


def run_relay_cost(row, place, context, outcome):
    """Microseconds of the proxy's CPU time for each request."""
    return run_alone(row, place, context, outcome, lambda _tool, _work, measured: relay_cpu_s(measured) * 1e6)


def relay_cpu_s(measured):
    """CPU seconds of the proxy for each unit of the work."""
    if not measured.units:
        raise RunFailed("nothing moved")
    return measured.extra["proxy_cpu_s"] / measured.units


def run_slow_receiver(row, place, context, outcome):
    """Resident memory of the proxy, each second; the growth after the first seconds is judged."""
    outcome.smaller_is_better = True
    tool = context.tool(row.ours[0])
    # Its end isn't waited for.
    work = replace(context.prepared(row.ours[1]), seconds=context.memory_seconds + SETTLE_S)
    try:
        tool.start_server(place, work)
        client = Child(tool.client_argv(work), place.client_cpu, tool.environment())
        try:
            resident = _watched(client, tool.proxy, context.memory_seconds)
        finally:
            client.kill()
        growth = max(resident) - resident[0]
        outcome.values.append(float(growth))
        outcome.pairs.append({"ours": {"figure": resident[-1], "growth_bytes": growth}, "theirs": {"figure": None}})
        outcome.notes.append(f"proxy {resident[-1] >> 10} KiB, {growth >> 10:+} KiB")
        return client.cpu_s + tool.server.cpu_so_far_s() + tool.proxy.cpu_so_far_s()
    finally:
        tool.stop()


def _watched(client, proxy, seconds):
    """Resident bytes of the proxy each second, once it has settled, while the client is slow."""
    began = time.monotonic()
    resident = []
    while (at_s := time.monotonic() - began) < seconds:
        if client.poll():
            raise RunFailed(f"the client ended with {client.code}: {client.errors()}")
        if at_s >= SETTLE_S + len(resident):
            resident.append(proxy.resident_bytes())
        client.stand_still(True)
        time.sleep(STANDS_S)
        client.stand_still(False)
        time.sleep(RUNS_S)
    if not resident or None in resident:
        raise RunFailed("the proxy ended")
    return resident
