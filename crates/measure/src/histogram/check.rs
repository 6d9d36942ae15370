//! Checks of a serialized histogram before the library sees it.
//!
//! The library trusts the header: it allocates what the payload length says and what the range
//! asks for. So the header must be exactly the one that a histogram of this crate writes, and the
//! payload is walked once, count by count.

use super::{HIGHEST_NS, LOWEST_NS};

/// Marks HdrHistogram's V2 format, not compressed, with counts as LEB128.
const V2_COOKIE: u32 = 0x1c84_9313;

/// More observations than any run makes, and few enough to be exact in a 64-bit float.
const MAX_OBSERVATIONS: u64 = 1 << 53;

/// Checks `bytes`, a histogram in V2 format with so many significant digits, for a range with `buckets` counts.
///
/// The format (all big-endian): cookie u32, payload length u32, normalizing offset u32, significant
/// digits u32, lowest u64, highest u64, integer-to-double ratio f64; then the counts, each a
/// zig-zag LEB128 number of at most 9 bytes, where a negative one stands for that many zeros.
pub(super) fn check_v2(bytes: &[u8], digits: u8, buckets: usize) -> Result<(), String> {
    let mut header = Header(bytes);
    let cookie = header.take_u32()?;
    let payload_bytes = header.take_u32()?;
    let expected = [
        ("format", u64::from(cookie), u64::from(V2_COOKIE)),
        ("offset", u64::from(header.take_u32()?), 0),
        ("digits", u64::from(header.take_u32()?), u64::from(digits)),
        ("lowest value", header.take_u64()?, LOWEST_NS),
        ("highest value", header.take_u64()?, HIGHEST_NS),
        ("ratio", header.take_u64()?, 1.0_f64.to_bits()),
    ];
    for (name, value, expected) in expected {
        if value != expected {
            return Err(format!("its {name} is {value}, not {expected}"));
        }
    }
    let payload = header.0;
    if u64::from(payload_bytes) != payload.len() as u64 {
        let length = payload.len();
        return Err(format!("{length} bytes of counts where {payload_bytes} were announced"));
    }
    check_counts(payload, buckets as u64)
}

fn check_counts(mut payload: &[u8], buckets: u64) -> Result<(), String> {
    let mut bucket = 0_u64;
    let mut observations = 0_u64;
    while !payload.is_empty() {
        let (encoded, rest) = split_leb128(payload).ok_or("its last count is cut off")?;
        payload = rest;
        let zigzag = (encoded >> 1) as i64 ^ -((encoded & 1) as i64);
        let (skipped, count) = match u64::try_from(zigzag) {
            Ok(count) => (1, count),
            Err(_) => (zigzag.unsigned_abs(), 0),
        };
        bucket = bucket.saturating_add(skipped);
        observations = observations.saturating_add(count);
        if bucket > buckets {
            return Err(format!("more counts than the {buckets} of its range"));
        }
        if observations > MAX_OBSERVATIONS {
            return Err(format!("more than {MAX_OBSERVATIONS} observations"));
        }
    }
    Ok(())
}

/// Splits one number off: seven bits a byte, least first, the high bit saying that more follow;
/// the ninth byte, if it comes to that, has all its eight bits.
fn split_leb128(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(9).enumerate() {
        let last = place == 8 || byte & 0x80 == 0;
        let bits = if place == 8 { *byte } else { byte & 0x7f };
        value |= u64::from(bits) << (7 * place);
        if last {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

/// What is left of the header.
struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn take_u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_be_bytes)
    }

    fn take_u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_be_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (field, rest) = self.0.split_first_chunk().ok_or("its header is cut off")?;
        self.0 = rest;
        Ok(*field)
    }
}
