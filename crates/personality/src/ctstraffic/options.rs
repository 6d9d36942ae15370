//! What was typed, by subject. What isn't typed is absent; [`super::plan`] knows the defaults.

use linerate_wire::ctstraffic::Pattern;
use linerate_wire::ctstraffic::Span;

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Addresses and ports.
    pub hosts: HostOptions,
    /// How many connections, and how long.
    pub run: RunOptions,
    /// What a TCP connection transfers.
    pub transfer: TransferOptions,
    /// How sends and receives are made.
    pub requests: RequestOptions,
    /// Options of sockets.
    pub sockets: SocketOptions,
    /// Media streams over UDP.
    pub stream: StreamOptions,
    /// How a server of streams spreads its sockets.
    pub shards: ShardOptions,
    /// What is printed and written.
    pub output: OutputOptions,
    /// linerate's own.
    pub own: OwnOptions,
    /// Sentences about options that were given and do nothing here.
    pub notes: Vec<String>,
}

/// TCP, or media streams over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Addresses and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// `-Listen`: addresses, names or `*`. If there is any, this is a server.
    pub listen: Vec<String>,
    /// `-Target`: addresses or names of servers, used in turn.
    pub targets: Vec<String>,
    /// `-Bind`: local addresses, names or `*`, used in turn.
    pub binds: Vec<String>,
    /// `-Port`.
    pub port: Option<u16>,
    /// `-LocalPort`: ports of a client, used in turn from the second one on.
    pub local_ports: Option<Span>,
    /// `-IfIndex`: the interface of outgoing connections.
    pub interface_index: Option<u32>,
    /// `-Compartment`: the device that all sockets are bound to.
    pub compartment: Option<String>,
    /// `-PortScalability`: changes nothing but a word of the banner.
    pub port_scalability: bool,
}

/// How many connections, how long, and what is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// `-Protocol`.
    pub protocol: Protocol,
    /// `-Verify`: whether data is compared; absent: it is.
    pub verify_data: Option<bool>,
    /// `-Connections`: connections at the same time.
    pub connections: Option<u32>,
    /// `-Iterations`: how often as many; 0: without end.
    pub iterations: Option<u64>,
    /// `-ServerExitLimit`: after how many connections a server ends; 0: never.
    pub server_exit_limit: Option<u64>,
    /// `-ThrottleConnections`: connects at the same time; 0: any number.
    pub throttle: Option<u32>,
    /// `-TimeLimit`, ms.
    pub time_limit_ms: Option<u32>,
    /// `-PauseAtEnd`, ms.
    pub pause_at_end_ms: Option<u32>,
    /// `-OnError:break`: whether the first error aborts the program.
    pub aborts_on_error: bool,
    /// `-CpuSetGroupId`: the NUMA node whose processors the program runs on.
    pub cpu_group: Option<u32>,
}

/// What a TCP connection transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferOptions {
    /// `-Pattern`.
    pub pattern: Option<Pattern>,
    /// `-Buffer`: bytes of each send and receive.
    pub buffer_bytes: Option<Span>,
    /// `-Transfer`: bytes of a connection.
    pub total_bytes: Option<Span>,
    /// `-PushBytes`.
    pub push_bytes: Option<u32>,
    /// `-PullBytes`.
    pub pull_bytes: Option<u32>,
    /// `-RateLimit`: bytes per second.
    pub rate_limit: Option<Span>,
    /// `-RateLimitPeriod`, ms.
    pub rate_period_ms: Option<u64>,
    /// `-BurstCount`: sends.
    pub burst_count: Option<u32>,
    /// `-BurstDelay`, ms.
    pub burst_delay_ms: Option<u32>,
    /// `-Shutdown`.
    pub shutdown: Option<ShutdownChoice>,
}

/// How a client ends its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownChoice {
    /// In order.
    Graceful,
    /// By a reset.
    Rude,
    /// Each by chance one or the other.
    Random,
}

/// How sends and receives are made, and connections begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// `-PrePostRecvs`.
    pub outstanding_receives: Option<u32>,
    /// `-PrePostSends`; 0: as many as the kernel takes.
    pub outstanding_sends: Option<u32>,
    /// `-Conn`.
    pub connect: Option<Connect>,
    /// `-Acc`: whether accepts block in the original.
    pub blocking_accept: Option<bool>,
    /// `-IO`.
    pub io: Option<Io>,
    /// `-InlineCompletions`.
    pub inline_completions: Option<bool>,
    /// `-MsgWaitAll`.
    pub wait_all: Option<bool>,
}

/// How connections are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// To a resolved address.
    Address,
    /// Likewise, by a call that blocks in the original.
    Blocking,
    /// To each address of a name until one answers; such connections end by a reset.
    Name,
}

/// What does the sends and receives in the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Overlapped calls with a completion port.
    Iocp,
    /// Registered buffers.
    RioIocp,
    /// Calls for files.
    ReadWriteFile,
}

/// Options of sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// `-Options:keepalive`.
    pub keepalive: bool,
    /// `-Options:tcpfastpath`.
    pub fast_path: bool,
    /// `-KeepAliveValue`: idle time before the first probe, ms.
    pub keepalive_idle_ms: Option<u32>,
    /// `-QosDscpValue`.
    pub dscp: Option<u8>,
    /// `-RecvBufValue`, bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// `-SendBufValue`, bytes.
    pub send_buffer_bytes: Option<u32>,
}

/// Media streams over UDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// `-BitsPerSecond`.
    pub bits_per_s: Option<u64>,
    /// `-FrameRate`: frames per second.
    pub frame_rate: Option<u32>,
    /// `-StreamLength`, seconds.
    pub length_s: Option<u32>,
    /// `-BufferDepth`, seconds.
    pub depth_s: Option<u32>,
    /// `-DatagramByteSize`.
    pub datagram_bytes: Option<u32>,
}

/// How a server of streams spreads its sockets over processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardOptions {
    /// `-EnableRecvSharding`; absent: not given.
    pub sharding: Option<bool>,
    /// `-ShardCount`; 0: a shard for each processor.
    pub shards: Option<u32>,
    /// `-ShardWorkerCount`: threads of a shard.
    pub workers: Option<u32>,
    /// `-IocpBatchSize`: datagrams of a call.
    pub batch: Option<u32>,
    /// `-AffinityPolicy`.
    pub affinity: Option<Affinity>,
}

/// Which processors the threads of shards run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Each on one.
    PerCpu,
    /// Each on those of one group.
    PerGroup,
    /// Each where the network card's queue is served.
    RssAligned,
    /// Any.
    Manual,
}

/// What is printed and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// `-ConsoleVerbosity`: 0 to 6.
    pub verbosity: Option<u8>,
    /// `-StatusUpdate`: ms between rows.
    pub status_update_ms: Option<u32>,
    /// `-StatusFilename`.
    pub status_file: Option<String>,
    /// `-ConnectionFilename`.
    pub connection_file: Option<String>,
    /// `-ErrorFilename`.
    pub error_file: Option<String>,
    /// `-JitterFilename`.
    pub jitter_file: Option<String>,
    /// `-TcpInfoFilename`.
    pub tcp_info_file: Option<String>,
}

/// linerate's own options, which begin with two dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOptions {
    /// `--json`: one document in place of the console's text.
    pub json: bool,
    /// `--ndjson`: a line of JSON for each event.
    pub ndjson: bool,
    /// `--utf16`: files in the original's encoding.
    pub utf16: bool,
    /// `--strict`: a bad datagram fails its stream.
    pub strict: bool,
    /// `--idle-timeout`: ms without a byte after which a connection fails.
    pub idle_timeout_ms: Option<u32>,
    /// `--max-rate`: the most bits per second of all streams of a server.
    pub max_rate_bps: Option<u64>,
    /// `--max-address-rate`: the most bits per second of all streams to one address.
    pub max_address_rate_bps: Option<u64>,
    /// `--busy-poll`: the thread of a server's streams never sleeps.
    pub busy_poll: bool,
}
