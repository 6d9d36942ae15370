//! A rate that is asked for is kept.

use std::time::Duration;

use crate::delayed;
use crate::ends::Server;

/// How far a goodput may be from its rate.
const TOLERANCE: f64 = 0.03;
/// A sender that the machine held up doesn't make up for it, and a virtual machine may be held up without its kernel's
/// knowledge: a rate may need more than one go to be reached. It may never be surpassed.
const ATTEMPTS: u32 = 6;

#[track_caller]
fn assert_keeps(server: &Server, words: &str, bps: f64) {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let (document, delayed_s) = delayed::measure(server, words);
        let goodput = document.figure("goodput_bps");
        seen.push((goodput, delayed_s));
        assert!(goodput <= bps * (1.0 + TOLERANCE), "{words}: {seen:?}");
        // An end that has no processor sends nothing.
        if goodput >= bps * (1.0 - TOLERANCE - delayed_s / document.figure("elapsed_s")) {
            return;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("{words}: {seen:?}");
}

#[test]
fn a_rate_is_kept_within_three_percent() {
    let server = Server::start("");
    for (words, bps) in [
        ("--rate 1M", 1e6),
        ("--rate 100M", 100e6),
        ("--rate 100M --down --flows 4", 100e6),
        ("--rate 10M --size 100", 10e6),
        ("--rate-per-flow 20M --flows 3", 60e6),
        ("--tls --rate 100M", 100e6),
        ("--udp --rate 1M", 1e6),
        ("--udp --rate 100M", 100e6),
        ("--udp --rate-per-flow 10M --flows 2 --down", 20e6),
        ("--udp --rate 10M --size 64 --no-offload", 10e6),
        ("--both --rate 20M", 40e6),
    ] {
        assert_keeps(&server, &format!("stream {words} --time 1s"), bps);
    }
}

#[test]
fn few_datagrams_make_no_high_rate() {
    let server = Server::start("");
    for (words, bps) in
        [("--rate 10k", 10e3), ("--rate 50k --down", 50e3), ("--rate 500k --flows 9", 500e3)]
    {
        let document = server.measure(&format!("stream --udp {words} --time 1s")).document(0);
        // One datagram more than the rate has room for may have been sent in each flow.
        let one_more =
            1448.0 * 8.0 * document.report("client")["flows"].as_array().unwrap().len() as f64;
        let goodput = document.figure("goodput_bps");
        assert!(goodput <= (bps + one_more) * 1.03, "{words}: {goodput}");
    }
}
