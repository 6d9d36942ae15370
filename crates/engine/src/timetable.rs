//! When requests are due.

use linerate_measure::Arrivals;
use linerate_measure::step::FlowSchedule;

/// Random gaps that are drawn to count what was due: more would hold up the shard.
const MOST_DRAWN: u64 = 1 << 20;

/// The times at which one flow's requests are due, one after the other.
///
/// 1. Evenly, request n is due n gaps after the first: no error adds up, however long the run.
/// 2. As a Poisson process, gaps are exponential with the mean 1/rate, from a generator that starts
///    with the flow's seed: every run has the same ones.
/// 3. A request that couldn't be sent when it was due stays due: the next one taken is always the
///    oldest.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    /// The load's beginning on the monotonic clock; 0: not yet.
    begun_ns: u64,
    first_ns: f64,
    mean_gap_ns: f64,
    taken: u64,
    /// Poisson: the generator's state, and the sum of the gaps so far.
    random: Option<(u64, f64)>,
}

impl Timetable {
    pub(crate) fn new(schedule: &FlowSchedule) -> Self {
        let mean_gap_ns = 1e9 / schedule.per_s;
        let random = match schedule.arrivals {
            Arrivals::Even => None,
            Arrivals::Poisson => {
                let mut state = schedule.seed;
                let first_gap_ns = exponential(&mut state) * mean_gap_ns;
                Some((state, first_gap_ns))
            }
        };
        Self { begun_ns: 0, first_ns: schedule.first_ns as f64, mean_gap_ns, taken: 0, random }
    }

    /// The load begins, unless it has.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.begun_ns == 0 {
            self.begun_ns = now_ns;
        }
    }

    /// When the oldest request that wasn't taken is due.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        let since_ns = match self.random {
            Some((_, sum_ns)) => sum_ns,
            None => self.first_ns + self.taken as f64 * self.mean_gap_ns,
        };
        self.begun_ns.saturating_add(since_ns as u64)
    }

    /// Takes the oldest one.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.taken += 1;
        if let Some((state, sum_ns)) = &mut self.random {
            *sum_ns += exponential(state) * self.mean_gap_ns;
        }
    }

    /// Takes all that were due before this time; says how many, `most` of them at most.
    ///
    /// At random, beyond [`MOST_DRAWN`] the rest is what the process has in the mean.
    pub(crate) fn take_due_before(&mut self, end_ns: u64, most: u64) -> u64 {
        if self.begun_ns == 0 {
            return 0;
        }
        let mut count = if self.random.is_none() { self.skip_most(end_ns, most) } else { 0 };
        while count < most && self.due_ns() < end_ns {
            self.take();
            count += 1;
            if count >= MOST_DRAWN && self.random.is_some() {
                return most.min(count + self.mean_until(end_ns));
            }
        }
        count
    }

    /// From here on requests are due as they are in the mean, which can be told without drawing.
    pub(crate) fn go_on_in_mean(&mut self) {
        if let Some((_, sum_ns)) = self.random.take() {
            self.first_ns = sum_ns - self.taken as f64 * self.mean_gap_ns;
        }
    }

    /// Even requests that are due before this time can be told without going through them: all but
    /// the last two, which rounding may move.
    fn skip_most(&mut self, end_ns: u64, most: u64) -> u64 {
        let count = self.mean_until(end_ns).saturating_sub(2).min(most);
        self.taken += count;
        count
    }

    fn mean_until(&self, end_ns: u64) -> u64 {
        (end_ns.saturating_sub(self.due_ns()) as f64 / self.mean_gap_ns) as u64
    }
}

/// A number with the exponential distribution of mean 1, by inversion.
fn exponential(state: &mut u64) -> f64 {
    let bits = linerate_measure::random::next_word(state) >> 11;
    // 53 random bits as a number above 0 and at most 1.
    let uniform = (bits as f64 + 1.0) / (1_u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timetable(per_s: f64, arrivals: Arrivals, seed: u64) -> Timetable {
        let schedule = FlowSchedule { per_s, arrivals, seed, first_ns: 0 };
        let mut timetable = Timetable::new(&schedule);
        timetable.begin(1);
        timetable
    }

    #[test]
    fn even_requests_never_drift() {
        let mut timetable = timetable(3.0, Arrivals::Even, 0);
        (0..3_000_000).for_each(|_| timetable.take());
        assert_eq!(timetable.due_ns(), 1_000_000_000_000_001);
    }

    #[test]
    fn random_gaps_are_exponential() {
        let mut timetable = timetable(1000.0, Arrivals::Poisson, 7);
        let mut before_ns = timetable.due_ns();
        let mut gaps_ns = Vec::new();
        for _ in 0..200_000 {
            timetable.take();
            gaps_ns.push((timetable.due_ns() - before_ns) as f64);
            before_ns = timetable.due_ns();
        }
        let mean = gaps_ns.iter().sum::<f64>() / gaps_ns.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "mean {mean}");
        for (quantile, share) in [(0.5, 0.5_f64), (0.9, 0.1), (0.99, 0.01)] {
            gaps_ns.sort_by(f64::total_cmp);
            let gap = gaps_ns[(gaps_ns.len() as f64 * quantile) as usize];
            let expected = -share.ln() * 1e6;
            assert!((gap / expected - 1.0).abs() < 0.03, "{quantile}: {gap} for {expected}");
        }
    }

    #[test]
    fn due_times_are_counted_once() {
        let mut timetable = timetable(1000.0, Arrivals::Even, 0);
        assert_eq!(timetable.take_due_before(5_000_001, u64::MAX), 5);
        assert_eq!(timetable.take_due_before(5_000_001, u64::MAX), 0);
        assert_eq!(timetable.take_due_before(50_000_001, 3), 3);
    }

    #[test]
    fn counting_due_times_does_not_visit_each() {
        let mut even = timetable(1e9, Arrivals::Even, 0);
        assert_eq!(even.take_due_before(3_600_000_000_001, u64::MAX), 3_600_000_000_000);
        assert_eq!(even.take_due_before(3_600_000_000_001, u64::MAX), 0);
        let mut random = timetable(1e9, Arrivals::Poisson, 3);
        let count = random.take_due_before(3_600_000_000_001, u64::MAX) as f64;
        assert!((count / 3.6e12 - 1.0).abs() < 1e-5, "{count}");
    }
}
