//! What `--json` and `--ndjson` print in place of the console's lines.

use linerate_engine::ctstraffic::{TcpConnectionEnd, TcpRun, TcpStatus};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::connection::Outcome;
use serde::Serialize;
use serde_json::{Value, json};

use super::{NAME, say};

/// A document, or lines of it.
pub(super) struct Document {
    /// Whether each part is a line as it comes.
    in_lines: bool,
    connections: Vec<Connection>,
    status: Vec<Status>,
}

/// A connection that is over.
#[derive(Clone, Serialize)]
struct Connection {
    time_ms: u64,
    local: Option<String>,
    remote: Option<String>,
    id: Option<String>,
    sent_bytes: u64,
    received_bytes: u64,
    elapsed_us: u64,
    /// As files have it.
    result: String,
}

/// A row of status.
#[derive(Clone, Serialize)]
struct Status {
    time_ms: u64,
    slice_ms: u64,
    sent_bytes: u64,
    received_bytes: u64,
    in_flight: u64,
    completed: u64,
    network_errors: u64,
    data_errors: u64,
}

impl Document {
    /// The document that is asked for, if any.
    pub(super) fn of(options: &Options) -> Option<Self> {
        let own = &options.own;
        (own.json || own.ndjson).then(|| Self {
            in_lines: own.ndjson,
            connections: Vec::new(),
            status: Vec::new(),
        })
    }

    pub(super) fn tell_connection(&mut self, end: &TcpConnectionEnd) {
        let connection = Connection {
            time_ms: end.at_ns / 1_000_000,
            local: end.addresses.map(|(local, _)| local.to_string()),
            remote: end.addresses.map(|(_, remote)| remote.to_string()),
            id: end.id.map(|id| id.text()),
            sent_bytes: end.sent_bytes,
            received_bytes: end.received_bytes,
            elapsed_us: end.elapsed_ns / 1000,
            result: Outcome::of(end.fault).cell(),
        };
        match self.in_lines {
            true => say(&line("connection", &connection)),
            false => self.connections.push(connection),
        }
    }

    pub(super) fn tell_status(&mut self, status: &TcpStatus) {
        let totals = status.totals;
        let status = Status {
            time_ms: status.at_ns / 1_000_000,
            slice_ms: status.slice_ns / 1_000_000,
            sent_bytes: status.sent_bytes,
            received_bytes: status.received_bytes,
            in_flight: totals.open,
            completed: totals.completed,
            network_errors: totals.network_errors,
            data_errors: totals.data_errors,
        };
        match self.in_lines {
            true => say(&line("status", &status)),
            false => self.status.push(status),
        }
    }

    /// The document, or its last line.
    pub(super) fn render(&mut self, run: &TcpRun, exit_code: u8) -> String {
        let elapsed_s = (run.elapsed_ns.max(1)) as f64 / 1e9;
        let bps = |bytes: u64| (bytes as f64 * 8.0 / elapsed_s) as u64;
        let result = json!({
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
            "exit_code": exit_code,
        });
        if self.in_lines {
            return line("result", &result);
        }
        let mut document = result;
        if let Value::Object(fields) = &mut document {
            fields.insert("connections".to_owned(), json!(self.connections));
            fields.insert("status".to_owned(), json!(self.status));
        }
        serde_json::to_string_pretty(&document).map_or_else(|_| String::new(), |text| text + "\n")
    }
}

/// A line with the event's name first.
fn line(event: &str, of: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        #[serde(flatten)]
        of: &'a T,
    }
    let text = serde_json::to_string(&Line { event, of });
    text.map_or_else(|_| String::new(), |text| text + "\n")
}
