"""Finding the peers' programs."""

import glob
import os
import re
import subprocess

from .iperf import Iperf2, Iperf3, Iperf3New
from .linerate import LinerateBefore
from .neper import Neper
from .netperf import Netperf
from .others import Ethr, Nuttcp
from .quic_peers import QuinnPerf, S2nPerf
from .secnetperf import Secnetperf
from .sockperf import Sockperf

# The program that is looked for, and the one that must stand beside it. neper's `tcp_crr` is the
# one whose name no other package has.
PROGRAMS = {
    Iperf3: ("iperf3", None),
    Iperf3New: ("iperf3", None),
    Iperf2: ("iperf", None),
    Netperf: ("netperf", "netserver"),
    Neper: ("tcp_crr", "tcp_stream"),
    Sockperf: ("sockperf", None),
    Nuttcp: ("nuttcp", None),
    Ethr: ("ethr", None),
    Secnetperf: ("secnetperf", None),
    QuinnPerf: ("quinn-perf", None),
    S2nPerf: ("s2n-quic-qns", None),
    LinerateBefore: ("linerate-before", None),
}


def find_peers(directories):
    """The path of every peer that is here: in the directories (and theirs: */, */bin, */src,
    */build/bin/Release, */src/target/release) first, then on PATH."""
    places = []
    for directory in directories:
        for pattern in ("", "bin", "src", "*", "*/bin", "*/src", "*/build/bin/Release",
                        "*/src/target/release"):
            places += sorted(glob.glob(os.path.join(glob.escape(directory), pattern)))
    places += os.get_exec_path()
    paths = {}
    for kind, (program, beside) in PROGRAMS.items():
        found = [path for path in (os.path.join(place, program) for place in places)
                 if _is_program(path) and _suits(kind, path)
                 and (beside is None or _is_program(os.path.join(os.path.dirname(path), beside)))]
        if found:
            paths[kind] = found[0]
    return paths


def version(kind, path):
    """What a peer says it is, or nothing."""
    # secnetperf passes over what it doesn't know, and would be a server.
    flag = {"netperf": "-V", "nuttcp": "-V", "ethr": None, "neper": None,
            "secnetperf": None, "quinn": None, "s2n-quic": None}.get(kind.name, "--version")
    text = _answer(path, flag) if flag else ""
    match = re.search(r"\d+\.\d+(\.\d+)*\S*", text)
    return match[0].rstrip(",") if match else ""


def _is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _suits(kind, path):
    """The two kinds of iperf3 are told apart by the flag that makes the difference, whatever their
    version; one that doesn't run is neither."""
    if kind in (Iperf3, Iperf3New):
        text = _answer(path, "--help")
        return bool(text) and ("--gsro" in text) == (kind is Iperf3New)
    return True


def _answer(path, flag):
    try:
        answer = subprocess.run([path, flag], capture_output=True, text=True, timeout=5,
                                stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr
