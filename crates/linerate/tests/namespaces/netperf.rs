//! netperf between two hosts: the kernel's own counters are the judge.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{Network, SERVER_DEVICE, SERVER_V4, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

fn start_netserver(network: &Network) -> Spoken {
    Spoken::start(network, &["netserver", "-D", "-4"], "Starting netserver")
}

fn netperf(network: &Network, words: &str) -> Output {
    let namespace = ["netns", "exec", &network.client, PROGRAM, "netperf", "-P", "0"];
    let output = Command::new("ip").args(namespace).args(words.split_whitespace()).output();
    let output = output.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words}: {output:?}");
    output
}

fn figure(output: &Output, name: &str) -> f64 {
    let told = String::from_utf8_lossy(&output.stdout);
    let found = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {told}")).parse().unwrap()
}

#[test]
fn connections_take_one_local_port_after_the_other_from_the_one_that_was_told() {
    for test in ["TCP_CRR", "TCP_CC"] {
        in_network(|network| {
            network.filter(
                "table inet linerate {\n\
                 counter first {}\ncounter walked {}\ncounter elsewhere {}\n\
                 chain input { type filter hook input priority 0;\n\
                 tcp flags & (syn | ack) == syn tcp dport != 12865 goto opened; }\n\
                 chain opened {\n\
                 tcp sport 20000 counter name first\n\
                 tcp sport 20000-20509 counter name walked return\n\
                 counter name elsewhere; }\n}\n",
            );
            let _server = start_netserver(network);
            netperf(network, &format!("-H {SERVER_V4} -t {test} -l -500 -- -P 20000"));
            let counted = ["first", "walked", "elsewhere"].map(|name| network.counted(name));
            let [first, walked, elsewhere] = counted;
            assert!(walked >= 500 && elsewhere == 0, "{test}: {counted:?}");
            // A segment may be sent again.
            assert!((1..=2).contains(&first), "{test}: {counted:?}");
        });
    }
}

#[test]
fn a_stream_over_a_slow_link_ends_soon_after_its_length_with_what_arrived() {
    in_network(|network| {
        network.limit_rate("256kbit", "1s");
        let _server = start_netserver(network);
        for test in ["TCP_STREAM", "TCP_SENDFILE"] {
            let began = Instant::now();
            // Half a minute of the link's rate waits in the sender's socket.
            let words = "-- -s 1M -k THROUGHPUT,REMOTE_BYTES_RECVD,LOCAL_BYTES_SENT";
            let output = netperf(network, &format!("-H {SERVER_V4} -t {test} -l 2 {words}"));
            let elapsed = began.elapsed();
            assert!(elapsed < Duration::from_secs(20), "{test}: {elapsed:?}");
            let mbps = figure(&output, "THROUGHPUT");
            // The link's bucket has 32 kB beyond its rate.
            assert!((0.05..0.32).contains(&mbps), "{test}: {mbps}");
            let [sent, arrived] =
                ["LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"].map(|name| figure(&output, name));
            assert!(sent > arrived && arrived > 0.0, "{test}: {output:?}");
        }
    });
}

#[test]
fn a_netserver_with_two_addresses_sends_datagrams_from_the_one_that_was_asked() {
    in_network(|network| {
        let other = "10.98.77.66";
        let address = format!("{other}/32");
        run(&["ip", "-n", &network.server, "addr", "add", &address, "dev", SERVER_DEVICE]).unwrap();
        let route = ["ip", "-n", &network.client, "route", "add", &address, "via", SERVER_V4];
        run(&route).unwrap();
        let _server = start_netserver(network);
        for host in [other, SERVER_V4] {
            for (test, options, count) in [
                ("UDP_RR", "", "REMOTE_RECV_CALLS"),
                ("UDP_STREAM", "-m 100", "REMOTE_RECV_CALLS"),
                ("omni", "-T udp -d recv -m ,100", "LOCAL_RECV_CALLS"),
            ] {
                let words = format!("-H {host} -t {test} -l 1 -- {options} -k {count}");
                let output = netperf(network, &words);
                assert!(figure(&output, count) > 10.0, "{words}: {output:?}");
            }
        }
    });
}
