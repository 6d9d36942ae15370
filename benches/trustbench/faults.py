"""Faults that are injected into runs, and the codes of the verdict that name them."""

from trustbench.rates import Rate

WORKLOADS = ["stream --rate 50M", "stream --udp --rate 20M", "stream --quic --rate 20M", "rr", "rr --rate 1000"]
BUSY = "busy processors"
# A fault, and the codes that name it.
FAULTS = {
    "client stopped": {"stood_still"},
    "server stopped": {"stood_still"},
    "link down": {"gap"},
    "second test": {"other_tests"},
    BUSY: {"cpu_contended", "wait_in_latency", "stood_still", "rate_missed", "schedule_missed",
           "schedule_slipped"},
}
LEAST_FLAGGED, MOST_FALSE = 0.98, 0.01


def codes_of(document):
    return {reason["code"] for reason in document["status"].get("reasons", [])}


def faults(pool, runs, clean, is_busy):
    """Rates of faults that are named in `runs` runs of each workload, and of flags in `clean` runs without one. A busy
    machine is no fault that nobody injected."""
    allowed = FAULTS[BUSY] if is_busy else set()
    injected = [fault for fault in FAULTS if not (is_busy and fault == BUSY)]

    def told(tests, job):
        fault, workload = job
        codes = codes_of(tests.with_fault(workload, fault))
        expected = FAULTS.get(fault, set())
        if fault and not codes & expected:
            print(f"  not told: {fault} in {workload}: {sorted(codes)}", flush=True)
        if not fault and codes - allowed:
            print(f"  told without a fault: {workload}: {sorted(codes)}", flush=True)
        return bool(codes & expected) if fault else bool(codes - allowed)

    rates, all_flagged = [], 0
    for fault in injected:
        flagged = sum(pool.map(told, [(fault, workload) for workload in WORKLOADS for _ in range(runs)]))
        all_flagged += flagged
        rates.append(Rate(f"fault, {fault}", flagged, runs * len(WORKLOADS)))
    rates.append(Rate("all faults", all_flagged, runs * len(WORKLOADS) * len(injected), LEAST_FLAGGED))
    false = sum(pool.map(told, [(None, WORKLOADS[number % len(WORKLOADS)]) for number in range(clean)]))
    rates.append(Rate("flagged without a fault", false, clean, MOST_FALSE, is_most=True))
    return rates
