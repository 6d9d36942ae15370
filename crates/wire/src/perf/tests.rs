use super::answer::{Demand, Request, Start};
use super::{UNLIMITED, render_block};

/// What a server makes of a request that comes in these pieces, the last one with the end.
fn demand_of(pieces: &[&[u8]]) -> Option<Demand> {
    let mut request = Request::default();
    let mut demand = None;
    for (place, piece) in pieces.iter().enumerate() {
        let last = place + 1 == pieces.len();
        let said = request.handle_received(Start::of(piece), piece.len(), last);
        assert_eq!(said.is_some(), last, "a request is answered at its end");
        demand = said;
    }
    demand
}

#[test]
fn a_header_cut_at_every_byte_says_the_same() {
    let request = render_block(0x0102_0304_0506_0708, 40);
    for first in 0..=request.len() {
        for second in first..=request.len() {
            let pieces = [&request[..first], &request[first..second], &request[second..]];
            assert_eq!(demand_of(&pieces), Some(Demand::Bytes(0x0102_0304_0506_0708)));
        }
    }
}

#[test]
fn a_request_shorter_than_its_header_is_aborted() {
    let header = [0_u8; 8];
    for length in 0..8 {
        assert_eq!(demand_of(&[&header[..length]]), Some(Demand::Abort), "{length} bytes");
    }
    assert_eq!(demand_of(&[&header]), Some(Demand::Bytes(0)));
}

#[test]
fn a_request_without_its_end_is_not_answered() {
    let mut request = Request::default();
    let bytes = render_block(7, 1000);
    assert_eq!(request.handle_received(Start::of(&bytes), bytes.len(), false), None);
    assert_eq!(request.wanted_bytes(), Some(7));
    assert_eq!(request.received_bytes(), 1000);
}

#[test]
fn an_ended_request_is_answered_once() {
    let mut request = Request::default();
    let start = Start::of(&UNLIMITED.to_be_bytes());
    assert_eq!(request.handle_received(start, 8, true), Some(Demand::Bytes(UNLIMITED)));
    assert_eq!(request.handle_received(start, 8, true), None);
}

#[test]
fn a_block_is_the_originals() {
    let block = render_block(1000, 300);
    assert_eq!(block[..10], [0, 0, 0, 0, 0, 0, 3, 232, 8, 9]);
    assert_eq!(block[255..258], [255, 0, 1]);
    assert_eq!(render_block(UNLIMITED, 3), [255; 3]);
}
