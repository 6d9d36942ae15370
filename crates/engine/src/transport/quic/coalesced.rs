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
    long_header(packet).map(|header| header.end)
}

/// The header of a packet that says how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongHeader<'a> {
    pub(super) version: u32,
    /// The id of the connection that it goes to.
    pub(super) destination: &'a [u8],
    /// Where its number begins, in bytes from the packet's beginning.
    pub(super) number_at: usize,
    /// Where it says that it ends, which may be behind the datagram's end.
    pub(super) end: usize,
}

/// Reads the header of the first packet (RFC 9000, section 17.2).
pub(super) fn long_header(packet: &[u8]) -> Option<LongHeader<'_>> {
    let (first, after) = packet.split_first()?;
    let kind = first >> 4 & 3;
    if first & LONG == 0 || kind == RETRY {
        return None;
    }
    let (version, mut rest) = after.split_first_chunk()?;
    // A list of versions lasts until the end.
    let version = Some(u32::from_be_bytes(*version)).filter(|version| *version != 0)?;
    let destination = take_id(&mut rest)?;
    take_id(&mut rest)?;
    if kind == INITIAL {
        let token_bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
        rest = rest.get(token_bytes..)?;
    }
    let bytes = usize::try_from(take_varint(&mut rest)?).ok()?;
    let number_at = packet.len() - rest.len();
    Some(LongHeader { version, destination, number_at, end: number_at.checked_add(bytes)? })
}

/// Takes the id of a connection behind its length.
fn take_id<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (id_bytes, after) = rest.split_first()?;
    let (id, after) = after.split_at_checked(usize::from(*id_bytes))?;
    *rest = after;
    Some(id)
}

#[cfg(test)]
mod tests;
