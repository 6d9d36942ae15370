//! Peers that mean harm.

use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::server::{Server, ServerEvent};
use linerate_wire::iperf3::{Code, Fault, Parameters, Results};
use linerate_wire::{Machine, Now};
use proptest::prelude::*;

use crate::pair::{SECOND, cookie, results};

fn message(text: &[u8]) -> Vec<u8> {
    [u32::try_from(text.len()).unwrap().to_be_bytes().as_slice(), text].concat()
}

fn asked() -> Vec<u8> {
    message(Parameters { block_bytes: 1000, ..Parameters::default() }.render().as_bytes())
}

fn last(server: &mut Server) -> Option<ServerEvent> {
    std::iter::from_fn(|| server.poll_event()).last()
}

#[test]
fn parameters_of_more_than_8_kib_are_refused_by_their_length() {
    for length in [8193_u32, 8 << 20, u32::MAX, 0] {
        let mut server = Server::new(0);
        server.handle_bytes(Now::at(0), &length.to_be_bytes());
        let refused = ServerEvent::Failed(Fault::Wrong(Code::RECEIVE_PARAMETERS));
        assert_eq!(last(&mut server), Some(refused), "{length}");
        let told: Vec<u8> = std::iter::from_fn(|| server.poll_message()).flatten().collect();
        assert_eq!(told, [9, 0xfe, 0, 0, 0, 114, 0, 0, 0, 0]);
    }
    let mut text = Parameters { block_bytes: 1000, ..Parameters::default() }.render();
    text.push_str(&" ".repeat(8192 - text.len()));
    let mut server = Server::new(0);
    server.handle_bytes(Now::at(0), &message(text.as_bytes()));
    assert!(matches!(last(&mut server), Some(ServerEvent::Asked(_))));
}

#[test]
fn results_have_limits_at_both_ends() {
    let mut server = Server::new(0);
    server.handle_bytes(Now::at(0), &asked());
    server.create_streams();
    server.start();
    server.handle_bytes(Now::at(0), &[4]);
    server.exchange_results(0);
    server.handle_bytes(Now::at(0), &((1_u32 << 20) + 1).to_be_bytes());
    let refused = ServerEvent::Failed(Fault::Wrong(Code::RECEIVE_RESULTS));
    assert_eq!(last(&mut server), Some(refused));

    let mut client = running_client();
    client.end_test(0);
    client.handle_bytes(Now::at(0), &[13]);
    client.handle_bytes(Now::at(0), &((8_u32 << 20) + 1).to_be_bytes());
    let refused = ClientEvent::Failed(Fault::Wrong(Code::RECEIVE_RESULTS));
    assert_eq!(std::iter::from_fn(|| client.poll_event()).last(), Some(refused));
}

/// A server that awaits the results of a test of so many streams.
fn awaiting_results(parallel: u32) -> Server {
    let parameters = Parameters { block_bytes: 1000, parallel, ..Parameters::default() };
    let mut server = Server::new(0);
    server.handle_bytes(Now::at(0), &message(parameters.render().as_bytes()));
    server.create_streams();
    server.start();
    server.handle_bytes(Now::at(0), &[4]);
    server.exchange_results(0);
    server
}

#[test]
fn results_have_room_for_the_streams_that_were_asked_for_and_no_more() {
    let mut server = awaiting_results(10_000);
    let whole = results(10_000, u64::MAX / 4000);
    assert!(whole.render().len() > 1 << 20);
    server.handle_bytes(Now::at(0), &message(whole.render().as_bytes()));
    assert_eq!(last(&mut server), Some(ServerEvent::Results(Box::new(whole))));
    let limit = (1 << 20) + (10_000 - 256) * 400;
    for (parallel, length) in [(10_000, limit + 1), (256, (1 << 20) + 1)] {
        let mut server = awaiting_results(parallel);
        server.handle_bytes(Now::at(0), &u32::to_be_bytes(length));
        let refused = ServerEvent::Failed(Fault::Wrong(Code::RECEIVE_RESULTS));
        assert_eq!(last(&mut server), Some(refused), "{parallel}");
    }
}

#[test]
fn a_server_is_awaited_from_when_the_streams_stand() {
    let mut client = Client::new(cookie(), 0);
    client.handle_bytes(Now::at(0), &[9, 10]);
    client.await_start(100 * SECOND);
    client.handle_timeout(Now::at(129 * SECOND));
    assert!(!client.is_over());
    client.handle_timeout(Now::at(130 * SECOND));
    assert!(client.is_over());
}

#[test]
fn results_of_8_mib_come_whole_in_pieces() {
    const MOST: usize = 8 << 20;
    let mut text = results(2, 8).render();
    text.push_str(&" ".repeat(MOST - text.len()));
    for piece in [1400, 64 << 10, MOST + 5] {
        let mut client = running_client();
        client.end_test(0);
        client.handle_bytes(Now::at(0), &[13]);
        client.send_results(&results(2, 7));
        let told = [message(text.as_bytes()), vec![14]].concat();
        told.chunks(piece).for_each(|piece| client.handle_bytes(Now::at(0), piece));
        let last = std::iter::from_fn(|| client.poll_event()).last();
        assert_eq!(last, Some(ClientEvent::Results(Box::new(results(2, 8)))), "{piece}");
        assert!(client.is_over());
    }
}

fn running_client() -> Client {
    let mut client = Client::new(cookie(), 0);
    client.handle_bytes(Now::at(0), &[9]);
    let asked = Parameters { parallel: 2, get_server_output: true, ..Parameters::default() };
    client.send_parameters(&asked);
    client.handle_bytes(Now::at(0), &[10, 1, 2]);
    client
}

#[test]
fn deep_and_wide_json_is_refused() {
    let deep = [vec![b'['; 4000], vec![b']'; 4000]].concat();
    assert_eq!(Parameters::parse(&deep), Err(Code::RECEIVE_PARAMETERS));
    assert_eq!(Results::parse(&deep, 1), Err(Code::RECEIVE_RESULTS));
    let stream = serde_json::to_string(&results(1, 1).render()).unwrap();
    assert_eq!(Results::parse(stream.as_bytes(), 1), Err(Code::RECEIVE_RESULTS));
    let wide = results(20_001, 1).render();
    assert!(Results::parse(wide.as_bytes(), 20_001).is_ok());
    assert_eq!(Results::parse(wide.as_bytes(), 20_000), Err(Code::RECEIVE_RESULTS));
}

#[test]
fn results_of_more_streams_than_the_test_has_are_refused_at_both_ends() {
    let mut server = awaiting_results(2);
    server.handle_bytes(Now::at(0), &message(results(3, 1).render().as_bytes()));
    let refused = ServerEvent::Failed(Fault::Wrong(Code::RECEIVE_RESULTS));
    assert_eq!(last(&mut server), Some(refused));

    let mut client = running_client();
    client.end_test(0);
    client.handle_bytes(Now::at(0), &[13]);
    client.handle_bytes(Now::at(0), &message(results(3, 1).render().as_bytes()));
    let refused = ClientEvent::Failed(Fault::Wrong(Code::RECEIVE_RESULTS));
    assert_eq!(std::iter::from_fn(|| client.poll_event()).last(), Some(refused));
}

#[test]
fn results_that_never_come_end_the_wait() {
    let mut server = Server::new(0);
    server.handle_bytes(Now::at(0), &asked());
    server.create_streams();
    server.start();
    server.handle_bytes(Now::at(0), &[4]);
    server.exchange_results(5 * SECOND);
    server.handle_bytes(Now::at(5 * SECOND), &[0, 0, 1]);
    let at_ns = server.next_time().unwrap();
    assert!(at_ns <= 20 * SECOND);
    server.handle_timeout(Now::at(at_ns - 1));
    assert!(!server.is_over());
    server.handle_timeout(Now::at(at_ns));
    assert!(matches!(last(&mut server), Some(ServerEvent::Failed(Fault::Silent { .. }))));

    let mut client = running_client();
    client.end_test(SECOND);
    let at_ns = client.next_time().unwrap();
    client.handle_timeout(Now::at(at_ns));
    let told = std::iter::from_fn(|| client.poll_event()).last();
    assert!(matches!(told, Some(ClientEvent::Failed(Fault::Silent { .. }))));
}

#[test]
fn messages_out_of_turn_are_refused() {
    for byte in [1, 2, 9, 10, 13, 14, 4, 16, 77] {
        let mut server = Server::new(0);
        server.handle_bytes(Now::at(0), &asked());
        server.create_streams();
        server.start();
        server.handle_bytes(Now::at(0), &[byte, byte]);
        let over = server.is_over();
        assert!(over || byte == 4 && last(&mut server) == Some(ServerEvent::Ended), "{byte}");
    }
    for byte in [2, 4, 10, 12, 13, 14, 16, 99] {
        let mut client = Client::new(cookie(), 0);
        client.handle_bytes(Now::at(0), &[byte]);
        let refused = ClientEvent::Failed(Fault::Wrong(Code::MESSAGE));
        assert_eq!(client.poll_event(), Some(refused), "{byte}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_a_server_once_at_most(
        bytes in prop::collection::vec(any::<u8>(), 0..300), valid: bool, piece in 1_usize..50,
    ) {
        let mut server = Server::new(0);
        let bytes = if valid { [asked(), bytes].concat() } else { bytes };
        let mut ends = 0;
        for piece in bytes.chunks(piece) {
            server.handle_bytes(Now::at(0), piece);
            while let Some(event) = server.poll_event() {
                match event {
                    ServerEvent::Asked(_) => { server.create_streams(); server.start(); }
                    ServerEvent::Ended => server.exchange_results(0),
                    ServerEvent::Results(own) => server.send_results(0, &own),
                    _ => ends += 1,
                }
            }
        }
        prop_assert!(ends <= 1);
        prop_assert_eq!(ends == 1, server.is_over());
    }

    #[test]
    fn any_bytes_end_a_client_once_at_most(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..17], 0..300),
        running: bool, piece in 1_usize..50,
    ) {
        let mut client = if running { running_client() } else { Client::new(cookie(), 0) };
        let mut ends = 0;
        for piece in bytes.chunks(piece) {
            client.handle_bytes(Now::at(0), piece);
            while let Some(event) = client.poll_event() {
                match event {
                    ClientEvent::Go => client.end_test(0),
                    ClientEvent::Results(_) | ClientEvent::ServerTerminated
                    | ClientEvent::Failed(_) => ends += 1,
                    _ => {}
                }
            }
        }
        prop_assert!(ends <= 1);
        prop_assert_eq!(ends == 1, client.is_over());
    }
}
