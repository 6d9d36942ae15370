//! The original's lines, byte for byte.

use linerate_engine::perf::{Ending, QuicStatistics, Statistics, StreamWaits, TcpCounts};
use linerate_measure::dialect::perf::EndTotals;
use linerate_measure::sample::TcpStatus;
use linerate_wire::perf::exchange::{Outcome, Transfer};

use linerate_personality::secnetperf::options::ClientOptions;

/// The lines of a stream that has ended.
pub(super) fn render_outcome(outcome: &Outcome, old_format: bool) -> String {
    let line = |name: &str, Transfer { bytes, elapsed_us }: Transfer| {
        let rate_kbps = Transfer { bytes, elapsed_us }.rate_kbps();
        let (ms, us) = (elapsed_us / 1000, elapsed_us % 1000);
        if old_format {
            format!("{name:>8}: {bytes} bytes @ {rate_kbps} kbps ({ms}.{us:03} ms).\n")
        } else {
            format!("Result: {name} {bytes} bytes @ {rate_kbps} kbps ({ms}.{us:03} ms).\n")
        }
    };
    let upload = outcome.upload.map(|sent| line("Upload", sent));
    let download = outcome.download.map(|received| line("Download", received));
    upload.unwrap_or_default() + &download.unwrap_or_default()
}

/// The block of what a stream waited for. The limit before an address is proved holds no client.
pub(super) fn render_waits(waits: &StreamWaits) -> String {
    let mut text = "Stream Timings (flow blocked):\n".to_owned();
    for (name, waited_us) in [
        ("SCHEDULING:", waits.scheduling_us),
        ("PACING:", waits.pacing_us),
        ("AMPLIFICATION_PROT:", 0),
        ("CONGESTION_CONTROL:", waits.congestion_us),
        ("CONN_FLOW_CONTROL:", waits.connection_flow_us),
        ("STREAM_ID_FLOW_CONTROL:", waits.stream_number_us),
        ("STREAM_FLOW_CONTROL:", waits.stream_flow_us),
        ("APP:", waits.application_us),
    ] {
        text.push_str(&line(name, format_args!("{waited_us} us")));
    }
    text
}

/// The line of raw figures of a stream that has ended: bytes and microseconds each way, then the
/// latency. What didn't come about has no figure.
pub(super) fn render_raw(outcome: &Outcome) -> String {
    let figures = |transfer: Option<Transfer>| {
        transfer.map_or_else(String::new, |transfer| {
            format!("{},{}", transfer.bytes, transfer.elapsed_us)
        })
    };
    let latency_us = outcome.latency_us.map_or_else(String::new, |us| us.to_string());
    format!("Raw: {};{};{latency_us}\n", figures(outcome.upload), figures(outcome.download))
}

/// The lines of a run that has ended, latency apart; its rates are over `time_us`.
pub(super) fn render_totals(options: &ClientOptions, totals: &EndTotals, time_us: u64) -> String {
    let mut text = String::new();
    let (connections, streams) = (totals.connections.unwrap_or(0), totals.streams.unwrap_or(0));
    if options.prints_rate {
        let rate = |count: u64| u128::from(count) * 1_000_000 / u128::from(time_us);
        if connections > 0 {
            text.push_str(&format!("Result: {} HPS\n", rate(connections)));
        }
        if streams > 0 {
            text.push_str(&format!("Result: {} RPS\n", rate(streams)));
        }
    } else if options.prints_throughput {
        if options.old_format {
            return text;
        }
        let rates =
            [("Upload", totals.upload_rates_kbps), ("Download", totals.download_rates_kbps)];
        for (name, rate_kbps) in rates {
            let Some(rate_kbps) = rate_kbps.filter(|kbps| *kbps > 0) else { continue };
            text.push_str(&format!("Result: {name} {rate_kbps} kbps.\n"));
        }
    } else if !options.prints_stream_throughput && !options.prints_latency {
        text = match (connections, streams) {
            (0, 0) => "No connections or streams completed!\n".to_owned(),
            (_, 0) => format!("Completed {connections} connections!\n"),
            (0, _) => format!("Completed {streams} streams!\n"),
            _ => format!("Completed {connections} connections and {streams} streams!\n"),
        };
    }
    text
}

/// The blocks of a connection that has ended. What was not counted has no line.
pub(super) fn render_ending(ending: &Ending) -> String {
    match &ending.statistics {
        Statistics::Unknown => String::new(),
        Statistics::Tcp(status, counts) => render_tcp(status, counts),
        Statistics::Quic(statistics) => render_quic(statistics),
    }
}

/// A name, padded as the original pads it, and its value.
fn line(name: &str, value: impl std::fmt::Display) -> String {
    format!("  {name:<25} {value}\n")
}

/// Windows' names, with Linux's figures; times of waiting are in milliseconds there.
fn render_tcp(status: &TcpStatus, counts: &TcpCounts) -> String {
    let mut text = "Connection Statistics:\n".to_owned();
    let mut add = |name: &str, value: Option<u64>, unit: &str| {
        if let Some(value) = value {
            text.push_str(&line(name, format_args!("{value}{unit}")));
        }
    };
    add("RTT", Some(status.rtt_us.into()), " us");
    add("MinRTT", status.min_rtt_us.map(u64::from), " us");
    add("TimestampsEnabled", counts.timestamps.map(u64::from), "");
    add("BytesOut", counts.sent_bytes, "");
    add("BytesIn", counts.received_bytes, "");
    add("BytesRetrans", counts.retransmitted_bytes, "");
    add("TimeoutEpisodes", counts.timeouts, "");
    add("SynRetrans", counts.syn_retransmissions, "");
    add("SndLimTimeRwin", status.rwnd_limited_us.map(|us| us / 1000), "");
    add("SndLimTimeSnd", status.sndbuf_limited_us.map(|us| us / 1000), "");
    text
}

fn render_quic(statistics: &QuicStatistics) -> String {
    let mut text = "Connection Statistics:\n".to_owned();
    let mut add = |name: &str, value: Option<u64>, unit: &str| {
        if let Some(value) = value {
            text.push_str(&line(name, format_args!("{value}{unit}")));
        }
    };
    add("RTT", Some(statistics.rtt_us), " us");
    add("MinRTT", statistics.min_rtt_us, " us");
    add("EcnCapable", statistics.ecn_capable.map(u64::from), "");
    add("SendTotalPackets", Some(statistics.sent_packets), "");
    add("SendSuspectedLostPackets", Some(statistics.lost_packets), "");
    add("SendCongestionCount", Some(statistics.congestion_events), "");
    add("SendEcnCongestionCount", statistics.ecn_congestion_events, "");
    add("RecvTotalPackets", statistics.received_packets, "");
    add("RecvReorderedPackets", statistics.reordered_packets, "");
    add("RecvDroppedPackets", statistics.dropped_packets, "");
    add("RecvDuplicatePackets", statistics.duplicate_packets, "");
    add("RecvDecryptionFailures", statistics.decryption_failures, "");
    if let Some(suite) = statistics.cipher_suite {
        text.push_str(&render_security(suite, statistics.group));
    }
    text
}

/// The block on TLS 1.3, by its cipher suite; numbers are SChannel's, which the original prints.
fn render_security(suite: u16, group: Option<u16>) -> String {
    let (cipher, strength, hash) = match suite {
        0x1301 => (0x660e, 128, 0x800c),
        0x1302 => (0x6610, 256, 0x800d),
        _ => (0x6612, 256, 0x800c),
    };
    let mut text = "Connection TLS Info:\n".to_owned();
    text.push_str(&line("TlsProtocolVersion", "0x3000"));
    text.push_str(&line("CipherAlgorithm", format_args!("{cipher:#x}")));
    text.push_str(&line("CipherStrength", strength));
    text.push_str(&line("Hash", format_args!("{hash:#x}")));
    text.push_str(&line("HashStrength", 0));
    text.push_str(&line("KeyExchangeAlgorithm", 0));
    text.push_str(&line("KeyExchangeStrength", 0));
    text.push_str(&line("CipherSuite", format_args!("{suite:#x}")));
    if let Some(group) = group {
        text.push_str(&line("TlsGroup", group));
    }
    text
}

#[cfg(test)]
mod tests;
