//! Runs against our own server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::fixture::{Server, command, results, run, without_numbers};
use crate::quiet::free_port;

/// Over QUIC and over TCP.
const CARRIAGES: [&str; 2] = ["", "-tcp:1"];

#[test]
fn completions_are_counted() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        for (words, line) in [
            ("", "Completed 1 connections!"),
            ("-up:10kb", "Completed 1 connections and 1 streams!"),
            ("-down:10kb -conns:3", "Completed 3 connections and 3 streams!"),
            ("-conns:2 -streams:40 -up:700 -down:90000", "Completed 2 connections and 80 streams!"),
            ("-streams:5 -threads:1", "Completed 1 connections and 5 streams!"),
            ("-unknown:1 -up:1000 junk", "Completed 1 connections and 1 streams!"),
        ] {
            let ended = server.client(&format!("{carriage} {words}"));
            assert_eq!(results(&ended), [line], "{carriage} {words}");
        }
    }
}

#[test]
fn a_server_does_without_tcp_where_its_port_is_taken() {
    let port = free_port();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut child = command(&format!("-bind:127.0.0.1:{port}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let server = Server { child, port };
    assert_eq!(said.next().unwrap().unwrap(), "Warning: TCP Server failed to start!");
    assert_eq!(said.next().unwrap().unwrap(), "Started!");
    let ended = server.client("-down:10kb");
    assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"]);
    // Another one has UDP, too.
    let ended = run(&format!("-bind:127.0.0.1:{port}"));
    assert_eq!(ended.exit_code, 98, "{}", ended.stdout);
}

#[test]
fn connections_share_a_local_port() {
    let server = Server::start("");
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let ended = server.client(&format!("-bind:127.0.0.1:{port} -conns:3 -threads:2 -down:10kb"));
    assert_eq!(results(&ended), ["Completed 3 connections and 3 streams!"]);
}

#[test]
fn throughput_has_the_originals_lines() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        let stream = |name| format!("Result: {name} # bytes @ # kbps (#.# ms).");
        for (words, lines) in [
            ("-up:100kb -ptput:1", vec!["Result: Upload # kbps.".to_owned()]),
            ("-down:1mb -ptput:1", vec!["Result: Download # kbps.".to_owned()]),
            ("-up:1mb -pctput:1 -streams:2", vec![stream("Upload"), stream("Upload")]),
            (
                "-up:1000 -down:1000 -pctput:1 -ptput:1",
                vec![
                    stream("Upload"),
                    stream("Download"),
                    "Result: Upload # kbps.".to_owned(),
                    "Result: Download # kbps.".to_owned(),
                ],
            ),
            // The header doesn't fit: the server gives the stream up, and nothing is printed.
            ("-up:4 -ptput:1", vec![]),
        ] {
            let ended = server.client(&format!("{carriage} {words}"));
            let shown: Vec<String> = results(&ended).into_iter().map(without_numbers).collect();
            assert_eq!(shown, lines, "{carriage} {words}");
        }
        let ended = server.client(&format!("{carriage} -down:123456 -pctput:1"));
        assert!(ended.stdout.contains("Download 123456 bytes @"), "{}", ended.stdout);
        let ended = server.client(&format!("{carriage} -up:5000 -oldformat:1 -pctput:1"));
        assert!(ended.stdout.contains("\n  Upload: 5000 bytes @ "), "{}", ended.stdout);
    }
}

#[test]
fn timed_runs_end_by_themselves() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        for (words, name) in [
            ("-up:300ms", "Upload"),
            ("-down:300ms -streams:3", "Download"),
            ("-scenario:download -down:200ms", "Download"),
            ("-scenario:download -run:2s", "Download"),
            // Cut before its time: what had arrived by then counts.
            ("-up:30s -run:400ms", "Upload"),
            ("-up:30s -run:400ms -streams:3 -pacing:0", "Upload"),
        ] {
            let ended = server.client(&format!("{carriage} {words} -ptput:1"));
            let [line] = results(&ended)[..] else { panic!("{words}: {}", ended.stdout) };
            let line = without_numbers(line);
            assert_eq!(line, format!("Result: {name} # kbps."), "{carriage} {words}");
        }
    }
}

#[test]
fn rates_and_latencies_have_the_originals_lines() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        let ended = server.client(&format!("{carriage} -scenario:hps -run:2s -conns:4"));
        assert_eq!(without_numbers(&results(&ended).concat()), "Result: # HPS", "{carriage}");
        let ended = server.client(&format!("{carriage} -scenario:rps -run:3s -streams:20"));
        let expected = "Result: # RPS, Latency,us #th: #, #th: #, #th: #, #th: #, #.#th: #, #.#th: #, \
                        #.#th: #, #.#th: #, Max: #";
        assert_eq!(without_numbers(&results(&ended).concat()), expected, "{carriage}");
        // Less than a second leaves the original no room for latencies.
        let ended = server.client(&format!("{carriage} -scenario:latency -run:500ms"));
        assert_eq!(results(&ended), [""; 0], "{carriage}");
        let ended = server.client(&format!("{carriage} -up:512 -streams:3 -plat:1 -prate:1"));
        let shown = without_numbers(&ended.stdout);
        assert!(shown.contains("Result: # HPS\nResult: # RPS\nResult: # RPS, Latency"), "{shown}");
    }
}

#[test]
fn a_document_adds_up() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        let words = "-conns:2 -streams:3 -up:5000 -down:70000 --json -pconn:1";
        let ended = server.client(&format!("{carriage} {words}"));
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["connections"], 2);
        assert_eq!(document["streams"], 6);
        assert_eq!(document["uploaded_bytes"], 30_000);
        assert_eq!(document["downloaded_bytes"], 420_000);
        assert_eq!(document["latency_us"]["count"], 6);
        assert_eq!(document["connection_statistics"].as_array().unwrap().len(), 2);
        assert_eq!(document["transport"], if carriage.is_empty() { "quic" } else { "tcp" });
    }
}

#[test]
fn each_event_is_a_line() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        let ended = server.client(&format!("{carriage} -streams:3 -up:5000 -down:70000 --ndjson"));
        let lines = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["stream", "stream", "stream", "connection", "result"], "{carriage}");
        assert_eq!(lines[0]["uploaded_bytes"], 5000);
        assert_eq!(lines[0]["downloaded_bytes"], 70_000);
        assert_eq!(lines[4]["streams"], 3);
    }
}

#[test]
fn a_server_has_the_suites_that_it_is_given() {
    for (mask, suite) in [("1", "0x1301"), ("2", "0x1302"), ("4", "0x1303")] {
        let server = Server::start(&format!("-cipher:{mask}"));
        let ended = server.client("-up:1000 -down:1000 -pconn:1");
        let line = format!("  CipherSuite               {suite}");
        assert!(results(&ended).contains(&line.as_str()), "{mask}: {}", ended.stdout);
        let ended = server.client("-tcp:1 -up:1000 -down:1000");
        assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"], "{mask}");
    }
}

#[test]
fn packets_in_clear_carry_the_same() {
    let server = Server::start("");
    let ended = server.client("-encrypt:0 -streams:3 -up:300kb -down:500kb --json");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["uploaded_bytes"], 900_000, "{}", ended.stdout);
    assert_eq!(document["downloaded_bytes"], 1_500_000, "{}", ended.stdout);
}

#[test]
fn connection_ids_can_be_marked_and_packets_left_unpaced() {
    let server = Server::start("-cibir:c1b112 -serverid:77");
    for more in ["-pacing:0", "--draft-29", "--draft-29 -encrypt:0"] {
        let words = format!("-cibir:c1b112 {more} -streams:2 -up:300kb -down:100kb --json");
        let ended = server.client(&words);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["uploaded_bytes"], 600_000, "{words}: {}", ended.stdout);
        assert_eq!(document["downloaded_bytes"], 200_000, "{words}: {}", ended.stdout);
    }
    for other in ["", "-cibir:c1"] {
        assert_eq!(server.client(other).exit_code, 111, "{other}");
    }
}

#[test]
fn a_clients_packets_grow_to_a_jumbo_frames_or_to_what_is_said() {
    let server = Server::start("");
    for (limit, least, most) in [("", 8_000, 8_972), ("--mtu-limit:1300", 1_200, 1_300)] {
        let logs = tempfile::tempdir().unwrap();
        server.client(&format!("-up:5mb {limit} --qlog:{}", logs.path().display()));
        let log = std::fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(log).unwrap();
        let length = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let longest = text.split("\"length\":").skip(1).filter_map(length).max().unwrap_or(0);
        assert!((least..=most).contains(&longest), "{limit}: {longest}");
    }
}

#[test]
fn an_upload_that_is_cut_counts_with_what_had_arrived() {
    let server = Server::start("");
    for words in ["-up:30s -run:500ms", "-up:90gb -run:500ms -conns:2 -streams:2 -ecn:1"] {
        let ended = server.client(&format!("{words} --json"));
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(document["uploaded_bytes"].as_u64() > Some(65_536), "{words}: {}", ended.stdout);
    }
}

#[test]
fn an_answer_can_be_delayed() {
    let server = Server::start("-delay:200ms");
    for carriage in CARRIAGES {
        let ended = server.client(&format!("{carriage} -up:100 -down:100 --json"));
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(document["latency_us"]["min"].as_u64().unwrap() >= 200_000, "{}", ended.stdout);
    }
}

#[test]
fn the_distribution_is_written() {
    let server = Server::start("");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latency.txt");
    let words = format!("-streams:9 -up:512 -plat:1 -extraOutputFile:{}", path.display());
    results(&server.client(&words));
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("       Value   Percentile   TotalCount 1/(1-Percentile)\n\n"));
    assert!(text.contains("Total count    =            9]"), "{text}");
}

#[test]
fn each_connection_is_written_down() {
    let server = Server::start("");
    let home = std::env::temp_dir().join(format!("linerate-secnetperf-{}", std::process::id()));
    server.client(&format!("-conns:3 -up:1000 -encrypt:0 --qlog:{}", home.display()));
    let logs: Vec<_> = std::fs::read_dir(&home).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(logs.len(), 3, "{logs:?}");
    for log in &logs {
        assert_eq!(log.extension().unwrap(), "sqlog");
        assert!(std::fs::read_to_string(log).unwrap().contains("\"frame_type\":\"stream\""));
    }
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn streams_tell_their_raw_figures() {
    let server = Server::start("");
    for carriage in CARRIAGES {
        for (words, line) in [
            ("-up:5000 -down:70000", "Raw: #,#;#,#;#"),
            ("-up:5000", "Raw: #,#;;#"),
            ("-up:4", "Raw: ;;"),
        ] {
            let ended = server.client(&format!("{carriage} {words} -praw:1"));
            let shown = without_numbers(results(&ended).first().unwrap());
            assert_eq!(shown, line, "{carriage} {words}");
        }
    }
}

#[test]
fn threads_and_sockets_are_as_they_are_told_and_carry_the_same() {
    let server = Server::start("-cpu:0 -pollidle:200 -exec:realtime -hystart:1");
    for carriage in CARRIAGES {
        for words in [
            "-cpu:0 -affinitize:1 -highpri:1",
            "-exec:scavenger",
            "-exec:maxtput -pollidle:500",
            "-share:0 -sendbuf:1 -hystart:1",
        ] {
            let words = format!("{carriage} {words} -conns:3 -streams:2 -up:100kb -down:100kb");
            let ended = server.client(&words);
            assert_eq!(results(&ended), ["Completed 3 connections and 6 streams!"], "{words}");
        }
    }
}

#[test]
fn streams_tell_what_they_waited_for() {
    let server = Server::start("");
    let ended = server.client("-up:20mb -pstream:1");
    let block = "Stream Timings (flow blocked):\n  SCHEDULING:               # us\n  \
                 PACING:                   # us\n  AMPLIFICATION_PROT:       # us\n  \
                 CONGESTION_CONTROL:       # us\n  CONN_FLOW_CONTROL:        # us\n  \
                 STREAM_ID_FLOW_CONTROL:   # us\n  STREAM_FLOW_CONTROL:      # us\n  \
                 APP:                      # us";
    let shown = without_numbers(&results(&ended).join("\n"));
    assert_eq!(shown, format!("{block}\nCompleted # connections and # streams!"));
    // More than the server allows at first, and nothing that could be spaced out.
    let ended = server.client("-up:2000 -streams:100 -pacing:0 -pstream:1 --ndjson");
    let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let waits: Vec<Value> = lines.filter(|line| line["event"] == "waits").collect();
    assert_eq!(waits.len(), 100);
    assert!(waits.iter().all(|line| line["pacing_us"] == 0), "{waits:?}");
    assert!(waits.iter().any(|line| line["stream_number_us"].as_u64() > Some(0)), "{waits:?}");
    // Nothing of it is known over TCP, as in the original.
    let ended = server.client("-tcp:1 -up:1000 -pstream:1");
    assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"]);
}
