//! One end is killed in the middle of a test; the other one notices, says so, and ends.

use std::io::{BufRead, BufReader};

use super::cli::for_all;
use super::programs::{Process, Program, serve};

const GONE: &str = "control socket has closed unexpectedly";

/// Waits until a process has told its first interval.
fn await_interval(process: &mut Process) {
    let stdout = BufReader::new(process.0.stdout.take().unwrap());
    let told = stdout.lines().map_while(Result::ok).any(|line| line.contains("bits/sec"));
    assert!(told, "there was no interval: {}", process.complaint());
}

fn dies(words: &str, client_dies: bool) {
    let (mut server, port) = serve(Program::Ours, "-i 0.2");
    let words = format!("-c 127.0.0.1 -p {port} -t 60 -i 0.2 --forceflush {words}");
    let mut client = Process::start(&mut Program::Ours.command(&words));
    await_interval(&mut client);
    let (dead, left) =
        if client_dies { (&mut client, &mut server) } else { (&mut server, &mut client) };
    dead.0.kill().unwrap();
    // The server's output fits into its pipe; nobody reads it.
    assert_eq!(left.wait(), 1, "{words}");
    let complaint = left.complaint();
    assert!(complaint.contains(GONE), "{words}: {complaint}");
}

#[test]
fn whoever_is_left_ends() {
    let kinds = ["-b 20M", "-b 20M -R", "-b 20M --bidir", "-u -b 20M", "-u -b 20M -R", "-m -b 20M"];
    for_all(kinds.to_vec(), |words| {
        dies(words, true);
        dies(words, false);
    });
}
