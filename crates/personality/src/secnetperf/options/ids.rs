//! What connection ids are to have.

use crate::colon_options::ColonOptions;

use super::Refusal;

/// The well-known bytes of connection ids, if they are asked for.
pub(super) fn parse_mark(options: ColonOptions<'_>) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(text) = options.value("cibir") else { return Ok(None) };
    let digits = text.as_bytes();
    let count = digits.len() / 2;
    if !(1..=6).contains(&count) {
        return Err(Refusal::helping("Cibir ID must be a hex string <= 6 bytes."));
    }
    // What is no digit counts as 0.
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
    let byte = |pair: &[u8]| pair.iter().fold(0, |byte, half| byte << 4 | digit(half));
    Ok(Some(digits.chunks_exact(2).map(byte).collect()))
}
