//! A thousand connections at once.

use super::fixture::{Server, results};

#[test]
fn a_thousand_connections_are_completed() {
    let server = Server::start("");
    for carriage in ["", "-tcp:1"] {
        let ended = server.client(&format!("{carriage} -conns:1000 -up:1000 -down:1000"));
        let line = "Completed 1000 connections and 1000 streams!";
        assert_eq!(results(&ended), [line], "{carriage}");
    }
}
