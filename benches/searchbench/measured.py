"""Matrices that are measured and exported, indexed while they go on, and whose controller is killed in between."""

import json
import os
import subprocess

from .answers import Comparison, values_of

PLAN = """title = "searchbench"
tags = { mtu = "1500" }
[schedule]
samples = 2
[collect]
hz = 2
sources = ["cpu", "net", "protocols"]
[[cells]]
workload = "stream"
protocol = ["tcp", "udp"]
flows = 2
rate = "200M"
time = "3s"
interval = "200ms"
"""
CELLS = 4

METRICS = [("linerate", "rx-Gbps"), ("linerate", "tx-Gbps"), ("mpstat", "Busy-CPU"), ("sar-net", "L2-Gbps")]
WAYS = [[], ["--resolution", "5"], ["--resolution", "3", "--breakout", "csid,cstype"]]


def write_plan(place, text=PLAN):
    plan = os.path.join(place, "plan.toml")
    with open(plan, "w", encoding="utf-8") as file:
        file.write(text)
    return plan


def versions(program, place, search):
    """Whether a run is answered alike from all versions of the Common Data Model, of which the newest answers."""
    store, comparison = ["--store", program.store], Comparison()
    plan = write_plan(place, PLAN.replace("samples = 2", "samples = 1"))
    program.ask("matrix", plan, *store, "--quiet", codes=(0, 6))
    run = json.loads(program.ask("results", "show", "last", *store, "--json"))
    name, source, metric = run["run"]["run"], *METRICS[0]
    result = ["crucible", "get", "result", "--run", name, "--compat"]
    get = ["crucible", "get", "metric", "--run", name, "--source", source, "--type", metric, "--output-format", "json"]
    for version in ("v7dev", "v8dev", "v9dev", "v10dev"):
        index = ["--opensearch", search.url]
        print(program.ask("results", "export", name, *store, *index, "--cdm", version), end="")
        comparison.add(version, values_of(program.ask(*get, *store)), values_of(program.ask(*get, *index)))
        same = program.ask(*result, *store) == program.ask(*result, *index)
        comparison.require(same, f"get result differs in {version}")
    return comparison.tell("all versions")


def compare(program, place, search, judge):
    """Whether a run that was indexed cell by cell is answered from there as from the store."""
    store, comparison = ["--store", program.store], Comparison()
    # A busy machine may make a sample untrustworthy.
    program.ask("matrix", write_plan(place), *store, "--index", search.url, "--quiet", codes=(0, 6))
    waiting = json.loads(program.ask("results", "outbox", *store, "--json"))
    comparison.require(waiting == [], f"the outbox has {waiting}")
    live = search.count("cdm-*")
    print(program.ask("results", "export", "last", *store, "--opensearch", search.url), end="")
    comparison.require(search.count("cdm-*") == live, "the export wrote other documents than the run itself")
    run = json.loads(program.ask("results", "show", "last", *store, "--json"))
    samples = [sample for iteration in run["iterations"] for sample in iteration["samples"]]
    for sample in samples:
        for source, metric in METRICS:
            for way in WAYS:
                words = ["--period", sample["period"]["period"], "--source", source, "--type", metric, *way]
                words += ["--output-format", "json"]
                get = ["crucible", "get", "metric", *words]
                exact = values_of(program.ask(*get, *store))
                from_index = values_of(program.ask(*get, "--opensearch", search.url))
                comparison.add(f"linerate, {' '.join(words)}", exact, from_index)
                if judge:
                    # From the same documents: merged neighbours have an edge of a window once, in the store twice.
                    compat = values_of(program.ask(*get, "--compat", "--opensearch", search.url))
                    answers, told = judge.metric(words)
                    what = f"the original, {' '.join(words)}"
                    comparison.add(what, compat, values_of(told) if answers else {})
    name = run["run"]["run"]
    get = ["crucible", "get", "result", "--run", name, "--compat"]
    result = program.ask(*get, "--opensearch", search.url)
    comparison.require(result == program.ask(*get, *store), f"get result differs: {result}")
    if judge:
        comparison.results("a run of linerate", judge.result(name), result)
    return comparison.tell("a run of linerate")


def resume(program, place, search):
    """Whether a run whose controller was killed after its first cell comes to the index whole, and once."""
    store, comparison = ["--store", program.store], Comparison()
    matrix = [program.linerate, "matrix", write_plan(place), *store, "--index", search.url]
    controller = subprocess.Popen([*matrix, "--ndjson"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    name = None
    for line in controller.stdout:
        record = json.loads(line)
        name = record.get("run", name)
        if record["record"] == "cell_ended":
            break
    controller.kill()
    controller.wait()
    program.ask(*matrix[1:], "--resume", name, "--quiet", codes=(0, 6))
    waiting = json.loads(program.ask("results", "outbox", *store, "--json"))
    comparison.require(waiting == [], f"the outbox has {waiting}")
    kinds = {"run": 1, "sample": CELLS, "period": CELLS, "metric_data": None}
    counts = {kind: search.count_of(kind, name) for kind in kinds}
    comparison.require(counts["metric_data"], "the run has no points")
    for kind, count in kinds.items():
        found = counts[kind]
        comparison.require(count in (None, found), f"{found} documents of the kind {kind} and not {count}")
    told = program.ask("results", "export", name, *store, "--opensearch", search.url)
    comparison.require(": 0 documents created" in told, f"the run was not whole: {told}")
    again = {kind: search.count_of(kind, name) for kind in kinds}
    comparison.require(again == counts, f"{counts} became {again}")
    return comparison.tell("a run whose controller was killed")
