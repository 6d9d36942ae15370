//! Headers against a plain computation of checksums, and hostile input.

use proptest::prelude::*;

use super::*;

/// The checksum of RFC 1071 over all of it, in plain words.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let total: u64 = bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    !(0..4).fold(total, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
}

/// A packet of this protocol with right checksums.
fn packet(version: u8, protocol: Protocol, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let (number, header_bytes, checksum_at) = match protocol {
        Protocol::Tcp => (TCP, 20, 16),
        Protocol::Udp => (UDP, 8, 6),
    };
    let mut segment = vec![0; header_bytes];
    segment[..4].copy_from_slice(&[0x12, 0x34, 0x14, 0x82]);
    if protocol == Protocol::Tcp {
        segment[4..8].copy_from_slice(&1000_u32.to_be_bytes());
        segment[12] = 0x50;
    } else {
        segment[4..6].copy_from_slice(&((8 + payload.len()) as u16).to_be_bytes());
    }
    segment.extend_from_slice(payload);
    let length = segment.len() as u16;
    let mut header = match version {
        4 => {
            let mut header = vec![0x45, ecn, 0, 0, 0, 0, 0x40, 0, 64, number, 0, 0];
            header.extend_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
            header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            let checksum = sum(&[&header]);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        }
        _ => {
            let mut header = vec![0x60, ecn << 4, 0, 0, 0, 0, number, 64];
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header.extend_from_slice(&[0xfd; 32]);
            header
        }
    };
    let checksum = transport_sum(&header, number, &segment);
    segment[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
    header.extend_from_slice(&segment);
    header
}

/// With the checksum in place the sum is 0.
fn transport_sum(header: &[u8], protocol: u8, segment: &[u8]) -> u16 {
    let addresses = if header[0] >> 4 == 4 { &header[12..20] } else { &header[8..40] };
    let length = (segment.len() as u16).to_be_bytes();
    sum(&[addresses, &[0, protocol], &length, segment])
}

proptest! {
    #[test]
    fn a_repaired_flip_passes_the_checksum(
        version in prop::sample::select(vec![4_u8, 6]),
        protocol in prop::sample::select(vec![Protocol::Tcp, Protocol::Udp]),
        payload in prop::collection::vec(any::<u8>(), 1..200),
        place in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut bytes = packet(version, protocol, 0, &payload);
        let segment = Segment::parse(&bytes).unwrap();
        prop_assert_eq!((segment.source_port, segment.destination_port), (0x1234, 0x1482));
        prop_assert_eq!(&bytes[segment.payload_at..segment.end], payload.as_slice());
        let at = segment.payload_at + place.index(payload.len());
        segment.flip_repaired(&mut bytes, at, bit);
        prop_assert_eq!(bytes[at], payload[at - segment.payload_at] ^ 1 << bit);
        let number = if protocol == Protocol::Tcp { TCP } else { UDP };
        let (header, rest) = bytes.split_at(segment.header_at);
        prop_assert_eq!(transport_sum(header, number, rest), 0);
    }

    #[test]
    fn any_bytes_are_read_without_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Some(segment) = Segment::parse(&bytes) {
            prop_assert!(segment.header_at < segment.payload_at);
            prop_assert!(segment.payload_at <= segment.end && segment.end <= bytes.len());
        }
        let before = bytes.clone();
        if !mark_congestion(&mut bytes) {
            prop_assert_eq!(before, bytes);
        }
    }

    #[test]
    fn a_header_cut_or_spoiled_anywhere_is_read_without_harm(
        version in prop::sample::select(vec![4_u8, 6]),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = packet(version, Protocol::Tcp, 2, &[1, 2, 3]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Some(segment) = Segment::parse(&bytes) {
            prop_assert!(segment.payload_at <= segment.end && segment.end <= bytes.len());
        }
    }
}

#[test]
fn only_capable_packets_are_marked() {
    for version in [4, 6] {
        for (ecn, marked) in [(0, false), (1, true), (2, true), (3, false)] {
            let mut bytes = packet(version, Protocol::Udp, ecn, b"x");
            assert_eq!(mark_congestion(&mut bytes), marked, "IPv{version} {ecn}");
            let expected = if marked { 3 } else { ecn };
            let found = if version == 4 { bytes[1] & 3 } else { bytes[1] >> 4 & 3 };
            assert_eq!(found, expected);
            if version == 4 {
                assert_eq!(sum(&[&bytes[..20]]), 0);
            }
        }
    }
}

#[test]
fn a_udp_checksum_of_none_stays_none() {
    let mut bytes = packet(4, Protocol::Udp, 0, b"abcd");
    bytes[26..28].fill(0);
    let segment = Segment::parse(&bytes).unwrap();
    segment.flip_repaired(&mut bytes, 29, 3);
    assert_eq!(&bytes[26..], &[0, 0, b'a', b'b' ^ 8, b'c', b'd']);
}

#[test]
fn fragments_have_no_ports() {
    let mut bytes = packet(4, Protocol::Udp, 0, b"abcd");
    bytes[6] = 0x20;
    assert_eq!(Segment::parse(&bytes), None);
    bytes[6..8].copy_from_slice(&[0, 1]);
    assert_eq!(Segment::parse(&bytes), None);
}
