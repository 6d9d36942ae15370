//! What is taken for granted of quinn-proto and not promised by it. A new version for which one of these tests
//! fails takes a look at the code that is named.

use std::time::Duration;

use bytes::Bytes;
use linerate_measure::Pacing;
use quinn_proto::{Dir, Event as ProtoEvent, Side, StreamEvent, StreamId};

use super::super::connection::{Connection, Held, StreamRead};
use super::super::{Extras, Settings};
use super::world::{CLIENT, Path, SERVER, World};

fn standing(settings: &Settings, extras: Extras) -> World {
    let extras = (extras.clone(), extras);
    let mut world = World::new(settings, extras, Path::default(), false, 1);
    world.establish();
    world.pass(Duration::from_secs(1));
    world
}

fn end(world: &mut World, end: usize) -> &mut Connection {
    world.connection(end).expect("the connection stands")
}

/// A stream of the client's that so much was sent on as was taken; how much that was.
fn sending(world: &mut World, bytes: usize) -> (StreamId, usize) {
    let client = end(world, CLIENT);
    let id = client.open_stream(Dir::Bi).expect("there is room for a stream");
    (id, client.send(id, &vec![7; bytes]).expect("there is room to send"))
}

/// Reads all that has come to an end of a stream; how much that was.
fn read_all(world: &mut World, at: usize, id: StreamId) -> usize {
    let mut bytes = 0;
    while let StreamRead::Bytes(more) = end(world, at).read(id, usize::MAX, &mut |_| {}) {
        bytes += more;
    }
    bytes
}

fn is_told_writable(world: &World, id: StreamId) -> bool {
    let writable = |event: &ProtoEvent| matches!(event, ProtoEvent::Stream(StreamEvent::Writable { id: of }) if *of == id);
    world.nodes[CLIENT].events.iter().any(writable)
}

#[test]
fn packets_are_spaced_out_unless_the_window_is_boundless() {
    let of =
        |pacing| Settings { pacing, initial_window_bytes: Some(200_000), ..Settings::default() };
    for (pacing, least, most, held) in [
        (Pacing::On, 12_000, 100_000, Held::Pacing),
        (Pacing::Off, 190_000, 210_000, Held::Congestion),
    ] {
        let mut world = standing(&of(pacing), Extras::default());
        sending(&mut world, 400_000);
        let bytes = world.burst(CLIENT);
        assert!(
            (least..most).contains(&bytes),
            "{pacing:?}: {bytes} bytes left at once. The pacer doesn't stand aside for windows above 2^32, or \
             bursts are others now: see governor.rs (BOUNDLESS)"
        );
        assert_eq!(
            end(&mut world, CLIENT).held(),
            held,
            "the window isn't asked for once where it is full, and twice where packets are spaced out: see \
             Governor::asked and connection/departure.rs"
        );
    }
}

#[test]
fn nothing_leaves_by_a_window_of_one_byte_while_data_waits() {
    let pacing = Pacing::Rate { bps: 20_000 };
    let mut world = standing(&Settings { pacing, ..Settings::default() }, Extras::default());
    sending(&mut world, 50_000);
    world.pass(Duration::from_secs(2));
    let before = end(&mut world, CLIENT).status().sent_packets;
    world.pass(Duration::from_secs(4));
    let packets = end(&mut world, CLIENT).status().sent_packets - before;
    // 10,000 bytes, in packets of 1,200 to 1,452.
    assert!(
        (5..=10).contains(&packets),
        "{packets} packets left in 4 s by a gate of 20 kbit/s: see governor.rs (SHUT)"
    );
}

#[test]
fn the_governor_hears_what_has_left_and_was_acknowledged() {
    let mut world = standing(&Settings::default(), Extras::default());
    sending(&mut world, 3_000);
    world.burst(CLIENT);
    world.pass(Duration::from_millis(500));
    let status = end(&mut world, CLIENT).status();
    assert_eq!(
        (status.in_flight_bytes, status.congestion_events),
        (Some(0), 0),
        "the control of a connection isn't the one that its factory made, or on_end_acks has another meaning: \
         see Governor::of and Governed"
    );
}

#[test]
fn congestion_without_lost_bytes_is_a_mark() {
    for (lost, marked, has_marks) in [(0, 50, true), (50, 0, false)] {
        let path = Path { lost, marked, ..Path::default() };
        let extras = (Extras::default(), Extras::default());
        let mut world = World::new(&Settings::default(), extras, path, false, 3);
        world.establish();
        sending(&mut world, 500_000);
        world.pass(Duration::from_secs(10));
        let status = end(&mut world, CLIENT).status();
        assert!(status.congestion_events > 0, "{path:?}: nothing happened");
        let of_marks = if has_marks { status.congestion_events } else { 0 };
        assert_eq!(
            status.ecn_events,
            Some(of_marks),
            "{path:?}: congestion marks aren't told as a congestion of no lost bytes: see \
             Governed::on_congestion_event"
        );
    }
}

#[test]
fn a_piece_is_let_go_when_it_and_all_before_it_was_acknowledged() {
    let mut world = standing(&Settings::default(), Extras::default());
    let client = end(&mut world, CLIENT);
    let id = client.open_stream(Dir::Bi).expect("there is room for a stream");
    for _ in 0..2 {
        client.send_watched(id, Bytes::from(vec![7; 4_000])).expect("there is room to send");
    }
    let delivered = |world: &mut World| end(world, CLIENT).delivered_bytes(id);
    let let_go = "pieces aren't let go when they are acknowledged and not before: see delivery.rs";
    // No acknowledgement comes.
    world.path.deaf = true;
    world.pass(Duration::from_millis(500));
    assert_eq!(delivered(&mut world), Some(0), "{let_go}");
    world.path.deaf = false;
    world.pass(Duration::from_secs(2));
    assert_eq!(delivered(&mut world), Some(8_000), "{let_go}");
}

#[test]
fn streams_have_the_numbers_of_rfc_9000_and_are_told_in_their_order() {
    let mut world = standing(&Settings::default(), Extras::default());
    let client = end(&mut world, CLIENT);
    let ids = [(); 3].map(|()| client.open_stream(Dir::Bi).expect("there is room for a stream"));
    let last = ids[2];
    assert_eq!(
        (ids.map(u64::from), u64::from(StreamId::new(Side::Client, Dir::Uni, 2))),
        ([0, 4, 8], 10),
        "streams have other numbers: see multiplexed.rs (stream_id) and quic_load/flow.rs"
    );
    // The first two say nothing.
    client.send(last, b"a word").expect("there is room to send");
    world.pass(Duration::from_millis(100));
    let server = end(&mut world, SERVER);
    let accepted: Vec<_> = std::iter::from_fn(|| server.accept_stream(Dir::Bi)).collect();
    assert_eq!(
        accepted, ids,
        "a stream isn't told after all of its kind before it: see Carried::accept, which counts them"
    );
}

#[test]
fn refused_write_is_followed_by_a_writable_event() {
    const WINDOW_BYTES: u32 = 20_000;
    let of_stream = Settings { stream_window_bytes: WINDOW_BYTES, ..Settings::default() };
    let of_connection = Settings { connection_window_bytes: WINDOW_BYTES, ..Settings::default() };
    for settings in [of_stream, of_connection] {
        let mut world = standing(&settings, Extras::default());
        let (id, taken) = sending(&mut world, 50_000);
        assert_eq!(taken, WINDOW_BYTES as usize);
        assert!(end(&mut world, CLIENT).send(id, b"more").is_err());
        world.pass(Duration::from_secs(1));
        assert!(!is_told_writable(&world, id), "there is room where nothing was read");
        assert_eq!(end(&mut world, SERVER).accept_stream(Dir::Bi), Some(id));
        assert_eq!(read_all(&mut world, SERVER, id), taken);
        world.pass(Duration::from_secs(1));
        assert!(
            is_told_writable(&world, id),
            "{settings:?}: a write that was refused is followed by no event: see send_piece"
        );
    }
}

#[test]
fn a_half_that_a_stream_lacks_is_never_asked_for() {
    let mut world = standing(&Settings::default(), Extras::default());
    let client = end(&mut world, CLIENT);
    let id = client.open_stream(Dir::Uni).expect("there is room for a stream");
    // The crate panics at such streams.
    assert_eq!(client.read(id, 1, &mut |_| {}), StreamRead::Closed);
    client.stop_sending(id, 0);
    client.send(id, b"a word").expect("there is room to send");
    world.pass(Duration::from_millis(100));
    let server = end(&mut world, SERVER);
    assert_eq!(server.accept_stream(Dir::Uni), Some(id));
    assert!(server.send(id, b"a word").is_err());
    server.reset(id, 0);
    assert_eq!(server.read(id, 100, &mut |_| {}), StreamRead::Bytes(6));
}

#[test]
fn a_datagram_that_waits_takes_little_beside_its_bytes_and_counts_when_it_has_left() {
    /// As `datagrams.rs` reckons with.
    const WAITING_BYTES: usize = 64;
    let settings = Settings { datagrams: true, ..Settings::default() };
    let mut world = standing(&settings, Extras::default());
    let client = end(&mut world, CLIENT);
    let room = |client: &mut Connection| client.proto.datagrams().send_buffer_space();
    let before = room(client);
    let datagram = Bytes::from(vec![7; 1_000]);
    let mut taken = 0;
    while client.proto.datagrams().send(datagram.clone(), false).is_ok() {
        taken += 1;
    }
    let each = (before - room(client)) / taken as usize;
    assert!(
        (1_000..=1_000 + WAITING_BYTES).contains(&each),
        "a datagram of 1000 bytes takes {each} while it waits: see WAITING_BYTES in datagrams.rs"
    );
    assert_eq!(client.proto.stats().frame_tx.datagram, 0);
    world.pass(Duration::from_secs(1));
    let client = end(&mut world, CLIENT);
    assert_eq!(
        (client.proto.stats().frame_tx.datagram, room(client)),
        (taken, before),
        "datagrams that have left aren't counted one by one: see DatagramsTaken"
    );
    let unblocked = |event: &ProtoEvent| matches!(event, ProtoEvent::DatagramsUnblocked);
    assert!(
        world.nodes[CLIENT].events.iter().any(unblocked),
        "a datagram that was refused is followed by no event: see QuicDatagrams::send"
    );
}

#[test]
fn every_packet_passes_the_session_once() {
    let mut world = standing(&Settings::default(), Extras { counts: true, ..Extras::default() });
    let (id, taken) = sending(&mut world, 300_000);
    world.pass(Duration::from_secs(5));
    assert_eq!(end(&mut world, SERVER).accept_stream(Dir::Bi), Some(id));
    assert_eq!(read_all(&mut world, SERVER, id), taken);
    world.pass(Duration::from_secs(1));
    for at in [CLIENT, SERVER] {
        let sent = end(&mut world, 1 - at).status().sent_packets;
        let found = end(&mut world, at).statistics();
        assert_eq!(
            (found.received_packets, found.dropped_packets, found.duplicate_packets),
            (Some(sent), Some(0), Some(0)),
            "packets are opened by other keys than the session's, or by these more than once: see \
             session.rs and counted.rs"
        );
    }
}

#[test]
fn no_key_phase_is_seen_of_packets_in_clear() {
    const LONG: u8 = 0x80;
    const KEY_PHASE: u8 = 0x04;
    let clear = Extras { clear_packets: true, ..Extras::default() };
    let mut world = standing(&Settings::default(), clear);
    let (id, mut sent) = sending(&mut world, 1 << 20);
    // Keys change after 10 to 999 packets.
    for _ in 0..400 {
        sent += end(&mut world, CLIENT).send(id, &[7; 64 << 10]).unwrap_or(0);
        world.pass(Duration::from_millis(20));
        while end(&mut world, SERVER).accept_stream(Dir::Bi).is_some() {}
        read_all(&mut world, SERVER, id);
    }
    let short = world.first_bytes.iter().filter(|first| **first & LONG == 0);
    assert!(sent > 3 << 20 && short.clone().count() > 2_000, "{sent} bytes are too few");
    assert!(
        short.clone().all(|first| first & KEY_PHASE == 0),
        "the header's key doesn't see the whole first byte, or keys change in another way: see clear.rs"
    );
}

#[test]
fn only_a_client_whose_handshake_was_confirmed_says_so() {
    let mut world = World::new(
        &Settings::default(),
        (Extras::default(), Extras::default()),
        Path::default(),
        false,
        1,
    );
    while !world.nodes[CLIENT].established {
        assert!(!world.connection(CLIENT).is_some_and(|one| one.is_confirmed()), "too early");
        assert!(world.step(), "it never stands");
    }
    world.pass(Duration::from_millis(200));
    assert!(
        end(&mut world, CLIENT).is_confirmed(),
        "HANDSHAKE_DONE isn't counted: see Connection::is_confirmed"
    );
}

#[test]
fn a_close_of_the_peer_is_counted_and_its_place_is_the_first_again() {
    let mut world = standing(&Settings::default(), Extras::default());
    let place = |world: &mut World, at: usize| end(world, at).location.handle.0;
    assert_eq!(
        (place(&mut world, CLIENT), place(&mut world, SERVER)),
        (0, 0),
        "connections have other places than the first ones: see Endpoint::insert"
    );
    world.close(CLIENT);
    world.pass(Duration::from_millis(15));
    assert!(
        end(&mut world, SERVER).is_closed_by_peer() && !end(&mut world, CLIENT).is_closed_by_peer(),
        "CONNECTION_CLOSE isn't counted: see Endpoint::is_over"
    );
    while !world.is_over() {
        assert!(world.step(), "it is never forgotten");
    }
}
