//! The table of ctsTraffic's options: how each is written, its text of help, and what it does. The
//! parser, the pages of help, and the test that no option of the original is missing all read it.
//!
//! Rows are taken in the order of the table, whatever the order of the command line.

use linerate_wire::ctstraffic::Pattern;
use linerate_wire::ctstraffic::media::datagram::{DATAGRAM_LEAST_BYTES, DATAGRAM_MOST_BYTES};

use super::Refusal;
use super::options::{Affinity, Connect, Io, Options, Protocol, ShutdownChoice};
use super::values::{csv_name, keyword, number, positive, span, switch};

/// A page of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// `-Help`.
    General,
    /// `-Help:Tcp`.
    Tcp,
    /// `-Help:Udp`.
    Udp,
    /// `-Help:Logging`.
    Logging,
    /// `-Help:Advanced`.
    Advanced,
}

/// How often an option may be given, and when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Once.
    Once,
    /// Any number of times.
    Repeated,
    /// Once, and only with `-EnableRecvSharding:on`.
    WithSharding,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without the dash.
    pub name: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// The page of help that has it.
    pub page: Page,
    /// How often it may be given.
    pub usage: Use,
    /// What it is for, with its default.
    pub help: &'static str,
    /// Puts its value among the options.
    pub take: fn(&mut Options, &str) -> Result<(), Refusal>,
}

type Take = fn(&mut Options, &str) -> Result<(), Refusal>;

const fn row(
    page: Page,
    name: &'static str,
    value: &'static str,
    help: &'static str,
    take: Take,
) -> Flag {
    Flag { name, value, page, usage: Use::Once, help, take }
}

const fn repeated(flag: Flag) -> Flag {
    Flag { usage: Use::Repeated, ..flag }
}

const fn with_sharding(flag: Flag) -> Flag {
    Flag { usage: Use::WithSharding, ..flag }
}

/// Puts a value that was read in its place.
fn put<T>(place: &mut Option<T>, value: Result<T, Refusal>) -> Result<(), Refusal> {
    *place = Some(value?);
    Ok(())
}

/// Puts a value in the place of a default.
fn set<T>(place: &mut T, value: Result<T, Refusal>) -> Result<(), Refusal> {
    *place = value?;
    Ok(())
}

/// Adds a value to others.
fn add(values: &mut Vec<String>, value: &str) -> Result<(), Refusal> {
    values.push(value.to_owned());
    Ok(())
}

/// A number of at most `most`, which is refused with this text.
fn at_most(value: &str, most: u8, refusal: &str) -> Result<u8, Refusal> {
    let number = number::<u64>(value)?;
    let small = u8::try_from(number).ok().filter(|number| *number <= most);
    small.ok_or_else(|| Refusal::new(refusal))
}

/// The most of a buffer, and of what else has 32 bits.
const MOST_32: u64 = u32::MAX as u64;

use Page::{Advanced, General, Logging, Tcp, Udp};

/// All options of 2.0.4.0.
#[rustfmt::skip]
pub const TABLE: &[Flag] = &[
    repeated(row(General, "Listen", "<addr,*>",
        "be a server, on this address or name, or on all of IPv4 and IPv6 (*); may be repeated",
        |o, v| add(&mut o.hosts.listen, v))),
    repeated(row(General, "Target", "<addr>",
        "be a client of this server; may be repeated, and all addresses are used in turn",
        |o, v| add(&mut o.hosts.targets, v))),
    row(General, "Port", "<1-65535>",
        "the server's port (4444)",
        |o, v| put(&mut o.hosts.port, positive(v, "-Port"))),
    row(General, "Protocol", "<tcp,udp>",
        "transfers over TCP, or media streams over UDP (tcp)",
        |o, v| set(&mut o.run.protocol,
            keyword(v, &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp)], "-Protocol"))),
    row(General, "Verify", "<data,connection>",
        "compare every byte received, or count bytes only (data)",
        |o, v| put(&mut o.run.verify_data, keyword(v,
            &[("data", true), ("always", true), ("connection", false), ("never", false)],
            "-verify"))),
    row(General, "Connections", "<n>",
        "client: connections at the same time (8; 1 with udp)",
        |o, v| put(&mut o.run.connections, positive(v, "-connections"))),
    row(General, "Iterations", "<n>",
        "client: how often to make as many connections; 0 for no end (0)",
        |o, v| put(&mut o.run.iterations, number(v))),
    row(General, "ServerExitLimit", "<n>",
        "server: end after so many connections; 0 for no end (0)",
        |o, v| put(&mut o.run.server_exit_limit, number(v))),
    row(General, "TimeLimit", "<ms>",
        "end after so long",
        |o, v| put(&mut o.run.time_limit_ms, positive(v, "-TimeLimit"))),
    row(General, "ConsoleVerbosity", "<0-6>",
        "what is printed: 1 status, 2 status and errors, 3 connections, 4 connections and errors, \
         5 or 6 all three; the settings and the summary always (4)",
        |o, v| put(&mut o.output.verbosity, at_most(v, 6, "-ConsoleVerbosity"))),
    row(General, "StatusUpdate", "<ms>",
        "time between rows of status (5000)",
        |o, v| put(&mut o.output.status_update_ms, positive(v, "-StatusUpdate"))),

    row(Tcp, "Pattern", "<push,pull,pushpull,duplex>",
        "the sender: the client, the server, both in turns, both at once (push)",
        |o, v| put(&mut o.transfer.pattern, keyword(v,
            &[("push", Pattern::Push), ("pull", Pattern::Pull), ("pushpull", Pattern::PushPull),
              ("duplex", Pattern::Duplex), ("flood", Pattern::Duplex)],
            "-pattern"))),
    row(Tcp, "Buffer", "<n>|[low,high]",
        "bytes of each send and receive; with a range, each draws its own (65536)",
        |o, v| put(&mut o.transfer.buffer_bytes, span(v, MOST_32, "-buffer"))),
    row(Tcp, "Transfer", "<n>|[low,high]",
        "bytes of a connection, both directions together, the same at both ends (1073741824)",
        |o, v| put(&mut o.transfer.total_bytes, span(v, u64::MAX, "-transfer"))),
    row(Tcp, "PushBytes", "<n>",
        "with pushpull: bytes of each turn of the client (1048576)",
        |o, v| put(&mut o.transfer.push_bytes, positive(v, "-PushBytes"))),
    row(Tcp, "PullBytes", "<n>",
        "with pushpull: bytes of each turn of the server (1048576)",
        |o, v| put(&mut o.transfer.pull_bytes, positive(v, "-PullBytes"))),
    row(Tcp, "RateLimit", "<n>|[low,high]",
        "bytes per second that each connection sends; with a range, each connection draws its own",
        |o, v| put(&mut o.transfer.rate_limit, span(v, u64::MAX, "-RateLimit"))),
    row(Tcp, "RateLimitPeriod", "<ms>",
        "the period in which the limit is kept (100)",
        |o, v| put(&mut o.transfer.rate_period_ms, number(v))),
    row(Tcp, "BurstCount", "<n>",
        "sends of a connection from one pause to the next",
        |o, v| put(&mut o.transfer.burst_count, positive(v, "-BurstCount requires a non-zero value"))),
    row(Tcp, "BurstDelay", "<ms>",
        "the pause between bursts",
        |o, v| put(&mut o.transfer.burst_delay_ms, positive(v, "-BurstDelay requires a non-zero value"))),
    row(Tcp, "Shutdown", "<graceful,rude,random>",
        "client: end connections in order, by a reset, or by chance one or the other (graceful)",
        |o, v| put(&mut o.transfer.shutdown, keyword(v,
            &[("graceful", ShutdownChoice::Graceful), ("rude", ShutdownChoice::Rude),
              ("random", ShutdownChoice::Random)],
            "-shutdown"))),

    row(Udp, "BitsPerSecond", "<n>",
        "bits per second of a stream, headers included; the same at both ends, like the next two",
        |o, v| put(&mut o.stream.bits_per_s, number(v))),
    row(Udp, "FrameRate", "<n>",
        "frames per second",
        |o, v| put(&mut o.stream.frame_rate, positive(v, "-FrameRate"))),
    row(Udp, "StreamLength", "<s>",
        "length of a stream",
        |o, v| put(&mut o.stream.length_s, positive(v, "-StreamLength"))),
    row(Udp, "BufferDepth", "<s>",
        "client: how long frames are held back before they are rendered (1)",
        |o, v| put(&mut o.stream.depth_s, positive(v, "-BufferDepth"))),
    row(Udp, "DatagramByteSize", "<n>",
        "bytes of the longest datagram, 53 to 65507; a client's not less than its server's (1400)",
        |o, v| put(&mut o.stream.datagram_bytes, datagram_bytes(v))),

    row(Logging, "StatusFilename", "<file>",
        "rows of status; csv if the name ends with .csv, else text",
        |o, v| put(&mut o.output.status_file, Ok(v.to_owned()))),
    row(Logging, "ConnectionFilename", "<file>",
        "a row for each connection or stream; csv if the name ends with .csv, else text",
        |o, v| put(&mut o.output.connection_file, Ok(v.to_owned()))),
    row(Logging, "ErrorFilename", "<file>",
        "errors; text only",
        |o, v| put(&mut o.output.error_file, error_name(v))),
    row(Logging, "JitterFilename", "<file.csv>",
        "client of one stream: a row for each frame; csv only",
        |o, v| put(&mut o.output.jitter_file, csv_name(v, "Jitter can only be logged using a csv format"))),
    row(Logging, "TcpInfoFilename", "<file.csv>",
        "what the kernel knows of each TCP connection (TCP_INFO) when it ends; csv only",
        |o, v| put(&mut o.output.tcp_info_file, csv_name(v, "TCP Info can only be logged using a csv format"))),
    row(Logging, "OnError", "<log,break>",
        "log errors, or abort the program at the first one (log)",
        |o, v| set(&mut o.run.aborts_on_error, keyword(v, &[("log", false), ("break", true)], "-OnError"))),

    row(Advanced, "Acc", "<AcceptEx,accept>",
        "how connections are accepted; changes nothing here",
        |o, v| put(&mut o.requests.blocking_accept, keyword(v, &[("AcceptEx", false), ("accept", true)], "-acc"))),
    repeated(row(Advanced, "Bind", "<addr,*>",
        "client: a local address; may be repeated, and all are used in turn (*)",
        |o, v| add(&mut o.hosts.binds, v))),
    row(Advanced, "Compartment", "<device>",
        "bind all sockets to this device, such as that of a VRF",
        |o, v| put(&mut o.hosts.compartment, Ok(v.to_owned()))),
    row(Advanced, "Conn", "<ConnectEx,connect,ConnectByName>",
        "ConnectByName resets its connections; the others are alike here (ConnectEx)",
        |o, v| put(&mut o.requests.connect, keyword(v,
            &[("ConnectEx", Connect::Address), ("connect", Connect::Blocking),
              ("ConnectByName", Connect::Name)],
            "-conn"))),
    row(Advanced, "CpuSetGroupId", "<n>",
        "run on the processors of this NUMA node only (all)",
        |o, v| put(&mut o.run.cpu_group, number(v))),
    row(Advanced, "IfIndex", "<n>",
        "client: the interface of outgoing connections, by its index",
        |o, v| put(&mut o.hosts.interface_index, positive(v, "-IfIndex"))),
    row(Advanced, "InlineCompletions", "<on,off>",
        "changes nothing here: each call is tried before it is waited for",
        |o, v| put(&mut o.requests.inline_completions, switch(v, "-inlinecompletions"))),
    row(Advanced, "IO", "<iocp,RioIocp,ReadWriteFile>",
        "how sends and receives are made; here always epoll",
        |o, v| put(&mut o.requests.io, keyword(v,
            &[("iocp", Io::Iocp), ("RioIocp", Io::RioIocp), ("ReadWriteFile", Io::ReadWriteFile)],
            "-io"))),
    row(Advanced, "KeepAliveValue", "<ms>",
        "TCP keepalive: idle time before the first probe; later ones follow every second",
        |o, v| put(&mut o.sockets.keepalive_idle_ms, positive(v, "Invalid KeepAliveValue"))),
    row(Advanced, "LocalPort", "<n>|[low,high]",
        "client: local ports, used in turn from the second one on",
        |o, v| put(&mut o.hosts.local_ports, span(v, u16::MAX.into(), "-LocalPort"))),
    row(Advanced, "MsgWaitAll", "<on,off>",
        "changes nothing here: receives are always completed",
        |o, v| put(&mut o.requests.wait_all, switch(v, "-msgwaitall"))),
    repeated(row(Advanced, "Options", "<keepalive,tcpfastpath>",
        "TCP keepalive, which servers have always; tcpfastpath changes nothing here; may be repeated",
        take_socket_option)),
    row(Advanced, "PauseAtEnd", "<ms>",
        "wait so long before the summary, with connections left open",
        |o, v| put(&mut o.run.pause_at_end_ms, positive(v, "-PauseAtEnd"))),
    row(Advanced, "PortScalability", "<on,off>",
        "changes nothing here: the kernel chooses a port when a connection connects (off)",
        |o, v| set(&mut o.hosts.port_scalability, switch(v, "-PortScalability"))),
    row(Advanced, "PrePostRecvs", "<n>",
        "changes nothing here; more than 1 with tcp needs -Verify:connection (1; 2 with udp)",
        |o, v| put(&mut o.requests.outstanding_receives, positive(v, "-PrePostRecvs"))),
    row(Advanced, "PrePostSends", "<n>",
        "changes nothing here: a send is over when the kernel has taken it (1)",
        |o, v| put(&mut o.requests.outstanding_sends, number(v))),
    row(Advanced, "QosDscpValue", "<0-63>",
        "the code point of outgoing packets",
        |o, v| put(&mut o.sockets.dscp, at_most(v, 63, "Invalid QosDscpValue"))),
    row(Advanced, "RecvBufValue", "<n>",
        "bytes of receive buffers, SO_RCVBUF (udp clients 1048576)",
        |o, v| put(&mut o.sockets.receive_buffer_bytes, number(v))),
    row(Advanced, "SendBufValue", "<n>",
        "bytes of send buffers, SO_SNDBUF",
        |o, v| put(&mut o.sockets.send_buffer_bytes, number(v))),
    row(Advanced, "Threadpool", "<default,runslong>",
        "changes nothing here",
        take_thread_pool),
    row(Advanced, "ThrottleConnections", "<n>",
        "client: connects at the same time; 0 for no limit (1000)",
        |o, v| put(&mut o.run.throttle, number(v))),
    row(Advanced, "EnableRecvSharding", "<on,off>",
        "server, udp: changes nothing here, as one thread has all streams (off)",
        |o, v| put(&mut o.shards.sharding, switch(v, "-EnableRecvSharding"))),
    with_sharding(row(Advanced, "ShardCount", "<n>",
        "with sharding: shards; 0 for one on each processor (0)",
        |o, v| put(&mut o.shards.shards, number(v)))),
    with_sharding(row(Advanced, "ShardWorkerCount", "<n>",
        "with sharding: threads of a shard (1)",
        |o, v| put(&mut o.shards.workers, positive(v, "-ShardWorkerCount")))),
    with_sharding(row(Advanced, "IocpBatchSize", "<1-256>",
        "with sharding: datagrams of a call (64)",
        |o, v| put(&mut o.shards.batch, batch(v)))),
    with_sharding(row(Advanced, "AffinityPolicy", "<PerCpu,PerGroup,RssAligned,Manual>",
        "with sharding: the processors of its threads (PerCpu)",
        |o, v| put(&mut o.shards.affinity, keyword(v,
            &[("PerCpu", Affinity::PerCpu), ("PerGroup", Affinity::PerGroup),
              ("RssAligned", Affinity::RssAligned), ("Manual", Affinity::Manual)],
            "-AffinityPolicy")))),
];

fn datagram_bytes(value: &str) -> Result<u32, Refusal> {
    let bytes: u32 = number(value)?;
    if (DATAGRAM_LEAST_BYTES..=DATAGRAM_MOST_BYTES).contains(&bytes) {
        return Ok(bytes);
    }
    Err(Refusal::new(format!(
        "-DatagramByteSize must be {DATAGRAM_LEAST_BYTES} to {DATAGRAM_MOST_BYTES} bytes"
    )))
}

fn error_name(value: &str) -> Result<String, Refusal> {
    match super::values::is_csv(value) {
        true => Err(Refusal::new("The error logfile cannot be of csv format")),
        false => Ok(value.to_owned()),
    }
}

fn batch(value: &str) -> Result<u32, Refusal> {
    let fits = |size: &u32| (1..=256).contains(size);
    Some(number(value)?).filter(fits).ok_or_else(|| Refusal::new("-IocpBatchSize"))
}

fn take_socket_option(options: &mut Options, value: &str) -> Result<(), Refusal> {
    let is_keepalive = keyword(value, &[("keepalive", true), ("tcpfastpath", false)], "-Options")?;
    let Options { sockets, .. } = options;
    *(if is_keepalive { &mut sockets.keepalive } else { &mut sockets.fast_path }) = true;
    Ok(())
}

fn take_thread_pool(options: &mut Options, value: &str) -> Result<(), Refusal> {
    if keyword(value, &[("default", false), ("runslong", true)], "-Threadpool")? {
        options.notes.push("-Threadpool does nothing here: threads are not pooled".to_owned());
    }
    Ok(())
}

/// An option of linerate's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnFlag {
    /// Its name, with both dashes.
    pub name: &'static str,
    /// What its value looks like; empty for one that stands alone.
    pub value: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Puts its value, empty where there is none, among the options.
    pub take: Take,
}

const fn own(name: &'static str, value: &'static str, help: &'static str, take: Take) -> OwnFlag {
    OwnFlag { name, value, help, take }
}

/// All of linerate's own. The original refuses each, so that none hides one of its options.
#[rustfmt::skip]
pub const OWN_TABLE: &[OwnFlag] = &[
    own("--json", "", "print one JSON document in place of all else",
        |o, _| set(&mut o.own.json, Ok(true))),
    own("--ndjson", "", "print a line of JSON for each connection, row of status and the result",
        |o, _| set(&mut o.own.ndjson, Ok(true))),
    own("--utf16", "", "write files in UTF-16 with CRLF, as the original does (UTF-8 with LF)",
        |o, _| set(&mut o.own.utf16, Ok(true))),
    own("--strict", "", "udp client: a malformed or wrong datagram ends its stream at once, as in the original",
        |o, _| set(&mut o.own.strict, Ok(true))),
    own("--idle-timeout", "<ms>", "a connection without a byte for so long fails (never)",
        |o, v| put(&mut o.own.idle_timeout_ms, positive(v, "--idle-timeout"))),
    own("--max-rate", "<bits/s>", "udp server: refuse streams that would exceed this rate in all",
        |o, v| put(&mut o.own.max_rate_bps, positive(v, "--max-rate"))),
    own("--max-address-rate", "<bits/s>", "udp server: likewise for the streams to one address",
        |o, v| put(&mut o.own.max_address_rate_bps, positive(v, "--max-address-rate"))),
    own("--busy-poll", "", "udp server: never sleep, so that frames are sent when they are due",
        |o, _| set(&mut o.own.busy_poll, Ok(true))),
];
