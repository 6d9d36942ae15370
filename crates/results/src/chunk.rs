//! How values and times stand in the store: in parts of at most [`POINTS_IN_A_PART`], each in the narrowest type that
//! keeps every value exactly.
//!
//! A chunk begins with a byte for its form. Numbers are little-endian.
//!
//! | form | content |
//! |---|---|
//! | 0 | one `f64`: all values are equal |
//! | 1, 2, 4 | scale (`u8`), base (`i64`), then an offset of 1, 2 or 4 bytes a value: (base + offset) / 10^scale |
//! | 5 | an `f32` for each value |
//! | 8 | an `f64` for each value |
//!
//! A part of a timeline is a begin (`i64`, milliseconds), then for each span two LEB128 numbers: the gap since the
//! end of the span before, and its length less 1.

use linerate_measure::window::{Span, Timeline};

use crate::StoreError;

/// The most points of a chunk or of a part of a timeline.
pub const POINTS_IN_A_PART: usize = 1000;

/// Powers of ten that decimals are tried with.
const SCALES: [f64; 7] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];

/// Whole numbers up to here are exact as `f64`.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The values as a chunk. They are taken to be finite.
pub fn encode_values(values: &[f64]) -> Vec<u8> {
    if let Some(first) = values.first()
        && values.iter().all(|value| value.to_bits() == first.to_bits())
    {
        return [&[0][..], &first.to_le_bytes()].concat();
    }
    let narrow = (0..SCALES.len()).find_map(|scale| encode_offsets(values, scale));
    if let Some(narrow) = narrow {
        return narrow;
    }
    let fits = |value: &f64| f64::from(*value as f32).to_bits() == value.to_bits();
    let mut data = vec![if values.iter().all(fits) { 5 } else { 8 }];
    for value in values {
        match data.first() {
            Some(5) => data.extend((*value as f32).to_le_bytes()),
            _ => data.extend(value.to_le_bytes()),
        }
    }
    data
}

/// The values as offsets from the least of them at this scale, where that is exact and narrower than `f32` or as wide.
fn encode_offsets(values: &[f64], scale: usize) -> Option<Vec<u8>> {
    let factor = SCALES.get(scale)?;
    let mut whole = Vec::with_capacity(values.len());
    for value in values {
        let scaled = (value * factor).round();
        if scaled.abs() > MOST_EXACT {
            return None;
        }
        // By way of the whole number, which has no zero below zero.
        let number = scaled as i64;
        if (number as f64 / factor).to_bits() != value.to_bits() {
            return None;
        }
        whole.push(number);
    }
    let (base, most) = (*whole.iter().min()?, *whole.iter().max()?);
    let width = match u64::try_from(most - base).ok()? {
        0..=0xff => 1u8,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => return None,
    };
    let mut data = vec![width, scale as u8];
    data.extend(base.to_le_bytes());
    for number in whole {
        let offset = ((number - base) as u64).to_le_bytes();
        data.extend(offset.iter().take(usize::from(width)));
    }
    Some(data)
}

/// Reads a chunk of `count` values.
///
/// # Errors
/// Where the data is no chunk of so many values.
pub fn decode_values(data: &[u8], count: usize) -> Result<Vec<f64>, StoreError> {
    let wrong = |why: &str| StoreError::Damaged(format!("a chunk of {count} values {why}"));
    if count > POINTS_IN_A_PART {
        return Err(wrong(&format!("is more than {POINTS_IN_A_PART}")));
    }
    let Some((form, rest)) = data.split_first() else { return Err(wrong("is empty")) };
    let values = match form {
        0 => read_all(rest, f64::from_le_bytes).and_then(|one| match one[..] {
            [value] => Some(vec![value; count]),
            _ => None,
        }),
        1 => decode_offsets(rest, |[byte]: [u8; 1]| byte.into()),
        2 => decode_offsets(rest, |bytes| u16::from_le_bytes(bytes).into()),
        4 => decode_offsets(rest, u32::from_le_bytes),
        5 => read_all(rest, |bytes| f64::from(f32::from_le_bytes(bytes))),
        8 => read_all(rest, f64::from_le_bytes),
        form => return Err(wrong(&format!("has the unknown form {form}"))),
    };
    let Some(values) = values.filter(|values| values.len() == count) else {
        return Err(wrong(&format!("has another length: {} bytes of form {form}", data.len())));
    };
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(wrong("has one that is not finite")),
    }
}

fn decode_offsets<const N: usize>(data: &[u8], read: impl Fn([u8; N]) -> u32) -> Option<Vec<f64>> {
    let (scale, rest) = data.split_first()?;
    let factor = *SCALES.get(usize::from(*scale))?;
    let (base, rest) = rest.split_first_chunk::<8>()?;
    let base = i64::from_le_bytes(*base);
    if (base as f64).abs() > MOST_EXACT {
        return None;
    }
    let value = |bytes| (base + i64::from(read(bytes))) as f64 / factor;
    read_all(rest, value)
}

fn read_all<const N: usize, T>(data: &[u8], read: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
    let (items, rest) = data.as_chunks::<N>();
    rest.is_empty().then(|| items.iter().map(|item| read(*item)).collect())
}

/// These spans as a part of a timeline. They are taken to be in order.
pub fn encode_spans(spans: &[Span]) -> Vec<u8> {
    let Some(first) = spans.first() else { return Vec::new() };
    let mut data = first.begin_ms.to_le_bytes().to_vec();
    let mut next = first.begin_ms;
    for span in spans {
        push_number(&mut data, (span.begin_ms - next) as u64);
        push_number(&mut data, (span.end_ms - span.begin_ms) as u64);
        next = span.end_ms + 1;
    }
    data
}

/// Reads a part of a timeline of `count` spans.
///
/// # Errors
/// Where the data is no part of so many spans.
pub fn decode_spans(data: &[u8], count: usize) -> Result<Timeline, StoreError> {
    let wrong = |why: &str| StoreError::Damaged(format!("a timeline of {count} spans {why}"));
    if count == 0 || count > POINTS_IN_A_PART {
        return Err(wrong(&format!("has not 1 to {POINTS_IN_A_PART}")));
    }
    let Some((begin, mut rest)) = data.split_first_chunk::<8>() else {
        return Err(wrong("is too short"));
    };
    let mut next = i64::from_le_bytes(*begin);
    let mut spans = Vec::with_capacity(count);
    for _ in 0..count {
        let span = take_number(&mut rest).zip(take_number(&mut rest)).and_then(|(gap, more)| {
            let begin_ms = next.checked_add_unsigned(gap)?;
            Span::new(begin_ms, begin_ms.checked_add_unsigned(more)?)
        });
        let Some(span) = span else { return Err(wrong("has one that is no time")) };
        next = span.end_ms + 1;
        spans.push(span);
    }
    if !rest.is_empty() {
        return Err(wrong("goes on behind its end"));
    }
    Timeline::new(spans).ok_or_else(|| wrong("is not in order"))
}

/// The number of points of a part, as a row tells it.
pub(crate) fn part_length(number: i64) -> Result<usize, StoreError> {
    let count = usize::try_from(number).ok().filter(|count| *count <= POINTS_IN_A_PART);
    count.ok_or_else(|| StoreError::Damaged(format!("a part has {number} points")))
}

fn push_number(data: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        data.push(number as u8 | 0x80);
        number >>= 7;
    }
    data.push(number as u8);
}

fn take_number(data: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[f64], bytes: usize) {
        let data = encode_values(values);
        assert_eq!(data.len(), bytes, "{values:?}");
        let read = decode_values(&data, values.len()).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(values));
        assert!(decode_values(&data[..data.len() - 1], values.len()).is_err());
        assert!(data[0] == 0 || decode_values(&data, values.len() + 1).is_err());
    }

    #[test]
    fn values_take_the_narrowest_exact_type() {
        round_trip(&[0.1; 1000], 9);
        round_trip(&[1e9, 1e9 + 255.0, 1e9 + 3.0], 10 + 3);
        round_trip(&[-1.0, 300.0], 10 + 4);
        round_trip(&[0.01, 2.5, 0.07], 10 + 3);
        round_trip(&[0.0, 1e9], 10 + 8);
        round_trip(&[-0.0, 1.0], 1 + 8);
        round_trip(&[1.0 / 1024.0 / 1024.0, 3e30_f32.into()], 1 + 8);
        round_trip(&[1.0 / 3.0, 2.0], 1 + 16);
        round_trip(&[f64::MAX, f64::MIN_POSITIVE], 1 + 16);
    }

    #[test]
    fn spans_read_back() {
        let span = |begin_ms, end_ms| Span { begin_ms, end_ms };
        let regular: Vec<_> = (0..1000).map(|i| span(i * 100, i * 100 + 99)).collect();
        for spans in [
            regular,
            vec![span(Span::MAX_MS, Span::MAX_MS)],
            vec![span(0, 0), span(7, 5000), span(5001, 1_000_000_000_000)],
        ] {
            let data = encode_spans(&spans);
            assert_eq!(decode_spans(&data, spans.len()).unwrap().spans(), spans);
            for cut in 0..data.len() {
                assert!(decode_spans(&data[..cut], spans.len()).is_err(), "{cut}");
            }
            assert!(decode_spans(&data, spans.len() + 1).is_err());
        }
    }

    #[test]
    fn damaged_data_is_a_sentence() {
        let beyond = [&[1, 0][..], &i64::MAX.to_le_bytes(), &[9]].concat();
        let scale = [&[1, 9][..], &0i64.to_le_bytes(), &[9]].concat();
        for data in [&[][..], &[0], &[3, 1], &[8, 0], &beyond, &scale] {
            assert!(matches!(decode_values(data, 1), Err(StoreError::Damaged(_))), "{data:?}");
        }
        let nan = [&[0][..], &f64::NAN.to_le_bytes()].concat();
        assert!(decode_values(&nan, 3).is_err());
        assert!(decode_values(&encode_values(&[1.0; 3]), POINTS_IN_A_PART + 1).is_err());
        let late = [&i64::MAX.to_le_bytes()[..], &[1, 1]].concat();
        let endless = [&[0; 8][..], &[0xff; 12]].concat();
        for data in [&late, &endless] {
            assert!(decode_spans(data, 1).is_err(), "{data:?}");
        }
    }
}
