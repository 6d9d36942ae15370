//! A client whose address changes in the midst, as behind a router that forgets: its transfers go on.

use super::fixture::{Server, results, run};
use super::relay::Relay;

#[test]
fn a_transfer_goes_on_when_its_clients_port_changes() {
    let marked = "-cibir:010203 -serverid:9";
    for (flags, words, streams) in [
        ("", "-up:3mb", 1),
        ("", "-down:3mb", 1),
        ("", "-encrypt:0 -up:2mb -down:2mb", 1),
        (marked, "-cibir:010203 -streams:7 -up:400kb", 7),
    ] {
        let server = Server::start(flags);
        let relay = Relay::start(server.port);
        let port = relay.port;
        let ended = run(&format!("-target:127.0.0.1 -port:{port} {words}"));
        let line = format!("Completed 1 connections and {streams} streams!");
        assert_eq!(results(&ended), [line], "{flags} {words}");
        assert!(relay.changes() >= 5, "{words}: {} changes", relay.changes());
    }
}
