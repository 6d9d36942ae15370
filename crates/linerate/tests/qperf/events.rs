//! The files that `--events` and `--qlog` write.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::fixture::Server;
use super::skipped::skip;

fn events(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let first: Vec<&str> = text.lines().filter(|line| !line.starts_with("{\"type\":\"")).collect();
    assert_eq!(first, [""; 0]);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Bytes of streams that the client of these events sent before the handshake was done.
pub(crate) fn early_bytes(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut early, mut packet) = (0, 0);
    for event in events {
        match event["type"].as_str() {
            Some("packet-prepare") => packet = 0,
            Some("stream-send") if event["stream-id"].as_i64() >= Some(0) => {
                packet += event["data-len"].as_u64().unwrap();
            }
            Some("packet-sent") if event["packet-type"] == 1 => early += packet,
            _ => {}
        }
    }
    early
}

fn of<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == name)
}

#[test]
fn both_ends_write_the_same_packets_and_frames() {
    let server = Server::start("--events server.events -i 0.5");
    let ended = server.client("-t 1 --events client.events");
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    let (_served, folder) = server.stop();
    let ours = events(&folder.path().join("client.events"));
    let theirs = events(&folder.path().join("server.events"));
    for (name, all) in [("client", &ours), ("server", &theirs)] {
        let prepared = of(all, "packet-prepare").count();
        assert!(prepared > 3 && prepared == of(all, "packet-sent").count(), "{name}: {prepared}");
        assert!(
            all.iter().all(|event| event["conn"] == 0 && event["time"].as_u64() > Some(1 << 40))
        );
    }
    // Each packet that the client sent after the handshake has come, or is still on its way.
    let number = |event: &Value| (event["packet-type"] == 3).then(|| event["pn"].as_u64().unwrap());
    let sent: Vec<u64> = of(&ours, "packet-sent").filter_map(number).collect();
    let came: Vec<u64> = of(&theirs, "packet-received").filter_map(number).collect();
    assert!(!came.is_empty() && came.iter().all(|one| sent.contains(one)));
    let carried = |all: &[Value], name: &str| -> u64 {
        let data = of(all, name).filter(|event| event["stream-id"] == 0);
        data.map(|event| event["data-len"].as_u64().unwrap()).sum()
    };
    let total = ended.stdout.rsplit_once("total: bytes received: ").unwrap().1;
    let total: u64 = total.split(',').next().unwrap().parse().unwrap();
    assert!(carried(&ours, "stream-receive") >= total);
    assert!(carried(&theirs, "stream-send") >= total);
    assert_eq!(carried(&ours, "stream-send"), 19);
    let close = of(&theirs, "transport-close-receive").next().unwrap();
    assert_eq!(
        (&close["error-code"], &close["reason-phrase"]),
        (&0.into(), &"runtime_reached".into())
    );
    assert_eq!(
        of(&ours, "transport-close-send").next().unwrap()["reason-phrase"],
        "runtime_reached"
    );
}

fn numbers<'a>(events: &'a [Value], name: &'a str, field: &'a str) -> impl Iterator<Item = u64> {
    of(events, name).map(move |event| event[field].as_u64().unwrap_or_else(|| panic!("{event}")))
}

/// The packet numbers after the handshake that events of this name have.
fn later_packets(events: &[Value], name: &str) -> BTreeSet<u64> {
    let later = of(events, name).filter(|event| event["packet-type"] == 3);
    later.map(|event| event["pn"].as_u64().unwrap()).collect()
}

#[test]
fn what_became_of_sent_packets_and_the_congestion_window_are_told() {
    let server = Server::start("--events server.events");
    // A small buffer loses packets.
    let ended = server.client("-t 2 -u 4k");
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    let (served, folder) = server.stop();
    let events = events(&folder.path().join("server.events"));
    let (sent, lost) =
        (later_packets(&events, "packet-sent"), later_packets(&events, "packet-lost"));
    let (_, told) = served.stdout.rsplit_once("packets lost: ").unwrap();
    let told: usize = told.lines().next().unwrap().parse().unwrap();
    assert!(told > 0, "nothing was lost");
    assert_eq!(lost.len(), told);
    assert!(lost.is_subset(&sent));
    let acked: Vec<u64> = numbers(&events, "packet-acked", "pn").collect();
    assert!(acked.len() + lost.len() > sent.len() / 2, "{} of {}", acked.len(), sent.len());
    // The handshake's packets have numbers of their own.
    assert!(acked.iter().filter(|number| !sent.contains(number)).count() <= 4);
    let late = of(&events, "packet-acked").filter(|event| event["is-late-ack"] == 1);
    assert!(late.count() <= lost.len());
    for name in ["cc-ack-received", "cc-congestion", "quictrace-cc-ack"] {
        assert!(numbers(&events, name, "cwnd").all(|cwnd| cwnd > 0), "{name}");
        assert!(numbers(&events, name, "inflight").count() > 0, "{name}");
    }
    let bytes: u64 = numbers(&events, "cc-ack-received", "bytes-acked").sum();
    let lengths: u64 = numbers(&events, "packet-sent", "len").sum();
    assert!(bytes > lengths / 2 && bytes <= lengths, "{bytes} of {lengths}");
    assert!(numbers(&events, "cc-congestion", "max-lost-pn").all(|behind| behind > 0));
}

#[test]
fn a_file_of_events_that_can_t_be_written_is_told() {
    let server = Server::start("");
    let ended = server.client("-e --events nowhere/events");
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("can't write events to nowhere/events"), "{}", ended.stderr);
    let ended = server.client("-t 1 --events /dev/full");
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("can't write events to /dev/full"), "{}", ended.stderr);
    assert!(ended.stdout.contains("total: bytes received: "), "{}", ended.stdout);
}

#[test]
fn quicly_s_converter_makes_qlog_of_the_events() {
    let Some(converter) = std::env::var_os("LINERATE_QLOG_ADAPTER") else {
        // It is in no distribution, so that a machine for tests may go without.
        if std::env::var_os("CI").is_none() {
            skip("LINERATE_QLOG_ADAPTER names no qlog-adapter.py of quicly");
        }
        return;
    };
    let server = Server::start("--events server.events");
    let ended = server.client("-t 1 -u 4k --events client.events");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let (_served, folder) = server.stop();
    for name in ["client.events", "server.events"] {
        let mut command = Command::new("python3");
        command.arg(&converter).arg(folder.path().join(name)).stdin(Stdio::null());
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {error}");
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(lines.next().unwrap()["qlog_version"], "draft-02");
        let (mut sent, mut received, mut lost) = (0, 0, 0);
        for event in lines {
            match event["name"].as_str() {
                Some("transport:packet_sent") => sent += 1,
                Some("transport:packet_received") => received += 1,
                Some("recovery:packet_lost") => {
                    lost += 1;
                    continue;
                }
                other => panic!("{name}: {other:?}"),
            }
            assert!(event["data"]["frames"].is_array(), "{event}");
        }
        assert!(sent > 3 && received > 3, "{name}: {sent} sent, {received} received");
        assert_eq!(lost > 0, name == "server.events", "{name}: {lost} lost");
    }
}

#[test]
fn a_client_writes_qlog_too() {
    let server = Server::start("");
    let ended = server.client("-e --qlog logs");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let (_served, folder) = server.stop();
    let file = std::fs::read_dir(folder.path().join("logs")).unwrap().next().unwrap().unwrap();
    assert!(file.path().extension().is_some_and(|end| end == "sqlog"), "{file:?}");
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(text.contains("\"error_space\":\"transport\""), "the close is the transport's");
}
