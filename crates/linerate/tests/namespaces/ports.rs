//! A client that has few ports.

use crate::ends::Server;
use crate::network::Network;
use crate::{alone_in_network, in_network};

/// Leaves the client 500 ports, each of which waits its minute in TIME-WAIT.
fn leave_few_ports(network: &Network) {
    network.set_client_sysctl("net.ipv4.ip_local_port_range", "40000 40499");
    network.set_client_sysctl("net.ipv4.tcp_tw_reuse", "0");
}

#[test]
fn connections_go_on_when_the_ports_run_out_and_say_so() {
    alone_in_network(|network| {
        leave_few_ports(network);
        let server = Server::start(network);
        // Long enough for all ports also where this test has few turns at a processor; none is free again before a
        // minute is over.
        let run = server.measure(&["connect", "--time", "8s"]);
        run.assert_complete();
        let connections = run.count("/summary/transactions");
        assert!((400..=500).contains(&connections), "{connections} connections");
        let exhausted = run.count("/summary/errors/ports_exhausted");
        assert!(exhausted > 100, "{exhausted} failures that name the ports");
    });
}

#[test]
fn resets_and_closes_by_the_server_leave_the_ports_free() {
    in_network(|network| {
        leave_few_ports(network);
        let server = Server::start(network);
        for close in ["rst", "server"] {
            let run = server.measure(&["connect", "--count", "700", "--close", close]);
            run.assert_complete();
            assert_eq!(run.count("/summary/transactions"), 700, "{close}");
            assert!(run.json()["summary"]["errors"].is_null(), "{}", run.json()["summary"]);
        }
    });
}

#[test]
fn a_range_of_ports_and_several_addresses_reach_further() {
    in_network(|network| {
        leave_few_ports(network);
        network.add_client_address("10.77.0.3/24");
        let server = Server::start(network);
        let flags = ["--source-ports", "20000-20499", "--bind", "10.77.0.1,10.77.0.3"];
        let run = server.measure(&[&["connect", "--count", "960"][..], &flags].concat());
        run.assert_complete();
        assert_eq!(run.count("/summary/transactions"), 960, "of 1,000 ports");
    });
}

#[test]
fn ports_that_the_last_run_has_used_are_stepped_over() {
    in_network(|network| {
        leave_few_ports(network);
        // With timestamps the kernel lets go of a port in TIME-WAIT that is asked for by its number.
        network.set_client_sysctl("net.ipv4.tcp_timestamps", "0");
        let server = Server::start(network);
        // More than are tried in one turn of the load.
        let ports = ["--source-ports", "20000-21399"];
        for count in ["1250", "100"] {
            let run = server.measure(&[&["connect", "--count", count][..], &ports].concat());
            run.assert_complete();
            assert_eq!(run.count("/summary/transactions").to_string(), count);
            assert!(run.json()["summary"]["errors"].is_null(), "{}", run.json()["summary"]);
        }
    });
}
