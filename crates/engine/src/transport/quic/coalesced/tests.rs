use proptest::prelude::*;

use super::*;

/// A packet with a long header of this kind, and so many bytes behind it.
fn long(kind: u8, token: &[u8], length: usize) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1, 3, 7, 7, 7, 2, 8, 8];
    if kind == INITIAL {
        packet.push(token.len() as u8);
        packet.extend(token);
    }
    packet.extend([0x40 | (length >> 8) as u8, length as u8]);
    packet.resize(packet.len() + length, 0xff);
    packet
}

#[test]
fn the_packets_of_a_datagram_are_counted_as_they_lie_behind_each_other() {
    let short = vec![0x41; 40];
    let (first, second) = (long(INITIAL, b"token", 300), long(2, b"", 20));
    for (datagram, packets) in [
        (vec![], 0),
        (short.clone(), 1),
        (first.clone(), 1),
        ([&first[..], &second, &short].concat(), 3),
        // Zeros behind the last are nothing; a length that goes beyond the end is one packet.
        ([&first[..], &[0; 900]].concat(), 1),
        (first[..100].to_vec(), 1),
        ([&[0xf0; 30][..], &first].concat(), 1),
    ] {
        assert_eq!(packets_in(&datagram), packets, "{datagram:?}");
    }
}

#[test]
fn a_long_header_says_where_its_packet_goes_and_where_the_parts_are() {
    for (packet, number_at) in [(long(INITIAL, b"token", 300), 20), (long(2, b"", 20), 14)] {
        let destination = &[7; 3][..];
        let end = packet.len();
        let header = LongHeader { version: 1, destination, number_at, end };
        assert_eq!(long_header(&packet), Some(header));
        // A packet that is cut says the same, if its header is whole.
        assert_eq!(long_header(&packet[..number_at]), Some(header));
        assert_eq!(long_header(&packet[..number_at - 2]), None);
    }
    assert_eq!(long_header(&long(RETRY, b"", 300)), None);
}

#[test]
fn the_packet_with_data_leaves_the_memory_of_those_before_it() {
    let (first, handshake, data) = (long(INITIAL, b"", 30), long(2, b"", 20), [FIXED, 9, 1]);
    for (parts, is_split) in [
        (vec![&first[..], &handshake, &data], true),
        (vec![&handshake[..], &data], true),
        (vec![&data[..], &data], false),
        (vec![&first[..], &handshake], false),
        // Nothing, padding, a packet that claims more than there is, a list of versions.
        (vec![], false),
        (vec![&first[..], &[0; 20]], false),
        (vec![&handshake[..20]], false),
        (vec![&[LONG | FIXED, 0, 0, 0, 0, 1, 9, 1, 8, 0, 1, 7], &data], false),
    ] {
        let whole = parts.concat();
        let mut datagram = BytesMut::from(&whole[..]);
        let last = split_off_last(&mut datagram);
        assert_eq!(last.is_some(), is_split, "{parts:?}");
        let last = last.unwrap_or_default();
        assert!(last.is_empty() || last[..] == data, "{parts:?}");
        assert_eq!([&datagram[..], &last[..]].concat(), whole);
    }
}

proptest! {
    #[test]
    fn no_datagram_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(packets_in(&bytes) <= bytes.len() as u64);
        let mut datagram = BytesMut::from(&bytes[..]);
        let last = split_off_last(&mut datagram).unwrap_or_default();
        prop_assert_eq!([&datagram[..], &last[..]].concat(), bytes);
    }
}
