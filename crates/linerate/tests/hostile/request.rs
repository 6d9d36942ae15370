//! What is said on a stream, as the draft has it: draft-banks-quic-performance, section 4.

/// A request of so many bytes at least, the first eight of which say how many are wanted back.
pub(crate) fn request(wanted_bytes: u64, request_bytes: usize) -> Vec<u8> {
    let mut request = wanted_bytes.to_be_bytes().to_vec();
    request.resize(request_bytes.max(8), 0x2a);
    request
}

/// How many bytes a request wants; `None` of one that is too short to say so.
pub(crate) fn wanted_bytes(request: &[u8]) -> Option<u64> {
    let header: [u8; 8] = request.get(..8)?.try_into().unwrap();
    Some(u64::from_be_bytes(header))
}

/// An answer without an end.
pub(crate) const ENDLESS: u64 = u64::MAX;
