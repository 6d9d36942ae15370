//! The perf dialect over paths that lose packets.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::emulator::Emulator;
use crate::ends::Spoken;
use crate::in_network;
use crate::network::{Network, SERVER_V4};
use crate::skipped::skip;

/// No client of these tests may take longer.
const LONGEST: Duration = Duration::from_secs(60);

fn start_server(network: &Network) -> Spoken {
    let bind = format!("-bind:{SERVER_V4}:4433");
    Spoken::start(network, &["secnetperf", &bind], "Started!")
}

fn program(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    let program = ["netns", "exec", namespace, env!("CARGO_BIN_EXE_linerate"), "secnetperf"];
    command.args(program).stdin(Stdio::null());
    command
}

/// A client's document, once it has ended well.
fn measure(network: &Network, words: &str) -> Value {
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut client = program(&network.client)
        .arg(format!("-target:{SERVER_V4}"))
        .args(words.split_whitespace())
        .args(["--json", "-pconn:1"])
        .stdout(output.reopen().unwrap())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = client.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LONGEST {
            client.kill().unwrap();
            client.wait().unwrap();
            panic!("'{words}' did not end within {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = std::fs::read_to_string(output.path()).unwrap();
    assert!(status.success(), "{words}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn lost_packets_are_sent_again() {
    for (loss, carriages) in [("1%", &[""][..]), ("5%", &["", "-encrypt:0"])] {
        let description = format!("seed = 21\n[both]\ndelay = '2ms'\nloss = '{loss}'\n");
        let emulator = match Emulator::start(&description) {
            Ok(emulator) => emulator,
            Err(why) => return skip(&why),
        };
        let server = start_server(&emulator.network);
        for carriage in carriages {
            let words = format!("{carriage} -streams:4 -up:200kb -down:200kb");
            let document = measure(&emulator.network, &words);
            for (field, expected) in [
                ("connections", 1),
                ("streams", 4),
                ("uploaded_bytes", 800_000),
                ("downloaded_bytes", 800_000),
            ] {
                assert_eq!(document[field], expected, "{loss} {words}: {document:#}");
            }
            for figure in ["upload_bps", "download_bps"] {
                let bps = document[figure].as_f64();
                assert!(bps > Some(1e4), "{loss} {words}: {figure} {bps:?}");
            }
            let connection = &document["connection_statistics"][0];
            let count = |name: &str| connection[name].as_u64().unwrap();
            // 500 packets at least go up: some of a hundredth of them are told from those that are late.
            let (sent, lost) = (count("sent_packets"), count("lost_packets"));
            assert!(sent > 500 && lost > 0 && lost < sent / 2, "{loss} {words}: {connection}");
            let rtt_us = count("rtt_us");
            assert!((4_000..5_000_000).contains(&rtt_us), "{loss} {words}: {connection}");
        }
        drop(server);
        let link = emulator.stop();
        for way in ["to_right", "to_left"] {
            let lost = link[way]["counters"]["lost_at_random"].as_u64();
            assert!(lost > Some(0), "{loss}: {link:#}");
        }
    }
}

#[test]
fn an_upload_that_the_run_time_ends_has_the_rate_of_what_was_acknowledged() {
    in_network(|network| {
        network.limit_rate("10mbit", "50ms");
        let server = start_server(network);
        for words in ["", "-streams:4", "-conns:2", "-share:0 -conns:2", "-sendbuf:1"] {
            let words = format!("{words} -up:60s -runtime:4s");
            let document = measure(network, &words);
            let bps = document["upload_bps"].as_f64().unwrap();
            // Headers take a twentieth, and the link's bucket has 32 kB.
            assert!((7.5e6..10.2e6).contains(&bps), "{words}: {document:#}");
            assert_eq!(document["broken_off"], 0, "{words}: {document:#}");
            let measured_s = document["measured_us"].as_f64().unwrap() / 1e6;
            assert!(measured_s > 3.5, "{words}: {document:#}");
        }
        drop(server);
    });
}

#[test]
fn nothing_is_lost_of_uploads_that_are_more_than_their_sockets_hold() {
    in_network(|network| {
        // Its queue holds more than a socket may have sent.
        network.limit_rate("100mbit", "4s");
        let server = start_server(network);
        for words in ["-share:0", "-share:1"] {
            let words = format!("{words} -threads:1 -conns:2 -pacing:0 -up:8mb");
            let document = measure(network, &words);
            let counted = ["connections", "uploaded_bytes"].map(|field| document[field].as_u64());
            assert_eq!(counted, [Some(2), Some(16_000_000)], "{words}: {document:#}");
        }
        drop(server);
    });
}
