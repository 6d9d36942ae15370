use super::super::hello::render_varint;
use super::*;

/// The client's first packet of RFC 9001, appendix A.2: the frames, and the packet's header.
const HELLO: &str = "\
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c000\
    000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e00050005010000\
    0000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d00\
    10000e0403050306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ff\
    ff0801100104800075300901100f088394c8f03e51570806048000ffff";
const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|one| Some(one.to_digit(16)? as u8)).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A first packet to this id with these frames, as a client seals it.
pub(in super::super) fn packet(id: &[u8; 8], number: u8, frames: &[u8]) -> Vec<u8> {
    let suite = initial_suite().unwrap();
    let version = version_of(1).unwrap();
    let keys = suite.keys(id, Side::Client, version).local;
    let mut frames = frames.to_vec();
    frames.resize(frames.len().max(20), 0);
    let mut packet = vec![0xc0, 0, 0, 0, 1, 8];
    packet.extend(id);
    packet.extend([0, 0]);
    let length = 1 + frames.len() + keys.packet.tag_len();
    packet.extend((length as u16 | 0x4000).to_be_bytes());
    let number_at = packet.len();
    packet.push(number);
    let tag = keys.packet.encrypt_in_place(number.into(), &packet, &mut frames).unwrap();
    packet.extend(frames);
    packet.extend(tag.as_ref());
    let (head, protected) = packet.split_at_mut(number_at);
    let (number, sampled) = protected.split_at_mut(MOST_NUMBER_BYTES);
    let sample = &sampled[..SAMPLE_BYTES];
    keys.header.encrypt_in_place(sample, &mut head[0], &mut number[..1]).unwrap();
    packet
}

/// A frame with a piece of the message.
pub(in super::super) fn crypto(offset: usize, piece: &[u8]) -> Vec<u8> {
    let mut frame = vec![6];
    render_varint(offset as u64, &mut frame);
    render_varint(piece.len() as u64, &mut frame);
    frame.extend(piece);
    frame
}

/// What a client says whose packet has these frames.
fn arrived(frames: &[u8]) -> Arrived {
    FirstFlight::default().record(&mut packet(&ID, 0, frames))
}

fn has_alpn(arrived: &Arrived) -> bool {
    matches!(arrived, Arrived::Whole(offer) if offer.protocols == [b"alpn"])
}

#[test]
fn the_client_of_the_rfc_offers_what_its_packet_says() {
    let mut packet = packet(&ID, 2, &bytes(HELLO));
    assert!(is_first(&packet));
    assert!(has_alpn(&FirstFlight::default().record(&mut packet)));
}

#[test]
fn a_message_in_pieces_out_of_order_is_put_together() {
    let frames = bytes(HELLO);
    let message = &frames[4..];
    let piece = |number, from: usize, to: usize| {
        packet(&ID, number, &[&[1, 0][..], &crypto(from, &message[from..to])].concat())
    };
    let mut flight = FirstFlight::default();
    let mut two = [piece(0, 100, 200), piece(1, 60, 120)].concat();
    assert_eq!(flight.record(&mut two), Arrived::Part);
    assert_eq!(flight.record(&mut piece(2, 200, message.len())), Arrived::Part);
    assert!(has_alpn(&flight.record(&mut piece(3, 0, 61))));
}

#[test]
fn a_message_in_pieces_of_one_byte_is_put_together_whichever_way_they_come() {
    let frames = bytes(HELLO);
    let message = &frames[4..];
    let pieces: Vec<_> = (0..message.len()).map(|at| crypto(at, &message[at..=at])).collect();
    assert!(has_alpn(&arrived(&pieces.concat())));
    let backwards: Vec<_> = pieces.into_iter().rev().collect();
    assert!(has_alpn(&arrived(&backwards.concat())));
}

#[test]
fn pieces_that_overlap_take_no_more_memory_than_one() {
    let mut flight = FirstFlight::default();
    for number in 0..200 {
        let frames = crypto(usize::from(number) + 1, &[7; 15_000]);
        assert_eq!(flight.record(&mut packet(&ID, number, &frames)), Arrived::Part);
    }
    assert!(flight.kept_bytes() <= 17 << 10, "{}", flight.kept_bytes());
}

#[test]
fn a_message_that_cannot_be_read_or_kept_is_wrong() {
    // Another message; one that says that it is too long; a piece beyond what is kept; frames that don't belong here.
    assert_eq!(arrived(&crypto(0, &[2, 0, 0, 0])), Arrived::Wrong);
    assert_eq!(arrived(&crypto(0, &[1, 0, 0x3f, 0xfc])), Arrived::Part);
    assert_eq!(arrived(&crypto(0, &[1, 0, 0x3f, 0xfd])), Arrived::Wrong);
    assert_eq!(arrived(&crypto(MOST_BYTES - 1, &[7])), Arrived::Part);
    assert_eq!(arrived(&crypto(MOST_BYTES, &[7])), Arrived::Wrong);
    for frames in [&[0x1e][..], &[0x21], &[0x0a, 0, 1, 1], &[0x06, 0, 4, 1]] {
        let packet = [&crypto(0, &[1])[..], frames].concat();
        let flight = |frames: &[u8]| FirstFlight::default().take(frames);
        assert_eq!(flight(&packet), Err(Arrived::Wrong), "{frames:?}");
    }
    let far_apart = |count| (1..=count).flat_map(|at| crypto(2 * at, &[7])).collect::<Vec<_>>();
    assert_eq!(arrived(&far_apart(MOST_GAPS)), Arrived::Part);
    assert_eq!(arrived(&far_apart(MOST_GAPS + 1)), Arrived::Wrong);
}

#[test]
fn a_client_that_closes_or_whose_first_packet_is_forged_is_gone() {
    let close = [0x1c, 0, 0, 0];
    assert_eq!(arrived(&[&crypto(0, &[1])[..], &close].concat()), Arrived::Gone);
    assert_eq!(arrived(&[&bytes(HELLO)[..], &close].concat()), Arrived::Gone);
    let mut forged = packet(&ID, 0, &bytes(HELLO));
    *forged.last_mut().unwrap() ^= 1;
    let mut flight = FirstFlight::default();
    assert_eq!(flight.record(&mut forged.clone()), Arrived::Gone);
    // Later ones are anybody's.
    let mut flight = FirstFlight::default();
    assert_eq!(flight.record(&mut packet(&ID, 0, &crypto(0, &[1]))), Arrived::Part);
    assert_eq!(flight.record(&mut forged), Arrived::Part);
    assert!(has_alpn(&flight.record(&mut packet(&ID, 2, &bytes(HELLO)))));
}

#[test]
fn few_packets_of_a_datagram_are_opened() {
    let hello = packet(&ID, 9, &bytes(HELLO));
    let datagram = |before: usize| {
        let mut datagram: Vec<_> =
            (0..before).flat_map(|number| packet(&ID, number as u8, &[1])).collect();
        datagram.extend(&hello);
        datagram
    };
    assert!(has_alpn(&FirstFlight::default().record(&mut datagram(MOST_PACKETS - 1))));
    let mut flight = FirstFlight::default();
    assert_eq!(flight.record(&mut datagram(MOST_PACKETS)), Arrived::Part);
    assert!(has_alpn(&flight.record(&mut hello.clone())));
}

proptest::proptest! {
    #[test]
    fn no_bytes_harm(rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let mut datagram = vec![0xc0, 0, 0, 0, 1];
        datagram.extend(&rest);
        FirstFlight::default().record(&mut datagram);
        let mut flight = FirstFlight::default();
        let _taken = flight.take(&rest);
        assert!(flight.kept_bytes() <= 2 * MOST_BYTES);
        assert!(flight.without_gap().len() <= flight.message.len());
    }

    #[test]
    fn ranges_are_joined_as_in_a_map_of_bytes(
        ranges in proptest::collection::vec((0_usize..100, 1_usize..10), 0..20)
    ) {
        let (mut flight, mut bytes) = (FirstFlight::default(), [false; 110]);
        for (start, length) in ranges {
            flight.cover(start..start + length);
            bytes[start..start + length].fill(true);
        }
        let covered = flight.covered;
        assert!(covered.windows(2).all(|two| two[0].end < two[1].start), "{covered:?}");
        for (at, has_come) in bytes.into_iter().enumerate() {
            assert_eq!(covered.iter().any(|one| one.contains(&at)), has_come, "{at}: {covered:?}");
        }
    }
}
