//! Whom a server admits, and which server a client believes.

use std::fs;

use crate::ends::{Ended, Server};
use crate::quiet::free_port;

#[track_caller]
fn assert_refused(ended: &Ended, words: &[&str]) {
    let document = ended.document(4);
    assert_eq!(document.outcome(), "failed");
    for word in words {
        assert!(document.message().contains(word), "no {word:?} in: {}", document.message());
    }
}

#[test]
fn only_clients_with_the_shared_key_are_admitted() {
    let home = tempfile::TempDir::new().unwrap();
    fs::write(home.path().join("right"), "a long and secret key\n").unwrap();
    fs::write(home.path().join("wrong"), "another key\n").unwrap();
    let server = Server::start_in(home, "--require-key right");
    server.measure("rr --count 1 --key right").document(0);
    assert_refused(&server.measure("rr --count 1 --key wrong"), &["key"]);
    assert_refused(&server.measure("rr --count 1"), &["requires a key"]);
    server.measure("stream --udp --rate 1M --time 200ms --key right").document(0);
    // Where no key is asked for, one does no harm.
    let open = Server::start("");
    fs::write(open.home().join("any"), "any").unwrap();
    open.measure("rr --count 1 --key any").document(0);
}

#[test]
fn a_pinned_key_must_be_the_servers() {
    let server = Server::start("");
    let other = "0123456789abcdef".repeat(4);
    let words = format!("rr --count 1 --json --server-key {other}");
    let ended = server.start_client_of("127.0.0.1", &words).finish();
    assert_refused(&ended, &[&server.fingerprint, &other, "--server-key"]);
    // Whatever case the digits have.
    let words = format!("rr --count 1 --json --server-key {}", server.fingerprint.to_uppercase());
    server.start_client_of("127.0.0.1", &words).finish().document(0);
    assert!(!server.home().join("linerate/known_servers").exists());
}

#[test]
fn a_server_is_trusted_on_first_use_and_remembered() {
    let port = format!("--port {}", free_port());
    let server = Server::start(&port);
    let words = "rr --count 1 --json";
    let first = server.start_client_of("127.0.0.1", words).finish();
    first.document(0);
    assert!(first.stderr.contains("first time"), "{}", first.stderr);
    assert!(first.stderr.contains(&server.fingerprint), "{}", first.stderr);
    let list = server.home().join("linerate/known_servers");
    let remembered = fs::read_to_string(&list).unwrap();
    let line = format!("127.0.0.1:{} {}", server.port, server.fingerprint);
    assert!(remembered.lines().any(|found| found == line), "{remembered}");
    let again = server.start_client_of("127.0.0.1", words).finish();
    again.document(0);
    assert!(!again.stderr.contains("first time"), "{}", again.stderr);

    let (old, home) = (server.fingerprint.clone(), server.stop());
    fs::remove_file(home.path().join("linerate/server.pem")).unwrap();
    let server = Server::start_in(home, &port);
    assert_ne!(server.fingerprint, old);
    let ended = server.start_client_of("127.0.0.1", words).finish();
    assert_refused(&ended, &["has changed", &old, &server.fingerprint, "known_servers"]);
    assert_eq!(fs::read_to_string(&list).unwrap(), remembered);
    // As the sentence says, the new key can be trusted for one run.
    server.measure("rr --count 1").document(0);
}

#[test]
fn a_server_keeps_its_key() {
    let server = Server::start("");
    let fingerprint = server.fingerprint.clone();
    let server = Server::start_in(server.stop(), "");
    assert_eq!(server.fingerprint, fingerprint);
}
