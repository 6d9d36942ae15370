//! Figures of other tools' clients, read from what these print.

use serde_json::Value;

use super::figures::{COMPARED, Figures};
use crate::metric::{CONNECTIONS_PER_S, GOODPUT, Metric, TRANSACTIONS_PER_S};

/// A client whose output can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedBy {
    /// `iperf3 -J`.
    Iperf3,
    /// netperf: its tables, or `-k` with THROUGHPUT and THROUGHPUT_UNITS.
    Netperf,
    /// secnetperf.
    Secnetperf,
}

impl PrintedBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Iperf3, Self::Netperf, Self::Secnetperf];

    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Netperf => "netperf",
            Self::Secnetperf => "secnetperf",
        }
    }

    /// The client with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The figures of a run that printed this.
    ///
    /// # Errors
    ///
    /// Why there are none, in words.
    pub fn figures(self, printed: &str) -> Result<Figures, String> {
        let figures = match self {
            Self::Iperf3 => of_iperf3(printed)?,
            Self::Netperf => of_netperf(printed).into_iter().collect(),
            Self::Secnetperf => of_secnetperf(printed),
        };
        if figures.is_empty() {
            return Err(format!("{} printed no rate", self.name()));
        }
        Ok(figures)
    }
}

fn figure(metric: Metric, value: f64) -> (String, f64) {
    (metric.name.to_owned(), value)
}

/// What receivers counted. UDP before 3.17 has no such rate: `sum` has what was sent, and how much of it was lost.
fn of_iperf3(printed: &str) -> Result<Figures, String> {
    let document: Value = serde_json::from_str(printed)
        .map_err(|error| format!("iperf3 printed no JSON document: {error}"))?;
    if let Some(error) = document["error"].as_str() {
        return Err(format!("iperf3: {error}"));
    }
    let end = &document["end"];
    let rate = |name: &str| end[name]["bits_per_second"].as_f64();
    let arrived = |received: &str, sum: &str| {
        rate(received).or_else(|| {
            let count = |name: &str| end[sum][name].as_f64();
            let packets = count("packets").filter(|packets| *packets > 0.0)?;
            Some(rate(sum)? * (1.0 - count("lost_packets")?.clamp(0.0, packets) / packets))
        })
    };
    let down = arrived("sum_received_bidir_reverse", "sum_bidir_reverse").unwrap_or(0.0);
    let sum_bps = arrived("sum_received", "sum").map(|bps| bps + down);
    Ok(sum_bps.map(|bps| figure(GOODPUT, bps)).into_iter().collect())
}

fn of_netperf(printed: &str) -> Option<(String, f64)> {
    let of_key =
        |key: &str| printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    if let Some(value) = of_key("THROUGHPUT") {
        let units = of_key("THROUGHPUT_UNITS").unwrap_or("10^6bits/s");
        return with_unit(value.trim().parse().ok()?, units);
    }
    let rows: Vec<Vec<f64>> = printed.lines().filter_map(numbers).collect();
    let first = rows.first()?;
    if printed.contains("Trans.") {
        return Some(figure(TRANSACTIONS_PER_S, *first.get(5)?));
    }
    // Of UDP the second row has what arrived.
    let is_datagrams = printed.contains("Okay Errors");
    let value = if is_datagrams { rows.get(1)?.last()? } else { first.get(4)? };
    with_unit(*value, printed)
}

/// A rate with the unit that a text names.
fn with_unit(value: f64, text: &str) -> Option<(String, f64)> {
    let units = [("10^3bits/s", 1e3), ("10^6bits/s", 1e6), ("10^9bits/s", 1e9), ("Bytes/s", 8.0)];
    let prefixed = [("KBytes/s", 1024.0), ("MBytes/s", 1_048_576.0), ("GBytes/s", 1_073_741_824.0)];
    if text.contains("Trans/s") {
        return Some(figure(TRANSACTIONS_PER_S, value));
    }
    let of_bytes =
        prefixed.iter().find(|(unit, _)| text.contains(unit)).map(|(_, bytes)| bytes * 8.0);
    let factor = of_bytes
        .or_else(|| units.iter().find(|(unit, _)| text.contains(unit)).map(|(_, bits)| *bits));
    Some(figure(GOODPUT, value * factor?))
}

/// The numbers of a line that has nothing else.
fn numbers(line: &str) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() > 2)
}

fn of_secnetperf(printed: &str) -> Figures {
    let mut figures = Figures::new();
    let mut both_bps = 0.0;
    for line in printed.lines().filter_map(|line| line.strip_prefix("Result: ")) {
        let words: Vec<&str> = line.split([' ', ',', ':']).collect();
        let before = |unit: &str| -> Option<f64> {
            let at = words.iter().position(|word| word.trim_end_matches('.') == unit)?;
            words.get(at.checked_sub(1)?)?.parse().ok()
        };
        both_bps += before("kbps").map_or(0.0, |kbps| kbps * 1e3);
        figures.extend(before("RPS").map(|value| figure(TRANSACTIONS_PER_S, value)));
        figures.extend(before("HPS").map(|value| figure(CONNECTIONS_PER_S, value)));
        for one in COMPARED.iter().filter(|one| one.short_name.starts_with('p')) {
            let quantile = format!("{}th", one.short_name.trim_start_matches('p'));
            let at = words.iter().position(|word| *word == quantile);
            let value_us = at.and_then(|at| {
                words.get(at + 1..)?.iter().find_map(|word| word.parse::<f64>().ok())
            });
            figures.extend(value_us.map(|us| (one.name(), us * 1e3)));
        }
    }
    // Requests that have bytes are counted as requests.
    if both_bps > 0.0 && figures.is_empty() {
        figures.extend([figure(GOODPUT, both_bps)]);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(tool: PrintedBy, printed: &str) -> Vec<(String, f64)> {
        tool.figures(printed).unwrap().into_iter().collect()
    }

    fn one(name: &str, value: f64) -> Vec<(String, f64)> {
        vec![(name.to_owned(), value)]
    }

    #[test]
    fn iperf3_s_document_is_read() {
        let tcp = r#"{"start":{},"end":{"sum_sent":{"bits_per_second":9e9},"sum_received":{"bits_per_second":8e9}}}"#;
        assert_eq!(figures(PrintedBy::Iperf3, tcp), one("goodput_bps", 8e9));
        // What was sent, of which a quarter was lost.
        let udp = r#"{"end":{"sum":{"bits_per_second":2e6,"packets":100,"lost_packets":25}}}"#;
        assert_eq!(figures(PrintedBy::Iperf3, udp), one("goodput_bps", 1.5e6));
        let untold = r#"{"end":{"sum":{"bits_per_second":2e6}}}"#;
        assert!(PrintedBy::Iperf3.figures(untold).is_err(), "nobody says what arrived");
        let both = r#"{"end":{"sum_received":{"bits_per_second":1.0},"sum_received_bidir_reverse":{"bits_per_second":2.0}}}"#;
        assert_eq!(figures(PrintedBy::Iperf3, both), one("goodput_bps", 3.0));
        let failed =
            PrintedBy::Iperf3.figures(r#"{"end":{},"error":"unable to connect"}"#).unwrap_err();
        assert_eq!(failed, "iperf3: unable to connect");
        assert!(
            PrintedBy::Iperf3.figures("[ ID] Interval").unwrap_err().contains("no JSON document")
        );
        assert!(PrintedBy::Iperf3.figures("{}").unwrap_err().contains("printed no rate"));
    }

    #[test]
    fn netperf_s_tables_and_keys_are_read() {
        let stream = "MIGRATED TCP STREAM TEST from 0.0.0.0\nRecv   Send    Send\nSocket Socket  Message  Elapsed\n\
            Size   Size    Size     Time     Throughput\nbytes  bytes   bytes    secs.    10^6bits/sec\n\n\
            131072  16384  16384    10.00    9400.12\n";
        assert_eq!(figures(PrintedBy::Netperf, stream), one("goodput_bps", 9_400.12 * 1e6));
        let requests = "Send   Recv   Size     Size    Time     Rate\nbytes  Bytes  bytes    bytes   secs.    per sec\n\
            Elapsed  Trans.\n16384  131072 1        1       1.00     72140.20\n16384  131072\n";
        assert_eq!(figures(PrintedBy::Netperf, requests), one("transactions_per_s", 72_140.2));
        let datagrams = "Socket  Message  Elapsed      Messages\nSize    Size     Time         Okay Errors   Throughput\n\
            bytes   bytes    secs            #      #   10^6bits/sec\n\n212992   65507   10.00       12345      0    647.1\n\
            212992           10.00       12000           629.0\n";
        assert_eq!(figures(PrintedBy::Netperf, datagrams), one("goodput_bps", 629.0 * 1e6));
        let keys = "THROUGHPUT=11256.25\nTHROUGHPUT_UNITS=Trans/s\n";
        assert_eq!(figures(PrintedBy::Netperf, keys), one("transactions_per_s", 11_256.25));
        let keys = "THROUGHPUT=2.5\nTHROUGHPUT_UNITS=MBytes/s\n";
        assert_eq!(figures(PrintedBy::Netperf, keys), one("goodput_bps", 2.5 * 1_048_576.0 * 8.0));
        assert!(PrintedBy::Netperf.figures("establish control: are you sure\n").is_err());
    }

    #[test]
    fn secnetperf_s_results_are_read() {
        let upload = "\nResult: Upload 7271870 kbps.\nApp Main returning status 0\n";
        assert_eq!(figures(PrintedBy::Secnetperf, upload), one("goodput_bps", 7_271_870e3));
        let download = "Result: Download 1000000 bytes @ 371384 kbps (21.541 ms).\n";
        assert_eq!(figures(PrintedBy::Secnetperf, download), one("goodput_bps", 371_384e3));
        assert_eq!(
            figures(PrintedBy::Secnetperf, "Result: 98 HPS\n"),
            one("connections_per_s", 98.0)
        );
        let latencies = "Result: 98886 RPS, Latency,us 0th: 435, 50th: 926, 90th: 1243, 99th: 2605, 99.9th: 9697, \
            99.99th: 9977, Max: 10009\n";
        let expected = [
            ("latency_p50_ns", 926_000.0),
            ("latency_p90_ns", 1_243_000.0),
            ("latency_p99.9_ns", 9_697_000.0),
            ("latency_p99_ns", 2_605_000.0),
            ("transactions_per_s", 98_886.0),
        ];
        let expected: Vec<(String, f64)> =
            expected.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(figures(PrintedBy::Secnetperf, latencies), expected);
        assert!(PrintedBy::Secnetperf.figures("Connection timed out\n").is_err());
    }
}
