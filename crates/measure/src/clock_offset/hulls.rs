//! Bounds of the offset between two clocks at any time, from all round trips (Moon, Skelly and Towsley, "Estimation
//! and removal of clock skew from network delay measurements", 1999).

use super::RoundTrip;
use crate::run::{ClockTrack, OffsetAt};

/// How far two clocks may drift apart: 500 parts per million, as much as NTP adjusts a clock.
const MAX_DRIFT: f64 = 500e-6;

/// The most vertices of a hull. Honest clocks leave far fewer.
const MAX_VERTICES: usize = 256;

/// Times and offsets relative to the first round trip are below 2^53 ns, some 104 days: a float holds them exactly.
const MAX_RELATIVE_NS: u64 = 1 << 53;

/// Clocks are read in whole nanoseconds.
const READING_NS: i64 = 1;

/// Collects round trips and keeps of them what bounds the server's clock less the client's.
///
/// The server's clock at the time of T1 shows at most T2, and at the time of T4 at least T3. So the offset is at most
/// T2 - T1 at the time of T1, and at least T3 - T4 at the time of T4. If it changes at a constant rate of at most 500
/// parts per million, it is a line below all upper and above all lower bounds. Only the vertices of the lower convex
/// hull of the upper bounds and of the upper convex hull of the lower ones can touch such a line. So the memory is
/// bounded and a round trip costs constant time on average.
#[derive(Clone, Debug, Default)]
pub struct ClockHulls {
    first: Option<First>,
    upper: Hull,
    /// Of the lower bounds, mirrored.
    lower: Hull,
    pings: u64,
}

/// What times and offsets are relative to.
#[derive(Clone, Copy, Debug)]
struct First {
    at_ns: u64,
    offset_ns: i128,
}

impl ClockHulls {
    /// Hulls of no round trips.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a round trip into account that began at `sent_ns` and ended at `received_ns` on a clock of the client
    /// that never goes back; round trips come in its order. The trip's own stamps may be of other clocks. Stamps that
    /// can't be true are left out.
    pub fn record(&mut self, sent_ns: u64, received_ns: u64, trip: RoundTrip) {
        let upper_ns = i128::from(trip.server_received_ns) - i128::from(trip.client_sent_ns);
        let lower_ns = i128::from(trip.server_sent_ns) - i128::from(trip.client_received_ns);
        if received_ns < sent_ns || lower_ns > upper_ns {
            return;
        }
        let first = self.first.unwrap_or(First { at_ns: sent_ns, offset_ns: upper_ns });
        let (sent, received) = (first.relative_ns(sent_ns), first.relative_ns(received_ns));
        let (upper, lower) = (upper_ns - first.offset_ns, first.offset_ns - lower_ns);
        let (Some(sent), Some(received), Some(upper), Some(lower)) =
            (sent, received, within(upper), within(lower))
        else {
            return;
        };
        self.first = Some(first);
        self.upper.push((sent, upper + READING_NS));
        self.lower.push((received, lower + READING_NS));
        self.pings += 1;
    }

    /// Round trips that were taken into account.
    pub fn pings(&self) -> u64 {
        self.pings
    }

    /// The offsets that agree with all round trips. `None` before the first, and where no constant drift of at most
    /// 500 parts per million agrees with all: a clock was set.
    pub fn solve(&self) -> Option<OffsetLines> {
        let first = self.first?;
        let (mut least, mut most) = (-MAX_DRIFT, MAX_DRIFT);
        for &(upper_at, upper) in &self.upper.points {
            for &(lower_at, lower) in &self.lower.points {
                let (room, time) = ((upper + lower) as f64, (upper_at - lower_at) as f64);
                match upper_at.cmp(&lower_at) {
                    std::cmp::Ordering::Greater => most = most.min(room / time),
                    std::cmp::Ordering::Less => least = least.max(room / time),
                    std::cmp::Ordering::Equal if room < 0.0 => return None,
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        (least <= most).then(|| OffsetLines {
            first,
            upper: self.upper.clone(),
            lower: self.lower.clone(),
            pings: self.pings,
            slopes: (least, most),
        })
    }
}

impl First {
    fn relative_ns(self, at_ns: u64) -> Option<i64> {
        within(i128::from(at_ns) - i128::from(self.at_ns))
    }
}

fn within(ns: i128) -> Option<i64> {
    i64::try_from(ns).ok().filter(|ns| ns.unsigned_abs() <= MAX_RELATIVE_NS)
}

/// The lower convex hull of points that come from left to right.
#[derive(Clone, Debug, Default)]
struct Hull {
    points: Vec<(i64, i64)>,
}

impl Hull {
    fn push(&mut self, point: (i64, i64)) {
        while let Some(&last) = self.points.last() {
            if point.0 < last.0 || (point.0 == last.0 && point.1 >= last.1) {
                // Left out: a bound less is never wrong.
                return;
            }
            let before = self.points.len().checked_sub(2).and_then(|place| self.points.get(place));
            let is_above = before.is_some_and(|&before| !turns_left(before, last, point));
            if !is_above && point.0 > last.0 {
                break;
            }
            self.points.pop();
        }
        if self.points.len() >= MAX_VERTICES {
            self.thin();
        }
        self.points.push(point);
    }

    /// Leaves out every second vertex, but for the first and the last.
    fn thin(&mut self) {
        let (mut place, last) = (0, self.points.len() - 1);
        self.points.retain(|_| {
            let is_kept = place % 2 == 0 || place == last;
            place += 1;
            is_kept
        });
    }

    /// The greatest value at a time of lines below all points with slopes between these.
    fn most_at(&self, at: f64, (least, most): (f64, f64)) -> f64 {
        let after = self.points.partition_point(|&(x, _)| (x as f64) < at);
        let slope =
            match (after.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(after)) {
                (Some(&(x0, y0)), Some(&(x1, y1))) => (y1 - y0) as f64 / (x1 - x0) as f64,
                (None, _) => f64::NEG_INFINITY,
                (_, None) => f64::INFINITY,
            };
        let slope = slope.clamp(least, most);
        let values = self.points.iter().map(|&(x, y)| y as f64 + slope * (at - x as f64));
        values.fold(f64::INFINITY, f64::min)
    }
}

/// Whether the way from `a` over `b` to `c` turns left, so that `b` is below the line from `a` to `c`.
fn turns_left(a: (i64, i64), b: (i64, i64), c: (i64, i64)) -> bool {
    // At most 2^54 each: 128 bits hold the products.
    let [x1, y1] = [b.0 - a.0, b.1 - a.1].map(i128::from);
    let [x2, y2] = [c.0 - a.0, c.1 - a.1].map(i128::from);
    x1 * y2 - y1 * x2 > 0
}

/// All offsets that agree with all round trips: lines over the client's time.
#[derive(Clone, Debug)]
pub struct OffsetLines {
    first: First,
    upper: Hull,
    lower: Hull,
    pings: u64,
    slopes: (f64, f64),
}

impl OffsetLines {
    /// The least and the greatest offset at a time of the client's clock, in nanoseconds.
    pub fn bounds_at(&self, at_ns: u64) -> (i64, i64) {
        let at = (i128::from(at_ns) - i128::from(self.first.at_ns)) as f64;
        let (least, most) = self.slopes;
        let greatest = self.upper.most_at(at, self.slopes).ceil();
        let least = -self.lower.most_at(at, (-most, -least)).ceil();
        (self.absolute_ns(least), self.absolute_ns(greatest.max(least)))
    }

    /// The rate at which the offset changes: the least and the greatest, in parts per billion.
    pub fn drift_ppb(&self) -> (f64, f64) {
        (self.slopes.0 * 1e9, self.slopes.1 * 1e9)
    }

    /// The offset and its drift over a time of the client's clock.
    pub fn track(&self, from_ns: u64, to_ns: u64) -> ClockTrack {
        let offset_at = |at_ns| {
            let (least, most) = self.bounds_at(at_ns);
            let bound_ns = most.abs_diff(least).div_ceil(2);
            OffsetAt { offset_ns: least.saturating_add_unsigned(bound_ns), bound_ns }
        };
        let (least_ppb, most_ppb) = self.drift_ppb();
        ClockTrack {
            pings: self.pings,
            begin: offset_at(from_ns),
            end: offset_at(to_ns),
            drift_ppm: f64::midpoint(least_ppb, most_ppb) / 1e3,
            drift_bound_ppm: (most_ppb - least_ppb) / 2e3,
        }
    }

    fn absolute_ns(&self, relative_ns: f64) -> i64 {
        let ns = self.first.offset_ns.saturating_add(relative_ns as i128);
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests;
