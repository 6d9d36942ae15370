"""A search server on loopback, in a process of its own, from jars of the Java package registry."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request

# Where jars are kept.
WORK = os.path.expanduser("~/.cache/linerate-search")
HERE = os.path.dirname(os.path.abspath(__file__))
TRIES = 2
TRY_S = 120
READY_S = 300
CLOSE_S = 30

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>linerate</groupId><artifactId>search</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is served: its program, and the packages that this needs."""

    name: str
    version: str
    program: str
    packages: tuple

    def pom(self):
        return POM.format("\n".join(DEPENDENCY.format(*package) for package in self.packages))


OPENSEARCH = Kind(
    name="OpenSearch",
    version="2.19.1",
    program="OpenSearch.java",
    packages=(
        ("org.opensearch", "opensearch", "2.19.1"),
        ("org.opensearch.plugin", "transport-netty4-client", "2.19.1"),
        ("org.opensearch.plugin", "reindex-client", "2.19.1"),
        ("org.apache.logging.log4j", "log4j-core", "2.21.0"),
    ),
)


class Failed(Exception):
    """A sentence that says why there is no server."""


class Unreachable(Failed):
    """The registry did not give the jars."""


def get_jars(kind, work):
    """The folder of a kind's jars: from `work`, else from the registry."""
    pom = kind.pom()
    digest = hashlib.sha256(pom.encode()).hexdigest()[:12]
    jars = os.path.join(work, f"{kind.name.lower()}-{kind.version}-{digest}")
    if os.path.isdir(jars):
        return jars
    os.makedirs(work, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as place:
        with open(os.path.join(place, "pom.xml"), "w", encoding="utf-8") as file:
            file.write(pom)
        fetch(kind, place)
        try:
            os.rename(os.path.join(place, "jars"), jars)
        except OSError:
            # Somebody else was faster.
            if not os.path.isdir(jars):
                raise
    return jars


def fetch(kind, place):
    """Has Maven copy the jars to the folder `jars` of a place."""
    copy = ["mvn", "-q", "-B", "-Dmaven.artifact.threads=10", "-Dstyle.color=never"]
    copy += ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    # It runs for a moment: the better compiler doesn't pay.
    environment = {"MAVEN_OPTS": "-XX:TieredStopAtLevel=1", **os.environ}
    for _ in range(TRIES):
        try:
            done = subprocess.run(
                copy,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TRY_S,
                check=False,
            )
        except OSError as error:
            raise Failed(f"mvn can't be started: {error}: install Maven") from error
        except subprocess.TimeoutExpired:
            why = f"mvn had not ended after {TRY_S} s"
            continue
        if done.returncode == 0:
            return
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
        why = next((line for line in said if "ERROR" in line), f"mvn ended with {done.returncode}")
    raise Unreachable(f"the Java package registry did not give {kind.name} {kind.version} in {TRIES} tries: {why}")


class Server:
    """A server that answers, with nothing in it."""

    def __init__(self, kind, jars, place):
        home = os.path.join(place, "search")
        os.makedirs(os.path.join(home, "config"))
        os.makedirs(os.path.join(home, "logs"))
        java = ["java", "-Xms128m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        java += ["-cp", os.path.join(jars, "*"), os.path.join(HERE, kind.program), home]
        self.log = open(os.path.join(place, "search.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(java, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        ports = os.path.join(home, "logs", "http.ports")
        began = time.monotonic()
        try:
            while time.monotonic() - began < READY_S and self.process.poll() is None:
                self.address = read_address(ports)
                if self.address:
                    self.url = f"http://{self.address}"
                    version = json.loads(self.get("/"))["version"]["number"]
                    self.ready = f"{kind.name} {version} was ready after {time.monotonic() - began:.0f} s"
                    return
                time.sleep(0.2)
        except BaseException:
            self.close()
            raise
        self.close()
        self.log.seek(0)
        raise Failed(f"{kind.name} did not start: {self.log.read()}")

    def get(self, path, method="GET"):
        return urllib.request.urlopen(urllib.request.Request(self.url + path, method=method), timeout=60).read()

    def count(self, index):
        """Documents of an index that answers can see."""
        self.get(f"/{index}/_refresh", "POST")
        return json.loads(self.get(f"/{index}/_count"))["count"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def read_address(path):
    """The first address of a file of addresses; None while it is not whole."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    return text.splitlines()[0] if text.endswith("\n") else None
