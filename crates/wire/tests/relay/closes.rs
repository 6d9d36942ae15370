//! What is handed over before a connection is closed, and when waiting for that ends.

use linerate_wire::relay::{Action, Close, CloseKind, Code, End, Ended, Limits, Relay};

use super::world::{World, at};

const LIMITS: Limits = Limits { buffer_bytes: 10_000, piece_bytes: 16 << 10, streams: 8 };

fn close() -> Close {
    Close { kind: CloseKind::Application, code: 77, reason: b"done".to_vec() }
}

#[test]
fn what_was_sent_before_a_close_is_handed_over_first() {
    let mut world = World::new(LIMITS, 8);
    let stream = world.open(End::Client, false).unwrap();
    world.send(End::Client, stream, &[7; 2_900]);
    while world.work(1) {}
    world.send(End::Client, stream, &[8; 2_900]);
    world.close(End::Client, 0, &close());
    while world.work(1) {}
    assert_eq!(world.ends[at(End::Target)].closes, [], "the target has not read what came before");
    world.run_out();
    let came = &world.ends[at(End::Target)].to_peer[&stream];
    assert_eq!((came.read.len(), came.is_finished), (5_800, false));
    assert_eq!(world.ends[at(End::Target)].closes, [close()]);
    assert!(world.relay.is_over());
}

#[test]
fn a_peer_that_reads_nothing_is_closed_after_a_while() {
    let mut world = World::new(LIMITS, 8);
    let stream = world.open(End::Client, true).unwrap();
    for _ in 0..4 {
        world.send(End::Client, stream, &[7; 2_900]);
        while world.work(1) {}
    }
    world.close(End::Client, 1_000, &close());
    while world.work(1) {}
    assert_eq!(world.ends[at(End::Target)].closes, []);
    let until_ns = world.relay.next_time().unwrap();
    world.relay.handle_timeout(until_ns - 1);
    assert_eq!(world.relay.poll_action(), None);
    world.relay.handle_timeout(until_ns);
    while world.work(1) {}
    assert_eq!(world.ends[at(End::Target)].closes, [close()]);
    assert!(world.relay.is_over());
}

#[test]
fn a_client_hears_of_a_target_that_is_down_when_its_own_handshake_is_done() {
    let mut relay = Relay::new(LIMITS);
    relay.handle_ended(End::Target, 0, &Ended::Refused("nobody listens there".to_owned()));
    assert_eq!(relay.poll_action(), None);
    relay.handle_established(End::Client);
    let refusal = Close::transport(Code::ConnectionRefused, "nobody listens there");
    let actions: Vec<Action> = std::iter::from_fn(|| relay.poll_action()).collect();
    assert_eq!(actions, [Action::Close(End::Client, refusal)]);
    assert!(relay.is_over());
}

#[test]
fn a_client_that_leaves_before_the_target_answers_ends_both() {
    let mut relay = Relay::new(LIMITS);
    relay.handle_established(End::Client);
    relay.handle_streams_opened(End::Client, false);
    relay.handle_ended(End::Client, 0, &Ended::Closed(close()));
    let closed = std::iter::from_fn(|| relay.poll_action())
        .any(|action| action == Action::Close(End::Target, close()));
    assert!(closed && relay.is_over());
}

#[test]
fn a_proxy_that_ends_closes_both() {
    let mut world = World::new(LIMITS, 8);
    world.open(End::Client, false);
    let close = Close::transport(Code::NoError, "the proxy ends");
    world.relay.close(&close);
    while world.work(1) {}
    assert!(world.ends.iter().all(|end| end.closes == [close.clone()]));
    assert!(world.relay.is_over());
}
