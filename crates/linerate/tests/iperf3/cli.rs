//! The command line in both roles, ours against ours and against an installed original: text by the
//! expressions that wrappers use, JSON by the original's own fields.

use crate::skipped::skip;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hostile_peers::{control_connection, read};
use super::ours;
use super::programs::{LIMIT, Process, Program, has_original, listens, serve};
use crate::quiet::free_port;

/// What a client and its server printed; both must have ended well.
fn test(server: Program, client: Program, words: &str, both: &str) -> (String, String) {
    let (mut served, port) = serve(server, both);
    let words = format!("-c 127.0.0.1 -p {port} {words} {both}");
    let mut tested = Process::start(&mut client.command(&words));
    let text = tested.text();
    assert_eq!(tested.wait(), 0, "{words}: {text}");
    let server_text = served.text();
    assert_eq!(served.wait(), 0, "{words}: {server_text}");
    (text, server_text)
}

/// The pairs in which one end is ours; with ours alone where there is no original.
pub(crate) fn pairs() -> Vec<(Program, Program)> {
    let mut pairs = vec![(Program::Ours, Program::Ours)];
    if has_original() {
        pairs.push((Program::Original, Program::Ours));
        pairs.push((Program::Ours, Program::Original));
    }
    pairs
}

/// Does this with each item, all at the same time: tests spend their time waiting.
pub(crate) fn for_all<T: Send>(items: Vec<T>, check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        let check = &check;
        let threads: Vec<_> =
            items.into_iter().map(|item| scope.spawn(move || check(item))).collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Each pair with each of these.
fn with_pairs<T: Copy>(items: &[T]) -> Vec<((Program, Program), T)> {
    pairs().into_iter().flat_map(|pair| items.iter().map(move |item| (pair, *item))).collect()
}

pub(crate) fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn bytes(document: &Value, sum: &str) -> u64 {
    let bytes = document["end"][sum]["bytes"].as_u64();
    bytes.unwrap_or_else(|| panic!("no {sum} in {document}"))
}

#[test]
fn both_ends_agree_on_the_bytes() {
    let cases = with_pairs(&[
        ("-t 1 -b 20M -P 2", "sum_received"),
        ("-t 1 -b 20M -R", "sum_sent"),
        ("-n 2M -b 40M", "sum_received"),
        ("-u -t 1 -b 5M -l 1000", "sum_received"),
    ]);
    for_all(cases, |((server, client), (words, sum))| {
        let words = &format!("{words} -T title --timestamps");
        let (text, server_text) = test(server, client, words, "-J");
        let (client, server) = (document(&text), document(&server_text));
        assert!(bytes(&client, sum) > 0, "{words}: {text}");
        assert_eq!(bytes(&client, sum), bytes(&server, sum), "{words}: {text}\n{server_text}");
        assert!(client.get("error").is_none() && server.get("error").is_none());
    });
}

#[test]
fn an_interval_is_a_part_of_the_whole() {
    let (text, _) = test(Program::Ours, Program::Ours, "-t 1 -b 20M -i 0.25 -O 1", "-J");
    let document = document(&text);
    let counted = document["intervals"].as_array().unwrap().iter();
    let counted = counted.filter(|interval| interval["sum"]["omitted"] == false);
    let sum: u64 = counted.map(|interval| interval["sum"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, bytes(&document, "sum_sent"), "{text}");
}

/// Every field with the kind of its value.
pub(crate) fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(inner) => {
            inner.iter().for_each(|(name, value)| fields(value, &format!("{path}.{name}"), found));
        }
        Value::Array(inner) => {
            inner.iter().for_each(|value| fields(value, &format!("{path}[]"), found));
        }
        Value::Number(_) => drop(found.insert(format!("{path} number"))),
        Value::Bool(_) => drop(found.insert(format!("{path} bool"))),
        Value::String(_) => drop(found.insert(format!("{path} text"))),
        Value::Null => drop(found.insert(format!("{path} null"))),
    }
}

#[test]
fn documents_have_the_originals_fields() {
    if !has_original() {
        return;
    }
    let version = Command::new("iperf3").arg("--version").output().unwrap();
    if !version.stdout.starts_with(b"iperf 3.12") {
        return skip("the installed iperf3 is not 3.12, whose fields are compared here");
    }
    let of = |program: Program, words: &str| -> BTreeSet<String> {
        let (mut served, port) = serve(Program::Original, "");
        let words = format!("-c 127.0.0.1 -p {port} {words} -J");
        let mut command = program.command(&words);
        let mut tested = Process::start(command.env("LINERATE_IPERF3_VERSION", "3.12"));
        let document = document(&tested.text());
        assert_eq!((tested.wait(), served.wait()), (0, 0));
        let mut found = BTreeSet::new();
        fields(&document, "", &mut found);
        found
    };
    let cases =
        vec!["-t 1 -b 20M", "-t 1 -b 20M --bidir -P 2", "-u -t 1 -b 5M", "-u -t 1 -b 5M -R"];
    for_all(cases, |words| {
        assert_eq!(of(Program::Ours, words), of(Program::Original, words), "{words}");
    });
}

/// The figures of a line that ends so, as wrappers find them: `([0-9.]+) (Bytes|KBytes..)`.
fn line<'a>(text: &'a str, end: &str) -> Vec<&'a str> {
    let found = text.lines().find(|line| line.starts_with("[  5]") && line.ends_with(end));
    found.unwrap_or_else(|| panic!("no {end} in {text}")).split_whitespace().collect()
}

#[test]
fn wrappers_find_their_figures_in_text() {
    for_all(pairs(), |(server, client)| {
        let (text, server_text) = test(server, client, "-t 1 -b 20M -f m", "");
        for (text, end) in [(&text, "sender"), (&text, "receiver"), (&server_text, "receiver")] {
            let words = line(text, end);
            assert_eq!((words[0], words[1], words[3]), ("[", "5]", "sec"), "{text}");
            let amount: f64 = words[4].parse().unwrap();
            let rate: f64 = words[6].parse().unwrap();
            assert!(amount > 0.0 && rate > 0.0, "{text}");
            assert!(words[5].ends_with("Bytes"), "{text}");
            assert_eq!(words[7], "Mbits/sec", "{text}");
        }
        assert!(text.ends_with("\n\niperf Done.\n"), "{text}");
        let (text, _) = test(server, client, "-u -t 1 -b 5M -l 1000", "");
        let words = line(&text, "receiver");
        assert_eq!(words[9], "ms", "{text}");
        let (lost, total) = words[10].split_once('/').unwrap();
        assert!(lost.parse::<u64>().unwrap() < total.parse::<u64>().unwrap(), "{text}");
        assert!(words[11].starts_with('(') && words[11].ends_with("%)"), "{text}");
    });
}

#[test]
fn a_servers_output_comes_to_the_client() {
    for_all(pairs(), |(server, client)| {
        let (text, _) = test(server, client, "-t 1 -b 20M --get-server-output", "");
        assert!(text.contains("\nServer output:\nAccepted connection from 127.0.0.1"), "{text}");
        assert!(text.contains("  receiver\n\n\niperf Done.\n"), "{text}");
    });
}

#[test]
fn a_stream_of_events_comes_as_lines() {
    let (text, server_text) = test(Program::Ours, Program::Ours, "-t 1 -b 20M", "--json-stream");
    for text in [text, server_text] {
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.first().unwrap()["event"], "start");
        assert_eq!(events.last().unwrap()["event"], "end");
        assert!(events.iter().any(|event| event["event"] == "interval"), "{text}");
    }
}

fn output(words: &str) -> Output {
    ours(words).output().unwrap()
}

#[test]
fn unreachable_server_is_reported_in_text_and_json() {
    let port = free_port();
    let plain = output(&format!("-c 127.0.0.1 -p {port}"));
    assert_eq!(plain.status.code(), Some(1));
    let said = "unable to connect to server - server may have stopped running or use a different \
                port, firewall issue, etc.: Connection refused";
    assert_eq!(String::from_utf8_lossy(&plain.stderr), format!("iperf3: error - {said}\n"));
    let json = output(&format!("-c 127.0.0.1 -p {port} -J"));
    assert_eq!(json.status.code(), Some(1));
    assert_eq!(document(&String::from_utf8_lossy(&json.stdout))["error"], said);
    assert!(json.stderr.is_empty());
}

/// Reads until so many lines have this. The pipe stays open.
fn read_until(stdout: &mut BufReader<ChildStdout>, count: usize, wanted: &str) {
    let mut text = String::new();
    while text.matches(wanted).count() < count {
        assert!(stdout.read_line(&mut text).unwrap() > 0, "no {count} {wanted} in {text}");
    }
}

#[test]
fn a_signal_ends_a_test_with_what_there_is() {
    let (_served, port) = serve(Program::Ours, "");
    let mut client =
        Process::start(&mut ours(&format!("-c 127.0.0.1 -p {port} -t 60 -b 5M -i 0.2")));
    let mut stdout = BufReader::new(client.0.stdout.take().unwrap());
    read_until(&mut stdout, 2, " sec  ");
    let pid = rustix::process::Pid::from_child(&client.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    read_until(&mut stdout, 1, "  sender\n");
    assert_eq!(client.wait(), 0);
    let said = client.complaint();
    let expected = "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n";
    assert_eq!(said, expected);
}

#[test]
fn a_server_in_the_background_listens_when_the_command_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let port = free_port();
    let words = format!("-s -D -1 -p {port} -I {} --logfile {}", path("pid"), path("log"));
    let started = output(&words);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    let pid = std::fs::read_to_string(path("pid")).unwrap();
    assert!(listens(pid.parse().unwrap(), port));
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    let taken = output(&format!("-s -D -1 -p {port}"));
    assert_eq!(taken.status.code(), Some(1));
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(said.contains("unable to start listener for connections: Address already"), "{said}");
    let tested = output(&format!("-c 127.0.0.1 -p {port} -t 1 -b 20M"));
    assert_eq!(tested.status.code(), Some(0), "{tested:?}");
    let start = Instant::now();
    while Path::new(&path("pid")).exists() {
        assert!(start.elapsed() < LIMIT, "the server is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    let log = std::fs::read_to_string(path("log")).unwrap();
    assert!(log.contains("Accepted connection from 127.0.0.1"), "{log}");
}

/// Waits until a file has this, or (`None`) is no more.
fn await_file(path: &str, content: Option<&str>) {
    let start = Instant::now();
    while std::fs::read_to_string(path).ok().as_deref() != content {
        assert!(start.elapsed() < LIMIT, "{path} has not {content:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Neither end starts while the file that it is to write names a process that runs.
fn keeps_off_a_taken_file(path: &str) {
    let said = "iperf3: Another instance of iperf3 appears to be running\n";
    for words in ["-s -p 1", "-c 127.0.0.1 -p 1"] {
        let ended = Program::Ours.command(&format!("{words} -I {path}")).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{words}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), said, "{words}");
    }
}

#[test]
fn a_file_names_the_process_of_either_end_while_it_runs() {
    let mut programs = vec![Program::Ours];
    if has_original() {
        programs.push(Program::Original);
    }
    for_all(programs, |program| {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (of_server, of_client) = (path("server"), path("client"));
        // Of a process that is no more: there are no such numbers.
        std::fs::write(&of_server, "2000000000").unwrap();
        let (mut server, port) = serve(program, &format!("-I {of_server}"));
        let number = server.0.id().to_string();
        await_file(&of_server, Some(&number));
        // The original reads what happens to lie behind the number in its memory as more of the
        // number: where that is a digit, it takes the file of a process that runs.
        if program == Program::Ours {
            keeps_off_a_taken_file(&of_server);
        }
        assert_eq!(std::fs::read_to_string(&of_server).unwrap(), number);
        let words = format!("-c 127.0.0.1 -p {port} -t 1 -b 20M -I {of_client}");
        let mut client = Process::start(&mut program.command(&words));
        await_file(&of_client, Some(&client.0.id().to_string()));
        assert_eq!((client.wait(), server.wait()), (0, 0));
        assert!(!Path::new(&of_client).exists() && !Path::new(&of_server).exists());
        // One that comes to nothing leaves none.
        let nobody =
            program.command(&format!("-c 127.0.0.1 -p 1 -I {of_client}")).output().unwrap();
        assert_eq!(nobody.status.code(), Some(1));
        assert!(!Path::new(&of_client).exists());
    });
    let said = "iperf3: error - unable to write PID file: No such file or directory\n";
    let unwritten = output("-c 127.0.0.1 -p 1 -I /nowhere/pid");
    assert_eq!(String::from_utf8_lossy(&unwritten.stderr), said);
}

#[test]
fn an_option_says_how_many_tests_a_server_has_at_once() {
    let port = free_port();
    let mut command = ours(&format!("-s -p {port} --max-tests 1"));
    let server = Process::start(command.env("LINERATE_IPERF3_TESTS", "5"));
    let start = Instant::now();
    while !listens(server.0.id(), port) {
        assert!(start.elapsed() < LIMIT, "the server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut first, _) = control_connection(port, b'f');
    assert_eq!(read(&mut first, 1), [9]);
    let (mut second, _) = control_connection(port, b's');
    assert_eq!(read(&mut second, 1), [255]);
}

#[test]
fn a_log_file_takes_it_all() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log").display().to_string();
    let port = free_port();
    let words = format!("-c 127.0.0.1 -p {port} --logfile {log}");
    let ended = output(&words);
    assert_eq!((ended.status.code(), ended.stdout.len(), ended.stderr.len()), (Some(1), 0, 0));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("iperf3: error - unable to connect to server"), "{text}");
}

#[test]
fn a_link_of_the_name_is_the_personality() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("iperf3");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &link).unwrap();
    let version = Command::new(link).arg("-v").output().unwrap();
    assert!(version.stdout.starts_with(b"iperf 3.21 "), "{version:?}");
}
