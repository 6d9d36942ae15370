//! What both ends counted, as the original's lines and documents show it: intervals, streams, and the streams of one
//! direction added up. All of it is read from samples and reports.

use linerate_engine::iperf3::Report;
use linerate_measure::dialect::iperf3::{
    CpuPercent, EndTotals, FlowInterval, FlowTotals, TcpExtremes,
};
use linerate_measure::dialect::{EndExtension, FlowExtension, FlowSampleExtension};
use linerate_measure::sample::FlowSample;
use linerate_measure::{EndReport, FlowReport, Sample};

/// Datagrams of a stream, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Datagrams {
    /// Sent; or, where they are received, those that the other end has sent by the numbers that came.
    pub packets: u64,
    /// Lost; negative in an interval in which more came late than were lost; `None`: not known.
    pub lost: Option<i64>,
    /// Out of order.
    pub out_of_order: u64,
    /// Jitter (RFC 3550) at the end, nanoseconds.
    pub jitter_ns: f64,
}

impl Datagrams {
    /// Of so many that were sent: what was sent has neither loss nor jitter.
    pub fn sent(packets: u64) -> Self {
        Self { packets, lost: Some(0), ..Self::default() }
    }

    /// Percent of the datagrams that were lost; not known where there are none.
    pub fn lost_percent(&self) -> Option<f64> {
        let lost = self.lost.filter(|_| self.packets > 0)? as f64;
        Some(100.0 * lost / self.packets as f64)
    }

    /// Jitter in milliseconds.
    pub(super) fn jitter_ms(&self) -> f64 {
        self.jitter_ns / 1e6
    }

    /// A peer may claim any figures: what doesn't fit stops at the end of its range.
    fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            lost: self.lost.zip(other.lost).map(|(a, b)| a.saturating_add(b)),
            out_of_order: self.out_of_order.saturating_add(other.out_of_order),
            jitter_ns: self.jitter_ns + other.jitter_ns,
        }
    }
}

/// One stream, or streams of one direction added up over the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// All bytes.
    pub bytes: u64,
    /// The longest time of a stream.
    pub seconds: f64,
    /// All segments sent again, where each stream knows.
    pub retransmits: Option<u64>,
    /// All datagrams; the jitter is the streams' mean.
    pub datagrams: Option<Datagrams>,
}

impl Sum {
    /// Bytes a second.
    pub(super) fn rate(&self) -> f64 {
        rate(self.bytes, self.seconds)
    }

    /// What streams counted. None where one of them is not known, or there is none.
    pub fn of(streams: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let streams: Vec<Self> = streams.into_iter().collect::<Option<_>>()?;
        let first = streams.first()?;
        let mut sum = Self {
            retransmits: first.retransmits.map(|_| 0),
            datagrams: first.datagrams.map(|_| Datagrams::sent(0)),
            ..Self::default()
        };
        for stream in &streams {
            sum.bytes = sum.bytes.saturating_add(stream.bytes);
            sum.seconds = sum.seconds.max(stream.seconds);
            sum.retransmits =
                sum.retransmits.zip(stream.retransmits).map(|(a, b)| a.saturating_add(b));
            sum.datagrams = sum.datagrams.zip(stream.datagrams).map(|(a, b)| a.plus(b));
        }
        let count = streams.len() as f64;
        sum.datagrams = sum
            .datagrams
            .map(|figures| Datagrams { jitter_ns: figures.jitter_ns / count, ..figures });
        Some(sum)
    }

    /// What an end counted of a stream.
    pub fn of_flow(flow: &FlowReport) -> Self {
        let moved = flow.sent.or(flow.received).unwrap_or_default();
        let length_ns = flow.to_ns.unwrap_or(0).saturating_sub(flow.from_ns.unwrap_or(0));
        let own = totals(flow);
        let datagrams = own.packets.map(|packets| Datagrams {
            packets,
            lost: if flow.sent.is_some() { Some(0) } else { own.lost },
            out_of_order: flow.datagrams.and_then(|counts| counts.reordered).unwrap_or(0),
            jitter_ns: flow.jitter_ns.unwrap_or(0.0),
        });
        let retransmits = flow.retransmitted_segments;
        Self { bytes: moved.bytes, seconds: length_ns as f64 / 1e9, retransmits, datagrams }
    }

    /// What a stream did in an interval of so many seconds.
    pub(super) fn of_interval_flow(flow: &FlowSample, seconds: f64) -> Self {
        let own = match &flow.extension {
            Some(FlowSampleExtension::Iperf3(own)) => *own,
            None => FlowInterval::default(),
        };
        let datagrams = own.packets.map(|packets| Datagrams {
            packets,
            lost: own.lost.or(Some(0)),
            out_of_order: flow.datagrams.as_ref().and_then(|counts| counts.reordered).unwrap_or(0),
            jitter_ns: flow.jitter_ns.unwrap_or(0.0),
        });
        let bytes = flow.sent_bytes.or(flow.received_bytes).unwrap_or(0);
        Self { bytes, seconds, retransmits: own.retransmits, datagrams }
    }
}

/// An interval on the original's clock, which begins anew when the omitted time is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<'a> {
    pub(super) sample: &'a Sample,
    /// Seconds since the start, or since the end of the omitted time.
    pub(super) start_s: f64,
    /// See `start_s`.
    pub(super) end_s: f64,
}

impl<'a> Interval<'a> {
    /// Its length.
    pub(super) fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }

    /// The streams of one direction.
    pub(super) fn direction(&self, sends: bool) -> impl Iterator<Item = &'a FlowSample> + use<'a> {
        self.sample.flows.iter().filter(move |flow| flow.sent_bytes.is_some() == sends)
    }

    /// What the streams of one direction did.
    pub(super) fn sum(&self, sends: bool) -> Option<Sum> {
        let seconds = self.seconds();
        Sum::of(self.direction(sends).map(|flow| Some(Sum::of_interval_flow(flow, seconds))))
    }
}

/// Puts samples on the original's clock, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeline {
    /// When the omitted time was over, since the load began.
    counted_from_ns: Option<u64>,
}

impl Timeline {
    /// The next sample.
    pub(super) fn interval<'a>(&mut self, sample: &'a Sample) -> Interval<'a> {
        let base_ns = match sample.warm_up {
            true => 0,
            false => *self.counted_from_ns.get_or_insert(sample.from_ns),
        };
        let seconds = |at_ns: u64| at_ns.saturating_sub(base_ns) as f64 / 1e9;
        Interval { sample, start_s: seconds(sample.from_ns), end_s: seconds(sample.to_ns) }
    }
}

/// What came out of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    own: &'a FlowReport,
    peer: Option<&'a FlowReport>,
}

/// What came out, stream by stream.
pub fn streams(report: &Report) -> impl Iterator<Item = Stream<'_>> + Clone {
    let told = report.peer.as_ref().map_or(&[][..], |peer| &peer.flows);
    report.own.flows.iter().map(move |own| {
        let place = told.binary_search_by_key(&own.flow, |flow| flow.flow);
        Stream { own, peer: place.ok().and_then(|place| told.get(place)) }
    })
}

impl Stream<'_> {
    /// What output calls it.
    pub fn socket(&self) -> u32 {
        socket_of(self.own.flow)
    }

    /// Whether this end sends.
    pub fn sends(&self) -> bool {
        self.own.sent.is_some()
    }

    /// What this end counted.
    pub fn local(&self) -> Sum {
        Sum::of_flow(self.own)
    }

    /// What the other end says it counted.
    pub fn remote(&self) -> Option<Sum> {
        self.peer.map(Sum::of_flow)
    }

    /// What the sending end counted.
    pub fn sender(&self) -> Option<Sum> {
        if self.sends() { Some(self.local()) } else { self.remote() }
    }

    /// What the receiving end counted.
    pub fn receiver(&self) -> Option<Sum> {
        if self.sends() { self.remote() } else { Some(self.local()) }
    }

    /// Extremes of the intervals' figures, of a TCP connection that this end sends on.
    pub fn extremes(&self) -> Option<TcpExtremes> {
        totals(self.own).extremes
    }
}

/// What output calls a flow: the descriptor that the original would have (5, 7, 9, ...).
pub(super) fn socket_of(flow: u32) -> u32 {
    flow.saturating_mul(2).saturating_add(5)
}

fn totals(flow: &FlowReport) -> FlowTotals {
    match &flow.extension {
        Some(FlowExtension::Iperf3(totals)) => *totals,
        _ => FlowTotals::default(),
    }
}

fn end_totals(end: &EndReport) -> Option<&EndTotals> {
    match &end.extension {
        Some(EndExtension::Iperf3(totals)) => Some(totals),
        _ => None,
    }
}

/// An end's processor time.
pub(super) fn cpu_percent(end: &EndReport) -> Option<CpuPercent> {
    end_totals(end)?.cpu_percent
}

/// The congestion control that an end used.
pub(super) fn congestion(end: &EndReport) -> Option<&str> {
    end_totals(end)?.congestion.as_deref()
}

/// Bytes a second; 0 of no time.
pub(super) fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beyond_all_measure_add_up_to_the_largest_there_are() {
        let datagrams = |lost| Datagrams {
            packets: u64::MAX,
            lost: Some(lost),
            out_of_order: u64::MAX,
            jitter_ns: 0.5,
        };
        let of = |lost| Sum {
            bytes: u64::MAX,
            seconds: 1.0,
            retransmits: Some(u64::MAX),
            datagrams: Some(datagrams(lost)),
        };
        for lost in [i64::MAX, i64::MIN] {
            let streams = [of(lost), of(lost)];
            let sum = Sum::of(streams.map(Some)).unwrap_or_default();
            assert_eq!((sum.bytes, sum.retransmits), (u64::MAX, Some(u64::MAX)));
            assert_eq!(sum.datagrams, Some(datagrams(lost)));
        }
    }
}
