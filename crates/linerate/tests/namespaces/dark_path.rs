//! A path that carries nothing for seconds, and then works again.

use std::thread::{scope, sleep};
use std::time::Duration;

use crate::ends::Server;
use crate::in_network;
use crate::network::{Network, run};

/// Drops every incoming packet without telling the sender.
const DARK: &str =
    "table inet dark { chain in { type filter hook input priority 0; policy drop; }; }";
const LIGHT: &str = "delete table inet dark";

/// Does this to the packet filters of both ends.
fn filter(network: &Network, rules: &str) {
    for namespace in [&network.server, &network.client] {
        run(&["ip", "netns", "exec", namespace, "nft", rules]).unwrap();
    }
}

/// Of a download in datagrams the client shows nothing but its pings.
#[test]
fn a_test_outlives_a_path_that_is_dark_for_two_seconds() {
    in_network(|network| {
        let server = Server::start(network);
        for way in ["--down", "--up"] {
            let document = scope(|scope| {
                scope.spawn(|| {
                    sleep(Duration::from_millis(1_500));
                    filter(network, DARK);
                    sleep(Duration::from_secs(2));
                    filter(network, LIGHT);
                });
                server.measure(&["stream", "--udp", way, "--rate", "5M", "--time", "5s"])
            });
            document.assert_complete();
        }
    });
}
