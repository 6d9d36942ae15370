//! Whole conversations in frames, cut at every byte.

use linerate_wire::perf::answer::{Demand, Request, Start};
use linerate_wire::perf::frame::{
    FrameHeader, FrameReader, HEADER_BYTES, Kind, Level, SEAL_BYTES, StreamWord,
};
use linerate_wire::perf::render_block;

/// A frame of a stream, with filler for a seal.
fn frame(word: StreamWord, data: &[u8]) -> Vec<u8> {
    let payload = [&word.encode()[..], data].concat();
    let payload_bytes = payload.len() as u16;
    let header = FrameHeader { level: Level::Data, kind: Kind::Stream, payload_bytes };
    [&header.encode()[..], &payload, &[0xee; SEAL_BYTES]].concat()
}

/// What a server makes of these bytes, which come in two parts.
fn demands(parts: [&[u8]; 2]) -> Vec<(u32, Option<Demand>, u64)> {
    let mut reader = FrameReader::default();
    let mut requests = [Request::default(); 4];
    let mut said = Vec::new();
    for part in parts {
        reader.vacant()[..part.len()].copy_from_slice(part);
        reader.record_filled(part.len());
        while let Some(frame) = reader.poll_frame().unwrap() {
            assert_eq!(frame.header_bytes.len(), HEADER_BYTES);
            let payload = &frame.sealed[..frame.sealed.len() - SEAL_BYTES];
            let (word, data) = StreamWord::decode(payload).unwrap();
            let request = &mut requests[word.stream as usize];
            let demand = request.handle_received(Start::of(data), data.len(), word.finishes);
            if demand.is_some() {
                said.push((word.stream, demand, request.received_bytes()));
            }
        }
    }
    assert_eq!(reader.pending_bytes(), 0);
    said
}

#[test]
fn requests_in_frames_cut_at_every_byte_are_the_same() {
    let word = |stream| StreamWord { stream, ..StreamWord::default() };
    let opens = |stream| StreamWord { opens: true, ..word(stream) };
    let finishes = |stream| StreamWord { finishes: true, ..word(stream) };
    let whole = StreamWord { finishes: true, ..opens(3) };
    let [first, second] = [render_block(1_000, 40), render_block(7, 8)];
    // A header in three frames, another stream between them, one that is too short, and an end alone.
    let bytes = [
        frame(opens(1), &first[..3]),
        frame(opens(2), &second),
        frame(word(1), &first[3..7]),
        frame(whole, &[1, 2]),
        frame(finishes(2), &[]),
        frame(finishes(1), &first[7..]),
    ]
    .concat();
    let expected = [
        (3, Some(Demand::Abort), 2),
        (2, Some(Demand::Bytes(7)), 8),
        (1, Some(Demand::Bytes(1_000)), 40),
    ];
    for cut in 0..=bytes.len() {
        assert_eq!(demands([&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
    }
}
