//! Servers on a host with several addresses: each answers from the one that was asked, which is all that a client's
//! connected socket takes.

use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, run};

/// Addresses that the server's host has beside its first, from which it would send by itself.
const OTHERS: [&str; 2] = ["10.98.77.66", "fd00:6c72:2::2"];

fn add_other_addresses(network: &Network) {
    for (address, length) in OTHERS.into_iter().zip(["/32", "/128"]) {
        let address = format!("{address}{length}");
        let place = ["dev", SERVER_DEVICE, "nodad"];
        run(&[&["ip", "-n", &network.server, "addr", "add", &address][..], &place].concat())
            .unwrap();
        run(&["ip", "-n", &network.client, "route", "add", &address, "dev", CLIENT_DEVICE])
            .unwrap();
    }
}

#[test]
fn a_native_server_answers_from_the_address_that_was_asked() {
    in_network(|network| {
        add_other_addresses(network);
        let server = Server::start(network);
        for other in OTHERS {
            let host = if other.contains(':') { format!("[{other}]") } else { other.to_owned() };
            for load in [
                "rr --udp --count 5",
                "rr --quic --count 5",
                "connect --quic --count 5",
                "stream --udp --both --rate 10M --bytes 100k",
                "stream --quic --both --bytes 1M",
                "stream --quic --datagram --rate 10M --bytes 100k",
            ] {
                let words: Vec<&str> = load.split(' ').collect();
                server.start_client_at(&host, &words).finish().document.assert_complete();
            }
        }
    });
}

#[test]
fn servers_of_other_dialects_answer_from_the_address_that_was_asked() {
    in_network(|network| {
        add_other_addresses(network);
        let _iperf3 = Spoken::start(network, &["iperf3", "-s", "--forceflush"], "-----");
        let _secnetperf = Spoken::start(network, &["secnetperf"], "Started!");
        for other in OTHERS {
            for form in ["-u", "-u -R", "-u --bidir -P 2"] {
                network.run_client(&format!("iperf3 -c {other} -b 10M -t 1 {form}"));
            }
            network.run_client(&format!("secnetperf -target:{other} -pctput:1 -down:100kb"));
        }
    });
}
