"""A client, a router and a server as network namespaces, and tests of linerate between them."""

import json
import os
import signal
import subprocess
import sys
import time

# The test's length, and when in it a fault begins.
TIME_S, FAULT_AT_S = 2.0, 0.8
LONGEST_S = 120


def run(*argv):
    """Runs a command that must succeed."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


class Network:
    """A client, a router and a server, each a namespace. Several have different numbers."""

    def __init__(self, number=0):
        roles = ("client", "router", "server")
        self.names = {role: f"linerate-test-{os.getpid()}-{number}{role}" for role in roles}
        self.devices = {role: f"lrt{os.getpid() % 100000}{number}{role[0]}" for role in ("client", "server")}

    def __enter__(self):
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for number, (role, device) in enumerate(self.devices.items()):
            run("ip", "link", "add", "eth0", "netns", self.names[role], "type", "veth", "peer", "name", device,
                "netns", self.names["router"])
            for space, dev, end in ((self.names[role], "eth0", 2), (self.names["router"], device, 1)):
                run("ip", "-n", space, "addr", "add", f"10.97.{number}.{end}/24", "dev", dev)
                run("ip", "-n", space, "link", "set", dev, "up")
            run("ip", "-n", self.names[role], "route", "add", "default", "via", f"10.97.{number}.1")
        run("ip", "netns", "exec", self.names["router"], "sysctl", "-qw", "net.ipv4.ip_forward=1")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)

    def start(self, role, argv, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.names[role], *argv], text=True, **more)

    def cut(self, seconds):
        """The link to the server goes down for a while; routes of the router come back with its address."""
        for state in ("down", "up"):
            run("ip", "-n", self.names["router"], "link", "set", self.devices["server"], state)
            if state == "down":
                time.sleep(seconds)

    def shape(self, role, device, mbps, queue_ms):
        queue_bytes = int(mbps * 1e6 / 8 * queue_ms / 1000)
        run("tc", "-n", self.names[role], "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbps}mbit",
            "burst", "32kb", "limit", str(queue_bytes))

    def lose(self, one_in):
        rules = f"""table inet trust {{
            chain passing {{
                type filter hook forward priority 0; policy accept;
                meta length > 500 numgen random mod {one_in} == 0 drop
            }}
        }}
        """
        argv = ["ip", "netns", "exec", self.names["router"], "nft", "-f", "-"]
        subprocess.run(argv, input=rules, text=True, check=True)

    def clear(self):
        for role, device in (("router", self.devices["server"]), ("client", "eth0")):
            argv = ["tc", "-n", self.names[role], "qdisc", "del", "dev", device, "root"]
            subprocess.run(argv, check=False, stderr=subprocess.DEVNULL)
        argv = ["ip", "netns", "exec", self.names["router"], "nft", "flush", "ruleset"]
        subprocess.run(argv, check=True)


class Tests:
    """A server, and tests against it."""

    def __init__(self, network, linerate, home):
        self.network, self.linerate = network, linerate
        os.makedirs(home, exist_ok=True)
        self.environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home}
        argv = [linerate, "serve", "--ndjson"]
        self.server = network.start("server", argv, stdout=subprocess.PIPE, env=self.environment)
        self.key = json.loads(self.server.stdout.readline())["fingerprint"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()

    def start(self, words):
        argv = [self.linerate, *words.split(), "10.97.1.2", "--json", "--quiet", "--server-key", self.key]
        return self.network.start("client", argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=self.environment)

    def finish(self, client):
        out, _ = client.communicate(timeout=LONGEST_S)
        return json.loads(out)

    def with_fault(self, words, fault):
        """The run document of a test with a fault, or without one."""
        hogs, second = [], None
        if fault == "busy processors":
            burn = [sys.executable, "-c", "while True: pass"]
            hogs = [subprocess.Popen(burn) for _ in range(2 * os.cpu_count())]
        client = self.start(f"{words} --time {TIME_S}s --interval 100ms")
        time.sleep(FAULT_AT_S)
        stopped = {"client stopped": client, "server stopped": self.server}.get(fault)
        if stopped:
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            stopped.send_signal(signal.SIGCONT)
        elif fault == "link down":
            self.network.cut(0.6)
        elif fault == "second test":
            second = self.start("stream --rate 20M --time 600ms")
        document = self.finish(client)
        if second:
            self.finish(second)
        for hog in hogs:
            hog.kill()
            hog.wait()
        return document
