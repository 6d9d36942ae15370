//! What is printed for people, and for the scripts that read it.
//!
//! A printer turns events into pieces of text. A piece is what the original prints with one call:
//! title and time stand before each piece, not before each line.

mod summary;

use linerate_engine::iperf3::{Control, Event, Keepalive, Report, Role, Start};
use linerate_measure::Sample;
use linerate_measure::sample::FlowSample;
use linerate_wire::iperf3::results::ServerOutput;
use linerate_wire::iperf3::{Parameters, Protocol};
use linerate_wire::visible::visible;

use super::context::Context;
use super::long_object::Layout;
use super::moment::render_gmt;
use super::relayed::Relayed;
use super::row::{Columns, Lead, SEPARATOR, render_head};
use super::sum::{Interval, Sum, Timeline, socket_of};

/// The line above and below a server's greeting.
const RULE: &str = "-----------------------------------------------------------\n";

/// What stands between the omitted time and what counts where no intervals are printed.
const OMIT_DONE: &str = "Finished omit period, starting real test\n";

/// What an omitted interval ends with.
const OMITTED: &str = "(omitted)";

/// Turns the events of one test into text.
#[derive(Debug)]
pub struct TextPrinter {
    context: Context,
    start: Option<Start>,
    control: Option<Control>,
    timeline: Timeline,
    intervals: u64,
}

impl TextPrinter {
    /// For one test.
    pub fn new(context: Context) -> Self {
        Self { context, start: None, control: None, timeline: Timeline::default(), intervals: 0 }
    }

    /// What a client says before it connects.
    pub fn render_opening(&self) -> Vec<String> {
        if self.context.verbose { self.render_versions() } else { Vec::new() }
    }

    fn render_versions(&self) -> Vec<String> {
        vec![format!("{}\n", self.context.release.title()), format!("{}\n", self.context.system)]
    }

    /// What a server says when it waits for its next client.
    pub fn render_listening(&self, port: u16, test_number: u64) -> Vec<String> {
        let mut pieces = self.render_opening();
        let greeting = format!("Server listening on {port} (test #{test_number})\n");
        pieces.extend([RULE.to_owned(), greeting, RULE.to_owned()]);
        pieces
    }

    /// What happened, in pieces.
    pub fn render_event(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Connected(control) => {
                self.control = Some((**control).clone());
                self.render_connected(control)
            }
            Event::Started(start) => {
                self.start = Some((**start).clone());
                self.render_started(start)
            }
            Event::Sample(sample) => self.render_sample(sample),
            Event::Ended(report) => self.render_ended(report),
            // With intervals it shows by itself.
            Event::OmitEnded if self.context.verbose && self.context.interval_s == 0.0 => {
                vec![OMIT_DONE.to_owned()]
            }
            Event::Asked(_) | Event::OmitEnded | Event::Warning(_) => Vec::new(),
        }
    }

    fn render_connected(&self, control: &Control) -> Vec<String> {
        let mut pieces = Vec::new();
        if let Some(keepalive) = control.keepalive.filter(|_| self.context.verbose) {
            pieces.push(render_keepalive(keepalive));
        }
        if control.role == Role::Server {
            if self.context.verbose {
                pieces.push(render_time(control));
            }
            let (host, port) = (control.remote.ip().to_canonical(), control.remote.port());
            pieces.push(format!("Accepted connection from {host}, port {port}\n"));
            return pieces;
        }
        if let Some(mss_bytes) = control.mss_bytes.filter(|_| self.context.verbose) {
            pieces.push(format!("Control connection MSS {mss_bytes}\n"));
            if self.context.fits_datagrams {
                pieces.push(format!("Setting UDP block size to {mss_bytes}\n"));
            }
        }
        pieces
    }

    /// What a client says when its server has taken the test, and also where it doesn't in the end.
    fn render_greeting(&self, parameters: &Parameters) -> Vec<String> {
        let mut pieces = Vec::new();
        let (Some(control), Some(host)) = (&self.control, &self.context.host) else {
            return pieces;
        };
        if self.context.verbose {
            pieces.push(render_time(control));
        }
        pieces.push(format!("Connecting to host {host}, port {}\n", self.context.port));
        if parameters.reverse {
            pieces.push(format!("Reverse mode, remote host {host} is sending\n"));
        }
        pieces
    }

    /// What a client says of a test that its server refused after a look at it.
    pub fn render_refused(&self) -> Vec<String> {
        let Some(parameters) = self.context.asked.as_ref().filter(|_| self.start.is_none()) else {
            return Vec::new();
        };
        let mut pieces = self.render_greeting(parameters);
        if self.context.verbose && self.control.is_some() {
            pieces.extend(self.render_particulars(parameters));
        }
        pieces
    }

    fn render_started(&self, start: &Start) -> Vec<String> {
        let parameters = &start.parameters;
        let mut pieces = self.render_greeting(parameters);
        if self.context.verbose {
            pieces.extend(self.render_particulars(parameters));
        }
        for stream in &start.streams {
            let (local, remote) = (stream.local, stream.remote);
            pieces.push(format!(
                "[{:3}] local {} port {} connected to {} port {}\n",
                stream.socket,
                local.ip().to_canonical(),
                local.port(),
                remote.ip().to_canonical(),
                remote.port()
            ));
        }
        if self.context.verbose {
            pieces.push(render_plan(parameters));
        }
        pieces
    }

    fn render_particulars(&self, parameters: &Parameters) -> Vec<String> {
        let mut pieces = Vec::new();
        if let Some(control) = &self.control {
            pieces.push(format!("      Cookie: {}\n", control.cookie.text()));
            let control_mss = control.mss_bytes.filter(|_| control.role == Role::Client);
            if parameters.protocol == Protocol::Tcp {
                pieces.push(match parameters.mss_bytes {
                    Some(mss_bytes) => format!("      TCP MSS: {mss_bytes}\n"),
                    None => format!("      TCP MSS: {} (default)\n", control_mss.unwrap_or(0)),
                });
            }
        }
        if parameters.bandwidth_bps > 0 {
            pieces.push(format!("      Target Bitrate: {}\n", parameters.bandwidth_bps));
        }
        pieces
    }

    fn render_sample(&mut self, sample: &Sample) -> Vec<String> {
        let interval = self.timeline.interval(sample);
        let mut pieces = Vec::new();
        let Some(start) = self.start.as_ref().filter(|_| self.context.shows(&interval)) else {
            return pieces;
        };
        let several = start.parameters.parallel > 1;
        if self.intervals == 0 {
            pieces.push(render_head(interval_columns(start, &interval), is_both_ways(start)));
        } else if several {
            pieces.push(SEPARATOR.to_owned());
        }
        self.intervals += 1;
        for sends in directions(start) {
            for flow in interval.direction(sends) {
                pieces.push(self.render_stream(start, &interval, sends, flow));
            }
            if several && let Some(sum) = interval.sum(sends) {
                pieces.push(self.render_sum(start, &interval, sends, &sum));
            }
        }
        pieces
    }

    fn render_stream(
        &self,
        start: &Start,
        interval: &Interval<'_>,
        sends: bool,
        flow: &FlowSample,
    ) -> String {
        let remark = if interval.sample.warm_up { OMITTED } else { "" };
        let stream = Sum::of_interval_flow(flow, interval.seconds());
        let lead = self.lead(start, interval, Some(socket_of(flow.flow)), sends, &stream);
        match (&stream.datagrams, stream.retransmits, &flow.tcp) {
            (Some(sent), _, _) if sends => {
                lead.datagrams(sent.packets, is_both_ways(start), remark)
            }
            (Some(received), _, _) => lead.loss(received, remark),
            (None, Some(retransmits), Some(tcp)) if sends => lead.window(retransmits, tcp, remark),
            _ => lead.plain(remark),
        }
    }

    fn render_sum(&self, start: &Start, interval: &Interval<'_>, sends: bool, sum: &Sum) -> String {
        let remark = if interval.sample.warm_up { OMITTED } else { "" };
        let lead = self.lead(start, interval, None, sends, sum);
        match (&sum.datagrams, sum.retransmits) {
            (Some(sent), _) if sends => lead.datagrams(sent.packets, is_both_ways(start), remark),
            (Some(received), _) => lead.loss(received, remark),
            (None, Some(retransmits)) if sends => {
                lead.retransmits(retransmits, remark, self.context.release)
            }
            _ => lead.plain(remark),
        }
    }

    fn lead(
        &self,
        start: &Start,
        interval: &Interval<'_>,
        socket: Option<u32>,
        sends: bool,
        figures: &Sum,
    ) -> Lead<'_> {
        Lead {
            socket,
            role: role_tag(start, sends),
            start_s: interval.start_s,
            end_s: interval.end_s,
            bytes: figures.bytes,
            rate: figures.rate(),
            format: self.context.format,
        }
    }

    fn render_ended(&self, report: &Report) -> Vec<String> {
        let Some(start) = &self.start else { return Vec::new() };
        summary::render_summary(&self.context, start, report)
    }

    /// What a client says when all went well.
    pub fn render_done(&self) -> Vec<String> {
        vec!["\n".to_owned(), "iperf Done.\n".to_owned()]
    }

    /// What the server printed: one piece, which comes in several as it may be long.
    pub fn render_output(&self, output: &ServerOutput) -> impl Iterator<Item = String> {
        let (head, text, document) = match output {
            ServerOutput::Text(text) => ("\nServer output:\n", Some(visible(text)), None),
            ServerOutput::Json(text) => {
                let document = Relayed::new(text, Layout::Pretty, 0);
                let none = document.is_none().then(|| "null".to_owned());
                ("\nServer JSON output:\n", none, document)
            }
        };
        let document = document.into_iter().flatten();
        let ends = [head, "\n"].map(|end| std::iter::once(end.to_owned()));
        let [head, end] = ends;
        head.chain(text).chain(document).chain(end)
    }
}

fn render_time(control: &Control) -> String {
    format!("Time: {}\n", render_gmt(control.utc_ns))
}

fn render_keepalive(keepalive: Keepalive) -> String {
    let Keepalive { idle_s, interval_s, count } = keepalive;
    format!(
        "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to \
         {idle_s}/{interval_s}/{count}\n"
    )
}

fn render_plan(parameters: &Parameters) -> String {
    let protocol = match parameters.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    let end = match (parameters.num_bytes, parameters.block_count) {
        (0, 0) => format!("{} second test", parameters.time_s),
        (0, blocks) => format!("{blocks} blocks to send"),
        (bytes, _) => format!("{bytes} bytes to send"),
    };
    format!(
        "Starting Test: protocol: {protocol}, {} streams, {} byte blocks, omitting {} seconds, \
         {end}, tos {}\n",
        parameters.parallel, parameters.block_bytes, parameters.omit_s, parameters.tos
    )
}

/// Whether both ends send.
pub(super) fn is_both_ways(start: &Start) -> bool {
    start.parameters.bidirectional
}

/// The directions of a test, in the order in which they are printed.
pub(super) fn directions(start: &Start) -> impl Iterator<Item = bool> {
    let first = start.streams.first().is_none_or(|stream| stream.sends);
    let second = is_both_ways(start).then_some(!first);
    std::iter::once(first).chain(second)
}

/// What stands behind a stream's number where both ends send.
pub(super) fn role_tag(start: &Start, sends: bool) -> &'static str {
    match (is_both_ways(start), sends, start.role) {
        (false, _, _) => "",
        (true, true, Role::Client) => "[TX-C]",
        (true, true, Role::Server) => "[TX-S]",
        (true, false, Role::Client) => "[RX-C]",
        (true, false, Role::Server) => "[RX-S]",
    }
}

fn interval_columns(start: &Start, interval: &Interval<'_>) -> Columns {
    let sends = start.streams.iter().any(|stream| stream.sends);
    let knows = |flow: &FlowSample| Sum::of_interval_flow(flow, 0.0).retransmits.is_some();
    match start.parameters.protocol {
        Protocol::Udp if is_both_ways(start) || !sends => Columns::Loss,
        Protocol::Udp => Columns::Datagrams,
        _ if interval.direction(true).any(knows) => Columns::Window,
        _ => Columns::Plain,
    }
}
