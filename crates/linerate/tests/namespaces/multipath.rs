//! Streams of iperf3 over MPTCP, of which a second path joins each when it stands.

use crate::skipped::skip;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_V4, run};

const SECOND_ADDRESS: &str = "10.77.0.9";

/// Connections of the client's from its second address.
fn joined(network: &Network) -> usize {
    let text = run(&["ip", "netns", "exec", &network.client, "ss", "-tnH", "state", "established"]);
    text.unwrap().lines().filter(|line| line.contains(SECOND_ADDRESS)).count()
}

/// [`joined`] once it is as expected, or after a while.
fn joined_soon(network: &Network, expected: usize) -> usize {
    let started = Instant::now();
    loop {
        let count = joined(network);
        if count == expected || started.elapsed() > Duration::from_secs(5) {
            return count;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn further_paths_join_the_streams() {
    in_network(|network| {
        let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
        if enabled.trim() != "1" {
            return skip("this kernel has no MPTCP");
        }
        network.add_client_address(&format!("{SECOND_ADDRESS}/24"));
        let mptcp = |namespace: &str, words: &[&str]| {
            run(&[&["ip", "-n", namespace, "mptcp"], words].concat()).unwrap();
        };
        for namespace in [&network.client, &network.server] {
            mptcp(namespace, &["limits", "set", "subflow", "2"]);
        }
        mptcp(
            &network.client,
            &["endpoint", "add", SECOND_ADDRESS, "dev", CLIENT_DEVICE, "subflow"],
        );
        let _server = Spoken::start(network, &["iperf3", "-s"], "Server listening on 5201");
        for _ in 0..2 {
            let mut client = Command::new("ip")
                .args(["netns", "exec", &network.client, env!("CARGO_BIN_EXE_linerate")])
                .args(["iperf3", "-c", SERVER_V4, "-m", "-P", "2", "-t", "2"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            assert_eq!(joined_soon(network, 2), 2);
            assert!(client.wait().unwrap().success());
            // Those that are still closing aren't the next test's.
            assert_eq!(joined_soon(network, 0), 0);
        }
    });
}
