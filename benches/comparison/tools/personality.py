"""linerate in the place of another tool: the same options and output, at both ends or at one."""

import re

from .iperf import Iperf3New
from .linerate import Linerate, LinerateBefore
from .netperf import Netperf
from .secnetperf import Secnetperf
from .tool import Tool


class Personality(Tool):
    """Stands first among a class's parents, before the original: what isn't here is as there."""

    original = None  # the class whose program the other end is
    ours = {}  # of "client" and "server": the personality that is this end, if it is linerate's

    def __init__(self, path, linerate):
        super().__init__(path)
        self.linerate = linerate

    @classmethod
    def parts(cls):
        return (cls.original, Linerate)

    def words(self, end):
        if end in self.ours:
            return [self.linerate, self.ours[end]]
        return super().words(end)

    def environment(self):
        return Linerate(self.linerate).environment()

    def refusal(self, work, network):
        commands = Linerate(self.linerate).help_of()
        for name in self.ours.values():
            if not re.search(rf"^ +{name} ", commands, re.M):
                return f"this linerate has no `{name}`"
        return super().refusal(work, network)


class OurIperf3(Personality, Iperf3New):
    """linerate at both ends."""

    name = "our iperf3"
    original = Iperf3New
    ours = {"client": "iperf3", "server": "iperf3"}


class OurIperf3Client(OurIperf3):
    """linerate against the original's server."""

    name = "our iperf3 client"
    ours = {"client": "iperf3"}


class OurIperf3Server(OurIperf3):
    """The original's client against linerate."""

    name = "our iperf3 server"
    ours = {"server": "iperf3"}


class OurNetperf(Personality, Netperf):
    """linerate at both ends."""

    name = "our netperf"
    original = Netperf
    ours = {"client": "netperf", "server": "netserver"}
    spins = False

    def launch(self, work):
        self.spins = work.spin
        super().launch(work)

    def words(self, end):
        spins = self.spins and end in self.ours
        return super().words(end) + (["--busy-poll"] if spins else [])


class OurNetperfClient(OurNetperf):
    """linerate against the original's netserver."""

    name = "our netperf client"
    ours = {"client": "netperf"}


class OurNetserver(OurNetperf):
    """The original's netperf against linerate."""

    name = "our netserver"
    ours = {"server": "netserver"}


class OurSecnetperf(Personality, Secnetperf):
    """linerate at both ends, whose threads are the same in every profile."""

    name = "our secnetperf"
    original = Secnetperf
    ours = {"client": "secnetperf", "server": "secnetperf"}
    profiles = ("lowlat",)

    def client_argv(self, work):
        limit = [f"--mtu-limit:{work.packet}"] if work.packet else []
        return super().client_argv(work) + limit


class _Own:
    """A personality at both ends that needs no original."""

    @classmethod
    def parts(cls):
        return (Linerate, Linerate)


class _Before:
    """The same of an earlier build."""

    name = LinerateBefore.name

    @classmethod
    def parts(cls):
        return (LinerateBefore, LinerateBefore)


class OwnIperf3(_Own, OurIperf3):
    """iperf3's."""


class BeforeIperf3(_Before, OurIperf3):
    """iperf3's."""


class OwnNetperf(_Own, OurNetperf):
    """netperf's."""


class BeforeNetperf(_Before, OurNetperf):
    """netperf's."""


class OwnSecnetperf(_Own, OurSecnetperf):
    """secnetperf's."""


class BeforeSecnetperf(_Before, OurSecnetperf):
    """secnetperf's."""
