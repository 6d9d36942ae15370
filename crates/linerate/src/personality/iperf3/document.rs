//! The JSON of a test: its beginning, its intervals, its end.

use linerate_engine::iperf3::{Control, Role, Start, Stream};
use linerate_measure::sample::FlowSample;
use linerate_wire::iperf3::{Parameters, Protocol};

use super::context::Context;
use super::json::{Fields, Json};
use super::moment::render_gmt;
use super::sum::{Datagrams, Interval, Sum, socket_of};

/// What is known before anything is connected.
pub(super) fn start_of_nothing(context: &Context) -> Fields {
    Fields::new()
        .with("connected", Vec::new())
        .with("version", context.release.title())
        .with("system_info", context.system.as_str())
}

/// What is known of a test that the server refused after a look at it.
pub(super) fn start_of_refused(
    context: &Context,
    control: &Control,
    parameters: &Parameters,
) -> Fields {
    start_of_nothing(context)
        .and(peer(context, Some(control)))
        .and(segment(Some(control), parameters))
        .with("target_bitrate", parameters.bandwidth_bps)
        .with_if(context.release.is_new(), "fq_rate", parameters.fq_rate_bps)
}

/// A test's beginning.
pub(super) fn start(context: &Context, control: Option<&Control>, start: &Start) -> Fields {
    let parameters = &start.parameters;
    let buffers = Fields::new()
        .with("sock_bufsize", parameters.window_bytes.unwrap_or(0))
        .with("sndbuf_actual", start.send_buffer_bytes)
        .with("rcvbuf_actual", start.receive_buffer_bytes);
    let connected: Vec<Json> = start.streams.iter().map(connected).collect();
    let head = Fields::new()
        .with("connected", connected)
        .with("version", context.release.title())
        .with("system_info", context.system.as_str());
    let is_paced = parameters.bandwidth_bps > 0;
    let rate = Fields::new().with("target_bitrate", parameters.bandwidth_bps);
    let pacing = Fields::new().with_if(context.release.is_new(), "fq_rate", parameters.fq_rate_bps);
    let peer = peer(context, control);
    let segment = segment(control, parameters);
    // The original's server says some of it earlier than its client: a rate when it learns of it.
    let (early, late) = match start.role == Role::Server && is_paced {
        true => (rate, Fields::new()),
        false => (Fields::new(), rate),
    };
    let facts = peer.and(segment).and(late).and(pacing);
    let fields = match (start.role, parameters.protocol) {
        (Role::Server, Protocol::Tcp) => head.and(early).and(buffers).and(facts),
        _ => head.and(early).and(facts).and(buffers),
    };
    fields.with("test_start", test_start(context, parameters))
}

fn connected(stream: &Stream) -> Json {
    Fields::new()
        .with("socket", stream.socket)
        .with("local_host", stream.local.ip().to_canonical().to_string())
        .with("local_port", stream.local.port())
        .with("remote_host", stream.remote.ip().to_canonical().to_string())
        .with("remote_port", stream.remote.port())
        .into()
}

/// When, with whom, and the test's name.
fn peer(context: &Context, control: Option<&Control>) -> Fields {
    let Some(control) = control else { return Fields::new() };
    let millis = control.utc_ns.div_euclid(1_000_000);
    let time = Fields::new()
        .with("time", render_gmt(control.utc_ns))
        .with("timesecs", millis.div_euclid(1000))
        .with_if(context.release.is_new(), "timemillisecs", millis);
    let (name, host, port) = match control.role {
        Role::Client => ("connecting_to", context.host.clone().unwrap_or_default(), context.port),
        Role::Server => {
            let remote = control.remote;
            ("accepted_connection", remote.ip().to_canonical().to_string(), remote.port())
        }
    };
    Fields::new()
        .with("timestamp", time)
        .with(name, Fields::new().with("host", host).with("port", port))
        .with("cookie", control.cookie.text())
}

fn segment(control: Option<&Control>, parameters: &Parameters) -> Fields {
    if parameters.protocol != Protocol::Tcp {
        return Fields::new();
    }
    match parameters.mss_bytes {
        Some(mss_bytes) => Fields::new().with("tcp_mss", mss_bytes),
        None => {
            let mss_bytes = control.and_then(|control| control.mss_bytes);
            Fields::new().with_some("tcp_mss_default", mss_bytes)
        }
    }
}

fn test_start(context: &Context, parameters: &Parameters) -> Fields {
    let protocol = match parameters.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    let fields = Fields::new()
        .with("protocol", protocol)
        .with("num_streams", parameters.parallel)
        .with("blksize", parameters.block_bytes)
        .with("omit", parameters.omit_s)
        .with("duration", parameters.time_s)
        .with("bytes", parameters.num_bytes)
        .with("blocks", parameters.block_count)
        .with("reverse", u8::from(parameters.reverse))
        .with("tos", parameters.tos)
        .with("target_bitrate", parameters.bandwidth_bps);
    if !context.release.is_new() {
        return fields;
    }
    fields
        .with("bidir", u8::from(parameters.bidirectional))
        .with("fqrate", parameters.fq_rate_bps)
        .with("interval", context.interval_s)
        .with("gso", u8::from(parameters.offload.gso))
        .with("gro", u8::from(parameters.offload.gro))
}

/// An interval.
pub(super) fn interval(context: &Context, start: &Start, interval: &Interval<'_>) -> Fields {
    let directions: Vec<bool> = super::text::directions(start).collect();
    let streams: Vec<Json> = directions
        .iter()
        .flat_map(|sends| interval.direction(*sends))
        .map(|flow| interval_stream(context, interval, flow))
        .collect();
    let mut fields = Fields::new().with("streams", streams);
    for (sends, name) in directions.iter().zip(["sum", "sum_bidir_reverse"]) {
        let sum = interval.sum(*sends);
        fields = fields.with_some(name, sum.map(|sum| interval_sum(interval, *sends, &sum)));
    }
    fields
}

fn interval_stream(context: &Context, interval: &Interval<'_>, flow: &FlowSample) -> Json {
    let sends = flow.sent_bytes.is_some();
    let stream = Sum::of_interval_flow(flow, interval.seconds());
    let sent_tcp = stream.retransmits.filter(|_| sends && stream.datagrams.is_none());
    let mut fields = Fields::new()
        .with("socket", socket_of(flow.flow))
        .and(span(interval.start_s, interval.end_s, interval.seconds()))
        .and(amounts(stream.bytes, stream.rate()))
        .with_some("retransmits", sent_tcp);
    if let Some(tcp) = flow.tcp.filter(|_| sent_tcp.is_some()) {
        let reorder = tcp.reordering_seen.unwrap_or(0);
        fields = fields
            .with("snd_cwnd", tcp.cwnd_bytes())
            .with("snd_wnd", tcp.snd_wnd_bytes.unwrap_or(0))
            .with("rtt", tcp.rtt_us)
            .with("rttvar", tcp.rtt_var_us)
            .with("pmtu", tcp.pmtu_bytes)
            .with_if(context.release.is_new(), "reorder", reorder);
    }
    if let Some(figures) = &stream.datagrams {
        fields = fields.and(datagrams(figures, sends));
    }
    fields.with("omitted", interval.sample.warm_up).with("sender", sends).into()
}

fn interval_sum(interval: &Interval<'_>, sends: bool, sum: &Sum) -> Json {
    let sent_tcp = sum.retransmits.filter(|_| sends && sum.datagrams.is_none());
    let mut fields = span(interval.start_s, interval.end_s, interval.seconds())
        .and(amounts(sum.bytes, sum.rate()))
        .with_some("retransmits", sent_tcp);
    if let Some(figures) = &sum.datagrams {
        fields = fields.and(datagrams(figures, sends));
    }
    fields.with("omitted", interval.sample.warm_up).with("sender", sends).into()
}

/// Of datagrams sent only how many; of those received also what became of them.
fn datagrams(figures: &Datagrams, sends: bool) -> Fields {
    if sends { Fields::new().with("packets", figures.packets) } else { loss(figures) }
}

/// Jitter, and loss where it is known.
pub(super) fn loss(figures: &Datagrams) -> Fields {
    Fields::new()
        .with("jitter_ms", figures.jitter_ms())
        .with_some("lost_packets", figures.lost)
        .with("packets", figures.packets)
        .with_some("lost_percent", figures.lost_percent())
}

/// From when to when, seconds; the ends to the microsecond.
pub(super) fn span(start_s: f64, end_s: f64, seconds: f64) -> Fields {
    let micro = |value: f64| (value * 1e6).round() / 1e6;
    Fields::new().with("start", micro(start_s)).with("end", micro(end_s)).with("seconds", seconds)
}

/// Bytes, and bits a second.
pub(super) fn amounts(bytes: u64, bytes_per_second: f64) -> Fields {
    Fields::new().with("bytes", bytes).with("bits_per_second", bytes_per_second * 8.0)
}
