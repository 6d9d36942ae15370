//! A client of the framing that is not ours asks, `linerate secnetperf` answers.

use std::io::Write;

use crate::fixture::Server;
use crate::framed::{ABORT, FIN, Framed, OPEN};
use crate::request::{ENDLESS, request};

/// How a stream ended.
#[derive(Debug, PartialEq)]
enum End {
    /// With so many bytes.
    Finished(u64),
    Aborted,
}

/// Reads one stream to its end; no other may say anything.
fn end_of(framed: &mut Framed, stream: u32) -> End {
    let (mut bytes, mut first) = (0, true);
    loop {
        let piece = framed.receive().unwrap().expect("the connection goes on");
        assert_eq!(piece.stream, stream);
        bytes += piece.data.len() as u64;
        if piece.abort {
            return End::Aborted;
        }
        // The original opens an answer only where it has no data.
        let is_empty = first && piece.fin && piece.data.is_empty();
        assert_eq!(piece.open, is_empty, "{bytes} bytes");
        if piece.fin {
            return End::Finished(bytes);
        }
        first = false;
    }
}

fn exchange(framed: &mut Framed, stream: u32, request: &[u8]) -> End {
    framed.send(stream, OPEN | FIN, request).unwrap();
    end_of(framed, stream)
}

#[test]
fn requests_of_every_size_are_answered() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    for (stream, (wanted, request_bytes)) in
        [(0, 8), (1, 8), (16_360, 16_360), (16_361, 16_361), (0, 1_000_000), (1_000_000, 8)]
            .into_iter()
            .enumerate()
    {
        let end = exchange(&mut framed, stream as u32 + 1, &request(wanted, request_bytes));
        assert_eq!(end, End::Finished(wanted), "for {request_bytes} bytes");
    }
    // The original's counter begins with this one.
    framed.send(0, OPEN | FIN, &request(10, 8)).unwrap();
    let piece = framed.receive().unwrap().unwrap();
    assert_eq!((piece.data.len(), piece.fin), (10, true));
}

#[test]
fn every_cipher_suite_is_spoken() {
    for suite in ["1", "2", "4"] {
        let server = Server::start(&format!("-cipher:{suite}"));
        let mut framed = Framed::connect(server.port);
        let end = exchange(&mut framed, 1, &request(50_000, 50_000));
        assert_eq!(end, End::Finished(50_000), "{suite}");
    }
}

#[test]
fn streams_that_are_mixed_are_answered_each() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    for stream in 1..=20 {
        framed.send(stream, OPEN, &request(u64::from(stream) * 5_000, 3_000)).unwrap();
    }
    for stream in 1..=20 {
        framed.send(stream, FIN, &[1; 100]).unwrap();
    }
    let (mut received, mut ended) = ([0_u64; 21], 0);
    while ended < 20 {
        let piece = framed.receive().unwrap().expect("the connection goes on");
        received[piece.stream as usize] += piece.data.len() as u64;
        ended += u32::from(piece.fin);
    }
    let expected: [u64; 21] = std::array::from_fn(|stream| stream as u64 * 5_000);
    assert_eq!(received, expected);
}

#[test]
fn frames_may_come_byte_by_byte() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    let first = framed.stream_frame(1, OPEN, &request(300, 20));
    let last = framed.stream_frame(1, FIN, &[]);
    for byte in [first, last].concat() {
        framed.socket.write_all(&[byte]).unwrap();
    }
    assert_eq!(end_of(&mut framed, 1), End::Finished(300));
}

#[test]
fn a_request_without_a_whole_header_is_aborted() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    for length in 0..8 {
        let end = exchange(&mut framed, length as u32 + 1, &[0; 8][..length]);
        assert_eq!(end, End::Aborted, "{length} bytes");
    }
    assert_eq!(exchange(&mut framed, 9, &request(5, 8)), End::Finished(5));
}

#[test]
fn an_endless_answer_goes_on_until_it_is_aborted() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    framed.send(1, OPEN | FIN, &request(ENDLESS, 8)).unwrap();
    let mut bytes = 0;
    while bytes < 2_000_000 {
        let piece = framed.receive().unwrap().expect("the connection goes on");
        assert!(!piece.fin && !piece.open && !piece.abort);
        bytes += piece.data.len();
    }
    framed.send(1, ABORT, &[]).unwrap();
    // What was on its way, and the word that nothing more will come.
    assert_eq!(end_of(&mut framed, 1), End::Aborted);
    assert_eq!(exchange(&mut framed, 2, &request(5, 8)), End::Finished(5));
}

#[test]
fn a_frame_with_a_wrong_seal_ends_its_connection_alone() {
    let server = Server::start("");
    let mut framed = Framed::connect(server.port);
    let mut other = Framed::connect(server.port);
    let mut frame = framed.stream_frame(1, OPEN | FIN, &request(100, 8));
    let last = frame.len() - 1;
    frame[last] ^= 1;
    framed.socket.write_all(&frame).unwrap();
    let end = framed.receive();
    assert!(!matches!(end, Ok(Some(_))), "{end:?}");
    assert_eq!(exchange(&mut other, 1, &request(100, 8)), End::Finished(100));
}
