//! A client of a native load over QUIC whose address changes in the midst, as behind a router that forgets.

use std::time::Duration;

use crate::ends::{Client, Server};
use crate::relay::Relay;
use crate::resources::{Held, assert_idle};

/// What the program ends with where flows have broken.
const BROKEN: i32 = 6;

#[test]
fn a_load_ends_within_seconds_when_its_clients_port_changes_and_says_why() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let loads = ["--up", "--down"].map(|way| {
        let relay = Relay::with_connections(server.port);
        let words = format!(
            "stream 127.0.0.1 --port {} --quic {way} --time 60s --idle-timeout 2s --json --quiet \
             --server-key {}",
            relay.port, server.fingerprint
        );
        (Client::start(server.home(), &words), relay)
    });
    for (client, relay) in loads {
        let document = client.finish_within(Duration::from_secs(40)).document(BROKEN);
        assert!(relay.changes() > 0);
        let told = document.json()["status"]["message"].as_str().unwrap();
        assert!(told.contains("timed out"), "{told}");
        assert!(document.count("received_bytes") > 100_000, "what came before counts");
    }
    server.measure("rr --quic --count 3").document(0);
    assert_idle(&server, idle, Duration::from_secs(15));
}
