//! The decoders of the store. Each function takes any bytes and panics only when the decoder is wrong.

use linerate_results::chunk::{decode_spans, decode_values, encode_spans, encode_values};

/// A chunk of values and a part of a timeline: two bytes say how many points the row claims. What is accepted is
/// finite, in order, and the same when it is encoded again.
pub fn chunk(data: &[u8]) {
    let Some((count, data)) = data.split_first_chunk::<2>() else { return };
    let count = usize::from(u16::from_le_bytes(*count));
    match decode_values(data, count) {
        Ok(values) => {
            assert_eq!(values.len(), count);
            assert!(values.iter().all(|value| value.is_finite()));
            if count > 0 {
                let again = decode_values(&encode_values(&values), count).unwrap_or_default();
                let same = again.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(again.len() == count && same);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match decode_spans(data, count) {
        Ok(timeline) => {
            let spans = timeline.spans();
            assert_eq!(spans.len(), count);
            let again = decode_spans(&encode_spans(spans), count);
            assert_eq!(again.ok().as_ref(), Some(&timeline));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
