//! Statistics of latency, and the histogram of `-v 2`.

use linerate_measure::histogram::Histogram;

/// Statistics as netperf tells them.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    counts: Vec<(u64, u64)>,
    total: u64,
}

impl Statistics {
    /// Those of a histogram; None where it is empty.
    pub(super) fn of(histogram: &Histogram) -> Option<Self> {
        let counts: Vec<(u64, u64)> = histogram.counts().collect();
        let total = histogram.len();
        (total > 0).then_some(Self { counts, total })
    }

    pub(super) fn least_ns(&self) -> u64 {
        self.counts.first().map_or(0, |(value, _)| *value)
    }

    pub(super) fn greatest_ns(&self) -> u64 {
        self.counts.last().map_or(0, |(value, _)| *value)
    }

    /// The least value that this part of all observations doesn't exceed.
    pub(super) fn percentile_ns(&self, part: f64) -> u64 {
        let rank = ((self.total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        found.or(self.counts.last()).map_or(0, |(value, _)| *value)
    }

    pub(super) fn mean_us(&self) -> f64 {
        let sum: f64 = self.counts.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        sum / self.total as f64 / 1000.0
    }

    pub(super) fn deviation_us(&self) -> f64 {
        let mean_ns = self.mean_us() * 1000.0;
        let squares = self.counts.iter().map(|(value, count)| {
            let apart = *value as f64 - mean_ns;
            apart * apart * *count as f64
        });
        (squares.sum::<f64>() / self.total as f64).sqrt() / 1000.0
    }
}

/// The nearest whole number of microseconds.
pub(super) fn whole_us(value_ns: u64) -> u64 {
    value_ns.saturating_add(500) / 1000
}

/// Names of the rows: in each, cells are one to nine times its unit.
const ROWS: [&str; 8] = [
    "UNIT_USEC",
    "TEN_USEC",
    "HUNDRED_USEC",
    "UNIT_MSEC",
    "TEN_MSEC",
    "HUNDRED_MSEC",
    "UNIT_SEC",
    "TEN_SEC",
];

/// The table: a row for each power of ten, a cell for each first digit.
pub(super) fn render_histogram(histogram: &Histogram) -> String {
    let mut cells = [[0u64; 10]; ROWS.len()];
    let mut beyond = 0;
    for (value_ns, count) in histogram.counts() {
        match cells.get_mut(decade(value_ns / 1000)) {
            Some(row) => {
                let cell = row.get_mut(first_digit(value_ns / 1000));
                cell.into_iter().for_each(|cell| *cell += count);
            }
            None => beyond += count,
        }
    }
    let mut text = String::new();
    for (name, row) in ROWS.iter().zip(&cells) {
        text += &format!("{name:14}");
        row.iter().for_each(|cell| text += &format!(": {cell:4}"));
        text.push('\n');
    }
    text + &format!(">100_SECS: {beyond}\nHIST_TOTAL:      {}\n", histogram.len())
}

/// The power of ten; that of 0 is 0.
fn decade(value_us: u64) -> usize {
    value_us.checked_ilog10().map_or(0, |power| usize::try_from(power).unwrap_or(usize::MAX))
}

fn first_digit(value_us: u64) -> usize {
    let mut digit = value_us;
    while digit >= 10 {
        digit /= 10;
    }
    usize::try_from(digit).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(latencies_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        latencies_us.iter().for_each(|us| histogram.record_ns(us * 1000));
        histogram
    }

    #[test]
    fn statistics_are_those_of_the_values() {
        let statistics = Statistics::of(&histogram(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 100])).unwrap();
        assert_eq!((statistics.least_ns(), whole_us(statistics.percentile_ns(0.5))), (1000, 5));
        assert_eq!(whole_us(statistics.greatest_ns()), 100);
        assert!((99_900..=100_100).contains(&statistics.percentile_ns(0.95)));
        assert!((8_990..=9_010).contains(&statistics.percentile_ns(0.9)));
        assert!((statistics.mean_us() - 14.5).abs() < 0.1);
        assert!((statistics.deviation_us() - 28.61).abs() < 0.2);
        assert!(Statistics::of(&Histogram::new()).is_none());
    }

    #[test]
    fn whole_microseconds_are_the_nearest() {
        let rounded = [0, 499, 500, 1499, 1500, 15_704, u64::MAX].map(whole_us);
        assert_eq!(rounded, [0, 0, 1, 1, 2, 16, u64::MAX / 1000]);
    }

    #[test]
    fn a_cell_is_a_first_digit_of_a_power_of_ten() {
        let text = render_histogram(&histogram(&[0, 3, 12, 19, 250, 7500, 200_000_000]));
        assert_eq!(
            text.lines().take(4).collect::<Vec<_>>(),
            [
                "UNIT_USEC     :    1:    0:    0:    1:    0:    0:    0:    0:    0:    0",
                "TEN_USEC      :    0:    2:    0:    0:    0:    0:    0:    0:    0:    0",
                "HUNDRED_USEC  :    0:    0:    1:    0:    0:    0:    0:    0:    0:    0",
                "UNIT_MSEC     :    0:    0:    0:    0:    0:    0:    0:    1:    0:    0",
            ]
        );
        assert!(text.ends_with(">100_SECS: 1\nHIST_TOTAL:      7\n"), "{text}");
    }
}
