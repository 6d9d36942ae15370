"""Running one row in one placement: pairs of runs, their ratio or their difference in loss."""

import random
import time
from dataclasses import replace

from . import machine
from .crowd import run_crowd
from .growth import run_growth
from .interval import LEAST_VALUES
from .outcome import Outcome
from .own import run_first_byte, run_memory, run_percentile, run_sides
from .process import BROKEN, PeerFailed, RunFailed, reason_of
from .relayed import relay_cpu_s, run_relay_cost, run_slow_receiver
from .tools import BareLoop, Linerate, LinerateBefore, OurCtsTraffic, Personality

GIVE_UP_AFTER_FAILURES = 3
CALIBRATION_RUNS = 3
LEAST_SENT = 0.98  # of the rate asked for: who sends less has less to lose
OUR_SIDE, THEIR_SIDE = 0, 1


def run_row(row, place, context):
    """One row in one placement; never raises for a run that failed."""
    runner = {
        "ratio": _run_pairs,
        "cpu": _run_cpu_pairs,
        "latency": _run_latency_pairs,
        "loss": _run_loss_pairs,
        "memory": run_memory,
        "first_byte": run_first_byte,
        "percentile": run_percentile,
        "sides": run_sides,
        "growth": run_growth,
        "crowd": run_crowd,
        "relay_cpu": _run_relay_cpu_pairs,
        "added": _run_added_pairs,
        "relay_cost": run_relay_cost,
        "slow_receiver": run_slow_receiver,
    }[row.measure]
    outcome = Outcome(row.name, place.name, row.bar, row.figure, is_judged=context.is_judged)
    before = machine.busy_s()
    began = time.monotonic()
    try:
        own_cpu_s = runner(row, place, context, outcome)
        elapsed_s = time.monotonic() - began
        outcome.other_cpus = max(0.0, (machine.busy_s() - before - own_cpu_s) / elapsed_s)
    except PeerFailed as failure:
        outcome.peer_failures.append(str(failure))
    except BROKEN as failure:
        outcome.failures.append(reason_of(failure))
    return outcome


class _Sides:
    """Both tools with their servers, ended whatever happens."""

    def __init__(self, row, place, context):
        self.place = place
        self.works = [context.prepared(row.ours[1]), context.prepared(row.theirs[1])]
        self.tools = [context.tool(row.ours[0]), context.tool(row.theirs[0])]

    def __enter__(self):
        try:
            for side in (OUR_SIDE, THEIR_SIDE):
                self._guarded(side, lambda tool, work: tool.start_server(self.place, work))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for tool in self.tools:
            tool.stop()

    def run(self, side, **changes):
        """One run of one side; a server that a failed run left behind is started anew."""
        try:
            return self._guarded(side, lambda tool, work: tool.run(replace(work, **changes)))
        except RunFailed:
            self.tools[side].stop()
            self._guarded(side, lambda tool, work: tool.start_server(self.place, work))
            raise

    def _guarded(self, side, action):
        """Does it; whatever a tool's output made go wrong says whose fault it is."""
        tool = self.tools[side]
        try:
            return action(tool, self.works[side])
        except BROKEN as failure:
            kind = RunFailed if _is_ours(tool) else PeerFailed
            raise kind(reason_of(failure)) from failure


def _is_ours(tool):
    """Whether this project is to blame where it fails; an earlier build is a peer."""
    return isinstance(tool, (Linerate, BareLoop, OurCtsTraffic, Personality)) and tool.name != LinerateBefore.name


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
    """Pairs whose order is drawn, until as many as were asked for are complete; `changes` are both sides'
    departures from their work."""
    outcome.least_values = LEAST_VALUES
    own_cpu_s = 0.0
    tried = 0
    while len(outcome.values) < context.pairs:
        tried += 1
        try:
            measured = {}
            for side in random.sample((OUR_SIDE, THEIR_SIDE), 2):
                measured[side] = sides.run(side, **changes)
                own_cpu_s += measured[side].cpu_s
            ours, theirs = measured[OUR_SIDE], measured[THEIR_SIDE]
            value = value_of(ours, theirs)
        except RunFailed as failure:
            of_peer = isinstance(failure, PeerFailed)
            failures = outcome.peer_failures if of_peer else outcome.failures
            failures.append(f"pair {tried}: {failure}")
            if _is_hopeless(outcome):
                outcome.notes.append(f"given up after {len(failures)} failures")
                break
            continue
        outcome.pairs.append({"ours": _side_record(ours), "theirs": _side_record(theirs)})
        outcome.values.append(value)
        context.progress(outcome, len(outcome.values))
    return own_cpu_s


def _is_hopeless(outcome):
    """Whether a further pair would decide nothing. Some failures of ours fail the row as it is; a peer
    may fail as often as it completes, but one that has not completed a single run after two won't."""
    limit = GIVE_UP_AFTER_FAILURES if outcome.values else 2
    return (len(outcome.failures) >= GIVE_UP_AFTER_FAILURES
            or len(outcome.peer_failures) >= max(limit, len(outcome.values) + 1))


def _ratio(ours, theirs):
    if not theirs.figure:
        raise PeerFailed("a figure of 0")
    return ours.figure / theirs.figure


def _cpu_ratio(ours, theirs):
    if not (theirs.cpu_s and theirs.units):
        raise PeerFailed("no CPU time, or nothing moved")
    if not ours.units:
        raise RunFailed("nothing moved")
    return (ours.cpu_s / ours.units) / (theirs.cpu_s / theirs.units)


def _run_pairs(row, place, context, outcome, value_of=_ratio):
    with _Sides(row, place, context) as sides:
        outcome.notes += [note for tool in sides.tools for note in tool.notes]
        used_s = sum(tool.prepared_cpu_s for tool in sides.tools)
        return used_s + _each_pair(sides, context, outcome, value_of, {})


def _run_cpu_pairs(row, place, context, outcome):
    """What both ends' CPU seconds for the same work come to; less is better."""
    outcome.smaller_is_better = True
    return _run_pairs(row, place, context, outcome, _cpu_ratio)


def _run_latency_pairs(row, place, context, outcome):
    """The ratio of a percentile of both sides' latencies; less is better."""
    outcome.smaller_is_better = True
    return _run_pairs(row, place, context, outcome)


def _run_relay_cpu_pairs(row, place, context, outcome):
    """The proxy's CPU seconds beside those of both ends of a direct run, for the same work; less is better."""
    def ratio(ours, theirs):
        if not (theirs.cpu_s and theirs.units):
            raise PeerFailed("no CPU time, or nothing moved")
        return relay_cpu_s(ours) / (theirs.cpu_s / theirs.units)

    outcome.smaller_is_better = True
    return _run_pairs(row, place, context, outcome, ratio)


def _run_added_pairs(row, place, context, outcome):
    """What is added to a percentile of the latencies, by that of a direct run; less is better."""
    outcome.smaller_is_better = True
    return _run_pairs(row, place, context, outcome, lambda ours, theirs: _ratio(ours, theirs) - 1)


def _run_loss_pairs(row, place, context, outcome):
    """Both paced at a fraction of the best rate that the peer received at unpaced. Ours must send at it; a
    peer that can't is taken as it is, and what it sent is told."""
    outcome.smaller_is_better = True

    def difference(ours, theirs):
        for side, kind in ((ours, RunFailed), (theirs, PeerFailed)):
            if side.loss is None or side.extra.get("sent_bps") is None:
                raise kind("a run that tells no loss, or not what it sent")
        return ours.loss - theirs.loss

    with _Sides(row, place, context) as sides:
        calibration = [sides.run(THEIR_SIDE) for _ in range(CALIBRATION_RUNS)]
        rate_bps = row.fraction * max(run.extra["goodput_bps"] for run in calibration)
        outcome.notes.append(f"both paced at {rate_bps / 1e6:.0f} Mbit/s")
        used_s = sum(run.cpu_s for run in calibration)
        pace = {"rate_bps": rate_bps}
        used_s += _each_pair(sides, context, outcome, difference, pace)
    _judge_sent(outcome, rate_bps)
    return used_s


def _judge_sent(outcome, rate_bps):
    """Tells what both sides sent of the rate that was asked for. Who sends less loses less."""
    sent = {name: outcome.side(name, "sent_bps") for name in ("ours", "theirs")}
    if None in sent.values():
        return
    shares = {name: sent_bps / rate_bps for name, sent_bps in sent.items()}
    told = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    outcome.notes.append(f"sent of that rate, medians: {told}")
    if outcome.decides and shares["ours"] < LEAST_SENT:
        outcome.failures.append(
            f"sent {shares['ours']:.3f} of the rate asked for, less than {LEAST_SENT:g}")
