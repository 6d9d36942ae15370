//! Where a process may have few open files.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::alone;
use crate::document::Document;
use crate::ends::{Server, as_ordinary_user, copy_for_every_user};
use crate::many::SOURCES;

/// A client that may have so many open files, run to its end against a server that may, too.
pub(crate) fn measure(open_files: u64, words: &str) -> Document {
    let server = Server::start("--bind 127.0.0.1");
    let limit = Rlimit { current: Some(open_files), maximum: Some(open_files) };
    let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
    prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    measure_with(&server, Command::new("sh"), env!("CARGO_BIN_EXE_linerate"), open_files, words)
}

/// A client of this server that this shell starts.
fn measure_with(
    server: &Server,
    mut shell: Command,
    program: &str,
    open_files: u64,
    words: &str,
) -> Document {
    let limited = format!("ulimit -n {open_files} && exec \"$0\" \"$@\"");
    let output = shell
        .args(["-c", &limited, program])
        .args(words.split_whitespace())
        .args(["127.0.0.1", "--port", &server.port.to_string(), "--json", "--quiet"])
        .args(["--server-key", &server.fingerprint])
        .env("HOME", server.home())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Document::parse(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn more_threads_than_asked_for_carry_what_one_table_cannot_hold() {
    let _one = alone();
    let document = measure(600, "rr --flows 2000 --threads 2 --count 4000");
    assert_eq!(document.outcome(), "complete", "{}", document.message());
    assert_eq!(document.count("transactions"), 4000);
    for role in ["client", "server"] {
        let shards = document.report(role)["host"]["ran_on_cpus"].as_array().unwrap();
        assert_eq!(shards.len(), 4, "{role}");
    }
}

/// Where connections on their way would fill the table by themselves.
#[test]
fn a_table_of_a_few_hundred_carries_thousands() {
    let _one = alone();
    for (open_files, words) in [
        (256, "rr --flows 2000 --count 2000"),
        (128, "stream --flows 300 --bytes 3M"),
        (64, "rr --tls --flows 200 --count 200"),
        (128, "rr --udp --flows 500 --count 500"),
    ] {
        let document = measure(open_files, words);
        assert_eq!(document.outcome(), "complete", "{open_files} {words}: {}", document.message());
    }
}

/// For an ordinary user the kernel has no more descriptors on their way between threads than may be open.
#[test]
fn descriptors_on_their_way_to_threads_are_waited_for() {
    let _one = alone();
    let server = Server::start("--bind 127.0.0.1");
    let home = tempfile::tempdir().unwrap();
    let program = copy_for_every_user(home.path());
    for _ in 0..3 {
        let shell = as_ordinary_user(Path::new("sh"));
        let words = "rr --tls --flows 200 --count 200";
        let document = measure_with(&server, shell, program.to_str().unwrap(), 64, words);
        assert_eq!(document.outcome(), "complete", "{}", document.message());
    }
}

/// The threads that agree on keys have file tables of their own, in which the key log isn't open.
#[test]
fn secrets_of_flows_in_tables_of_their_own_come_to_the_key_log() {
    let _one = alone();
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("secrets");
    let words = format!("rr --tls --flows 700 --count 700 --keylog {}", log.display());
    let document = measure(600, &words);
    assert_eq!(document.outcome(), "complete", "{}", document.message());
    let text = std::fs::read_to_string(&log).unwrap();
    let of_clients = |line: &&str| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ");
    assert_eq!(text.lines().filter(of_clients).count(), 700);
}

#[test]
fn flows_that_take_turns_have_a_place_in_each_of_many_threads() {
    let _one = alone();
    let words = format!("rr --flows 41000 --threads 1 --count 41000 {SOURCES}");
    let document = measure(400, &words);
    assert_eq!(document.outcome(), "complete", "{}", document.message());
    let threads = document.report("client")["host"]["ran_on_cpus"].as_array().unwrap().len();
    assert!(threads > 100, "{threads}");
    let active = document.json().pointer("/plan/workload/kind/active_flows").unwrap();
    assert_eq!(*active, 100 * threads);
}

#[test]
fn a_limit_that_leaves_no_way_is_named() {
    let _one = alone();
    let document = measure(64, "rr --flows 60000 --count 60000");
    assert_eq!(document.outcome(), "failed");
    let message = document.message();
    assert!(message.contains("64 open files") && message.contains("ulimit -n"), "{message}");
}
