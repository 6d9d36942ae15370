//! Datagrams that are larger than the path's packets: the kernel's own counter is the judge.

use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::{Network, SERVER_V4};

/// Datagrams that the server's kernel put together of fragments meanwhile.
fn reassembled(network: &Network, work: impl FnOnce()) -> u64 {
    let before = network.server_snmp("Ip", "ReasmOKs");
    work();
    network.server_snmp("Ip", "ReasmOKs") - before
}

/// The kernel cuts trains into packets, and not into datagrams that themselves are to be cut.
#[test]
fn datagrams_larger_than_a_packet_leave_in_fragments() {
    in_network(|network| {
        let server = Server::start(network);
        let native = reassembled(network, || {
            let run = server.measure(&["stream", "--udp", "--size", "8192", "--time", "200ms"]);
            run.assert_complete();
            assert!(run.count("/summary/datagrams/received") > 0);
            let unmet = run.json().pointer("/status/unmet/0").unwrap();
            assert_eq!(unmet["what"], "unfragmented_bytes", "{unmet}");
            assert_eq!((&unmet["asked"], &unmet["got"]), (&8192.0.into(), &1472.0.into()));
        });
        assert!(native > 20, "{native}");
        let _iperf3 = Spoken::start(network, &["iperf3", "-s", "--forceflush"], "-----");
        let iperf3 = reassembled(network, || {
            network.run_client(&format!("iperf3 -c {SERVER_V4} -u -l 8K -b 0 -n 2M"));
        });
        assert!(iperf3 > 20, "{iperf3}");
        let _netserver = Spoken::start(network, &["netserver", "-D", "-4"], "Starting netserver");
        let netperf = reassembled(network, || {
            network.run_client(&format!("netperf -H {SERVER_V4} -t UDP_STREAM -l 1 -- -m 8192"));
        });
        assert!(netperf > 20, "{netperf}");
    });
}
