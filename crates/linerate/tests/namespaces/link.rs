//! A link that goes down for a second in the middle of a run.

use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use crate::alone_in_network;
use crate::document::Document;
use crate::ends::Server;
use crate::network::Network;

/// The link is down from here, after the client's start, for a second.
const DOWN_AFTER: Duration = Duration::from_millis(1500);

/// Length of a sample.
const INTERVAL: &str = "100ms";

fn measure_across_outage(network: &Network, flags: &[&str]) -> Document {
    let server = Server::start(network);
    let client = server.start_client(&[flags, &["--time", "4s", "--interval", INTERVAL]].concat());
    client.sleep_until(DOWN_AFTER);
    network.set_server_link("down");
    client.sleep_until(DOWN_AFTER + Duration::from_secs(1));
    network.set_server_link("up");
    let finished = client.finish();
    assert!(
        [0, 6].contains(&finished.exit_code),
        "a link that comes back ends no run: {}",
        finished.document.json()["status"]
    );
    finished.document
}

/// The longest row of intervals in which nothing arrived, though something did before and after.
fn longest_silence(received_bytes: &[u64]) -> Range<usize> {
    let mut longest = 0..0;
    let mut from = received_bytes.iter().position(|bytes| *bytes > 0).expect("something arrived");
    for (index, _) in received_bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
        if index > from && index - from - 1 > longest.len() {
            longest = from + 1..index;
        }
        from = index;
    }
    longest
}

/// The link was down for a second. All of an interval without a byte lies in what was noticed of it, and the intervals
/// around them hold its beginning and its end.
#[track_caller]
fn assert_silent_for_a_second(run: &Document, silent: &Range<usize>, most_s: f64) {
    let samples = run.samples("server");
    let at_s = |index: usize, end: &str| samples[index][end].as_f64().unwrap() / 1e9;
    let told = format!("{silent:?}: {:?}", run.received_bytes("server"));
    assert!(!silent.is_empty(), "{told}");
    let within_s = at_s(silent.end - 1, "to_ns") - at_s(silent.start, "from_ns");
    let around_s = at_s(silent.end, "to_ns") - at_s(silent.start - 1, "from_ns");
    assert!(around_s > 0.9 && within_s < most_s, "{within_s} to {around_s} s: {told}");
}

/// The share of some intervals in which the sender had unacknowledged data, by the kernel.
fn busy_share(run: &Document, intervals: &Range<usize>) -> f64 {
    let samples = run.samples("client");
    let at = |index: usize, place: &str| {
        samples[index].pointer(place).and_then(Value::as_f64).expect("a figure in each sample")
    };
    let (first, last) = (intervals.start, intervals.end - 1);
    let since = |place: &str| at(last, place) - at(first, place);
    since("/flows/0/tcp/busy_us") * 1000.0 / since("/to_ns")
}

#[test]
fn udp_result_says_that_the_link_was_down() {
    alone_in_network(|network| {
        let run =
            measure_across_outage(network, &["stream", "--udp", "--rate", "20M", "--size", "1000"]);
        assert_silent_for_a_second(&run, &longest_silence(&run.received_bytes("server")), 1.6);
        let datagrams = &run.json()["summary"]["datagrams"];
        let count = |name: &str| datagrams[name].as_u64().unwrap_or(0) as f64;
        // Of what was to be sent: a sender without a processor sends less at other times.
        let missing = (count("lost") + count("refused")) / 10_000.0;
        let is_late = count("sent") + count("refused") < 9_500.0;
        assert!(missing < 0.40 && (missing > 0.15 || is_late), "a second of four: {datagrams}");
    });
}

#[test]
fn tcp_result_says_that_the_link_was_down() {
    alone_in_network(|network| {
        let run = measure_across_outage(network, &["stream", "--rate", "20M"]);
        let silent = longest_silence(&run.received_bytes("server"));
        // What was on its way is sent again at a time-out.
        assert_silent_for_a_second(&run, &silent, 2.5);
        let busy = busy_share(&run, &silent);
        assert!(busy > 0.9, "unacknowledged data in {busy} of the outage");
    });
}
