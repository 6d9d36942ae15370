"""A search server on loopback, in a process of its own, from jars of the Java package registry."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile

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
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is served, and the packages that this needs."""

    name: str
    version: str
    packages: tuple
    # Names of Java packages in the program that are others here.
    renames: tuple = ()

    def program(self):
        with open(os.path.join(HERE, "Search.java"), encoding="utf-8") as file:
            text = file.read()
        for name, other in self.renames:
            text = text.replace(name, other)
        return text

    def pom(self):
        lines = []
        for group, name, version, *kind in self.packages:
            lines.append(DEPENDENCY.format(group, name, version, "".join(f"<type>{one}</type>" for one in kind)))
        return POM.format("\n".join(lines))


OPENSEARCH = Kind(
    name="OpenSearch",
    version="2.19.1",
    packages=(
        ("org.opensearch", "opensearch", "2.19.1"),
        ("org.opensearch.plugin", "transport-netty4-client", "2.19.1"),
        ("org.opensearch.plugin", "reindex-client", "2.19.1"),
        ("org.apache.logging.log4j", "log4j-core", "2.21.0"),
    ),
)

ELASTICSEARCH = Kind(
    name="Elasticsearch",
    version="7.17.9",
    packages=(
        ("org.elasticsearch", "elasticsearch", "7.17.9"),
        ("org.elasticsearch.plugin", "transport-netty4-client", "7.17.9"),
        ("org.elasticsearch.plugin", "reindex-client", "7.17.9"),
        ("org.apache.logging.log4j", "log4j-core", "2.17.1"),
    ),
    renames=(("org.opensearch.index.reindex", "org.elasticsearch.reindex"), ("org.opensearch", "org.elasticsearch")),
)

KINDS = {kind.name.lower(): kind for kind in (OPENSEARCH, ELASTICSEARCH)}


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
        unpack(os.path.join(place, "jars"))
        try:
            os.rename(os.path.join(place, "jars"), jars)
        except OSError:
            # Somebody else was faster.
            if not os.path.isdir(jars):
                raise
    return jars


def unpack(jars):
    """Takes the jars out of plugins, which come as archives. The server's own come first."""
    for name in sorted(os.listdir(jars)):
        if name.endswith(".zip"):
            with zipfile.ZipFile(os.path.join(jars, name)) as archive:
                for jar in archive.namelist():
                    if "/" not in jar and jar.endswith(".jar") and not os.path.exists(os.path.join(jars, jar)):
                        archive.extract(jar, jars)


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

    def __init__(self, kind, jars, place, access=None):
        home, config = os.path.join(place, "search"), os.path.join(place, "search", "config")
        os.makedirs(config)
        self.access = access
        words = access.configure(config) if access else []
        os.makedirs(os.path.join(home, "logs"))
        java = ["java", "-Xms128m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        program = os.path.join(place, "Search.java")
        with open(program, "w", encoding="utf-8") as file:
            file.write(kind.program())
        java += ["-cp", os.path.join(jars, "*"), program, home, *words]
        self.log = open(os.path.join(place, "search.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(java, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        ports = os.path.join(home, "logs", "http.ports")
        began = time.monotonic()
        try:
            while time.monotonic() - began < READY_S and self.process.poll() is None:
                self.address = read_address(ports)
                if self.address:
                    self.url = f"{'https' if access else 'http'}://{self.address}"
                    version = self.version()
                    if version:
                        self.ready = f"{kind.name} {version} was ready after {time.monotonic() - began:.0f} s"
                        return
                time.sleep(0.2)
        except BaseException:
            self.close()
            raise
        self.close()
        self.log.seek(0)
        raise Failed(f"{kind.name} did not start: {self.log.read()}")

    def version(self):
        """Its version; None while its users are not known yet."""
        try:
            return json.loads(self.get("/"))["version"]["number"]
        except urllib.error.HTTPError as error:
            if self.access and error.code in (401, 503):
                return None
            raise

    def get(self, path, method="GET"):
        headers, context = (self.access.headers, self.access.context) if self.access else ({}, None)
        asked = urllib.request.Request(self.url + path, method=method, headers=headers)
        return urllib.request.urlopen(asked, timeout=60, context=context).read()

    def count(self, index):
        """Documents of an index that answers can see."""
        self.get(f"/{index}/_refresh", "POST")
        return json.loads(self.get(f"/{index}/_count"))["count"]

    def count_of(self, kind, run):
        """Documents of a kind of a run, in the newest version of the Common Data Model."""
        index = f"cdm-v10dev-{kind}@*"
        self.get(f"/{index}/_refresh", "POST")
        return json.loads(self.get(f"/{index}/_count?q=run.run-uuid:%22{run}%22"))["count"]

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
