//! Tests from an address that is one of its interface only to one that isn't.

use std::process::Command;

use crate::ends::{Server, Spoken};
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

#[test]
fn a_server_with_two_addresses_answers_from_the_one_that_was_asked() {
    in_network(|network| {
        let second = "fd00:6c72:2::2";
        add_address(&network.server, second, SERVER_DEVICE);
        let other = "10.98.77.66";
        run(&[
            "ip",
            "-n",
            &network.server,
            "addr",
            "add",
            &format!("{other}/32"),
            "dev",
            SERVER_DEVICE,
        ])
        .unwrap();
        let route = ["ip", "-n", &network.client, "route", "add"];
        for to in [format!("{other}/32"), format!("{second}/128")] {
            run(&[&route[..], &[&to, "dev", CLIENT_DEVICE]].concat()).unwrap();
        }
        let server = Server::start(network);
        for host in [other.to_owned(), format!("[{second}]")] {
            for load in [&["rr", "--udp"][..], &["rr", "--quic"], &["connect", "--quic"]] {
                server.start_client_at(&host, &[load, &["--count", "5"]].concat()).finish();
            }
        }
    });
}
