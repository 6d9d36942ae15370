//! Which crate may know which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::assert_tidy;
use crate::workspace::{files, metadata};

/// Every arrow between our crates that is allowed.
const ARROWS: [(&str, &str); 23] = [
    ("linerate-engine", "linerate-measure"),
    ("linerate-engine", "linerate-system"),
    ("linerate-engine", "linerate-wire"),
    ("linerate-system", "linerate-measure"),
    ("linerate-link", "linerate-measure"),
    ("linerate-link", "linerate-system"),
    ("linerate-lab", "linerate-measure"),
    ("linerate-results", "linerate-measure"),
    ("linerate-report", "linerate-measure"),
    ("linerate-report", "linerate-wire"),
    ("linerate-screen", "linerate-measure"),
    ("linerate-personality", "linerate-measure"),
    ("linerate-personality", "linerate-wire"),
    ("linerate", "linerate-engine"),
    ("linerate", "linerate-lab"),
    ("linerate", "linerate-results"),
    ("linerate", "linerate-report"),
    ("linerate", "linerate-screen"),
    ("linerate", "linerate-link"),
    ("linerate", "linerate-measure"),
    ("linerate", "linerate-personality"),
    ("linerate", "linerate-wire"),
    ("linerate-interop", "linerate"),
];

/// The crates without I/O, clock and threads.
const PURE: [&str; 5] = [
    "linerate-measure",
    "linerate-wire",
    "linerate-personality",
    "linerate-report",
    "linerate-screen",
];

/// Crates that a pure crate can have no use for.
const IMPURE_CRATES: [&str; 9] =
    ["libc", "rustix", "nix", "socket2", "mio", "tokio", "rustls", "aws-lc-rs", "signal-hook"];

/// What a pure crate may not say.
const IMPURE_WORDS: [&str; 9] = [
    "std::fs",
    "std::thread",
    "std::process",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "Instant::now",
    "SystemTime",
    "std::env",
];

/// Async runtimes: the data path has none.
const RUNTIMES: [&str; 8] = [
    "tokio",
    "async-std",
    "smol",
    "async-executor",
    "futures-executor",
    "monoio",
    "glommio",
    "compio",
];

#[test]
fn crates_know_only_what_they_may() {
    let metadata = metadata();
    let ours: BTreeSet<&str> = members(&metadata).into_iter().collect();
    let mut offences = Vec::new();
    for package in list(&metadata["packages"]) {
        let from = text(&package["name"]);
        if !ours.contains(from) {
            continue;
        }
        for dependency in list(&package["dependencies"]) {
            let to = text(&dependency["name"]);
            let for_tests = dependency["kind"] == "dev";
            if ours.contains(to) && !ARROWS.contains(&(from, to)) {
                offences.push(format!("{from} -> {to}"));
            }
            if PURE.contains(&from) && !for_tests && IMPURE_CRATES.contains(&to) {
                offences.push(format!("{from} is pure and needs no {to}"));
            }
        }
    }
    assert_tidy("an arrow that ARCHITECTURE.md does not draw:", &offences);
}

#[test]
fn no_async_runtime_under_the_engine_or_the_program() {
    let metadata = metadata();
    let mut offences = Vec::new();
    for from in ["linerate-engine", "linerate", "linerate-interop"] {
        let found = reachable_names(&metadata, from);
        assert!(found.contains("linerate-measure"), "the graph was not read: {found:?}");
        let runtimes = RUNTIMES.iter().filter(|name| found.contains(**name));
        offences.extend(runtimes.map(|name| format!("{from} -> {name}")));
    }
    assert_tidy("an async runtime under what is not a test:", &offences);
}

#[test]
fn pure_crates_touch_no_system() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let pure = PURE.iter().any(|name| {
            path.starts_with(&format!("crates/{}/src/", name.trim_start_matches("linerate-")))
        });
        if !pure || path.ends_with("tests.rs") || path.contains("/tests/") {
            continue;
        }
        let code = crate::source::without_comments_and_text(&text);
        for (number, line) in code.lines().enumerate() {
            for word in IMPURE_WORDS.iter().filter(|word| line.contains(**word)) {
                offences.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    assert_tidy("a pure crate that touches the system:", &offences);
}

#[test]
fn one_room_names_the_quic_machine() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let code = crate::source::without_comments_and_text(&text);
        if code.contains("quinn_proto") && !path.starts_with("crates/engine/src/transport/quic/") {
            offences.push(path);
        }
    }
    assert_tidy("quinn-proto named outside of transport/quic:", &offences);
}

fn members(metadata: &Value) -> Vec<&str> {
    let ids: BTreeSet<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
    list(&metadata["packages"])
        .iter()
        .filter(|package| ids.contains(text(&package["id"])))
        .map(|package| text(&package["name"]))
        .collect()
}

/// Names of all packages that one of ours is built from, tests' dependencies left out.
fn reachable_names<'a>(metadata: &'a Value, from: &str) -> BTreeSet<&'a str> {
    let packages = list(&metadata["packages"]);
    let names: BTreeMap<&str, &str> =
        packages.iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
    let start = names.iter().find(|(_, name)| **name == from).expect("the crate is there").0;
    let mut waiting = vec![*start];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in list(&nodes[id]["deps"]) {
            let linked = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            if linked {
                waiting.push(text(&dependency["pkg"]));
            }
        }
    }
    seen.into_iter().map(|id| names[id]).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
