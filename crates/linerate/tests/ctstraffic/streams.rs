//! Media streams over UDP: our client with our server, and the reflector's limits.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::Duration;

use linerate_measure::Run;
use serde_json::Value;

use crate::fixture::{Ended, Folder, PORT, own_address, run_client, start, start_command};

const STREAM: &str = "-protocol:udp -bitspersecond:2000000 -framerate:50 -streamlength:1";

#[test]
fn a_stream_has_all_its_frames_and_files_at_both_ends() {
    let (address, folder) = (own_address(), Folder::new());
    let server = format!("-listen:{address} {STREAM} -serverexitlimit:1 -connectionfilename:s.csv");
    let server = start(&server, &folder);
    // A START that comes before the server listens is sent again.
    let files = "-jitterfilename:j.csv -connectionfilename:c.csv -statusfilename:status.csv";
    let client = format!("{STREAM} -iterations:1 -statusupdate:250 {files}");
    let client = run_client(address, &client, &folder);
    let server = server.wait();
    let frames = |ended: &Ended, text: &str| ended.stdout.contains(text);
    assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
    assert!(frames(&client, "Total Successful Frames : 50 (100.000000)"), "{client:?}");
    let (here, there) = (folder.rows("c.csv"), folder.rows("s.csv"));
    assert_eq!((here.len(), there.len()), (1, 1));
    assert_eq!((&here[0][4], &here[0][8]), (&"50".to_owned(), &"Succeeded".to_owned()));
    // Both know the id, and each other's address.
    assert_eq!((&here[0][9], &here[0][2]), (&there[0][9], &there[0][1]));
    let numbers: Vec<_> = folder.rows("j.csv").iter().map(|row| row[0].clone()).collect();
    assert_eq!(numbers, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>());
    let rows = folder.rows("status.csv");
    let completed = rows.iter().map(|row| row[3].parse::<u64>().unwrap());
    assert_eq!(completed.sum::<u64>(), 50, "{rows:?}");
}

#[test]
fn run_documents_of_streams_have_waiting_and_machine() {
    let (address, folder) = (own_address(), Folder::new());
    let start_documented = |words: String, document: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.arg("ctstraffic").args(words.split_whitespace()).current_dir(folder.path(""));
        command.env("LINERATE_RUN_DOCUMENT", folder.path(document));
        start_command(command, &words)
    };
    let server = format!("-listen:{address} {STREAM} -serverexitlimit:1");
    let server = start_documented(server, "server.json");
    let client =
        start_documented(format!("-target:{address} {STREAM} -iterations:1"), "client.json");
    let (client, server) = (client.wait(), server.wait());
    assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
    for document in ["client.json", "server.json"] {
        let run: Run = serde_json::from_str(&folder.read(document)).unwrap();
        let own = run.reports.iter().find(|report| report.role == run.written_by).unwrap();
        assert!(own.waiting.is_some_and(|waiting| waiting.sleeps > 0), "{document}: {own:?}");
        assert!(own.cpu.is_some() && !own.machine_cpu.is_empty(), "{document}: {own:?}");
    }
}

#[test]
fn a_server_needs_a_limit_beyond_loopback_and_keeps_it() {
    let (address, folder) = (own_address(), Folder::new());
    let ended = start(&format!("-listen:* {STREAM}"), &folder).wait();
    assert_eq!(ended.exit_code, 255, "{ended:?}");
    assert!(ended.stderr.contains("give --max-rate"), "{ended:?}");
    let words = format!("-listen:{address} {STREAM} --max-rate:2000000 -timelimit:3000 --ndjson");
    let server = start(&words, &folder);
    let clients =
        [UdpSocket::bind((address, 0)), UdpSocket::bind((address, 0))].map(Result::unwrap);
    for _ in 0..20 {
        for client in &clients {
            let _nobody_yet = client.send_to(b"START", (address, PORT));
        }
        thread::sleep(Duration::from_millis(50));
    }
    let ended = server.wait();
    assert!(ended.stderr.contains("would exceed --max-rate:2000000"), "{ended:?}");
    let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert!(last["refused"].as_u64().unwrap() >= 1, "{last}");
    // No more than one stream at a time.
    let most = 2_000_000 * 4;
    assert!(last["bits"].as_u64().unwrap() <= most, "{last}");
}

/// Starts an end that leaves its run document and records.
fn start_recorded(words: &str, folder: &Folder, end: &str) -> crate::fixture::Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("ctstraffic").args(words.split_whitespace());
    command.env("LINERATE_RUN_DOCUMENT", folder.path(&format!("{end}.json")));
    command.env("LINERATE_RUN_RECORDS", folder.path(&format!("{end}.ndjson")));
    start_command(command, words)
}

#[test]
fn run_documents_of_both_ends_have_frames_and_streams_in_each_sample() {
    let (address, folder) = (own_address(), Folder::new());
    let words = format!("-listen:{address} {STREAM} -serverexitlimit:2 -statusupdate:200");
    let server = start_recorded(&format!("{words} --busy-poll"), &folder, "server");
    let words =
        format!("-target:{address} {STREAM} -connections:2 -iterations:1 -statusupdate:200");
    let client = start_recorded(&words, &folder, "client").wait();
    let server = server.wait();
    assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
    for (end, way, moved) in [("client", "received", 500_000), ("server", "sent", 500_000)] {
        let run: Value = serde_json::from_str(&folder.read(&format!("{end}.json"))).unwrap();
        let samples = run["samples"].as_array().unwrap();
        let sum =
            |path: &str| samples.iter().filter_map(|one| one.pointer(path)?.as_u64()).sum::<u64>();
        assert_eq!(sum(&format!("/{way}/bytes")), moved, "{samples:?}");
        let last = &samples.last().unwrap()["extension"]["ctstraffic"];
        assert_eq!((&last["open"], &last["completed"]), (&0.into(), &2.into()), "{last}");
        assert!(
            samples.iter().any(|one| one["extension"]["ctstraffic"]["open"] == 2),
            "{samples:?}"
        );
        let times = samples.windows(2).all(|pair| pair[0]["to_ns"] == pair[1]["from_ns"]);
        assert!(times && samples.len() > 3, "{samples:?}");
        let totals = &run["reports"][0]["extension"]["ctstraffic"];
        let frames = sum("/extension/ctstraffic/frames/completed");
        assert_eq!(totals["frames"]["completed"], frames, "{totals}");
        assert_eq!(frames, if end == "client" { 100 } else { 0 });
        let records = folder.read(&format!("{end}.ndjson"));
        assert_eq!(records.matches("\"record\":\"sample\"").count(), samples.len(), "{records}");
    }
}

#[test]
fn a_pause_keeps_streams_and_sockets_and_counts_in_the_time() {
    let (address, folder) = (own_address(), Folder::new());
    let words = format!("-listen:{address} {STREAM} -timelimit:500 -pauseatend:3000");
    let server = start(&words, &folder);
    let client = UdpSocket::bind((address, 0)).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    client.connect((address, PORT)).unwrap();
    // The server's time is over when this stream begins, or soon after.
    thread::sleep(Duration::from_millis(1000));
    let (mut datagrams, mut bytes) = (0, [0; 2000]);
    for _ in 0..50 {
        let _not_yet = client.send(b"START");
        if client.recv(&mut bytes).is_ok() {
            datagrams += 1;
        }
    }
    assert!(datagrams > 20, "{datagrams}");
    let ended = server.wait();
    assert!(ended.stdout.contains("Time-limit of 500 reached"), "{ended:?}");
    assert!(ended.stdout.contains("Pausing 3000 ms"), "{ended:?}");
    let time = ended.stdout.split("Total Time : ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(time.parse::<u64>().unwrap() >= 3500, "{ended:?}");
}
