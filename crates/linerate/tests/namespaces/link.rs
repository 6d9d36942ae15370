//! A link that goes down for a second in the middle of a run.

use std::time::Duration;

use crate::document::Document;
use crate::ends::Server;
use crate::in_network;
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
fn longest_silence(received_bytes: &[u64]) -> usize {
    let arrived = |bytes: &u64| *bytes > 0;
    let first = received_bytes.iter().position(arrived).expect("something arrived");
    let last = received_bytes.iter().rposition(arrived).expect("something arrived");
    let between = received_bytes[first..=last].split(arrived);
    between.map(<[u64]>::len).max().unwrap_or(0)
}

#[test]
fn udp_result_says_that_the_link_was_down() {
    in_network(|network| {
        let run =
            measure_across_outage(network, &["stream", "--udp", "--rate", "20M", "--size", "1000"]);
        let received = run.received_bytes("server");
        let silent = longest_silence(&received);
        assert!((7..=16).contains(&silent), "{silent} intervals without a byte: {received:?}");
        let datagrams = &run.json()["summary"]["datagrams"];
        let count = |name: &str| datagrams[name].as_u64().unwrap_or(0) as f64;
        let missing = (count("lost") + count("refused")) / (count("sent") + count("refused"));
        assert!((0.15..0.40).contains(&missing), "a second of four: {datagrams}");
    });
}

#[test]
fn tcp_result_says_that_the_link_was_down() {
    in_network(|network| {
        let run = measure_across_outage(network, &["stream", "--rate", "20M"]);
        let received = run.received_bytes("server");
        let silent = longest_silence(&received);
        assert!((7..=25).contains(&silent), "{silent} intervals without a byte: {received:?}");
        // At this rate data are unacknowledged for some milliseconds in all, but for the outage.
        let busy_us = run.report("client")["flows"][0]["tcp"]["busy_us"].as_u64().unwrap();
        assert!((800_000..2_500_000).contains(&busy_us), "{busy_us} us with unacknowledged data");
    });
}
