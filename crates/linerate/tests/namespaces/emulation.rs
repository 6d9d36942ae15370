//! What the emulator's own record and the measurement say of the same packets, and what is left
//! when it ends.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::emulator::{Emulator, link};
use crate::ends::Server;
use crate::network::{Company, run};
use crate::skipped::skip;

/// The emulated link's device in both namespaces.
const DEVICE: &str = "link0";
/// Bytes of a data connection's opening and of a datagram's header (docs/protocol.md).
const OPENING: u64 = 32;
const HEADER: u64 = 24;
/// Where a datagram's number stands in its header.
const NUMBER: Range<u64> = 8..16;

/// Bits flip in full-size packets only, so that the control connection survives.
const FLIPS: &str = "
    [to_right]
    delay = '1ms'
    rate = '200Mbit/s'
    queue = '16MB'
    corrupt = { bit_error_rate = 1e-6, repair_checksums = true, least_packet = 1400 }
";

fn with_link(description: &str, test: impl FnOnce(Emulator)) {
    match Emulator::start_in(Company::Alone, description) {
        Ok(emulator) => test(emulator),
        Err(why) => skip(&why),
    }
}

/// The offsets of all wrong bytes that the receiver found outside these ranges, each a run of one:
/// two flips in neighbouring bytes are too rare to happen with this seed.
fn found(document: &Value, but: &[Range<u64>]) -> BTreeSet<u64> {
    let reports = document["reports"].as_array().unwrap();
    let server = reports.iter().find(|report| report["role"] == "server").unwrap();
    let runs = server["flows"][0]["verification"]["wrong_runs"].as_array().unwrap();
    let outside = |run: &&Value| {
        let offset = run["offset"].as_u64().unwrap();
        !but.iter().any(|range| range.contains(&offset))
    };
    let each = runs.iter().filter(outside).map(|run| {
        assert_eq!(run["bytes"], 1, "{run}");
        run["offset"].as_u64().unwrap()
    });
    each.collect()
}

#[test]
fn every_flipped_bit_of_a_tcp_stream_is_found_at_its_offset() {
    with_link(FLIPS, |emulator| {
        let flags = ["stream", "--verify", "--rate", "40M", "--time", "4s"];
        let run = Server::start(&emulator.network).measure(&flags);
        assert_eq!(run.json()["status"]["exit_code"], 6, "{}", run.json()["status"]);
        let report = emulator.stop();
        let flips = report["to_right"]["flips"].as_array().unwrap();
        assert!(flips.len() > 50, "{} flips", flips.len());
        assert_eq!(report["to_right"]["counters"]["flipped_bits"], flips.len());
        let flipped: BTreeSet<u64> = flips
            .iter()
            .map(|flip| flip["stream_offset_bytes"].as_u64().unwrap() - OPENING)
            .collect();
        assert_eq!(found(run.json(), &[]), flipped);
    });
}

#[test]
fn every_flipped_bit_of_udp_is_found_at_its_offset() {
    with_link(FLIPS, |emulator| {
        let size = 1400;
        let flags = ["stream", "--udp", "--verify", "--size", "1400", "--rate", "40M"];
        let run = Server::start(&emulator.network)
            .measure(&[&flags[..], &["--time", "4s", "--no-offload"]].concat());
        let report = emulator.stop();
        let flips = report["to_right"]["flips"].as_array().unwrap();
        assert!(flips.len() > 50, "{} flips", flips.len());
        let (mut flipped, mut displaced) = (BTreeSet::new(), Vec::new());
        for flip in flips {
            let offset = flip["payload_offset_bytes"].as_u64().unwrap();
            let start = flip["payload_start"].as_str().unwrap();
            let number = u64::from_str_radix(start.get(16..32).unwrap(), 16).unwrap();
            if offset >= HEADER {
                flipped.insert(number * size + offset);
            } else if NUMBER.contains(&offset) {
                // Right bytes in what is now the wrong place: nearly all of them look wrong.
                let bit = (NUMBER.end - 1 - offset) * 8 + flip["bit"].as_u64().unwrap();
                let start = (number ^ 1 << bit).wrapping_mul(size);
                displaced.push(start..start.saturating_add(size));
            }
            // The rest of a header has its own meaning: a spoiled one shows as a loss.
        }
        assert_eq!(found(run.json(), &displaced), flipped);
    });
}

#[test]
fn nothing_is_found_where_nothing_flips() {
    with_link("", |emulator| {
        let server = Server::start(&emulator.network);
        for flags in [&["stream", "--verify"][..], &["stream", "--udp", "--verify"]] {
            let run = server.measure(&[flags, &["--time", "2s"]].concat());
            assert!(run.count("/summary/verified_bytes") > 1_000_000);
            assert_eq!(run.json()["summary"]["wrong_bytes"].as_u64().unwrap_or(0), 0);
        }
    });
}

const MARKING_QUEUE: &str = "
    [both]
    delay = '5ms'
    rate = '20Mbit/s'
    queue = '2000 packets'
    mark_at = '20 packets'
";

#[test]
fn a_queue_marks_before_it_drops() {
    with_link(MARKING_QUEUE, |emulator| {
        for namespace in [&emulator.network.client, &emulator.network.server] {
            let set = "echo 1 > /proc/sys/net/ipv4/tcp_ecn";
            run(&["ip", "netns", "exec", namespace, "sh", "-c", set]).unwrap();
        }
        let flags = ["stream", "--time", "3s", "--congestion", "reno"];
        Server::start(&emulator.network).measure(&flags);
        let counters = emulator.stop()["to_right"]["counters"].clone();
        assert!(counters["marked"].as_u64() > Some(5), "{counters}");
        assert_eq!(counters["lost_in_queue"], 0, "{counters}");
    });
}

#[test]
fn both_ends_of_a_quic_connection_tell_what_was_marked() {
    with_link(MARKING_QUEUE, |emulator| {
        // The devices' own queues would mark, too, where the machine is late.
        for namespace in [&emulator.network.client, &emulator.network.server] {
            run(&["tc", "-n", namespace, "qdisc", "replace", "dev", DEVICE, "root", "pfifo"])
                .unwrap();
        }
        let run = Server::start(&emulator.network).measure(&["stream", "--quic", "--time", "3s"]);
        let quic = |role| run.report(role)["flows"][0]["quic"].clone();
        let report = emulator.stop();
        let counters = &report["to_right"]["counters"];
        let marked = counters["marked"].as_u64().unwrap();
        let received = |role| quic(role)["received_ce_datagrams"].as_u64().unwrap();
        let received_by_client = received("client");
        let received = received("server");
        // The last ones may come when the server's flow has ended.
        assert!(
            marked > 5 && received <= marked && received > marked / 2,
            "{received} of {counters}"
        );
        assert!(quic("client")["ecn_events"].as_u64() > Some(0), "{}", quic("client"));
        // Acknowledgements are marked where the emulator was so late that many stood before it.
        let marked_back = report["to_left"]["counters"]["marked"].as_u64().unwrap();
        assert!(received_by_client <= marked_back, "{received_by_client} of {marked_back}");
    });
}

fn namespaces() -> String {
    run(&["ip", "netns", "list"]).unwrap()
}

#[test]
fn next_start_removes_only_leftovers_of_a_crash() {
    with_link("", |mut emulator| {
        let (left, right) = (emulator.network.client.clone(), emulator.network.server.clone());
        emulator.kill();
        assert!(namespaces().contains(&left), "the crash was meant to leave something");
        // One of the two is somebody else's by now.
        run(&["ip", "netns", "delete", &right]).unwrap();
        run(&["ip", "netns", "add", &right]).unwrap();
        let refused = link(&emulator.network, emulator.home(), &["--time", "1s"])
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("there is a network namespace {right} already")), "{said}");
        assert!(!namespaces().contains(&left), "{said}");
        assert!(namespaces().contains(&right), "{said}");
        run(&["ip", "netns", "delete", &right]).unwrap();
        let again =
            link(&emulator.network, emulator.home(), &["--time", "100ms"]).status().unwrap();
        assert_eq!(again.code(), Some(0));
        assert!(!namespaces().contains(&left) && !namespaces().contains(&right));
        let records = std::fs::read_dir(emulator.home().path().join("linerate/link")).unwrap();
        assert_eq!(records.count(), 0);
    });
}

#[test]
fn it_removes_everything_when_it_is_interrupted() {
    with_link("", |emulator| {
        let (left, pid) = (emulator.network.client.clone(), emulator.pid());
        assert!(namespaces().contains(&left));
        emulator.stop();
        assert!(!namespaces().contains(&left));
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    });
}

#[test]
fn without_privileges_it_says_what_is_missing_and_the_way_out() {
    with_link("", |emulator| {
        let program = emulator.home().path().join("program");
        // By another process: what is started beside this one has the copy open for writing as long as this one does,
        // and then nobody can run it.
        run(&["cp", env!("CARGO_BIN_EXE_linerate"), program.to_str().unwrap()]).unwrap();
        for (path, mode) in [(emulator.home().path(), "755"), (&program, "755")] {
            run(&["chmod", mode, path.to_str().unwrap()]).unwrap();
        }
        let words = format!("{} link --profile geo --time 1s", program.display());
        let refused = std::process::Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &words])
            .env("HOME", "/nonexistent")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("needs root") && said.contains("--relay"), "{said}");
    });
}
