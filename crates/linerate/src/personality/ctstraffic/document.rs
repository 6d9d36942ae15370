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

/// The most connections, and the most rows of status, that a document has. Peers decide how many there are; lines have
/// them all.
const MOST_LISTED: usize = 10_000;

/// What is said of a document that doesn't have all.
pub(super) const CUT: &str = "the document has the first 10000 connections and rows of status, and the number of others; \
     --ndjson prints each";

/// A document, or lines of it.
pub(super) struct Document {
    /// Whether each part is a line as it comes.
    in_lines: bool,
    connections: Vec<Value>,
    status: Vec<Value>,
    /// Connections and rows of status beyond these.
    unlisted: (u64, u64),
}

impl Document {
    /// The document that is asked for, if any.
    pub(super) fn of(options: &Options) -> Option<Self> {
        let own = &options.own;
        let (connections, status) = (Vec::new(), Vec::new());
        let (in_lines, unlisted) = (own.ndjson, (0, 0));
        (own.json || own.ndjson).then_some(Self { in_lines, connections, status, unlisted })
    }

    /// A part of it: a `connection` that is over, or a row of `status`.
    pub(super) fn tell(&mut self, event: &str, part: Value) {
        match event {
            _ if self.in_lines => say(&line(event, part)),
            "connection" => list(&mut self.connections, &mut self.unlisted.0, part),
            _ => list(&mut self.status, &mut self.unlisted.1, part),
        }
    }

    /// Whether something isn't listed.
    pub(super) fn is_cut(&self) -> bool {
        self.unlisted != (0, 0)
    }

    /// The whole, or its last line.
    pub(super) fn conclude(&mut self, mut result: Value) {
        if self.in_lines {
            return say(&line("result", result));
        }
        if let Value::Object(fields) = &mut result {
            fields.insert("connections".to_owned(), std::mem::take(&mut self.connections).into());
            fields.insert("status".to_owned(), std::mem::take(&mut self.status).into());
            let (connections, status) = self.unlisted;
            let unlisted = json!({ "connections": connections, "status": status });
            fields.insert("unlisted".to_owned(), unlisted);
        }
        say(&format!("{result:#}\n"));
    }
}

/// Adds a part where there is room, or counts it.
fn list(parts: &mut Vec<Value>, unlisted: &mut u64, part: Value) {
    match parts.len() < MOST_LISTED {
        true => parts.push(part),
        false => *unlisted += 1,
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
        "socket_drops": end.socket_drops,
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
        "socket_drops": totals.socket_drops,
        "queue_drops": totals.queue_drops,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_lists_so_many_and_counts_the_rest() {
        let mut document = Document {
            in_lines: false,
            connections: Vec::new(),
            status: Vec::new(),
            unlisted: (0, 0),
        };
        for number in 0..MOST_LISTED + 5 {
            assert_eq!(document.is_cut(), number > MOST_LISTED);
            document.tell("connection", number.into());
        }
        document.tell("status", 1.into());
        assert_eq!((document.connections.len(), document.status.len()), (MOST_LISTED, 1));
        assert_eq!(document.unlisted, (5, 0));
        assert!(CUT.contains(&MOST_LISTED.to_string()));
    }
}
