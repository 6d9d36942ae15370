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
    for (transport, rate, most_bps) in
        [("--tcp", "--rate 40M", 45e6), ("--tls", "--rate 40M", 45e6), ("--quic", "", 1e12)]
    {
        let words = format!("stream {transport} --duplex {rate} --time 1s --omit 300ms");
        let document = server.measure(&words).document(0);
        let rates = ["goodput_up_bps", "goodput_down_bps"].map(|name| document.figure(name));
        for rate in rates {
            assert!((1e6..most_bps).contains(&rate), "{words}: {rates:?}");
        }
        // The bytes and the time of the warm-up are in none of the figures.
        let bits = 8.0 * document.count("received_bytes") as f64;
        let mean_bps = bits / document.figure("elapsed_s");
        let both_bps = rates[0] + rates[1];
        assert!((0.8..1.25).contains(&(both_bps / mean_bps)), "{words}: {rates:?}, {mean_bps}");
        assert!((0.9..1.25).contains(&document.figure("elapsed_s")), "{words}");
    }
}
