"""What the kernel says of sockets and memory, as numbers from its texts (proc(5))."""

import os

TABLES = ("sockstat", "sockstat6")


def sockets_in_use(text):
    """TCP sockets in use, those in TIME-WAIT left out, from one of the tables of /proc/net."""
    return _field(text, "TCP", "inuse")


def memory_bytes(text, name):
    """A row of /proc/meminfo or /proc/PID/status: there MemAvailable, what programs can have without swapping, and
    Slab, the kernel's objects, here VmRSS, the memory that is resident, and VmHWM, the most that was; 0: no row."""
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _field(text, kind, name):
    for line in text.splitlines():
        head, _, rest = line.partition(":")
        if head in (kind, f"{kind}6"):
            words = rest.split()
            return int(words[words.index(name) + 1]) if name in words else 0
    return 0


def read(path):
    """A file of /proc; empty where it has gone."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def count_sockets():
    """TCP sockets in use in this network namespace."""
    return sum(sockets_in_use(read(f"/proc/net/{table}")) for table in TABLES)


def memory_available():
    """Memory of this machine that programs can have without swapping."""
    return memory_bytes(read("/proc/meminfo"), "MemAvailable")


def kernel_objects():
    """Memory of the kernel's objects, sockets among them."""
    return memory_bytes(read("/proc/meminfo"), "Slab")


def resident(pid):
    """Memory of a process that is resident, and the most that was."""
    status = read(f"/proc/{pid}/status")
    return memory_bytes(status, "VmRSS"), memory_bytes(status, "VmHWM")


def threads(pid):
    """Threads of a process."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
