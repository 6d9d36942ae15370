//! What was typed, flag by flag, before anyone asks what it comes to.

use linerate_measure::plan::Family;

use super::unit::Unit;

/// The port of a netserver.
pub const CONTROL_PORT: u16 = 12865;

/// A host of the data connection as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataHost {
    /// Its name or address.
    pub name: String,
    /// The leading bits of its address that stay; absent: all.
    pub fixed_bits: Option<u32>,
}

/// A number for each direction at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves {
    /// Of sends.
    pub send: Option<u32>,
    /// Of receives.
    pub receive: Option<u32>,
}

/// The processors of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuOptions {
    /// `-c`, `-C`: whether their use is measured.
    pub measured: bool,
    /// The rate behind `-c` or `-C`.
    pub rate: Option<f32>,
    /// `-n`: how many there are.
    pub count: Option<u32>,
    /// `-T`: the one that the load runs on.
    pub bound: Option<u32>,
}

/// Bytes of an end's buffers that are touched beside sending and receiving (`-k`, `-K`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirt {
    /// Bytes that are written.
    pub dirty_bytes: u32,
    /// Bytes that are read.
    pub clean_bytes: u32,
}

/// What was said of one end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndOptions {
    /// `-m`, `-M`: bytes of a send and of a receive.
    pub message_bytes: Halves,
    /// `-s`, `-S`: bytes of the socket's buffers.
    pub buffer_bytes: Halves,
    /// `-a`, `-A`: alignment of the load's buffers.
    pub alignment: Halves,
    /// `-o`, `-O`: offset of the load's buffers.
    pub offset: Halves,
    /// `-W`: buffers in the load's rings.
    pub width: Halves,
    /// `-P`: the port of the data connection; 0: any.
    pub port: u16,
    /// `-b`: sends in an interval.
    pub burst: Option<u32>,
    /// `-w`: the length of that interval, microseconds.
    pub interval_us: Option<u32>,
    /// `-K` of a test: TCP congestion control.
    pub congestion: Option<String>,
    /// `-y`: SO_PRIORITY.
    pub priority: Option<u32>,
    /// `-Y`: the type-of-service byte.
    pub service: Option<u8>,
    /// `-c`, `-C`, `-n`, `-T`.
    pub cpu: CpuOptions,
    /// `-n`, `-N` of a test: whether UDP sockets are connected.
    pub connected: bool,
    /// `-F`: the file that send buffers are filled from.
    pub fill_file: Option<String>,
    /// `-k`, `-K`.
    pub dirt: Option<Dirt>,
}

/// What was said of the control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlOptions {
    /// `-H`: where the netserver is.
    pub host: String,
    /// Whether `-H` was given.
    pub names_host: bool,
    /// `-p`: its port.
    pub port: u16,
    /// The local port; 0: any.
    pub local_port: u16,
    /// `-Z`: the passphrase that the netserver requires.
    pub passphrase: Option<String>,
    /// `-T`: the processor that the netserver shall run on.
    pub server_cpu: Option<u32>,
    /// `-N`: whether there is no netserver.
    pub alone: bool,
}

impl Default for ControlOptions {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            names_host: false,
            port: CONTROL_PORT,
            local_port: 0,
            passphrase: None,
            server_cpu: None,
            alone: false,
        }
    }
}

/// What was said of the data connection's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// `-D`: TCP_NODELAY at both ends.
    pub no_delay: bool,
    /// `-C`: TCP_CORK at this end.
    pub cork: bool,
    /// `-a`: TCP_DEFER_ACCEPT at the server.
    pub defer_accept: bool,
    /// `-S`: SO_KEEPALIVE.
    pub keep_alive: bool,
    /// `-R`: whether packets may be routed.
    pub routed: Option<bool>,
    /// `-f`: never fragment.
    pub dont_fragment: bool,
    /// `-F`: TCP Fast Open.
    pub fast_open: bool,
    /// `-g`: SO_DEBUG at this end.
    pub debug: bool,
    /// `-V`: receive without copying.
    pub no_copy: bool,
    /// `-B`: IP_PKTINFO at the server.
    pub packet_info: bool,
    /// `-G`: TCP_MAXSEG.
    pub mss_bytes: Option<u32>,
    /// `-q`: SO_MAX_PACING_RATE, bytes per second.
    pub most_bytes_per_s: Option<u64>,
    /// `-l`: multicast TTL.
    pub multicast_ttl: Option<u32>,
}

/// What was said of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// `-r`: bytes of a request.
    pub request_bytes: Option<u32>,
    /// Bytes of a response.
    pub response_bytes: Option<u32>,
    /// `-b`: requests on their way at once beyond the first.
    pub burst: u32,
    /// `-p`: local ports of connections that come and go, first and last.
    pub source_ports: Option<(u16, u16)>,
    /// `-e`: how long a response is awaited over UDP, nanoseconds.
    pub timeout_ns: Option<u64>,
    /// `--busy-poll`.
    pub busy_poll: bool,
}

/// Where the data connection goes, where that is told apart from the control connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataOptions {
    /// `-4`, `-6` of a test: its family.
    pub family: Option<Family>,
    /// `-L` of a test: its local address.
    pub local: Option<DataHost>,
    /// `-H` of a test: its remote address.
    pub host: Option<DataHost>,
}

/// What was typed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The control connection.
    pub control: ControlOptions,
    /// The test's name in capitals.
    pub test: String,
    /// `-4`, `-6`, and the family beside `-H` and `-L`.
    pub family: Option<Family>,
    /// This end.
    pub local: EndOptions,
    /// The server's end.
    pub remote: EndOptions,
    /// The data connection's sockets.
    pub socket: SocketOptions,
    /// Requests and responses.
    pub requests: RequestOptions,
    /// Where the data connection goes.
    pub data: DataOptions,
    /// `-l`: seconds, or minus the bytes or transactions.
    pub length: i64,
    /// `-s`: seconds between set-up and data.
    pub wait_s: u32,
    /// `-F`: the file that TCP_SENDFILE sends.
    pub file: Option<String>,
    /// What the options of omni tests say.
    pub omni: OmniOptions,
    /// How the result is shown.
    pub shown: Shown,
    /// How often the test is repeated.
    pub repeat: Repeat,
    /// What stands in the way of asking for anything: help, version.
    pub stop: Option<Stop>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            control: ControlOptions::default(),
            test: "TCP_STREAM".to_owned(),
            family: None,
            local: EndOptions::default(),
            remote: EndOptions::default(),
            socket: SocketOptions::default(),
            requests: RequestOptions::default(),
            data: DataOptions::default(),
            length: 10,
            wait_s: 0,
            file: None,
            omni: OmniOptions::default(),
            shown: Shown::default(),
            repeat: Repeat::default(),
            stop: None,
        }
    }
}

/// What the options of omni tests say about the kind of test.
#[derive(Clone, Debug, Default)]
pub struct OmniOptions {
    /// `-d`: where data goes; the last one counts.
    pub told: Option<Direction>,
    /// Where sizes say that data goes, while no `-d` does.
    pub implied: Direction,
    /// `-c`: a connection for each transaction.
    pub connects: bool,
    /// `-T` or `-t`.
    pub udp: Option<bool>,
    /// The `-d` that says neither direction.
    pub aimless: Option<String>,
    /// The number that `-T` names a protocol with.
    pub numbered: Option<String>,
}

/// Where a test's data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Whether the client sends.
    pub sends: bool,
    /// Whether it receives.
    pub receives: bool,
}

impl Direction {
    /// Adds what the sizes of one option say.
    pub fn add(&mut self, sends: bool, receives: bool) {
        self.sends |= sends;
        self.receives |= receives;
    }
}

/// How the result is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// `-f`.
    pub unit: Option<Unit>,
    /// `-P`.
    pub headers: bool,
    /// `-v`: 0 to 2.
    pub verbosity: u32,
    /// `-B`: the text at the end of a result.
    pub brand: Option<String>,
    /// `-D`, in seconds.
    pub interim_s: Option<f64>,
    /// `-j`: whether latencies are kept.
    pub statistics: bool,
    /// Whether latencies are shown with their nanoseconds.
    pub fine_latency: bool,
    /// `-u`: the UUID of the test.
    pub uuid: Option<String>,
    /// How many times `-d` stood there.
    pub debug: u32,
    /// `-k`, `-o`, `-O`.
    pub selected: Option<Selected>,
    /// The address that `-L` named, as it was written.
    pub local_host: Option<String>,
    /// Whether `-T` was given.
    pub binds_cpu: bool,
}

/// What `-k`, `-o` or `-O` asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// How they are laid out.
    pub layout: Layout,
    /// The list, a file's name, `all` or `?`; empty for the default.
    pub list: String,
}

/// How selected figures are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `NAME=value`, one a line (`-k`).
    KeyValue,
    /// One line of headings, one of values (`-o`).
    Csv,
    /// Blocks of columns with four lines of headings (`-O`).
    Columns,
}

/// How often the test is repeated, and when it is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeat {
    /// Iterations; absent: `-i` and `-I` said nothing so far.
    pub iterations: Option<IterationBounds>,
    /// 95 or 99.
    pub level_percent: Option<u32>,
    /// Full width of the interval of confidence.
    pub width_percent: Option<f64>,
    /// `-r`: whether agreement of the result is enough, whatever the processors did.
    pub result_only: bool,
}

/// How many iterations there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationBounds {
    /// At most.
    pub most: u32,
    /// At least.
    pub least: u32,
}

impl Repeat {
    /// Sets the bounds of `-i`. If the least number is above the greatest, the least holds.
    pub fn bound(&mut self, most: Option<u32>, least: Option<u32>) {
        let before = self.iterations.unwrap_or(IterationBounds { most: 1, least: 1 });
        let least = least.unwrap_or(before.least);
        let most = most.unwrap_or(before.most).max(least);
        let few = |iterations: u32| iterations.clamp(3, 30);
        self.iterations = Some(IterationBounds { most: few(most), least: few(least) });
    }

    /// What `-I` says of iterations where `-i` did not.
    pub fn bound_as_usual(&mut self) {
        self.iterations.get_or_insert(IterationBounds { most: 10, least: 3 });
    }
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            unit: None,
            headers: true,
            verbosity: 1,
            brand: None,
            interim_s: None,
            statistics: false,
            fine_latency: false,
            uuid: None,
            debug: 0,
            selected: None,
            local_host: None,
            binds_cpu: false,
        }
    }
}

/// Why there is nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `-h`.
    Help,
    /// `-h` behind `--`.
    TestHelp,
    /// `-V`.
    Version,
}
