use proptest::prelude::*;

use super::*;

fn frames(reader: &mut FrameReader) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut frames = Vec::new();
    while let Some(frame) = reader.poll_frame()? {
        frames.push(frame.to_vec());
    }
    Ok(frames)
}

proptest! {
    #[test]
    fn any_split_gives_the_same_frames(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..20),
        pieces in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let stream: Vec<u8> =
            bodies.iter().flat_map(|body| encode_frame(body, 200).unwrap()).collect();
        let mut reader = FrameReader::new(200);
        let mut read = Vec::new();
        let mut rest = stream.as_slice();
        for piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            reader.handle_bytes(now);
            read.extend(frames(&mut reader).unwrap());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read, bodies);
        prop_assert_eq!(reader.pending_bytes(), 0);
    }
}

#[test]
fn a_wrong_length_is_refused_before_its_body() {
    let mut reader = FrameReader::new(100);
    reader.handle_bytes(&[0, 0, 0]);
    assert_eq!(reader.poll_frame(), Ok(None));
    reader.handle_bytes(&[0]);
    assert_eq!(reader.poll_frame(), Err(FrameError::Empty));
    assert_eq!(reader.poll_frame(), Err(FrameError::Empty));

    let mut reader = FrameReader::new(100);
    reader.handle_bytes(&[0, 0, 0, 101]);
    let too_long = FrameError::TooLong { claimed_bytes: 101, limit_bytes: 100 };
    assert_eq!(reader.poll_frame(), Err(too_long));

    let mut reader = FrameReader::new(TO_CLIENT_LIMIT_BYTES);
    reader.handle_bytes(&[0xff; 4]);
    assert!(matches!(reader.poll_frame(), Err(FrameError::TooLong { .. })));
}

#[test]
fn a_claim_costs_no_memory() {
    let mut reader = FrameReader::new(TO_CLIENT_LIMIT_BYTES);
    reader.handle_bytes(&u32::try_from(TO_CLIENT_LIMIT_BYTES).unwrap().to_be_bytes());
    assert_eq!(reader.poll_frame(), Ok(None));
    assert!(reader.buffer.capacity() < 1024);
}

#[test]
fn a_large_frame_gives_its_memory_back() {
    let mut reader = FrameReader::new(TO_CLIENT_LIMIT_BYTES);
    let frame = encode_frame(&vec![1; 4 * 1024 * 1024], TO_CLIENT_LIMIT_BYTES).unwrap();
    for piece in frame.chunks(1000) {
        reader.handle_bytes(piece);
        let _ = reader.poll_frame();
    }
    reader.handle_bytes(&[0]);
    assert!(reader.buffer.capacity() <= KEEP_BYTES);
}

#[test]
fn many_small_frames_are_not_quadratic() {
    let frame = encode_frame(b"{}", 100).unwrap();
    let stream = frame.repeat(200_000);
    let mut reader = FrameReader::new(100);
    let mut count = 0;
    // All at once: moving the rest down after each frame would take minutes.
    reader.handle_bytes(&stream);
    while let Ok(Some(_)) = reader.poll_frame() {
        count += 1;
    }
    assert_eq!(count, 200_000);
}

#[test]
fn only_what_fits_is_encoded() {
    assert_eq!(encode_frame(b"", 10), None);
    assert_eq!(encode_frame(&[0; 11], 10), None);
    assert_eq!(encode_frame(b"ab", 10), Some(vec![0, 0, 0, 2, b'a', b'b']));
}
