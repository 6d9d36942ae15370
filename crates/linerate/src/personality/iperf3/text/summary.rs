//! The tables at a test's end.

use linerate_engine::iperf3::{Report, Role, Start};
use linerate_measure::dialect::iperf3::CpuPercent;
use linerate_personality::iperf3::amount::render_bytes;
use linerate_wire::iperf3::Protocol;
use linerate_wire::visible::visible;

use super::super::context::Context;
use super::super::ending::file_percent;
use super::super::row::{Columns, Lead, SEPARATOR, render_head, render_name};
use super::super::sum::{self, Datagrams, Stream, Sum, rate, streams};
use super::{directions, is_both_ways, role_tag};

/// Which end's figures a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    fn of(self, stream: &Stream<'_>) -> Option<Sum> {
        match self {
            Self::Sender => stream.sender(),
            Self::Receiver => stream.receiver(),
        }
    }
}

struct Summary<'a> {
    context: &'a Context,
    start: &'a Start,
    report: &'a Report,
}

/// The tables at a test's end, in pieces.
pub(super) fn render_summary(context: &Context, start: &Start, report: &Report) -> Vec<String> {
    let summary = Summary { context, start, report };
    let mut pieces = vec![SEPARATOR.to_owned()];
    if context.verbose {
        pieces.push("Test Complete. Summary Results:\n".to_owned());
    }
    pieces.push(render_head(summary.columns(), is_both_ways(start)));
    for sends in directions(start) {
        summary.render_direction(sends, &mut pieces);
    }
    pieces
}

impl Summary<'_> {
    fn columns(&self) -> Columns {
        let knows = |stream: Stream<'_>| {
            let shown = self.shows(stream.sends(), Side::Sender);
            shown && stream.sender().is_some_and(|totals| totals.retransmits.is_some())
        };
        match self.start.parameters.protocol {
            Protocol::Udp => Columns::Loss,
            _ if streams(self.report).any(knows) => Columns::Retransmits,
            _ => Columns::Plain,
        }
    }

    /// A client shows both ends' figures, a server its own.
    fn shows(&self, sends: bool, side: Side) -> bool {
        self.start.role == Role::Client || sends == (side == Side::Sender)
    }

    fn render_direction(&self, sends: bool, pieces: &mut Vec<String>) {
        let of_direction = || streams(self.report).filter(move |stream| stream.sends() == sends);
        for stream in of_direction() {
            for side in [Side::Sender, Side::Receiver] {
                self.render_line(Some(stream.socket()), sends, side, side.of(&stream), pieces);
                if side == Side::Sender {
                    self.render_remarks(&stream, pieces);
                }
            }
        }
        if self.start.parameters.parallel > 1 {
            for side in [Side::Sender, Side::Receiver] {
                let sum = Sum::of(of_direction().map(|stream| side.of(&stream)));
                self.render_line(None, sends, side, sum, pieces);
            }
        }
        if self.context.verbose {
            self.render_particulars(sends, pieces);
        }
    }

    /// One end's line of a stream or of the sum.
    fn render_line(
        &self,
        socket: Option<u32>,
        sends: bool,
        side: Side,
        totals: Option<Sum>,
        pieces: &mut Vec<String>,
    ) {
        let shown = totals.filter(|_| self.shows(sends, side));
        let Some(totals) = shown else {
            let sum_of_datagrams =
                socket.is_none() && self.start.parameters.protocol == Protocol::Udp;
            let said = self.context.verbose || self.start.role == Role::Client;
            if said && !sum_of_datagrams {
                let (name, side) = (render_name(socket), side.name());
                pieces.push(format!("{name} ({side} statistics not available)\n"));
            }
            return;
        };
        let lead = self.lead(socket, sends, totals.bytes, totals.seconds);
        pieces.push(match (&totals.datagrams, totals.retransmits, side) {
            (Some(sent), _, Side::Sender) => lead.loss(&Datagrams::sent(sent.packets), side.name()),
            (Some(received), _, Side::Receiver) => lead.loss(received, side.name()),
            (None, Some(retransmits), Side::Sender) => {
                lead.retransmits(retransmits, side.name(), self.context.release)
            }
            _ => lead.plain(side.name()),
        });
    }

    fn lead(&self, socket: Option<u32>, sends: bool, bytes: u64, seconds: f64) -> Lead<'_> {
        Lead {
            socket,
            role: role_tag(self.start, sends),
            start_s: 0.0,
            end_s: seconds,
            bytes,
            rate: rate(bytes, seconds),
            format: self.context.format,
        }
    }

    /// What came out of order, and how much of a file went.
    fn render_remarks(&self, stream: &Stream<'_>, pieces: &mut Vec<String>) {
        let received = stream.receiver().and_then(|totals| totals.datagrams);
        if let Some(figures) = received.filter(|figures| figures.out_of_order > 0) {
            let seconds = stream.local().seconds;
            let lead = self.lead(None, stream.sends(), 0, seconds);
            pieces.push(lead.out_of_order(figures.out_of_order));
        }
        let Some(path) = &self.context.file else { return };
        let Ok(facts) = std::fs::metadata(path) else { return };
        let (size, bytes) = (facts.len(), stream.local().bytes);
        let percent = file_percent(bytes, size);
        let singular = |bytes: u64| render_bytes(bytes as f64).trim_end_matches('s').to_owned();
        pieces.push(format!(
            "        Sent {} / {} ({percent}%) of {}\n",
            singular(bytes),
            singular(size),
            path.display()
        ));
    }

    /// Processor time and congestion control, with `-V`.
    fn render_particulars(&self, sends: bool, pieces: &mut Vec<String>) {
        let (own, peer) = (&self.report.own, self.report.peer.as_ref());
        if sends {
            let local = sum::cpu_percent(own).unwrap_or_default();
            let remote = peer.and_then(sum::cpu_percent).unwrap_or_default();
            pieces.push(render_cpu(["sender", "receiver"], &local, &remote));
            if is_both_ways(self.start) {
                pieces.push(render_cpu(["receiver", "sender"], &local, &remote));
            }
        }
        let remote = peer.and_then(sum::congestion).filter(|_| self.start.role == Role::Client);
        let local = sum::congestion(own);
        let (sender, receiver) = if sends { (local, remote) } else { (remote, local) };
        if let Some(name) = sender {
            pieces.push(format!("snd_tcp_congestion {}\n", visible(name)));
        }
        if let Some(name) = receiver {
            pieces.push(format!("rcv_tcp_congestion {}\n", visible(name)));
        }
    }
}

fn render_cpu(roles: [&str; 2], local: &CpuPercent, remote: &CpuPercent) -> String {
    let [own, other] = roles;
    let figures =
        |cpu: &CpuPercent| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
    let (local, remote) = (figures(local), figures(remote));
    format!("CPU Utilization: local/{own} {local}, remote/{other} {remote}\n")
}
