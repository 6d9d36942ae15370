use proptest::prelude::*;

use super::*;

fn frame(header: FrameHeader) -> Vec<u8> {
    let mut bytes = header.encode().to_vec();
    bytes.resize(header.frame_bytes(), 0xa5);
    bytes
}

/// The payload lengths of all frames in a stream that comes in pieces of this size.
fn read(stream: &[u8], piece_bytes: usize) -> Result<Vec<u16>, FrameError> {
    let mut reader = FrameReader::default();
    let mut found = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let vacant = reader.vacant();
        let taken = piece_bytes.min(rest.len()).min(vacant.len());
        assert!(taken > 0, "a reader always has room for the rest of a frame");
        let (now, later) = rest.split_at(taken);
        vacant[..taken].copy_from_slice(now);
        reader.record_filled(taken);
        rest = later;
        while let Some(frame) = reader.poll_frame()? {
            assert_eq!(frame.sealed.len(), usize::from(frame.header.payload_bytes) + SEAL_BYTES);
            assert!(frame.sealed.iter().all(|byte| *byte == 0xa5));
            assert_eq!(FrameHeader::decode(frame.header_bytes), Ok(frame.header));
            found.push(frame.header.payload_bytes);
        }
    }
    assert!(reader.pending_bytes() <= FRAME_LIMIT_BYTES);
    Ok(found)
}

#[test]
fn the_longest_frame_is_the_originals() {
    let header = FrameHeader { level: Level::Data, kind: Kind::Stream, payload_bytes: 16_364 };
    assert_eq!(header.frame_bytes(), 16_384);
    assert_eq!(header.encode(), [3, 1, 0xec, 0x3f]);
    assert_eq!(FrameHeader::decode([3, 1, 0xed, 0x3f]), Err(FrameError::TooLong(16_365)));
    assert_eq!(FrameHeader::decode([1, 1, 0, 0]), Err(FrameError::Key(1)));
    assert_eq!(FrameHeader::decode([0, 2, 0, 0]), Err(FrameError::Kind(2)));
    let word = StreamWord { stream: 5, opens: true, finishes: false, aborts: true };
    assert_eq!(word.encode(), [5, 0, 0, 0xa0]);
    assert_eq!(StreamWord::decode(&[1, 2, 3]), Err(FrameError::TooShort(3)));
}

#[test]
fn room_grows_where_a_call_fills_it_and_is_given_back_after_a_rest() {
    let mut reader = FrameReader::default();
    let room = reader.vacant().len();
    reader.record_filled(room - 1);
    reader.rest();
    assert_eq!(reader.pending_bytes(), room - 1, "what has come stays");
    assert_eq!(reader.vacant().len(), 1);
    reader.record_filled(1);
    assert_eq!(reader.vacant().len(), 0, "of a peer that may be anybody");
    reader.expect_bulk();
    assert_eq!(reader.vacant().len(), 64 << 10);
    let mut reader = FrameReader::default();
    reader.expect_bulk();
    let stream: Vec<u8> =
        frame(FrameHeader { level: Level::Data, kind: Kind::Stream, payload_bytes: 1000 })
            .into_iter()
            .cycle()
            .take(room)
            .collect();
    reader.vacant().copy_from_slice(&stream);
    reader.record_filled(room);
    while matches!(reader.poll_frame(), Ok(Some(_))) {}
    let unfinished = reader.pending_bytes();
    assert_eq!(reader.vacant().len(), room + (64 << 10) - unfinished);
    reader.rest();
    assert_eq!(reader.vacant().len(), room - unfinished, "what is unfinished stays");
    let rest = HEADER_BYTES + 1000 + SEAL_BYTES - unfinished;
    reader.vacant()[..rest].fill(0);
    reader.record_filled(rest);
    while matches!(reader.poll_frame(), Ok(Some(_))) {}
    reader.rest();
    assert_eq!(reader.vacant().len(), room);
}

#[test]
fn frames_cut_at_every_byte_are_the_same() {
    let lengths = [0, 1, 20, 3];
    let mut stream = Vec::new();
    for payload_bytes in lengths {
        stream.extend(frame(FrameHeader {
            level: Level::Plain,
            kind: Kind::Stream,
            payload_bytes,
        }));
    }
    for piece_bytes in 1..=stream.len() {
        assert_eq!(read(&stream, piece_bytes), Ok(lengths.to_vec()), "in pieces of {piece_bytes}");
    }
}

proptest! {
    #[test]
    fn a_header_decodes_to_what_was_encoded(level in 0..3_usize, stream: bool, payload_bytes in 0..=16_364_u16) {
        let level = [Level::Plain, Level::Handshake, Level::Data][level];
        let kind = if stream { Kind::Stream } else { Kind::Handshake };
        let header = FrameHeader { level, kind, payload_bytes };
        prop_assert_eq!(FrameHeader::decode(header.encode()), Ok(header));
    }

    #[test]
    fn a_word_decodes_to_what_was_encoded(stream in 0..=STREAM_LIMIT, opens: bool, finishes: bool, aborts: bool) {
        let word = StreamWord { stream, opens, finishes, aborts };
        let mut payload = word.encode().to_vec();
        payload.push(9);
        prop_assert_eq!(StreamWord::decode(&payload), Ok((word, &[9_u8][..])));
    }

    #[test]
    fn any_split_gives_the_same(lengths in prop::collection::vec(0..=16_364_u16, 0..20), piece_bytes in 1..200_000_usize) {
        let mut stream = Vec::new();
        for payload_bytes in &lengths {
            let header = FrameHeader { level: Level::Data, kind: Kind::Stream, payload_bytes: *payload_bytes };
            stream.extend(frame(header));
        }
        prop_assert_eq!(read(&stream, piece_bytes), Ok(lengths));
    }
}
