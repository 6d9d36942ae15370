//! The latencies of one interval: enough to tell how alike the intervals are, in little room.

use super::{HIGHEST_NS, HistogramError, allocate, read_v2, supports_quantile, write_v2};

/// Significant decimal digits kept of every value.
const DIGITS: u8 = 2;
/// Values below this are classes of their own; above, each power of two has half as many classes.
const EXACT_NS: u64 = 256;
const PER_POWER: usize = 128;
/// How many classes there are: those of [`HIGHEST_NS`] and below.
pub const CLASSES: usize = class_of(HIGHEST_NS) + 1;

/// The class that a latency belongs to: those of an HDR histogram with two significant digits. A class is at most 0.8 %
/// of its values wide. Latencies above [`HIGHEST_NS`] count as that.
#[inline]
pub const fn class_of(latency_ns: u64) -> usize {
    let ns = if latency_ns > HIGHEST_NS { HIGHEST_NS } else { latency_ns };
    if ns < EXACT_NS {
        return ns as usize;
    }
    let power = (EXACT_NS.leading_zeros() - ns.leading_zeros()) as usize;
    // The eight highest bits; the first of them is always set.
    let place = (ns >> (power + 1)) as usize - PER_POWER;
    EXACT_NS as usize + power * PER_POWER + place
}

/// The least latency of a class.
const fn lowest_ns(class: usize) -> u64 {
    let Some(above) = class.checked_sub(EXACT_NS as usize) else { return class as u64 };
    ((PER_POWER + above % PER_POWER) as u64) << (above / PER_POWER + 1)
}

/// The middle of a class.
const fn middle_ns(class: usize) -> u64 {
    lowest_ns(class).midpoint(lowest_ns(class + 1) - 1)
}

/// How many latencies of an interval each class has.
///
/// Its text is the HdrHistogram project's V2 format, as that of [`Histogram`](super::Histogram), with two significant
/// digits: about 500 bytes for latencies that spread over two powers of two, and never more than
/// [`MAX_TEXT_BYTES`](super::MAX_TEXT_BYTES).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalHistogram {
    /// By class; those after the last one with a latency may be missing.
    counts: Vec<u64>,
}

impl IntervalHistogram {
    /// That of counts by class; those past [`CLASSES`] are left out.
    pub fn of_counts(mut counts: Vec<u64>) -> Self {
        counts.truncate(CLASSES);
        Self { counts }
    }

    /// One more latency.
    pub fn record_ns(&mut self, latency_ns: u64) {
        let class = class_of(latency_ns);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(class) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Number of latencies.
    pub fn len(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many latencies are of classes above this one.
    pub fn above(&self, class: usize) -> u64 {
        let rest = self.counts.get(class.saturating_add(1)..).unwrap_or_default();
        rest.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How many latencies each class has, from the least.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The classes that have latencies, from the least: the middle of the class in nanoseconds, and how many it has.
    pub fn recorded(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let classes = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        classes.map(|(class, count)| (middle_ns(class), *count))
    }

    /// The quantile `q` (0 to 1) in nanoseconds: the middle of its class, at most 0.4 % from the truth. `None`: the
    /// latencies don't support it ([`supports_quantile`]).
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let count = self.len();
        if !supports_quantile(count, q) {
            return None;
        }
        let rank = (q * count as f64).ceil() as u64;
        let mut so_far = 0_u64;
        self.recorded()
            .map(|(ns, of_class)| {
                so_far = so_far.saturating_add(of_class);
                (ns, so_far)
            })
            .find(|(_, so_far)| *so_far >= rank)
            .map(|(ns, _)| ns)
    }

    /// The histogram as text.
    pub fn to_base64(&self) -> String {
        let mut counts = allocate(DIGITS);
        for (class, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // Fails only where a value is out of range, and a class has none that is.
            let _in_range = counts.record_n(lowest_ns(class), *count);
        }
        write_v2(&counts)
    }

    /// Reads what [`IntervalHistogram::to_base64`] wrote; safe on any text, however hostile.
    ///
    /// # Errors
    ///
    /// As [`Histogram::from_base64`](super::Histogram::from_base64).
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let read = read_v2(text, DIGITS)?;
        let mut histogram = Self::default();
        for step in read.iter_recorded() {
            let class = class_of(step.value_iterated_to());
            if histogram.counts.len() <= class {
                histogram.counts.resize(class + 1, 0);
            }
            if let Some(count) = histogram.counts.get_mut(class) {
                *count = count.saturating_add(step.count_at_value());
            }
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        for class in 0..CLASSES {
            let lowest = lowest_ns(class);
            assert_eq!(class_of(lowest), class, "{lowest}");
            if class > 0 {
                assert_eq!(class_of(lowest - 1), class - 1, "{lowest}");
            }
            if class + 1 < CLASSES {
                let width = lowest_ns(class + 1) - lowest;
                assert!(width as f64 <= 1.0_f64.max(lowest as f64 * 0.0079), "{lowest}: {width}");
            }
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
        assert_eq!(CLASSES, 4_562);
    }

    #[test]
    fn two_powers_of_two_take_little_text() {
        let mut histogram = IntervalHistogram::default();
        for latency_ns in (50_000..200_000).step_by(10) {
            histogram.record_ns(latency_ns);
        }
        let text = histogram.to_base64();
        assert!(text.len() < 800, "{}", text.len());
        assert_eq!(IntervalHistogram::from_base64(&text).unwrap(), histogram);
    }

    #[test]
    fn quantiles_are_those_that_the_latencies_support() {
        let mut histogram = IntervalHistogram::default();
        assert_eq!((histogram.quantile_ns(0.5), histogram.recorded().count()), (None, 0));
        (1..=100).for_each(|ns| histogram.record_ns(ns));
        assert_eq!((histogram.quantile_ns(0.5), histogram.quantile_ns(0.9)), (Some(50), Some(90)));
        assert_eq!(histogram.quantile_ns(0.99), None, "100 latencies don't tell it");
        (0..300).for_each(|_| histogram.record_ns(5_000));
        let p99 = histogram.quantile_ns(0.99).unwrap();
        assert!((4_980..=5_020).contains(&p99), "{p99}");
        assert_eq!(histogram.recorded().next_back(), Some((p99, 300)));
        let mut greatest = IntervalHistogram::default();
        (0..10).for_each(|_| greatest.record_ns(u64::MAX));
        let hour = greatest.quantile_ns(0.5).unwrap();
        assert!(hour.abs_diff(HIGHEST_NS) < HIGHEST_NS / 250, "{hour}");
    }

    #[test]
    fn a_histogram_of_other_digits_is_refused() {
        let mut other = Histogram::new();
        other.record_ns(7);
        let error = IntervalHistogram::from_base64(&other.to_base64()).unwrap_err();
        assert!(error.to_string().contains("digits is 3, not 2"), "{error}");
        assert!(Histogram::from_base64(&IntervalHistogram::default().to_base64()).is_err());
    }

    proptest! {
        #[test]
        fn text_keeps_every_count(latencies in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut histogram = IntervalHistogram::default();
            // Small values too, not the largest alone.
            latencies.iter().for_each(|ns| histogram.record_ns(ns >> (ns % 64)));
            let read = IntervalHistogram::from_base64(&histogram.to_base64()).unwrap();
            prop_assert_eq!(read.len(), latencies.len() as u64);
            prop_assert_eq!(read, histogram);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "[A-Za-z0-9+/=]{0,120}") {
            let _ = IntervalHistogram::from_base64(&text);
        }
    }
}
