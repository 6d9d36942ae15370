//! The decoders of the measure crate. Each function takes any bytes and panics only when the
//! decoder is wrong.

use linerate_measure::histogram::Histogram;
use linerate_measure::link::Link;
use linerate_measure::units::{parse_bytes, parse_count, parse_duration, parse_rate};

/// The grammar of units: plain digits mean themselves, and an error shows the grammar.
pub fn units(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for parse in [parse_bytes, parse_count, parse_duration, parse_rate] {
        if let Err(error) = parse(text) {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Ok(bytes) = parse_bytes(text) {
        assert_eq!(parse_bytes(&bytes.to_string()).ok(), Some(bytes));
    }
}

/// A histogram that comes from a peer: what is accepted can be counted, merged and sent on.
pub fn histogram(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(mut histogram) = Histogram::from_base64(text) else { return };
    let _ = histogram.latency();
    let again = Histogram::from_base64(&histogram.to_base64());
    assert_eq!(again.ok().map(|again| again.len()), Some(histogram.len()));
    let other = Histogram::new();
    histogram.merge(&other);
    histogram.record_ns(1);
    let _ = histogram.latency();
}

/// The description of a link: what is accepted is within its limits.
pub fn link(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Link::parse(text, |_| Err("there are no files here".to_owned())) {
        Ok(link) => assert!(link.check().is_ok()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
