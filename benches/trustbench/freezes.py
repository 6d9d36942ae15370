"""A server that is stopped for a moment, and the latencies of requests at a fixed rate. Requests that are due while it is
stopped wait until it goes on, so the quantiles follow from the length of the stop alone."""

import contextlib
import random
import signal
import time

from trustbench.network import end
from trustbench.rates import Rate

# Words of a load over each transport.
TRANSPORTS = {"tcp": "rr", "tls": "rr --tls", "udp": "rr --udp", "quic": "rr --quic"}
PER_S, TIME_S, STOP_S = 1000, 4.0, 0.2
# Of a run, when the server is stopped.
FROM_S, TO_S = 1.0, 2.5
QUANTILES = {"p99": 0.99, "p99.9": 0.999}
NEAR, LEAST_NEAR = 0.05, 0.95


def closed_form_s(quantile, stop_s):
    """The quantile of all latencies: of the requests due in the stop, those of its beginning wait the longest."""
    return stop_s - (1 - quantile) * TIME_S


def frozen(tests, words):
    """The run document, and how long the server was stopped."""
    with contextlib.ExitStack() as started:
        client = tests.start(f"{words} --rate {PER_S} --time {TIME_S}s")
        started.callback(end, client)
        time.sleep(random.uniform(FROM_S, TO_S))
        tests.server.send_signal(signal.SIGSTOP)
        try:
            began_s = time.monotonic()
            time.sleep(STOP_S)
        finally:
            tests.server.send_signal(signal.SIGCONT)
            stop_s = time.monotonic() - began_s
        return tests.finish(client), stop_s


def deviations(document, stop_s):
    """How far each quantile is from its closed form, as a share; nothing is known of one that is missing."""
    latency = document["summary"].get("latency_ns", {})
    return {name: latency[name] / 1e9 / closed_form_s(quantile, stop_s) - 1 if name in latency else None
            for name, quantile in QUANTILES.items()}


def freezes(pool, runs, is_busy):
    """Rates of runs over each transport whose quantiles are near the closed form. A busy machine takes long to work off
    what QUIC's packets brought in the stop, so QUIC is not judged there."""
    names = [name for name in TRANSPORTS if not (is_busy and name == "quic")]

    def is_near(tests, name):
        document, stop_s = frozen(tests, TRANSPORTS[name])
        found = deviations(document, stop_s)
        near = all(share is not None and abs(share) <= NEAR for share in found.values())
        if not near:
            shares = ", ".join(f"{quantile} {'missing' if share is None else f'{share:+.1%}'}"
                               for quantile, share in found.items())
            print(f"  {name}, server stopped for {stop_s * 1000:.0f} ms: {shares}", flush=True)
        return near

    near = pool.map(is_near, [name for name in names for _ in range(runs)])
    return [Rate(f"server stopped for {STOP_S * 1000:.0f} ms, {name}", sum(near[number * runs:(number + 1) * runs]), runs,
                 LEAST_NEAR) for number, name in enumerate(names)]
