//! Connections whose handshakes offer the window that they have: `ss` shows by how much they scale it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ends::{Server, Spoken};
use crate::in_network;
use crate::network::{Network, SERVER_V4, run};

/// For how many of the client's connections both ends scale their windows by nothing: buffers of a few KiB
/// need no more (RFC 7323, section 2), the kernel's own choice does.
fn unscaled(network: &Network) -> usize {
    let text = run(&["ip", "netns", "exec", &network.client, "ss", "-tinH"]).unwrap();
    text.split_whitespace().filter(|word| *word == "wscale:0,0").count()
}

/// The same, once there are so many, or after ten seconds: a busy machine takes its time for handshakes.
fn unscaled_soon(network: &Network, expected: usize) -> usize {
    let started = Instant::now();
    loop {
        let count = unscaled(network);
        if count == expected || started.elapsed() > Duration::from_secs(10) {
            return count;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_small_window_is_offered_from_the_first_segment_on_and_only_to_its_own_test() {
    in_network(|network| {
        let server = Server::start(network);
        for transport in ["--tcp", "--tls"] {
            let window = ["stream", transport, "--window", "8K", "--flows", "3", "--time", "3s"];
            let small = server.start_client(&window);
            assert_eq!(unscaled_soon(network, 3), 3, "{transport}");
            let usual = server.start_client(&["stream", "--flows", "2", "--time", "1s"]);
            usual.sleep_until(Duration::from_millis(500));
            assert_eq!(unscaled(network), 3, "{transport}");
            assert_eq!((usual.finish().exit_code, small.finish().exit_code), (0, 0));
            // Those that are still closing aren't the next load's.
            assert_eq!(unscaled_soon(network, 0), 0, "{transport}");
        }
        let transactions = ["rr", "--window", "8K", "--time", "2s"];
        let client = server.start_client(&transactions);
        assert_eq!(unscaled_soon(network, 1), 1);
        assert_eq!(client.finish().exit_code, 0);
    });
}

#[test]
fn iperf3s_streams_have_their_window_from_the_first_segment_on() {
    in_network(|network| {
        let _server = Spoken::start(network, &["iperf3", "-s"], "Server listening on 5201");
        let start = |asked: &[&str]| {
            let words = ["netns", "exec", &network.client, env!("CARGO_BIN_EXE_linerate")];
            let mut command = Command::new("ip");
            command.args(words).args(["iperf3", "-c", SERVER_V4, "-t", "4"]).args(asked);
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
        };
        for (asked, expected) in
            [(&["-w", "8K", "-P", "3"][..], 3), (&["-P", "2"], 0), (&["-w", "8K", "-R"], 1)]
        {
            let mut client = start(asked);
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(unscaled_soon(network, expected), expected, "{asked:?}");
            assert!(client.wait().unwrap().success(), "{asked:?}");
        }
    });
}
