//! A firewall that lets TCP pass to a server and drops UDP.

use crate::ends::Server;
use crate::in_network;

#[test]
fn dropped_udp_ends_every_command_with_exit_3_and_the_port() {
    in_network(|network| {
        network.filter(
            "table inet linerate {\n\
             chain input { type filter hook input priority 0; meta l4proto udp drop; }\n}\n",
        );
        let server = Server::start(network);
        let loads = [
            "rr --udp",
            "stream --udp --rate 1M",
            "stream --quic",
            "rr --quic --flows 3",
            "connect --quic",
            "connect --quic --flows 10 --handshake resumed",
        ];
        let clients = loads.map(|load| {
            let words: Vec<&str> = load.split(' ').collect();
            (load, server.start_client(&words))
        });
        for (load, client) in clients {
            let finished = client.finish();
            let why = finished.document.json()["status"].to_string();
            assert_eq!(finished.exit_code, 3, "{load}: {why}");
            assert!(why.contains("does a firewall let UDP port"), "{load}: {why}");
        }
    });
}
