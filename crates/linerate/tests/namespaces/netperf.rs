//! netperf between two hosts: the kernel's own counters are the judge.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use linerate_measure::Run;

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
fn a_test_ends_on_time_though_the_path_is_down_and_what_is_outstanding_counts_neither_way() {
    const TESTS: [&str; 6] =
        ["TCP_RR", "TCP_RR -- -b 4", "UDP_RR", "TCP_CRR", "TCP_CC", "TCP_MAERTS"];
    in_network(|network| {
        let _server = start_netserver(network);
        let documents = tempfile::tempdir().unwrap();
        let path = |place: usize| documents.path().join(format!("{place}.json"));
        let clients: Vec<_> = (0..)
            .zip(TESTS)
            .map(|(place, test)| {
                let behind = if test.contains("--") { "" } else { "--" };
                let words = format!("-H {SERVER_V4} -l 2 -t {test} {behind} -k ELAPSED_TIME");
                let namespace = ["netns", "exec", &network.client, PROGRAM, "netperf", "-P", "0"];
                let mut client = Command::new("ip");
                client.args(namespace).args(words.split_whitespace());
                client.env("LINERATE_RUN_DOCUMENT", path(place));
                client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(1_500));
        network.filter(
            "table inet linerate {\nchain input { type filter hook input priority 0; drop; }\n\
             chain output { type filter hook output priority 0; drop; }\n}\n",
        );
        std::thread::sleep(Duration::from_millis(3_500));
        run(&["ip", "netns", "exec", &network.server, "nft", "flush", "ruleset"]).unwrap();
        for ((place, test), client) in (0..).zip(TESTS).zip(clients) {
            let output = client.wait_with_output().unwrap();
            assert!(output.status.success(), "{test}: {output:?}");
            let elapsed_s = figure(&output, "ELAPSED_TIME");
            assert!((1.5..4.0).contains(&elapsed_s), "{test}: {output:?}");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!told.contains("no response"), "{test}: {told}");
            let document = std::fs::read_to_string(path(place)).unwrap();
            let run: Run = serde_json::from_str(&document).unwrap();
            assert!(run.summary.errors.is_empty(), "{test}: {:?}", run.summary.errors);
            assert!(run.summary.transactions_lost.unwrap_or(0) == 0, "{test}: {:?}", run.summary);
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
