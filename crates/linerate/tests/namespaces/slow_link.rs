//! Tests whose load holds up, or drowns, what tells that their client is there.

use std::process::Command;

use crate::emulator::Emulator;
use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::SERVER_V4;
use crate::skipped::skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// A queue of some eight seconds, which a client's load fills.
const SLOW: &str = "
    [to_right]
    rate = '1Mbit/s'
    queue = '1000 packets'
";

#[test]
fn a_load_that_fills_a_queue_of_seconds_ends_no_test_of_netperf() {
    let emulator = match Emulator::start(SLOW) {
        Ok(emulator) => emulator,
        Err(why) => return skip(&why),
    };
    let network = &emulator.network;
    let _server = Spoken::start(network, &["netserver", "-D", "-4"], "Starting netserver");
    // Sixteen times what the link carries.
    let words = format!(
        "netperf -4 -H {SERVER_V4} -P 0 -t UDP_STREAM -l 10 -b 20 -w 10m -- -m 1000 -k \
         REMOTE_RECV_CALLS"
    );
    let namespace = ["netns", "exec", &network.client, PROGRAM];
    let output =
        Command::new("ip").args(namespace).args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let received = told.trim().strip_prefix("REMOTE_RECV_CALLS=").unwrap();
    // A datagram takes some eight milliseconds.
    let received: u32 = received.parse().unwrap();
    assert!((1000..2000).contains(&received), "{told}");
}

#[test]
fn a_bulk_test_over_a_healthy_slow_link_is_complete_and_ends_soon() {
    in_network(|network| {
        // Half a second of queue on the sender's own device, minutes of it in the sender's socket.
        network.limit_rate("512kbit", "500ms");
        let server = Server::start(network);
        for load in [&["stream"][..], &["stream", "--tls"], &["stream", "--quic"]] {
            let document = server.measure(&[load, &["--time", "3s"]].concat());
            document.assert_complete();
            let goodput_bps = document.figure("/summary/goodput_bps");
            assert!((300e3..=515e3).contains(&goodput_bps), "{load:?}: {goodput_bps}");
            // The receiver's time has the drain in it: ten round trips, and 3 s where those are less.
            let elapsed_ns = document.report("server")["elapsed_ns"].as_u64().unwrap();
            assert!(elapsed_ns < 26_000_000_000, "{load:?}: {elapsed_ns}");
        }
    });
}
