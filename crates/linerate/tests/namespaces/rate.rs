//! A link of known rate.

use crate::document::{Document, assert_near};
use crate::ends::{Client, Finished, Server};
use crate::network::{CLIENT_DEVICE, run};
use crate::{alone_in_network, in_network};

/// What the token bucket lets through, Ethernet header included.
const LINK_BPS: f64 = 100e6;

/// Bytes of an Ethernet header.
const ETHERNET: f64 = 14.0;

/// Share of a full TCP segment that is payload: 1500 bytes less IP and TCP headers and the
/// timestamp option (RFC 7323), over the same with the Ethernet header.
fn tcp_share(ip_header: f64) -> f64 {
    (1500.0 - ip_header - 20.0 - 12.0) / (1500.0 + ETHERNET)
}

/// How often a measurement is made at most: a busy host leaves the link idle now and then, and is
/// seldom that busy thrice.
const ATTEMPTS: usize = 3;

/// Measures until the goodput is the link's rate less headers, within 2 %; the measurement that was. A sender that has no
/// processor fills no link.
#[track_caller]
fn filling_link(share: f64, start: impl Fn() -> Client) -> Document {
    let most_bps = LINK_BPS * share;
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        let Finished { document: run, delayed_s, .. } = start().finish();
        let filled = run.figure("/summary/goodput_bps") / most_bps;
        found.push((filled, delayed_s));
        let least = 0.98 - delayed_s / run.figure("/summary/elapsed_s");
        if (least..=1.02).contains(&filled) {
            return run;
        }
    }
    panic!("none is within 2 % of {most_bps}: {found:?}");
}

#[test]
fn tcp_goodput_is_the_link_rate_less_headers() {
    alone_in_network(|network| {
        network.limit_rate("100mbit", "30ms");
        let server = Server::start(network);
        let flags = ["stream", "--time", "4s", "--omit", "1s", "--congestion", "cubic"];
        filling_link(tcp_share(20.0), || server.start_client(&flags)).assert_complete();
    });
}

#[test]
fn ipv6_tcp_goodput_is_the_link_rate_less_headers() {
    alone_in_network(|network| {
        network.limit_rate("100mbit", "30ms");
        let server = Server::start(network);
        let flags = ["stream", "--time", "3s", "--omit", "1s", "--congestion", "cubic"];
        let run = filling_link(tcp_share(40.0), || server.start_client_v6(&flags));
        run.assert_complete();
        let local = &run.report("client")["flows"][0]["socket"]["local"];
        assert!(local.as_str().is_some_and(|local| local.contains("fd77::1")), "{local}");
    });
}

/// The sender is faster than the link: what arrives is the link's rate, the rest is lost, and the
/// result says both.
#[test]
fn udp_goodput_is_the_link_rate_and_the_rest_is_lost() {
    alone_in_network(|network| {
        network.limit_rate("100mbit", "30ms");
        let server = Server::start(network);
        let flags = ["stream", "--udp", "--size", "1400", "--rate", "150M", "--no-offload"];
        let share = 1400.0 / (1400.0 + 8.0 + 20.0 + ETHERNET);
        let run =
            filling_link(share, || server.start_client(&[&flags[..], &["--time", "3s"]].concat()));
        let sent = run.count("/summary/datagrams/sent");
        let received = run.count("/summary/datagrams/received");
        let lost = run.count("/summary/datagrams/lost");
        assert_eq!(lost, sent - received);
        let refused = run.json()["summary"]["datagrams"]["refused"].as_u64().unwrap_or(0);
        let missing = (lost + refused) as f64 / (sent + refused) as f64;
        let expected = 1.0 - LINK_BPS * share / 150e6;
        // A sender without a processor offers less, of which less is lost.
        let offered_bps = ((sent + refused) * 1400 * 8) as f64 / 3.0;
        if offered_bps > 0.98 * 150e6 {
            assert_near("share that did not arrive", missing, expected, 0.1);
        } else {
            assert!(missing < expected * 1.1, "{missing} did not arrive, at most {expected}");
        }
    });
}

#[test]
fn a_paced_stream_keeps_its_rate_and_loses_nothing() {
    alone_in_network(|network| {
        let server = Server::start(network);
        let flags = ["stream", "--udp", "--size", "1200", "--rate", "40M", "--time", "2s"];
        let Finished { document: run, delayed_s, .. } = server.start_client(&flags).finish();
        run.assert_complete();
        // A sender that has no processor sends nothing.
        let least_bps = 40e6 * (0.98 - delayed_s / 2.0);
        let goodput_bps = run.figure("/summary/goodput_bps");
        let range = least_bps..=40e6 * 1.02;
        assert!(range.contains(&goodput_bps), "{goodput_bps} of {range:?}");
        assert_eq!(run.count("/summary/datagrams/lost"), 0);
    });
}

#[test]
fn every_transport_works_over_ipv6() {
    in_network(|network| {
        let server = Server::start(network);
        for transport in ["--tcp", "--tls", "--udp"] {
            for command in [&["stream", "--rate", "20M"][..], &["rr"][..]] {
                let flags = [command, &[transport, "--time", "500ms"][..]].concat();
                let run = server.start_client_v6(&flags).finish().document;
                run.assert_complete();
                let pointer = if command[0] == "rr" { "transactions" } else { "received_bytes" };
                assert!(run.count(&format!("/summary/{pointer}")) > 0, "{flags:?}");
            }
        }
    });
}

#[test]
fn a_low_rate_goes_out_in_whole_segments_and_is_kept() {
    in_network(|network| {
        let server = Server::start(network);
        for words in [
            "stream --rate 100k --time 8s",
            "stream --rate 1M --flows 10 --time 4s",
            "stream --rate 1M --flows 100 --time 4s",
            "stream --rate 1M --flows 10 --tls --time 4s",
            "stream --rate 1M --quic --time 4s",
            "stream --rate 1M --flows 100 --down --time 4s",
        ] {
            let before = network.client_sent_bytes();
            let words: Vec<&str> = words.split(' ').collect();
            let Finished { document, delayed_s, .. } = server.start_client(&words).finish();
            document.assert_complete();
            let asked_bps = if words.contains(&"100k") { 100e3 } else { 1e6 };
            let time_s: f64 = words.last().unwrap().trim_end_matches('s').parse().unwrap();
            let sent_bytes = document.count("/summary/sent_bytes") as f64;
            // One send more or less, and what a machine keeps back that leaves the sender no processor.
            let right = asked_bps * time_s / 8.0;
            let off = 0.03 * right + 1_200.0;
            let range = right - off - asked_bps / 8.0 * delayed_s..right + off;
            assert!(range.contains(&sent_bytes), "{words:?}: {sent_bytes} of {range:?}");
            assert!(document.figure("/summary/bytes_per_send") >= 1_100.0, "{words:?}");
            if !words.contains(&"--down") {
                // Frames of the control connection count too: a certificate, a plan, some pings.
                let wire_bytes = (network.client_sent_bytes() - before) as f64;
                let most = 1.1 * sent_bytes + 40_000.0;
                assert!(wire_bytes < most, "{words:?}: {wire_bytes} for {sent_bytes}");
            }
        }
    });
}

#[test]
fn datagrams_of_many_flows_dont_leave_at_the_same_moment() {
    alone_in_network(|network| {
        // 30 kB of queue: twenty datagrams.
        let device = ["tc", "-n", &network.client, "qdisc", "add", "dev", CLIENT_DEVICE, "root"];
        let limit = ["tbf", "rate", "20mbit", "burst", "3000", "limit", "30000"];
        run(&[&device[..], &limit[..]].concat()).unwrap();
        let server = Server::start(network);
        let words = ["stream", "--udp", "--rate", "10M", "--flows", "100", "--time", "3s"];
        let Finished { document, delayed_s, .. } = server.start_client(&words).finish();
        let sent = document.figure("/summary/datagrams/sent");
        let count = |name: &str| document.figure(&format!("/summary/datagrams/{name}"));
        let (lost, refused) = (count("lost"), count("refused"));
        // What was due while the sender had no processor leaves at one moment.
        let late = 10e6 / 8.0 / 1448.0 * delayed_s;
        assert!(
            lost + refused < 0.1 * sent + late,
            "{lost} lost, {refused} refused, {sent} sent, {late} late"
        );
    });
}
