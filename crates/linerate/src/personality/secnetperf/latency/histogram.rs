//! The distribution as text, in the classic form of HdrHistogram: three significant digits, from 1 to
//! the greatest value, five rows for each halving of what is left.

/// Values that are told apart one by one in each bucket of powers of two, for three digits.
const SUB_BUCKETS: u64 = 2048;
const ROWS_PER_HALVING: f64 = 5.0;

/// The highest value that counts as the same as this one.
fn highest_equivalent(value: u64) -> u64 {
    let width = equivalent_width(value);
    value / width * width + width - 1
}

/// How many values count as the same as this one, itself included.
fn equivalent_width(value: u64) -> u64 {
    let beyond = 64 - (value | (SUB_BUCKETS - 1)).leading_zeros();
    1 << (beyond - SUB_BUCKETS.ilog2())
}

/// Values that count as the same, by the lowest of them, with their number, in order.
fn count_equivalent(latencies_us: &[u32]) -> Vec<(u64, u64)> {
    let mut sorted: Vec<u64> = latencies_us.iter().copied().map(u64::from).collect();
    sorted.sort_unstable();
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for value in sorted {
        let lowest = value - value % equivalent_width(value);
        match counts.last_mut() {
            Some((last, count)) if *last == lowest => *count += 1,
            _ => counts.push((lowest, 1)),
        }
    }
    counts
}

/// Rows of value, percentile, number of values up to it, and the inverse of what is left; then mean,
/// standard deviation and the histogram's own measures.
pub fn render_distribution(latencies_us: &[u32]) -> String {
    let counts = count_equivalent(latencies_us);
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let greatest = latencies_us.iter().copied().max().map_or(0, u64::from);
    let mut text = format!(
        "{:>12} {:>12} {:>12} {:>12}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut row = |value: u64, percentile: f64, count: u64| {
        let inverse = 1.0 / (1.0 - percentile / 100.0);
        let inverse = if inverse.is_finite() { format!("{inverse:.2}") } else { "inf".to_owned() };
        text.push_str(&format!(
            "{:>12.3} {:>12.6} {count:>12} {inverse:>12}\n",
            value as f64,
            percentile / 100.0
        ));
    };
    let (mut seen, mut next_percentile) = (0, 0.0_f64);
    for (lowest, count) in &counts {
        seen += count;
        let reached = 100.0 * seen as f64 / total as f64;
        // Once all are counted only the last row is left.
        while next_percentile <= reached {
            row(highest_equivalent(*lowest), next_percentile, seen);
            let halvings = (100.0 / (100.0 - next_percentile)).log2().floor() + 1.0;
            next_percentile += 100.0 / (ROWS_PER_HALVING * halvings.exp2());
            if seen == total {
                break;
            }
        }
    }
    row(highest_equivalent(greatest), 100.0, total);
    let middle = |lowest: u64| (lowest + equivalent_width(lowest) / 2) as f64;
    let counted = (total as f64).max(1.0);
    let mean =
        counts.iter().map(|(lowest, count)| middle(*lowest) * *count as f64).sum::<f64>() / counted;
    let spread = |(lowest, count): &(u64, u64)| (middle(*lowest) - mean).powi(2) * *count as f64;
    let deviation = (counts.iter().map(spread).sum::<f64>() / counted).sqrt();
    let mut buckets = 1;
    while SUB_BUCKETS << (buckets - 1) <= greatest {
        buckets += 1;
    }
    text.push_str(&format!("#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n"));
    let highest = highest_equivalent(greatest) as f64;
    text.push_str(&format!("#[Max     = {highest:>12.3}, Total count    = {total:>12}]\n"));
    text.push_str(&format!("#[Buckets = {buckets:>12}, SubBuckets     = {SUB_BUCKETS:>12}]\n"));
    text
}

#[cfg(test)]
mod tests;
