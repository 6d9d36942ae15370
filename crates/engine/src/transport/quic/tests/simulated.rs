//! What holds over any path: every transfer ends and is right, and nobody unknown is answered at length.

use std::time::Duration;

use quinn_proto::{Dir, StreamId};

use super::super::connection::StreamRead;
use super::super::ids::{ConnectionIds, Mark};
use super::super::{Congestion, Extras, Settings};
use super::world::{CLIENT, Path, SERVER, World};

/// Streams of a transfer, and the bytes of each, both ways.
const STREAMS: usize = 3;
const BYTES: usize = 50_000;
/// The longest that one may take, on its own clock.
const LONGEST: Duration = Duration::from_secs(600);
/// As often as not a seed finds what another one misses.
const SEEDS: u64 = 36;

fn content(stream: usize, from: usize) -> Vec<u8> {
    (0..BYTES).map(|place| (place / 3 + stream * 17 + from * 101) as u8).collect()
}

/// One way of one stream.
#[derive(Default)]
struct Way {
    id: Option<StreamId>,
    sent: usize,
    finished: bool,
    received: usize,
    whole: bool,
}

/// Every stream both ways: the client's first, the server's when the client's is whole.
struct Transfer {
    ways: [[Way; STREAMS]; 2],
    /// What each end says on each stream.
    contents: [[Vec<u8>; STREAMS]; 2],
}

impl Transfer {
    fn new() -> Self {
        let contents = |end| std::array::from_fn(|stream| content(stream, end));
        Self { ways: Default::default(), contents: std::array::from_fn(contents) }
    }

    /// Does what an end can do now.
    fn act(&mut self, world: &mut World, end: usize) {
        if !world.nodes[end].established {
            return;
        }
        let Some(connection) = world.connection(end) else { return };
        for number in 0..STREAMS {
            let id = self.ways[end][number].id.or_else(|| match end {
                CLIENT => connection.open_stream(Dir::Bi),
                _ => connection.accept_stream(Dir::Bi),
            });
            self.ways[end][number].id = id;
            let Some(id) = id else { continue };
            // Which of the client's streams came first is up to the path.
            let of = id.index() as usize;
            let (theirs, ours) = (&self.contents[1 - end][of], &self.contents[end][of]);
            let way = &mut self.ways[end][number];
            if !way.whole {
                let read = connection.read(id, BYTES, &mut |piece| {
                    let expected = theirs.get(way.received..way.received + piece.len());
                    assert!(expected == Some(piece), "wrong bytes came");
                    way.received += piece.len();
                });
                way.whole = matches!(read, StreamRead::Finished(_));
                assert!(!way.whole || way.received == BYTES, "it ended early");
            }
            let may_send = end == CLIENT || way.whole;
            if may_send && !way.finished {
                way.sent += connection.send(id, &ours[way.sent..]).unwrap_or(0);
                way.finished = way.sent == BYTES && connection.finish(id).is_ok();
            }
        }
    }

    fn is_done(&self) -> bool {
        self.ways.iter().flatten().all(|way| way.whole)
    }
}

/// Runs a transfer to its end, closes, and sees both ends forget it.
fn transfer(world: &mut World, what: &str) {
    let mut transfer = Transfer::new();
    while !transfer.is_done() {
        for end in [CLIENT, SERVER] {
            transfer.act(world, end);
            let lost = world.connection(end).and_then(|connection| connection.lost.clone());
            assert!(lost.is_none(), "{what}: {lost:?}");
        }
        assert!(world.step() && world.elapsed() < LONGEST, "{what}: it never ends");
    }
    world.close(CLIENT);
    while !world.is_over() {
        assert!(world.step() && world.elapsed() < LONGEST, "{what}: it is never forgotten");
    }
}

/// Whether either end wants packets in clear.
const CLEAR: [(bool, bool); 4] = [(false, false), (true, true), (true, false), (false, true)];

fn extras(clear: (bool, bool), unknown: bool) -> (Extras, Extras) {
    // A parameter that nobody knows is passed over (RFC 9000, section 7.4.2).
    let parameters = if unknown { vec![(31 * 999 + 27, vec![1, 0])] } else { Vec::new() };
    let of = |clear_packets| Extras {
        clear_packets,
        parameters: parameters.clone(),
        ..Extras::default()
    };
    (of(clear.0), of(clear.1))
}

#[test]
fn every_transfer_ends_and_is_right_whatever_the_path_does() {
    let congestions = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];
    for seed in 0..SEEDS {
        let pick = |from: &[u64], by: u64| from[(seed / by) as usize % from.len()];
        let clear = CLEAR[seed as usize % CLEAR.len()];
        let mtu_bytes = [None, Some(1_200), Some(9_000)][(seed / 5 % 3) as usize];
        let settings = Settings {
            congestion: congestions[seed as usize % congestions.len()],
            stream_window_bytes: pick(&[8 << 20, 20_000], 2) as u32,
            mtu_bytes,
            // Less would be refused.
            initial_window_bytes: mtu_bytes.map(|bytes| u64::from(bytes.max(6_000)) * 2),
            ids: ConnectionIds {
                server: (pick(&[0, 1], 6) == 1).then_some(77),
                mark: Mark::new(b"mark").filter(|_| pick(&[0, 0, 1], 8) == 1),
                partition: Some(3),
                ..ConnectionIds::default()
            },
            ..Settings::default()
        };
        let asks_back = pick(&[0, 1], 7) == 1;
        let path = Path {
            lost: pick(&[0, 10, 50, 150], 1),
            repeated: pick(&[0, 30], 3),
            late: pick(&[0, 100, 300], 4),
            // Nobody can tell what was changed of a packet in clear; and a Retry that was changed keeps
            // quinn-proto from taking a better one.
            spoiled: if clear == (true, true) || asks_back { 0 } else { pick(&[0, 20], 5) },
            ..Path::default()
        };
        let what = format!("seed {seed}, {clear:?}, {settings:?}, {path:?}");
        let extras = extras(clear, pick(&[0, 1], 2) == 1);
        let mut world = World::new(&settings, extras, path, asks_back, seed);
        transfer(&mut world, &what);
        let status = world.connection(CLIENT).map(|connection| connection.status());
        let packets = status.map_or(0, |status| status.sent_packets);
        assert!(packets > 20, "{what}: {packets} packets");
    }
}

#[test]
fn unvalidated_address_gets_at_most_three_times_its_bytes() {
    let path = Path { deaf: true, ..Path::default() };
    for (seed, asks_back) in [(1, false), (2, true), (3, false)] {
        for clear in [false, true] {
            let extras = extras((clear, clear), false);
            let mut world = World::new(&Settings::default(), extras, path, asks_back, seed);
            while world.step() && world.elapsed() < Duration::from_secs(120) {}
            let [client, server] = &world.nodes;
            assert!(client.sent_bytes >= 1_200 && server.sent_bytes > 0);
            assert!(!client.established && !server.established);
            let ratio = world.worst_ratio;
            assert!(ratio <= 3.0, "asked back: {asks_back}, {ratio} times");
            // A Retry packet is shorter than the packet it answers.
            assert!(!asks_back || ratio < 1.0, "{ratio} times");
        }
    }
}

#[test]
fn congestion_is_counted_on_when_a_clients_address_changes() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let settings = Settings { congestion, migrates: true, ..Settings::default() };
        let path = Path { lost: 100, ..Path::default() };
        let mut world = World::new(&settings, extras((false, false), false), path, false, 7);
        let (mut transfer, mut most, mut moved) = (Transfer::new(), 0, None);
        while !transfer.is_done() {
            for end in [CLIENT, SERVER] {
                transfer.act(&mut world, end);
            }
            let status = world.connection(SERVER).map(|connection| connection.status());
            let events = status.map_or(0, |status| status.congestion_events);
            assert!(events >= most, "{congestion:?}: {events} after {most}");
            most = events;
            if events > 0 && moved.is_none() {
                moved = Some(events);
                world.nodes[CLIENT].address = ([192, 0, 2, 9], 1_000).into();
            }
            assert!(world.step() && world.elapsed() < LONGEST, "{congestion:?}: it never ends");
        }
        assert!(moved.is_some_and(|before| most > before), "{congestion:?}: {moved:?}, {most}");
    }
}
