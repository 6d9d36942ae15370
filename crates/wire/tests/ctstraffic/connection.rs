//! Both ends together: every pattern, every cut, and what each end sends and counts.

use linerate_wire::ctstraffic::connection::{Close, Connection, Outgoing, Receivable};
use linerate_wire::ctstraffic::pace::PaceSettings;
use linerate_wire::ctstraffic::transfer::{Pattern, Shutdown, TransferPlan, Turn};
use linerate_wire::ctstraffic::{ConnectionId, Role, Span};
use proptest::prelude::*;

use crate::pair::{Pair, id, plan};

const PATTERNS: [Pattern; 4] = [Pattern::Push, Pattern::Pull, Pattern::PushPull, Pattern::Duplex];

fn amounts(plan: TransferPlan) -> (u64, u64) {
    let Turn { send_bytes, receive_bytes } = plan.amounts();
    (send_bytes, receive_bytes)
}

#[test]
fn amounts_are_those_of_the_original() {
    let mebibyte = 1 << 20;
    let alternating = TransferPlan {
        push_bytes: mebibyte,
        pull_bytes: mebibyte,
        ..plan(Pattern::PushPull, 3_000_001, 65_536)
    };
    assert_eq!(amounts(alternating), (1_951_425, 1_048_576));
    assert_eq!(amounts(plan(Pattern::PushPull, 10_001, 700)), (3000, 7001));
    assert_eq!(amounts(plan(Pattern::Duplex, 3_000_001, 700)), (1_500_001, 1_500_001));
    assert_eq!(amounts(plan(Pattern::Push, 5, 700)), (5, 0));
    assert_eq!(amounts(plan(Pattern::Pull, 5, 700)), (0, 5));
    let server = TransferPlan { role: Role::Server, ..plan(Pattern::Push, 5, 700) };
    assert_eq!(amounts(server), (0, 5));
    assert_eq!(amounts(plan(Pattern::Duplex, u64::MAX, 1)).0, 1 << 63);
}

#[test]
fn requests_have_the_sizes_of_the_original() {
    let mut pair =
        Pair::new(plan(Pattern::PushPull, 10_001, 700), plan(Pattern::PushPull, 10_001, 700));
    pair.run(u64::MAX);
    assert_eq!(pair.client.sends, [700, 300, 700, 300, 700, 300]);
    assert_eq!(pair.server.sends, [700, 700, 700, 700, 200, 700, 700, 700, 700, 200, 700, 301]);
}

#[test]
fn every_pattern_succeeds_whatever_the_cuts() {
    for pattern in PATTERNS {
        for shutdown in [Shutdown::Graceful, Shutdown::Rude] {
            for most in [1, 2, 3, 36, 37, 38, 699, u64::MAX] {
                let client = TransferPlan { shutdown, ..plan(pattern, 10_001, 700) };
                let mut pair = Pair::new(client, plan(pattern, 10_001, 650));
                pair.run(most);
                let is_rude = shutdown == Shutdown::Rude;
                let closed = if is_rude { Close::Reset } else { Close::Orderly };
                assert_eq!(pair.client.closed, Some(closed), "{pattern:?} {shutdown:?} {most}");
                assert_eq!(pair.server.closed, Some(Close::Orderly));
                assert_eq!(
                    (pair.client.machine.fault(), pair.server.machine.fault()),
                    (None, None)
                );
                let sent = pair.client.machine.transferred();
                assert_eq!(sent, client.amounts());
                let server = pair.server.machine.transferred();
                assert_eq!(server.receive_bytes, sent.send_bytes);
                assert_eq!(pair.client.machine.id(), id());
                // On the wire a server has the id and DONE beside its data.
                assert_eq!(pair.down.log.len() as u64, 37 + server.send_bytes + 4);
                assert_eq!(pair.up.log.len() as u64, sent.send_bytes);
            }
        }
    }
}

#[test]
fn the_wire_begins_with_the_id_and_ends_with_done() {
    let mut pair = Pair::new(plan(Pattern::Pull, 100, 64), plan(Pattern::Pull, 100, 64));
    pair.run(u64::MAX);
    assert_eq!(pair.down.log[..37], id().wire()[..]);
    assert_eq!(pair.down.log[37..41], [0, 0, 1, 0]);
    assert_eq!(pair.down.log[137..], *b"DONE");
    assert!(pair.up.log.is_empty());
}

#[test]
fn a_client_sends_nothing_before_it_has_its_id() {
    let mut client = Connection::client(plan(Pattern::Push, 10, 10), 0);
    assert_eq!(client.poll_send(0, 0), None);
    assert_eq!(client.receivable(0), Some(Receivable::Control(37)));
    assert_eq!(client.id(), ConnectionId::NONE);
    client.handle_received(0, &id().wire()[..36], None);
    assert_eq!(
        (client.poll_send(0, 0), client.receivable(0)),
        (None, Some(Receivable::Control(1)))
    );
    client.handle_received(0, &[0], None);
    assert_eq!(client.poll_send(5, 0), Some(Outgoing::Data { offset: 0, bytes: 10, due_ns: 5 }));
    assert_eq!(client.receivable(0), None, "a client that only sends reads nothing meanwhile");
}

#[test]
fn sends_are_outstanding_up_to_the_backlog() {
    let begin = |outstanding_sends, buffer_bytes| {
        let plan = TransferPlan { outstanding_sends, buffer_bytes, ..plan(Pattern::Push, 1000, 1) };
        let mut client = Connection::client(plan, 0);
        client.handle_received(0, id().wire(), None);
        client
    };
    let take = |client: &mut Connection, word| {
        let mut sizes = Vec::new();
        while let Some(Outgoing::Data { bytes, .. }) = client.poll_send(0, word) {
            sizes.push(bytes);
        }
        sizes
    };
    let mut three = begin(3, Span::of(300));
    assert_eq!(take(&mut three, 0), [300, 300, 300]);
    three.handle_sent(0, 299);
    assert_eq!(take(&mut three, 0), [100], "less than three buffers are outstanding");
    let mut small = begin(1, Span { low: 10, high: 100 });
    assert_eq!(take(&mut small, 0), [10; 10], "ten of the least make one of the greatest");
    let mut ideal = begin(0, Span::of(100));
    assert_eq!(take(&mut ideal, 0), [100]);
    ideal.set_backlog(250);
    assert_eq!(take(&mut ideal, 0), [100, 100], "not a multiple of the buffer");
    ideal.set_backlog(1);
    ideal.handle_sent(0, 299);
    assert_eq!(take(&mut ideal, 0), [0; 0]);
    ideal.handle_sent(0, 1);
    assert_eq!(take(&mut ideal, 0), [100], "less than a buffer still lets one be outstanding");
}

#[test]
fn duplex_has_one_end_waiting_for_the_other_without_a_busy_loop() {
    let mut client = Connection::client(plan(Pattern::Duplex, 200, 100), 0);
    client.handle_received(0, id().wire(), None);
    assert!(client.poll_send(0, 0).is_some());
    assert_eq!(client.poll_send(0, 0), None);
    assert_eq!(client.receivable(0), Some(Receivable::Data { offset: 0, bytes: 100 }));
    client.handle_data(0, 60, None);
    assert_eq!(client.receivable(0), Some(Receivable::Data { offset: 60, bytes: 40 }));
    client.handle_data(0, 40, None);
    assert_eq!(client.receivable(0), None, "DONE isn't read as data");
    client.handle_sent(7, 100);
    assert_eq!(client.receivable(0), Some(Receivable::Control(4)), "the last send ends the data");
    let mut server = Connection::server(plan(Pattern::Duplex, 200, 100), id(), 0);
    assert!(matches!(server.poll_send(0, 0), Some(Outgoing::Id(_))));
    server.handle_sent(0, 37);
    assert!(server.poll_send(0, 0).is_some());
    server.handle_sent(0, 100);
    assert_eq!(server.poll_send(0, 0), None);
    server.handle_data(0, 100, None);
    assert_eq!(server.poll_send(0, 0), Some(Outgoing::Done(*b"DONE")), "the last receive does");
    assert_eq!(server.poll_send(0, 0), None, "DONE is given out once");
    server.handle_sent(0, 2);
    assert_eq!(server.receivable(0), None, "half of DONE");
    server.handle_sent(0, 2);
    assert_eq!(server.receivable(0), Some(Receivable::End(4)));
}

#[test]
fn time_ends_with_the_last_data() {
    let mut client = Connection::client(plan(Pattern::Pull, 10, 10), 100);
    client.handle_received(150, id().wire(), None);
    client.handle_data(400, 10, None);
    client.handle_received(900, b"DONE", None);
    client.handle_end(1000);
    assert_eq!((client.elapsed_ns(5000), client.is_over()), (300, true));
    let running = Connection::client(plan(Pattern::Pull, 10, 10), 100);
    assert_eq!(running.elapsed_ns(350), 250);
}

#[test]
fn paced_sends_carry_their_time() {
    let pace = PaceSettings::Burst { count: 2, delay_ms: 3 };
    let mut client = Connection::client(TransferPlan { pace, ..plan(Pattern::Push, 40, 10) }, 0);
    client.handle_received(0, id().wire(), None);
    let mut due = Vec::new();
    while let Some(Outgoing::Data { due_ns, bytes, .. }) = client.poll_send(0, 0) {
        due.push(due_ns);
        client.handle_sent(0, bytes);
    }
    assert_eq!(due, [0, 3_000_000, 0, 3_000_000]);
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop::sample::select(&PATTERNS[..])
}

proptest! {
    #[test]
    fn turns_add_up(
        pattern in patterns(),
        total_bytes in 1_u64..20_000,
        push_bytes in 0_u32..700,
        pull_bytes in 0_u32..700,
        is_server: bool,
    ) {
        let role = if is_server { Role::Server } else { Role::Client };
        let plan = TransferPlan { role, push_bytes, pull_bytes, ..plan(pattern, total_bytes, 9) };
        let sum = plan.turns().fold(Turn::default(), |sum, turn| Turn {
            send_bytes: sum.send_bytes + turn.send_bytes,
            receive_bytes: sum.receive_bytes + turn.receive_bytes,
        });
        prop_assert_eq!(sum, plan.amounts());
        prop_assert_eq!(sum.send_bytes + sum.receive_bytes, plan.all_bytes());
    }

    #[test]
    fn ends_with_any_buffers_transfer_all(
        pattern in patterns(),
        total_bytes in 1_u64..5000,
        (push_bytes, pull_bytes) in (1_u32..600, 1_u32..600),
        (low, high) in (1_u64..300, 1_u64..300),
        outstanding_sends in 0_u32..4,
        most in prop::sample::select(vec![1_u64, 7, 50, 1000]),
        verify: bool,
    ) {
        let plan = TransferPlan {
            push_bytes,
            pull_bytes,
            buffer_bytes: Span { low: low.min(high), high: low.max(high) },
            outstanding_sends,
            ..plan(pattern, total_bytes, 1)
        };
        let mut pair = Pair::new(plan, plan);
        if !verify {
            pair = pair.without_verification();
        }
        pair.run(most);
        prop_assert_eq!(pair.client.closed, Some(Close::Orderly));
        prop_assert_eq!(pair.server.closed, Some(Close::Orderly));
        prop_assert_eq!(pair.client.machine.transferred(), plan.amounts());
    }
}

#[test]
fn a_connection_takes_little_memory() {
    assert!(size_of::<Connection>() <= 512, "{} bytes", size_of::<Connection>());
}
