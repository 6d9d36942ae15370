//! Lines of the tables, column by column.

use linerate_measure::sample::TcpStatus;
use linerate_personality::c_format::render_general;
use linerate_personality::iperf3::amount::{RateFormat, render_bytes, render_rate};
use linerate_personality::iperf3::release::Release;

use super::sum::Datagrams;

/// Between tables, and between the intervals of several streams.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// What a table tells beside time, bytes and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// No more.
    Plain,
    /// Segments sent again.
    Retransmits,
    /// Segments sent again, and the congestion window.
    Window,
    /// Datagrams sent.
    Datagrams,
    /// Jitter and loss.
    Loss,
}

/// A table's head.
pub(super) fn render_head(columns: Columns, roles: bool) -> String {
    let role = if roles { "[Role]" } else { "" };
    let tail = match columns {
        Columns::Plain => "",
        Columns::Retransmits => "         Retr",
        Columns::Window => "         Retr  Cwnd",
        Columns::Datagrams => "         Total Datagrams",
        Columns::Loss => "         Jitter    Lost/Total Datagrams",
    };
    format!("[ ID]{role} Interval           Transfer     Bitrate{tail}\n")
}

/// The beginning of a line: which stream, when, how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead<'a> {
    /// The stream's socket; None: the sum.
    pub(super) socket: Option<u32>,
    /// `[TX-C]` and the like, or nothing.
    pub(super) role: &'a str,
    /// Seconds.
    pub(super) start_s: f64,
    /// Seconds.
    pub(super) end_s: f64,
    /// Bytes.
    pub(super) bytes: u64,
    /// Bytes a second.
    pub(super) rate: f64,
    /// In what unit.
    pub(super) format: RateFormat,
}

impl Lead<'_> {
    fn render(&self) -> String {
        let Self { role, start_s, end_s, .. } = self;
        let name = render_name(self.socket);
        let bytes = render_bytes(self.bytes as f64);
        let rate = render_rate(self.rate, self.format);
        format!("{name}{role} {start_s:6.2}-{end_s:<6.2} sec  {bytes}  {rate}/sec")
    }

    /// Of a receiver, or of a sender of which no more is known.
    pub(super) fn plain(&self, remark: &str) -> String {
        format!("{}                  {remark}\n", self.render())
    }

    /// Of a sender in an interval.
    pub(super) fn window(&self, retransmits: u64, tcp: &TcpStatus, remark: &str) -> String {
        let window = render_bytes(tcp.cwnd_bytes() as f64);
        format!("{}  {retransmits:3}   {window}       {remark}\n", self.render())
    }

    /// Of a sender at the end, and of several senders in an interval.
    pub(super) fn retransmits(&self, retransmits: u64, remark: &str, release: Release) -> String {
        let narrow = self.socket.is_some() && release.is_new();
        let gap = if narrow { 12 } else { 13 };
        format!("{}  {retransmits:3}{:gap$}{remark}\n", self.render(), "")
    }

    /// Of datagrams sent in an interval; `roles`: beside some that were received.
    pub(super) fn datagrams(&self, packets: u64, roles: bool, remark: &str) -> String {
        let gap = if roles { 10 } else { 0 };
        format!("{} {:gap$} {packets}  {remark}\n", self.render(), "")
    }

    /// Of datagrams received, or of all sent.
    pub(super) fn loss(&self, figures: &Datagrams, remark: &str) -> String {
        let jitter_ms = figures.jitter_ms();
        let packets = figures.packets;
        let loss = match figures.lost.zip(figures.lost_percent()) {
            None => format!("Unknown/{packets}"),
            Some((lost, percent)) => {
                format!("{lost}/{packets} ({}%)", render_general(percent, 2))
            }
        };
        format!("{}  {jitter_ms:5.3} ms  {loss}  {remark}\n", self.render())
    }

    /// How many came out of order. The original says SUM here even of a single stream.
    pub(super) fn out_of_order(&self, count: u64) -> String {
        let Self { role, start_s, end_s, .. } = self;
        format!(
            "[SUM]{role} {start_s:4.1}-{end_s:4.1} sec  {count} datagrams received out-of-order\n"
        )
    }
}

/// `[  5]` or `[SUM]`.
pub(super) fn render_name(socket: Option<u32>) -> String {
    match socket {
        Some(socket) => format!("[{socket:3}]"),
        None => "[SUM]".to_owned(),
    }
}
