//! What happens over TCP, as lines on the console and in files.

use linerate_engine::ctstraffic::{TcpConnectionEnd, TcpEvent, TcpRun, TcpStatus};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::{RunAddresses, render_banner};
use linerate_personality::ctstraffic::output::connection::{
    Ends, Outcome, TCP_CSV_HEAD as CONNECTION_HEAD, TcpConnection,
};
use linerate_personality::ctstraffic::output::status::{
    HEAD_EVERY_ROWS, TCP_CSV_HEAD as STATUS_HEAD, TCP_HEAD, TcpStatus as StatusRow, render_head,
};
use linerate_personality::ctstraffic::output::summary::{RunTotals, Transferred, render_summary};
use linerate_personality::ctstraffic::output::tcp_info::{self, TcpInfo};
use linerate_personality::ctstraffic::output::verbosity::Verbosity;
use linerate_personality::ctstraffic::output::{error, legend};
use linerate_wire::ctstraffic::Role;
use linerate_wire::ctstraffic::connection::Fault;
use linerate_wire::ctstraffic::transfer::Pattern;

use super::document::Document;
use super::files::Files;
use super::{NAME, say};
use crate::output::narrate;

/// Writes lines as things happen.
pub(super) struct TcpPrinter<'a> {
    options: &'a Options,
    files: Files,
    verbosity: Verbosity,
    /// In the place of the console's lines.
    document: Option<Document>,
    /// Rows of status on the console so far.
    rows: u64,
    /// Whether the run goes on: what somebody stops says nothing more.
    pub(super) goes_on: bool,
    /// Faults that were explained.
    explained: Vec<&'static str>,
}

impl<'a> TcpPrinter<'a> {
    /// Writes what stands before everything else.
    pub(super) fn begin(options: &'a Options, files: Files, addresses: RunAddresses<'_>) -> Self {
        let document = Document::of(options);
        let verbosity = Verbosity(options.verbosity());
        let (rows, goes_on, explained) = (0, true, Vec::new());
        let printer = Self { options, files, verbosity, document, rows, goes_on, explained };
        let banner = render_banner(options, addresses);
        printer.say(&banner);
        if printer.verbosity.shows_status() {
            printer.say(&(legend::TCP.to_owned() + &render_head(TCP_HEAD)));
        }
        let Files { status, connections, tcp_info, .. } = &printer.files;
        if let Some(log) = status {
            let text = legend::TCP.to_owned() + &render_head(TCP_HEAD);
            log.write(if log.is_csv { STATUS_HEAD } else { &text });
        }
        if let Some(log) = connections {
            log.write(if log.is_csv { CONNECTION_HEAD } else { &banner });
        }
        if let Some(log) = tcp_info {
            log.write(tcp_info::CSV_HEAD);
        }
        printer
    }

    /// Writes what is worth a line of what happened.
    pub(super) fn tell(&mut self, event: &TcpEvent) {
        if !self.goes_on {
            return;
        }
        match event {
            TcpEvent::Established { at_ns, addresses } => {
                let ends = ends(*at_ns, *addresses);
                self.tell_connection(&ends.tcp_established(), None);
            }
            TcpEvent::Finished(end) => self.tell_end(end),
            TcpEvent::Status(status) => self.tell_status(status),
            TcpEvent::Sample(_) => {}
            TcpEvent::TimeIsUp => {
                let limit_ms = self.options.run.time_limit_ms.unwrap_or_default();
                self.say(&error::time_limit_reached(limit_ms));
            }
            TcpEvent::Pausing => {
                let pause_ms = self.options.run.pause_at_end_ms.unwrap_or_default();
                self.say(&error::pausing(pause_ms));
            }
        }
    }

    fn tell_end(&mut self, end: &TcpConnectionEnd) {
        let connection = TcpConnection {
            ends: ends(end.at_ns, end.addresses),
            id: end.id,
            sent_bytes: end.sent_bytes,
            received_bytes: end.received_bytes,
            elapsed_ms: end.elapsed_ns / 1_000_000,
            outcome: Outcome::of(end.fault),
        };
        if let Some(fault) = &end.fault {
            self.tell_fault(fault, &connection);
        }
        self.tell_connection(&connection.line(), Some(&connection.csv_row()));
        if let (Some(log), Some(kernel)) = (&self.files.tcp_info, &end.kernel) {
            let info = TcpInfo {
                retransmitted_bytes: kernel.retransmitted_bytes,
                syn_retransmits: None,
                min_rtt_us: kernel.min_rtt_us.map(u64::from),
                mss_bytes: Some(kernel.mss_bytes.into()),
                timeouts: kernel.timeouts,
            };
            log.write(&tcp_info::csv_row(&connection, &info));
        }
        if let Some(document) = &mut self.document {
            document.tell_connection(end);
        }
    }

    /// A line of a connection, and its row of csv where it is over.
    fn tell_connection(&self, line: &str, row: Option<&str>) {
        if self.verbosity.shows_connections() {
            self.say(&format!("{line}\n"));
        }
        match (&self.files.connections, row) {
            (Some(log), Some(row)) if log.is_csv => log.write(row),
            (Some(log), _) if !log.is_csv => log.write(line),
            _ => {}
        }
    }

    fn tell_fault(&mut self, fault: &Fault, connection: &TcpConnection) {
        let time_ms = connection.ends.time_ms;
        let text = match (fault, &connection.outcome) {
            (Fault::DataDidNotMatchBitPattern(mismatch), _) => {
                let id = connection.id.map(|id| id.text()).unwrap_or_default();
                let text = error::wrong_data(&id, mismatch);
                if self.verbosity.shows_errors() {
                    self.say(&format!("{text}\n"));
                }
                self.log_error(&error::timed(time_ms, &text));
                error::aborted(fault.protocol_error().unwrap_or_default())
            }
            (_, Outcome::System(system)) => error::failed_call(self.call(connection), system),
            _ => error::aborted(fault.protocol_error().unwrap_or_default()),
        };
        let text = error::timed(time_ms, &text);
        self.log_error(&text);
        if !self.verbosity.shows_errors() {
            return;
        }
        narrate(&format!("{text}\n"));
        // Once, since all connections have the same options.
        if let Some(hint) = fault.hint().filter(|hint| !self.explained.contains(hint)) {
            self.explained.push(hint);
            narrate(&format!("{NAME}: {hint}\n"));
        }
    }

    fn log_error(&self, line: &str) {
        if let Some(log) = &self.files.errors {
            log.write(line);
        }
    }

    /// The call that most likely failed.
    fn call(&self, connection: &TcpConnection) -> &'static str {
        match (self.options.pattern(), self.options.role()) {
            _ if connection.ends.local.is_none() => "connect",
            (Pattern::Push, Role::Client) | (Pattern::Pull, Role::Server) => "send",
            _ => "recv",
        }
    }

    fn tell_status(&mut self, status: &TcpStatus) {
        let row = StatusRow {
            time_ms: status.at_ns / 1_000_000,
            // A row that comes at once has no rate.
            slice_ms: status.slice_ns / 1_000_000,
            sent_bytes: status.sent_bytes,
            received_bytes: status.received_bytes,
            in_flight: status.totals.open,
            completed: status.totals.completed,
            network_errors: status.totals.network_errors,
            data_errors: status.totals.data_errors,
        };
        if self.verbosity.shows_status() {
            if self.rows > 0 && self.rows.is_multiple_of(HEAD_EVERY_ROWS) {
                self.say(&render_head(TCP_HEAD));
            }
            self.say(&format!("{}\n", row.console_row()));
            self.rows += 1;
        }
        if let Some(log) = &self.files.status {
            log.write(&if log.is_csv { row.csv_row() } else { row.console_row() });
        }
        if let Some(document) = &mut self.document {
            document.tell_status(status);
        }
    }

    /// Writes what stands at the end.
    pub(super) fn conclude(&mut self, run: &TcpRun, exit_code: u8) {
        let totals = RunTotals {
            succeeded: run.totals.completed,
            network_errors: run.totals.network_errors,
            protocol_errors: run.totals.data_errors,
            time_ms: run.elapsed_ns / 1_000_000,
        };
        let transferred =
            Transferred::Tcp { received_bytes: run.received_bytes, sent_bytes: run.sent_bytes };
        let summary = render_summary(&totals, &transferred);
        self.say(&summary);
        if let Some(log) = self.files.connections.as_ref().filter(|log| !log.is_csv) {
            log.write(&summary);
        }
        if let Some(document) = &mut self.document {
            say(&document.render(run, exit_code));
        }
    }

    /// Somebody has asked to stop: what happens from now on isn't told.
    pub(super) fn stop(&mut self) {
        if std::mem::replace(&mut self.goes_on, false) {
            self.say(error::INTERRUPTED);
        }
    }

    /// Writes to the console, where no document takes its place.
    fn say(&self, text: &str) {
        if self.document.is_none() {
            say(text);
        }
    }
}

fn ends(at_ns: u64, addresses: Option<(std::net::SocketAddr, std::net::SocketAddr)>) -> Ends {
    Ends {
        time_ms: at_ns / 1_000_000,
        local: addresses.map(|(local, _)| local),
        remote: addresses.map(|(_, remote)| remote),
    }
}
