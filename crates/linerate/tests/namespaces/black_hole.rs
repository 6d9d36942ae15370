//! A path that drops packets of more than 1,280 bytes and tells nobody, as behind a tunnel whose ICMP is filtered.

use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, SERVER_V4, run};

const FILTER: &str = "table inet black_hole {\n\
    chain input { type filter hook input priority 0; meta length > 1280 drop; }\n}\n";

fn lower_into_black_hole(network: &Network) {
    let devices = [(&network.client, CLIENT_DEVICE), (&network.server, SERVER_DEVICE)];
    for (namespace, device) in devices {
        // A filter must see packets as they would be on a wire.
        run(&["ip", "-n", namespace, "link", "set", device, "gso_max_segs", "1"]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FILTER).unwrap();
        let path = file.path().to_str().unwrap();
        run(&["ip", "netns", "exec", namespace, "nft", "-f", path]).unwrap();
    }
}

#[test]
fn a_native_test_whose_packets_fit_keeps_its_result() {
    in_network(|network| {
        lower_into_black_hole(network);
        let server = Server::start(network);
        for words in [
            "stream --quic --time 1s",
            "stream --quic --down --time 1s",
            "rr --quic --time 1s",
            "stream --udp --size 1000 --rate 1M --flows 100 --time 1s",
            "rr --flows 100 --time 1s",
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            server.measure(&words).assert_complete();
        }
    });
}

#[test]
fn results_of_iperf3_come_in_segments_that_fit() {
    in_network(|network| {
        lower_into_black_hole(network);
        let _server = Spoken::start(network, &["iperf3", "-s", "--forceflush"], "-----");
        for form in ["-u -l 1000 -b 1M", "-R", "-M 1000", "-u -b 1M -l 1000 --get-server-output"] {
            let words = format!("iperf3 -c {SERVER_V4} -t 1 -P 16 {form}");
            let told = network.run_client(&words);
            assert!(told.contains("receiver"), "{words}: {told}");
        }
    });
}

#[test]
fn netperf_and_secnetperf_find_their_results_too() {
    in_network(|network| {
        lower_into_black_hole(network);
        let _netserver = Spoken::start(network, &["netserver", "-D", "-4"], "Starting netserver");
        for test in ["TCP_RR", "UDP_RR", "TCP_CRR"] {
            network.run_client(&format!("netperf -H {SERVER_V4} -t {test} -l 1"));
        }
        let _secnetperf = Spoken::start(network, &["secnetperf"], "Started!");
        let words = format!("secnetperf -target:{SERVER_V4} -pctput:1 -down:100kb");
        network.run_client(&words);
    });
}
