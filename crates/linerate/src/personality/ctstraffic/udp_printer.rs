//! What happens to media streams over UDP, as lines on the console and in files.

use linerate_engine::ctstraffic::{MediaError, MediaEvent, MediaRun, MediaStatus, MediaStreamEnd};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_personality::ctstraffic::output::connection::{
    Ends, Outcome, UDP_CSV_HEAD as CONNECTION_HEAD, UdpStream,
};
use linerate_personality::ctstraffic::output::error::wrong_data;
use linerate_personality::ctstraffic::output::status::{
    UDP_CSV_HEAD as STATUS_HEAD, UDP_HEAD, UdpStatus as StatusRow, slice_ms,
};
use linerate_personality::ctstraffic::output::summary::{RunTotals, Transferred, render_summary};
use linerate_personality::ctstraffic::output::{jitter, legend};

use super::console::{Console, Heads};
use super::document::{render_stream_end, render_stream_run, render_stream_status};
use super::files::Files;

/// Writes lines as things happen.
pub(super) struct UdpPrinter<'a> {
    pub(super) console: Console<'a>,
}

impl<'a> UdpPrinter<'a> {
    /// Writes what stands before everything else.
    pub(super) fn begin(options: &'a Options, files: Files, addresses: RunAddresses<'_>) -> Self {
        if let Some(log) = &files.jitter {
            log.write(jitter::CSV_HEAD);
        }
        let heads = Heads {
            legend: legend::UDP,
            console: UDP_HEAD,
            status: STATUS_HEAD,
            connections: CONNECTION_HEAD,
        };
        Self { console: Console::begin(options, files, addresses, heads) }
    }

    /// Writes what is worth a line of what happened.
    pub(super) fn tell(&mut self, event: &MediaEvent) {
        if !self.console.goes_on {
            return;
        }
        match event {
            MediaEvent::Listening(_) => {}
            MediaEvent::Established { at_ns, addresses: (local, remote) } => {
                let (local, remote) = (Some(*local), Some(*remote));
                let ends = Ends { time_ms: at_ns / 1_000_000, local, remote };
                self.console.tell_connection(&ends.udp_established(), None);
            }
            MediaEvent::Finished(end) => self.tell_end(end),
            MediaEvent::Jitter(row) => {
                if let Some(log) = &self.console.files.jitter {
                    log.write(&jitter::csv_row(row));
                }
            }
            MediaEvent::BadDatagram { at_ns, peer, error } => {
                let what = match error {
                    MediaError::Malformed(error) => error.to_string(),
                    MediaError::Wrong(mismatch) => wrong_data(&peer.to_string(), mismatch),
                    MediaError::OverRate(bps) => {
                        format!("a stream would exceed --max-rate:{bps}: it is ignored")
                    }
                    MediaError::OverAddressRate(bps) => {
                        format!("a stream would exceed --max-address-rate:{bps}: it is ignored")
                    }
                };
                self.console.tell_error(at_ns / 1_000_000, &format!("{peer}: {what}"));
            }
            MediaEvent::Status(status) => self.tell_status(status),
            MediaEvent::TimeIsUp => self.console.tell_time_limit(),
            MediaEvent::Pausing => self.console.tell_pause(),
        }
    }

    fn tell_end(&mut self, end: &MediaStreamEnd) {
        let (local, remote) = (Some(end.addresses.0), Some(end.addresses.1));
        let stream = UdpStream {
            ends: Ends { time_ms: end.at_ns / 1_000_000, local, remote },
            id: end.id,
            elapsed_ms: end.elapsed_ns / 1_000_000,
            counts: end.counts,
            outcome: Outcome::of(end.fault),
        };
        let is_server = self.console.options.is_server();
        if let Some(fault) = &end.fault {
            let call = if is_server { "sendto" } else { "recvfrom" };
            self.console.tell_fault(stream.ends.time_ms, fault, end.id, call);
        }
        self.console.tell_connection(&stream.line(), Some(&stream.csv_row()));
        if let Some(document) = &mut self.console.document {
            document.tell("connection", render_stream_end(end));
        }
    }

    fn tell_status(&mut self, status: &MediaStatus) {
        let counts = status.counts;
        let row = StatusRow {
            time_ms: status.at_ns / 1_000_000,
            slice_ms: slice_ms(status.at_ns, status.slice_ns),
            bits: counts.bits,
            streams: status.streams,
            completed: counts.completed,
            dropped: counts.dropped,
            repeated: counts.repeated,
            errors: counts.errors,
        };
        self.console.tell_status(&row.console_row(), &row.csv_row());
        if let Some(document) = &mut self.console.document {
            document.tell("status", render_stream_status(status));
        }
    }

    /// Writes what stands at the end.
    pub(super) fn conclude(&mut self, run: &MediaRun, exit_code: u8) {
        let totals = RunTotals {
            succeeded: run.totals.completed,
            network_errors: run.totals.network_errors,
            protocol_errors: run.totals.protocol_errors,
            time_ms: run.elapsed_ns / 1_000_000,
        };
        let transferred = match self.console.options.is_server() {
            true => Transferred::Unknown,
            false => Transferred::Frames(run.totals.counts),
        };
        self.console.conclude(&render_summary(&totals, &transferred), run.lost_events);
        if let Some(document) = &mut self.console.document {
            document.conclude(render_stream_run(run, exit_code));
        }
    }
}
