//! How long QUIC's packets get on paths whose links carry this much and that.

use serde_json::Value;

use crate::document::Document;
use crate::ends::{Finished, Server};
use crate::network::Network;
use crate::{alone_in_network, in_network};

/// The last `quic` of an end's flow.
fn quic<'a>(run: &'a Document, role: &str, flow: usize) -> &'a Value {
    &run.report(role)["flows"][flow]["quic"]
}

/// What each end has found over IPv4 and over IPv6.
fn found(network: &Network, time: &str) -> Vec<[u64; 2]> {
    let server = Server::start(network);
    let words = ["stream", "--quic", "--both", "--rate", "20M", "--time", time];
    let runs = [server.start_client(&words), server.start_client_v6(&words)];
    let runs = runs.map(|client| client.finish().document);
    let bytes = |run: &Document| {
        run.assert_complete();
        ["client", "server"].map(|role| quic(run, role, 0)["mtu_bytes"].as_u64().unwrap())
    };
    runs.iter().map(bytes).collect()
}

/// A search that a busy machine slows down gets more time.
fn assert_found(network: &Network, expected: [[u64; 2]; 2]) {
    let first = found(network, "500ms");
    if first != expected {
        assert_eq!(found(network, "4s"), expected, "first {first:?}");
    }
}

#[test]
fn quic_finds_what_the_link_carries() {
    in_network(|network| {
        assert_found(network, [[1_472; 2], [1_452; 2]]);
        network.set_mtu(9_000);
        assert_found(network, [[8_972; 2], [8_952; 2]]);
        // No frame is taken to be longer than that.
        network.set_mtu(20_000);
        assert_found(network, [[8_972; 2], [8_952; 2]]);
    });
}

/// Both links carry 9,000 bytes and something between them 1,500, and says nothing of what it drops.
#[test]
fn quic_finds_what_the_middle_of_a_path_carries_and_no_probe_is_congestion() {
    alone_in_network(|network| {
        network.set_mtu(9_000);
        network.filter(
            "table inet linerate {
                counter arrived { }
                counter left { }
                chain arriving {
                    type filter hook input priority 0; policy accept;
                    meta l4proto udp meta length > 1500 counter name arrived drop
                }
                chain leaving {
                    type filter hook output priority 0; policy accept;
                    meta l4proto udp meta length > 1500 counter name left drop
                }
            }
            ",
        );
        let server = Server::start(network);
        let words = ["stream", "--quic", "--both", "--verify", "--rate", "10M", "--no-offload"];
        // As many bytes as 3 s take: an end without a processor sends fewer in the same time.
        let client = server.start_client(&[&words[..], &["--bytes", "3750k"]].concat());
        let Finished { document: run, delayed_s, .. } = client.finish();
        run.assert_complete();
        for (role, flow, probes) in [("client", 0, "arrived"), ("server", 1, "left")] {
            let quic = quic(&run, role, flow);
            let count = |name: &str| quic[name].as_u64().unwrap();
            // The search ends when it is within 20 bytes of the truth.
            assert!((1_452..=1_472).contains(&count("mtu_bytes")), "{role}: {quic}");
            // On two connections seven lengths are three times too long, and no other packet is.
            let probes = network.counted(probes);
            assert!((42..=60).contains(&probes), "{role}: {probes} dropped: {quic}");
            assert!(count("sent_packets") > 1_000, "{role}: {quic}");
            assert_eq!(
                (count("lost_packets"), count("congestion_events")),
                (0, 0),
                "{role}: {quic}"
            );
        }
        // An end that has no processor sends nothing.
        let goodput_bps = run.figure("/summary/goodput_bps");
        let range = 20e6 * (0.9 - delayed_s / run.figure("/summary/elapsed_s"))..=22e6;
        assert!(range.contains(&goodput_bps), "{goodput_bps} of {range:?}");
    });
}
