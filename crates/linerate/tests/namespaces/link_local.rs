//! Tests from an address that is one of its interface only to one that isn't.

use std::process::Command;

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{CLIENT_DEVICE, SERVER_V6, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// An address of the client's device, beside those that it has.
const LOCAL: &str = "fe80::77";

#[test]
fn netperf_from_a_link_local_address_keeps_its_interface() {
    in_network(|network| {
        let device = ["ip", "-n", &network.client, "addr", "add", "fe80::77/64", "dev"];
        run(&[&device[..], &[CLIENT_DEVICE, "nodad"]].concat()).unwrap();
        let _server = Spoken::start(network, &["netserver", "-D", "-6"], "Starting netserver");
        for test in ["TCP_RR", "TCP_CRR", "UDP_RR"] {
            let words = format!(
                "netperf -6 -L {LOCAL}%{CLIENT_DEVICE} -H {SERVER_V6} -P 0 -t {test} -l 1 -- -k \
                 THROUGHPUT"
            );
            let namespace = ["netns", "exec", &network.client, PROGRAM];
            let output =
                Command::new("ip").args(namespace).args(words.split_whitespace()).output().unwrap();
            assert!(output.status.success(), "{words}: {output:?}");
            let told = String::from_utf8(output.stdout).unwrap();
            let throughput = told.trim().strip_prefix("THROUGHPUT=").unwrap();
            assert!(throughput.parse::<f64>().unwrap() > 0.0, "{words}: {told}");
        }
    });
}
