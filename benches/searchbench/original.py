"""A run that the original's own code writes to the index: its post-processing, its tools' writer, its documents.

The folder has checkouts of perftool-incubator's rickshaw, bench-iperf and toolbox under these names.
"""

import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import urllib.request
import uuid

from .answers import Comparison, values_of

# Its own test data, with the protocol of each.
CASES = [("tcp-unidirectional-server", "tcp"), ("udp-receiver", "udp"), ("tcp-bidirectional-server", "tcp")]
SAMPLES = 2
VERSION = "v10dev"

ENGINE = """HOSTNAME=host{0}
engine_type={1}
engine_role=benchmarker
benchmark_group=g
osruntime=podman
userenv=fedora
endpoint_label=remotehosts-1
"""

WAYS = [
    [],
    ["--resolution", "5"],
    ["--resolution", "7", "--aggregation", "max"],
    ["--resolution", "3", "--aggregation", "min"],
    ["--aggregation", "avg"],
    ["--breakout", "csid,cstype", "--resolution", "4"],
    ["--breakout", "cstype=client"],
    ["--breakout", "cstype=r/c.*/"],
    ["--breakout", "hostname,osruntime", "--resolution", "2"],
]
OWN_WAYS = {
    "mpstat": [
        ["--breakout", "num,type"],
        ["--breakout", "num=1+2", "--resolution", "3"],
        ["--breakout", "core=R/[01]/,type"],
        ["--breakout", "num", "--filter", "gt:0.5"],
        ["--breakout", "type=usr+sys", "--aggregation", "avg"],
    ],
    "sar-net": [["--breakout", "dev,direction", "--resolution", "6"], ["--breakout", "dev=eth0.100"]],
    "procstat": [["--breakout", "desc"], ["--breakout", "irq,cpu", "--resolution", "2"]],
}


class Original:
    """The original's code."""

    def __init__(self, directory):
        self.directory = os.path.abspath(directory)
        homes = {"TOOLBOX_HOME": self.path("toolbox"), "RICKSHAW_HOME": self.path("rickshaw")}
        self.environment = {**os.environ, **homes}

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def run(self, words, place):
        done = subprocess.run(
            ["python3", *words], cwd=place, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    def write(self, place):
        """Makes a run; its name, and the folder of its documents."""
        run = str(uuid.uuid4())
        base = os.path.join(place, f"iperf--2026-01-20_10:00:00_UTC--{run}")
        os.makedirs(os.path.join(base, "config"))
        iterations = [self.write_iteration(base, at, *case) for at, case in enumerate(CASES, 1)]
        first = os.path.join(base, "run/iterations/iteration-1/sample-1/client/1/postprocess")
        self.write_tools(base, begin_of(first))
        document = {
            "rickshaw-run": {"schema": {"version": "2024.03.12"}},
            "email": "somebody@example.com",
            "name": "somebody",
            "test-order": "s",
            "endpoints": [],
            "iterations": iterations,
            "benchmark": "iperf",
            "run-id": run,
            "tags": [{"name": "mtu", "val": "1500"}, {"name": "kind", "val": "x"}],
        }
        with open(os.path.join(base, "run/rickshaw-run.json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.run([self.path("rickshaw/rickshaw-gen-docs.py"), "--base-run-dir", base, "--ver", VERSION], place)
        return run, os.path.join(base, "run/opensearch")

    def write_iteration(self, base, number, case, protocol):
        flags = [f"--protocol={protocol}", "--ipv=4", "--ifname=eth0"] + ["--bidir"] * ("bidir" in case)
        for sample in range(1, SAMPLES + 1):
            places = {}
            for role in ("client", "server"):
                place = os.path.join(base, f"run/iterations/iteration-{number}/sample-{sample}/{role}/1")
                os.makedirs(place)
                printed = self.path(f"bench-iperf/unit-test/test-data/{case}/iperf-{role}-result.txt")
                if os.path.exists(printed):
                    shutil.copy(printed, place)
                    places[role] = place
            # Of a server's post-processing the client's file is read as well, and the other way round.
            for at, (role, place) in enumerate(places.items()):
                self.run([self.path("bench-iperf/iperf-post-process.py"), *flags], place)
                with open(os.path.join(place, "engine-env.txt"), "w", encoding="utf-8") as file:
                    file.write(ENGINE.format(at, role))
        params = [{"arg": "protocol", "val": protocol}, {"arg": "case", "val": case}]
        return {"id": str(number), "params": params + [{"arg": "ifname", "val": "eth0", "role": "server"}]}

    def write_tools(self, base, begin):
        """What tools collected, by the original's own writer: all day long, with a gap, and by several names."""
        sys.path.insert(0, self.path("toolbox/python"))
        from toolbox.cdm_metrics import CDMMetrics  # noqa: PLC0415

        chance = random.Random(1)
        span = lambda at: {"begin": begin + at * 1000 - 500, "end": begin + at * 1000 + 499}  # noqa: E731

        def mpstat(log):
            for at in range(-5, 40):
                for cpu in range(4):
                    for kind in ("usr", "sys"):
                        names = {"num": cpu, "package": 0, "die": 0, "core": cpu // 2, "thread": cpu % 2, "type": kind}
                        log("throughput", "mpstat", "Busy-CPU", names, {**span(at), "value": chance.random()})

        def sar(log):
            for at in [*range(0, 11), *range(16, 30)]:
                for dev in ("eth0.100", "br-ex", "lo"):
                    for direction in ("rx", "tx"):
                        names = {"dev": dev, "direction": direction, "type": "virtual"}
                        value = 0 if dev == "lo" and at < 20 else round(chance.random(), 1)
                        log("throughput", "sar-net", "L2-Gbps", names, {**span(at), "value": value})
                log("count", "sar-scheduler", "Run-Queue-Length", {}, {**span(at), "value": at // 4})

        def procstat(log):
            for at in range(0, 30, 3):
                for irq, desc in (("24", "IR-PCI-MSI 1572864-edge eth0-rx/0"), ("LOC", "Local timer interrupts")):
                    for cpu in range(2):
                        times = {"begin": begin + at * 1000, "end": begin + at * 1000 + 2999}
                        names = {"cpu": cpu, "irq": irq, "desc": desc}
                        sample = {**times, "value": chance.random() * 1e6}
                        log("throughput", "procstat", "interrupts-sec", names, sample)

        for tool, write in (("mpstat", mpstat), ("sar", sar), ("procstat", procstat)):
            place = os.path.join(base, f"run/tool-data/profiler/remotehosts-1-{tool}-1/{tool}")
            os.makedirs(place)
            metrics = CDMMetrics(os.path.join(place, "postprocess"))

            def log(kind, source, metric, names, sample, metrics=metrics):
                metrics.log_sample("0", {"source": source, "class": kind, "type": metric}, names, sample)

            write(log)
            metrics.finish_samples()


def begin_of(place):
    """When the first point of a folder of metrics begins, in milliseconds."""
    begins = []
    for name in os.listdir(place):
        if ".csv" in name:
            with lzma.open(os.path.join(place, name), "rt") as file:
                begins += [int(line.split(",")[1]) for line in file]
    return min(begins)


def find(search, kind, run):
    query = {"size": 10000, "query": {"term": {"run.run-uuid": run}}}
    asked = urllib.request.Request(
        f"{search.url}/cdm-{VERSION}-{kind}@*/_search",
        data=json.dumps(query).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return [hit["_source"] for hit in json.loads(answer.read())["hits"]["hits"]]


def compare(program, place, search, judge, directory):
    """Whether linerate answers from the original's documents as the original does."""
    run, documents = Original(directory).write(place)
    judge.add(documents)
    comparison = Comparison()
    own = program.ask("crucible", "get", "result", "--run", run, "--compat", "--opensearch", search.url)
    comparison.results("a run of the original", judge.result(run), own)
    periods, series = find(search, "period", run), find(search, "metric_desc", run)
    silent, tools = 0, [one["metric_desc"] for one in series if "period" not in one]
    for document in sorted(periods, key=lambda one: (one["iteration"]["num"], one["sample"]["num"])):
        if document["sample"]["num"] != 1:
            continue
        period = document["period"]["period-uuid"]
        described = [one["metric_desc"] for one in series if one.get("period", {}).get("period-uuid") == period]
        if document["iteration"]["num"] == 1:
            # What tools collected belongs to no period.
            described += tools
        for source, metric in sorted({(one["source"], one["type"]) for one in described}):
            for way in WAYS + OWN_WAYS.get(source, []):
                words = ["--period", period, "--source", source, "--type", metric, *way, "--output-format", "json"]
                answers, told = judge.metric(words)
                done = program.run("crucible", "get", "metric", *words, "--compat", "--opensearch", search.url)
                what = " ".join(words[2:-2])
                if not answers:
                    # Its tools give no answer where nothing is left.
                    silent += 1
                    empty = done.returncode != 0 or not any(values_of(done.stdout).values())
                    comparison.require(empty, f"{what}: {told.strip()}, and linerate: {done.stdout}")
                elif done.returncode:
                    comparison.failures.append(f"{what}: {done.stderr.strip()}, and the original: {values_of(told)}")
                else:
                    comparison.add(what, values_of(done.stdout), values_of(told))
    print(f"{silent} questions have no answer")
    return comparison.tell("a run of the original")
