//! The decoders of the perf dialect. Each function takes any bytes and panics only when the decoder is
//! wrong.

use linerate_wire::perf::answer::{Demand, Request, Start};
use linerate_wire::perf::frame::{
    FRAME_LIMIT_BYTES, FrameHeader, FrameReader, SEAL_BYTES, StreamWord,
};

/// Frames in a stream whose first byte says in what pieces it comes: any split gives the same, and what
/// decodes encodes to the same bytes.
pub fn perf_frames(data: &[u8]) {
    let Some((piece_bytes, stream)) = data.split_first() else { return };
    let read = |piece_bytes: usize| {
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let vacant = reader.vacant();
            let taken = piece_bytes.min(rest.len()).min(vacant.len());
            assert!(taken > 0, "there is room for the rest of any frame");
            let (now, later) = rest.split_at(taken);
            vacant.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            reader.record_filled(taken);
            rest = later;
            loop {
                match reader.poll_frame() {
                    Ok(Some(frame)) => frames.push((frame.header_bytes, frame.sealed.to_vec())),
                    Ok(None) => break,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        return frames;
                    }
                }
            }
        }
        assert!(reader.pending_bytes() < FRAME_LIMIT_BYTES);
        frames
    };
    let frames = read(usize::from((*piece_bytes).max(1)));
    assert_eq!(frames, read(usize::MAX));
    for (header_bytes, sealed) in frames {
        let header = FrameHeader::decode(header_bytes).map(|header| header.encode());
        assert_eq!(header, Ok(header_bytes));
        let payload = sealed.get(..sealed.len().saturating_sub(SEAL_BYTES)).unwrap_or_default();
        if let Ok((word, _)) = StreamWord::decode(payload) {
            assert_eq!(payload.get(..4), Some(&word.encode()[..]));
        }
    }
}

/// A request whose first byte says in what pieces it comes: any split gives the same.
pub fn perf_request(data: &[u8]) {
    let Some((piece_bytes, bytes)) = data.split_first() else { return };
    let demand = |piece_bytes: usize| {
        let mut request = Request::default();
        for piece in bytes.chunks(piece_bytes) {
            assert_eq!(request.handle_received(Start::of(piece), piece.len(), false), None);
        }
        assert_eq!(request.received_bytes(), bytes.len() as u64);
        request.handle_received(Start::default(), 0, true)
    };
    let whole = demand(bytes.len().max(1));
    assert_eq!(demand(usize::from((*piece_bytes).max(1))), whole);
    assert_eq!(whole == Some(Demand::Abort), bytes.len() < 8);
}
