//! What `--json` and `--ndjson` print in place of the console's lines.

use linerate_engine::ctstraffic::{
    MediaRun, MediaStatus, MediaStreamEnd, TcpConnectionEnd, TcpRun, TcpStatus,
};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::connection::Outcome;
use linerate_personality::ctstraffic::output::status::slice_ms;
use linerate_wire::ctstraffic::media::receiver::FrameCounts;
use serde_json::{Value, json};

use super::{NAME, say};

/// A document, or lines of it.
pub(super) struct Document {
    /// Whether each part is a line as it comes.
    in_lines: bool,
    connections: Vec<Value>,
    status: Vec<Value>,
}

impl Document {
    /// The document that is asked for, if any.
    pub(super) fn of(options: &Options) -> Option<Self> {
        let own = &options.own;
        let (connections, status) = (Vec::new(), Vec::new());
        (own.json || own.ndjson).then_some(Self { in_lines: own.ndjson, connections, status })
    }

    /// A part of it: a `connection` that is over, or a row of `status`.
    pub(super) fn tell(&mut self, event: &str, part: Value) {
        match event {
            _ if self.in_lines => say(&line(event, part)),
            "connection" => self.connections.push(part),
            _ => self.status.push(part),
        }
    }

    /// The whole, or its last line.
    pub(super) fn conclude(&mut self, mut result: Value) {
        if self.in_lines {
            return say(&line("result", result));
        }
        if let Value::Object(fields) = &mut result {
            fields.insert("connections".to_owned(), std::mem::take(&mut self.connections).into());
            fields.insert("status".to_owned(), std::mem::take(&mut self.status).into());
        }
        say(&format!("{result:#}\n"));
    }
}

/// A line with the event's name.
fn line(event: &str, mut part: Value) -> String {
    if let Value::Object(fields) = &mut part {
        fields.insert("event".to_owned(), event.into());
    }
    format!("{part}\n")
}

pub(super) fn render_tcp_end(end: &TcpConnectionEnd) -> Value {
    json!({
        "time_ms": end.at_ns / 1_000_000,
        "local": end.addresses.map(|(local, _)| local),
        "remote": end.addresses.map(|(_, remote)| remote),
        "id": end.id.map(|id| id.text()),
        "sent_bytes": end.sent_bytes,
        "received_bytes": end.received_bytes,
        "elapsed_us": end.elapsed_ns / 1000,
        "result": Outcome::of(end.fault).cell(),
    })
}

pub(super) fn render_tcp_status(status: &TcpStatus) -> Value {
    let totals = status.totals;
    json!({
        "time_ms": status.at_ns / 1_000_000,
        "slice_ms": slice_ms(status.at_ns, status.slice_ns),
        "sent_bytes": status.sent_bytes,
        "received_bytes": status.received_bytes,
        "in_flight": totals.open,
        "completed": totals.completed,
        "network_errors": totals.network_errors,
        "data_errors": totals.data_errors,
    })
}

pub(super) fn render_tcp_run(run: &TcpRun, exit_code: u8) -> Value {
    let elapsed_s = (run.elapsed_ns.max(1)) as f64 / 1e9;
    let bps = |bytes: u64| (bytes as f64 * 8.0 / elapsed_s) as u64;
    json!({
        "tool": NAME,
        "protocol": "tcp",
        "elapsed_us": run.elapsed_ns / 1000,
        "completed": run.totals.completed,
        "network_errors": run.totals.network_errors,
        "data_errors": run.totals.data_errors,
        "sent_bytes": run.sent_bytes,
        "received_bytes": run.received_bytes,
        "send_bps": bps(run.sent_bytes),
        "receive_bps": bps(run.received_bytes),
        "lost_events": run.lost_events,
        "exit_code": exit_code,
    })
}

pub(super) fn render_stream_end(end: &MediaStreamEnd) -> Value {
    let part = json!({
        "time_ms": end.at_ns / 1_000_000,
        "local": end.addresses.0,
        "remote": end.addresses.1,
        "id": end.id.map(|id| id.text()),
        "elapsed_us": end.elapsed_ns / 1000,
        "result": Outcome::of(end.fault).cell(),
    });
    with_frames(part, &end.counts)
}

pub(super) fn render_stream_status(status: &MediaStatus) -> Value {
    let part = json!({
        "time_ms": status.at_ns / 1_000_000,
        "slice_ms": slice_ms(status.at_ns, status.slice_ns),
        "streams": status.streams,
    });
    with_frames(part, &status.counts)
}

pub(super) fn render_stream_run(run: &MediaRun, exit_code: u8) -> Value {
    let totals = &run.totals;
    let part = json!({
        "tool": NAME,
        "protocol": "udp",
        "elapsed_us": run.elapsed_ns / 1000,
        "completed": totals.completed,
        "network_errors": totals.network_errors,
        "data_errors": totals.protocol_errors,
        "refused": totals.refused,
        "lost_events": run.lost_events,
        "exit_code": exit_code,
    });
    with_frames(part, &totals.counts)
}

/// The part with frames by kind.
fn with_frames(mut part: Value, counts: &FrameCounts) -> Value {
    let FrameCounts { completed, dropped, repeated, errors, bits } = *counts;
    let frames = json!({
        "completed": completed, "dropped": dropped, "repeated": repeated, "errors": errors,
    });
    if let Value::Object(fields) = &mut part {
        fields.insert("frames".to_owned(), frames);
        fields.insert("bits".to_owned(), bits.into());
    }
    part
}
