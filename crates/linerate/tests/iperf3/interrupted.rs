//! A server that a signal ends during a test says so once, in the test's own output.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::deaths::await_interval;
use super::programs::{Process, Program, serve};

/// What an interrupted server has printed, and its complaints.
fn interrupted(words: &str) -> (String, String) {
    let (mut server, port) = serve(Program::Ours, words);
    let words = format!("-c 127.0.0.1 -p {port} -t 60 -b 20M -i 0.2 --forceflush");
    let mut client = Process::start(&mut Program::Ours.command(&words));
    let _unread = await_interval(&mut client);
    kill_process(Pid::from_child(&server.0), Signal::INT).unwrap();
    let (text, complaint) = (server.text(), server.complaint());
    assert_eq!((server.wait(), client.wait()), (0, 1));
    (text, complaint)
}

const SAID: &str = "interrupt - the server has terminated by signal Interrupt(2)";

#[test]
fn an_interrupted_server_prints_one_document_with_its_figures_and_the_reason() {
    let (text, complaint) = interrupted("-J");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((document["error"].as_str(), complaint.as_str()), (Some(SAID), ""));
    assert!(document["end"]["sum_received"]["bytes"].as_u64().unwrap() > 0, "{text}");
}

#[test]
fn an_interrupted_server_has_one_event_of_its_error_and_one_of_its_end() {
    let (text, complaint) = interrupted("--json-stream");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let (errors, ends) = (of("error"), of("end"));
    assert_eq!((errors.len(), ends.len(), complaint.as_str()), (1, 1, ""));
    assert_eq!(errors[0]["data"], SAID);
    assert!(ends[0]["data"]["sum_received"]["bytes"].as_u64().unwrap() > 0, "{text}");
}

#[test]
fn an_interrupted_server_complains_once() {
    let (text, complaint) = interrupted("");
    assert_eq!(complaint, format!("iperf3: {SAID}\n"));
    assert!(text.contains(" receiver\n"), "{text}");
}
