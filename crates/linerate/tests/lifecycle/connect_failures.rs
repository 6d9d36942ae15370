//! Connections that come to nothing: each is counted under its own kind, and the test goes on.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

use crate::document::Document;
use crate::ends::{Client, Ended, Server, as_ordinary_user, copy_for_every_user};
use crate::front::{Fate, Front};
use crate::skipped::skip;

/// A run through a proxy in front of the server.
fn run(server: &Server, fate: Fate, words: &str) -> Ended {
    let front = Front::of(server, fate);
    let words = format!(
        "connect 127.0.0.1 --port {} --server-key {} --quiet {words}",
        front.port, server.fingerprint
    );
    Client::start(server.home(), &words).finish()
}

/// How many failed; no kind but this one may be there.
#[track_caller]
fn failures(document: &Document, kind: &str) -> u64 {
    let errors = &document.json()["summary"]["errors"];
    let kinds: Vec<&String> = errors.as_object().into_iter().flat_map(|all| all.keys()).collect();
    // A connection in the backlog of a listener that closes is reset.
    let others = if kind == "refused" { &["reset"][..] } else { &[] };
    let strange = kinds.iter().find(|found| **found != kind && !others.contains(&found.as_str()));
    assert!(strange.is_none(), "{}", document.json()["summary"]);
    errors[kind].as_u64().unwrap_or(0)
}

#[test]
fn every_failure_is_counted_by_its_own_kind_and_the_test_goes_on() {
    std::thread::scope(|scope| {
        for (fate, kind) in [
            (Fate::Reset, "reset"),
            (Fate::Closed, "closed_early"),
            (Fate::Silence, "timed_out"),
            (Fate::Absence, "refused"),
        ] {
            scope.spawn(move || {
                let server = Server::start("");
                for flags in ["", "--flows 4", "--tls --flows 2"] {
                    counted_as(&server, fate, kind, flags);
                }
            });
        }
    });
}

#[track_caller]
fn counted_as(server: &Server, fate: Fate, kind: &str, flags: &str) {
    let timeout = if fate == Fate::Silence { "100ms" } else { "5s" };
    let words = format!("--time 2s --timeout {timeout} --json {flags}");
    let document = run(server, fate, &words).document(0);
    let (failed, done) = (failures(&document, kind), document.count("transactions"));
    assert!(failed >= 5, "{kind} {flags}: {failed} failed, {done} did not");
    assert!(done >= 5, "{kind} {flags}: {done} did not fail");
    // Every other one, as far as they were of the measured time.
    if matches!(fate, Fate::Reset | Fate::Closed) {
        assert!(failed.abs_diff(done) <= 8, "{kind} {flags}: {failed} failed, {done} did not");
    }
}

#[test]
fn failures_are_part_of_what_was_due_and_stand_in_the_text() {
    let server = Server::start("");
    let words = "--rate 200 --flows 8 --time 1s";
    let document = run(&server, Fate::Reset, &format!("{words} --json")).document(0);
    let due = failures(&document, "reset")
        + document.count("transactions")
        + document.count("transactions_unsent");
    // Where the machine stands still the time ends later; what failed is about half of it.
    assert!((190..=260).contains(&due), "{due} were due: {}", document.json()["summary"]);
    let ended = run(&server, Fate::Closed, words);
    assert_eq!(ended.exit_code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("errors: closed_early"), "{}", ended.stdout);
}

#[test]
fn a_failure_that_both_ends_see_counts_once() {
    let server = Server::start("");
    // Some may be in time, or none.
    let words = "connect --rate 100 --flows 4 --response 16M --timeout 1ms --time 1s";
    let document = Document::parse(&server.measure(words).stdout);
    let failed = failures(&document, "timed_out");
    let due = failed + document.count("transactions") + document.count("transactions_unsent");
    let in_time = 100.0 * document.figure("elapsed_s");
    // The last go on when the time is up, and none is due any more. Counted twice they would be about 200.
    assert!((98.0..in_time + 20.0).contains(&(due as f64)), "{due} due of {in_time}");
    let seen = document.report("server")["errors"]["reset"].as_u64();
    assert!(failed > 0 && seen.is_some_and(|seen| seen > 0), "{failed} failed, {seen:?} seen");
}

#[test]
fn ports_that_are_too_few_are_exhausted_and_those_there_are_serve_on() {
    let server = Server::start("");
    // Eight at once, of which four find a port.
    let words = "connect --source-ports 21900-21903 --close rst --flows 8 --threads 1 --time 500ms";
    let document = server.measure(words).document(0);
    let (failed, done) = (failures(&document, "ports_exhausted"), document.count("transactions"));
    assert!(failed > 10 && done > 10, "{failed} failed, {done} did not");
}

#[test]
fn a_local_address_of_another_machine_is_refused_by_name_before_the_load() {
    let server = Server::start("");
    for (words, address) in [
        ("connect --count 10 --bind 127.0.0.1,192.0.2.7", "192.0.2.7"),
        ("connect --tls --source-ports 21940-21949 --bind 127.0.0.1,192.0.2.7", "192.0.2.7"),
        ("connect --count 10 --bind 127.0.0.1,192.0.2.0/29", "192.0.2.1"),
        ("connect --quic --flows 2 --threads 2 --bind 127.0.0.1,192.0.2.7", "192.0.2.7"),
        ("rr --flows 2 --bind 127.0.0.1,192.0.2.7", "192.0.2.7"),
        ("stream --udp --bind 192.0.2.7", "192.0.2.7"),
    ] {
        let document = server.measure(words).document(1);
        let sentence = format!("{address} isn't an address of this machine");
        assert!(document.message().contains(&sentence), "{words}: {}", document.message());
    }
    // The others aren't used.
    server.measure("rr --count 5 --bind 127.0.0.1,192.0.2.7").document(0);
    let shared = "rr --quic --count 8 --flows 4 --streams 4 --threads 2 --bind 127.0.0.1,192.0.2.7";
    server.measure(shared).document(0);
}

#[test]
fn source_ports_that_take_a_privilege_are_refused_by_name_before_the_load() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() <= 1 {
        return skip("every user may use port 1 here");
    }
    let server = Server::start("");
    let home = tempfile::tempdir().unwrap();
    let program = copy_for_every_user(home.path());
    let words =
        format!("connect 127.0.0.1 --port {} --source-ports 1-100 --json --quiet", server.port);
    let output = as_ordinary_user(&program)
        .args(words.split_whitespace())
        .args(["--server-key", &server.fingerprint])
        .env("HOME", home.path())
        .output()
        .unwrap();
    let document = Document::parse(&String::from_utf8(output.stdout).unwrap());
    let message = document.message();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("may not use port 1 (--source-ports 1-100)"), "{message}");
    assert!(message.contains("CAP_NET_BIND_SERVICE"), "{message}");
}

#[test]
fn descriptors_that_run_out_are_counted_until_there_are_more() {
    let server = Server::start("");
    let client = server.start_client("connect --flows 4 --time 2s");
    server.await_record("test_started");
    sleep(Duration::from_millis(300));
    let pid = Pid::from_raw(client.pid().cast_signed());
    // The client has raised its limit as far as it goes.
    let most = getrlimit(Resource::Nofile).maximum;
    let limit = |current| Rlimit { current, maximum: most };
    prlimit(pid, Resource::Nofile, limit(Some(3))).unwrap();
    sleep(Duration::from_millis(300));
    prlimit(pid, Resource::Nofile, limit(most)).unwrap();
    let document = client.finish().document(0);
    assert!(failures(&document, "descriptors_exhausted") > 10, "{}", document.json()["summary"]);
    let goes_on = |sample: &&Value| {
        let later = sample["from_ns"].as_u64().is_some_and(|from_ns| from_ns >= 1_000_000_000);
        later && sample["transactions"].as_u64().is_some_and(|count| count > 10)
    };
    let samples = document.samples("client");
    assert!(samples.iter().any(goes_on), "{samples:?}");
}
