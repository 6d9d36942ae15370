//! The "perf" dialect of QUIC: request and response on streams, and its framing over TCP.
//!
//! A client opens streams; the first eight bytes of each say how many bytes it wants back
//! (draft-banks-quic-performance). The rest of a request is free filler that its
//! end alone delimits. [`answer`] is a server's view of one stream, [`exchange`] a client's, with
//! the time as an argument; [`frame`] is the codec of streams over one TCP connection.
//!
//! `docs/compat/secnetperf.md` tells what the original does and where we differ.

pub mod answer;
pub mod exchange;
pub mod frame;

/// The name of the dialect in TLS (ALPN).
pub const ALPN: &[u8] = b"perf";

/// The port of servers, UDP and TCP.
pub const DEFAULT_PORT: u16 = 4433;

/// Bytes of a request's header: the length of the response that is wanted, big-endian.
pub const HEADER_BYTES: usize = 8;

/// The length that means: send until told to stop.
pub const UNLIMITED: u64 = u64::MAX;

/// A block of filler with `header` in front, as the original fills its own: byte i is `i mod 256`.
/// Requests and responses repeat the block from its start.
pub fn render_block(header: u64, block_bytes: usize) -> Vec<u8> {
    let mut block: Vec<u8> = (0..block_bytes).map(|place| place as u8).collect();
    for (byte, said) in block.iter_mut().zip(header.to_be_bytes()) {
        *byte = said;
    }
    block
}

#[cfg(test)]
mod tests;
