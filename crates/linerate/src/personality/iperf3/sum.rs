//! The streams of one direction, added up.

use linerate_engine::iperf3::{DatagramFigures, Interval, StreamInterval, StreamReport, Totals};

/// Streams of one direction, added up over the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    /// All bytes.
    pub(super) bytes: u64,
    /// The longest time of a stream.
    pub(super) seconds: f64,
    /// All segments sent again, where each stream knows.
    pub(super) retransmits: Option<u64>,
    /// All datagrams; the jitter is the streams' mean.
    pub(super) datagrams: Option<DatagramFigures>,
}

impl Sum {
    /// Bytes a second.
    pub(super) fn rate(&self) -> f64 {
        rate(self.bytes, self.seconds)
    }

    /// What streams counted. None where one of them is not known, or there is none.
    pub(super) fn of<'a>(totals: impl IntoIterator<Item = Option<&'a Totals>>) -> Option<Self> {
        let totals: Vec<&Totals> = totals.into_iter().collect::<Option<_>>()?;
        let first = totals.first()?;
        let mut sum = Self {
            retransmits: first.retransmits.map(|_| 0),
            datagrams: first.datagrams.map(|_| DatagramFigures::sent(0)),
            ..Self::default()
        };
        for stream in &totals {
            sum.bytes = sum.bytes.saturating_add(stream.bytes);
            sum.seconds = sum.seconds.max(stream.seconds);
            sum.retransmits =
                sum.retransmits.zip(stream.retransmits).map(|(a, b)| a.saturating_add(b));
            sum.datagrams = sum.datagrams.zip(stream.datagrams).map(|(a, b)| added(a, b));
        }
        sum.datagrams = sum.datagrams.map(|figures| mean_jitter(figures, totals.len()));
        Some(sum)
    }

    /// What the streams of one direction did in an interval.
    pub(super) fn of_interval(interval: &Interval, sends: bool) -> Option<Self> {
        let seconds = interval.seconds();
        let totals: Vec<Totals> =
            direction(interval, sends).map(|stream| of_stream(stream, seconds)).collect();
        Self::of(totals.iter().map(Some))
    }
}

/// The streams of one direction.
pub(super) fn direction(interval: &Interval, sends: bool) -> impl Iterator<Item = &StreamInterval> {
    interval.streams.iter().filter(move |stream| stream.sends == sends)
}

/// The reports of one direction.
pub(super) fn reports(
    streams: &[StreamReport],
    sends: bool,
) -> impl Iterator<Item = &StreamReport> + Clone {
    streams.iter().filter(move |stream| stream.sends == sends)
}

/// Bytes a second; 0 of no time.
pub(super) fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

fn of_stream(stream: &StreamInterval, seconds: f64) -> Totals {
    Totals {
        bytes: stream.bytes,
        seconds,
        retransmits: stream.retransmits,
        datagrams: stream.datagrams,
    }
}

/// A peer may claim any figures: what doesn't fit stops at the end of its range.
fn added(a: DatagramFigures, b: DatagramFigures) -> DatagramFigures {
    DatagramFigures {
        packets: a.packets.saturating_add(b.packets),
        lost: a.lost.zip(b.lost).map(|(a, b)| a.saturating_add(b)),
        out_of_order: a.out_of_order.saturating_add(b.out_of_order),
        jitter_s: a.jitter_s + b.jitter_s,
    }
}

fn mean_jitter(figures: DatagramFigures, streams: usize) -> DatagramFigures {
    DatagramFigures { jitter_s: figures.jitter_s / streams as f64, ..figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beyond_all_measure_add_up_to_the_largest_there_are() {
        let datagrams = |lost| DatagramFigures {
            packets: u64::MAX,
            lost: Some(lost),
            out_of_order: u64::MAX,
            jitter_s: 0.5,
        };
        let totals = |lost| Totals {
            bytes: u64::MAX,
            seconds: 1.0,
            retransmits: Some(u64::MAX),
            datagrams: Some(datagrams(lost)),
        };
        for lost in [i64::MAX, i64::MIN] {
            let streams = [totals(lost), totals(lost)];
            let sum = Sum::of(streams.iter().map(Some)).unwrap_or_default();
            assert_eq!((sum.bytes, sum.retransmits), (u64::MAX, Some(u64::MAX)));
            assert_eq!(sum.datagrams, Some(datagrams(lost)));
        }
    }
}
