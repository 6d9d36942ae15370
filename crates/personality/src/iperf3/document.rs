//! The JSON document that the original's client prints, read as what both ends counted.
//!
//! The server's part is there where the client asked for it (`--get-server-output`) and the server printed JSON, too.

use std::collections::BTreeMap;

use linerate_measure::dialect::{EndExtension, FlowExtension, FlowSampleExtension, iperf3};
use linerate_measure::report::FlowReport;
use linerate_measure::sample::{DatagramCounts, FlowSample, Traffic};
use linerate_measure::{EndReport, Role, Sample};
use linerate_wire::visible::visible;
use serde::Deserialize;

/// The most bytes that a document may have.
pub const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
/// The oldest release whose documents tell of each stream who sends.
const OLDEST: (u32, u32) = (3, 7);
/// The most streams of a test: 128 in each direction.
const STREAMS_MAX: usize = 256;
/// The greatest count that a JSON number holds exactly.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// No test is longer, in seconds.
const TIME_MAX_S: f64 = 1e7;

/// What a document tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The client's version: `iperf 3.12`.
    pub version: String,
    /// What both ends counted, interval by interval.
    pub samples: Vec<Sample>,
    /// What both ends counted in all, without the omitted time.
    pub reports: Vec<EndReport>,
    /// Whether the server's part is there.
    pub has_server: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    start: Start,
    intervals: Vec<Interval>,
    end: End,
    error: Option<String>,
    server_output_json: Option<Box<Told>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Start {
    connected: Vec<Connected>,
    version: String,
}

#[derive(Debug, Deserialize)]
struct Connected {
    socket: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Interval {
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize)]
struct Stream {
    socket: i64,
    start: f64,
    end: f64,
    bytes: f64,
    retransmits: Option<f64>,
    packets: Option<f64>,
    lost_packets: Option<f64>,
    jitter_ms: Option<f64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct End {
    cpu_utilization_percent: Option<Cpu>,
    sender_tcp_congestion: Option<String>,
    receiver_tcp_congestion: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cpu {
    host_total: f64,
    host_user: f64,
    host_system: f64,
}

/// The version in what `iperf3 --version` prints first: `iperf 3.12`.
///
/// # Errors
/// A sentence: it is another program, or too old.
pub fn read_version(printed: &str) -> Result<String, String> {
    let line = printed.lines().next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let number = match (words.next(), words.next()) {
        (Some("iperf"), Some(number)) => number,
        _ => return Err("it isn't iperf3: it doesn't answer --version as iperf3 does".to_owned()),
    };
    let mut parts = number.split(|character: char| !character.is_ascii_digit());
    let mut part = || parts.next().and_then(|digits| digits.parse::<u32>().ok());
    match (part(), part()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(format!("iperf {number}")),
        _ => Err(format!(
            "it is iperf {}, and {}.{} is the oldest that can be used",
            visible(number),
            OLDEST.0,
            OLDEST.1
        )),
    }
}

/// Reads a client's document. `began_utc_ns` is when the test began, nanoseconds since 1970.
///
/// # Errors
/// A sentence: the original's own error, or what is wrong with the document.
pub fn read_document(text: &str, began_utc_ns: i64) -> Result<Document, String> {
    let told: Told = serde_json::from_str(text)
        .map_err(|error| format!("iperf3 printed no JSON document that can be read: {error}"))?;
    if let Some(error) = &told.error {
        return Err(format!("iperf3: {}", visible(error)));
    }
    let (mut samples, client) = read_end(Role::Client, &told, began_utc_ns)?;
    if samples.iter().all(|sample| sample.warm_up) {
        return Err("iperf3's document has no interval outside the omitted time".to_owned());
    }
    let mut reports = vec![client];
    if let Some(server) = &told.server_output_json {
        let (more, report) = read_end(Role::Server, server, began_utc_ns)?;
        samples.extend(more);
        reports.push(report);
    }
    let has_server = told.server_output_json.is_some();
    Ok(Document { version: visible(&told.start.version), samples, reports, has_server })
}

/// What one end's intervals come to.
fn read_end(
    role: Role,
    told: &Told,
    began_utc_ns: i64,
) -> Result<(Vec<Sample>, EndReport), String> {
    let connected = &told.start.connected;
    if connected.len() > STREAMS_MAX {
        let count = connected.len();
        return Err(format!("iperf3's document has {count} streams; {STREAMS_MAX} can be read"));
    }
    let flows: BTreeMap<i64, u32> =
        connected.iter().zip(0..).map(|(stream, flow)| (stream.socket, flow)).collect();
    if flows.len() < connected.len() {
        return Err("iperf3's document has two streams of one number".to_owned());
    }
    let mut totals: Vec<FlowReport> =
        (0..).take(flows.len()).map(|flow| FlowReport { flow, ..FlowReport::default() }).collect();
    let mut samples: Vec<Sample> = Vec::new();
    // Time begins anew when the omitted time is over.
    let (mut omitted_ns, mut last_ns, mut measured_ns) = (0, 0, None);
    for interval in &told.intervals {
        let Some(first) = interval.streams.first() else { continue };
        let shift_ns = if first.omitted { 0 } else { omitted_ns };
        let to_ns = nanoseconds(first.end)?.saturating_add(shift_ns);
        let from_ns = nanoseconds(first.start)?.saturating_add(shift_ns).max(last_ns);
        if first.omitted {
            omitted_ns = to_ns;
        }
        let streams = interval.streams.iter().map(|stream| {
            let flow = flows.get(&stream.socket).ok_or_else(|| {
                format!("iperf3's document has a stream {} that wasn't connected", stream.socket)
            })?;
            read_stream(stream, *flow)
        });
        let streams: Vec<FlowSample> = streams.collect::<Result<_, String>>()?;
        if !first.omitted {
            let begun_ns = *measured_ns.get_or_insert(from_ns);
            for stream in &streams {
                let place = usize::try_from(stream.flow).ok();
                if let Some(total) = place.and_then(|place| totals.get_mut(place)) {
                    add(total, stream, (begun_ns, to_ns.max(from_ns)));
                }
            }
        }
        // An interval without length is what came after the last one.
        if to_ns <= from_ns {
            continue;
        }
        last_ns = to_ns;
        let utc_ns = began_utc_ns.saturating_add(i64::try_from(to_ns).unwrap_or(i64::MAX));
        let index = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let warm_up = first.omitted;
        let sample = Sample { index, from_ns, to_ns, utc_ns, warm_up, ..Sample::nothing(role) };
        samples.push(with_streams(sample, streams));
    }
    let mut report = EndReport::nothing(role);
    report.elapsed_ns = last_ns.saturating_sub(measured_ns.unwrap_or(last_ns));
    report.flows = totals;
    report.extension = Some(EndExtension::Iperf3(end_totals(&told.end, &report)));
    Ok((samples, report))
}

/// What an end tells of itself besides its streams.
fn end_totals(end: &End, report: &EndReport) -> iperf3::EndTotals {
    let congestion = match report.flows.iter().any(|flow| flow.sent.is_some()) {
        true => &end.sender_tcp_congestion,
        false => &end.receiver_tcp_congestion,
    };
    let cpu_percent = end.cpu_utilization_percent.as_ref().map(|cpu| iperf3::CpuPercent {
        total: cpu.host_total,
        user: cpu.host_user,
        system: cpu.host_system,
    });
    iperf3::EndTotals { cpu_percent, congestion: congestion.as_deref().map(visible) }
}

/// One stream in one interval.
fn read_stream(stream: &Stream, flow: u32) -> Result<FlowSample, String> {
    let sends = stream.sender.ok_or_else(|| {
        format!(
            "iperf3's document doesn't tell who sends: use iperf {}.{} or later",
            OLDEST.0, OLDEST.1
        )
    })?;
    let bytes = count("bytes", stream.bytes)?;
    let packets = stream.packets.map(|packets| count("packets", packets)).transpose()?;
    // More may come late in an interval than are lost in it.
    let lost = stream.lost_packets.filter(|_| !sends);
    let lost = lost.map(|lost| signed_count("lost_packets", lost)).transpose()?;
    let retransmits = stream.retransmits.filter(|_| sends);
    let retransmits = retransmits.map(|count_of| count("retransmits", count_of)).transpose()?;
    let datagrams = packets.map(|packets| Box::new(datagrams(sends, packets, lost)));
    let jitter_ns = stream.jitter_ms.filter(|jitter| !sends && jitter.is_finite());
    let extension = iperf3::FlowInterval { retransmits, packets, lost };
    Ok(FlowSample {
        flow,
        sent_bytes: sends.then_some(bytes),
        received_bytes: (!sends).then_some(bytes),
        datagrams,
        jitter_ns: jitter_ns.map(|jitter| jitter * 1e6),
        extension: Some(FlowSampleExtension::Iperf3(extension)),
        ..FlowSample::default()
    })
}

/// The packets of a receiver are those lost, too.
fn datagrams(sends: bool, packets: u64, lost: Option<i64>) -> DatagramCounts {
    if sends {
        return DatagramCounts { sent: Some(packets), ..DatagramCounts::default() };
    }
    let lost = lost.map_or(0, |lost| u64::try_from(lost).unwrap_or(0));
    let received = Some(packets.saturating_sub(lost));
    DatagramCounts { received, lost: Some(lost), ..DatagramCounts::default() }
}

/// Adds an interval to a stream's sum. `span` is the time measured so far.
fn add(total: &mut FlowReport, stream: &FlowSample, span: (u64, u64)) {
    let sum = |known: Option<Traffic>, bytes: Option<u64>| match bytes {
        Some(bytes) => Some(known.unwrap_or_default().plus(Traffic { bytes, calls: None })),
        None => known,
    };
    total.sent = sum(total.sent, stream.sent_bytes);
    total.received = sum(total.received, stream.received_bytes);
    (total.from_ns, total.to_ns) = (Some(span.0), Some(span.1));
    total.jitter_ns = stream.jitter_ns.or(total.jitter_ns);
    let Some(FlowSampleExtension::Iperf3(own)) = stream.extension else { return };
    if let Some(more) = own.retransmits {
        let known = total.retransmitted_segments.unwrap_or(0);
        total.retransmitted_segments = Some(known.saturating_add(more));
    }
    let mut sums = match total.extension {
        Some(FlowExtension::Iperf3(sums)) => sums,
        _ => iperf3::FlowTotals::default(),
    };
    sums.packets = match (sums.packets, own.packets) {
        (Some(known), Some(more)) => Some(known.saturating_add(more)),
        (known, more) => known.or(more),
    };
    sums.lost = match (sums.lost, own.lost) {
        (Some(known), Some(more)) => Some(known.saturating_add(more)),
        (known, more) => known.or(more),
    };
    let sends = stream.sent_bytes.is_some();
    total.datagrams = sums.packets.map(|packets| datagrams(sends, packets, sums.lost));
    total.extension = Some(FlowExtension::Iperf3(sums));
}

/// Adds up the streams of an interval; the first of them are listed.
fn with_streams(mut sample: Sample, mut streams: Vec<FlowSample>) -> Sample {
    let sum = |bytes: &dyn Fn(&FlowSample) -> Option<u64>| {
        let known = streams.iter().filter_map(bytes);
        known.reduce(u64::saturating_add).map(|bytes| Traffic { bytes, calls: None })
    };
    sample.sent = sum(&|stream| stream.sent_bytes);
    sample.received = sum(&|stream| stream.received_bytes);
    let counts = streams.iter().filter_map(|stream| stream.datagrams.as_deref().copied());
    sample.datagrams = counts.reduce(DatagramCounts::plus);
    streams.truncate(Sample::MAX_FLOWS);
    sample.flows = streams;
    sample
}

fn nanoseconds(seconds: f64) -> Result<u64, String> {
    match (0.0..=TIME_MAX_S).contains(&seconds) {
        true => Ok((seconds * 1e9).round() as u64),
        false => Err(format!("iperf3's document has the time {seconds} s, which no test has")),
    }
}

fn count(name: &str, value: f64) -> Result<u64, String> {
    match (0.0..=COUNT_MAX).contains(&value) {
        true => Ok(value as u64),
        false => Err(format!("iperf3's document has {name} {value}, which no test has")),
    }
}

fn signed_count(name: &str, value: f64) -> Result<i64, String> {
    count(name, value.abs())?;
    Ok(value as i64)
}

#[cfg(test)]
mod tests;
