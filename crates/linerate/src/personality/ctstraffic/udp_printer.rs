//! What happens to media streams over UDP, as lines on the console and in files.

use linerate_engine::ctstraffic::{
    Call, MediaError, MediaEvent, MediaRun, MediaStatus, MediaStreamEnd,
};
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

/// Lines of bad datagrams in a second. Any program can send such datagrams, at any rate.
const BAD_LINES_PER_S: u32 = 10;

/// Writes lines as things happen.
pub(super) struct UdpPrinter<'a> {
    pub(super) console: Console<'a>,
    bad: BadLines,
}

/// Lines of bad datagrams.
#[derive(Debug, Default)]
struct BadLines {
    /// The second of the last one, and how many it has.
    second: u64,
    lines: u32,
    /// Datagrams without a line.
    untold: u64,
}

impl BadLines {
    /// Whether a datagram of this time has a line.
    fn take(&mut self, at_ns: u64) -> bool {
        let second = at_ns / 1_000_000_000;
        if second != self.second {
            (self.second, self.lines) = (second, 0);
        }
        let has_line = self.lines < BAD_LINES_PER_S;
        self.lines += u32::from(has_line);
        self.untold += u64::from(!has_line);
        has_line
    }
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
        let console = Console::begin(options, files, addresses, heads);
        Self { console, bad: BadLines::default() }
    }

    /// Writes what is worth a line of what happened.
    pub(super) fn tell(&mut self, event: &MediaEvent) {
        // What was moved until the end stands in files and the document.
        if !self.console.goes_on && !matches!(event, MediaEvent::Status(_)) {
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
            MediaEvent::BadDatagram { at_ns, .. } if !self.bad.take(*at_ns) => {}
            MediaEvent::BadDatagram { at_ns, peer, id, sequence, error } => {
                let time_ms = at_ns / 1_000_000;
                let what = match error {
                    MediaError::Malformed(error) => error.to_string(),
                    MediaError::Wrong(mismatch) => {
                        let id = id.map(|id| id.text()).unwrap_or_default();
                        let frame = sequence.unwrap_or_default();
                        let text = wrong_data(&id, mismatch);
                        let text = format!("{peer}: frame {frame}: {text}");
                        return self.console.tell_wrong_data(time_ms, &text);
                    }
                    MediaError::OverRate(bps) => {
                        format!("a stream would exceed --max-rate:{bps}: it is ignored")
                    }
                    MediaError::OverAddressRate(bps) => {
                        format!("a stream would exceed --max-address-rate:{bps}: it is ignored")
                    }
                };
                self.console.tell_error(time_ms, &format!("{peer}: {what}"));
            }
            MediaEvent::Status(status) => self.tell_status(status),
            MediaEvent::Note(note) => self.console.tell_note(note),
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
        if let Some(fault) = &end.fault {
            let call = match end.call {
                Call::Send => "sendto",
                Call::Receive => "recvfrom",
                call => call.name(),
            };
            self.console.tell_fault(stream.ends.time_ms, fault, call);
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
        if self.bad.untold > 0 {
            self.console.tell_note(&format!(
                "{} bad datagrams have no line, as no more than {BAD_LINES_PER_S} a second have; the \
                 totals count them",
                self.bad.untold
            ));
        }
        if run.totals.socket_drops > 0 {
            self.console.tell_note(&format!(
                "{} packets came and were dropped, as the sockets' buffers were full: a larger \
                 -RecvBufValue may help",
                run.totals.socket_drops
            ));
        }
        if run.totals.queue_drops > 0 {
            self.console.tell_note(&format!(
                "{} datagrams were dropped by a queue of this machine and never sent (tc -s qdisc): \
                 a lower -BitsPerSecond may help",
                run.totals.queue_drops
            ));
        }
        self.console.conclude(&render_summary(&totals, &transferred), run.lost_events);
        if let Some(document) = &mut self.console.document {
            document.conclude(render_stream_run(run, exit_code));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_datagrams_have_some_lines_a_second() {
        let mut bad = BadLines::default();
        let told = |bad: &mut BadLines, at_ns| (0..1000).filter(|_| bad.take(at_ns)).count();
        assert_eq!(told(&mut bad, 999_999_999), BAD_LINES_PER_S as usize);
        assert_eq!(told(&mut bad, 1_000_000_000), BAD_LINES_PER_S as usize);
        assert_eq!(bad.untold, 2 * (1000 - u64::from(BAD_LINES_PER_S)));
    }
}
