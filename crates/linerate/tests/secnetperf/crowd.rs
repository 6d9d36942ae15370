//! A thousand connections at once.

use super::fixture::{Server, results};

#[test]
fn a_thousand_connections_are_completed() {
    let server = Server::start("");
    let ended = server.client("-conns:1000 -up:1000 -down:1000");
    assert_eq!(results(&ended), ["Completed 1000 connections and 1000 streams!"]);
}
