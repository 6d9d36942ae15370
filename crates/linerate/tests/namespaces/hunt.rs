//! Hunts over a path whose rate the kernel limits: judged only by trials whose rate the sender offered.

use crate::ends::Server;
use crate::in_network;

/// The kernel's own limiter, at the receiving host. It counts packets: of bytes, a limiter would save up what a whole
/// second lets through.
fn limiter(packets_per_s: u32) -> String {
    format!(
        "table inet linerate {{
            chain arriving {{
                type filter hook input priority 0; policy accept;
                meta l4proto udp limit rate over {packets_per_s}/second burst 20 packets drop
            }}
        }}
        "
    )
}

#[test]
fn the_rate_of_a_limiter_is_found_where_the_sender_offers_rates_evenly() {
    in_network(|network| {
        network.filter(&limiter(2_000));
        let server = Server::start(network);
        let flags = ["hunt", "--rate", "1M..40M", "--size", "500", "--loss", "1%", "--time", "1s"];
        let finished = server.start_client(&flags).finish();
        let hunt = &finished.document.json()["hunt"];
        let trials = hunt["trials"].as_array().unwrap();
        assert!(!trials.is_empty(), "{hunt}");
        let limit_bps = 2_000.0 * 500.0 * 8.0;
        for trial in trials {
            let offered = trial["offered"].as_f64().unwrap();
            let is_far_above = offered > 1.2 * limit_bps;
            assert!(!(is_far_above && trial["verdict"]["is"] == "pass"), "{limit_bps}: {trial}");
        }
        // On a busy machine the receiver loses datagrams, too, and the answer is lower. Higher than what the path
        // carries it never is.
        if hunt["outcome"]["is"] == "found" {
            let rate = hunt["outcome"]["rate"].as_f64().unwrap();
            assert!(rate < 1.2 * limit_bps, "{limit_bps}: {hunt}");
        }
    });
}

/// Back-pressure is an answer: a path or an interface that takes less than a rate doesn't carry it.
#[test]
fn rates_that_the_transport_or_the_own_interface_has_no_room_for_fail() {
    in_network(|network| {
        network.limit_rate("20mbit", "30ms");
        let server = Server::start(network);
        for words in [
            "--requests --rate 3k --size 1400",
            "--requests --tls --rate 3k --size 1400",
            "--requests --quic --rate 3k --size 1400",
            "--requests --rate 3k --size 1400 --flows 4",
            "--quic --rate 60M",
            "--rate 60M",
            "--rate 60M --flows 3",
        ] {
            let words = format!("hunt {words} --time 2s");
            let finished = server.start_client(&words.split(' ').collect::<Vec<_>>()).finish();
            let hunt = &finished.document.json()["hunt"];
            assert_eq!(hunt["outcome"]["is"], "breaks", "{words}: {hunt}");
            assert_eq!(finished.exit_code, 0, "{words}: {hunt}");
        }
    });
}
