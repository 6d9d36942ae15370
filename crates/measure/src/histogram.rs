//! The distribution of a latency, recorded in constant memory and merged without loss.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

use crate::summary::Latency;

mod check;
mod interval;

pub use interval::{CLASSES, IntervalHistogram, class_of};

/// The least latency told from zero, in nanoseconds.
pub const LOWEST_NS: u64 = 1;
/// The greatest latency recorded as such, in nanoseconds: one hour. Greater ones count as this.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept of every value: it is known to 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;
/// The longest text that [`Histogram::from_base64`] looks at; the longest that a histogram of
/// this range can have is shorter.
pub const MAX_TEXT_BYTES: usize = 512 * 1024;

/// Latencies in nanoseconds: an HDR histogram from 1 ns to 1 h that keeps three significant
/// digits. All its memory (about 270 kB) is allocated when it is made by [`Histogram::new`]; one
/// that is there by default takes none before its first latency.
///
/// Its text is the HdrHistogram project's V2 format, not compressed, in base64. That project's
/// programs in other languages read it.
#[derive(Clone, Default)]
pub struct Histogram {
    /// `None`: nothing was recorded.
    counts: Option<hdrhistogram::Histogram<u64>>,
}

/// Why a text isn't a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the latency histogram can't be read: {0}")]
pub struct HistogramError(String);

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the tens of thousands of counts.
        f.debug_struct("Histogram").field("latency", &self.latency()).finish_non_exhaustive()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        (self.is_empty() && other.is_empty()) || self.counts == other.counts
    }
}

impl Histogram {
    /// An empty histogram with its memory allocated.
    pub fn new() -> Self {
        Self { counts: Some(allocate(SIGNIFICANT_DIGITS)) }
    }

    /// Records one latency; one above [`HIGHEST_NS`] counts as that.
    #[inline]
    pub fn record_ns(&mut self, latency_ns: u64) {
        match &mut self.counts {
            Some(counts) => counts.saturating_record(latency_ns),
            None => self.record_first(latency_ns),
        }
    }

    #[cold]
    fn record_first(&mut self, latency_ns: u64) {
        self.counts.insert(allocate(SIGNIFICANT_DIGITS)).saturating_record(latency_ns);
    }

    /// Adds all that `other` recorded; nothing is lost by it.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.counts, &other.counts) {
            (_, None) => {}
            (None, theirs) => self.counts.clone_from(theirs),
            (Some(ours), Some(theirs)) => {
                // Fails only where a value is out of range, and both have the same range.
                let _same_range = ours.add(theirs);
            }
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn reset(&mut self) {
        if let Some(counts) = &mut self.counts {
            counts.reset();
        }
    }

    /// Number of latencies recorded.
    pub fn len(&self) -> u64 {
        self.counts.as_ref().map_or(0, hdrhistogram::Histogram::len)
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was recorded, from the least: a value in nanoseconds, the middle of its bucket, and how
    /// often it came.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().flat_map(|counts| {
            counts.iter_recorded().map(|step| {
                let value_ns = counts.median_equivalent(step.value_iterated_to());
                (value_ns, step.count_at_value())
            })
        })
    }

    /// The bucket of the observation of this rank, 1 for the least: its bottom and its top, neither beyond the least and
    /// the greatest observation; `None`: there are fewer.
    pub fn value_at_rank(&self, rank: u64) -> Option<(u64, u64)> {
        let counts = self.counts.as_ref()?;
        let mut before = 0;
        let step = counts.iter_recorded().find(|step| {
            before += step.count_at_value();
            before >= rank
        })?;
        let value = step.value_iterated_to();
        let low = counts.lowest_equivalent(value).max(counts.min());
        Some((low, counts.highest_equivalent(value).min(counts.max())))
    }

    /// The histogram as text: HdrHistogram's V2 format in base64.
    pub fn to_base64(&self) -> String {
        let Some(counts) = &self.counts else { return Self::new().to_base64() };
        write_v2(counts)
    }

    /// Reads what [`Histogram::to_base64`] wrote; safe on any text, however hostile.
    ///
    /// # Errors
    ///
    /// [`HistogramError`] where the text is longer than [`MAX_TEXT_BYTES`], isn't base64 or of the
    /// V2 format, has another range than this type's, more values than the range has or more
    /// observations than 2^53.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        Ok(Self { counts: Some(read_v2(text, SIGNIFICANT_DIGITS)?) })
    }

    /// The distribution with the quantiles that the sample supports (see [`supports_quantile`]);
    /// `None` where nothing was recorded. Every value is the top of its bucket, the least value
    /// the bottom: at most 0.1 % from the truth.
    pub fn latency(&self) -> Option<Latency> {
        let counts = self.counts.as_ref().filter(|counts| !counts.is_empty())?;
        let max = counts.max();
        let quantile =
            |q: f64| supports_quantile(self.len(), q).then(|| counts.value_at_quantile(q).min(max));
        let range = (counts.min(), max);
        Some(Latency::of_quantiles(self.len(), range, counts.mean(), quantile))
    }
}

impl Latency {
    /// The quantiles that are always told, each as `quantile` has it, beside the least and the greatest value.
    pub(crate) fn of_quantiles(
        count: u64,
        (min, max): (u64, u64),
        mean: f64,
        quantile: impl Fn(f64) -> Option<u64>,
    ) -> Self {
        Self {
            count,
            min,
            mean,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            p99_999: quantile(0.99999),
            max,
        }
    }
}

#[expect(clippy::expect_used, reason = "the arguments are constants that the library takes")]
fn allocate(digits: u8) -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, digits)
        .expect("1 ns to 1 h with 2 or 3 digits is a valid range")
}

fn write_v2(counts: &hdrhistogram::Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Writing to memory doesn't fail, and the counts of one process fit the format's 63 bits.
    match V2Serializer::new().serialize(counts, &mut bytes) {
        Ok(_) => BASE64.encode(bytes),
        Err(_) => String::new(),
    }
}

fn read_v2(text: &str, digits: u8) -> Result<hdrhistogram::Histogram<u64>, HistogramError> {
    if text.len() > MAX_TEXT_BYTES {
        let length = text.len();
        return Err(HistogramError(format!("{length} bytes of text, more than {MAX_TEXT_BYTES}")));
    }
    let bytes =
        BASE64.decode(text).map_err(|error| HistogramError(format!("not base64: {error}")))?;
    check::check_v2(&bytes, digits, allocate(digits).distinct_values()).map_err(HistogramError)?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError(error.to_string()))
}

/// Whether `count` independent observations say anything about quantile `q` (0 to 1).
///
/// The distribution-free confidence interval of a quantile runs from one order statistic to
/// another. The chance that all `n` observations lie below the true quantile is `q^n`, that all
/// lie above is `(1 - q)^n`. Where either is more than 2.5 %, the 95 % interval has no observation
/// as its upper or lower end, and the sample doesn't support the quantile. So p50 needs 6
/// observations, p90 36, p99 368, p99.9 3,688 and so on.
///
/// Source: H. A. David, H. N. Nagaraja, "Order Statistics", third edition, section 7.1.
pub fn supports_quantile(count: u64, q: f64) -> bool {
    const TAIL: f64 = 0.025;

    let n = count as f64;
    q.powf(n) <= TAIL && (1.0 - q).powf(n) <= TAIL
}

/// The fewest observations that say anything about quantile `q` (0.5 or more, below 1): see [`supports_quantile`].
pub fn observations_for(q: f64) -> u64 {
    let estimate = (0.025_f64.ln() / q.ln()).ceil() as u64;
    // Rounding may be off by one.
    let near = estimate.saturating_sub(1)..=estimate.saturating_add(1);
    near.into_iter().find(|count| supports_quantile(*count, q)).unwrap_or(estimate)
}

#[cfg(test)]
mod tests;
