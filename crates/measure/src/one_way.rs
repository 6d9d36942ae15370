//! Delays in one direction of a path: from datagrams with their send times, and from the pings of the control
//! connection.
//!
//! Two clocks differ by an offset that no exchange of messages tells better than to half a round trip, without
//! assumptions about the path. So a one-way delay has a bound of that size. How much longer one message takes than
//! another in the same direction is free of the offset: only the clocks' drift makes it wrong. That part, *queueing*,
//! is known much better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock_offset::{OffsetLines, RoundTrip};
use crate::histogram::supports_quantile;
use crate::plan::Direction;
use crate::summary::Latency;

/// The most values that are kept of a flow: enough for a 99th percentile after every second one was left out.
const KEPT_TRANSITS: usize = 1024;

/// The fewest values of a quarter that have quartiles.
const QUARTER_TRANSITS: usize = 8;

/// The most pings that are kept: of 400 s at 10 a second all.
const KEPT_PINGS: usize = 4096;

/// One of every so many values, so that at most `limit` are kept of however many there are.
#[derive(Clone, Debug)]
struct Thinned<T> {
    kept: Vec<T>,
    limit: usize,
    every: u64,
    until_next: u64,
}

impl<T: Copy> Thinned<T> {
    /// Keeps at most `limit` values, an even number.
    fn new(limit: usize) -> Self {
        // Room for all of them from the beginning: values come while a load is measured.
        Self { kept: Vec::with_capacity(limit), limit, every: 1, until_next: 0 }
    }

    #[inline]
    fn push(&mut self, value: T) {
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        self.keep(value);
    }

    #[cold]
    fn keep(&mut self, value: T) {
        if self.kept.len() >= self.limit {
            let mut place = 0_usize;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every = self.every.saturating_mul(2);
        }
        self.kept.push(value);
        self.until_next = self.every - 1;
    }
}

/// How long datagrams of a flow were on their way, by the difference of two clocks that may differ by any constant.
#[derive(Clone, Debug)]
pub struct Transits {
    least: Option<(i64, u64)>,
    kept: Thinned<i64>,
}

impl Default for Transits {
    fn default() -> Self {
        Self { least: None, kept: Thinned::new(KEPT_TRANSITS) }
    }
}

impl Transits {
    /// A datagram that was sent at `sent_ns` by the sender's monotonic clock came at `received_ns` by this end's. A
    /// send time of 0 is none.
    #[inline]
    pub fn record(&mut self, sent_ns: u64, received_ns: u64) {
        if sent_ns == 0 {
            return;
        }
        // Modulo 2^64: a clock may be behind the sender's, and the stamps are the peer's word.
        let transit_ns = received_ns.wrapping_sub(sent_ns) as i64;
        if self.least.is_none_or(|(least_ns, _)| transit_ns < least_ns) {
            self.least = Some((transit_ns, received_ns));
        }
        self.kept.push(transit_ns);
    }

    /// What they come to; `None` before the first.
    pub fn transit(&self) -> Option<Transit> {
        let (least_ns, least_at_ns) = self.least?;
        let above = self.kept.kept.iter().map(|transit_ns| transit_ns.abs_diff(least_ns));
        let above: Vec<u64> = above.collect();
        let quarters = quarters(&above);
        Some(Transit { least_ns, least_at_ns, above_least_ns: distribution(above)?, quarters })
    }
}

/// The quartiles of each quarter of these values; `None` of fewer than [`QUARTER_TRANSITS`] a quarter.
fn quarters(values: &[u64]) -> Option<[Quartiles; 4]> {
    let length = values.len() / 4;
    if length < QUARTER_TRANSITS {
        return None;
    }
    let mut quarters = [Quartiles::default(); 4];
    for (quarter, values) in quarters.iter_mut().zip(values.chunks_exact(length)) {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let at = |place: usize| sorted.get(place).copied();
        *quarter = Quartiles {
            low_ns: at(length / 4)?,
            median_ns: at(length / 2)?,
            high_ns: at(length * 3 / 4)?,
        };
    }
    Some(quarters)
}

/// How long the datagrams of a flow were on their way: the receiver's monotonic clock less the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transit {
    /// The least difference. The offset between the two clocks is in it, so it may be negative.
    pub least_ns: i64,
    /// When the datagram of which it is came, on the receiver's monotonic clock.
    pub least_at_ns: u64,
    /// How much longer the others were on their way: at most 1024 values, spread evenly over the batches that came.
    pub above_least_ns: Latency,
    /// The same of each quarter of these values, in the order in which they came: a queue that fills grows from quarter
    /// to quarter, and one that is full stays. Absent of fewer than 32 values, and where the receiver doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarters: Option<[Quartiles; 4]>,
}

/// The quartiles of delays above the least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quartiles {
    /// A quarter of them took no longer.
    pub low_ns: u64,
    /// Half of them.
    pub median_ns: u64,
    /// Three quarters of them.
    pub high_ns: u64,
}

/// What a direction's delays were found from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OneWaySource {
    /// The load's datagrams, which carry their send times.
    Datagrams,
    /// The pings of the control connection.
    Pings,
}

/// The delay of one direction, under the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWay {
    /// Up is from the client to the server.
    pub direction: Direction,
    /// What it was found from.
    pub source: OneWaySource,
    /// The least delay. The truth is at most `bound_ns` away.
    pub least_ns: u64,
    /// Half a round trip of the pings, mostly: nothing tells how a round trip splits into two ways.
    pub bound_ns: u64,
    /// How much longer than the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queueing_ns: Option<Latency>,
    /// By how much drifting clocks may have made `queueing_ns` wrong.
    pub queueing_bound_ns: u64,
}

/// One ping, each time on the sender's or receiver's monotonic clock.
#[derive(Clone, Copy, Debug)]
struct PingDelay {
    sent_ns: u64,
    received_ns: u64,
    up_ns: i64,
    down_ns: i64,
}

/// The pings of a run, over which two directions' delays are compared.
#[derive(Clone, Debug)]
pub struct PingDelays {
    kept: Thinned<PingDelay>,
}

impl Default for PingDelays {
    fn default() -> Self {
        Self { kept: Thinned::new(KEPT_PINGS) }
    }
}

impl PingDelays {
    /// A ping's stamps, all of monotonic clocks. The server's are remote input.
    pub fn record(&mut self, trip: RoundTrip) {
        let [sent_ns, received_ns] =
            [trip.client_sent_ns, trip.client_received_ns].map(|ns| u64::try_from(ns).unwrap_or(0));
        let up_ns = trip.server_received_ns.checked_sub(trip.client_sent_ns);
        let down_ns = trip.client_received_ns.checked_sub(trip.server_sent_ns);
        if let (Some(up_ns), Some(down_ns)) = (up_ns, down_ns) {
            self.kept.push(PingDelay { sent_ns, received_ns, up_ns, down_ns });
        }
    }
}

/// What is known of both directions of a path when a run is over.
#[derive(Clone, Copy, Debug)]
pub struct OneWayEvidence<'a> {
    /// The server's monotonic clock less the client's.
    pub lines: &'a OffsetLines,
    /// The pings.
    pub pings: &'a PingDelays,
    /// The measured part, on the client's monotonic clock.
    pub measured_ns: (u64, u64),
    /// The datagrams that the server received, of the flow with the longest queues.
    pub server: Option<&'a Transit>,
    /// Those that the client received, likewise.
    pub client: Option<&'a Transit>,
}

impl OneWayEvidence<'_> {
    /// The delays of both directions, as far as they are known.
    pub fn delays(&self) -> Vec<OneWay> {
        let datagrams = [(Direction::Up, self.server), (Direction::Down, self.client)];
        let of = |(direction, transit): (Direction, Option<&Transit>)| match transit {
            Some(transit) => self.of_datagrams(direction, transit),
            None => self.of_pings(direction),
        };
        datagrams.into_iter().filter_map(of).collect()
    }

    fn of_datagrams(&self, direction: Direction, transit: &Transit) -> Option<OneWay> {
        let least_ns = i128::from(transit.least_ns);
        let bounds_ns = match direction {
            Direction::Down => {
                let (least, most) = self.lines.bounds_at(transit.least_at_ns);
                (least_ns + i128::from(least), least_ns + i128::from(most))
            }
            Direction::Up | Direction::Both => {
                // The server's time in the client's; where it is within its bounds makes next to no difference.
                let (from_ns, _) = self.measured_ns;
                let (offset_ns, _) = self.lines.bounds_at(from_ns);
                let at_ns = i128::from(transit.least_at_ns) - i128::from(offset_ns);
                let (least, most) = self.lines.bounds_at(u64::try_from(at_ns).ok()?);
                (least_ns - i128::from(most), least_ns - i128::from(least))
            }
        };
        let (least_ppb, most_ppb) = self.lines.drift_ppb();
        let (from_ns, to_ns) = self.measured_ns;
        let drift_ppb = least_ppb.abs().max(most_ppb.abs());
        let queueing_bound_ns = drift_ns(to_ns.saturating_sub(from_ns), drift_ppb);
        // It was the least by clocks that drift: another datagram may have taken less by as much.
        let bounds_ns = (bounds_ns.0 - i128::from(queueing_bound_ns), bounds_ns.1);
        let queueing_ns = Some(transit.above_least_ns);
        let source = OneWaySource::Datagrams;
        one_way((direction, source), bounds_ns, (queueing_ns, queueing_bound_ns))
    }

    fn of_pings(&self, direction: Direction) -> Option<OneWay> {
        let pings = &self.pings.kept.kept;
        let delay = |ping: &PingDelay| match direction {
            Direction::Down => (ping.received_ns, ping.down_ns),
            Direction::Up | Direction::Both => (ping.sent_ns, ping.up_ns),
        };
        let bounds = pings.iter().map(|ping| {
            let (at_ns, delay_ns) = delay(ping);
            let (least, most) = self.lines.bounds_at(at_ns);
            let [least, most, delay_ns] = [least, most, delay_ns].map(i128::from);
            match direction {
                Direction::Down => (delay_ns + least, delay_ns + most),
                Direction::Up | Direction::Both => (delay_ns - most, delay_ns - least),
            }
        });
        let bounds_ns = bounds.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))?;
        // Without the drift as far as it is known, so that the delays of different times compare.
        let (first_ns, _) = delay(pings.first()?);
        let (least_ppb, most_ppb) = self.lines.drift_ppb();
        let drift_ppb = f64::midpoint(least_ppb, most_ppb);
        let drift_ppb = if direction == Direction::Down { -drift_ppb } else { drift_ppb };
        let steady = |ping: &PingDelay| {
            let (at_ns, delay_ns) = delay(ping);
            let since_ns = (i128::from(at_ns) - i128::from(first_ns)) as f64;
            i128::from(delay_ns) - (since_ns * drift_ppb / 1e9) as i128
        };
        let least_ns = pings.iter().map(steady).min()?;
        let (from_ns, to_ns) = self.measured_ns;
        let measured = pings.iter().filter(|ping| (from_ns..=to_ns).contains(&ping.sent_ns));
        let above = |ping| u64::try_from(steady(ping) - least_ns).unwrap_or(u64::MAX);
        let queueing_ns = distribution(measured.map(above).collect());
        let span_ns = to_ns.saturating_sub(first_ns);
        let queueing_bound_ns = drift_ns(span_ns, (most_ppb - least_ppb) / 2.0);
        let source = OneWaySource::Pings;
        one_way((direction, source), bounds_ns, (queueing_ns, queueing_bound_ns))
    }
}

fn drift_ns(time_ns: u64, ppb: f64) -> u64 {
    (time_ns as f64 * ppb / 1e9).ceil() as u64
}

/// No delay is negative: the part of the bounds below zero is none. `None` where all of it is, as a clock was set.
fn one_way(
    (direction, source): (Direction, OneWaySource),
    (least, most): (i128, i128),
    (queueing_ns, queueing_bound_ns): (Option<Latency>, u64),
) -> Option<OneWay> {
    let (least, most) = (u64::try_from(least.max(0)).ok()?, u64::try_from(most).ok()?);
    let bound_ns = most.checked_sub(least)?.div_ceil(2);
    let least_ns = least.saturating_add(bound_ns);
    Some(OneWay { direction, source, least_ns, bound_ns, queueing_ns, queueing_bound_ns })
}

/// The distribution of values, exact; `None` of none.
fn distribution(mut values: Vec<u64>) -> Option<Latency> {
    values.sort_unstable();
    let count = values.len() as u64;
    let quantile = |q: f64| {
        let rank = (q * count as f64).ceil() as usize;
        let value = values.get(rank.saturating_sub(1)).copied();
        value.filter(|_| supports_quantile(count, q))
    };
    let range = (*values.first()?, *values.last()?);
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count as f64;
    Some(Latency::of_quantiles(count, range, mean, quantile))
}

#[cfg(test)]
mod tests;
