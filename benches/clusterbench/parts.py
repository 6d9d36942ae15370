"""The parts of a cluster: programs of Kubernetes, built once and kept, and those of the distribution."""

import json
import os
import shutil
import subprocess

VERSION = "1.34.4"
MODULE = "k8s.io/kubernetes"
PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kubelet", "kube-proxy", "kube-scheduler"]

# Programs of the distribution, and the packages of Debian that have them.
NEEDED = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "etcd": "etcd-server",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "pgrep": "procps",
}
CNI = "/usr/lib/cni"

# What runs in the sandbox of each pod: it waits until it is told to end.
PAUSE = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
"""


def lacking():
    """Packages of the distribution that are not installed."""
    packages = {package for program, package in NEEDED.items() if not shutil.which(program)}
    if not os.path.exists(f"{CNI}/ptp"):
        packages.add("containernetworking-plugins")
    return sorted(packages)


def go_module():
    """A module whose build replaces what Kubernetes has in its own tree by what is published."""
    done = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@v{VERSION}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the source of Kubernetes {VERSION} can't be had: {done.stdout}{done.stderr}")
    with open(os.path.join(json.loads(done.stdout)["Dir"], "go.mod")) as file:
        lines = [line.split() for line in file]
    replaced = [words for words in lines if len(words) > 2 and words[1] == "=>"]
    published = [words[0] for words in replaced if words[2].startswith("./staging/")]
    staging = VERSION.split(".", 1)[1]
    replacements = "".join(f"\t{name} => {name} v0.{staging}\n" for name in published)
    return (f"module linerate.invalid/cluster\n\ngo 1.24.0\n\ngodebug default=go1.24\n\n"
            f"require {MODULE} v{VERSION}\n\nreplace (\n{replacements})\n")


def build(work):
    """Builds what is not there yet; the directory of the programs."""
    bin_dir = os.path.join(work, "bin")
    missing = [name for name in PROGRAMS if not os.path.exists(os.path.join(bin_dir, name))]
    pause = os.path.join(bin_dir, "pause")
    if not missing and os.path.exists(pause):
        return bin_dir
    if not shutil.which("go"):
        raise SystemExit("go is not installed: Go 1.24 or newer builds the programs of Kubernetes")
    source = os.path.join(work, "source")
    os.makedirs(source, exist_ok=True)
    os.makedirs(bin_dir, exist_ok=True)
    # The checksums of the modules are kept in go.sum, beside go.mod.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}
    major, minor, _ = VERSION.split(".")
    of_version = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    stamps = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in of_version.items())
    if missing:
        with open(os.path.join(source, "go.mod"), "w") as file:
            file.write(go_module())
    for name in missing:
        print(f"building {name} {VERSION}; all five take about 40 minutes on two processors", flush=True)
        compile_to(os.path.join(bin_dir, name), [f"{MODULE}/cmd/{name}"], f"-s -w {stamps}", source, environment)
    with open(os.path.join(work, "pause.go"), "w") as file:
        file.write(PAUSE)
    compile_to(pause, ["pause.go"], "-s -w", work, environment)
    return bin_dir


def compile_to(path, what, flags, folder, environment):
    """A program appears when it is whole."""
    part = f"{path}.part"
    command = ["nice", "-n", "19", "go", "build", "-p", "2", "-trimpath", "-ldflags", flags, "-o", part, *what]
    if subprocess.run(command, cwd=folder, env=environment).returncode:
        raise SystemExit(f"{path} can't be built")
    os.rename(part, path)
