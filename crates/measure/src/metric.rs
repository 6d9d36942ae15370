//! The metrics of a run: name, unit, what each counts, and how it is combined.
//!
//! Columns, texts for people, JSON Schemas and documentation take names and meanings from [`METRICS`].
//! [`METRICS`] also says how to combine runs, flows or intervals. Most rates and ratios can't be added: they are
//! computed again from their parts.

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
    /// What texts for people call it.
    pub label: &'static str,
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
        (label, counts): (&'static str, &'static str),
        [over_flows, over_time, over_directions]: [Combine; 3],
    ) -> Self {
        Self { name, unit, label, counts, over_flows, over_time, over_directions }
    }

    /// What a schema says of it: what it counts, its unit, and how figures of it are combined.
    pub fn description(&self) -> String {
        let mut letters = self.counts.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        let rules = [self.over_flows, self.over_time, self.over_directions].map(Combine::name);
        let [flows, time, directions] = rules;
        format!(
            "{}{}. Unit: {}. Combined over flows: {flows}; over time: {time}; over directions: {directions}.",
            first.unwrap_or_default(),
            letters.as_str(),
            self.unit.name(),
        )
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
    ($($id:ident = $name:literal, $unit:ident, $label:literal, $counts:literal, $rules:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $counts, ".")]
            pub const $id: Metric = Metric::new($name, Unit::$unit, ($label, $counts), $rules);
        )*
        /// All metrics.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    GOODPUT = "goodput_bps", BitsPerSecond, "goodput", "payload that arrived while all flows ran, over that time", RATES;
    GOODPUT_UP = "goodput_up_bps", BitsPerSecond, "up", "payload that arrived at the server, over its time, where both directions ran", ANEW;
    GOODPUT_DOWN = "goodput_down_bps", BitsPerSecond, "down", "payload that arrived at the client, over its time, where both directions ran", ANEW;
    SENT_RATE = "sent_bps", BitsPerSecond, "sent", "payload that senders handed to their stacks, over the senders' time", RATES;
    RECEIVED_BYTES = "received_bytes", Bytes, "received", "payload that arrived", SUMS;
    DRAINED_BYTES = "drained_bytes", Bytes, "arrived later", "part of `received_bytes` that arrived after the measured time: the senders' time was up, or a flow had ended", SUMS;
    SENT_BYTES = "sent_bytes", Bytes, "sent", "payload sent", SUMS;
    ELAPSED = "elapsed_s", Seconds, "measured time", "measured time: the receivers' for a stream, else the client's", [Combine::Max, Combine::Add, Combine::Max];
    BYTES_PER_SEND = "bytes_per_send", BytesPerCall, "per call", "payload that a sending call moved, mean", ANEW;
    BYTES_PER_RECEIVE = "bytes_per_receive", BytesPerCall, "per call", "payload that a receiving call moved, mean", ANEW;
    TRANSACTIONS = "transactions", Count, "transactions", "transactions completed", SUMS;
    TRANSACTIONS_PER_S = "transactions_per_s", PerSecond, "transactions", "transactions completed, over the client's time", ANEW;
    TRANSACTIONS_LOST = "transactions_lost", Count, "lost", "transactions whose response never came", SUMS;
    TRANSACTIONS_UNSENT = "transactions_unsent", Count, "due, but never begun", "transactions that were due by the schedule and never begun", SUMS;
    CONNECTIONS_PER_S = "connections_per_s", PerSecond, "connections", "connections opened, used and closed", ANEW;
    LATENCY = "latency_ns", Nanoseconds, "latency", "the time of a transaction", HISTOGRAMS;
    SERVICE = "service_ns", Nanoseconds, "from the real start", "by a schedule: the time of a transaction from its real start", HISTOGRAMS;
    ESTABLISHMENT = "establishment_ns", Nanoseconds, "established", "the time from a connection's first packet until it stood", HISTOGRAMS;
    FIRST_BYTE = "first_byte_ns", Nanoseconds, "first byte", "the time from a connection's first packet to the first byte of its response", HISTOGRAMS;
    DATAGRAMS = "datagrams", Count, "datagrams", "datagrams, by what became of them", SUMS;
    DATAGRAMS_PER_S = "datagrams_per_s", PerSecond, "datagrams", "datagrams received, over the receivers' time", RATES;
    FRAMES = "frames", Count, "frames", "frames of media streams, by what became of them", SUMS;
    LOSS_BURSTS = "loss_bursts", Count, "loss bursts", "runs of lost datagrams with consecutive numbers", SUMS;
    LONGEST_LOSS_BURST = "longest_loss_burst", Count, "longest loss burst", "datagrams of the longest run of lost ones", [Combine::Max; 3];
    DELAY_VARIATION = "delay_variation_ns", Nanoseconds, "delay variation", "how much longer a datagram of a media stream was on its way than the fastest", HISTOGRAMS;
    SEND_DELAY = "send_delay_ns", Nanoseconds, "frames sent late by", "from when a frame of a media stream was due until it was sent", HISTOGRAMS;
    LOSS_RATIO = "loss_ratio", Ratio, "loss", "lost datagrams over those sent", ANEW;
    JITTER = "jitter_ns", Nanoseconds, "jitter", "interarrival jitter (RFC 3550)", [Combine::Mean, Combine::Last, Combine::Mean];
    RETRANSMITS = "retransmitted_segments", Count, "retransmits", "TCP segments sent again", SUMS;
    CPU = "cpu_s", Seconds, "CPU", "CPU time of the threads that carried the flows", SUMS;
    CPU_PER_GB = "cpu_s_per_gb", SecondsPerGigabyte, "CPU", "both ends' CPU time over the payload that arrived", ANEW;
    CPU_PER_TRANSACTION = "cpu_s_per_transaction", SecondsPerTransaction, "CPU", "both ends' CPU time over transactions", ANEW;
    VERIFIED_BYTES = "verified_bytes", Bytes, "verified", "bytes checked and found right", SUMS;
    WRONG_BYTES = "wrong_bytes", Bytes, "wrong", "bytes checked and found wrong", SUMS;
    ERRORS = "errors", Count, "errors", "failures under load at both ends, by kind; of connections that come and go the client's", SUMS;
    FAIRNESS = "fairness", Ratio, "fairness", "Jain's fairness index over the flows' goodput or transactions, of two flows or more", [Combine::Anew, Combine::Anew, Combine::Min];
    LOST_PACKETS = "lost_packets", Count, "lost packets", "QUIC packets held to be lost", SUMS;
    RTT = "rtt_us", Microseconds, "RTT", "smoothed round-trip time", [Combine::Mean, Combine::Last, Combine::Mean];
    CWND = "cwnd_bytes", Bytes, "congestion window", "congestion windows", [Combine::Add, Combine::Last, Combine::Add];
}

/// What a hunt has found: a rate in its unit, bits of payload or requests per second. It stands for the whole run, in
/// the place of the metrics of one trial.
pub const HUNTED: [Metric; 2] = [HUNT_RATE_BPS, HUNT_RATE_PER_S];

/// The rate that a hunt over a stream has found.
pub const HUNT_RATE_BPS: Metric = Metric::new(
    "hunt_rate_bps",
    Unit::BitsPerSecond,
    ("found", "the highest rate of payload that keeps the limits of a hunt"),
    [Combine::Anew, Combine::Anew, Combine::Anew],
);

/// The rate that a hunt over requests has found.
pub const HUNT_RATE_PER_S: Metric = Metric::new(
    "hunt_rate_per_s",
    Unit::PerSecond,
    ("found", "the highest rate of requests that keeps the limits of a hunt"),
    [Combine::Anew, Combine::Anew, Combine::Anew],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_a_summary_is_a_metric() {
        let schema = crate::schema::run();
        let fields = schema["$defs"]["Summary"]["properties"].as_object().unwrap();
        // No figures: what a figure counts from, how well it is known, what limited them, and lists.
        for name in fields.keys().filter(|name| {
            !["explanation", "latency_from", "latency_intervals", "limits", "one_way"]
                .contains(&name.as_str())
        }) {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
    }

    #[test]
    fn names_end_with_their_unit_and_differ() {
        let all: Vec<Metric> = METRICS.iter().chain(&HUNTED).copied().collect();
        for (place, metric) in all.iter().enumerate() {
            assert!(metric.name.ends_with(metric.unit.suffix()), "{metric:?}");
            assert!(all[..place].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
        assert_eq!(LATENCY.part("p50"), "latency_p50_ns");
        assert_eq!(DATAGRAMS.part("sent"), "datagrams_sent");
    }
}
