//! Loads through a proxy come to the same as without one.

use rustix::process::Signal;

use super::fixture::Proxy;
use super::perf::{Server, results, run};

#[test]
fn bulk_data_passes_both_ways_and_the_summary_counts_it() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "");
    for words in ["-down:3000000", "-up:3000000"] {
        let ended = run(&proxy.words(words));
        assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"], "{words}");
    }
    let summary = proxy.stop(Signal::INT);
    assert_eq!((summary.exit_code, summary.narration.contains("linerate: can't")), (0, false));
    let row = |name: &str| summary.text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(summary.text.contains("2 connections, 0 refused, 0 failed"), "{}", summary.text);
    assert_eq!(row("bytes").matches("3.00 MB").count(), 2, "{}", summary.text);
}

#[test]
fn streams_of_many_connections_pass() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "");
    let ended = run(&proxy.words("-conns:50 -streams:20 -up:500 -down:2000"));
    assert_eq!(results(&ended), ["Completed 50 connections and 1000 streams!"]);
    let summary = proxy.stop(Signal::TERM);
    assert!(summary.text.contains("50 connections, 0 refused, 0 failed"), "{}", summary.text);
    assert!(summary.text.contains("1.00k streams"), "{}", summary.text);
}

#[test]
fn a_client_that_opens_streams_without_end_is_held_to_the_limit() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "--streams 3");
    let ended = run(&proxy.words("-streams:60 -up:700 -down:20000"));
    assert_eq!(results(&ended), ["Completed 1 connections and 60 streams!"]);
}

#[test]
fn two_proxies_in_a_row_are_a_path() {
    let server = Server::start("");
    let far = Proxy::start(server.port, "--wait-for-svr");
    let near = Proxy::start(far.port, "--wait-for-svr --iw 100 --buffer 64Ki");
    let ended = run(&near.words("-streams:5 -up:200000 -down:200000"));
    assert_eq!(results(&ended), ["Completed 1 connections and 5 streams!"]);
}
