//! netperf's requests that go with their connection: the kernel's own counter is the judge.

use std::process::Command;

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{Network, SERVER_V4, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
const PORT: &str = "12865";

/// Connections of the client's whose first bytes went with them and were taken.
fn opened_fast(network: &Network) -> u64 {
    let text = run(&["ip", "netns", "exec", &network.client, "cat", "/proc/net/netstat"]).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(name, _)| *name == "TCPFastOpenActive").unwrap().1.parse().unwrap()
}

#[test]
fn requests_go_with_their_connections_once_the_server_has_given_its_cookie() {
    in_network(|network| {
        network.set_client_sysctl("net.ipv4.tcp_fastopen", "1");
        let allow = "echo 2 > /proc/sys/net/ipv4/tcp_fastopen";
        run(&["ip", "netns", "exec", &network.server, "sh", "-c", allow]).unwrap();
        let words = ["netserver", "-D", "-4", "-p", PORT];
        let _server = Spoken::start(network, &words, "Starting netserver");
        let mut before = opened_fast(network);
        for (test, least) in [("TCP_CRR", 10), ("TCP_RR", 1), ("TCP_STREAM", 1)] {
            let words = ["netns", "exec", &network.client, PROGRAM, "netperf", "-P", "0"];
            let asked = ["-H", SERVER_V4, "-p", PORT, "-t", test, "-l", "-20", "--", "-F"];
            let output = Command::new("ip").args(words).args(asked).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let after = opened_fast(network);
            assert!(after - before >= least, "{test}: {before} to {after}");
            before = after;
        }
    });
}
