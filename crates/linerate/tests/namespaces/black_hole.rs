//! A path that drops packets of more than 1,280 bytes and tells nobody, as behind a tunnel whose ICMP is filtered.

use std::thread::sleep;
use std::time::Duration;

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

/// The server counts the packets behind the handshake that are longer than 1,300 bytes, and either end drops those that
/// arrive if asked to. They have a short header (RFC 9000, section 17.3).
fn filter_long(network: &Network, verdict: &str) {
    let long = "meta l4proto udp @th,64,2 == 1 udp length > 1300 counter name long";
    for (namespace, leaving) in [(&network.client, ""), (&network.server, long)] {
        let rules = format!(
            "flush ruleset; table inet linerate {{
                counter long {{ }}
                chain arriving {{
                    type filter hook input priority 0
                    {long} {verdict}
                }}
                chain leaving {{
                    type filter hook output priority 0
                    {leaving}
                }}
            }}"
        );
        run(&["ip", "netns", "exec", namespace, "nft", &rules]).unwrap();
    }
}

/// Packets of which all long ones get lost for a second look like such a path.
#[test]
fn long_quic_datagrams_outlive_an_outage() {
    in_network(|network| {
        let server = Server::start(network);
        // What is found while the outage lasts holds for 5 s.
        for (load, way) in [
            ("--time 6s --mtu 1400", "--up"),
            ("--time 6s --mtu 1400", "--down"),
            ("--time 12s", "--up"),
        ] {
            let words = format!("stream --quic --datagram --size 1300 --rate 10M {load}");
            let words = words.split_whitespace().chain(["--no-offload", way]).collect::<Vec<_>>();
            filter_long(network, "");
            let client = server.start_client(&words);
            while network.counted("long") < 100 && client.is_running() {
                sleep(Duration::from_millis(50));
            }
            filter_long(network, "drop");
            sleep(Duration::from_secs(1));
            let dropped = network.counted("long");
            filter_long(network, "");
            let run = client.finish().document;
            assert!(dropped > 0, "nothing was dropped");
            let role = if way == "--up" { "client" } else { "server" };
            let mtu_bytes = run.report(role)["flows"][0]["quic"]["mtu_bytes"].as_u64().unwrap();
            let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
            assert!(count("lost") >= dropped, "{words:?}: {} of {dropped}", count("lost"));
            assert!(count("received") > 500, "{words:?}: {}", run.json());
            if !load.contains("--mtu") {
                // Those of the outage were too long for its packets. If a result may not lack so many, it says so.
                let (status, refused) = (&run.json()["status"], count("refused"));
                let message = status["message"].as_str().unwrap_or_default();
                let is_told = message.contains(&format!("the sender {refused},"));
                assert!(status["outcome"] == "complete" || is_told, "{refused}: {status}");
                assert!(0 < refused && refused < count("received"), "{refused}: {status}");
                assert!(mtu_bytes > 1_300, "{mtu_bytes}");
            } else {
                run.assert_complete();
                assert_eq!((mtu_bytes, count("refused")), (1_400, 0), "{words:?}");
            }
        }
    });
}

#[test]
fn a_fixed_length_that_does_not_fit_is_named() {
    in_network(|network| {
        lower_into_black_hole(network);
        let server = Server::start(network);
        for words in ["stream --quic --mtu 1400", "rr --quic --datagram --mtu 1400"] {
            let words: Vec<&str> = words.split(' ').collect();
            let told = server.measure(&words).json().to_string();
            assert!(told.contains("packets of 1400 bytes were asked for"), "{words:?}: {told}");
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
