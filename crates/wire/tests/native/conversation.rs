//! The whole conversation, undisturbed, however its bytes are cut into pieces.

use linerate_wire::native::LeaseWish;
use linerate_wire::native::client::ClientEvent;
use linerate_wire::native::server::ServerEvent;
use proptest::prelude::*;

use crate::pair::{COUNTS, Link, MS, OFFSET_NS, Pair, TOKEN};

fn without_clock(events: &[ClientEvent]) -> Vec<ClientEvent> {
    let is_clock = |event: &&ClientEvent| matches!(event, ClientEvent::ClockSample(_));
    events.iter().filter(|event| !is_clock(event)).cloned().collect()
}

#[test]
fn goes_from_greeting_to_result() {
    let pair = Pair::new(Link::default()).run();
    let events = without_clock(&pair.client_events);
    let software = "linerate serve test".to_owned();
    let (run_id, host) = ("cd".repeat(16), "{\"a\":\"host\"}".to_owned());
    assert_eq!(events[0], ClientEvent::Welcomed { version: 2, software });
    assert_eq!(events[1], ClientEvent::Queued { place: 2 });
    assert_eq!(events[2], ClientEvent::Queued { place: 1 });
    assert_eq!(events[3], ClientEvent::Admitted { run_id, token: TOKEN, host });
    assert_eq!(events[4], ClientEvent::Ready);
    assert!(matches!(events[5], ClientEvent::Started { .. }));
    let (samples, rest) = events[6..].split_at(events.len() - 8);
    assert!(samples.len() >= 3, "{samples:?}");
    assert!(samples.iter().all(|event| matches!(event, ClientEvent::Sample(_))));
    let result = ClientEvent::Result("{\"a\":\"report\"}".to_owned());
    assert_eq!(rest, [ClientEvent::PeerSent(COUNTS.to_vec()), result]);

    let plan = "{\"a\":\"plan\"}".to_owned();
    assert_eq!(
        pair.server_events,
        [
            ServerEvent::Request { plan, exclusive: true, lease: LeaseWish::None },
            ServerEvent::Start { at_utc_ns: None },
            ServerEvent::PeerSent(COUNTS.to_vec()),
            ServerEvent::Finish,
        ]
    );
}

#[test]
fn compares_the_clocks() {
    let pair = Pair::new(Link::default()).run();
    let admitted =
        pair.client_events.iter().position(|event| matches!(event, ClientEvent::Admitted { .. }));
    let mut samples = 0;
    for event in &pair.client_events[admitted.unwrap()..] {
        let ClientEvent::ClockSample(clock) = event else { continue };
        samples += 1;
        let way = i64::try_from(5 * MS).unwrap();
        assert_eq!(clock.server_received_utc_ns - clock.client_sent_utc_ns, way + OFFSET_NS);
        assert_eq!(clock.client_received_utc_ns - clock.server_replied_utc_ns, way - OFFSET_NS);
    }
    assert!(samples >= 8, "{samples}");
}

#[test]
fn byte_by_byte_is_the_same() {
    let whole = Pair::new(Link::default()).run();
    for piece_bytes in [1, 2, 3, 5, 7, 64] {
        let cut = Pair::new(Link { piece_bytes, ..Link::default() }).run();
        assert_eq!(cut.client_events, whole.client_events);
        assert_eq!(cut.server_events, whole.server_events);
        assert_eq!(cut.elapsed_ns, whole.elapsed_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_split_gives_the_same_events(piece_bytes in 1_usize..2000) {
        let whole = Pair::new(Link::default()).run();
        let cut = Pair::new(Link { piece_bytes, ..Link::default() }).run();
        prop_assert_eq!(cut.client_events, whole.client_events);
        prop_assert_eq!(cut.server_events, whole.server_events);
    }
}
