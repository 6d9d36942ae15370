//! The settings, as they are printed at the start of a run.

use std::net::SocketAddr;

use linerate_wire::ctstraffic::Pattern;
use linerate_wire::ctstraffic::Span;

use crate::ctstraffic::options::{Affinity, Options, Protocol};

/// The addresses of a run, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAddresses<'a> {
    /// Where a server listens.
    Server(&'a [SocketAddr]),
    /// Where a client connects to, and from where.
    Client {
        /// The targets.
        targets: &'a [SocketAddr],
        /// The local addresses.
        binds: &'a [SocketAddr],
    },
}

/// The settings, with an empty line behind them.
pub fn render_banner(options: &Options, addresses: RunAddresses<'_>) -> String {
    let mut lines = Vec::new();
    push_common(&mut lines, options);
    push_amounts(&mut lines, options);
    push_limits(&mut lines, options);
    match addresses {
        RunAddresses::Server(listening) => push_server(&mut lines, options, listening),
        RunAddresses::Client { targets, binds } => {
            push_client(&mut lines, options, targets, binds);
        }
    }
    let group = match options.run.cpu_group {
        Some(node) => format!("Affinitized to the CPUs of NUMA node {node}"),
        None => "Affinitized to all CPUs".to_owned(),
    };
    lines.push(group);
    push_shards(&mut lines, options);
    let lines: String = lines.into_iter().map(|line| format!("\t{line}\n")).collect();
    format!("  Configured Settings  \n-----------------------\n{lines}\n")
}

fn push_common(lines: &mut Vec<String>, options: &Options) {
    let is_udp = options.run.protocol == Protocol::Udp;
    lines.push(format!("Protocol: {}", if is_udp { "UDP" } else { "TCP" }));
    lines.push(format!("Options: {}", socket_options(options)));
    let function = match (is_udp, options.is_server()) {
        (false, _) => "Epoll (send/recv using epoll)",
        (true, false) => "MediaStream Client",
        (true, true) => "MediaStream Server",
    };
    lines.push(format!("IO function: {function}"));
    let pattern = match options.pattern() {
        _ if is_udp => "MediaStream <UDP controlled stream from server to client>",
        Pattern::Push => "Push <TCP client send/server recv>",
        Pattern::Pull => "Pull <TCP client recv/server send>",
        Pattern::PushPull => "PushPull <TCP client/server alternate send/recv>",
        Pattern::Duplex => "Duplex <TCP client/server both sending and receiving>",
    };
    lines.push(format!("IoPattern: {pattern}"));
    if options.pattern() == Pattern::PushPull {
        let (push, pull) = options.segment_bytes();
        lines.push(format!("\tPushBytes: {push}"));
        lines.push(format!("\tPullBytes: {pull}"));
    }
    lines.push(format!("PrePostRecvs: {}", options.outstanding_receives()));
    let sends = match options.outstanding_sends() {
        0 => "Following Ideal Send Backlog".to_owned(),
        count => count.to_string(),
    };
    lines.push(format!("PrePostSends: {sends}"));
    let verified = if options.verifies_data() { "Connections & Data" } else { "Connections" };
    lines.push(format!("Level of verification: {verified}"));
    lines.push(format!("Port: {}", options.port()));
}

/// What is set on sockets.
fn socket_options(options: &Options) -> String {
    let sockets = &options.sockets;
    let mut words = Vec::new();
    if options.has_keepalive() {
        let idle = sockets.keepalive_idle_ms.map(|ms| format!(" ({ms})")).unwrap_or_default();
        words.push(format!("KeepAlive{idle}"));
    }
    words.push("NonBlockingIO".to_owned());
    if options.hosts.port_scalability {
        words.push("PortScalability".to_owned());
    }
    let buffers =
        [("SO_RCVBUF", options.receive_buffer_bytes()), ("SO_SNDBUF", sockets.send_buffer_bytes)];
    for (name, bytes) in buffers {
        words.extend(bytes.map(|bytes| format!("{name}({bytes})")));
    }
    words.join(" ")
}

fn push_amounts(lines: &mut Vec<String>, options: &Options) {
    let shape = options.stream_shape().and_then(Result::ok);
    let buffer = shape.map_or(options.buffer_bytes(), |shape| Span::of(shape.frame_bytes.into()));
    let total = shape.map_or(options.total_bytes(), |shape| Span::of(shape.total_bytes()));
    let buffer = match buffer {
        Span { low, high } if low == high => format!("{low} [{low:#x}]"),
        Span { low, high } => format!("[{low}, {high}]"),
    };
    lines.push(format!("Buffer used for each IO request: {buffer} bytes"));
    lines.push(format!("Total transfer per connection: {} bytes", render_span(total)));
    let Some(shape) = shape else { return };
    let bits = options.stream.bits_per_s.unwrap_or_default() / 8 * 8;
    let length_s = options.stream.length_s.unwrap_or_default();
    lines.push(format!("\tUDP Stream BitsPerSecond: {bits} bits per second"));
    lines.push(format!("\tUDP Stream FrameRate: {} frames per second", shape.frame_rate));
    lines.push(format!("\tUDP Stream BufferDepth: {} seconds", options.depth_s()));
    let frames = shape.frames;
    lines.push(format!("\tUDP Stream StreamLength: {length_s} seconds ({frames} frames)"));
    lines.push(format!("\tUDP Stream FrameSize: {} bytes", shape.frame_bytes));
}

fn push_limits(lines: &mut Vec<String>, options: &Options) {
    let transfer = &options.transfer;
    if let Some(rate) = transfer.rate_limit {
        let (rate, period) = (render_span(rate), options.rate_period_ms());
        lines.push(format!("Sending throughput rate limited to {rate} bytes/second ({period} ms)"));
    }
    if let (Some(count), Some(delay)) = (transfer.burst_count, transfer.burst_delay_ms) {
        lines.push(format!("Sending in bursts of {count}, {delay} ms apart"));
    }
    if let Some(device) = &options.hosts.compartment {
        lines.push(format!("IP Compartment: {device}"));
    }
    if let Some(dscp) = options.sockets.dscp {
        lines.push(format!("QosDscpValue: {dscp}"));
    }
}

fn push_server(lines: &mut Vec<String>, options: &Options, listening: &[SocketAddr]) {
    lines.push("Accepting connections on addresses:".to_owned());
    lines.extend(listening.iter().map(|address| format!("\t{address}")));
    let limit = render_limit(options.server_exit_limit());
    lines.push(format!("Server-accepted connections before exit : {limit}"));
}

fn push_client(
    lines: &mut Vec<String>,
    options: &Options,
    targets: &[SocketAddr],
    binds: &[SocketAddr],
) {
    if let Some(index) = options.hosts.interface_index {
        lines.push(format!("InterfaceIndex: {index}"));
    }
    lines.push("Connecting out to addresses:".to_owned());
    lines.extend(targets.iter().map(|address| format!("\t{address}")));
    lines.push("Binding to local addresses for outgoing connections:".to_owned());
    lines.extend(binds.iter().map(|address| format!("\t{}", without_port(address))));
    if let Some(ports) = options.hosts.local_ports {
        let ports = render_span(ports);
        lines.push(format!("Using local port for outgoing connections: {ports}"));
    }
    let connections = render_limit(Some(options.connections().into()));
    lines.push(format!("Connection limit (maximum established connections): {connections}"));
    let throttle = render_limit(options.throttle().map(u64::from));
    lines.push(format!(
        "Connection throttling rate (maximum pended connection attempts): {throttle}"
    ));
    let total = render_limit(options.total_connections());
    lines.push(format!(
        "Total outgoing connections before exit (iterations * concurrent connections) : {total}"
    ));
}

fn push_shards(lines: &mut Vec<String>, options: &Options) {
    let shards = &options.shards;
    if shards.sharding != Some(true) {
        return;
    }
    let affinity = match shards.affinity.unwrap_or(Affinity::PerCpu) {
        Affinity::PerCpu => "PerCpu",
        Affinity::PerGroup => "PerGroup",
        Affinity::RssAligned => "RssAligned",
        Affinity::Manual => "Manual",
    };
    lines.push("Receive sharding:".to_owned());
    let count = match shards.shards {
        None | Some(0) => "one for each CPU".to_owned(),
        Some(count) => count.to_string(),
    };
    lines.push(format!("\tShardCount: {count}"));
    lines.push(format!("\tShardWorkerCount: {}", shards.workers.unwrap_or(1)));
    lines.push(format!("\tIocpBatchSize: {}", shards.batch.unwrap_or(64)));
    lines.push(format!("\tAffinityPolicy: {affinity}"));
}

/// A number, or a range.
fn render_span(span: Span) -> String {
    match span {
        Span { low, high } if low == high => low.to_string(),
        Span { low, high } => format!("[{low}, {high}]"),
    }
}

/// A limit in decimal and hexadecimal digits; a large one, or none, in hexadecimal ones only.
fn render_limit(limit: Option<u64>) -> String {
    match limit.unwrap_or(u64::MAX) {
        number if number > i32::MAX as u64 => format!("{number:#x}"),
        number => format!("{number} [{number:#x}]"),
    }
}

fn without_port(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        other => other.ip().to_string(),
    }
}

#[cfg(test)]
mod tests;
