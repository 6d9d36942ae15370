//! Loads in QUIC's datagrams: what is sent is counted alike at both ends, and told from what never
//! left.

use crate::ends::Server;

#[test]
fn every_datagram_is_accounted_for() {
    let server = Server::start("");
    for (count, flags, ways) in [
        (1_u64, "--up", 1),
        (1, "--down --size 24", 1),
        (1_000, "--up --verify", 1),
        (1_000, "--down --verify --flows 3 --streams 3 --size 1400", 1),
        (300, "--both --verify --flows 3 --streams 2 --threads 2 --rate 20M", 2),
        (300, "--up --mtu 9000 --size 8900 --verify --no-offload", 1),
        (300, "--down --busy-poll --congestion bbr --size 100", 1),
    ] {
        let words = format!("stream --quic --datagram {flags} --count {count}");
        let document = server.measure(&words).document(0);
        let counted = |name: &str| document.count(&format!("datagrams/{name}"));
        assert_eq!(counted("sent"), count * ways, "{words}");
        // A socket's buffer that overflows on a busy machine has lost what is in it.
        assert_eq!(counted("received") + counted("lost"), count * ways, "{words}");
        assert!(counted("received") * 2 > count * ways, "{words}");
        assert_eq!((counted("refused"), counted("duplicated")), (0, 0), "{words}");
        if flags.contains("--verify") {
            let right = |role| document.sum_of_flows(role, "verification/verified_bytes");
            let unit: u64 = flags.split("--size ").nth(1).map_or(1_100, |rest| {
                rest.split(' ').next().and_then(|size| size.parse().ok()).unwrap()
            });
            let payload = counted("received") * (unit - 24);
            assert_eq!(right("client") + right("server"), payload, "{words}");
        }
    }
}

#[test]
fn requests_in_datagrams_get_their_responses() {
    let server = Server::start("");
    for (flags, count) in [
        ("--count 1", 1),
        ("--count 200 --flows 3 --streams 2 --size 900", 200),
        ("--count 300 --outstanding 16", 300),
        ("--count 100 --rate 1k", 100),
    ] {
        let words = format!("rr --quic --datagram --timeout 10s {flags}");
        let document = server.measure(&words).document(0);
        let lost = document.count("transactions_lost");
        assert_eq!(document.count("transactions") + lost, count, "{words}");
        assert!(lost * 10 <= count, "{words}: {lost} lost");
    }
}

#[test]
fn flows_of_one_connection_share_it() {
    let server = Server::start("");
    let words = "stream --quic --datagram --flows 4 --streams 4 --threads 1 --time 1s --omit 200ms";
    let document = server.measure(words).document(0);
    assert!(document.figure("fairness") > 0.5, "{}", document.figure("fairness"));
    let flows = document.report("client")["flows"].as_array().unwrap();
    for flow in flows {
        assert!(flow["quic"]["sent_packets"].as_u64() > Some(0), "{flow}");
        assert!(flow["socket"]["gso"].is_boolean(), "{flow}");
    }
}

#[test]
fn loads_that_do_not_fit_datagrams_are_refused_with_a_reason() {
    let server = Server::start("");
    for (words, text) in [
        ("stream --quic --datagram --size 1500", "at most 1414"),
        ("stream --quic --datagram --size 9000 --mtu 9000", "at most 8962"),
        ("stream --quic --datagram --size 23", "out of range"),
        ("rr --quic --datagram --size 15", "out of range"),
        ("stream --udp --datagram", "or use QUIC"),
        ("connect --quic --datagram", "connections that come and go"),
        ("stream --quic --datagram --size 24 --verify", "only their header"),
    ] {
        let ended = server.measure(&format!("{words} --time 1s"));
        assert_eq!(ended.exit_code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{words}: {}", ended.stderr);
    }
}
