//! What the original puts on the wire, byte by byte.

use linerate_wire::ctstraffic::data::{PERIOD_BYTES, Reference};
use linerate_wire::ctstraffic::media::datagram::{
    DataHeader, Datagram, DatagramError, START, check_start, encode_id,
};
use linerate_wire::ctstraffic::media::jitter::{Jitter, Stamps};
use linerate_wire::ctstraffic::media::shape::{ShapeError, Split, StreamShape, Train, TrainLimits};
use linerate_wire::ctstraffic::{CONNECTION_ID_BYTES, ConnectionId, DONE};

use crate::sha256::sha256;

const ID: &str = "b060598b-3bdb-4b90-9b3b-cfc0a15e636b";

fn id() -> ConnectionId {
    let mut bytes = [0; CONNECTION_ID_BYTES];
    bytes[..36].copy_from_slice(ID.as_bytes());
    ConnectionId::of_wire(bytes)
}

#[test]
fn data_has_the_originals_digests() {
    let reference = Reference::new(1_000_000);
    for (bytes, digest) in [
        (PERIOD_BYTES, "3b1d9e805314963bff352fc2006e4c6ea54dc62ea870253b856c99205b221f7c"),
        (1_000_000, "26e803e81130229eaf804c4c9e919eb6f581885165f2d95d2b3a607c5980ed4f"),
        (1374, "819d815ac15763fe50f13b65fd2be9117d049ef9a4f43634b5484339b9ee9f2b"),
    ] {
        assert_eq!(sha256(reference.part(0, bytes)), digest, "{bytes} bytes");
    }
}

#[test]
fn words_and_ids_are_the_originals() {
    assert_eq!((&DONE[..], &START[..]), (&b"DONE"[..], &b"START"[..]));
    assert_eq!(check_start(b"START"), Ok(()));
    for wrong in [&b"START\0"[..], b"STAR", b"start", b""] {
        assert_eq!(check_start(wrong), Err(DatagramError::NotStart(wrong.len())));
    }
    let datagram = encode_id(&id());
    assert_eq!((datagram.len(), &datagram[..2], datagram[38]), (39, &[0x00, 0x10][..], 0));
    assert_eq!(Datagram::decode(&datagram), Ok(Datagram::Id(id())));
}

#[test]
fn a_header_is_the_originals() {
    let header =
        DataHeader { sequence: 1, sender_counter: 7_640_792_417, sender_frequency: 10_000_000 };
    let mut datagram = [0xff; 30];
    header.encode(&mut datagram);
    let expected = [
        0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x61, 0x3d, 0x6d, 0xc7, 1, 0, 0, 0, 0x80, 0x96, 0x98, 0, 0,
        0, 0, 0,
    ];
    assert_eq!(datagram[..26], expected);
    assert_eq!(Datagram::decode(&datagram), Ok(Datagram::Data(header, &[0xff; 4])));
    assert_eq!(Datagram::decode(&datagram[..26]), Ok(Datagram::Data(header, &[])));
}

#[test]
fn datagrams_of_the_wrong_length_or_kind_are_refused() {
    let too_short = |length, least| Err(DatagramError::TooShort { length, least });
    assert_eq!(Datagram::decode(&[]), too_short(0, 2));
    assert_eq!(Datagram::decode(&[0]), too_short(1, 2));
    assert_eq!(Datagram::decode(&[0; 25]), too_short(25, 26));
    assert_eq!(Datagram::decode(&encode_id(&id())[..38]), too_short(38, 39));
    assert_eq!(Datagram::decode(&[0, 0x20, 1]), Err(DatagramError::UnknownFlag(0x2000)));
    assert_eq!(
        DatagramError::TooShort { length: 20, least: 26 }.to_string(),
        "a datagram of 20 bytes is shorter than the 26 of its kind"
    );
}

#[test]
fn frames_are_split_as_the_original_splits_them() {
    let split = |frame_bytes, most| Split::new(frame_bytes, most).collect::<Vec<_>>();
    assert_eq!(split(10_000, 1400), [[1400; 7].as_slice(), &[200]].concat());
    assert_eq!(split(10_000, 999), [[999; 9].as_slice(), &[982, 27]].concat());
    assert_eq!(split(27, 1400), [27]);
    assert_eq!((split(1399, 1400), split(1400, 1400)), (vec![1399], vec![1400]));
    assert_eq!(split(1401, 1400), [1374, 27]);
    assert_eq!(split(2800, 1400), [1400, 1400]);
    assert_eq!(Split::new(123_456_789, 1400).count(), 88_184);
}

#[test]
fn the_datagrams_of_a_frame_go_in_trains_of_one_length() {
    let trains = |frame_bytes, most, most_datagrams, most_bytes| {
        let mut split = Split::new(frame_bytes, most);
        let limits = TrainLimits { most_datagrams, most_bytes };
        let next = || split.next_train(limits).map(|train| (train.datagram_bytes, train.bytes));
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    assert_eq!(trains(10_000, 1400, 64, 65_507), [(1400, 10_000)]);
    assert_eq!(trains(10_000, 1400, 3, 65_507), [(1400, 4200), (1400, 4200), (1400, 1600)]);
    assert_eq!(
        trains(10_000, 1400, 64, 4000),
        [(1400, 2800), (1400, 2800), (1400, 2800), (1400, 1600)]
    );
    assert_eq!(trains(3000, 1400, 1, 65_507), [(1400, 1400), (1400, 1400), (200, 200)]);
    assert_eq!(trains(3000, 1400, 64, 10), [(1400, 1400), (1400, 1400), (200, 200)]);
    // The datagram before the last is shorter than the others: the last goes by itself.
    assert_eq!(trains(10_000, 999, 64, 65_507), [(999, 9973), (27, 27)]);
    let train = Train { datagram_bytes: 1400, bytes: 3000 };
    let rest = train.after_first().and_then(Train::after_first);
    assert_eq!(rest, Some(Train { datagram_bytes: 200, bytes: 200 }));
    assert_eq!(rest.and_then(Train::after_first), None);
}

#[test]
fn streams_are_computed_as_the_original_computes_them() {
    let shape = StreamShape::derive(2_000_000, 25, 5, 1400).unwrap();
    assert_eq!((shape.frames, shape.frame_bytes, shape.total_bytes()), (125, 10_000, 1_250_000));
    assert_eq!(shape.buffered_frames(1), Ok(25));
    assert_eq!(shape.buffered_frames(100), Ok(125), "no more than there are");
    let odd = StreamShape::derive(8 * 12_345 + 7, 7, 3, 1400).unwrap();
    assert_eq!((odd.frames, odd.frame_bytes), (21, 12_345 * 3 / 21));
    assert_eq!(StreamShape::derive(800, 10, 1, 1400), Err(ShapeError::FrameTooSmall));
    assert_eq!(StreamShape::derive(8 * 400, 10, 1, 1400).map(|shape| shape.frame_bytes), Ok(40));
    assert_eq!(StreamShape::derive(u64::MAX, 25, 9, 1400), Err(ShapeError::TooManyBytes));
    assert_eq!(StreamShape::derive(u64::MAX, 1, 1, 1400), Err(ShapeError::FrameTooLarge));
    let many = StreamShape::derive(u64::MAX, u32::MAX, u32::MAX, 1400);
    assert_eq!(many, Err(ShapeError::TooManyFrames));
    assert_eq!(shape.buffered_frames(40_001), Err(ShapeError::TooManyBuffered));
    assert_eq!(shape.buffered_frames(0), Err(ShapeError::TooManyBuffered));
}

#[test]
fn jitter_is_the_originals() {
    let stamps = |sender_counter, receiver_counter| Stamps {
        sender_counter,
        sender_frequency: 10_000_000,
        receiver_counter,
        receiver_frequency: 10_000_000,
    };
    let mut jitter = Jitter::default();
    let first = jitter.record_completed(1, stamps(7_640_794_820, 7_640_805_735));
    assert_eq!((first.relative_ms, first.change_ms), (0.0, 0.0));
    let second = jitter.record_completed(2, stamps(7_641_196_828, 7_641_205_183));
    assert_eq!(format!("{:.3},{:.3}", second.relative_ms, second.change_ms), "-0.256,0.256");
    let none = Stamps { sender_frequency: 0, receiver_frequency: -1, ..stamps(9, 9) };
    assert!(jitter.record_completed(3, none).relative_ms.is_finite());
}
