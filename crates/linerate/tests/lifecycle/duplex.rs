//! Streams that go in both directions at the same time over one connection.

use crate::ends::Server;

#[test]
fn all_bytes_of_both_directions_arrive_over_one_connection_for_two_flows() {
    let server = Server::start("");
    for transport in ["--tcp", "--tls", "--quic"] {
        for (bytes, flags, connections) in [
            (1_u64, "", 1),
            (10_000_007, "--flows 3 --threads 2", 3),
            (1_000_001, "--flows 2 --rate 400M --threads 1", 2),
            (2_000_000, "--flows 4 --size 1000", 4),
        ] {
            let words = format!("stream {transport} --duplex --verify {flags} --bytes {bytes}");
            let document = server.measure(&words).document(0);
            for figure in ["received_bytes", "sent_bytes"] {
                assert_eq!(document.count(figure), 2 * bytes, "{words}");
            }
            let right = |role| document.sum_of_flows(role, "verification/verified_bytes");
            assert_eq!((right("client"), right("server")), (bytes, bytes), "{words}");
            let flows = document.report("client")["flows"].as_array().unwrap();
            assert_eq!(flows.len(), 2 * connections, "{words}");
            let local = |flow: usize| &flows[flow]["socket"]["local"];
            for flow in 0..connections {
                assert_eq!(local(flow), local(flow + connections), "{words}");
                assert!(transport == "--quic" || flow == 0 || local(flow) != local(0), "{words}");
            }
        }
    }
}

#[test]
fn a_duplex_stream_of_some_time_has_a_rate_in_each_direction_without_its_warm_up() {
    let server = Server::start("");
    for (transport, rate, range) in [
        ("--tcp", "--rate 40M", 30e6..45e6),
        ("--tls", "--rate 40M", 30e6..45e6),
        ("--quic", "", 10e6..1e12),
    ] {
        let words = format!("stream {transport} --duplex {rate} --time 1s --omit 300ms");
        let mut seen = Vec::new();
        // Other programs can hold a sender up in one run, but no run may surpass its rate.
        let is_kept = (0..6).any(|_| {
            let document = server.measure(&words).document(0);
            let rates = ["goodput_up_bps", "goodput_down_bps"].map(|name| document.figure(name));
            assert!(rates.iter().all(|rate| *rate < range.end), "{words}: {rates:?}");
            seen.push(rates);
            rates.iter().all(|rate| range.contains(rate))
        });
        assert!(is_kept, "{words}: {seen:?}");
    }
}
