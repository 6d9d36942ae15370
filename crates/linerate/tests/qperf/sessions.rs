//! Sessions that outlive the programs of both ends.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::events::early_bytes;
use super::fixture::{Server, folder};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn each_run_after_the_first_asks_before_the_handshake_is_done_though_both_ends_restart() {
    let mut folder = folder();
    for run in 0..4 {
        let server = Server::start_in(folder, "--session-cache cache", |_| ());
        let ended = server.client("-t 1 --session session --events events");
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "run {run}");
        assert!(ended.stdout.contains("total: bytes received: "), "{}", ended.stdout);
        let (served, kept) = server.stop();
        assert!(served.stdout.contains("binding 0 stream 0 opened\n"), "{}", served.stdout);
        let early = early_bytes(&kept.path().join("events"));
        assert_eq!(early, if run == 0 { 0 } else { 19 }, "run {run}");
        for name in ["session", "cache"] {
            assert_eq!(mode(&kept.path().join(name)), 0o600, "{name}");
        }
        folder = kept;
    }
}

#[test]
fn a_server_that_forgot_the_session_is_asked_once_more() {
    let server = Server::start_in(folder(), "--session-cache cache", |_| ());
    assert_eq!(server.client("-e --session session").exit_code, 0);
    let (_served, folder) = server.stop();
    std::fs::remove_file(folder.path().join("cache")).unwrap();
    for words in ["", "--session-cache cache"] {
        let copy = super::fixture::folder();
        std::fs::copy(folder.path().join("session"), copy.path().join("session")).unwrap();
        let server = Server::start_in(copy, words, |_| ());
        let ended = server.client("-t 1 --session session --events events");
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{words}");
        let total = ended.stdout.rsplit_once("total: bytes received: ").unwrap().1;
        assert!(!total.starts_with("0,"), "{}", ended.stdout);
        let (served, copy) = server.stop();
        assert_eq!(served.stdout.matches("request received").count(), 1, "{}", served.stdout);
        assert_eq!(early_bytes(&copy.path().join("events")), 19, "it was tried");
    }
}

#[test]
fn draft_29_and_a_new_address_resume_too() {
    let server = Server::start_in(folder(), "--session-cache cache", |_| ());
    for run in 0..2 {
        let words = "-e --quic-version draft-29 --session session --events events";
        assert_eq!(server.client(words).exit_code, 0);
        let early = early_bytes(&server.folder.path().join("events"));
        assert_eq!(early, 19 * run, "run {run}");
    }
}

#[test]
fn a_file_that_is_no_session_is_told_and_kept() {
    let server = Server::start("");
    let path = server.folder.path().join("notes");
    std::fs::write(&path, "mine").unwrap();
    let ended = server.client("-e --session notes");
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("can't read the session in notes"), "{}", ended.stderr);
    let ended = super::fixture::run("-s --session-cache notes", server.folder.path());
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("can't read the session cache notes"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let ended = server.client("-e --session nowhere/session");
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "no ticket came");
}
