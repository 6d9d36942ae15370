//! Output that can't be written: a word on standard error, and a failure.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

use super::programs::{Process, Program, serve};
use crate::quiet::free_port;

/// What standard error says of a full disk.
const FULL: &str =
    "error - output is lost: can't write to standard output: No space left on device";

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

fn run_to(stdout: Stdio, mut command: Command) -> Output {
    command.stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

fn assert_lost(output: &Output, text: &str, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}: {said}");
    assert_eq!(said.matches(text).count(), 1, "{words}: {said}");
}

#[test]
fn a_full_disk_fails_a_client() {
    for words in ["", "-J", "--json-stream", "-u -J", "-R -i 0"] {
        let (_server, port) = serve(Program::Ours, "");
        let command = Program::Ours.command(&format!("-c 127.0.0.1 -p {port} -n 100K {words}"));
        assert_lost(&run_to(full(), command), FULL, words);
    }
    assert_lost(&run_to(full(), Program::Ours.command("--version")), FULL, "--version");
}

#[test]
fn a_log_file_on_a_full_disk_fails_a_client() {
    for words in ["", "-J", "--json-stream"] {
        let (_server, port) = serve(Program::Ours, "");
        let words = format!("-c 127.0.0.1 -p {port} -n 100K --logfile /dev/full {words}");
        let output = run_to(Stdio::null(), Program::Ours.command(&words));
        assert_lost(&output, "can't write to '/dev/full': No space left on device", &words);
    }
}

#[test]
fn a_full_disk_fails_a_server() {
    for words in ["", "-J", "--logfile /dev/full"] {
        let port = free_port();
        let mut command = Program::Ours.command(&format!("-s -1 -p {port} {words}"));
        let server = command.stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        while !super::programs::listens(server.id(), port) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let client = format!("-c 127.0.0.1 -p {port} -n 100K");
        assert_eq!(Process::start(&mut Program::Ours.command(&client)).wait(), 0, "{words}");
        let output = server.wait_with_output().unwrap();
        assert_lost(&output, "No space left on device", words);
    }
}

#[test]
fn a_standard_output_that_is_closed_from_the_start_fails_a_client() {
    let (_server, port) = serve(Program::Ours, "");
    let client = Program::Ours.command(&format!("-c 127.0.0.1 -p {port} -n 100K -J"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(client.get_program()).args(client.get_args());
    assert_lost(&run_to(Stdio::null(), shell), "it was closed", ">&-");
    // A file that takes everything, and keeps nothing, is no loss.
    let (_server, port) = serve(Program::Ours, "");
    let client = Program::Ours.command(&format!("-c 127.0.0.1 -p {port} -n 100K -J"));
    let output = run_to(Stdio::null(), client);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_full_disk_fails_every_tool() {
    for (tool, words) in [("netperf", "-V"), ("netserver", "-V"), ("secnetperf", "-help")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args([tool, words]);
        let output = run_to(full(), command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(FULL), "{tool}: {said}");
    }
}
