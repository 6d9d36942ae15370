//! Packets that lie behind each other in one datagram (RFC 9000, section 12.2).

use bytes::BytesMut;

use super::hello::take_varint;

/// Bits of a packet's first byte (RFC 9000, section 17): a long header; a packet of QUIC's.
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
/// The kinds of long headers that differ from the others: with a token, and without a length.
const INITIAL: u8 = 0;
const RETRY: u8 = 3;

/// The packets of a datagram, whether they can be opened or not.
pub(super) fn packets_in(datagram: &[u8]) -> u64 {
    let (mut rest, mut packets) = (datagram, 0);
    while rest.first().is_some_and(|first| first & FIXED != 0) {
        packets += 1;
        // One that doesn't say its length lasts until the end.
        let Some(bytes) = said_bytes(rest) else { break };
        rest = rest.get(bytes..).unwrap_or_default();
    }
    packets
}

/// Cuts the packet with data off a datagram in which others come before it, and gives it memory of its own: the
/// machine keeps what is early of it, which would keep the others' memory, too, counted nowhere.
pub(super) fn split_off_last(datagram: &mut BytesMut) -> Option<BytesMut> {
    let mut at = 0;
    while let Some(rest) = datagram.get(at..)
        && rest.first().is_some_and(|first| first & (LONG | FIXED) == LONG | FIXED)
    {
        at = at.checked_add(said_bytes(rest)?)?;
    }
    // Whatever else stands there is no packet of its own.
    let is_packet = datagram.get(at).is_some_and(|first| first & (LONG | FIXED) == FIXED);
    (0 < at && is_packet).then(|| BytesMut::from(&datagram.split_off(at)[..]))
}

/// How long the first packet says it is.
fn said_bytes(packet: &[u8]) -> Option<usize> {
    let (first, after) = packet.split_first()?;
    let kind = first >> 4 & 3;
    if first & LONG == 0 || kind == RETRY {
        return None;
    }
    let (version, mut rest) = after.split_at_checked(size_of::<u32>())?;
    // A list of versions lasts until the end.
    if version == [0; size_of::<u32>()] {
        return None;
    }
    for _ in 0..2 {
        let (id_bytes, id) = rest.split_first()?;
        rest = id.get(usize::from(*id_bytes)..)?;
    }
    if kind == INITIAL {
        let token_bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
        rest = rest.get(token_bytes..)?;
    }
    let bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
    (packet.len() - rest.len()).checked_add(bytes)
}

#[cfg(test)]
mod tests;
