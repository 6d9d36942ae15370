//! The conversation with messages lost and repeated, and with the connection cut: each ends for
//! both in an event that says how, in bounded time.

use linerate_wire::native::client::ClientEvent;
use linerate_wire::native::server::ServerEvent;
use linerate_wire::native::{Fault, Stage};

use crate::pair::{Link, Pair, SECOND, Way};

/// Whether the client was told how it ended.
fn client_knows(pair: &Pair) -> bool {
    matches!(
        pair.client_events.last(),
        Some(ClientEvent::Result(_) | ClientEvent::Failed(_) | ClientEvent::Refused { .. })
    )
}

/// Whether the server was told how it ended; after its result there is nothing to tell.
fn server_knows(pair: &Pair) -> bool {
    matches!(pair.server_events.last(), Some(ServerEvent::Failed(_) | ServerEvent::Finish))
}

fn ways() -> [(Way, usize); 2] {
    let whole = Pair::new(Link::default()).run();
    [(Way::ToServer, whole.frames[0]), (Way::ToClient, whole.frames[1])]
}

#[test]
fn every_message_lost() {
    for (way, frames) in ways() {
        for lost in 0..frames {
            let pass = Box::new(
                move |w, n, frame| {
                    if (w, n) == (way, lost) { Vec::new() } else { vec![frame] }
                },
            );
            let pair = Pair::new(Link { pass, ..Link::default() }).run();
            assert!(client_knows(&pair), "{way:?} {lost}: {:?}", pair.client_events.last());
            assert!(server_knows(&pair), "{way:?} {lost}: {:?}", pair.server_events.last());
            assert!(pair.elapsed_ns < 130 * SECOND, "{way:?} {lost}: {}", pair.elapsed_ns);
        }
    }
}

#[test]
fn every_message_repeated() {
    for (way, frames) in ways() {
        for repeated in 0..frames {
            let pass = Box::new(move |w, n, frame: Vec<u8>| {
                let times = if (w, n) == (way, repeated) { 2 } else { 1 };
                vec![frame; times]
            });
            let pair = Pair::new(Link { pass, ..Link::default() }).run();
            assert!(client_knows(&pair), "{way:?} {repeated}: {:?}", pair.client_events.last());
            assert!(server_knows(&pair), "{way:?} {repeated}: {:?}", pair.server_events.last());
            assert!(pair.elapsed_ns < 10 * SECOND, "{way:?} {repeated}: {}", pair.elapsed_ns);
        }
    }
}

/// The cable is out: everything from some message on is lost, and no end is told.
#[test]
fn every_message_from_one_on_lost() {
    for (way, frames) in ways() {
        for first in 0..frames {
            let pass = Box::new(
                move |w, n, frame| {
                    if w == way && n >= first { Vec::new() } else { vec![frame] }
                },
            );
            let pair = Pair::new(Link { pass, ..Link::default() }).run();
            assert!(client_knows(&pair), "{way:?} {first}: {:?}", pair.client_events.last());
            assert!(server_knows(&pair), "{way:?} {first}: {:?}", pair.server_events.last());
            // The load lasts at most 5 s; then the lease, or the client's limit of silence, ends it.
            assert!(pair.elapsed_ns < 17 * SECOND, "{way:?} {first}: {}", pair.elapsed_ns);
        }
    }
}

#[test]
fn the_connection_cut_after_every_byte() {
    let whole = Pair::new(Link::default()).run();
    for (way, bytes) in [(Way::ToServer, whole.bytes[0]), (Way::ToClient, whole.bytes[1])] {
        for after in 0..bytes {
            let pair = Pair::new(Link { cut: Some((way, after)), ..Link::default() }).run();
            assert!(client_knows(&pair), "{way:?} {after}: {:?}", pair.client_events.last());
            assert!(server_knows(&pair), "{way:?} {after}: {:?}", pair.server_events.last());
            assert!(pair.elapsed_ns <= whole.elapsed_ns + SECOND);
            if way == Way::ToClient {
                let failed = pair.client_events.last();
                let closed = matches!(failed, Some(ClientEvent::Failed(Fault::Closed { .. })));
                assert!(closed, "{after}: {failed:?}");
            }
        }
    }
}

/// A client that vanishes without a word has lost its lease 4 s after its last message.
#[test]
fn a_silent_client_loses_its_lease() {
    for first in 2..ways()[0].1 {
        let pass = Box::new(
            move |w, n, frame| {
                if w == Way::ToClient || n < first { vec![frame] } else { Vec::new() }
            },
        );
        let pair = Pair::new(Link { pass, ..Link::default() }).run();
        match pair.server_events.last() {
            Some(ServerEvent::Failed(Fault::Silent { after_ns, .. })) => {
                assert_eq!(*after_ns, 4 * SECOND);
            }
            other => panic!("{first}: {other:?}"),
        }
    }
}

#[test]
fn a_lost_start_ends_a_test_that_waits() {
    // The client's frames: hello, request, pings while queued and in the burst, start, ...
    let pass = Box::new(|way, _, frame: Vec<u8>| {
        let start = way == Way::ToServer && frame.windows(7).any(|part| part == b"\"start\"");
        if start { Vec::new() } else { vec![frame] }
    });
    let pair = Pair::new(Link { pass, ..Link::default() }).run();
    let told = pair.server_events.last();
    // The server waits for 60 s; the client gives up earlier.
    let closed = Fault::Closed { stage: Stage::Ready };
    assert_eq!(told, Some(&ServerEvent::Failed(closed)));
}
