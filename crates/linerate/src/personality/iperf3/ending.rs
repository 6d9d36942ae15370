//! The end of a test in JSON.
//!
//! What this end doesn't know of the other one is absent; the original prints zeros there.

use linerate_engine::iperf3::{Report, Role, Start};
use linerate_wire::iperf3::Protocol;

use super::context::Context;
use super::document::{amounts, loss, span};
use super::json::{Fields, Json};
use super::sum::{self, Datagrams, Stream, Sum, rate, streams};
use super::text::directions;

/// The end of a test.
pub(super) fn end(context: &Context, start: &Start, report: &Report) -> Fields {
    let udp = start.parameters.protocol == Protocol::Udp;
    let directions: Vec<bool> = directions(start).collect();
    let of_streams: Vec<Json> = directions
        .iter()
        .flat_map(|sends| streams(report).filter(move |stream| stream.sends() == *sends))
        .map(|stream| match udp {
            true => datagram_stream(&stream),
            false => tcp_stream(context, start.role, &stream),
        })
        .collect();
    let mut fields = Fields::new().with("streams", of_streams);
    for (sends, suffix) in directions.iter().zip(["", "_bidir_reverse"]) {
        fields = fields.and(sums(report, *sends, udp, suffix));
    }
    let local = sum::cpu_percent(&report.own).unwrap_or_default();
    let mut cpu = Fields::new()
        .with("host_total", local.total)
        .with("host_user", local.user)
        .with("host_system", local.system);
    if let Some(remote) = report.peer.as_ref().and_then(sum::cpu_percent) {
        cpu = cpu
            .with("remote_total", remote.total)
            .with("remote_user", remote.user)
            .with("remote_system", remote.system);
    }
    let fields = fields.with("cpu_utilization_percent", cpu);
    if udp { fields } else { fields.and(congestion(report, &directions)) }
}

/// What was used where it is known. In both directions it is that of the last one, as the original has it.
fn congestion(report: &Report, directions: &[bool]) -> Fields {
    let sends = directions.last() == Some(&true);
    // A server tells its own alone.
    let remote = report.peer.as_ref().and_then(sum::congestion);
    let remote = remote.filter(|_| report.own.role == Role::Client);
    let local = sum::congestion(&report.own);
    let (sender, receiver) = if sends { (local, remote) } else { (remote, local) };
    Fields::new()
        .with_some("sender_tcp_congestion", sender)
        .with_some("receiver_tcp_congestion", receiver)
}

fn tcp_stream(context: &Context, role: Role, stream: &Stream<'_>) -> Json {
    let sender = stream.sender().map(|totals| {
        let fields = total(Some(stream.socket()), totals.bytes, totals.seconds);
        // A server tells no more of a client that sends; its own figures it tells.
        let fields = match role == Role::Client || stream.sends() {
            true => sender_figures(context, stream, &totals, fields),
            false => fields,
        };
        fields.with("sender", stream.sends())
    });
    let receiver = stream.receiver().map(|totals| {
        total(Some(stream.socket()), totals.bytes, totals.seconds).with("sender", stream.sends())
    });
    Fields::new()
        .with_some("sender", sender)
        .with_some("diskfile", diskfile(context, stream))
        .with_some("receiver", receiver)
        .into()
}

fn sender_figures(context: &Context, stream: &Stream<'_>, totals: &Sum, fields: Fields) -> Fields {
    let Some(retransmits) = totals.retransmits else { return fields };
    let fields = fields.with("retransmits", retransmits);
    // What the kernel says of a sender at the other end doesn't cross the wire. The original's
    // zeros stay here, since readers with fixed types want the fields; the compat page says so.
    let tcp = stream.extremes().unwrap_or_default();
    fields
        .with_if(context.release.is_new(), "reorder", tcp.reorder)
        .with("max_snd_cwnd", tcp.max_snd_cwnd_bytes)
        .with("max_snd_wnd", tcp.max_snd_wnd_bytes)
        .with("max_rtt", tcp.max_rtt_us)
        .with("min_rtt", tcp.min_rtt_us)
        .with("mean_rtt", tcp.mean_rtt_us)
}

/// How much of a file went. One without content went as a whole.
pub(super) fn file_percent(bytes: u64, size: u64) -> u64 {
    bytes.saturating_mul(100).checked_div(size).unwrap_or(100)
}

fn diskfile(context: &Context, stream: &Stream<'_>) -> Option<Fields> {
    let path = context.file.as_ref()?;
    let size = std::fs::metadata(path).ok()?.len();
    let percent = |bytes: u64| file_percent(bytes, size);
    let sent = stream.sender().map(|totals| totals.bytes);
    let received = stream.receiver().map(|totals| totals.bytes);
    Some(
        Fields::new()
            .with_some("sent", sent)
            .with_some("received", received)
            .with("size", size)
            .with_some("percent_sent", sent.map(percent))
            .with_some("percent_received", received.map(percent))
            .with("filename", path.display().to_string()),
    )
}

/// A stream of datagrams: what was sent, and what became of it.
fn datagram_stream(stream: &Stream<'_>) -> Json {
    let received = stream.receiver().and_then(|totals| totals.datagrams);
    let shown = stream.sender().unwrap_or_else(|| stream.local());
    let mut figures = received.or(shown.datagrams.map(with_unknown_loss)).unwrap_or_default();
    if let Some(sent) = stream.sender().and_then(|totals| totals.datagrams) {
        figures.packets = sent.packets;
    }
    let udp = total(Some(stream.socket()), shown.bytes, shown.seconds)
        .and(loss(&figures))
        .with("out_of_order", figures.out_of_order)
        .with("sender", stream.sends());
    Fields::new().with("udp", udp).into()
}

/// The sums of one direction.
fn sums(report: &Report, sends: bool, udp: bool, suffix: &str) -> Fields {
    let streams = || streams(report).filter(move |stream| stream.sends() == sends);
    let sent = Sum::of(streams().map(|stream| stream.sender()));
    let received = Sum::of(streams().map(|stream| stream.receiver()));
    let mut fields = Fields::new();
    if udp {
        // What arrived is the result; the original mixes both ends' figures here.
        let of_sender =
            sent.map(|sum| Sum { datagrams: sum.datagrams.map(with_unknown_loss), ..sum });
        let result = received.or(of_sender).map(|sum| of_datagrams(&sum, sends));
        fields = fields.with_some(&format!("sum{suffix}"), result);
        let sent = sent.map(|sum| of_datagrams(&without_loss(sum), true));
        let received = received.map(|sum| of_datagrams(&sum, false));
        return fields
            .with_some(&format!("sum_sent{suffix}"), sent)
            .with_some(&format!("sum_received{suffix}"), received);
    }
    let sent = sent.map(|sum| {
        let retransmits = sum.retransmits.filter(|_| report.own.role == Role::Client || sends);
        total(None, sum.bytes, sum.seconds)
            .with_some("retransmits", retransmits)
            .with("sender", sends)
    });
    let received = received.map(|sum| total(None, sum.bytes, sum.seconds).with("sender", sends));
    fields = fields.with_some(&format!("sum_sent{suffix}"), sent);
    fields.with_some(&format!("sum_received{suffix}"), received)
}

fn of_datagrams(sum: &Sum, sender: bool) -> Fields {
    let figures = sum.datagrams.unwrap_or_default();
    total(None, sum.bytes, sum.seconds).and(loss(&figures)).with("sender", sender)
}

/// Of a sender whose receiver told nothing.
fn with_unknown_loss(figures: Datagrams) -> Datagrams {
    Datagrams { lost: None, ..figures }
}

fn without_loss(sum: Sum) -> Sum {
    Sum { datagrams: sum.datagrams.map(|figures| Datagrams::sent(figures.packets)), ..sum }
}

fn total(socket: Option<u32>, bytes: u64, seconds: f64) -> Fields {
    Fields::new()
        .with_some("socket", socket)
        .and(span(0.0, seconds, seconds))
        .and(amounts(bytes, rate(bytes, seconds)))
}
