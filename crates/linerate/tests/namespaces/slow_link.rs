//! Tests whose load holds up, or drowns, what tells that their client is there.

use std::process::Command;

use crate::emulator::Emulator;
use crate::ends::Spoken;
use crate::network::SERVER_V4;
use crate::skipped;

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
        Err(why) => return skipped(&why),
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
