//! Streams over QUIC whose beginnings are missing: what comes behind is kept for them, within bounds.

use std::ops::Range;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::dialect::{Dialect, Host};
use crate::extent::extent;
use crate::flood::FULL_SPEED;
use crate::random::Random;
use crate::raw_quic_client::RawClient;

/// What a connection costs a server by itself.
const CONNECTION_BYTES: u64 = 100 << 10;
/// What it may send at first, in clients' terms: the server keeps two and a half times that, since it keeps packets
/// with what else is in them.
const WINDOW_BYTES: u64 = 64 << 10;
/// What a stream of which much is missing costs a server besides, and how many a connection has at first.
const STREAM_BYTES: u64 = 144 << 10;
const FIRST_STREAMS: u64 = 32;
/// Pieces of a stream, fewer than a server ends a connection for; the last ones come in packets of this length.
const MOST_PIECES: u64 = 1_000;
const LONG_PIECES: u64 = 22;
const LONG_BYTES: usize = 1_400;
/// How often earlier connections say that they are there: a server gives up one that is silent for 30 seconds.
const SIGN: Duration = Duration::from_secs(8);
/// What a server may keep beside: buffers of its threads.
const BESIDE_BYTES: u64 = 50 << 20;
/// Streams of a connection, fewer than it may have.
const STREAMS: u64 = 8;
/// Sent before a connection sees whether the server keeps up.
const AT_ONCE: usize = 32;
/// Transport parameters (RFC 9000, section 18.2).
const MAX_DATA: u64 = 0x04;
const MAX_STREAM_DATA_BOTH_WAYS: u64 = 0x06;

/// A frame with a part of a stream (RFC 9000, section 19.8), one of those that the client opens.
fn part(id: u64, place: u64, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x0e];
    frame.extend((id as u32 | 0x8000_0000).to_be_bytes());
    frame.extend((place as u32 | 0x8000_0000).to_be_bytes());
    frame.extend((bytes as u16 | 0x4000).to_be_bytes());
    frame.resize(frame.len() + bytes, 7);
    frame
}

/// Has so many connections say this, a packet after the other, and shows what they cost their server.
fn cost(connections: usize, packets: impl Fn(&RawClient) -> Vec<Vec<u8>>) {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(Dialect::Quic);
    let mut random = Random::draw("gaps");
    let each_bytes = CONNECTION_BYTES + WINDOW_BYTES * 5 / 2 + FIRST_STREAMS * STREAM_BYTES;
    let most_bytes = BESIDE_BYTES + connections as u64 * each_bytes;
    let (mut clients, mut signed) = (Vec::<RawClient>::new(), Instant::now());
    for number in 0..connections {
        if signed.elapsed() > SIGN {
            clients.iter_mut().for_each(|client| client.say(&[0x01, 0, 0, 0]));
            signed = Instant::now();
        }
        let mut client = RawClient::connect(host.port, &mut random);
        for some in packets(&client).chunks(AT_ONCE) {
            some.iter().for_each(|packet| client.say(packet));
            assert!(client.is_answered(), "connection {number} was ended");
        }
        clients.push(client);
        host.assert_holds_at_most(8, most_bytes);
        if number % (connections / 4) == 0 {
            host.assert_serves();
        }
    }
    assert!(clients.iter_mut().all(RawClient::is_answered), "all are still there");
    host.assert_serves();
    host.assert_holds_at_most(8, most_bytes);
}

/// Everything but the first byte of some streams, as far as the server allows.
#[test]
fn small_windows_bound_memory_for_gaps_in_streams() {
    cost(extent(200, 2_000), |client| {
        let whole = client.parameter(MAX_DATA).min(2 << 20) / STREAMS;
        let end = whole.min(client.parameter(MAX_STREAM_DATA_BOTH_WAYS));
        let places = |stream| (1..end).step_by(8_000).map(move |place| (stream, place));
        let all = (0..STREAMS).flat_map(places);
        all.map(|(stream, place)| part(4 * stream, place, 8_000.min(end - place) as usize))
            .collect()
    });
}

/// Every second byte of the beginnings of all streams, first many in a packet, then each in a long one of its own.
#[test]
fn a_byte_that_is_kept_keeps_its_packet_and_its_place_within_bounds() {
    cost(extent(40, 400), |client| {
        let streams: Vec<u64> = client.streams().collect();
        let most = client.parameter(MAX_DATA) / (2 * streams.len() as u64 + 1);
        let most = most.min(MOST_PIECES);
        let parts = |places: Range<u64>| {
            let each = move |id| places.clone().map(move |place| part(id, 1 + 2 * place, 1));
            streams.iter().copied().flat_map(each).collect::<Vec<_>>()
        };
        let short: Vec<_> = parts(0..most - LONG_PIECES).chunks(25).map(<[_]>::concat).collect();
        let long = parts(most - LONG_PIECES..most).into_iter().map(|mut packet| {
            packet.resize(LONG_BYTES, 0);
            packet
        });
        short.into_iter().chain(long).collect()
    });
}
