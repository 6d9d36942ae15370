//! Tests from an address that is one of its interface only to one that isn't.

use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::{CLIENT_DEVICE, SERVER_DEVICE, SERVER_V6, run};

/// An address of the client's device, beside those that it has.
const LOCAL: &str = "fe80::77";

fn add_address(namespace: &str, address: &str, device: &str) {
    let place = ["ip", "-n", namespace, "addr", "add"];
    run(&[&place[..], &[&format!("{address}/64"), "dev", device, "nodad"]].concat()).unwrap();
}

#[test]
fn iperf3_at_a_link_local_address_keeps_its_interface_at_either_end() {
    in_network(|network| {
        let of_server = "fe80::78";
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        add_address(&network.server, of_server, SERVER_DEVICE);
        let bound = format!("{of_server}%{SERVER_DEVICE}");
        let _server = Spoken::start(network, &["iperf3", "-s", "-B", &bound], "Server listening");
        for form in ["-n 1M", "-u -n 100K -b 10M", "-u -n 100K -b 10M -R"] {
            let (bind, host) =
                (format!("{LOCAL}%{CLIENT_DEVICE}"), format!("{of_server}%{CLIENT_DEVICE}"));
            let text = network.run_client(&format!("iperf3 -c {host} -B {bind} {form}"));
            assert!(text.contains(&format!("local {LOCAL} port")), "{form}: {text}");
        }
    });
}

#[test]
fn netperf_from_a_link_local_address_keeps_its_interface() {
    in_network(|network| {
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        let _server = Spoken::start(network, &["netserver", "-D", "-6"], "Starting netserver");
        for test in ["TCP_RR", "TCP_CRR", "UDP_RR"] {
            let words = format!(
                "netperf -6 -L {LOCAL}%{CLIENT_DEVICE} -H {SERVER_V6} -P 0 -t {test} -l 1 -- -k \
                 THROUGHPUT"
            );
            let told = network.run_client(&words);
            let throughput = told.trim().strip_prefix("THROUGHPUT=").unwrap();
            assert!(throughput.parse::<f64>().unwrap() > 0.0, "{words}: {told}");
        }
    });
}

#[test]
fn native_commands_at_link_local_addresses_keep_the_interface_at_either_end() {
    in_network(|network| {
        let of_server = "fe80::78";
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        add_address(&network.server, of_server, SERVER_DEVICE);
        let listening = format!("{of_server}%{SERVER_DEVICE}");
        let bind = format!("{LOCAL}%{CLIENT_DEVICE}");
        for server in [Server::start_with(network, &["--bind", &listening]), Server::start(network)]
        {
            let host = format!("[{of_server}%{CLIENT_DEVICE}]");
            for load in [
                "stream --both --bytes 1M",
                "stream --udp --rate 10M --bytes 100k",
                "stream --quic --bytes 1M",
                "rr --tls --count 5",
                "connect --count 5",
                "connect --quic --count 5",
            ] {
                let words: Vec<&str> = load.split(' ').collect();
                let words = [&words[..], &["--bind", &bind]].concat();
                let finished = server.start_client_at(&host, &words).finish();
                let document = finished.document.json();
                assert_eq!(finished.exit_code, 0, "{load}: {}", document["status"]);
                assert_eq!(document["plan"]["local"]["binds"][0], bind.as_str());
                let local = document["reports"][0]["flows"][0]["socket"]["local"].as_str();
                assert!(local.is_none_or(|local| local.starts_with("[fe80::77")), "{local:?}");
            }
        }
    });
}

#[test]
fn error_names_the_fault_of_a_local_address() {
    in_network(|network| {
        add_address(&network.client, LOCAL, CLIENT_DEVICE);
        let server = Server::start(network);
        for (bind, why) in [
            (LOCAL.to_owned(), "is a link-local address"),
            (format!("{LOCAL}%nowhere"), "names an interface that this machine doesn't have"),
            (format!("fe80::99%{CLIENT_DEVICE}"), "isn't an address of this machine"),
        ] {
            let words = ["rr", "--count", "1", "--bind", &bind];
            let finished = server.start_client_v6(&words).finish();
            let status = finished.document.json()["status"].to_string();
            assert_eq!(finished.exit_code, 1, "{bind}: {status}");
            assert!(status.contains(why), "{bind}: {status}");
        }
    });
}
