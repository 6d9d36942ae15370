use proptest::prelude::*;

use super::*;

fn handshake() -> impl Strategy<Value = Handshake> {
    let bytes = any::<[u8; 16]>;
    prop_oneof![
        (any::<u32>(), bytes()).prop_map(|(flow, token)| Handshake::Hello(Hello { flow, token })),
        (any::<u32>(), bytes())
            .prop_map(|(flow, cookie)| Handshake::Cookie(Cookie { flow, cookie })),
        (any::<u32>(), bytes(), bytes())
            .prop_map(|(flow, token, cookie)| Handshake::Proof(Proof { flow, token, cookie })),
        (any::<u32>(), any::<u32>())
            .prop_map(|(flow, tag)| Handshake::Welcome(Welcome { flow, tag })),
    ]
}

proptest! {
    #[test]
    fn handshake_round_trip(message in handshake()) {
        let mut datagram = [0xff; PADDED_BYTES];
        let length = message.encode(&mut datagram).unwrap();
        prop_assert_eq!(length, message.len_bytes());
        prop_assert_eq!(Handshake::decode(&datagram[..length]), Ok(message));
    }

    #[test]
    fn decoded_bytes_encode_to_the_same(datagram in prop::collection::vec(any::<u8>(), 0..80), kind in 0x20_u8..0x29) {
        let mut datagram = datagram;
        if let Some(first) = datagram.first_mut() {
            *first = kind;
        }
        if let Ok(message) = Handshake::decode(&datagram) {
            let mut again = [0; PADDED_BYTES];
            let length = message.encode(&mut again).unwrap();
            prop_assert_eq!(&again[..length], &datagram[..]);
        }
        if let Ok(header) = DataHeader::decode(&datagram) {
            let mut again = [0; DATA_HEADER_BYTES];
            header.encode(&mut again).unwrap();
            prop_assert_eq!(&again[..], &datagram[..DATA_HEADER_BYTES]);
        }
        if let Ok(header) = RrHeader::decode(&datagram) {
            let mut again = [0; RR_HEADER_BYTES];
            header.encode(&mut again).unwrap();
            prop_assert_eq!(&again[..], &datagram[..RR_HEADER_BYTES]);
        }
    }

    #[test]
    fn data_header_round_trip(tag: u32, seq: u64, sent_ns: u64, warm_up: bool, extra in 0_usize..40) {
        let header = DataHeader { tag, seq, sent_ns, warm_up };
        let mut datagram = vec![0xff; DATA_HEADER_BYTES + extra];
        header.encode(&mut datagram).unwrap();
        prop_assert_eq!(DataHeader::decode(&datagram), Ok(header));
        prop_assert!(RrHeader::decode(&datagram).is_err());
    }

    #[test]
    fn rr_header_round_trip(response: bool, tag: u32, seq: u64, warm_up: bool, extra in 0_usize..40) {
        let header = RrHeader { response, tag, seq, warm_up };
        let mut datagram = vec![0xff; RR_HEADER_BYTES + extra];
        header.encode(&mut datagram).unwrap();
        prop_assert_eq!(RrHeader::decode(&datagram), Ok(header));
        prop_assert!(DataHeader::decode(&datagram).is_err());
    }
}

#[test]
fn layout_is_as_written_down() {
    let mut datagram = [0; DATA_HEADER_BYTES];
    let header = DataHeader { tag: 0x0102_0304, seq: 5, sent_ns: 6, warm_up: true };
    header.encode(&mut datagram).unwrap();
    assert_eq!(
        datagram,
        [0x25, 1, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6]
    );
    let mut welcome = [0; WELCOME_BYTES];
    Handshake::Welcome(Welcome { flow: 7, tag: 8 }).encode(&mut welcome).unwrap();
    assert_eq!(welcome, [0x24, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8]);
}

#[test]
fn every_kind_is_told_from_quic() {
    for kind in [HELLO, COOKIE, PROOF, WELCOME, DATA, REQUEST, RESPONSE] {
        assert!(!is_quic(kind));
    }
    assert!(is_quic(0x40) && is_quic(0xc0));
}

#[test]
fn reserved_bits_and_other_kinds_are_refused() {
    let mut datagram = [0; PADDED_BYTES];
    let hello = Handshake::Hello(Hello { flow: 1, token: [2; 16] });
    hello.encode(&mut datagram).unwrap();
    for reserved in (1..4).chain(24..PADDED_BYTES) {
        let mut wrong = datagram;
        wrong[reserved] = 1;
        assert_eq!(Handshake::decode(&wrong), Err(DatagramError::Reserved));
    }
    assert_eq!(Handshake::decode(&[0x7f; 64]), Err(DatagramError::Kind(0x7f)));
    let length = DatagramError::Length { bytes: 63, wanted_bytes: 64 };
    assert_eq!(Handshake::decode(&datagram[..63]), Err(length));
    let mut data = [0; DATA_HEADER_BYTES];
    DataHeader { tag: 0, seq: 0, sent_ns: 0, warm_up: false }.encode(&mut data).unwrap();
    for (at, value) in [(1, 2), (1, 0x80), (2, 1), (3, 1)] {
        let mut wrong = data;
        wrong[at] = value;
        assert_eq!(DataHeader::decode(&wrong), Err(DatagramError::Reserved));
    }
    assert!(matches!(DataHeader::decode(&data[..23]), Err(DatagramError::Length { .. })));
}

#[test]
fn too_little_room_is_refused() {
    let header = DataHeader { tag: 0, seq: 0, sent_ns: 0, warm_up: false };
    assert!(header.encode(&mut [0; DATA_HEADER_BYTES - 1]).is_err());
    let hello = Handshake::Hello(Hello { flow: 1, token: [2; 16] });
    assert!(hello.encode(&mut [0; PADDED_BYTES - 1]).is_err());
}

/// Nothing that a server says in the handshake is longer than what it answers.
#[test]
fn no_answer_is_longer_than_its_question() {
    let (token, cookie) = ([1; 16], [2; 16]);
    let hello = Handshake::Hello(Hello { flow: 0, token });
    let proof = Handshake::Proof(Proof { flow: 0, token, cookie });
    let answer = Handshake::Cookie(Cookie { flow: 0, cookie });
    assert!(answer.len_bytes() < hello.len_bytes());
    let answer = Handshake::Welcome(Welcome { flow: 0, tag: 0 });
    assert!(answer.len_bytes() < proof.len_bytes());
    // A question that is cut short is none, so that it gets no answer at all.
    let mut datagram = [0; PADDED_BYTES];
    for question in [hello, proof] {
        question.encode(&mut datagram).unwrap();
        for length in 0..PADDED_BYTES {
            assert!(Handshake::decode(&datagram[..length]).is_err());
        }
    }
}
