//! Datagrams that are larger than the path's packets: the kernel's own counter is the judge.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::ends::Server;
use crate::in_network;
use crate::network::{Network, SERVER_V4};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// A server of another tool's in the server's namespace; ended when dropped.
struct Guest(Child);

impl Guest {
    /// It has said something when it is there.
    fn start(network: &Network, words: &[&str]) -> Self {
        let namespace = ["netns", "exec", &network.server, PROGRAM];
        let mut command = Command::new("ip");
        command.args(namespace).args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stdout = process.stdout.take().unwrap();
        let mut lines = BufReader::new(stdout).lines();
        assert!(lines.next().is_some_and(|line| line.is_ok()), "{words:?} says nothing");
        // What else it says is read, so that it never waits for somebody to.
        std::thread::spawn(move || lines.for_each(drop));
        Self(process)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Datagrams that the server's kernel put together of fragments meanwhile.
fn reassembled(network: &Network, work: impl FnOnce()) -> u64 {
    let before = network.server_snmp("Ip", "ReasmOKs");
    work();
    network.server_snmp("Ip", "ReasmOKs") - before
}

fn run_client(network: &Network, words: &str) {
    let namespace = ["netns", "exec", &network.client, PROGRAM];
    let output = Command::new("ip").args(namespace).args(words.split_whitespace()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
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
        });
        assert!(native > 20, "{native}");
        let _iperf3 = Guest::start(network, &["iperf3", "-s", "--forceflush"]);
        let iperf3 = reassembled(network, || {
            run_client(network, &format!("iperf3 -c {SERVER_V4} -u -l 8K -b 0 -n 2M"));
        });
        assert!(iperf3 > 20, "{iperf3}");
        let _netserver = Guest::start(network, &["netserver", "-D", "-4"]);
        let netperf = reassembled(network, || {
            run_client(network, &format!("netperf -H {SERVER_V4} -t UDP_STREAM -l 1 -- -m 8192"));
        });
        assert!(netperf > 20, "{netperf}");
    });
}
