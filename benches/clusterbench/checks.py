"""What is tried on the cluster: each check gives a sentence, or raises what was seen instead."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time

from clusterbench.cluster import OUTSIDE, run, wait_for

IMAGE = "localhost/linerate:1"
SPACE = "perf"
# A namespace whose pods may have the node's network.
OPEN = "open"
# What addresses of load balancers begin with.
BALANCED = "10.80.0"
# The cluster's own sentence is there within this time.
SENTENCE_S = 10
# The longest that a run is waited for.
RUN_S = 300
NAMES = []
CHECKS = []


class Failed(Exception):
    """What was seen."""


# What an answer that is not as expected, a command that hangs or a wait that is too long may end with.
SURPRISES = (Failed, SystemExit, LookupError, OSError, ValueError, StopIteration, subprocess.SubprocessError)


def named(name):
    def keep(function):
        NAMES.append(name)
        CHECKS.append((name, function))
        return function
    return keep


def expect(is_so, what):
    if not is_so:
        raise Failed(what)


class Said:
    """What a command said, and how long it took."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @property
    def all(self):
        return f"exit code {self.code}: {self.out[-1500:]}{self.err[-1500:]}"

    def has(self, *parts):
        for part in parts:
            expect(part in self.out + self.err, f"no {part!r} in {self.all}")


class Bench:
    """The cluster, the program, and an account that has the printed role and nothing else."""

    def __init__(self, cluster, program):
        self.cluster, self.program, self.api = cluster, program, cluster.api
        self.folder = os.path.join(cluster.folder, "controller")
        os.makedirs(self.folder)
        self.begun = []
        self.apply(self.manifest(SPACE))
        self.kubeconfig = cluster.account("linerate", SPACE, "linerate")

    def manifest(self, namespace, account="linerate"):
        words = ("kubernetes", "manifest", "--namespace", namespace, "--account", account)
        return self.run(*words, kubeconfig="").out

    def apply(self, manifest):
        # The server reads YAML itself; what names an object's place is all that is needed here.
        for document in manifest.split("---\n"):
            self.apply_yaml(document)

    def apply_yaml(self, text):
        words = {}
        for line in text.splitlines():
            key, _, value = line.partition(": ")
            words.setdefault(key, value)
        kind, version, name, space = (words.get(key) for key in ("kind", "apiVersion", "  name", "  namespace"))
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        place = f"namespaces/{space}/" if space else ""
        path = f"{root}/{place}{kind.lower()}s/{name}?fieldManager=cluster&fieldValidation=Strict"
        self.api.must("PATCH", path, text, "application/apply-patch+yaml")

    def environment(self, kubeconfig):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "LINERATE_"))}
        return {**kept, "KUBECONFIG": self.kubeconfig if kubeconfig is None else kubeconfig, "HOME": self.folder,
                "LINERATE_STORE": os.path.join(self.folder, "results.db")}

    def run(self, *words, kubeconfig=None):
        began = time.monotonic()
        done = subprocess.run([self.program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=self.environment(kubeconfig), timeout=RUN_S)
        return Said(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def begin(self, plan):
        """A run whose records can be read while it goes on."""
        process = subprocess.Popen([self.program, "matrix", self.write("plan.toml", plan), "--ndjson"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, env=self.environment(None))
        self.begun.append(process)
        return process

    def end_begun(self):
        """Kills the runs that still go on."""
        for process in self.begun:
            process.kill()
            process.wait()
            process.stdout.close()
        self.begun = []

    def clean(self):
        """Removes what a failed check has left."""
        for space in (SPACE, OPEN):
            with contextlib.suppress(*SURPRISES):
                self.run("kubernetes", "clean", "--namespace", space, "--all", kubeconfig=self.cluster.admin)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def matrix(self, plan, kubeconfig=None):
        return self.run("matrix", self.write("plan.toml", plan), "--json", kubeconfig=kubeconfig)

    def objects(self):
        """Names of the Jobs, Services and pods there are in our namespaces."""
        kinds = [("/apis/batch/v1", "jobs"), ("/api/v1", "services"), ("/api/v1", "pods")]
        paths = [f"{root}/namespaces/{space}/{kind}" for space in (SPACE, OPEN) for root, kind in kinds]
        return [f"{path.split('/')[-1]} {item['metadata']['name']}" for path in paths for item in self.api.items(path)]

    def gone(self, seconds=60):
        """Waits until nothing is left; how long that took."""
        try:
            return wait_for("", lambda: not self.objects(), seconds)
        except SystemExit:
            raise Failed(f"left after {seconds} s: {', '.join(self.objects())}") from None


def host(name, **keys):
    keys = {"namespace": SPACE, "image": IMAGE, "node": name, **keys}
    return f"{name} = {{ transport = \"kubernetes\", " + ", ".join(f"{k} = {toml(v)}" for k, v in keys.items()) + " }\n"


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(of)}" for key, of in value.items()) + " }"
    return json.dumps(value)


def outside(name="here"):
    return f"{name} = {{ transport = \"local\", data_address = \"{OUTSIDE}\" }}\n"


def plan(hosts, topology, samples=1, time_s="1s", rate="20M"):
    return (f"[schedule]\nsamples = {samples}\n[hosts]\n{hosts}[topology]\n{topology}\n[[cells]]\n"
            f"workload = \"stream\"\nprotocol = [\"tcp\", \"udp\"]\ntime = \"{time_s}\"\nrate = \"{rate}\"\n")


def measured(bench, text, pairs=1, kubeconfig=None):
    """Measures by a plan; the rates of each pair over TCP and UDP, and that nothing is left."""
    said = bench.matrix(text, kubeconfig)
    # A busy machine may make a sample untrustworthy.
    expect(said.code in (0, 6), said.all)
    document = json.loads(said.out)
    rates = []
    for point in document["points"]:
        for sample in point["samples"]:
            expect(len(sample["pairs"]) == pairs, f"{len(sample['pairs'])} pairs, not {pairs}: {said.all}")
            expect(all(pair["received_bytes"] > 0 for pair in sample["pairs"]), said.all)
            rates.append("+".join(f"{pair['goodput_bps'] / 1e6:.1f}" for pair in sample["pairs"]))
    expect(len(rates) == 2, said.all)
    left = bench.gone()
    return f"TCP {rates[0]}, UDP {rates[1]} Mbit/s in {said.seconds:.0f} s; nothing was left {left:.0f} s later"


@named("role: check finds all verbs, and accepts the pod under Pod Security restricted")
def role(bench):
    said = bench.run("kubernetes", "check", "--namespace", SPACE, "--image", IMAGE)
    expect(said.code == 0, said.all)
    said.has("complete", "accepted")
    status, _ = bench.api.ask("GET", f"/api/v1/namespaces/{SPACE}")
    expect(status == 200, "no namespace")
    review = bench.run("kubernetes", "check", "--namespace", "default", "--image", IMAGE)
    expect(review.code == 4, f"the account may act outside of its namespace: {review.all}")
    return f"{said.seconds:.1f} s; in another namespace the account has nothing"


@named("intranode: pod to pod of one node by the pod's address")
def intranode(bench):
    return measured(bench, plan(host("w0"), 'kind = "intranode"'))


@named("intranode: pod to pod of one node by a ClusterIP")
def intranode_service(bench):
    return measured(bench, plan(host("w0", via="cluster-ip"), 'kind = "intranode"'))


@named("internode: pod to pod of the other node by the pod's address")
def internode(bench):
    return measured(bench, plan(host("w0") + host("w1"), 'kind = "internode"'))


@named("internode: pod to pod of the other node by a ClusterIP")
def internode_service(bench):
    return measured(bench, plan(host("w0") + host("w1", via="cluster-ip"), 'kind = "internode"'))


@named("internode: four pairs of pods")
def internode_scaled(bench):
    return measured(bench, plan(host("w0") + host("w1"), 'kind = "internode"\nscale_up = 4', rate="5M"), pairs=4)


@named("check: matrix --check starts the pods, shows their clocks, and removes them")
def checked(bench):
    said = bench.run("matrix", "--check", bench.write("plan.toml", plan(host("w0") + host("w1"), 'kind = "internode"')))
    expect(said.code == 0, said.all)
    expect(said.out.count("ready") == 2, said.all)
    return f"{said.seconds:.0f} s; nothing was left {bench.gone():.0f} s later"


def in_open(bench):
    """An account in a namespace without Pod Security restricted."""
    bench.apply(bench.manifest(OPEN).replace("enforce: restricted", "enforce: privileged"))
    return bench.cluster.account("open", OPEN, "linerate")


@named("internode: between networks of the nodes")
def node_network(bench):
    hosts = "".join(host(name, namespace=OPEN, host_network=True) for name in ("w0", "w1"))
    return measured(bench, plan(hosts, 'kind = "internode"'), kubeconfig=in_open(bench))


@named("ingress: from outside to pods by ports of their nodes")
def host_port(bench):
    hosts = outside() + "".join(host(name, namespace=OPEN, via="host-port") for name in ("w0", "w1"))
    text = plan(hosts, 'kind = "ingress"\noutside = "here"\nport = 7000')
    return measured(bench, text, pairs=2, kubeconfig=in_open(bench))


@named("ingress: from outside to pods of both nodes by a NodePort")
def ingress(bench):
    text = plan(outside() + host("w0") + host("w1"), 'kind = "ingress"\noutside = "here"')
    return measured(bench, text, pairs=2)


class Balancer:
    """A controller of load balancers: gives each Service an address, and leads that to the node of its pod."""

    def __init__(self, bench):
        self.api, self.given, self.ends = bench.api, [], threading.Event()
        self.thread = threading.Thread(target=self.give_addresses)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        for address in self.given:
            run("ip", "route", "del", address)

    def give_addresses(self):
        path = f"/api/v1/namespaces/{SPACE}"
        while not self.ends.wait(0.2):
            for service in self.api.items(f"{path}/services"):
                spec, status = service["spec"], service["status"]
                if spec["type"] == "LoadBalancer" and not status.get("loadBalancer"):
                    self.give_address(path, service["metadata"]["name"], spec["selector"])

    def give_address(self, path, name, selector):
        wanted = ",".join(f"{key}={value}" for key, value in selector.items())
        node = self.api.items(f"{path}/pods?labelSelector={wanted}")[0]["status"]["hostIP"]
        address = f"{BALANCED}.{len(self.given) + 1}"
        run("ip", "route", "add", address, "via", node)
        self.given.append(address)
        status = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
        self.api.must("PATCH", f"{path}/services/{name}/status", status, "application/merge-patch+json")


def balanced_plan(start_timeout="120s"):
    hosts = "".join(host(name, via="load-balancer", start_timeout=start_timeout) for name in ("w0", "w1"))
    return plan(outside() + hosts, 'kind = "ingress"\noutside = "here"')


@named("load balancer: from outside to pods of both nodes by the addresses that it gives")
def balanced(bench):
    with Balancer(bench) as balancer:
        said = measured(bench, balanced_plan(), pairs=2)
    return f"{said}; given were {' and '.join(balancer.given)}"


def until_told(bench, process, part, since=None):
    """Waits until a run has told something; the sentence, and how long that took since it began or told another."""
    began = time.monotonic()
    for line in process.stdout:
        if since and since in line:
            began, since = time.monotonic(), None
        if part in line:
            seconds = time.monotonic() - began
            expect(seconds <= SENTENCE_S, f"after {seconds:.1f} s, not {SENTENCE_S} s: {line}")
            # It comes as a record and as text.
            said = json.loads(line)["text"] if line.startswith("{") else line
            return said.strip(), seconds
    process.wait()
    raise Failed(f"the run did not tell {part!r}, exit code {process.returncode}")


@named("load balancer: one that gives its addresses late is awaited")
def balanced_late(bench):
    process = bench.begin(balanced_plan())
    with in_time(process):
        line, seconds = until_told(bench, process, "no load balancer has given", since='"cell_began"')
        with Balancer(bench):
            rest = process.stdout.read()
            code = process.wait()
    expect(code in (0, 6), f"exit code {code}: {rest[-1500:]}")
    done = samples_done(bench)
    # A busy machine may make a sample untrustworthy.
    expect(done == 2 or code == 6, f"{done} samples")
    return f"after {seconds:.1f} s: {line}; then measured; nothing was left {bench.gone():.0f} s later"


@named("load balancer: the cluster has none")
def not_balanced(bench):
    process = bench.begin(balanced_plan(start_timeout="20s"))
    with in_time(process):
        line, seconds = until_told(bench, process, "no load balancer has given", since='"cell_began"')
        began = time.monotonic()
        rest = process.stdout.read()
        code = process.wait()
    expect(code not in (0, None), f"exit code {code}: {rest[-1500:]}")
    expect("the Service was given no address" in rest, rest[-1500:])
    more = time.monotonic() - began
    return (f"after {seconds:.1f} s: {line}; exit code {code} {more:.0f} s later, with a limit of 20 s; nothing was "
            f"left {bench.gone():.0f} s later")


@named("egress: from pods of both nodes to the host outside")
def egress(bench):
    text = plan(outside() + host("w0") + host("w1"), 'kind = "egress"\noutside = "here"')
    return measured(bench, text, pairs=2)


@named("a host by ssh and pods in one run: the host measures to a pod, and a pod to the host")
def by_ssh(bench):
    folder = os.path.join(bench.folder, "ssh")
    os.makedirs(folder)
    names = ("host_key", "user_key", "known_hosts", "bin", "home", "login")
    paths = {name: os.path.join(folder, name) for name in names}
    for key in ("host_key", "user_key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", paths[key])
    os.makedirs(paths["home"])
    os.makedirs("/run/sshd", exist_ok=True)
    bench.write("ssh/login", f"#!/bin/sh\nexport HOME={paths['home']}\neval \"$SSH_ORIGINAL_COMMAND\"\n")
    os.chmod(paths["login"], 0o755)
    config = bench.write("ssh/config", "\n".join((
        f"ListenAddress {OUTSIDE}:22", f"HostKey {paths['host_key']}", f"AuthorizedKeysFile {paths['user_key']}.pub",
        f"ForceCommand {paths['login']}", "PermitRootLogin prohibit-password", "PasswordAuthentication no", "UsePAM no",
        "StrictModes no", "PidFile none", "UseDNS no", "PrintMotd no", "")))
    bench.cluster.start("sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", config])
    options = ["-F", "none", "-i", paths["user_key"], "-o", f"UserKnownHostsFile={paths['known_hosts']}", "-o",
               "StrictHostKeyChecking=accept-new"]
    far = (f"far = {{ transport = \"ssh\", address = \"root@{OUTSIDE}\", binary_dir = {toml(paths['bin'])}, "
           f"ssh_options = {toml(options)} }}\n")
    wait_for("sshd", lambda: not subprocess.run(["ssh", *options, "-o", "BatchMode=yes", f"root@{OUTSIDE}", "true"],
                                                capture_output=True).returncode, 60)
    return measured(bench, plan(far + host("w0") + host("w1"), 'pairs = [["far", "w0"], ["w1", "far"]]'), pairs=2)


@named("crucible: a run file with an endpoint of type kube")
def crucible(bench):
    document = {
        "benchmarks": [{"name": "iperf", "ids": "1", "mv-params": {"sets": [{"params": [
            {"arg": "time", "vals": ["1"]}, {"arg": "bitrate", "vals": ["5M"]}]}]}}],
        "endpoints": [{"type": "kube", "host": "bastion", "user": "core", "image": IMAGE, "namespace":
                       {"type": "custom", "name": SPACE}, "engines": {"client": "1", "server": "1"},
                       "disable-tools": {"all": True},
                       "config": [{"targets": "default", "settings": {
                           "nodeSelector": {"kubernetes.io/hostname": "w0"}}}]}],
    }
    said = bench.run("crucible", "run", "--from-file", bench.write("run.json", json.dumps(document)))
    expect(said.code in (0, 6), said.all)
    result = bench.run("crucible", "get", "result", "--run", json_run(bench))
    expect(result.code == 0, result.all)
    result.has("iperf", "result:")
    return f"{said.seconds:.0f} s; nothing was left {bench.gone():.0f} s later"


def json_run(bench):
    return json.loads(bench.run("results", "show", "last", "--json").out)["run"]["run"]


def sentence(bench, said, *parts):
    """A run that could not be: the cluster's sentence in time, and nothing left."""
    expect(said.code not in (0, None), said.all)
    said.has(*parts)
    left = bench.gone()
    expect(said.seconds <= SENTENCE_S, f"after {said.seconds:.1f} s, not {SENTENCE_S} s")
    line = next(line for line in (said.err + said.out).splitlines() if parts[0] in line)
    return f"after {said.seconds:.1f} s: {line.strip()[:300]}; nothing was left {left:.0f} s later"


@named("unschedulable: no node has the name")
def no_node(bench):
    said = bench.matrix(plan(host("w0") + host("w7"), 'kind = "internode"'))
    return sentence(bench, said, "nodes are available")


@named("unschedulable: no node has so many processors")
def no_room(bench):
    resources = {"requests": {"cpu": "1000"}}
    said = bench.matrix(plan(host("w0", resources=resources), 'kind = "intranode"'))
    return sentence(bench, said, "Insufficient cpu")


@named("image: it can't be pulled")
def no_image(bench):
    # Nothing listens there, so the runtime knows at once.
    image = f"{OUTSIDE}:5000/linerate:1"
    said = bench.matrix(plan(host("w0", image=image), 'kind = "intranode"'))
    return sentence(bench, said, "ErrImagePull", image)


@named("image: its registry's name can't be resolved, which the runtime tells late")
def unknown_registry(bench):
    process = bench.begin(plan(host("w0", image="registry.invalid/linerate:1"), 'kind = "intranode"'))
    began = time.monotonic()
    with in_time(process):
        line, seconds = until_told(bench, process, "has been pulling")
        rest = process.stdout.read()
        code = process.wait()
    more = time.monotonic() - began
    expect(code not in (0, None), f"exit code {code}: {rest[-1500:]}")
    expect("ErrImagePull" in rest or "ImagePullBackOff" in rest, rest[-1500:])
    return (f"after {seconds:.1f} s: {line}; exit code {code} after {more:.1f} s; nothing was left "
            f"{bench.gone():.0f} s later")


@named("admission: Pod Security restricted refuses the host's network")
def host_network(bench):
    said = bench.matrix(plan(host("w0", host_network=True), 'kind = "intranode"'))
    return sentence(bench, said, 'violates PodSecurity "restricted')


def account_without(bench, resource, verb):
    """A kubeconfig of an account whose role lacks a verb."""
    name = f"no-{verb}-{resource.replace('/', '-')}"
    kept, is_meant = [], False
    for line in bench.manifest(SPACE, name).splitlines():
        if line.startswith("  resources:"):
            is_meant = line == f"  resources: [{resource}]"
        if is_meant and line.startswith("  verbs: "):
            line = "  verbs: [" + ", ".join(v for v in line[len("  verbs: ["):-1].split(", ") if v != verb) + "]"
        kept.append(line)
    bench.apply("\n".join(kept))
    return bench.cluster.account(name, SPACE, name)


@named("role: the verb create of jobs is missing")
def no_jobs(bench):
    kubeconfig = account_without(bench, "jobs", "create")
    shown = bench.run("kubernetes", "check", "--namespace", SPACE, "--image", IMAGE, kubeconfig=kubeconfig)
    expect(shown.code == 4, shown.all)
    shown.has("missing: create jobs")
    said = bench.matrix(plan(host("w0"), 'kind = "intranode"'), kubeconfig=kubeconfig)
    return sentence(bench, said, 'cannot create resource "jobs"', "linerate kubernetes manifest")


@named("role: the verb get of pods/attach is missing")
def no_attach(bench):
    kubeconfig = account_without(bench, "pods/attach", "get")
    said = bench.matrix(plan(host("w0"), 'kind = "intranode"'), kubeconfig=kubeconfig)
    return sentence(bench, said, 'cannot get resource "pods/attach"')


@contextlib.contextmanager
def in_time(process):
    """Kills a run that takes longer than runs may, so that its records end."""
    timer = threading.Timer(RUN_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def until_cells_ended(bench, text, cells):
    """A run that goes on, whose first cells have ended."""
    process = bench.begin(text)
    with in_time(process):
        for line in process.stdout:
            if '"cell_ended"' in line:
                cells -= 1
                if cells == 0:
                    return process
        process.wait()
    raise Failed(f"the run ended early, exit code {process.returncode}")


def long_plan(hosts, topology):
    """A run that goes on until something happens."""
    return plan(hosts, topology, samples=200)


def samples_done(bench):
    """How many samples of the last run the store has."""
    shown = json.loads(bench.run("results", "show", "last", "--json").out)
    samples = [sample for iteration in shown["iterations"] for sample in iteration["samples"]]
    return sum(sample["status"] == "done" for sample in samples)


def have_ended(bench):
    """Whether each Job has its pod, and all of them have ended."""
    pods = bench.api.items(f"/api/v1/namespaces/{SPACE}/pods")
    return len(pods) >= 2 and all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods)


@named("kill -9: agents end, the cluster removes a finished Job with its Service, and clean what is left")
def killed(bench):
    process = until_cells_ended(bench, long_plan(host("w0") + host("w1", via="cluster-ip"),
                                                 'kind = "internode"'), 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    path = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
    jobs = bench.api.items(path)
    expect(len(jobs) == 2, f"{len(jobs)} jobs")
    deadline = [job["spec"]["activeDeadlineSeconds"] for job in jobs]
    expect(all(600 <= seconds < 86400 for seconds in deadline), f"deadlines {deadline}")
    times = {job["spec"]["ttlSecondsAfterFinished"] for job in jobs}
    expect(times == {300}, f"ttlSecondsAfterFinished {times}")
    ended = wait_for("the pods have ended", lambda: have_ended(bench), 60)
    run = jobs[0]["metadata"]["labels"]["linerate/run"]
    clean = ("kubernetes", "clean", "--namespace", SPACE, "--run", run)
    shown = bench.run(*clean, "--dry-run")
    expect(shown.code == 0 and shown.out.count("Job") == 2 and shown.out.count("Service") == 1, shown.all)
    server = next(job["metadata"]["name"] for job in jobs if job["metadata"]["labels"]["linerate/role"] == "server")
    # The five minutes are shortened: what is tried is that the cluster does it.
    bench.api.must("PATCH", f"{path}/{server}", {"spec": {"ttlSecondsAfterFinished": 1}},
                   "application/merge-patch+json")
    with_server = f" {server}"
    alone = wait_for("the server's Job, pod and Service are gone",
                     lambda: not any(with_server in name for name in bench.objects()), 90)
    expect(len(bench.objects()) == 2, f"left besides the server's: {bench.objects()}")
    removed = bench.run(*clean)
    expect(removed.code == 0, removed.all)
    kept = samples_done(bench)
    expect(kept >= 1, f"{kept} samples are kept")
    return (f"pods ended within {ended:.1f} s; with a time to live of 1 s in place of 300 s the server's Job, pod and "
            f"Service were gone after {alone:.0f} s, the rest {bench.gone():.0f} s after clean; deadline "
            f"{deadline[0]} s")


@named("kill -9: while the pods start, nobody has attached, and yet they end")
def killed_early(bench):
    process = bench.begin(long_plan(host("w0") + host("w1"), 'kind = "internode"'))
    path = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
    wait_for("both Jobs are made", lambda: len(bench.api.items(path)) == 2, 30)
    process.send_signal(signal.SIGKILL)
    process.wait()
    phases = [pod["status"]["phase"] for pod in bench.api.items(f"/api/v1/namespaces/{SPACE}/pods")]
    ended = wait_for("the pods have ended", lambda: have_ended(bench), 60)
    removed = bench.run("kubernetes", "clean", "--namespace", SPACE, "--all")
    expect(removed.code == 0, removed.all)
    return f"pods were {' and '.join(phases) or 'not made'}, and had ended {ended:.1f} s later; {bench.gone():.0f} s"


@named("kill -9: the run goes on with --resume beside what it left")
def resumed(bench):
    process = until_cells_ended(bench, plan(host("w0") + host("w1"), 'kind = "internode"', samples=3), 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = bench.run("matrix", os.path.join(bench.folder, "plan.toml"), "--resume", json_run(bench), "--json")
    expect(said.code in (0, 6), said.all)
    samples = [sample for point in json.loads(said.out)["points"] for sample in point["samples"]]
    expect(len(samples) == 6, f"{len(samples)} samples: {said.all}")
    bench.run("kubernetes", "clean", "--namespace", SPACE, "--all")
    return f"6 samples are there; nothing was left {bench.gone():.0f} s after clean"


@named("a node is cut off: a sentence in time, results kept, nothing left")
def cut_off(bench):
    process = until_cells_ended(bench, long_plan(host("w0") + host("w1"), 'kind = "internode"'), 2)
    node = bench.cluster.nodes[1]
    node.plug(False)
    began = time.monotonic()
    try:
        with in_time(process):
            rest = process.stdout.read()
            seconds = time.monotonic() - began
            code = process.wait()
        expect(code not in (0, None), f"exit code {code}: {rest[-1500:]}")
        expect("node w1" in rest, f"w1 is not named: {rest[-1500:]}")
        expect(seconds <= SENTENCE_S, f"after {seconds:.1f} s")
        done = samples_done(bench)
        expect(done >= 2, f"{done} samples are kept")
    finally:
        node.plug(True)
    line = next(line for line in rest.splitlines() if "node w1" in line)
    place = max(line.find("node w1") - 200, 0)
    return (f"ended {seconds:.1f} s after the cut with exit code {code}, {done} samples kept: "
            f"{line[place:place + 300].strip()}; nothing was left {bench.gone(180):.0f} s after the cable was back")


@named("after all that the cluster measures, and all its programs run")
def afterwards(bench):
    wait_for("both nodes are ready", bench.cluster.are_nodes_ready)
    said = measured(bench, plan(host("w0") + host("w1"), 'kind = "internode"'))
    expect(not bench.cluster.ended(), f"ended: {bench.cluster.ended()}")
    return said


def check(cluster, program, word):
    """Does the checks whose names have the word; the exit code."""
    bench = Bench(cluster, program)
    counts = {"passed": 0, "failed": 0}
    for name, function in CHECKS:
        if word not in name:
            continue
        try:
            outcome, said = "passed", function(bench)
        except SURPRISES as error:
            outcome, said = "failed", f"{type(error).__name__}: {error}"
        finally:
            bench.end_begun()
        if outcome == "failed":
            bench.clean()
        counts[outcome] += 1
        print(f"{outcome}: {name}: {said}", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0
