"""A test whose limit is known: its words, what is done to the path and the ends, and how it is run."""

import contextlib
import os
import random
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Callable

from trustbench import hindered
from trustbench.network import Delayed, Tests

# Of a second server in the same namespace, and of a proxy in the router's.
OTHER_PORT, PROXY_PORT = 5251, 5252
# When a program is first stopped, or the path changes.
STOPPED_FROM_S, CHANGED_AT_S = 0.5, 1.5
SHORT_INTERVALS = "--interval 100ms"


@dataclass(frozen=True)
class Fixture:
    """The words of a test, what is done to the path and the ends, and the places and causes that are right."""

    name: str
    words: Callable
    places: str
    causes: str
    # Prepares the network of a client, a router and a server.
    prepare: Callable = lambda _network: None
    # The description of an emulated path, which stands in for that network.
    path: Callable | None = None
    # Buffers of an end on that path: (role, rmem or wmem, bytes).
    buffer: Callable | None = None
    # An end that has a share of a processor, or is stopped for a share of the time: (role, share).
    quota: Callable | None = None
    stopped: Callable | None = None
    # Words before both programs.
    before: tuple = field(default_factory=tuple)
    # Whether it is judged on a machine that does other things too.
    when_busy: bool = False
    # Changes the network in the middle of the test.
    change: Callable | None = None
    # Whether a proxy at the router ends the connections of both ends.
    is_proxied: bool = False
    # The length of a sample; by default the program's own.
    intervals: str = ""
    # Draws words and path together: gives the fields that differ.
    drawn: Callable | None = None

    def draw(self):
        """The fixture with what is drawn for one run."""
        return replace(self, **self.drawn()) if self.drawn else self

    def judges(self, limit):
        """Whether the cause is right, and the place."""
        return limit.get("cause") in self.causes.split(), limit.get("place") in self.places.split()


def draw(low, high):
    """A number between two, each as likely."""
    return random.uniform(low, high)


def draw_times(low, high):
    """A number between two, each factor as likely."""
    return low * (high / low) ** random.random()


def plain(words):
    """Words without anything drawn."""
    return lambda: words


def run_fixture(tests, fixture):
    """The document of a test of a fixture, in the network of `tests` or on a path of its own."""
    fixture = fixture.draw()
    with contextlib.ExitStack() as stack:
        role, share = fixture.quota() if fixture.quota else (None, 1)
        name = f"linerate-test-{os.getpid()}-{tests.network.number}"
        before = {"client": list(fixture.before), "server": list(fixture.before)}
        if role:
            before[role] = stack.enter_context(hindered.quota(name, share))
        network = tests.network
        if fixture.path:
            network = Delayed(tests.linerate, tests.home, fixture.path(), tests.network.number)
            stack.enter_context(network)
            if fixture.buffer:
                network.set_largest_buffer(*fixture.buffer())
        if fixture.path or before["server"]:
            tests = stack.enter_context(Tests(network, tests.linerate, tests.home, OTHER_PORT, before["server"]))
        if not fixture.path:
            fixture.prepare(network)
            stack.callback(network.clear)
        through = stack.enter_context(tests.proxy(PROXY_PORT)) if fixture.is_proxied else None
        client = tests.start(f"{fixture.words()} --time 3s {fixture.intervals}", before["client"], through)
        if fixture.change:
            timer = threading.Timer(CHANGED_AT_S, fixture.change, [network])
            timer.start()
            stack.callback(timer.join)
        if not fixture.stopped:
            return tests.finish(client)
        role, share = fixture.stopped()
        time.sleep(STOPPED_FROM_S)
        with hindered.stopped(client if role == "client" else tests.server, share):
            return tests.finish(client)
