//! Which room of the engine may know which.

use std::collections::BTreeSet;

use crate::assert_tidy;
use crate::source::without_comments_and_text;
use crate::workspace::files;

const ENGINE: &str = "crates/engine/src/";

/// The rooms, from what knows nobody to what knows many. A room may name those above its own line alone, so that
/// no circle can come to be. ARCHITECTURE.md says what each is for.
const ROOMS: &[&str] = &[
    "clock",
    "tally",
    "waiting",
    "page_aligned",
    "pattern",
    "buffers",
    "acceptor",
    "access",
    "control",
    "transport",
    "phase",
    "latencies",
    "ready_count",
    "timetable",
    "pacing",
    "flow",
    "shard",
    "connections",
    "quic_load",
    "load",
    "event",
    "client",
    "ctstraffic",
    "iperf3",
    "netperf",
    "perf",
    "qperf",
    "relay",
    "server",
    "lib",
];

/// Rooms of `linerate-system`, which the engine names as its own; every room may.
const BELOW: [&str; 6] = ["error", "poll", "probe", "resolve", "socket", "waker"];

/// The rooms that a source names, other than in its tests.
fn named(text: &str) -> BTreeSet<&str> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let behind = text.split("crate::").skip(1);
    behind
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .filter(|name| name.starts_with(|c: char| c.is_lowercase()))
        .collect()
}

#[test]
fn a_room_of_the_engine_knows_only_rooms_below_it() {
    let level = |room: &str| ROOMS.iter().position(|name| *name == room);
    let (mut offences, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in files(&[".rs"]) {
        let Some(place) = path.strip_prefix(ENGINE) else { continue };
        if place.ends_with("tests.rs") || place.contains("/tests/") {
            continue;
        }
        let room = place.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        seen.insert(room.to_owned());
        let Some(own) = level(room) else {
            offences.push(format!("{path}: the room {room} has no place in the list"));
            continue;
        };
        for other in named(&without_comments_and_text(&text)) {
            if other != room
                && !BELOW.contains(&other)
                && level(other).is_none_or(|other| other > own)
            {
                offences.push(format!("{path}: {room} -> {other}"));
            }
        }
    }
    let gone = ROOMS.iter().filter(|room| !seen.contains(**room));
    offences.extend(gone.map(|room| format!("there is no room {room}")));
    assert_tidy("an arrow that leads up:", &offences);
}
