//! A thousand connections of one server, hundreds of them asked for at once.

use super::fixture::{Server, results};

#[test]
fn a_thousand_connections_are_completed() {
    let server = Server::start("");
    for _ in 0..2 {
        let ended = server.client("-conns:500 -up:1000 -down:1000");
        assert_eq!(results(&ended), ["Completed 500 connections and 500 streams!"]);
    }
}
