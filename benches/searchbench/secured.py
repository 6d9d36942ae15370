"""TLS and credentials of linerate at an OpenSearch with its security plugin."""

import os

from searchserver.secured import PASSWORD, STRANGER, WRITER, token_of

from .answers import Comparison, values_of
from .measured import PLAN, write_plan

# What the commands of linerate end with.
FAILED, UNREACHABLE, REFUSED = 1, 3, 4


def write(place, name, text):
    path = os.path.join(place, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def compare(program, place, search):
    """Whether the server is taken with the right certificate and credential alone, and what is said otherwise."""
    comparison = Comparison()
    plan = write_plan(place, PLAN.replace("samples = 2", "samples = 1"))
    basic = write(place, "basic", f"Basic {WRITER}:{PASSWORD}\n")
    bearer = write(place, "bearer", f"Bearer {token_of(WRITER)}\n")
    wrong = write(place, "wrong", f"Basic {WRITER}:another\n")
    stranger = write(place, "stranger", f"Basic {STRANGER}:{PASSWORD}\n")
    ca, other = search.access.ca, search.access.other_ca
    store = ["--store", program.store]

    def expect(what, exit_code, said, *words):
        done = program.run(*words)
        text = done.stdout + done.stderr
        print(f"{what}: exit code {done.returncode}: {text.strip().splitlines()[-1:]}")
        comparison.require(done.returncode == exit_code and said in text, f"{what}: {done.returncode}, {text}")
        return done.stdout

    live = ["matrix", plan, *store, "--index", search.url, "--ca", ca, "--auth-file", basic, "--quiet"]
    program.ask(*live, codes=(0, 6))
    expect("live", 0, "nothing waits", "results", "outbox", *store)
    export = ["results", "export", "last", *store, "--opensearch", search.url]
    expect("basic", 0, " 0 documents created", *export, "--ca", ca, "--auth-file", basic)
    expect("bearer", 0, " 0 documents created", *export, "--ca", ca, "--auth-file", bearer)
    expect("another form", 0, "documents created", *export, "--ca", ca, "--auth-file", basic, "--hz", "1")
    expect("no credential", FAILED, "give a credential", *export, "--ca", ca)
    expect("wrong password", FAILED, "give a credential", *export, "--ca", ca, "--auth-file", wrong)
    expect("no permission", FAILED, "has not the permission", *export, "--ca", ca, "--auth-file", stranger)
    chain = "its chain doesn't end with"
    expect("another authority", REFUSED, f"{chain} a certificate of --ca {other}", *export, "--ca", other)
    expect("the system's authorities", REFUSED, "--ca FILE", *export)
    clear = search.url.replace("https:", "http:")
    expect("without TLS", UNREACHABLE, "can't be reached", *export[:-1], clear)
    named = search.url.replace("127.0.0.1", "localhost")
    expect("another name", REFUSED, 'for another name than "localhost"', *export[:-1], named, "--ca", ca)
    period = program.ask("results", "show", "last", *store, "--json")
    period = period[period.index('"period": "') + len('"period": "'):].split('"')[0]
    get = ["crucible", "get", "metric", "--period", period, "--source", "linerate", "--type", "rx-Gbps"]
    get += ["--output-format", "json", "--opensearch", search.url, "--ca", ca, "--auth-file"]
    comparison.add("get", values_of(program.ask(*get, basic)), values_of(program.ask(*get, bearer)))
    return comparison.tell("TLS and credentials")
