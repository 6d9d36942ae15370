"""A cluster of two nodes. All its processes are in process namespaces, so they end with the command."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time

from clusterbench.parts import CNI

OUTSIDE = "10.77.0.1"
SERVICES = "10.79.0.0/16"
PODS = "10.78.0.0/16"
API_PORT = 6443
READY_S = 180
PAUSE_IMAGE = "localhost/pause:1"
HIERARCHIES = "/sys/fs/cgroup"
# The beginning of the names of a command's groups and folder; its process follows.
MARK = "linerate-cluster-"

# Where programs keep things whatever they are told: containerd, its shims, the CNI plugins, kubelet and sshd.
SHARED_FOLDERS = ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers")

# Bash reaps what is left over, and ends when its standard input does: with it ends all that the namespace has.
FIRST_PROCESS = ["bash", "-c", "while read -r _; do :; done"]


def run(*words, **more):
    """Runs a program that must succeed; what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(what, condition, seconds=READY_S):
    """Waits until the condition gives something; how long it took."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.1)
    raise SystemExit(f"{what}: not within {seconds} s")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def cover_shared_folders():
    """Hides this machine's folders behind empty ones, in this namespace of mounts and in those of the nodes."""
    for folder in SHARED_FOLDERS:
        os.makedirs(folder, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)


class Certificates:
    """An authority and what it signs."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        self.authority = os.path.join(folder, "ca.crt")
        self.key = os.path.join(folder, "ca.key")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=linerate-cluster", "-keyout", self.key, "-out", self.authority)

    def sign(self, name, subject, names=""):
        """A certificate and its key, for servers and clients."""
        certificate, key, asked = (os.path.join(self.folder, f"{name}.{kind}") for kind in ("crt", "key", "csr"))
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject,
            "-keyout", key, "-out", asked)
        uses = "extendedKeyUsage=serverAuth,clientAuth\n"
        more = write(os.path.join(self.folder, f"{name}.ext"), uses + (f"subjectAltName={names}\n" if names else ""))
        run("openssl", "x509", "-req", "-in", asked, "-CA", self.authority, "-CAkey", self.key, "-CAcreateserial",
            "-days", "2", "-extfile", more, "-out", certificate)
        return certificate, key

    def kubeconfig(self, name, user, namespace="default"):
        """A kubeconfig for a user with a certificate or a token."""
        path = os.path.join(self.folder, f"{name}.kubeconfig")
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {
                "server": f"https://{OUTSIDE}:{API_PORT}", "certificate-authority": self.authority}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": namespace}}],
        }
        return write(path, json.dumps(document))

    def component(self, name, subject):
        certificate, key = self.sign(name, subject)
        return self.kubeconfig(name, {"client-certificate": certificate, "client-key": key})


class Api:
    """The API server, for who holds this certificate."""

    def __init__(self, certificates, pair):
        self.tls = ssl.create_default_context(cafile=certificates.authority)
        self.tls.load_cert_chain(*pair)

    def ask(self, method, path, body=None, kind="application/json"):
        """The status and the document of an answer; status 0 where there is none."""
        connection = http.client.HTTPSConnection(OUTSIDE, API_PORT, timeout=30, context=self.tls)
        try:
            sent = body if isinstance(body, (str, type(None))) else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith("{") else {"text": text}
        except OSError as error:
            return 0, {"text": str(error)}
        finally:
            connection.close()

    def must(self, method, path, body=None, kind="application/json"):
        status, answer = self.ask(method, path, body, kind)
        if not 200 <= status < 300:
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return answer

    def items(self, path):
        return self.must("GET", path)["items"]


class Node:
    """A node: namespaces of network, mounts and processes, with a runtime, a kubelet and a proxy."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"w{number}"
        self.address = f"10.77.0.{number + 2}"
        self.pods = f"10.78.{number}.0/24"
        self.folder = os.path.join(cluster.folder, self.name)
        os.makedirs(self.folder)
        self.cgroup = f"{cluster.mark}-{self.name}"
        self.first = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", *FIRST_PROCESS],
            stdin=subprocess.PIPE)

        def has_begun():
            # The first child is the namespace's first process; it is bash once all is mounted.
            found = subprocess.run(["pgrep", "--exact", "bash", "--parent", str(self.first.pid)], capture_output=True,
                                   text=True)
            self.inside = found.stdout.strip()
            return self.inside
        wait_for(f"{self.name} has a first process", has_begun)
        self.link()
        self.make_cgroups()

    def command(self, *words):
        return ["nsenter", f"--target={self.inside}", "--net", "--mount", "--uts", "--pid", "--", *words]

    def link(self):
        """A cable to the bridge outside. Pods are reached through their node."""
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.inside)
        run("ip", "link", "set", self.name, "master", "outside", "up")
        run("ip", "route", "add", self.pods, "via", self.address)
        run(*self.command("hostname", self.name))
        for words in ("link set lo up", f"address add {self.address}/24 dev eth0", "link set eth0 up",
                      f"route add default via {OUTSIDE}"):
            run(*self.command("ip", *words.split()))
        for other in (0, 1):
            if other != self.number:
                run(*self.command("ip", "route", "add", f"10.78.{other}.0/24", "via", f"10.77.0.{other + 2}"))
        run(*self.command("bash", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"))

    def make_cgroups(self):
        """The first version's hierarchies each need the node's group, and cpuset its processors."""
        for hierarchy in os.listdir(HIERARCHIES):
            folder = os.path.join(HIERARCHIES, hierarchy, self.cgroup)
            if hierarchy != "unified":
                os.makedirs(folder, exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            with open(os.path.join(HIERARCHIES, "cpuset", name)) as file:
                write(os.path.join(HIERARCHIES, "cpuset", self.cgroup, name), file.read())

    def start(self):
        cluster, place = self.cluster, lambda name: os.path.join(self.folder, name)
        os.makedirs(place("cni"))
        write(place("cni/10-pods.conflist"), json.dumps({
            "cniVersion": "0.4.0", "name": "pods", "plugins": [
                # Each pod is a route of its node, so replies of Services come back through the node.
                {"type": "ptp", "mtu": 1500, "ipam": {
                    "type": "host-local", "dataDir": place("addresses"), "ranges": [[{"subnet": self.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}]}},
                {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
            ]}))
        self.socket = place("containerd.sock")
        config = write(place("containerd.toml"), f"""
version = 2
root = "{place('containerd')}"
state = "{place('state')}"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI}"
conf_dir = "{place('cni')}"
""")
        cluster.start(f"{self.name}-containerd", self.command("containerd", "--config", config))
        ctr = self.command("ctr", "--address", self.socket, "--namespace", "k8s.io")
        wait_for(f"containerd of {self.name}", lambda: not subprocess.run(
            [*ctr, "version"], capture_output=True).returncode)
        for image in cluster.images:
            run(*ctr, "images", "import", image)
        kubeconfig = cluster.certificates.component(self.name, f"/O=system:nodes/CN=system:node:{self.name}")
        config = write(place("kubelet.json"), json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "failCgroupV1": False, "failSwapOn": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup}",
            "podLogsDir": place("logs"), "containerRuntimeEndpoint": f"unix://{self.socket}",
            "authentication": {"x509": {"clientCAFile": cluster.certificates.authority},
                               "anonymous": {"enabled": False}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "resolvConf": write(place("resolv.conf"), ""),
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                             "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
            "imageGCHighThresholdPercent": 100, "oomScoreAdj": 0, "volumePluginDir": place("plugins"), "maxPods": 60,
        }))
        cluster.start(f"{self.name}-kubelet", self.command(
            f"{cluster.bin}/kubelet", f"--config={config}", f"--kubeconfig={kubeconfig}",
            f"--root-dir={place('kubelet')}", f"--cert-dir={place('certificates')}", f"--node-ip={self.address}",
            f"--hostname-override={self.name}"))
        cluster.start(f"{self.name}-proxy", self.command(
            f"{cluster.bin}/kube-proxy", f"--kubeconfig={cluster.proxy}", f"--hostname-override={self.name}",
            "--proxy-mode=iptables", "--oom-score-adj=0", f"--cluster-cidr={PODS}", "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s"))

    def plug(self, is_in):
        """Puts the cable in, or pulls it out."""
        run("ip", "link", "set", self.name, "up" if is_in else "down")
        if is_in:
            run("ip", "route", "replace", self.pods, "via", self.address)

    def end(self):
        self.first.stdin.close()
        self.first.wait(60)


class Cluster:
    """A cluster that is ready when made. The command itself is in the network outside of its nodes."""

    def __init__(self, bin_dir, folder, mark, images):
        self.bin, self.folder, self.mark, self.images = bin_dir, folder, mark, images
        self.processes, self.nodes = [], []
        self.logs = os.path.join(folder, "logs")
        os.makedirs(self.logs)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "outside", "type", "bridge")
        run("ip", "address", "add", f"{OUTSIDE}/24", "dev", "outside")
        run("ip", "link", "set", "outside", "up")
        self.certificates = Certificates(os.path.join(folder, "certificates"))
        self.proxy = self.certificates.component("proxy", "/CN=system:kube-proxy")
        admin = self.certificates.sign("admin", "/O=system:masters/CN=admin")
        self.api = Api(self.certificates, admin)
        self.admin = self.certificates.kubeconfig("admin", dict(zip(("client-certificate", "client-key"), admin)))
        self.start_control(admin)
        self.nodes = [Node(self, number) for number in (0, 1)]
        for node in self.nodes:
            node.start()
        self.nodes_ready_s = wait_for("both nodes are ready", self.are_nodes_ready)

    def start(self, name, words):
        """Starts a program of the cluster; what it writes is kept until the end."""
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        with open(os.path.join(self.logs, name), "w") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.processes.append((name, process))

    def start_control(self, admin):
        certificates = self.certificates
        data = os.path.join(self.folder, "etcd")
        os.makedirs(data)
        # Nothing need outlive the command, so nothing waits for a disk.
        run("mount", "-t", "tmpfs", "tmpfs", data)
        os.chmod(data, 0o700)
        self.start("etcd", ["etcd", f"--data-dir={data}", "--listen-client-urls=http://127.0.0.1:2379",
                            "--advertise-client-urls=http://127.0.0.1:2379",
                            "--listen-peer-urls=http://127.0.0.1:2380"])
        tls, tls_key = certificates.sign("server", "/CN=kube-apiserver", f"IP:{OUTSIDE},IP:10.79.0.1,DNS:kubernetes")
        accounts = os.path.join(certificates.folder, "accounts")
        run("openssl", "genrsa", "-out", f"{accounts}.key", "2048")
        run("openssl", "rsa", "-in", f"{accounts}.key", "-pubout", "-out", f"{accounts}.pub")
        self.start("apiserver", [
            f"{self.bin}/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--secure-port={API_PORT}",
            f"--advertise-address={OUTSIDE}", f"--service-cluster-ip-range={SERVICES}", f"--tls-cert-file={tls}",
            f"--tls-private-key-file={tls_key}", f"--client-ca-file={certificates.authority}",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={accounts}.pub", f"--service-account-signing-key-file={accounts}.key",
            "--service-account-issuer=https://linerate.invalid", f"--kubelet-client-certificate={admin[0]}",
            f"--kubelet-client-key={admin[1]}", "--kubelet-preferred-address-types=InternalIP",
            # Debian's etcd does not tell how far its watches are, so this would only fill the log.
            "--feature-gates=SizeBasedListCostEstimate=false", f"--cert-dir={certificates.folder}"])
        self.ready_s = wait_for("the API server", lambda: self.api.ask("GET", "/readyz")[0] == 200)
        manager = certificates.component("manager", "/CN=system:kube-controller-manager")
        self.start("manager", [
            f"{self.bin}/kube-controller-manager", f"--kubeconfig={manager}", "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={accounts}.key", f"--root-ca-file={certificates.authority}",
            f"--cert-dir={certificates.folder}"])
        scheduler = certificates.component("scheduler", "/CN=system:kube-scheduler")
        self.start("scheduler", [f"{self.bin}/kube-scheduler", f"--kubeconfig={scheduler}", "--leader-elect=false",
                                 f"--cert-dir={certificates.folder}"])

    def are_nodes_ready(self):
        ready = [condition for node in self.api.items("/api/v1/nodes") for condition in node["status"]["conditions"]
                 if condition["type"] == "Ready" and condition["status"] == "True"]
        return len(ready) == 2

    def versions(self):
        info = [node["status"]["nodeInfo"] for node in self.api.items("/api/v1/nodes")][0]
        etcd = run("etcd", "--version").split()[2]
        runc = run("runc", "--version").split()[2]
        return (f"Kubernetes {info['kubeletVersion']}, {info['containerRuntimeVersion']}, runc {runc}, etcd {etcd}, "
                f"Linux {info['kernelVersion']}")

    def account(self, name, namespace, account):
        """A kubeconfig with a token of an account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        token = self.api.must("POST", path, body)["status"]["token"]
        # As people have it: the authority and the token stand in the file.
        return self.certificates.kubeconfig(name, {"token": token}, namespace)

    def ended(self):
        """Programs of the cluster that have ended by themselves."""
        return [name for name, process in self.processes if process.poll() is not None]

    def end(self):
        for node in self.nodes:
            node.end()
        for _, process in reversed(self.processes):
            process.terminate()
        for _, process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def remove_cgroups(mark):
    """Removes the groups whose names begin so, the innermost first."""
    for hierarchy in os.listdir(HIERARCHIES):
        top = os.path.join(HIERARCHIES, hierarchy)
        for name in os.listdir(top) if os.path.isdir(top) else []:
            if name.startswith(mark):
                for folder, _, _ in os.walk(os.path.join(top, name), topdown=False):
                    for _ in range(100):
                        try:
                            os.rmdir(folder)
                            break
                        except OSError:
                            # The kernel has not taken leave of its last process yet.
                            time.sleep(0.05)


def remove_stale():
    """Removes what commands have left that were killed."""
    places = [tempfile.gettempdir(), *(os.path.join(HIERARCHIES, name) for name in os.listdir(HIERARCHIES))]
    names = {name for place in places if os.path.isdir(place) for name in os.listdir(place) if name.startswith(MARK)}
    for name in names:
        process = name.removeprefix(MARK).split("-")[0]
        if process.isdigit() and not os.path.exists(f"/proc/{process}"):
            remove_cgroups(f"{MARK}{process}-")
            remove_folder(os.path.join(tempfile.gettempdir(), name))


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
