//! Ways that are gone: an interface, and what routers say of a host.

use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::ends::Spoken;
use crate::in_network;
use crate::network::{CLIENT_DEVICE, SERVER_DEVICE, SERVER_V4, run};

/// Addresses that are the devices' own.
const CLIENT_LOCAL: &str = "fe80::77/64";
const SERVER_LOCAL: &str = "fe80::88/64";

/// A program that is ended when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn secnetperf(namespace: &str, words: &str) -> Command {
    let mut command = Command::new("ip");
    let program = ["netns", "exec", namespace, env!("CARGO_BIN_EXE_linerate"), "secnetperf"];
    command.args(program).args(words.split_whitespace()).stdin(Stdio::null());
    command
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_server_outlives_the_interface_of_a_client() {
    in_network(|network| {
        for (namespace, device, address) in [
            (&network.client, CLIENT_DEVICE, CLIENT_LOCAL),
            (&network.server, SERVER_DEVICE, SERVER_LOCAL),
        ] {
            run(&["ip", "-n", namespace, "addr", "add", address, "dev", device, "nodad"]).unwrap();
        }
        let _server = Spoken::start(network, &["secnetperf"], "Started!");
        let words = format!("-target:fe80::88%{CLIENT_DEVICE} -pctput:1 -down:100kb");
        let output = secnetperf(&network.client, &words).output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        let words = format!("-target:fe80::88%{CLIENT_DEVICE} -down:30s");
        let client = secnetperf(&network.client, &words).stdout(Stdio::null()).spawn().unwrap();
        let _client = Killed(client);
        sleep(Duration::from_secs(1));
        // The server has much to send to an address of an interface that isn't there any more.
        run(&["ip", "-n", &network.server, "link", "del", SERVER_DEVICE]).unwrap();
        sleep(Duration::from_secs(1));
        let output = secnetperf(&network.server, "-target:127.0.0.1 -down:100kb").output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
    });
}

#[test]
fn a_client_that_is_told_there_is_no_way_has_no_connection() {
    in_network(|network| {
        network.filter(
            "table inet linerate {\n\
             chain input { type filter hook input priority 0;\n\
             udp dport 4433 reject with icmp type prot-unreachable; }\n}\n",
        );
        let words = format!("-target:{SERVER_V4} -down:1000 -maxruntime:1000 -trimout");
        let output = secnetperf(&network.client, &words).output().unwrap();
        assert_eq!(text_of(&output), "Error: No Successful Connections!\n");
        assert_eq!(output.status.code(), Some(111));
    });
}
