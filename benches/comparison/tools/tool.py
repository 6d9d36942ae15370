"""What all tools share: a piece of work in words of ours, a result, a server and its clients."""

from dataclasses import dataclass, field

from ..process import Child, RunFailed

GRACE_S = 20.0


@dataclass(frozen=True)
class Work:
    """One piece of work, in words that every tool translates into its own."""

    # "stream", "rr", "crr" or "media" over "tcp", "tls", "udp", "quic" or "framed" (secnetperf's sealed
    # frames in TCP): "tcp_stream"
    kind: str
    size: int | None  # bytes of a call, a datagram or a message; None: what the tool does unasked
    seconds: float = 2.0
    flows: int = 1
    active: str | None = None  # rr: what --active is; None: as rr has it by itself
    response: int | None = None  # rr: bytes of a response, where not `size`
    down: bool = False  # a stream from the server
    both: bool = False  # ctsTraffic: a stream each way on one connection
    threads: int | None = None  # linerate's, at each end; None: as many as it takes unasked
    streams: int = 1  # QUIC: flows that share a connection
    rsa: bool = False  # linerate's server shows an RSA key of 2,048 bits, as secnetperf's always does
    packet: int | None = None  # QUIC: linerate's longest UDP payload; None: what it finds unasked
    clear: bool = False  # QUIC: packets with data aren't encrypted
    # rr: what counts is this percentile of the latency, not the rate; media: of how late frames are sent
    percentile: int | None = None
    spin: bool = False
    verify: bool = False
    rate_bps: float | None = None
    mode: str = "offload"  # UDP: "offload" (GSO and GRO), "batch" (sendmmsg) or "single"
    close: str = "fin"  # tcp_crr: who closes: "fin", "rst" (both the client) or "server"
    congestion: str | None = None
    source: str | None = None  # client addresses, for more flows than one address has ports

    @property
    def is_stream(self):
        """Whether bytes or datagrams are counted, and not transactions."""
        return self.kind.endswith("stream")

    @property
    def transport(self):
        """`tcp`, `tls`, `udp`, `quic` or `framed`."""
        return self.kind.partition("_")[0]

    @property
    def connections(self):
        """How many connections carry the flows."""
        return self.flows // self.streams

    @property
    def whole_seconds(self):
        """For tools that read 0.5 as 0, and 0 as for ever."""
        return max(1, round(self.seconds))


@dataclass
class Measured:
    """What came out of one run."""

    figure: float  # bit/s, packets/s, transactions/s or connections/s, by the receiver's count; us
    units: float  # gigabytes or transactions, what CPU time is divided by
    cpu_s: float = 0.0  # both ends, all threads
    loss: float | None = None
    extra: dict = field(default_factory=dict)


class Tool:
    """A server, started once a row (`one_shot`: anew for every run), and runs against it."""

    name = ""
    kinds = ()  # the kinds of work that it can do
    chooses_congestion = True  # by a flag of its own
    packet_bytes = None  # QUIC: its longest UDP payload, where it can't be as long as linerate's over loopback

    def __init__(self, path):
        self.path = path
        self.server = None
        self.placement = None
        self.notes = []  # what a reader of the row should know
        self.prepared_cpu_s = 0.0  # what `start_server` used for runs of its own
        self.client_cpu_s = 0.0  # of the last run

    @classmethod
    def parts(cls):
        """The kinds of tools whose paths it is made of."""
        return (cls,)

    def words(self, _end):
        """What starts the `client` or the `server`, before its options."""
        return [self.path]

    def one_shot(self, work):
        """Whether a server serves one run only."""
        return False

    def launch(self, work):
        """Starts `self.server` and returns when it listens."""
        raise NotImplementedError

    def client_argv(self, work):
        """The client's command line."""
        raise NotImplementedError

    def read_result(self, work, client):
        """A Measured from the client's (and server's) output."""
        raise NotImplementedError

    def finish_server(self, work):
        """Called when the client has ended well: here a server of one run is ended."""

    def environment(self):
        """The children's environment; None: this command's own."""
        return None

    def refusal(self, work, network):
        """Why this tool can't do the work here, or None."""
        over_tcp = work.kind in ("tcp_stream", "tls_stream", "framed_stream")
        if over_tcp and not self.chooses_congestion:
            if not network.chooses_congestion():
                return f"{self.name} can't choose its congestion control, and only root can for it"
        return None

    def start_server(self, placement, work):
        """Makes ready for runs in a placement."""
        self.placement = placement
        if not self.one_shot(work):
            self.launch(work)

    def serve(self, argv, port=None, kind="tcp"):
        """Starts the server in its place; waits until it listens on the port, if one is given."""
        place = self.placement
        self.server = Child(argv, place.server_cpu, self.environment(), place.namespace)
        if port is not None:
            self.server.wait_for_port(port, kind)

    def run(self, work):
        """One run; CPU seconds are those of both processes, whole."""
        if self.one_shot(work):
            self.stop()
            self.launch(work)
        if self.server.poll():
            raise RunFailed(f"{self.name}: the server ended with {self.server.code}")
        before_s = self.server.cpu_so_far_s()
        client = Child(self.client_argv(work), self.placement.client_cpu, self.environment())
        try:
            code = client.wait(work.seconds + GRACE_S)
        finally:
            client.end()
        if code != 0:
            detail = client.errors() or client.output()[-400:].strip()
            raise RunFailed(f"{self.name}: the client ended with {code}: {detail}")
        self.finish_server(work)
        measured = self.read_result(work, client)
        self.client_cpu_s = client.cpu_s
        measured.cpu_s = client.cpu_s + self.server.cpu_so_far_s() - before_s
        return measured

    def stop(self):
        """Ends the server, if there is one."""
        if self.server is not None:
            self.server.end()
            self.server = None
