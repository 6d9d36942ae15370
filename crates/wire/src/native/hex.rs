//! Bytes as hexadecimal digits, the way they stand in messages.

/// Lower-case digits, two a byte.
pub(super) fn render_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Exactly `N` bytes from `2 * N` digits of either case.
pub(super) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        let digit = |c: &u8| char::from(*c).to_digit(16);
        *byte = u8::try_from(digit(high)? << 4 | digit(low)?).ok()?;
    }
    Some(bytes)
}
