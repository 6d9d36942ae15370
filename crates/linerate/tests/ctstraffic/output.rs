//! The console's levels, the files, documents, and how runs end.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixture::{
    Ended, Folder, PORT, await_lines, await_listener, own_address, run_client, start,
    start_command, start_server,
};

/// A client and a server of four connections.
fn run_both(words: &str, client_words: &str, server_words: &str) -> (Ended, Ended, Folder) {
    let (address, folder) = (own_address(), Folder::new());
    let server = format!("{words} -serverexitlimit:4 {server_words}");
    let server = start_server(address, &server, &folder);
    let client = format!("{words} -connections:2 -iterations:2 {client_words}");
    let client = run_client(address, &client, &folder);
    (client, server.wait(), folder)
}

#[test]
fn each_level_of_the_console_shows_its_lines() {
    for (level, status, connections) in
        [(0, false, false), (1, true, false), (3, false, true), (4, false, true), (5, true, true)]
    {
        let level = format!("-transfer:100 -consoleverbosity:{level}");
        let (client, server, _) = run_both(&level, "", "");
        for ended in [&client, &server] {
            let text = &ended.stdout;
            assert!(
                text.starts_with("  Configured Settings  \n-----------------------\n"),
                "{text}"
            );
            assert!(text.contains("SuccessfulConnections [4]   NetworkErrors [0]"), "{text}");
            assert_eq!(text.contains("Legend:\n"), status, "{text}");
            assert_eq!(text.contains(" TimeSlice      SendBps      RecvBps  In-Flight"), status);
            let lines = |mark| text.matches(mark).count();
            let expected = if connections { 4 } else { 0 };
            assert_eq!(lines("TCP connection established ["), expected, "{text}");
            assert_eq!(lines("TCP connection succeeded : ["), expected, "{text}");
        }
    }
}

/// A status file: rows of numbers under the names of its columns, and at least one of them.
fn read_status(text: &str) -> Vec<Vec<f64>> {
    let (head, rows) = text.split_once('\n').unwrap();
    assert_eq!(head, "TimeSlice,SendBps,RecvBps,In-Flight,Completed,NetError,DataError");
    let numbers = |row: &str| row.split(',').map(|cell| cell.parse().unwrap()).collect();
    rows.lines().map(numbers).collect()
}

#[test]
fn files_have_rows_for_readers_of_the_originals() {
    let files =
        "-statusfilename:s.csv -connectionfilename:c.csv -tcpinfofilename:i.csv -statusupdate:100";
    let (client, server, folder) =
        run_both("-transfer:2000000 -ratelimit:4000000", files, "-statusfilename:there.csv");
    assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
    let rows = read_status(&folder.read("s.csv"));
    assert!(rows.len() > 5, "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "{rows:?}");
    let (first, last) = (&rows[0], &rows[rows.len() - 1]);
    // The first row is as true as the others, and the last one has all.
    assert!(first[1] < 1e9 && first[0] < 2.0, "{first:?}");
    assert_eq!(last[3..], [0.0, 4.0, 0.0, 0.0]);
    assert!(rows.iter().any(|row| row[1] > 1e6 && row[3] == 2.0), "{rows:?}");
    // What all rows tell of is what was sent.
    let mut before = 0.0;
    let sent: f64 =
        rows.iter().map(|row| row[1] * (row[0] - std::mem::replace(&mut before, row[0]))).sum();
    assert!((sent - 8e6).abs() < 2e5, "{sent} {rows:?}");
    assert_eq!(read_status(&folder.read("there.csv")).last().unwrap()[4], 4.0);
    let information = folder.read("i.csv");
    let columns = information.lines().map(|line| line.matches(',').count());
    assert_eq!(columns.collect::<Vec<_>>(), [19; 5]);
    assert_eq!(folder.rows("c.csv").len(), 4);
}

#[test]
fn text_files_may_be_one_and_utf16_is_the_originals() {
    let files = "-statusfilename:all.txt -connectionfilename:all.txt -errorfilename:e.txt --utf16";
    let (client, _, folder) = run_both("-transfer:100", files, "");
    assert_eq!(client.exit_code, 0);
    let bytes = fs::read(folder.path("all.txt")).unwrap();
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text = String::from_utf16(&units.collect::<Vec<_>>()).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap();
    assert!(
        text.contains("Legend:\r\n") && text.contains("TCP connection succeeded : ["),
        "{text}"
    );
    assert!(
        text.contains("  Configured Settings  \r\n") && text.contains("Total Time : "),
        "{text}"
    );
    assert_eq!(fs::read(folder.path("e.txt")).unwrap(), [0xff, 0xfe]);
}

#[test]
fn documents_take_the_place_of_lines() {
    let (client, server, _) = run_both("-transfer:1000 -pattern:pull", "--json", "--ndjson");
    let document: Value = serde_json::from_str(&client.stdout).unwrap();
    assert_eq!(document["completed"], 4);
    assert_eq!(document["received_bytes"], 4 * 1041);
    assert_eq!(document["connections"].as_array().unwrap().len(), 4);
    let lines: Vec<Value> =
        server.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!((of("connection"), of("result")), (4, 1));
    assert!(of("status") >= 2);
    assert_eq!(lines.last().unwrap()["sent_bytes"], 4 * 1041);
}

#[test]
fn a_run_document_and_its_records_have_connections_by_what_came_of_them() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-transfer:300000 -ratelimit:600000 -serverexitlimit:2";
    let server = start_server(address, words, &folder);
    let words = format!(
        "-target:{address} -transfer:300000 -ratelimit:600000 -connections:2 -iterations:1 -statusupdate:100"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("ctstraffic").args(words.split_whitespace());
    command.env("LINERATE_RUN_DOCUMENT", folder.path("run.json"));
    command.env("LINERATE_RUN_RECORDS", folder.path("records.ndjson"));
    let client = start_command(command, &words).wait();
    server.wait();
    assert_eq!(client.exit_code, 0, "{client:?}");
    let run: Value = serde_json::from_str(&folder.read("run.json")).unwrap();
    assert_eq!(
        (&run["dialect"], &run["status"]["outcome"]),
        (&"ctstraffic".into(), &"complete".into())
    );
    let totals = &run["reports"][0]["extension"]["ctstraffic"];
    assert_eq!(
        (&totals["completed"], &totals["sent_bytes"]),
        (&2.into(), &600_000.into()),
        "{run}"
    );
    let records = folder.read("records.ndjson");
    let records: Vec<Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let open = records.iter().map(|record| &record["sample"]["extension"]["ctstraffic"]["open"]);
    assert!(open.into_iter().any(|open| *open == 2), "{records:?}");
}

#[test]
fn run_document_of_refused_run_says_failed() {
    let stream = "-protocol:udp -bitspersecond:1000000 -framerate:30 -streamlength:1";
    for (words, text) in [
        (
            "-target:no-such-name.invalid".to_owned(),
            "-target value did not resolve to an IP address",
        ),
        (
            format!("-target:no-such-name.invalid {stream}"),
            "-target value did not resolve to an IP address",
        ),
        (
            "-listen:no-such-name.invalid".to_owned(),
            "-listen value did not resolve to an IP address",
        ),
        (
            "-target:127.0.0.1 -statusfilename:no/such/folder.csv".to_owned(),
            "can't write to no/such/folder.csv",
        ),
    ] {
        let folder = Folder::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.arg("ctstraffic").args(words.split_whitespace()).current_dir(folder.path(""));
        command.env("LINERATE_RUN_DOCUMENT", folder.path("run.json"));
        let ended = start_command(command, &words).wait();
        assert_eq!(ended.exit_code, 13, "{ended:?}");
        assert!(ended.stderr.contains(&format!("Invalid argument specified: {text}")), "{ended:?}");
        let run: Value = serde_json::from_str(&folder.read("run.json")).unwrap();
        let status = &run["status"];
        assert_eq!((&status["outcome"], &status["exit_code"]), (&"failed".into(), &13.into()));
        assert!(status["message"].as_str().unwrap().starts_with(text), "{status}");
        assert_eq!(
            run["plan"]["workload"]["transport"],
            if words.contains("udp") { "udp" } else { "tcp" }
        );
    }
}

#[test]
fn a_run_document_has_a_goodput_and_no_number_that_nobody_asked_for() {
    for (pattern, ways) in [("push", [true, false]), ("pull", [false, true]), ("duplex", [true; 2])]
    {
        let (address, folder) = (own_address(), Folder::new());
        let words = format!("-pattern:{pattern} -transfer:3000000 -timelimit:2000");
        let server =
            start_server(address, &format!("-pattern:{pattern} -transfer:3000000"), &folder);
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let target = format!("-target:{address}");
        command.args(["ctstraffic", &target]).args(words.split_whitespace());
        command.env("LINERATE_RUN_DOCUMENT", folder.path("run.json"));
        let ended = start_command(command, &words).wait();
        server.interrupt();
        assert_eq!(ended.exit_code, 0, "{ended:?}");
        let text = folder.read("run.json");
        assert!(!text.contains("18446744073709551615"), "{text}");
        let run: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(run["plan"]["workload"]["end"]["duration_ns"], 2_000_000_000_u64);
        let reasons = run["status"]["reasons"].to_string();
        assert!(!reasons.contains("contradiction"), "{reasons}");
        let summary = &run["summary"];
        let goodput_bps = summary["goodput_bps"].as_f64().unwrap();
        let of_ways = ["goodput_up_bps", "goodput_down_bps"].map(|name| summary[name].as_f64());
        if ways == [true; 2] {
            let [up, down] = of_ways.map(Option::unwrap);
            assert!((goodput_bps / (up + down) - 1.0).abs() < 1e-9 && up > 0.0 && down > 0.0);
        }
        // What is acknowledged is at most what was sent, and nearly all.
        let totals = &run["reports"][0]["extension"]["ctstraffic"];
        let bytes = |name: &str| totals[name].as_f64().unwrap();
        let moved = match pattern {
            "push" => bytes("sent_bytes"),
            "pull" => bytes("received_bytes"),
            _ => bytes("sent_bytes") + bytes("received_bytes"),
        };
        let most_bps = moved * 8.0 / summary["elapsed_s"].as_f64().unwrap();
        assert!((0.5 * most_bps..=1.001 * most_bps).contains(&goodput_bps), "{summary} {totals}");
    }
}

#[test]
fn an_interrupt_and_a_pause_end_a_run_with_its_summary() {
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(
        address,
        "-transfer:1000000000 -ratelimit:1000 -connectionfilename:s.csv",
        &folder,
    );
    let client = format!(
        "-target:{address} -transfer:1000000000 -ratelimit:1000 -connections:2 -connectionfilename:c.txt"
    );
    let client = start(&client, &folder);
    await_lines(&folder.path("c.txt"), "TCP connection established [", 2);
    let client = client.interrupt();
    assert!(client.stdout.contains("**** ctrl-break hit -- shutting down ****"), "{client:?}");
    assert!(!client.stdout.contains("connection failed"), "{client:?}");
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]));
    await_lines(&folder.path("s.csv"), "ErrorNotAllDataTransferred", 2);
    let server = server.interrupt();
    assert_eq!(server.totals(), [0, 0, 2], "the client closed in order: {server:?}");
    let (client, ..) = run_both("-transfer:100", "-pauseatend:500", "");
    assert!(client.stdout.contains("Pausing 500 ms"), "{client:?}");
    let time = client.stdout.split("Total Time : ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(time.parse::<u64>().unwrap() >= 500, "{client:?}");
}

#[test]
fn run_that_cannot_begin_prints_why_and_has_its_own_exit_code() {
    let (address, folder) = (own_address(), Folder::new());
    let _taken = TcpListener::bind((address, PORT)).unwrap();
    let ended = start(&format!("-listen:{address}"), &folder).wait();
    assert_eq!(ended.exit_code, 255, "{ended:?}");
    assert!(ended.stderr.contains("ctsTraffic: can't listen on"), "{ended:?}");
    for (words, why) in [
        ("-target:no-such-name.invalid", "-target value did not resolve to an IP address"),
        ("-target:127.0.0.1 -bind:::1", "-bind addresses and target addresses must match families"),
        ("-target:127.0.0.1 -statusfilename:no/such/folder", "can't write to no/such/folder"),
    ] {
        let ended = start(words, &folder).wait();
        assert_eq!(ended.exit_code, 13, "{ended:?}");
        assert!(ended.stderr.contains(&format!("Invalid argument specified: {why}")), "{ended:?}");
    }
}

#[test]
fn a_stopped_output_loses_lines_and_no_counts() {
    let (address, folder) = (own_address(), Folder::new());
    let mut server = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args([
            "ctstraffic",
            &format!("-listen:{address}"),
            "-transfer:1",
            "-serverexitlimit:12000",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    await_listener((address, PORT).into());
    // Nobody reads what the server prints: two lines for each connection, of which a pipe holds few.
    let words = "-transfer:1 -connections:20 -iterations:600 -shutdown:rude -consoleverbosity:0";
    let client = run_client(address, words, &folder);
    assert_eq!((client.exit_code, client.totals()), (0, [12_000, 0, 0]), "{client:?}");
    let (mut told, mut errors) = (String::new(), String::new());
    server.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    server.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(told.contains("SuccessfulConnections [12000]   NetworkErrors [0]"), "{errors}");
    let lines = told.lines().filter(|line| line.contains("TCP connection ")).count();
    let lost = errors.split(" events have no line").next().unwrap();
    let lost: usize = lost.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(lost > 0, "{errors}");
    assert_eq!(lines + lost, 24_000, "{errors}");
}
