"""The command line of benches/cluster."""

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from clusterbench import checks, cluster, parts

DESCRIPTION = f"""Runs linerate on a real Kubernetes cluster of two nodes in network namespaces of this machine.

The programs of Kubernetes {parts.VERSION} are built from the Go module proxy once and kept in --work; on two processors
that takes about 40 minutes. The rest are packages of the distribution: containerd, runc, etcd-server, iptables,
conntrack and containernetworking-plugins. Needs root, Go 1.24 or newer, cgroups of the first version, and a static
linerate (docs/kubernetes.md says how it is built). Everything that the command starts ends with it.
What a killed one leaves in /tmp and among the cgroups is removed by the next.

Prints a line for each check, and exits with 1 where one fails."""

# Of prctl: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def parse():
    parser = argparse.ArgumentParser(prog="cluster", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linerate", default="target/x86_64-unknown-linux-gnu/release/linerate",
                        help="the static program [default: %(default)s]")
    parser.add_argument("--work", default=os.path.expanduser("~/.cache/linerate-cluster"),
                        help="what is built is kept here [default: %(default)s]")
    parser.add_argument("--checks", default="", metavar="WORD", help="only checks whose names have this word")
    parser.add_argument("--list", action="store_true", help="print the names of the checks, and do nothing")
    parser.add_argument("--build", action="store_true", help="build what is missing, and start no cluster")
    parser.add_argument("--keep-logs", metavar="DIRECTORY", help="copy the logs of the cluster's programs there")
    parser.add_argument("--inside", metavar="DIRECTORY", help=argparse.SUPPRESS)
    parser.add_argument("--mark", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse()
    if args.list:
        print("\n".join(checks.NAMES))
        return 0
    if args.inside:
        return measure(args)
    if os.geteuid():
        raise SystemExit("cluster needs root: it makes network namespaces")
    if lacking := parts.lacking():
        raise SystemExit(f"these packages are not installed: {' '.join(lacking)}")
    if not os.path.isdir(f"{cluster.HIERARCHIES}/cpuset"):
        raise SystemExit(f"{cluster.HIERARCHIES} has no hierarchies of cgroups of the first version")
    parts.build(args.work)
    if args.build:
        return 0
    if not os.path.exists(args.linerate):
        raise SystemExit(f"{args.linerate} is not there: build a static linerate, and name it with --linerate")
    return enter(args)


def enter(args):
    """Goes on as the first process of namespaces of its own; with it ends all that it starts."""
    cluster.remove_stale()
    mark = f"{cluster.MARK}{os.getpid()}"
    folder = tempfile.mkdtemp(prefix=f"{mark}-")
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
             os.path.abspath(sys.argv[0]), *sys.argv[1:], "--inside", folder, "--mark", mark]
    # Killed with this process, and all that is in its namespaces with it.
    process = subprocess.Popen(words, preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        cluster.remove_cgroups(f"{mark}-")
        if args.keep_logs and os.path.isdir(f"{folder}/logs"):
            shutil.copytree(f"{folder}/logs", args.keep_logs, dirs_exist_ok=True)
        cluster.remove_folder(folder)


def measure(args):
    bin_dir = os.path.join(args.work, "bin")
    program = os.path.abspath(args.linerate)
    images = []
    for name, binary, image in (("pause", f"{bin_dir}/pause", cluster.PAUSE_IMAGE),
                                ("linerate", program, checks.IMAGE)):
        path = os.path.join(args.inside, f"{name}.tar")
        cluster.run(program, "image", "--output", path, "--binary", binary, "--name", image)
        images.append(path)
    cluster.cover_shared_folders()
    made = cluster.Cluster(bin_dir, args.inside, args.mark, images)
    try:
        print(f"{made.versions()}; the API server was ready after {made.ready_s:.0f} s, the nodes "
              f"{made.nodes_ready_s:.0f} s after their kubelets began", flush=True)
        return checks.check(made, program, args.checks)
    finally:
        made.end()
