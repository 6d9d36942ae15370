//! A command line as a whole: how its words are read, and what may stand together.

use linerate_wire::ctstraffic::Pattern;
use linerate_wire::ctstraffic::media::shape::ShapeError;

use super::flags::{OWN_TABLE, Page, TABLE, Use};
use super::options::{Connect, Io, Options, Protocol};
use super::values::is_csv;
use super::{Refusal, SHARED_CSV};
use crate::colon_options::strict::StrictOptions;

/// What a command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// A page of help. The program ends with [`exit::USAGE`](super::exit::USAGE) after it.
    Help(Page),
    /// A run.
    Run(Box<Options>),
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// What can't be done, in the original's words.
pub fn parse_command_line(words: &[String]) -> Result<CommandLine, Refusal> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(page) = help_page(&words) {
        return Ok(CommandLine::Help(page));
    }
    let mut options = Options::default();
    let words = take_own(&mut options, words)?;
    let mut words = StrictOptions::parse(words).map_err(|word| Refusal::new(word.0))?;
    for flag in TABLE {
        if flag.usage == Use::WithSharding && options.shards.sharding != Some(true) {
            continue;
        }
        while let Some(value) = words.take(flag.name) {
            (flag.take)(&mut options, value)?;
            if flag.usage != Use::Repeated {
                break;
            }
        }
    }
    // First what is unknown: a misspelt -Target is named, not missed.
    if let Some(refusal) = Refusal::left_over(words.left_over()) {
        return Err(refusal);
    }
    check(&options)?;
    note_without_effect(&mut options);
    Ok(CommandLine::Run(Box::new(options)))
}

/// The page that is requested, by any word; without words the general one.
fn help_page(words: &[&str]) -> Option<Page> {
    if words.is_empty() {
        return Some(Page::General);
    }
    words.iter().find_map(|word| {
        let (name, page) = word.split_once(':').unwrap_or((word, ""));
        let is_help = name == "-?" || name.eq_ignore_ascii_case("-help");
        is_help.then(|| match page.to_ascii_lowercase().as_str() {
            "tcp" => Page::Tcp,
            "udp" => Page::Udp,
            "logging" => Page::Logging,
            "advanced" => Page::Advanced,
            _ => Page::General,
        })
    })
}

/// Takes linerate's own options, each once; the words that are left.
fn take_own<'a>(options: &mut Options, mut words: Vec<&'a str>) -> Result<Vec<&'a str>, Refusal> {
    for flag in OWN_TABLE {
        let split = |word: &'a str| word.split_once(':').unwrap_or((word, ""));
        let found = words.iter().position(|word| split(word).0.eq_ignore_ascii_case(flag.name));
        let Some(at) = found else { continue };
        let word = words.remove(at);
        let (_, value) = split(word);
        if flag.value.is_empty() != value.is_empty() {
            return Err(Refusal::new(word));
        }
        (flag.take)(options, value)?;
    }
    Ok(words)
}

/// Something that can't be, and its text.
type Check = (fn(&Options) -> bool, &'static str);

/// Connections at once, as many as a load may have.
const MOST_CONNECTIONS: u32 = 1_000_000;

/// What can't stand together.
#[rustfmt::skip]
const CHECKS: &[Check] = &[
    (|o| is_server(o) && !o.hosts.targets.is_empty(),
        "cannot specify both -Listen and -Target"),
    (|o| !is_server(o) && o.hosts.targets.is_empty(),
        "must specify either -target or -listen"),
    (|o| is_server(o) && !o.hosts.binds.is_empty(),
        "cannot specify both -bind and -listen"),
    (|o| is_server(o) && o.hosts.local_ports.is_some(),
        "Cannot specify both -listen and -LocalPort. To listen on a specific port, use -Port:####"),
    (|o| is_server(o) && o.hosts.interface_index.is_some(),
        "-IfIndex can only be used for outgoing connections, not listening sockets"),
    (|o| is_server(o) && o.run.connections.is_some(),
        "-Connections is only supported when running as a client"),
    (|o| is_server(o) && o.run.iterations.is_some(),
        "-Iterations is only supported when running as a client"),
    (|o| is_server(o) && o.run.throttle.is_some(),
        "-ThrottleConnections is only supported when running as a client"),
    (|o| !is_server(o) && o.run.server_exit_limit.is_some(),
        "-ServerExitLimit is only supported when running as a client"),
    (|o| is_server(o) && o.transfer.shutdown.is_some(),
        "-shutdown is a client-only option"),
    (|o| o.connections() > MOST_CONNECTIONS, "-Connections must be at most 1000000"),
    // Options of TCP alone.
    (|o| is_udp(o) && o.requests.io.is_some(), "-io (only applicable to TCP)"),
    (|o| is_udp(o) && o.requests.connect.is_some(), "-conn (only applicable to TCP)"),
    (|o| is_udp(o) && o.requests.blocking_accept.is_some(), "-acc (only applicable to TCP)"),
    (|o| is_udp(o) && o.transfer.pattern.is_some(), "-pattern (only applicable to TCP)"),
    (|o| is_udp(o) && o.transfer.buffer_bytes.is_some(), "-buffer (only applicable to TCP)"),
    (|o| is_udp(o) && o.transfer.total_bytes.is_some(), "-transfer (only applicable to TCP)"),
    (|o| is_udp(o) && o.transfer.rate_limit.is_some(), "-RateLimit (only applicable to TCP)"),
    (|o| is_udp(o) && o.transfer.burst_count.is_some(), "-BurstCount requires -Protocol:TCP"),
    (|o| is_udp(o) && o.transfer.burst_delay_ms.is_some(), "-BurstDelay requires -Protocol:TCP"),
    (|o| is_udp(o) && o.sockets.keepalive,
        "-Options (keepalive only allowed with TCP sockets)"),
    (|o| is_udp(o) && o.sockets.fast_path,
        "-Options (tcpfastpath only allowed with TCP sockets)"),
    (|o| is_udp(o) && o.sockets.keepalive_idle_ms.is_some(),
        "-KeepAliveValue is only allowed with TCP sockets"),
    (|o| is_udp(o) && o.own.idle_timeout_ms.is_some(), "--idle-timeout requires -Protocol:TCP"),
    // Options of TCP among themselves.
    (|o| o.transfer.push_bytes.is_some() && o.transfer.pattern != Some(Pattern::PushPull),
        "-PushBytes can only be set with -Pattern:PushPull"),
    (|o| o.transfer.pull_bytes.is_some() && o.transfer.pattern != Some(Pattern::PushPull),
        "-PullBytes can only be set with -Pattern:PushPull"),
    (|o| o.transfer.rate_period_ms.is_some() && o.transfer.rate_limit.is_none(),
        "-RateLimitPeriod requires specifying -RateLimit"),
    (|o| o.transfer.rate_limit.is_some_and(|rate| quantum_bytes(rate.low, o.rate_period_ms()) == 0),
        "RateLimit * RateLimitPeriod / 1000 must be greater than zero - meaning every period should \
         send at least 1 byte"),
    (|o| o.transfer.burst_count.is_some() != o.transfer.burst_delay_ms.is_some(),
        "-BurstCount and -BurstDelay must both be set if either are set"),
    (|o| o.transfer.burst_count.is_some() && o.transfer.rate_limit.is_some(),
        "-RateLimit and -Burstdelay cannot be used concurrently"),
    (|o| !is_udp(o) && o.outstanding_receives() > 1 && o.verifies_data(),
        "-PrePostRecvs > 1 requires -Verify:connection when using TCP"),
    // Options of UDP alone.
    (|o| !is_udp(o) && o.stream.bits_per_s.is_some(), "-BitsPerSecond requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.stream.frame_rate.is_some(), "-FrameRate requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.stream.length_s.is_some(), "-StreamLength requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.stream.depth_s.is_some(), "-BufferDepth requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.stream.datagram_bytes.is_some(),
        "-DatagramByteSize requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.own.strict, "--strict requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.own.max_rate_bps.is_some(), "--max-rate requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.own.max_address_rate_bps.is_some(),
        "--max-address-rate requires -Protocol:UDP"),
    (|o| !is_udp(o) && o.own.busy_poll, "--busy-poll requires -Protocol:UDP"),
    (|o| !is_server(o) && o.own.busy_poll, "--busy-poll requires -Listen"),
    (|o| !is_server(o) && o.own.max_rate_bps.is_some(), "--max-rate requires -Listen"),
    (|o| !is_server(o) && o.own.max_address_rate_bps.is_some(),
        "--max-address-rate requires -Listen"),
    (|o| !is_udp(o) && o.shards.sharding == Some(true),
        "-EnableRecvSharding (only valid with -Protocol:udp)"),
    (|o| !is_server(o) && o.shards.sharding == Some(true),
        "-EnableRecvSharding requires the server to be listening (-Listen)"),
    (|o| is_udp(o) && o.stream.bits_per_s.is_none(), "-BitsPerSecond is required"),
    (|o| is_udp(o) && o.stream.frame_rate.is_none(), "-FrameRate is required"),
    (|o| is_udp(o) && o.stream.length_s.is_none(), "-StreamLength is required"),
    // Files.
    (|o| !is_udp(o) && o.output.jitter_file.is_some(), "Jitter can only be logged using UDP"),
    (|o| is_server(o) && o.output.jitter_file.is_some(),
        "Jitter can only be logged on the client"),
    (|o| o.output.jitter_file.is_some() && o.connections() > 1,
        "Jitter can only be logged for a single UDP connection"),
    (shares_csv_file, SHARED_CSV),
    (|o| o.own.json && o.own.ndjson, "--json and --ndjson cannot both be set"),
    (|o| !is_server(o) && o.hosts.local_ports
            .is_some_and(|ports| ports.high - ports.low + 1 < o.connections().into()),
        "Cannot specify more connections than specified local ports. Reduce the number of \
         connections or increase the range of local ports."),
];

fn is_server(options: &Options) -> bool {
    options.is_server()
}

fn is_udp(options: &Options) -> bool {
    options.run.protocol == Protocol::Udp
}

/// Bytes that may be sent in one period, for a rate in bytes per second: 0 where that is less than one.
fn quantum_bytes(bytes_per_s: u64, period_ms: u64) -> u64 {
    let bytes = u128::from(bytes_per_s) * u128::from(period_ms) / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Whether two loggers have one csv file.
fn shares_csv_file(options: &Options) -> bool {
    let output = &options.output;
    let files =
        [&output.status_file, &output.connection_file, &output.jitter_file, &output.tcp_info_file];
    let mut names: Vec<_> = files.into_iter().flatten().filter(|name| is_csv(name)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < count
}

fn check(options: &Options) -> Result<(), Refusal> {
    if let Some((_, text)) = CHECKS.iter().find(|(is_wrong, _)| is_wrong(options)) {
        return Err(Refusal::new(*text));
    }
    options.stream_shape().map_or(Ok(()), |shape| {
        let shape = shape.map_err(|error| Refusal::new(shape_text(error)))?;
        let buffered = shape.buffered_frames(options.depth_s());
        buffered.map_err(|error| Refusal::new(shape_text(error)))?;
        Ok(())
    })
}

/// The text for a stream that can't be.
fn shape_text(error: ShapeError) -> &'static str {
    match error {
        ShapeError::FrameTooSmall => "The frame size is too small - it must be at least 40 bytes",
        ShapeError::FrameTooLarge => {
            "The frame size is too large - it must be less than 4294967296 bytes"
        }
        ShapeError::TooManyFrames => {
            "FrameRate * StreamLength is too large - it must be less than 9223372036854775808 frames"
        }
        ShapeError::TooManyBytes => {
            "BitsPerSecond / 8 * StreamLength is too large - it must be less than \
             18446744073709551616 bytes"
        }
        ShapeError::TooManyBuffered => {
            "BufferDepth * FrameRate is too large - it must be at most 1000000 frames"
        }
    }
}

/// Adds a sentence for each option that was given and does nothing here.
fn note_without_effect(options: &mut Options) {
    let requests = &options.requests;
    let notes = [
        (requests.io.is_some_and(|io| io != Io::Iocp), "-IO does nothing here: it is always epoll"),
        (
            requests.inline_completions.is_some(),
            "-InlineCompletions does nothing here: each call is tried before it is waited for",
        ),
        (
            requests.wait_all == Some(false),
            "-MsgWaitAll:off does nothing here, as in the original: receives are completed",
        ),
        (requests.blocking_accept == Some(true), "-Acc:accept does nothing here: no accept blocks"),
        (
            requests.connect == Some(Connect::Blocking),
            "-Conn:connect does nothing here: no connect blocks",
        ),
        (
            options.hosts.port_scalability,
            "-PortScalability does nothing here: the kernel chooses a port when a connection connects",
        ),
        (
            is_udp(options) && options.transfer.shutdown.is_some(),
            "-Shutdown does nothing with -Protocol:UDP",
        ),
        (
            is_udp(options) && options.run.throttle.is_some(),
            "-ThrottleConnections does nothing with -Protocol:UDP",
        ),
        (
            options.sockets.fast_path,
            "-Options:tcpfastpath does nothing here: Linux has no other path for loopback",
        ),
        (
            options.shards.sharding == Some(true),
            "-EnableRecvSharding does nothing here: one thread has all streams",
        ),
        (
            requests.outstanding_sends.is_some(),
            "-PrePostSends does nothing here: a send is over when the kernel has taken it",
        ),
        (
            requests.outstanding_receives.is_some(),
            "-PrePostRecvs does nothing here: a receive is over when anything has come",
        ),
        (
            options.output.verbosity == Some(6),
            "-ConsoleVerbosity:6 prints no more than 5 here: there is no trace of states",
        ),
        (
            is_udp(options) && options.output.tcp_info_file.is_some(),
            "-TcpInfoFilename does nothing with -Protocol:UDP",
        ),
    ];
    let given = notes.into_iter().filter(|(is_given, _)| *is_given);
    let sentences: Vec<String> = given.map(|(_, sentence)| sentence.to_owned()).collect();
    options.notes.extend(sentences);
}

#[cfg(test)]
mod tests;
