//! What connection ids are to have.

use linerate_engine::perf::{ConnectionIds, Mark};

use super::Refusal;
use linerate_personality::colon_options::{ColonOptions, parse_u32};

/// What stands in connection ids. Only a server has a number.
pub(super) fn parse_ids(options: ColonOptions<'_>, is_client: bool) -> ConnectionIds {
    let server = options.value("serverid").filter(|_| !is_client).map(parse_u32);
    // What is wrong with it is said by whoever reads the options of its side.
    let mark = parse_mark(options).ok().flatten().and_then(|bytes| Mark::new(&bytes));
    ConnectionIds { server, mark, ..ConnectionIds::default() }
}

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
