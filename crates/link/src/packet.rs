//! IP packets as far as a link must know them: where the payload is, the ECN bits, the checksums.
//! A packet may come from anywhere: every length is checked before it is used.

/// The numbers of protocols (IANA, Assigned Internet Protocol Numbers).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Extension headers of IPv6 that may stand before the payload (RFC 8200, section 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
/// Real packets have no more extension headers than this.
const EXTENSION_HEADERS_MAX: usize = 8;

/// A transport protocol with ports and a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// Where things are in a packet of TCP or UDP that is no fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) protocol: Protocol,
    /// Where the transport header begins.
    pub(super) header_at: usize,
    /// Where the payload begins and ends.
    pub(super) payload_at: usize,
    pub(super) end: usize,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    /// Where the checksum is; `None` where the packet has none (UDP over IPv4, RFC 768).
    checksum_at: Option<usize>,
}

impl Segment {
    /// Reads the headers; `None` for anything that isn't whole TCP or UDP.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (protocol, header_at, end) = match packet.first()? >> 4 {
            4 => parse_v4(packet)?,
            6 => parse_v6(packet)?,
            _ => return None,
        };
        let header = packet.get(header_at..end)?;
        let (protocol, header_bytes, checksum_at) = match protocol {
            TCP => {
                let header_bytes = usize::from(*header.get(12)? >> 4) * 4;
                (header_bytes >= 20).then_some((Protocol::Tcp, header_bytes, 16))?
            }
            UDP => (Protocol::Udp, 8, 6),
            _ => return None,
        };
        if header.len() < header_bytes {
            return None;
        }
        let has_checksum = protocol == Protocol::Tcp || word(header, checksum_at)? != 0;
        Some(Self {
            protocol,
            header_at,
            payload_at: header_at + header_bytes,
            end,
            source_port: word(header, 0)?,
            destination_port: word(header, 2)?,
            checksum_at: has_checksum.then_some(header_at + checksum_at),
        })
    }

    /// The sequence number of TCP, and whether the segment is the connection's first.
    pub(super) fn sequence(&self, packet: &[u8]) -> Option<(u32, bool)> {
        let header = packet.get(self.header_at..self.payload_at)?;
        let number: &[u8; 4] = header.get(4..8)?.first_chunk()?;
        let synchronizes = header.get(13)? & 0x02 != 0;
        (self.protocol == Protocol::Tcp).then_some((u32::from_be_bytes(*number), synchronizes))
    }

    /// Flips a bit of the byte at `at`, and makes the checksum fit.
    pub(super) fn flip_repaired(&self, packet: &mut [u8], at: usize, bit: u8) {
        // The sum is over words that begin at the header: the byte is a word's first or second.
        let shift = if (at - self.header_at).is_multiple_of(2) { 8 } else { 0 };
        let Some(byte) = packet.get_mut(at) else { return };
        let old = u16::from(*byte) << shift;
        *byte ^= 1 << bit;
        let new = u16::from(*byte) << shift;
        let Some(place) = self.checksum_at else { return };
        let Some(checksum) = word(packet, place) else { return };
        let mut updated = update_checksum(checksum, old, new);
        if self.protocol == Protocol::Udp && updated == 0 {
            // 0 would say that there is none (RFC 768).
            updated = 0xffff;
        }
        put_word(packet, place, updated);
    }
}

/// Marks a packet "congestion experienced" if its sender knows ECN (RFC 3168, section 5); whether
/// it does and wasn't marked before.
pub(super) fn mark_congestion(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let Some(old) = word(packet, 0) else { return false };
            if !is_capable(old & 3) {
                return false;
            }
            let new = old | 3;
            put_word(packet, 0, new);
            if let Some(checksum) = word(packet, 10) {
                put_word(packet, 10, update_checksum(checksum, old, new));
            }
            true
        }
        Some(6) if packet.len() >= 40 => {
            let Some(old) = word(packet, 0) else { return false };
            if !is_capable(old >> 4 & 3) {
                return false;
            }
            put_word(packet, 0, old | 0x30);
            true
        }
        _ => false,
    }
}

/// ECT(0) or ECT(1).
fn is_capable(ecn: u16) -> bool {
    ecn == 1 || ecn == 2
}

/// The checksum after one word of what it covers has changed (RFC 1624, equation 3).
fn update_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The protocol, where its header begins, and where the packet ends (RFC 791, section 3.1).
fn parse_v4(packet: &[u8]) -> Option<(u8, usize, usize)> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let total_bytes = usize::from(word(packet, 2)?);
    let is_fragment = word(packet, 6)? & 0x3fff != 0;
    let sound = header_bytes >= 20 && header_bytes <= total_bytes && total_bytes <= packet.len();
    (sound && !is_fragment).then_some((*packet.get(9)?, header_bytes, total_bytes))
}

/// Likewise (RFC 8200, sections 3 and 4).
fn parse_v6(packet: &[u8]) -> Option<(u8, usize, usize)> {
    let end = 40 + usize::from(word(packet, 4)?);
    if end > packet.len() {
        return None;
    }
    let (mut protocol, mut at) = (*packet.get(6)?, 40);
    for _ in 0..EXTENSION_HEADERS_MAX {
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                8 * (usize::from(*packet.get(at + 1)?) + 1)
            }
            // A fragment that is the whole packet is none (RFC 6946).
            FRAGMENT if word(packet, at + 2)? & 0xfff9 == 0 => 8,
            _ => return (at <= end).then_some((protocol, at, end)),
        };
        protocol = *packet.get(at)?;
        at += length;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *word = value.to_be_bytes();
    }
}

#[cfg(test)]
mod tests;
