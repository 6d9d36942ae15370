//! Tests from an address that is one of its interface only to one that isn't.

use std::process::Command;

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, SERVER_V6, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// An address of the client's device, beside those that it has.
const LOCAL: &str = "fe80::77";

fn add_address(namespace: &str, address: &str, device: &str) {
    let place = ["ip", "-n", namespace, "addr", "add"];
    run(&[&place[..], &[&format!("{address}/64"), "dev", device, "nodad"]].concat()).unwrap();
}

fn run_client(network: &Network, words: &str) -> String {
    let namespace = ["netns", "exec", &network.client, PROGRAM];
    let output = Command::new("ip").args(namespace).args(words.split_whitespace()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn iperf3_at_a_link_local_address_keeps_its_interface_at_either_end() {
    in_network(|network| {
        let of_server = "fe80::78";
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        add_address(&network.server, of_server, SERVER_DEVICE);
        let bound = format!("{of_server}%{SERVER_DEVICE}");
        let _server = Spoken::start(network, &["iperf3", "-s", "-B", &bound], "Server listening");
        for form in ["-n 1M", "-u -n 100K -b 10M", "-u -n 100K -b 10M -R"] {
            let (bind, host) =
                (format!("{LOCAL}%{CLIENT_DEVICE}"), format!("{of_server}%{CLIENT_DEVICE}"));
            let text = run_client(network, &format!("iperf3 -c {host} -B {bind} {form}"));
            assert!(text.contains(&format!("local {LOCAL} port")), "{form}: {text}");
        }
    });
}

#[test]
fn netperf_from_a_link_local_address_keeps_its_interface() {
    in_network(|network| {
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        let _server = Spoken::start(network, &["netserver", "-D", "-6"], "Starting netserver");
        for test in ["TCP_RR", "TCP_CRR", "UDP_RR"] {
            let words = format!(
                "netperf -6 -L {LOCAL}%{CLIENT_DEVICE} -H {SERVER_V6} -P 0 -t {test} -l 1 -- -k \
                 THROUGHPUT"
            );
            let told = run_client(network, &words);
            let throughput = told.trim().strip_prefix("THROUGHPUT=").unwrap();
            assert!(throughput.parse::<f64>().unwrap() > 0.0, "{words}: {told}");
        }
    });
}
