"""A client, a router and a server as network namespaces, and tests of linerate between them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

# The test's length, and when in it a fault begins.
TIME_S, FAULT_AT_S = 2.0, 0.8
LONGEST_S = 120
# No limit for the paths here.
LARGE_BUFFER_BYTES = 64 << 20


def run(*argv):
    """Runs a command that must succeed."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def end(process):
    """Kills a program that may still run."""
    process.kill()
    process.wait()


def output_of(process, seconds):
    """What a program prints until it ends, which it does in time or is killed."""
    try:
        return process.communicate(timeout=seconds)[0]
    finally:
        end(process)


class Spaces:
    """Namespaces by role, and the server's address."""

    def __init__(self, names, address):
        self.names, self.address = names, address

    def start(self, role, argv, before=(), **more):
        """Starts a program in the role's namespace. Words before it run it in some other way."""
        return subprocess.Popen([*before, "ip", "netns", "exec", self.names[role], *argv], text=True, **more)

    def set_largest_buffer(self, role, which, size):
        """The largest buffer that the kernel gives a TCP socket by itself: `which` is rmem or wmem."""
        sizes = f"net.ipv4.tcp_{which}=4096 {min(size, 65536)} {size}"
        run("ip", "netns", "exec", self.names[role], "sysctl", "-qw", sizes)


class Delayed(Spaces):
    """A client and a server with an emulated path between them, described in TOML."""

    def __init__(self, linerate, home, toml, number):
        ends = {"client": "left", "server": "right"}
        names = {role: f"linerate-test-{os.getpid()}-{number}{end}" for role, end in ends.items()}
        super().__init__(names, "10.77.0.2")
        path = os.path.join(home, "path.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(toml)
        argv = [linerate, "link", path, "--left", names["client"], "--right", names["server"], "--sleep"]
        self.link = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        with contextlib.ExitStack() as made:
            made.push(self.__exit__)
            if not any("the link is up" in line for line in self.link.stderr):
                raise RuntimeError(f"the link to {self.names['server']} did not come up")
            for role in self.names:
                for which in ("rmem", "wmem"):
                    self.set_largest_buffer(role, which, LARGE_BUFFER_BYTES)
            made.pop_all()
        return self

    def __exit__(self, *_):
        self.link.terminate()
        output_of(self.link, LONGEST_S)


class Network(Spaces):
    """A client, a router and a server, each a namespace. Several have different numbers."""

    def __init__(self, number=0):
        self.number = number
        roles = ("client", "router", "server")
        super().__init__({role: f"linerate-test-{os.getpid()}-{number}{role}" for role in roles}, "10.97.1.2")
        self.router_address = "10.97.0.1"
        self.devices = {role: f"lrt{os.getpid() % 100000}{number}{role[0]}" for role in ("client", "server")}

    def __enter__(self):
        with contextlib.ExitStack() as made:
            made.push(self.__exit__)
            self.make()
            made.pop_all()
        return self

    def make(self):
        """Makes the namespaces and the links between them."""
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

    def __exit__(self, *_):
        for name in self.names.values():
            if os.path.exists(f"/run/netns/{name}"):
                subprocess.run(["ip", "netns", "del", name], check=False)

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

    def lose(self, one_in, longer_than=500):
        """The router drops one in so many of the packets that have more bytes."""
        self.forward(f"meta length > {longer_than} numgen random mod {one_in} == 0 drop")

    def police(self, mbps, burst_kib):
        """The router drops what is above a rate, and queues nothing."""
        kbytes_per_s = int(mbps * 1000 / 8)
        self.forward(f"meta length > 500 limit rate over {kbytes_per_s} kbytes/second burst {burst_kib} kbytes drop")

    def forward(self, rule):
        rules = f"""table inet trust {{
            chain passing {{
                type filter hook forward priority 0; policy accept;
                {rule}
            }}
        }}
        """
        argv = ["ip", "netns", "exec", self.names["router"], "nft", "-f", "-"]
        subprocess.run(argv, input=rules, text=True, check=True)

    def set_mtu(self, mtu):
        """The longest packet between the router and the server."""
        for role, device in (("router", self.devices["server"]), ("server", "eth0")):
            run("ip", "-n", self.names[role], "link", "set", device, "mtu", str(mtu))

    def clear(self):
        self.set_mtu(1500)
        for space in self.names.values():
            # The kernel remembers how short a path was.
            run("ip", "-n", space, "route", "flush", "cache")
        for role, device in (("router", self.devices["server"]), ("router", self.devices["client"]), ("client", "eth0")):
            argv = ["tc", "-n", self.names[role], "qdisc", "del", "dev", device, "root"]
            subprocess.run(argv, check=False, stderr=subprocess.DEVNULL)
        argv = ["ip", "netns", "exec", self.names["router"], "nft", "flush", "ruleset"]
        subprocess.run(argv, check=True)


class RatedAddresses:
    """A rate at the router towards the server for packets from, or to, each of two addresses, as long as this lasts. Each
    has a queue of its own. The second address is added to its host."""

    QUEUE_BYTES = 125_000

    def __init__(self, network, role, match, addresses, mbps):
        self.router, self.device = network.names["router"], network.devices["server"]
        self.host, self.match, self.addresses, self.mbps = network.names[role], match, addresses, mbps

    def __enter__(self):
        with contextlib.ExitStack() as made:
            run("ip", "-n", self.host, "addr", "add", f"{self.addresses[1]}/24", "dev", "eth0")
            made.callback(run, "ip", "-n", self.host, "addr", "del", f"{self.addresses[1]}/24", "dev", "eth0")
            self.tc("qdisc", "replace", "root", "handle", "1:", "htb")
            made.callback(self.tc, "qdisc", "del", "root")
            for number, address in enumerate(self.addresses, 1):
                self.shape("add", number, 1.0)
                self.tc("qdisc", "add", "parent", f"1:{number}", "bfifo", "limit", str(self.QUEUE_BYTES))
                self.tc("filter", "add", "parent", "1:", "protocol", "ip", "prio", "1", "u32", "match", "ip", self.match,
                        f"{address}/32", "flowid", f"1:{number}")
            self.made = made.pop_all()
        return self

    def __exit__(self, *_):
        self.made.close()

    def tc(self, kind, verb, *words):
        run("tc", "-n", self.router, kind, verb, "dev", self.device, *words)

    def shape(self, verb, number, factor):
        """Gives the address with this number its rate times a factor."""
        mbps = self.mbps[number - 1] * factor
        self.tc("class", verb, "parent", "1:", "classid", f"1:{number}", "htb", "rate", f"{mbps:.3f}mbit", "burst",
                "32kb", "quantum", "15140")


class Tests:
    """A server, and tests against it."""

    def __init__(self, network, linerate, home, port=5250, before_server=()):
        self.network, self.linerate, self.home, self.port = network, linerate, home, port
        os.makedirs(home, exist_ok=True)
        self.environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home}
        argv = [linerate, "serve", "--ndjson", "--port", str(port)]
        self.server = network.start("server", argv, before_server, stdout=subprocess.PIPE, env=self.environment)
        try:
            self.key = json.loads(self.server.stdout.readline())["fingerprint"]
        except BaseException:
            end(self.server)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.server)

    @contextlib.contextmanager
    def proxy(self, port):
        """A proxy at the router that ends the connections of both ends: the address and port to which clients connect."""
        argv = [self.linerate, "proxy", "--tcp", f"{self.network.address}:{self.port}", "--port", str(port)]
        process = self.network.start("router", argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     env=self.environment)
        try:
            if not process.stdout.readline().startswith("proxy on "):
                raise RuntimeError("the proxy did not begin")
            yield self.network.router_address, port
        finally:
            end(process)

    def start(self, words, before=(), through=None):
        address, port = through or (self.network.address, self.port)
        options = ["--json", "--quiet", "--port", str(port), "--server-key", self.key]
        argv = [self.linerate, *words.split(), address, *options]
        return self.network.start("client", argv, before, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=self.environment)

    def finish(self, client):
        return json.loads(output_of(client, LONGEST_S))

    def with_fault(self, words, fault):
        """The run document of a test with a fault, or without one."""
        second = None
        with contextlib.ExitStack() as started:
            if fault == "busy processors":
                burn = [sys.executable, "-c", "while True: pass"]
                for _ in range(2 * os.cpu_count()):
                    started.callback(end, subprocess.Popen(burn))
            client = self.start(f"{words} --time {TIME_S}s --interval 100ms")
            started.callback(end, client)
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
                started.callback(end, second)
            document = self.finish(client)
            if second:
                self.finish(second)
            return document
