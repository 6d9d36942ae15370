//! A client of a native load over QUIC whose address changes in the midst, as behind a router that forgets.

use std::time::Duration;

use crate::ends::Server;
use crate::relay::Relay;
use crate::resources::{Held, assert_idle};

#[test]
fn a_load_ends_within_seconds_when_its_clients_port_changes() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    for way in ["--up", "--down"] {
        let relay = Relay::with_connections(server.port);
        let words = format!(
            "stream 127.0.0.1 --port {} --quic {way} --time 60s --json --quiet --server-key {}",
            relay.port, server.fingerprint
        );
        let ended = crate::ends::Client::start(server.home(), &words).finish_within(Duration::from_secs(40));
        eprintln!("{way}: {:?} {:?} {} {}", ended.exit_code, ended.took, ended.stderr, ended.stdout);
        assert!(relay.changes() > 0);
    }
    server.measure("rr --quic --count 3").document(0);
    assert_idle(&server, idle, Duration::from_secs(15));
    panic!();
}
