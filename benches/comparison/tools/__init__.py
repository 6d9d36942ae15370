"""The tools that are compared, a family a file. A new peer is a class here, its program in
search.py, its rows in ../rows, and a captured output in ../tests."""

from .bare import BareLoop, BareStream, BareTls
from .ctstraffic import CtsTrafficOneWay, OurCtsTraffic
from .iperf import Iperf2, Iperf3, Iperf3New
from .linerate import Linerate, LinerateBefore
from .neper import Neper
from .netperf import Netperf
from .others import Ethr, Nuttcp
from .personality import (BeforeIperf3, BeforeNetperf, BeforeSecnetperf, OurIperf3, OurIperf3Client,
                          OurIperf3Server, OurNetperf, OurNetperfClient, OurNetserver, OurSecnetperf,
                          OwnIperf3, OwnNetperf, OwnSecnetperf, Personality)
from .proxied import ProxiedQuic, ProxiedTcp
from .quic_peers import QuinnPerf, S2nPerf
from .secnetperf import Secnetperf
from .sockperf import Sockperf
from .tool import GRACE_S, Measured, Tool, Work

__all__ = [
    "BareLoop", "BareStream", "BareTls", "BeforeIperf3", "BeforeNetperf", "BeforeSecnetperf",
    "CtsTrafficOneWay", "Ethr", "GRACE_S", "Iperf2", "Iperf3", "Iperf3New", "Linerate", "LinerateBefore",
    "Measured", "Neper", "Netperf", "Nuttcp", "OurCtsTraffic", "OurIperf3", "OurIperf3Client",
    "OurIperf3Server", "OurNetperf", "OurNetperfClient", "OurNetserver", "OurSecnetperf", "OwnIperf3",
    "OwnNetperf", "OwnSecnetperf", "Personality", "ProxiedQuic", "ProxiedTcp", "QuinnPerf", "S2nPerf",
    "Secnetperf", "Sockperf", "Tool", "Work",
]
