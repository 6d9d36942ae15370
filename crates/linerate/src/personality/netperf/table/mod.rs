//! The tables in which netperf has always shown its tests, to the blank.

mod request_response;
mod stream;
mod udp_stream;

use linerate_engine::netperf::{EndPlan, TestKind, TestTransport};
use linerate_measure::dialect::netperf::End;

use super::confidence::render_warning;
use super::figures::{Cost, Figures, UNMEASURED, letter};
use super::latency::render_histogram;
use super::planning::{Request, Table};
use super::selection::render_selection;
use super::selector::Origin;

/// What is printed when a test has ended.
pub(super) fn render_result(request: &Request, figures: &Figures, uuid: &str) -> String {
    let mut text = String::new();
    if let Some(selection) = &request.selection {
        let origin = Origin { request, figures, uuid: uuid.to_owned() };
        text += &render_selection(selection, &origin);
    } else {
        text += &render_warning(&figures.agreement, &request.schedule);
        text += &match request.table {
            Table::Stream | Table::Omni => stream::render_table(request, figures),
            Table::RequestResponse | Table::Connections => {
                request_response::render_table(request, figures)
            }
            Table::UdpStream => udp_stream::render_table(request, figures),
        };
    }
    if request.shown.verbosity > 1 && !figures.latency.is_empty() {
        text += &format!("\n{}\n{}", histogram_title(request), render_histogram(&figures.latency));
    }
    text
}

/// The original's, a word for each test; beside selected figures it has other words.
fn histogram_title(request: &Request) -> &'static str {
    if request.selection.is_some() {
        return match request.plan.kind {
            TestKind::Receive => "Histogram of recv times",
            TestKind::Send | TestKind::SendFile => "Histogram of send times",
            TestKind::RequestResponse => "Histogram of request/response times",
            TestKind::ConnectRequestResponse => "Histogram of connect/request/response/close times",
            TestKind::Connect => "Histogram of connect/close times",
        };
    }
    match (request.plan.kind, request.plan.transport) {
        (TestKind::Receive, _) => "\nHistogram of time spent in recv() call.",
        (TestKind::Send | TestKind::SendFile, TestTransport::Tcp) => {
            "\nHistogram of time spent in send() call."
        }
        (TestKind::Send | TestKind::SendFile, TestTransport::Udp) => {
            "Histogram of time spent in send() call"
        }
        (TestKind::RequestResponse, TestTransport::Udp) => "Histogram of request/reponse times.",
        _ => "Histogram of request/response times",
    }
}

/// The result of TCP_MSS.
pub(super) fn render_segment_size(request: &Request, mss_bytes: u32) -> String {
    let headers = if request.shown.headers { "Maximum\nSegment\nSize (bytes)\n\n" } else { "" };
    format!("{headers}{mss_bytes} \n")
}

/// Whether processors were asked for.
fn measures_cpu(request: &Request) -> bool {
    request.plan.local.cpu || request.plan.remote.cpu
}

/// The brand stands at the end of a line where no headers say what it is.
fn brand(request: &Request) -> &str {
    match &request.shown.brand {
        Some(brand) if !request.shown.headers => brand,
        _ => "",
    }
}

/// The result of `-v 0` with processors: the demand of this end, or else of the other.
fn chief_cost<'a>(request: &Request, figures: &'a Figures) -> (f64, End<'a>) {
    let (cost, end) = if request.plan.local.cpu {
        (figures.local, figures.last.local())
    } else {
        (figures.remote, figures.last.remote())
    };
    (demand(cost), end)
}

/// A count of the server's; -1: it wasn't told.
fn told(figures: &Figures, count: f64) -> String {
    if figures.last.server_told { format!("{count:.0}") } else { "-1".to_owned() }
}

fn util(cost: Cost) -> f64 {
    cost.util_percent.unwrap_or(UNMEASURED)
}

fn demand(cost: Cost) -> f64 {
    cost.demand_us.unwrap_or(UNMEASURED)
}

/// How the server measured; a blank if unknown.
fn remote_letter(figures: &Figures) -> &str {
    if figures.last.server_told { letter(figures.last.remote()) } else { " " }
}

/// A size of a socket's buffer when the socket was made; -1: it isn't known.
fn at_start(end: End<'_>) -> (i64, i64) {
    let settings = end.settings();
    let shown = |size: Option<u32>| size.map_or(-1, i64::from);
    (shown(settings.send_buffer.at_start), shown(settings.receive_buffer.at_start))
}

/// Alignment and offset of an end's send buffers; netperf aligns to eight bytes unless told otherwise.
fn send_buffers(end: &EndPlan) -> (u32, u32) {
    (end.send_alignment.unwrap_or(8), end.send_offset.unwrap_or(0))
}

/// Likewise of its receive buffers.
fn receive_buffers(end: &EndPlan) -> (u32, u32) {
    (end.receive_alignment.unwrap_or(8), end.receive_offset.unwrap_or(0))
}

/// Bytes of a call, where there were calls.
fn per_call(bytes: u64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { bytes as f64 / calls as f64 }
}
