//! With `--verify` every byte that arrived was looked at, on every transport, each way.

use linerate_wire::native::datagram::DATA_HEADER_BYTES;

use crate::ends::Server;

#[test]
fn every_received_byte_is_verified() {
    let server = Server::start("");
    std::thread::scope(|scope| {
        for transport in ["--tcp", "--tls", "--udp"] {
            let server = &server;
            scope.spawn(move || {
                for (way, more) in [
                    ("--up", ""),
                    ("--down", "--flows 3 --threads 1"),
                    ("--both", "--flows 2"),
                    ("--up", "--size 777"),
                    ("--down", "--omit 100ms"),
                ] {
                    let flags = format!("{transport} {way} {more} --rate 40M --time 300ms");
                    let document = server.measure(&format!("stream --verify {flags}")).document(0);
                    let (verified, received) =
                        (document.count("verified_bytes"), document.count("received_bytes"));
                    assert!(received > 0);
                    // A datagram's header has its own meaning and no pattern.
                    let headers = document.json()["summary"]["datagrams"]["received"]
                        .as_u64()
                        .map_or(0, |datagrams| datagrams * DATA_HEADER_BYTES as u64);
                    assert_eq!(verified + headers, received, "{flags}");
                    assert_eq!(document.json()["summary"]["wrong_bytes"].as_u64().unwrap_or(0), 0);
                }
            });
        }
    });
}

#[test]
fn a_whole_transfer_at_full_speed_is_verified() {
    let server = Server::start("");
    for transport in ["--tcp", "--tls"] {
        let words = format!("stream {transport} --both --flows 2 --verify --bytes 50M");
        let document = server.measure(&words).document(0);
        assert_eq!(document.count("verified_bytes"), 100_000_000, "{transport}");
    }
}
