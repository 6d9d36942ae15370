use proptest::prelude::*;

use super::*;

fn histogram_of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record_ns(*value));
    histogram
}

fn bytes_of(histogram: &Histogram) -> Vec<u8> {
    BASE64.decode(histogram.to_base64()).unwrap()
}

fn read(bytes: &[u8]) -> Result<Histogram, HistogramError> {
    Histogram::from_base64(&BASE64.encode(bytes))
}

#[test]
fn empty_has_no_distribution() {
    let histogram = Histogram::new();
    assert!(histogram.is_empty());
    assert_eq!(histogram.latency(), None);
    assert_eq!(Histogram::from_base64(&histogram.to_base64()), Ok(histogram));
}

#[test]
fn too_large_counts_as_the_largest() {
    let latency = histogram_of(&[u64::MAX, HIGHEST_NS * 2]).latency().unwrap();
    assert_eq!(latency.count, 2);
    assert!(latency.max >= HIGHEST_NS && latency.max < HIGHEST_NS / 1000 * 1001);
}

#[test]
fn reset_forgets() {
    let mut histogram = histogram_of(&[5, 6]);
    histogram.reset();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn one_without_memory_takes_it_with_its_first_latency() {
    let mut histogram = Histogram::default();
    assert_eq!((histogram.clone(), histogram.latency()), (Histogram::new(), None));
    assert_eq!(histogram.to_base64(), Histogram::new().to_base64());
    histogram.merge(&Histogram::default());
    histogram.reset();
    assert!(histogram.is_empty() && histogram.counts().next().is_none());
    let mut merged = Histogram::default();
    merged.merge(&histogram_of(&[3, 4]));
    histogram.record_ns(3);
    histogram.record_ns(4);
    assert_eq!((&histogram, &merged), (&histogram_of(&[3, 4]), &histogram));
}

#[test]
fn quantiles_need_their_observations() {
    for (q, least) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3688), (0.9999, 36_887)] {
        assert!(!supports_quantile(least - 1, q), "{q}");
        assert!(supports_quantile(least, q), "{q}");
        assert!(q < 0.5 || observations_for(q) == least, "{q}");
    }
    let latency = histogram_of(&[7; 40]).latency().unwrap();
    assert_eq!((latency.p50, latency.p90, latency.p99), (Some(7), Some(7), None));
    assert_eq!((latency.min, latency.mean, latency.max), (7, 7.0, 7));
}

#[test]
fn the_largest_histogram_fits_the_text_limit() {
    let mut counts = allocate(SIGNIFICANT_DIGITS);
    let mut value = 0;
    while value < HIGHEST_NS {
        counts.saturating_record_n(value, 1 << 37);
        value = counts.next_non_equivalent(value);
    }
    let histogram = Histogram { counts: Some(counts) };
    let text = histogram.to_base64();
    assert!(text.len() < MAX_TEXT_BYTES, "{}", text.len());
    assert_eq!(Histogram::from_base64(&text), Ok(histogram));
}

#[test]
fn a_header_that_asks_for_much_is_refused() {
    let good = bytes_of(&histogram_of(&[1, 1000, 1_000_000]));
    assert!(read(&good).is_ok());
    // Cookie, payload length, offset, digits, lowest, highest, ratio: one byte of each.
    for place in [0, 4, 7, 11, 15, 23, 25, 32] {
        let mut bytes = good.clone();
        bytes[place] ^= 0x41;
        assert!(read(&bytes).is_err(), "byte {place}");
    }
    assert!(Histogram::from_base64(&"A".repeat(MAX_TEXT_BYTES + 4)).is_err());
    assert!(Histogram::from_base64("not base64!").is_err());
    assert!(Histogram::from_base64("").is_err());
}

/// The header of an empty histogram with other counts behind it.
fn with_payload(payload: &[u8]) -> Vec<u8> {
    let mut bytes = bytes_of(&Histogram::new());
    bytes.truncate(40);
    bytes[4..8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn counts_that_make_no_sense_are_refused() {
    // The least 64-bit number as a run of zeros, whose negation doesn't exist.
    assert!(read(&with_payload(&[0xff; 9])).is_err());
    // The greatest as a count, twice.
    let greatest = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(read(&with_payload(&[greatest, greatest].concat())).is_err());
    // Cut off within a number.
    assert!(read(&with_payload(&[0x80])).is_err());
    // More zeros than there are buckets, then one more count than there are buckets.
    assert!(read(&with_payload(&[0xff, 0xff, 0xff, 0x7f])).is_err());
    let buckets = allocate(SIGNIFICANT_DIGITS).distinct_values();
    assert!(read(&with_payload(&vec![0; buckets])).is_ok());
    assert!(read(&with_payload(&vec![0; buckets + 1])).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn agrees_with_a_sorted_list(mut values in proptest::collection::vec(1..10_000_000_000_u64, 400..1000)) {
        let latency = histogram_of(&values).latency().unwrap();
        values.sort_unstable();
        let near = |got: u64, want: u64| got.abs_diff(want) as f64 <= want as f64 / 1000.0 + 1.0;
        let rank = |q: f64| values[(q * values.len() as f64).ceil() as usize - 1];
        prop_assert_eq!(latency.count, values.len() as u64);
        prop_assert!(near(latency.min, values[0]));
        prop_assert!(near(latency.max, values[values.len() - 1]));
        prop_assert!(near(latency.p50.unwrap(), rank(0.5)));
        prop_assert!(near(latency.p90.unwrap(), rank(0.9)));
        prop_assert!(near(latency.p99.unwrap(), rank(0.99)));
        prop_assert_eq!(latency.p99_9, None);
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        prop_assert!((latency.mean - mean).abs() <= mean / 1000.0 + 1.0);
    }

    #[test]
    fn text_and_merge_lose_nothing(
        left in proptest::collection::vec(any::<u64>(), 0..300),
        right in proptest::collection::vec(0..5_000_000_u64, 0..300),
    ) {
        let together = histogram_of(&[left.clone(), right.clone()].concat());
        let mut merged = histogram_of(&left);
        merged.merge(&Histogram::from_base64(&histogram_of(&right).to_base64()).unwrap());
        prop_assert_eq!(&merged, &together);
        prop_assert_eq!(merged.latency(), together.latency());
    }

    #[test]
    fn no_counts_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&with_payload(&payload)).map(|histogram| histogram.latency());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = Histogram::from_base64(&text);
    }
}
