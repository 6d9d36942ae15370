//! Client against server.

use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::server::{Server, ServerEvent};
use linerate_wire::iperf3::{Code, Fault, Parameters, State};
use linerate_wire::{Machine, Now};

use crate::pair::{Link, Outcome, SECOND, WHOLE, cookie, results, talk};

fn parameters() -> Parameters {
    let block_bytes = 128 << 10;
    let get_server_output = true;
    Parameters { time_s: 2, parallel: 2, block_bytes, get_server_output, ..Parameters::default() }
}

fn assert_complete(outcome: &Outcome, parameters: &Parameters) {
    let total = parameters.total_streams();
    let expected = ClientEvent::Results(Box::new(results(total, 8)));
    assert_eq!(outcome.client.last(), Some(&expected));
    let theirs = ServerEvent::Results(Box::new(results(total, 7)));
    assert!(outcome.server.contains(&theirs), "{:?}", outcome.server);
    assert_eq!(outcome.server.last(), Some(&ServerEvent::Done));
}

#[test]
fn both_ends_hear_each_other_out() {
    let parameters = parameters();
    let outcome = talk(&parameters, WHOLE);
    assert_complete(&outcome, &parameters);
    let asked = ServerEvent::Asked(Box::new(parameters));
    assert_eq!(outcome.server.first(), Some(&asked));
}

#[test]
fn pieces_of_any_size_give_the_same() {
    let parameters = Parameters { bidirectional: true, ..parameters() };
    for piece_bytes in [1, 2, 3, 5, 7, 100] {
        let outcome = talk(&parameters, Link { piece_bytes, ..WHOLE });
        assert_complete(&outcome, &parameters);
    }
}

#[test]
fn a_connection_that_ends_after_any_byte_ends_both() {
    let parameters = parameters();
    let whole = talk(&parameters, WHOLE);
    for way in 0..2 {
        for at in 0..whole.bytes[way] {
            for silent in [false, true] {
                let mut link = Link { silent, ..WHOLE };
                link.cut[way] = at;
                let outcome = talk(&parameters, link);
                let results = matches!(outcome.client.last(), Some(ClientEvent::Results(_)));
                let failed = matches!(outcome.client.last(), Some(ClientEvent::Failed(_)));
                // Only the last words may be missing from a whole result.
                assert!(failed || results, "{way} {at}: {:?}", outcome.client);
                assert!(failed || at + 2 >= whole.bytes[way] || way == 0, "{way} {at}");
                assert!(outcome.elapsed_ns < 120 * SECOND, "{way} {at}: {}", outcome.elapsed_ns);
            }
        }
    }
}

#[test]
fn a_client_understands_every_refusal() {
    let refused = |bytes: &[u8]| {
        let mut client = Client::new(cookie(), 0);
        for byte in bytes {
            client.handle_bytes(Now::at(0), &[*byte]);
        }
        client.handle_end(Now::at(0));
        std::iter::from_fn(|| client.poll_event()).last().unwrap()
    };
    let failed = |fault| ClientEvent::Failed(fault);
    assert_eq!(refused(&[0xff]), failed(Fault::Wrong(Code::ACCESS_DENIED)));
    assert_eq!(refused(&[11]), ClientEvent::ServerTerminated);
    assert_eq!(
        refused(&[9, 0xfe, 0, 0, 0, 37, 0, 0, 0, 5]),
        failed(Fault::Peer(Code::MAX_DURATION, 5))
    );
    // The second number of an error is missing after a failed authorisation of 3.12 to 3.20.
    assert_eq!(refused(&[9, 0xfe, 0, 0, 0, 142]), failed(Fault::Peer(Code::AUTHORIZATION, 0)));
    assert_eq!(refused(&[9, 0xfe, 0, 0]), failed(Fault::Wrong(Code::CONTROL_CLOSED)));
    assert_eq!(refused(&[9]), failed(Fault::Wrong(Code::CONTROL_CLOSED)));
}

#[test]
fn a_server_says_why_it_gives_up() {
    let mut server = Server::new(0);
    server.refuse(Code::TOTAL_RATE, 0);
    server.refuse(Code::AUTHORIZATION, 0);
    assert_eq!(server.poll_message(), Some(vec![State::ParamExchange.byte()]));
    assert_eq!(server.poll_message(), Some(vec![0xfe, 0, 0, 0, 27, 0, 0, 0, 0]));
    assert_eq!(server.poll_message(), None);
    assert!(server.is_over());
}

/// A server that has come so far: to the parameters, the streams, the test, or the results.
fn server_in(stage: u8) -> Server {
    let mut server = Server::new(0);
    if stage > 0 {
        let text = parameters().render();
        let mut message = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
        message.extend_from_slice(text.as_bytes());
        server.handle_bytes(Now::at(0), &message);
    }
    if stage > 1 {
        server.create_streams();
    }
    if stage > 2 {
        server.start();
    }
    if stage > 3 {
        server.handle_bytes(Now::at(0), &[4]);
        server.exchange_results(0);
    }
    server
}

#[test]
fn an_interrupted_client_is_heard_in_every_stage() {
    for stage in 0..4 {
        let mut server = server_in(stage);
        server.handle_bytes(Now::at(0), &[12]);
        let last = std::iter::from_fn(|| server.poll_event()).last();
        match stage {
            // The byte is the beginning of a length here.
            0 => assert_eq!(last, None),
            _ => assert_eq!(last, Some(ServerEvent::ClientTerminated)),
        }
    }
}

#[test]
fn a_client_that_gives_up_in_order_is_heard_in_every_stage() {
    for stage in 0..5 {
        let mut server = server_in(stage);
        while server.poll_message().is_some() {}
        server.handle_bytes(Now::at(0), &[State::IperfDone.byte()]);
        // Where a length is awaited, the end tells that it was none.
        server.handle_end(Now::at(0));
        let last = std::iter::from_fn(|| server.poll_event()).last();
        assert_eq!((last, server.poll_message()), (Some(ServerEvent::Left), None), "{stage}");
    }
    let mut server = server_in(4);
    server.handle_bytes(Now::at(0), &[State::IperfDone.byte(), 0]);
    server.handle_end(Now::at(0));
    let last = std::iter::from_fn(|| server.poll_event()).last();
    assert_eq!(last, Some(ServerEvent::Failed(Fault::Wrong(Code::CONTROL_CLOSED))));
}

#[test]
fn a_client_that_gives_up_says_so_where_the_server_does_not_know() {
    let said = |words: &[u8], leave: fn(&mut Client)| {
        let mut client = Client::new(cookie(), 0);
        while client.poll_message().is_some() {}
        client.handle_bytes(Now::at(0), words);
        leave(&mut client);
        assert!(client.is_over());
        std::iter::from_fn(|| client.poll_message()).collect::<Vec<_>>().concat()
    };
    let done = [State::IperfDone.byte()];
    for words in [[].as_slice(), &[9], &[9, 10], &[9, 10, 1], &[9, 10, 1, 2]] {
        assert_eq!(said(words, Client::give_up), done, "{words:?}");
    }
    assert_eq!(said(&[9], |client| client.handle_timeout(Now::at(u64::MAX))), done);
    assert_eq!(said(&[9, 77], Client::give_up), done);
    for words in [[9, 11].as_slice(), &[0xff], &[9, 0xfe, 0, 0, 0, 37, 0, 0, 0, 5]] {
        assert!(said(words, Client::give_up).is_empty(), "{words:?}");
    }
}
