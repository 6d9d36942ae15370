//! A user at the limit of threads (RLIMIT_NPROC): every program ends with an error that names the limit, whichever
//! thread can't start.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Lines, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::ends::copy_for_every_user;
use crate::quiet::free_port;
use crate::skipped::skip;

const NAME_OF_LIMIT: &str = "ulimit -u";

/// The program, where every user may run it and keep what it keeps.
struct Place(TempDir);

impl Place {
    /// `None`: this test can't become another user, which is said.
    fn new() -> Option<Self> {
        let trial = [
            "--reuid",
            "1000000",
            "--regid",
            "1000000",
            "--clear-groups",
            "prlimit",
            "--nproc=1",
            "true",
        ];
        let tried = Command::new("setpriv").args(trial).output();
        if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            skip(&format!(
                "another user, whose threads are limited, takes root, setpriv and prlimit: {tried:?}"
            ));
            return None;
        }
        let directory = TempDir::new().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let place = Self(directory);
        copy_for_every_user(place.0.path());
        Some(place)
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("linerate")
    }

    /// The program as a user of its own with this limit of threads.
    fn limited(&self, threads: u32) -> Command {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let user = (1_000_000 + std::process::id() % 100_000 * 1_000 + next % 1_000).to_string();
        let home = self.0.path().join(&user);
        std::fs::create_dir(&home).unwrap();
        std::fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
            .args(["prlimit", &format!("--nproc={threads}")])
            .arg(self.program())
            .env("HOME", &home)
            .env("XDG_STATE_HOME", &home)
            .env("XDG_CONFIG_HOME", &home)
            .stdin(Stdio::null());
        command
    }
}

/// A server that is ended when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The native server at work, its port and its key; the output of one that had too few threads to begin.
fn serve(mut command: Command) -> Result<(Ended, String, String, BufReader<ChildStdout>), Output> {
    let arguments = ["serve", "--bind", "127.0.0.1", "--port", "0", "--ndjson"];
    let mut server =
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    if first.is_empty() {
        return Err(server.wait_with_output().unwrap());
    }
    let listening: Value = serde_json::from_str(&first).unwrap();
    let word = |name: &str| listening[name].as_str().unwrap().to_owned();
    Ok((Ended(server), word("address"), word("fingerprint"), lines))
}

#[track_caller]
fn assert_names_limit(what: &str, output: &Output) {
    let told = [&output.stdout[..], &output.stderr[..]].concat();
    let told = String::from_utf8_lossy(&told);
    assert_eq!(output.status.code(), Some(1), "{what}: {told}");
    assert!(told.contains(NAME_OF_LIMIT) && !told.contains("panicked"), "{what}: {told}");
}

#[test]
fn a_native_client_without_more_threads_names_the_limit() {
    let Some(place) = Place::new() else { return };
    let (_server, address, key, _lines) = serve(Command::new(place.program())).unwrap();
    for threads in 1..=4 {
        for load in ["rr", "stream --quic", "connect"] {
            let words = format!("{load} {address} --server-key {key} --flows 8 --threads 8 --json");
            let output = place.limited(threads).args(words.split(' ')).output().unwrap();
            assert_names_limit(&format!("{threads} threads: {words}"), &output);
            let document = String::from_utf8(output.stdout).unwrap();
            if threads > 2 {
                let document: Value = serde_json::from_str(&document).unwrap();
                assert_eq!(document["status"]["exit_code"], 1, "{words}");
            }
        }
    }
}

#[test]
fn a_native_server_without_more_threads_names_the_limit_and_serves_on() {
    let Some(place) = Place::new() else { return };
    let mut served = 0;
    for threads in 1..=4 {
        let (server, address, key, _lines) = match serve(place.limited(threads)) {
            Ok(server) => server,
            Err(output) => {
                assert_names_limit(&format!("a server of {threads} threads"), &output);
                continue;
            }
        };
        for load in ["rr", "stream --quic", "connect"] {
            let words =
                format!("{load} {address} --server-key {key} --flows 8 --threads 8 --time 1s");
            let mut client = Command::new(place.program());
            let output = client.args(words.split(' ')).output().unwrap();
            assert_names_limit(&format!("a server of {threads} threads: {words}"), &output);
        }
        served += 1;
        drop(server);
    }
    assert!(served > 0, "no server began");
}

/// A server of another dialect that has said that it listens, and what it says then.
fn start(
    mut command: Command,
    words: &str,
    listening: &str,
) -> (Ended, Lines<BufReader<ChildStdout>>) {
    let command = command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Ended(command.spawn().unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let listens = |line: std::io::Result<String>| line.unwrap().starts_with(listening);
    assert!(lines.any(listens), "{words}: it never listened");
    (server, lines)
}

#[test]
fn iperf3_without_more_threads_names_the_limit() {
    let Some(place) = Place::new() else { return };
    let port = free_port();
    let serving = format!("iperf3 -s -B 127.0.0.1 -p {port} --forceflush");
    let asking = format!("iperf3 -c 127.0.0.1 -p {port} -P 8 -t 1");
    let server = start(Command::new(place.program()), &serving, "Server listening");
    for threads in 1..=4 {
        for more in ["", " -J"] {
            let words = format!("{asking}{more}");
            let output = place.limited(threads).args(words.split(' ')).output().unwrap();
            assert_names_limit(&format!("{threads} threads: {words}"), &output);
        }
    }
    drop(server);
    for threads in 1..=2 {
        let words = format!("{serving} -1");
        let (mut server, lines) = start(place.limited(threads), &words, "Server listening");
        let mut client = Command::new(place.program());
        let output = client.args(asking.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        // Its exit code is the original's, which doesn't tell how the one test went.
        server.0.wait().unwrap();
        let mut told: String = lines.map_while(Result::ok).collect();
        server.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(told.contains(NAME_OF_LIMIT) && !told.contains("panicked"), "{threads}: {told}");
    }
}

#[test]
fn netperf_without_more_threads_names_the_limit() {
    let Some(place) = Place::new() else { return };
    let port = free_port();
    let serving = format!("netserver -D -L 127.0.0.1 -p {port}");
    let server = start(Command::new(place.program()), &serving, "Starting netserver");
    let asking = format!("netperf -H 127.0.0.1 -p {port} -l 1");
    let output = place.limited(1).args(asking.split(' ')).output().unwrap();
    assert_names_limit(&asking, &output);
    drop(server);
    let output = place.limited(1).args(serving.split(' ')).output().unwrap();
    assert_names_limit(&serving, &output);
}
