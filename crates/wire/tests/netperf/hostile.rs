//! Peers that say anything.

use linerate_wire::netperf::client::{Client, ClientEvent};
use linerate_wire::netperf::message::{Form, Message, code};
use linerate_wire::netperf::server::{Server, ServerEvent};
use linerate_wire::netperf::test::{Part, Request, Transport};
use linerate_wire::{Machine, Now};
use proptest::prelude::*;

use crate::captured::request_of;

/// What a server answers a captured request with when one word of it is another one.
fn answer_to(name: &str, offset: usize, word: u32) -> Result<(), i32> {
    let mut bytes = request_of(name);
    bytes.get_mut(offset..offset + 4).unwrap().copy_from_slice(&word.to_be_bytes());
    let mut server = Server::new(None, 0);
    server.handle_bytes(Now::at(1), &bytes);
    match (server.poll_event(), server.poll_message()) {
        (Some(ServerEvent::Test { .. }), None) => Ok(()),
        (None, Some(answer)) => {
            let error = answer.get(4..8).and_then(|word| word.try_into().ok());
            Err(i32::from_be_bytes(error.unwrap()))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_beyond_their_limits_are_refused() {
    for (name, offset, word, error) in [
        // Sizes of requests and responses.
        ("tcp_rr", 28, 0, 22),
        ("tcp_rr", 28, u32::MAX, 22),
        ("tcp_rr", 52, 0x8000_0000, 22),
        ("udp_rr", 52, 65_508, 90),
        // Sizes of calls and buffers.
        ("tcp_maerts", 12, 0xffff_fffe, 22),
        ("tcp_stream", 8, 0x8000_0000, 22),
        // Ports.
        ("tcp_stream", 88, 65_536, 22),
        ("udp_rr", 108, 70_000, 22),
        // Families, socket types, protocols, directions.
        ("tcp_stream", 92, 7, 97),
        ("tcp_stream", 96, 3, 93),
        ("tcp_stream", 100, 132, 93),
        ("tcp_stream", 104, 1, 95),
        ("tcp_stream", 104, 0, 95),
        ("udp_stream", 56, 4, 95),
    ] {
        assert_eq!(answer_to(name, offset, word), Err(error), "{name} at {offset}: {word}");
    }
    assert_eq!(answer_to("tcp_rr", 28, i32::MAX as u32), Ok(()));
    // A number of bytes or of transactions is a length, over UDP too.
    for (name, number) in [("udp_stream", -5), ("udp_rr", i32::MIN)] {
        assert_eq!(answer_to(name, 64, i32::cast_unsigned(number)), Ok(()), "{name}");
    }
}

#[test]
fn a_client_takes_no_port_that_is_none() {
    for port in [0, 65_536, u32::MAX] {
        let mut client = Client::new(Form::Long, None);
        client.request(0, &Request::new(Part::Receive, Transport::Tcp), None).unwrap();
        let mut answer = Message::new(Form::Long, code::OMNI + 1, 0).into_bytes();
        answer.get_mut(52..56).unwrap().copy_from_slice(&port.to_be_bytes());
        client.handle_bytes(Now::at(1), &answer);
        assert!(matches!(client.poll_event(), Some(ClientEvent::Failed(_))), "{port}");
    }
}

#[test]
fn a_server_that_speaks_unasked_is_none() {
    let mut client = Client::new(Form::Long, None);
    client.handle_bytes(Now::at(1), b"SSH-2.0-OpenSSH");
    assert!(matches!(client.poll_event(), Some(ClientEvent::Failed(_))));
}

#[test]
fn a_client_that_never_waits_for_answers_is_turned_away() {
    let mut server = Server::new(None, 0);
    let request = request_of("tcp_rr");
    let mut failed = false;
    for _ in 0..20 {
        server.handle_bytes(Now::at(1), &request);
        failed |= std::iter::from_fn(|| server.poll_event())
            .any(|event| matches!(event, ServerEvent::Failed(_)));
    }
    assert!(failed);
}

proptest! {
    #[test]
    fn no_bytes_upset_a_server(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..8),
        codes in prop::collection::vec(prop::sample::select(vec![1, 5, 6, 10, 16, 34, 97, 300]), 8),
    ) {
        let mut server = Server::new(Some("x"), 0);
        let mut open = Server::new(None, 0);
        for (piece, code) in pieces.iter().zip(codes) {
            let mut bytes = piece.clone();
            bytes.resize(656, 0);
            let code: i32 = code;
            bytes.splice(..4, code.to_be_bytes());
            server.handle_bytes(Now::at(1), piece);
            open.handle_bytes(Now::at(1), &bytes);
            while let Some(event) = open.poll_event() {
                if let ServerEvent::Test { .. } | ServerEvent::Calibration = event {
                    open.refuse(1, 1);
                }
            }
        }
        let tested = matches!(server.poll_event(), Some(ServerEvent::Test { .. }));
        prop_assert!(!tested, "a test without the passphrase");
    }

    #[test]
    fn no_bytes_upset_a_client(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..8),
    ) {
        let mut client = Client::new(Form::Long, None);
        client.request(0, &Request::new(Part::Answer, Transport::Udp), None).unwrap();
        let mut ended = 0;
        for piece in pieces {
            client.handle_bytes(Now::at(1), &piece);
            while let Some(event) = client.poll_event() {
                ended += u32::from(matches!(event, ClientEvent::Failed(_)));
            }
        }
        prop_assert!(ended <= 1);
    }
}
