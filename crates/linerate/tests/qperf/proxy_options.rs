//! Options of `-P` that a client or a server has, too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::events::early_bytes;
use super::fixture::{LIMIT, Running, Server, command, folder};

fn proxy(to: &Server, words: &str) -> Server {
    Server::proxy(&format!("-P 127.0.0.1 -p {} {words}", to.port))
}

#[test]
fn a_proxy_of_one_version_speaks_it_on_both_sides_and_no_other() {
    let server = Server::start("");
    let far = proxy(&server, "--quic-version draft-29");
    let near = proxy(&far, "--quic-version draft-29");
    assert_eq!(near.client("-e --quic-version draft-29").exit_code, 0);
    let ended = near.client("-e");
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("no data came from 127.0.0.1"), "{}", ended.stderr);
    let other = proxy(&far, "--quic-version rfc-1");
    assert_eq!(other.client("-e").exit_code, 1, "its target speaks draft 29 alone");
    // Without the option clients may speak either.
    let any = proxy(&server, "");
    for version in ["rfc-1", "draft-29"] {
        assert_eq!(any.client(&format!("-e --quic-version {version}")).exit_code, 0, "{version}");
    }
}

/// The secrets of traffic in a key log, in order.
fn secrets(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.retain(|line| line.contains("_TRAFFIC_SECRET"));
    lines.sort();
    lines
}

#[test]
fn the_secrets_of_both_sides_of_a_proxy_are_appended_to_its_file() {
    let server = Server::start("-l server.keys");
    let near = proxy(&server, "-l proxy.keys -g -u 64k");
    let ended = near.client("-t 1 -l client.keys");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let (said, near) = near.stop();
    assert!(said.stdout.starts_with("using UDP GSO, requires kernel >= 4.18\n"));
    let (_served, far) = server.stop();
    let mut both = secrets(&near.path().join("client.keys"));
    both.extend(secrets(&far.path().join("server.keys")));
    both.sort();
    assert_eq!(both.len(), 8);
    assert_eq!(secrets(&near.path().join("proxy.keys")), both);
}

/// How many bytes the server of these events said in the handshake of each connection: without a certificate they are
/// few. A connection that its client gave up at once has none.
fn handshakes_bytes(path: &Path) -> BTreeMap<u64, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ends = BTreeMap::new();
    for event in events.filter(|one| one["type"] == "stream-send" && one["stream-id"] == -3) {
        let [number, offset, length] =
            ["conn", "off", "len"].map(|name| event[name].as_u64().unwrap());
        let end = ends.entry(number).or_insert(0);
        *end = (offset + length).max(*end);
    }
    ends
}

#[test]
fn the_session_of_a_proxy_with_its_target_is_resumed_by_the_first_connection_after_a_restart() {
    let (mut kept, mut far) = (folder(), folder());
    for run in 0..3 {
        let server = Server::start_in(far, "--session-cache cache --events events", |_| ());
        let words = format!("-P 127.0.0.1 -p {} --session target", server.port);
        let near = Server::proxy_in(kept, &words);
        for client in 0..3 {
            let ended = near.client("-t 1");
            assert_eq!(ended.exit_code, 0, "run {run}, client {client}: {}", ended.stderr);
        }
        kept = near.stop().1;
        far = server.stop().1;
        let bytes = handshakes_bytes(&far.path().join("events"));
        let resumes = |number| bytes[&number] < 300;
        assert_eq!(resumes(0), run > 0, "run {run}");
        // The first connection's next ticket is for the next start, and the second one's is kept in memory.
        assert_eq!((resumes(1), resumes(2)), (false, true), "run {run}");
    }
}

#[test]
fn a_target_that_is_down_does_not_use_up_the_session_with_it() {
    let server = Server::start_in(folder(), "--session-cache cache", |_| ());
    let port = server.port;
    let near = proxy(&server, "--session target");
    assert_eq!(near.client("-t 1").exit_code, 0);
    let (kept, far) = (near.stop().1, server.stop().1);
    let near = Server::proxy_in(kept, &format!("-P 127.0.0.1 -p {port} --session target"));
    for _ in 0..2 {
        assert_eq!(near.client("-t 1").exit_code, 1, "nobody listens there");
    }
    let words = format!("-s --session-cache cache --events events --listen-port {port}");
    let server = Running::start(command(&words, far.path()));
    let end = Instant::now() + LIMIT;
    while near.client("-t 1").exit_code != 0 {
        assert!(Instant::now() < end, "the target is up");
    }
    near.stop();
    server.signal(rustix::process::Signal::INT);
    // Before it, an attempt may have been given up while the server began.
    let bytes = handshakes_bytes(&far.path().join("events"));
    assert!(bytes.first_key_value().is_some_and(|(_, bytes)| *bytes < 300), "{bytes:?}");
}

#[test]
fn clients_of_a_proxy_resume_their_sessions_after_it_was_restarted() {
    let server = Server::start("");
    let mut kept = folder();
    for run in 0..3 {
        let words = format!("-P 127.0.0.1 -p {} --session-cache cache", server.port);
        let near = Server::proxy_in(kept, &words);
        let ended = near.client("-t 1 --session session --events events");
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "run {run}");
        kept = near.stop().1;
        let early = early_bytes(&kept.path().join("events"));
        assert_eq!(early, if run == 0 { 0 } else { 19 }, "run {run}");
    }
}
