//! The metrics of a run: name, unit, what each counts, and how it is combined.
//!
//! Columns and documentation take names and meanings from [`METRICS`]. A reader that adds up runs, flows or intervals
//! looks here how: most rates and ratios can't be added, but are made anew of their parts.

/// What a metric's number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// A share, or an index from 0 to 1.
    Ratio,
    /// Bytes of payload.
    Bytes,
    /// Bits of payload per second.
    BitsPerSecond,
    /// Things per second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds per 10^9 bytes.
    SecondsPerGigabyte,
    /// Seconds per transaction.
    SecondsPerTransaction,
    /// Bytes per system call.
    BytesPerCall,
}

impl Unit {
    /// What names end with.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Count | Self::Ratio | Self::BytesPerCall => "",
            Self::Bytes => "_bytes",
            Self::BitsPerSecond => "_bps",
            Self::PerSecond => "_per_s",
            Self::Seconds => "_s",
            Self::Microseconds => "_us",
            Self::Nanoseconds => "_ns",
            Self::SecondsPerGigabyte => "_s_per_gb",
            Self::SecondsPerTransaction => "_s_per_transaction",
        }
    }

    /// What tables have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Ratio => "0 to 1",
            Self::Bytes => "bytes",
            Self::BitsPerSecond => "bit/s",
            Self::PerSecond => "1/s",
            Self::Seconds => "s",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::SecondsPerGigabyte => "s/GB",
            Self::SecondsPerTransaction => "s per transaction",
            Self::BytesPerCall => "bytes per call",
        }
    }
}

/// How figures of one metric become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Their sum.
    Add,
    /// Their mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The newest.
    Last,
    /// Histograms are merged; a quantile is taken of the result.
    Merge,
    /// Anew from the parts that it is made of.
    Anew,
}

impl Combine {
    /// What tables have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "sum",
            Self::Mean => "mean",
            Self::Max => "greatest",
            Self::Min => "least",
            Self::Last => "last",
            Self::Merge => "histograms merge",
            Self::Anew => "from its parts",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in documents.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it counts.
    pub counts: &'static str,
    /// Over the flows of one direction.
    pub over_flows: Combine,
    /// Over intervals that follow each other.
    pub over_time: Combine,
    /// Over the two directions.
    pub over_directions: Combine,
}

impl Metric {
    const fn new(
        name: &'static str,
        unit: Unit,
        counts: &'static str,
        [over_flows, over_time, over_directions]: [Combine; 3],
    ) -> Self {
        Self { name, unit, counts, over_flows, over_time, over_directions }
    }

    /// The name of a part of it, as columns have it: `p50` of `latency_ns` is `latency_p50_ns`.
    pub fn part(&self, part: &str) -> String {
        let suffix = self.unit.suffix();
        let stem = self.name.strip_suffix(suffix).unwrap_or(self.name);
        format!("{stem}_{part}{suffix}")
    }
}

const SUMS: [Combine; 3] = [Combine::Add; 3];
const RATES: [Combine; 3] = [Combine::Anew, Combine::Anew, Combine::Add];
const ANEW: [Combine; 3] = [Combine::Anew; 3];
const HISTOGRAMS: [Combine; 3] = [Combine::Merge; 3];

macro_rules! metrics {
    ($($id:ident = $name:literal, $unit:ident, $counts:literal, $rules:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $counts, ".")]
            pub const $id: Metric = Metric::new($name, Unit::$unit, $counts, $rules);
        )*
        /// All metrics.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    GOODPUT = "goodput_bps", BitsPerSecond, "payload that arrived, over the receivers' time", RATES;
    GOODPUT_UP = "goodput_up_bps", BitsPerSecond, "the same, client to server", ANEW;
    GOODPUT_DOWN = "goodput_down_bps", BitsPerSecond, "the same, server to client", ANEW;
    SENT_RATE = "sent_bps", BitsPerSecond, "payload that senders handed to their stacks, over the senders' time", RATES;
    RECEIVED_BYTES = "received_bytes", Bytes, "payload that arrived", SUMS;
    SENT_BYTES = "sent_bytes", Bytes, "payload sent", SUMS;
    ELAPSED = "elapsed_s", Seconds, "measured time", [Combine::Max, Combine::Add, Combine::Max];
    BYTES_PER_SEND = "bytes_per_send", BytesPerCall, "payload that a sending call moved, mean", ANEW;
    BYTES_PER_RECEIVE = "bytes_per_receive", BytesPerCall, "payload that a receiving call moved, mean", ANEW;
    TRANSACTIONS = "transactions", Count, "transactions completed", SUMS;
    TRANSACTIONS_PER_S = "transactions_per_s", PerSecond, "transactions completed, over the client's time", ANEW;
    TRANSACTIONS_LOST = "transactions_lost", Count, "transactions whose response never came", SUMS;
    TRANSACTIONS_UNSENT = "transactions_unsent", Count, "transactions that were due and never begun", SUMS;
    CONNECTIONS_PER_S = "connections_per_s", PerSecond, "connections opened, used and closed", ANEW;
    LATENCY = "latency_ns", Nanoseconds, "the time of a transaction", HISTOGRAMS;
    SERVICE = "service_ns", Nanoseconds, "the time of a transaction from its real start", HISTOGRAMS;
    ESTABLISHMENT = "establishment_ns", Nanoseconds, "the time until a connection stood", HISTOGRAMS;
    FIRST_BYTE = "first_byte_ns", Nanoseconds, "the time to the first byte of a connection's response", HISTOGRAMS;
    DATAGRAMS = "datagrams", Count, "datagrams, by what became of them", SUMS;
    DATAGRAMS_PER_S = "datagrams_per_s", PerSecond, "datagrams received, over the receivers' time", RATES;
    LOSS_RATIO = "loss_ratio", Ratio, "lost datagrams over those sent", ANEW;
    JITTER = "jitter_ns", Nanoseconds, "interarrival jitter (RFC 3550)", [Combine::Mean, Combine::Last, Combine::Mean];
    RETRANSMITS = "retransmitted_segments", Count, "TCP segments sent again", SUMS;
    CPU = "cpu_s", Seconds, "CPU time of the threads that carried the flows", SUMS;
    CPU_PER_GB = "cpu_s_per_gb", SecondsPerGigabyte, "both ends' CPU time over the payload that arrived", ANEW;
    CPU_PER_TRANSACTION = "cpu_s_per_transaction", SecondsPerTransaction, "both ends' CPU time over transactions", ANEW;
    VERIFIED_BYTES = "verified_bytes", Bytes, "bytes checked and found right", SUMS;
    WRONG_BYTES = "wrong_bytes", Bytes, "bytes checked and found wrong", SUMS;
    ERRORS = "errors", Count, "failures under load, by kind", SUMS;
    FAIRNESS = "fairness", Ratio, "Jain's index over the flows", [Combine::Anew, Combine::Anew, Combine::Min];
    LOST_PACKETS = "lost_packets", Count, "QUIC packets held to be lost", SUMS;
    RTT = "rtt_us", Microseconds, "smoothed round-trip time", [Combine::Mean, Combine::Last, Combine::Mean];
    CWND = "cwnd_bytes", Bytes, "congestion windows", [Combine::Add, Combine::Last, Combine::Add];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_a_summary_is_a_metric() {
        let schema = crate::schema::run();
        let fields = schema["$defs"]["Summary"]["properties"].as_object().unwrap();
        // Not a figure, but what a figure counts from.
        for name in fields.keys().filter(|name| *name != "latency_from") {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
    }

    #[test]
    fn names_end_with_their_unit_and_differ() {
        for (place, metric) in METRICS.iter().enumerate() {
            assert!(metric.name.ends_with(metric.unit.suffix()), "{metric:?}");
            assert!(METRICS[..place].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
        assert_eq!(LATENCY.part("p50"), "latency_p50_ns");
        assert_eq!(DATAGRAMS.part("sent"), "datagrams_sent");
    }
}
