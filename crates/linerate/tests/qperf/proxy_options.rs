//! Options of `-P` that a client or a server has, too.

use std::path::Path;

use super::events::early_bytes;
use super::fixture::{Server, folder};

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
