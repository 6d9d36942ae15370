//! A client's view of a stream against a server's, in pieces of every size.

use linerate_wire::perf::answer::{Demand, Request, Start};
use linerate_wire::perf::exchange::{Exchange, Outcome, Shape};
use linerate_wire::perf::{HEADER_BYTES, UNLIMITED, render_block};
use proptest::prelude::*;

const BLOCK_BYTES: u32 = 64;
/// What a piece takes on its way, µs.
const DELAY_US: u64 = 10;

/// Both ends of one stream, and the time.
struct Pair {
    shape: Shape,
    client: Exchange,
    server: Request,
    demand: Option<Demand>,
    now_us: u64,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        let client = Exchange::new(shape, 0);
        Self { shape, client, server: Request::default(), demand: None, now_us: 0 }
    }

    /// The request reaches the server in pieces of so many bytes; its bytes.
    fn carry_request(&mut self, piece_bytes: usize) -> Vec<u8> {
        let block = render_block(self.shape.header(), BLOCK_BYTES as usize);
        let mut said = Vec::new();
        while let Some(piece) = self.client.poll_send(self.now_us) {
            assert_eq!(piece.opens, said.is_empty());
            let taken = piece.length.min(piece_bytes);
            let bytes = &block[piece.offset..piece.offset + taken];
            said.extend_from_slice(bytes);
            self.client.record_sent(&piece, taken);
            self.now_us += DELAY_US;
            let finished = piece.finishes && taken == piece.length;
            let demand = self.server.handle_received(Start::of(bytes), taken, finished);
            assert_eq!(demand.is_some(), finished, "a request is answered at its end, once");
            self.demand = self.demand.or(demand);
            self.client.handle_delivered(taken as u64, self.now_us);
        }
        said
    }

    /// The answer reaches the client in pieces of so many bytes, until it is stopped.
    fn carry_answer(&mut self, piece_bytes: u64) {
        let Some(Demand::Bytes(bytes)) = self.demand else {
            self.client.handle_receive_aborted(self.now_us);
            return;
        };
        let mut left = bytes;
        loop {
            let now = left.min(piece_bytes);
            left -= if bytes == UNLIMITED { 0 } else { now };
            self.now_us += DELAY_US;
            if self.client.handle_received(now, left == 0, self.now_us) || left == 0 {
                return;
            }
        }
    }

    fn outcome(&self) -> Outcome {
        assert!(self.client.is_over());
        self.client.outcome()
    }
}

fn shape(upload: u64, download: u64, timed: bool) -> Shape {
    Shape { upload, download, timed, block_bytes: BLOCK_BYTES }
}

#[test]
fn a_stream_cut_at_every_byte_comes_to_the_same() {
    for (upload, download) in [(0, 0), (8, 0), (9, 1), (64, 64), (65, 300), (200, 0), (0, 129)] {
        for piece_bytes in 1..=201 {
            let mut pair = Pair::new(shape(upload, download, false));
            let said = pair.carry_request(piece_bytes);
            let expected = if upload == 0 { HEADER_BYTES as u64 } else { upload };
            assert_eq!(said.len() as u64, expected);
            assert_eq!(pair.server.received_bytes(), expected);
            assert_eq!(pair.demand, Some(Demand::Bytes(download)));
            pair.carry_answer(piece_bytes as u64);
            let outcome = pair.outcome();
            assert_eq!(outcome.upload.map(|sent| sent.bytes), (upload > 0).then_some(upload));
            let received = outcome.download.map(|received| received.bytes);
            assert_eq!(received, (download > 0).then_some(download));
            assert_eq!(outcome.latency_us, Some(pair.now_us));
        }
    }
}

#[test]
fn a_request_that_is_too_short_completes_nothing() {
    for upload in 1..8 {
        for piece_bytes in 1..=8 {
            let mut pair = Pair::new(shape(upload, 100, false));
            pair.carry_request(piece_bytes);
            assert_eq!(pair.demand, Some(Demand::Abort));
            pair.carry_answer(1);
            assert_eq!(pair.outcome(), Outcome::default());
        }
    }
}

proptest! {
    #[test]
    fn a_timed_stream_has_its_time(upload in 0..5_000_u64, download in 0..5_000_u64, piece_bytes in 1..200_usize) {
        let mut pair = Pair::new(shape(upload, download, true));
        let said = pair.carry_request(piece_bytes);
        prop_assert_eq!(said.len() as u64 % u64::from(BLOCK_BYTES), 0, "whole blocks");
        let sent_us = pair.now_us;
        // The last block has begun when its time was over, and no later.
        let block_us = u64::from(BLOCK_BYTES).div_ceil(piece_bytes as u64) * DELAY_US;
        prop_assert!(sent_us >= upload && sent_us <= upload + 2 * block_us);
        prop_assert_eq!(pair.demand, Some(Demand::Bytes(UNLIMITED)));
        pair.carry_answer(piece_bytes as u64);
        let outcome = pair.outcome();
        prop_assert_eq!(outcome.upload.map(|sent| sent.bytes), (upload > 0).then_some(said.len() as u64));
        prop_assert_eq!(outcome.download.is_some(), download > 0);
        let received_us = pair.now_us - sent_us;
        prop_assert!(received_us >= download && received_us <= download + 2 * DELAY_US);
    }
}
