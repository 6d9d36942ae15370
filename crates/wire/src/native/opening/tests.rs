use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn round_trip(flow: u32, token: [u8; 16]) {
        let opening = Opening { flow, token };
        prop_assert_eq!(Opening::decode(&opening.encode()), Ok(opening));
    }

    #[test]
    fn decoded_bytes_encode_to_the_same(bytes: [u8; OPENING_BYTES], ours: bool) {
        let mut bytes = bytes;
        if ours {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[24..].fill(0);
        }
        match Opening::decode(&bytes) {
            Ok(opening) => prop_assert_eq!(opening.encode(), bytes),
            Err(_) => prop_assert!(!ours),
        }
    }
}

#[test]
fn error_names_the_wrong_field() {
    let mut bytes = Opening { flow: 1, token: [2; 16] }.encode();
    bytes[31] = 1;
    assert_eq!(Opening::decode(&bytes), Err(OpeningError::Reserved));
    bytes[0] = b'l';
    assert_eq!(Opening::decode(&bytes), Err(OpeningError::Magic));
}

#[test]
fn connections_are_told_apart() {
    let opening = Opening { flow: 1, token: [2; 16] }.encode();
    for length in 1..=OPENING_BYTES {
        assert_eq!(sniff(&opening[..length]), Some(Arrival::Data));
    }
    assert_eq!(sniff(&[]), None);
    assert_eq!(sniff(&[0x16, 3, 1]), Some(Arrival::Control));
    assert_eq!(sniff(b"GET / HTTP/1.1"), Some(Arrival::Foreign));
    assert_eq!(sniff(b"LRD2"), Some(Arrival::Foreign));
}
