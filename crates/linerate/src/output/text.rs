//! Text for people: a line for each interval, a report of each run, one table where several runs
//! were asked.

mod delays;
mod figures;
mod latencies;
mod limits;
mod several;

use linerate_engine::event::Event;
use linerate_measure::plan::{ConnectTransfer, TransferPattern};
use linerate_measure::repeats::Repeats;
use linerate_measure::step::Size;
use linerate_measure::trust::Trust;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};
use linerate_measure::{
    Arrivals, Closing, Direction, End, Kind, Outcome, Plan, Rate, Run, Transport, Variant, Workload,
};

use super::ends::render_ends;
use super::live::LiveLines;
use super::repeats::render_repeats;
use super::{Expected, Printer, Style};
use crate::host::render_host_port;
pub(crate) use figures::{
    FIGURE_HEADS, figures_of, render_cpu_per_unit, render_loss, render_main_figure, render_quantile,
};
pub(crate) use latencies::latency_cells;
pub(crate) use limits::render_inquiry;
use several::SeveralRuns;

/// The columns of a screen of unknown width.
const COLUMNS_UNLESS_TOLD: usize = 80;

/// Prints text.
pub struct TextPrinter {
    style: Style,
    live: Option<LiveLines>,
    /// Whether the reason of a failure stands in the text too; otherwise only on standard error.
    with_failures: bool,
    /// Where more than one run was asked.
    several: Option<SeveralRuns>,
    /// Whether all of what both ends counted and ran on is shown.
    verbose: bool,
    /// The screen's.
    columns: usize,
}

impl TextPrinter {
    /// A printer of so many runs. `live` shows each interval; `with_failures` keeps the reason of
    /// a failure in the text itself, for a file that stands alone.
    pub fn new(style: Style, runs: usize, live: bool, with_failures: bool) -> Self {
        Self::for_runs(style, Expected::Runs(runs), live, with_failures)
    }

    /// Likewise, of these runs.
    pub fn for_runs(style: Style, expected: Expected, live: bool, with_failures: bool) -> Self {
        let several = match expected {
            Expected::Runs(0 | 1) => None,
            Expected::Runs(_) => Some(SeveralRuns::default()),
            Expected::Repeats => Some(SeveralRuns::of_one_plan()),
        };
        Self {
            style,
            live: live.then(|| LiveLines::new(style)),
            with_failures,
            several,
            verbose: false,
            columns: COLUMNS_UNLESS_TOLD,
        }
    }

    /// Likewise, with all that both ends counted and ran on.
    pub fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// Likewise, for a screen of so many columns.
    pub fn with_columns(self, columns: usize) -> Self {
        Self { columns, ..self }
    }

    /// What a run came to, most important last: what both ends counted, the figures, the notes.
    fn render_measured(&self, run: &Run) -> String {
        let notes: String = run.status.notes.iter().map(|note| format!("note: {note}\n")).collect();
        let parts = [
            render_ends(run, self.style, self.verbose),
            figures::render_figures(run, self.style, self.columns),
            notes,
        ];
        let shown: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        shown.join("\n")
    }
}

impl Printer for TextPrinter {
    fn render_event(&mut self, event: &Event) -> String {
        self.live.as_mut().map_or(String::new(), |live| live.render_event(event))
    }

    fn render_run(&mut self, run: &Run, _dropped_events: u64) -> String {
        let mut text = self.live.as_mut().map_or(String::new(), LiveLines::render_rest);
        let tells_why = run.status.outcome != Outcome::Failed || self.with_failures;
        // What a run had measured before it failed is lost nowhere.
        let shown = tells_why || !run.reports.is_empty();
        let verdict = if tells_why { render_verdict(run, self.style) } else { String::new() };
        match &mut self.several {
            Some(several) => {
                let is_valid = run.status.outcome == Outcome::Complete
                    && run.status.verdict == Some(Trust::Valid);
                several.push(run, if is_valid { "" } else { &verdict });
                if self.live.is_some() {
                    text.push('\n');
                }
            }
            None if shown => {
                if self.live.is_none() {
                    text.push_str(&format!("{}\n", render_title(&run.plan)));
                }
                text.push_str(&format!("\n{}{verdict}", self.render_measured(run)));
            }
            None => {}
        }
        text
    }

    fn render_repeats(&mut self, repeats: &Repeats) -> String {
        let several = self.several.take().unwrap_or_default();
        let runs = several.render(self.style, self.live.is_none());
        format!("{runs}\n{}", render_repeats(repeats, self.style))
    }

    fn render_end(&mut self) -> String {
        let several = self.several.take().unwrap_or_default();
        several.render(self.style, self.live.is_none())
    }
}

/// How a run ended, where not as planned, and whether its figures can be believed.
fn render_verdict(run: &Run, style: Style) -> String {
    let status = &run.status;
    let message = status.message.as_deref().unwrap_or("see the notes");
    let verdict = status.trust();
    let line = match verdict {
        Trust::Valid => format!("{}\n", verdict.word()),
        // A document of an earlier release, or of a search, has its reasons in the message alone.
        Trust::Invalid if status.reasons.is_empty() => {
            format!("{} {message}\n", style.warning(&format!("{}:", verdict.word())))
        }
        Trust::Doubtful | Trust::Invalid => {
            let line = verdict.line(&status.reasons);
            match line.split_once(' ') {
                Some((word, reasons)) => format!("{} {reasons}\n", style.warning(word)),
                None => format!("{}\n", style.warning(&line)),
            }
        }
    };
    match status.outcome {
        Outcome::Complete | Outcome::Untrustworthy => line,
        Outcome::Failed => format!("{} {message}\n", style.warning("failed:")),
        Outcome::Interrupted => format!("{} {message}\n{line}", style.warning("interrupted:")),
    }
}

/// What a plan does, in a line.
pub(crate) fn render_title(plan: &Plan) -> String {
    let workload = &plan.workload;
    let server = render_host_port(&plan.host, plan.port);
    let what = match workload.direction() {
        Some(way) if workload.frames().is_some() => match way {
            Direction::Up => format!("media to {server}"),
            Direction::Down => format!("media from {server}"),
            Direction::Both => format!("media to and from {server}"),
        },
        Some(Direction::Up) => format!("stream to {server}"),
        Some(Direction::Down) => format!("stream from {server}"),
        Some(Direction::Both) => format!("stream to and from {server}"),
        None if matches!(workload.kind, Kind::Connect { .. }) => format!("connect to {server}"),
        None => format!("rr with {server}"),
    };
    let flows = match workload.flows {
        1 => "1 flow".to_owned(),
        flows => format!("{flows} flows"),
    };
    let mut parts = vec![format!("{} {what}", render_transport(workload)), flows];
    parts.extend(workload.payload.duplex.then(|| "duplex".to_owned()));
    parts.extend(workload.active_flows().map(|active| format!("{active} active at a time")));
    parts.push(render_size(workload));
    parts.push(match workload.end {
        // A test of another tool that has no end of its own.
        End::Time { duration_ns: 0 } => "until it was stopped".to_owned(),
        End::Time { duration_ns } => render_duration_ns(duration_ns),
        End::Bytes { bytes } => render_bytes(bytes),
        End::Count { count } => format!("{count} times"),
    });
    match workload.rate {
        Some(Rate::AllFlows { bps }) => parts.push(format!("at {}", render_rate(bps as f64))),
        Some(Rate::EachFlow { bps }) => {
            parts.push(format!("at {} per flow", render_rate(bps as f64)));
        }
        None => {}
    }
    parts.extend(workload.frames().map(|media| {
        format!(
            "{} frames/s, played after {}",
            media.frames_per_s,
            render_duration_ns(media.buffer_depth_ns)
        )
    }));
    parts.extend(render_requests(workload));
    parts.extend(render_variant(workload.payload.variant));
    let title = plan.title.as_ref().map_or(String::new(), |title| format!("{title}\n"));
    format!("{title}{}", parts.join(", "))
}

/// How requests follow each other, and how connections are closed.
fn render_requests(workload: &Workload) -> Vec<String> {
    let mut parts = Vec::new();
    if let Kind::Connect { hold_ns: hold_ns @ 1.., .. } = workload.kind {
        parts.push(format!("held open for {}", render_duration_ns(hold_ns)));
    }
    match workload.kind {
        Kind::Connect { close: Closing::Fin, .. } => parts.push("closed by the client".to_owned()),
        Kind::Connect { close: Closing::Rst, .. } => parts.push("closed by resets".to_owned()),
        Kind::Connect { close: Closing::Server, .. } => {
            parts.push("closed by the server".to_owned());
        }
        Kind::Rr { outstanding: Some(outstanding), .. } => {
            parts.push(format!("{outstanding} on their way"));
        }
        Kind::Rr { .. } | Kind::Stream { .. } => {}
    }
    parts.extend(workload.schedule().map(|schedule| match schedule.arrivals {
        Arrivals::Even => format!("{}/s", render_count(schedule.per_s)),
        Arrivals::Poisson => format!("{}/s at random", render_count(schedule.per_s)),
    }));
    parts
}

/// What the program doesn't do that others do; a result that has it compares with none that hasn't.
fn render_variant(variant: Variant) -> Option<String> {
    let parts: Vec<&str> = [
        (variant.zero_copy, "without copying what is sent (zero copy)"),
        (variant.splice, "without touching a byte (splice)"),
        (variant.discard, "without reading a byte (discard)"),
    ]
    .into_iter()
    .filter_map(|(asked, text)| asked.then_some(text))
    .collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// The name of the transport as people write it.
pub(crate) fn render_transport(workload: &Workload) -> &'static str {
    match workload.transport {
        Transport::Tcp => "TCP",
        Transport::Tls => "TLS",
        Transport::Udp => "UDP",
        Transport::Quic if workload.quic.datagrams => "QUIC datagrams",
        Transport::Quic => "QUIC",
    }
}

/// `client` or `server`.
pub(crate) fn name_of(role: linerate_measure::Role) -> &'static str {
    match role {
        linerate_measure::Role::Client => "client",
        linerate_measure::Role::Server => "server",
    }
}

fn render_size(workload: &Workload) -> String {
    if let Some((datagrams, bytes)) = workload.frame_datagrams() {
        return format!("{datagrams} x {bytes} B a frame");
    }
    match workload.kind {
        Kind::Stream { send_bytes, .. } if workload.has_datagrams() => {
            format!("{send_bytes} B a datagram")
        }
        Kind::Stream { send_bytes, .. } => format!("{send_bytes} B a send"),
        Kind::Connect { transfer: Some(transfer), .. } => render_transfer(&transfer),
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => {
            format!("{request_bytes} B out, {response_bytes} B back")
        }
    }
}

/// What each connection carries.
pub(crate) fn render_transfer(transfer: &ConnectTransfer) -> String {
    let bytes = match transfer.bytes {
        Size::Fixed(bytes) => render_bytes(bytes),
        Size::Range { low_bytes, high_bytes } => {
            format!("{} to {}", render_bytes(low_bytes), render_bytes(high_bytes))
        }
    };
    let how = match transfer.pattern {
        TransferPattern::Push => "out",
        TransferPattern::Pull => "back",
        TransferPattern::PushPull => "in turns",
        TransferPattern::Duplex => "both ways at once",
    };
    format!("{bytes} {how}")
}

/// A number of things, exact below a million.
pub(crate) fn render_number(number: u64) -> String {
    if number < 1_000_000 { number.to_string() } else { render_count(number as f64) }
}
