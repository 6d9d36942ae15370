//! The JSON document: what the original's lines say and what they don't.

use linerate_engine::perf::{ClientEvent, Ending, Report, Statistics};
use linerate_measure::dialect::perf;
use linerate_personality::secnetperf::options::{ClientOptions, Refusal};
use serde::Serialize;

use super::latency::LatencyLine;

#[derive(Serialize)]
struct Document<'a> {
    tool: &'static str,
    transport: &'static str,
    target: &'a str,
    port: u16,
    elapsed_us: u64,
    /// What the rates are over: until the server was lost, where it was.
    measured_us: u64,
    /// Connections that the server, or the path to it, broke off.
    broken_off: u64,
    connections: u64,
    streams: u64,
    uploaded_bytes: u64,
    downloaded_bytes: u64,
    /// All bytes over the whole time, unlike the original's sum of rates.
    upload_bps: u64,
    download_bps: u64,
    connections_per_second: f64,
    streams_per_second: f64,
    failures: &'a std::collections::BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<Latency>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connection_statistics: Vec<ConnectionStatistics>,
}

#[derive(Serialize)]
struct Latency {
    count: u64,
    min: u32,
    p50: u32,
    p90: u32,
    p99: u32,
    #[serde(rename = "p99.9", skip_serializing_if = "Option::is_none")]
    p99_9: Option<u32>,
    #[serde(rename = "p99.99", skip_serializing_if = "Option::is_none")]
    p99_99: Option<u32>,
    max: u32,
}

#[derive(Serialize)]
struct ConnectionStatistics {
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmitted_segments: Option<u64>,
}

/// The document of a run, with a line break.
pub(super) fn render_document(
    options: &ClientOptions,
    report: &Report,
    line: Option<&LatencyLine>,
    endings: &[Ending],
    in_a_line: bool,
) -> String {
    let totals = report.totals();
    let measured_ns = report.own.elapsed_ns.max(1);
    let seconds = measured_ns as f64 / 1e9;
    let rate_bps = |bytes: u64| {
        let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(measured_ns);
        u64::try_from(bits).unwrap_or(u64::MAX)
    };
    let (connections, streams) = (totals.connections.unwrap_or(0), totals.streams.unwrap_or(0));
    let uploaded_bytes = totals.uploaded_bytes.unwrap_or(0);
    let downloaded_bytes = totals.downloaded_bytes.unwrap_or(0);
    let document = Document {
        tool: "secnetperf",
        transport: if options.tcp { "tcp" } else { "quic" },
        target: &options.target,
        port: options.port,
        elapsed_us: totals.ran_ns.unwrap_or(0) / 1000,
        measured_us: measured_ns / 1000,
        broken_off: totals.broken_off.unwrap_or(0),
        connections,
        streams,
        uploaded_bytes,
        downloaded_bytes,
        upload_bps: rate_bps(uploaded_bytes),
        download_bps: rate_bps(downloaded_bytes),
        connections_per_second: connections as f64 / seconds,
        streams_per_second: streams as f64 / seconds,
        failures: &report.own.errors,
        latency_us: line.map(|line| latency(&line.latency)),
        connection_statistics: endings.iter().map(statistics).collect(),
    };
    let text = if in_a_line {
        serde_json::to_string(&Line { event: "result", of: document })
    } else {
        serde_json::to_string_pretty(&document)
    };
    // Numbers and text always make a document.
    text.map_or_else(|_| String::new(), |text| text + "\n")
}

/// An event with its name, as a line.
#[derive(Serialize)]
struct Line<T> {
    event: &'static str,
    #[serde(flatten)]
    of: T,
}

#[derive(Serialize)]
struct StreamLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    uploaded_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    downloaded_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    download_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<u64>,
}

#[derive(Serialize)]
struct WaitsLine {
    scheduling_us: u64,
    pacing_us: u64,
    congestion_us: u64,
    connection_flow_us: u64,
    stream_number_us: u64,
    stream_flow_us: u64,
    application_us: u64,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    status: u8,
    message: &'a str,
}

/// The line of what went wrong.
pub(super) fn render_refusal(refusal: &Refusal) -> String {
    let Refusal { status, text, .. } = refusal;
    let of = ErrorLine { status: *status, message: text };
    let text = serde_json::to_string(&Line { event: "error", of });
    text.map_or_else(|_| String::new(), |text| text + "\n")
}

/// The line of an event.
pub(super) fn render_event(event: &ClientEvent) -> String {
    let text = match event {
        // A remark on standard error, and a sample of the run document: no events of these lines.
        ClientEvent::Refused(_) | ClientEvent::Sample(_) => return String::new(),
        ClientEvent::StreamEnded(outcome) => serde_json::to_string(&Line {
            event: "stream",
            of: StreamLine {
                uploaded_bytes: outcome.upload.map(|sent| sent.bytes),
                upload_us: outcome.upload.map(|sent| sent.elapsed_us),
                downloaded_bytes: outcome.download.map(|received| received.bytes),
                download_us: outcome.download.map(|received| received.elapsed_us),
                latency_us: outcome.latency_us,
            },
        }),
        ClientEvent::StreamWaited(waits) => serde_json::to_string(&Line {
            event: "waits",
            of: WaitsLine {
                scheduling_us: waits.scheduling_us,
                pacing_us: waits.pacing_us,
                congestion_us: waits.congestion_us,
                connection_flow_us: waits.connection_flow_us,
                stream_number_us: waits.stream_number_us,
                stream_flow_us: waits.stream_flow_us,
                application_us: waits.application_us,
            },
        }),
        ClientEvent::ConnectionEnded(ending) => {
            serde_json::to_string(&Line { event: "connection", of: statistics(ending) })
        }
    };
    text.map_or_else(|_| String::new(), |text| text + "\n")
}

/// Percentiles that so many values can't support are absent.
fn latency(kept: &perf::Latency) -> Latency {
    Latency {
        count: kept.count,
        min: kept.min,
        p50: kept.p50,
        p90: kept.p90,
        p99: kept.p99,
        p99_9: (kept.count >= 1000).then_some(kept.p99_9),
        p99_99: (kept.count >= 10_000).then_some(kept.p99_99),
        max: kept.max,
    }
}

fn statistics(ending: &Ending) -> ConnectionStatistics {
    let mut said = ConnectionStatistics {
        failure: ending.failure,
        rtt_us: None,
        min_rtt_us: None,
        sent_packets: None,
        lost_packets: None,
        retransmitted_segments: None,
    };
    match &ending.statistics {
        Statistics::Unknown => {}
        Statistics::Tcp(status, _) => {
            said.rtt_us = Some(status.rtt_us.into());
            said.min_rtt_us = status.min_rtt_us.map(u64::from);
            said.retransmitted_segments = Some(status.retransmitted_segments.into());
        }
        Statistics::Quic(statistics) => {
            said.rtt_us = Some(statistics.rtt_us);
            said.min_rtt_us = statistics.min_rtt_us;
            said.sent_packets = Some(statistics.sent_packets);
            said.lost_packets = Some(statistics.lost_packets);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_the_names_of_every_other_document() {
        let (p99_9, p99_99) = (Some(4), Some(5));
        let latency = Latency { count: 1, min: 0, p50: 1, p90: 2, p99: 3, p99_9, p99_99, max: 6 };
        let document = serde_json::to_value(latency).unwrap();
        for name in ["p50", "p90", "p99", "p99.9", "p99.99"] {
            assert!(document[name].is_u64(), "no {name} in {document}");
        }
    }
}
