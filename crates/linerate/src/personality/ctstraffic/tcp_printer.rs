//! What happens over TCP, as lines on the console and in files.

use std::net::SocketAddr;

use linerate_engine::ctstraffic::{TcpConnectionEnd, TcpEvent, TcpRun, TcpStatus};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_personality::ctstraffic::output::connection::{
    Ends, Outcome, TCP_CSV_HEAD as CONNECTION_HEAD, TcpConnection,
};
use linerate_personality::ctstraffic::output::error::wrong_data;
use linerate_personality::ctstraffic::output::legend;
use linerate_personality::ctstraffic::output::status::{
    TCP_CSV_HEAD as STATUS_HEAD, TCP_HEAD, TcpStatus as StatusRow, slice_ms,
};
use linerate_personality::ctstraffic::output::summary::{RunTotals, Transferred, render_summary};
use linerate_personality::ctstraffic::output::tcp_info::{self, TcpInfo};
use linerate_wire::ctstraffic::Fault;

use super::console::{Console, Heads};
use super::document::{render_tcp_end, render_tcp_run, render_tcp_status};
use super::files::Files;

/// Writes lines as things happen.
pub(super) struct TcpPrinter<'a> {
    pub(super) console: Console<'a>,
}

impl<'a> TcpPrinter<'a> {
    /// Writes what stands before everything else.
    pub(super) fn begin(options: &'a Options, files: Files, addresses: RunAddresses<'_>) -> Self {
        if let Some(log) = &files.tcp_info {
            log.write(tcp_info::CSV_HEAD);
        }
        let heads = Heads {
            legend: legend::TCP,
            console: TCP_HEAD,
            status: STATUS_HEAD,
            connections: CONNECTION_HEAD,
        };
        Self { console: Console::begin(options, files, addresses, heads) }
    }

    /// Writes what is worth a line of what happened.
    pub(super) fn tell(&mut self, event: &TcpEvent) {
        // What was moved until the end stands in files and the document.
        if !self.console.goes_on && !matches!(event, TcpEvent::Status(_)) {
            return;
        }
        match event {
            TcpEvent::Established { at_ns, addresses } if self.console.tells_connections() => {
                let line = ends(*at_ns, *addresses).tcp_established();
                self.console.tell_connection(&line, None);
            }
            TcpEvent::Finished(end) => self.tell_end(end),
            TcpEvent::Status(status) => self.tell_status(status),
            TcpEvent::Note(note) => self.console.tell_note(note),
            TcpEvent::Established { .. } | TcpEvent::Sample(_) => {}
            TcpEvent::TimeIsUp => self.console.tell_time_limit(),
            TcpEvent::Pausing => self.console.tell_pause(),
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
        let console = &mut self.console;
        if let Some(Fault::DataDidNotMatchBitPattern(mismatch)) = &end.fault {
            let id = end.id.map(|id| id.text()).unwrap_or_default();
            console.tell_wrong_data(connection.ends.time_ms, &wrong_data(&id, mismatch));
        }
        if let Some(fault) = &end.fault {
            console.tell_fault(connection.ends.time_ms, fault, end.call.name());
        }
        if console.tells_connections() {
            console.tell_connection(&connection.line(), Some(&connection.csv_row()));
        }
        if let (Some(log), Some(kernel)) = (&console.files.tcp_info, &end.kernel) {
            let info = TcpInfo {
                retransmitted_bytes: kernel.retransmitted_bytes,
                syn_retransmits: kernel.syn_retransmissions,
                min_rtt_us: kernel.min_rtt_us.map(u64::from),
                mss_bytes: Some(kernel.mss_bytes.into()),
                timeouts: kernel.timeouts,
            };
            log.write(&tcp_info::csv_row(&connection, &info));
        }
        if let Some(document) = &mut console.document {
            document.tell("connection", render_tcp_end(end));
        }
    }

    fn tell_status(&mut self, status: &TcpStatus) {
        let row = StatusRow {
            time_ms: status.at_ns / 1_000_000,
            // A row that comes at once has no rate.
            slice_ms: slice_ms(status.at_ns, status.slice_ns),
            sent_bytes: status.sent_bytes,
            received_bytes: status.received_bytes,
            in_flight: status.totals.open,
            completed: status.totals.completed,
            network_errors: status.totals.network_errors,
            data_errors: status.totals.data_errors,
        };
        self.console.tell_status(&row.console_row(), &row.csv_row());
        if let Some(document) = &mut self.console.document {
            document.tell("status", render_tcp_status(status));
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
        let (received_bytes, sent_bytes) = (run.received_bytes, run.sent_bytes);
        let transferred = Transferred::Tcp { received_bytes, sent_bytes };
        self.console.conclude(&render_summary(&totals, &transferred), run.lost_events);
        if let Some(document) = &mut self.console.document {
            document.conclude(render_tcp_run(run, exit_code));
        }
    }
}

fn ends(at_ns: u64, addresses: Option<(SocketAddr, SocketAddr)>) -> Ends {
    Ends {
        time_ms: at_ns / 1_000_000,
        local: addresses.map(|(local, _)| local),
        remote: addresses.map(|(_, remote)| remote),
    }
}
