"""What this machine is and what else it does."""

import os
import platform


def busy_s():
    """CPU seconds that were not idle since boot, over all processors (/proc/stat, proc(5))."""
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(value) for value in stat.readline().split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def facts(congestion):
    """What a reader needs to judge the figures, as a dict of texts."""
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu": f"{_cpu_model()} x {os.cpu_count()}",
        "architecture": platform.machine(),
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "congestion control": congestion or host_congestion(),
        "rmem_max": _sysctl("net/core/rmem_max"),
        "wmem_max": _sysctl("net/core/wmem_max"),
        "loopback MTU": _read("/sys/class/net/lo/mtu"),
    }


def host_congestion():
    """The congestion control of connections that choose none."""
    return _sysctl("net/ipv4/tcp_congestion_control")


def has_congestion(name):
    """Whether the kernel lets this user choose a congestion control."""
    available = _sysctl("net/ipv4/tcp_available_congestion_control").split()
    allowed = _sysctl("net/ipv4/tcp_allowed_congestion_control").split()
    return name in (available if os.geteuid() == 0 else allowed)


def _cpu_model():
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "uarch")):
            return line.partition(":")[2].strip()
    return "unknown processor"


def _sysctl(name):
    return _read(f"/proc/sys/{name}")


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
