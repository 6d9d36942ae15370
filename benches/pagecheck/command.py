"""The command line of benches/pages."""

import argparse
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from pagecheck.browser import Browser, Tab, end
from pagecheck.checks import PARTS, check_page

DESCRIPTION = """Looks at the pages of linerate in headless Chromium.

Makes pages of runs, of a comparison and of a matrix, and opens them from disk, light and dark, on a wide and on a
narrow screen and for paper; then likewise the pages that `linerate web` serves, its list while a run is added, and
the page of a run that is being measured. Each page must have its parts: panels, the stack, the document. No page may
ask for anything that is not its own, or have an error on the console. No label may overlap another one or be cut. Of
each page with panels the line must follow the pointer, and the button must change bits to bytes and back.

Pictures of all pages go to a directory, to be looked at. Without Chromium the command says so and checks nothing
(Debian: apt install chromium). Prints a line for each page, and exits with 1 where one has a fault."""

PLAN = """
title = "pages"
[topology]
port = {port}
[schedule]
samples = 2
[[cells]]
workload = "stream"
protocol = ["tcp", "udp"]
flows = [1, 2]
time = "500ms"
interval = "100ms"
zip = []
"""


def parse():
    parser = argparse.ArgumentParser(prog="pages", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linerate", default="target/release/linerate", help="the program [default: %(default)s]")
    parser.add_argument("--chromium", default="chromium", help="the browser [default: %(default)s]")
    parser.add_argument("--pictures", default="target/pages", metavar="DIRECTORY",
                        help="where the pictures go [default: %(default)s]")
    return parser.parse_args()


# Every host against every other. The hosts are network namespaces with a bridge between them.
MESH = """
title = "mesh"
{hosts}
[topology]
kind = "mesh"
mesh = [{names}]
[schedule]
samples = 1
[[cells]]
workload = "stream"
protocol = ["tcp", "udp"]
rate = "2M"
time = "500ms"
interval = "100ms"
"""
HOSTS = ("amsterdam", "berlin", "copenhagen", "dublin")

# Pages of runs and what each must have.
PAGES = {
    "stream": ("panels", "stack", "units", "document"),
    "both": ("panels", "stack", "units", "document"),
    "udp": ("panels", "units", "document"),
    "quic": ("panels", "units", "document"),
    "rr": ("panels", "document"),
    "comparison": ("document",),
    "matrix": ("document",),
    "mesh": ("document", "grid"),
}


class Workshop:
    """Makes pages in a directory."""

    def __init__(self, program, home):
        self.program = program
        self.home = pathlib.Path(home)
        self.port = free_port()
        self.environment = {**os.environ, "LINERATE_STORE": str(self.home / "kept.db"), "HOME": home}
        self._servers = []

    def run(self, *words):
        """Runs the program. On a busy machine a run may be called untrustworthy, and two may differ."""
        done = subprocess.run([self.program, *words], cwd=self.home, env=self.environment, capture_output=True,
                              text=True, check=False)
        if done.returncode not in (0, 6, 7):
            raise SystemExit(f"linerate {' '.join(words)}: exit code {done.returncode}: {done.stderr}")

    def begin(self, path, *words):
        """Starts a run whose records go to a file."""
        with open(self.home / path, "w", encoding="utf-8") as records:
            self._servers.append(subprocess.Popen([self.program, *words], cwd=self.home, env=self.environment,
                                                  stdout=records, stderr=subprocess.DEVNULL))

    def serve(self, *words):
        """Starts a server of the program; its first line."""
        server = subprocess.Popen([self.program, *words], cwd=self.home, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._servers.append(server)
        return server.stdout.readline()

    def close(self):
        """Ends the servers."""
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            end(server, 60)

    def make_pages(self):
        """Makes the pages of PAGES."""
        self.serve("serve", "--bind", "127.0.0.1", "--port", str(self.port))
        host = ("127.0.0.1", "--port", str(self.port), "--quiet", "--store=kept.db", "--json", "--output", "x.json")
        common = ("--interval", "100ms", *host)
        self.run("stream", *common, "--time", "2s", "--omit", "500ms", "--report", "stream.html")
        self.run("stream", *common, "--time", "2s", "--flows", "8", "--both", "--report", "both.html")
        self.run("stream", *common, "--time", "1s", "--udp", "--rate", "20M", "--report", "udp.html")
        self.run("stream", *common, "--time", "1s", "--quic", "--report", "quic.html")
        self.run("rr", *common, "--time", "1s", "--report", "rr.html")
        command = f"stream 127.0.0.1 --port {self.port} --time 200ms"
        self.run("compare", command, f"{command} --tls", "--pairs", "5", "--report", "comparison.html", "--json",
                 "--output", "y.json")
        (self.home / "plan.toml").write_text(PLAN.format(port=free_port()))
        self.run("matrix", "plan.toml", "--quiet", "--json")
        self.run("report", "last", "--output", "matrix.html")
        if os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"):
            self.make_mesh()

    def make_mesh(self):
        """The page of a matrix whose pairs differ in their hosts, which takes network namespaces."""
        spaces = [f"linerate-test-{os.getpid()}-{name}" for name in ("bridge", *HOSTS)]
        try:
            make_spaces(spaces)
            hosts = "\n".join(f'[hosts.{name}]\ntransport = "netns"\nnamespace = "{space}"\n'
                              f'data_address = "10.98.0.{place}"'
                              for place, (name, space) in enumerate(zip(HOSTS, spaces[1:]), 1))
            names = ", ".join(f'"{name}"' for name in HOSTS)
            (self.home / "mesh.toml").write_text(MESH.format(hosts=hosts, names=names))
            self.run("matrix", "mesh.toml", "--quiet", "--json")
            self.run("report", "last", "--output", "mesh.html")
        finally:
            for space in spaces:
                subprocess.run(["ip", "netns", "del", space], check=False, stderr=subprocess.DEVNULL)


def make_spaces(spaces):
    """Makes network namespaces; the first has a bridge to which the others are linked."""

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    bridge, *hosts = spaces
    ip("netns", "add", bridge)
    ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
    ip("-n", bridge, "link", "set", "bridge", "up")
    for place, host in enumerate(hosts, 1):
        ip("netns", "add", host)
        ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", f"port{place}", "netns", bridge)
        ip("-n", bridge, "link", "set", f"port{place}", "master", "bridge", "up")
        ip("-n", host, "addr", "add", f"10.98.0.{place}/24", "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "link", "set", "lo", "up")
    # One host is slow in one direction, so that its values have colours.
    subprocess.run(["tc", "-n", hosts[-1], "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "4mbit", "burst",
                    "8kb", "latency", "50ms"], check=True)


def free_port():
    """A port that nobody listens at now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def told(name, faults):
    """Prints what is wrong with a page; whether nothing is."""
    print(f"{name}: {'as it should be' if not faults else '; '.join(faults)}", flush=True)
    return not faults


def check_served(shop, tab, pictures):
    """The pages of a store, and its list while a run is added."""
    line = shop.serve("web", "--port", "0")
    site = line.split()[0].rstrip("/")
    keeps = told("web list", check_page(tab, "web-list", f"{site}/", pictures, (site,)))
    links = tab.evaluate("[...document.querySelectorAll('main a')].map((link) => link.getAttribute('href'))")
    has_mesh = (shop.home / "mesh.html").exists()
    matrix, compare = [link for link in links if link.startswith("/run/")][int(has_mesh)], [link for link in links if link.startswith("/compare")]
    keeps &= told("web matrix", check_page(tab, "web-matrix", site + matrix, pictures, (site,), PAGES["matrix"]))
    faults = ["the list has no link to one"]
    if compare:
        faults = check_page(tab, "web-comparison", site + compare[0], pictures, (site,), PAGES["comparison"])
    keeps &= told("web comparison", faults)
    if has_mesh:
        mesh = check_page(tab, "web-mesh", site + links[0], pictures, (site,), PAGES["mesh"])
        tab.open(site + links[0])
        pair = tab.evaluate("document.querySelector('.hosts a').getAttribute('href')")
        keeps &= told("web mesh", mesh)
        keeps &= told("web pair", check_page(tab, "web-pair", site + pair, pictures, (site,), PAGES["udp"][:1]))
    tab.open(f"{site}/")
    count = tab.evaluate("document.querySelectorAll('tbody tr').length")
    shop.run("stream", "127.0.0.1", "--port", str(shop.port), "--time", "100ms", "--store=kept.db")
    follows = tab.await_true(f"document.querySelectorAll('tbody tr').length > {count}")
    faults = tab.faults((site,)) + ([] if follows else ["the list doesn't show a run that was added"])
    return told("web live", faults) and keeps


def check_followed(shop, tab, pictures):
    """The page of a run that is being measured, until it has ended."""
    site = shop.serve("web", "--port", "0", "--follow", "live.ndjson").split()[0].rstrip("/")
    tab.resize(1280)
    tab.look()
    tab.open(f"{site}/live")
    faults = []
    if not tab.await_true("document.body.innerText.includes('No run has begun')"):
        faults.append("a run is shown before one began")
    shop.begin("live.ndjson", "stream", "127.0.0.1", "--port", str(shop.port), "--time", "5s", "--interval", "100ms",
               "--ndjson")
    if not tab.await_true(f"{PARTS['panels']} && document.getElementById('document') === null"):
        faults.append("no panels are shown while it measures")
    if not tab.await_true(PARTS["document"]):
        faults.append("its document isn't shown after its end")
    faults += tab.faults((site,))
    faults += check_page(tab, "web-followed", f"{site}/live", pictures, (site,), PAGES["stream"])
    return told("web followed", faults)


def main():
    args = parse()
    chromium = shutil.which(args.chromium)
    if chromium is None:
        print(f"SKIPPED: there is no {args.chromium}")
        return 0
    pictures = pathlib.Path(args.pictures)
    pictures.mkdir(parents=True, exist_ok=True)
    keeps = True
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as profile:
        shop = Workshop(os.path.abspath(args.linerate), home)
        with contextlib.ExitStack() as begun:
            begun.callback(shop.close)
            browser = Browser(chromium, profile)
            begun.callback(browser.close)
            tab = Tab(browser)
            shop.make_pages()
            for name, parts in PAGES.items():
                if not (shop.home / f"{name}.html").exists():
                    print(f"{name}: SKIPPED: it takes root, ip and tc, for network namespaces")
                    continue
                address = (shop.home / f"{name}.html").as_uri()
                keeps &= told(name, check_page(tab, name, address, pictures, (address, "data:", "blob:"), parts))
            keeps &= check_served(shop, tab, pictures)
            keeps &= check_followed(shop, tab, pictures)
    print(f"pictures: {pictures}")
    return 0 if keeps else 1
