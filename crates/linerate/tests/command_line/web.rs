//! `linerate web`: the pages of a store, and whom they are for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use linerate_measure::record::Record;
use linerate_measure::sample::Traffic;
use linerate_measure::{Direction, Plan, Role, Sample, Transport, Workload};
use rustix::process::{Pid, Signal, kill_process};

use super::results::keep_matrix;
use super::{command, run_in};

/// Sends a request for this host and returns the connection.
fn ask(address: &str, request: &str, host: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server leaves its processor to whatever is measured (nice 19): on a busy machine it is slow.
    stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    stream
}

/// The whole answer to a request of a browser on this machine.
fn answer_to(address: &str, request: &str) -> String {
    let mut answer = String::new();
    ask(address, request, address).read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, path: &str) -> String {
    answer_to(address, &format!("GET {path}"))
}

/// A server, ended when dropped.
struct Web(Child);

impl Web {
    /// Starts it; its address.
    fn start(directory: &std::path::Path, words: &str) -> (Self, String) {
        let mut server = Self(command(directory, words).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, _) = line.strip_prefix("http://").unwrap().split_once('/').unwrap();
        (server, address.to_owned())
    }

    /// It ends well when it is told to.
    fn assert_ends(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The next event of a stream of them.
fn next_event(events: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        assert!(events.read_line(&mut line).unwrap() > 0, "the stream of events ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return data.trim().to_owned();
        }
    }
}

#[test]
fn pages_of_a_store_follow_it() {
    let home = tempfile::tempdir().unwrap();
    let (server, address) = Web::start(home.path(), "web --port 0 --store kept.db");
    let empty = get(&address, "/");
    assert!(
        empty.starts_with("HTTP/1.1 200 OK\r\n") && empty.contains("There is no run yet"),
        "{empty}"
    );
    let mut events = BufReader::new(ask(&address, "GET /events", &address));
    let before = next_event(&mut events);
    keep_matrix(&home.path().join("kept.db"));
    assert_ne!(next_event(&mut events), before);
    for _ in 0..2 {
        let words = "stream 127.255.255.254 --port 9 --store=kept.db --json --title twice";
        assert_eq!(run_in(home.path(), words).exit_code, 3);
    }

    let list = get(&address, "/");
    assert!(
        list.contains("href=\"/run/0a1b2c3d\"") && list.contains("data-live=\"/events\""),
        "{list}"
    );
    assert!(list.contains("nightly.[2J") && !list.contains('\u{1b}'), "{list}");
    let matrix = get(&address, "/run/0a1b2c3d");
    assert_eq!(matrix.matches("class=\"spark\"").count(), 2, "{matrix}");
    assert!(
        matrix.contains("id=\"document\"") && matrix.contains("connect-src 'self'"),
        "{matrix}"
    );
    let (_, link) = list.split_once("/compare?").unwrap();
    let (query, _) = link.split_once('"').unwrap();
    let comparison = get(&address, &format!("/compare?{}", query.replace("&amp;", "&")));
    assert!(comparison.contains("no figure was measured on both sides"), "{comparison}");

    let evil = "rebound.example.org";
    for (request, host, status) in [
        ("GET /", evil, "421"),
        ("GET /events", evil, "421"),
        ("GET /run/none", "localhost:1", "404"),
        ("GET /run/../kept.db", "localhost", "404"),
        ("GET /kept.db", "[::1]", "404"),
        ("GET /compare?a=none", "127.0.0.1", "404"),
        ("GET /compare?a=0a1b2c3d&b=0a1b2c3d", "127.0.0.1", "404"),
        ("POST /", "127.0.0.1", "405"),
    ] {
        let mut answer = String::new();
        ask(&address, request, host).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(!answer.contains("0a1b2c3d\""), "{answer}");
    }
    let head = answer_to(&address, "HEAD /");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");

    // It ends when it is told to, also while somebody follows.
    server.assert_ends();
}

#[test]
fn a_run_that_is_being_measured_is_followed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run.ndjson");
    let (server, address) =
        Web::start(home.path(), "web --port 0 --store kept.db --follow run.ndjson");
    assert!(get(&address, "/live").contains("No run has begun"));
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    let plan = Box::new(Plan::new("192.0.2.1", 5250, workload));
    let (version, run_id) = (Record::VERSION, "0a1b".to_owned());
    let mut text = Record::Started { version, run_id: run_id.clone(), utc_ns: 0, plan }.render();
    let mut events = BufReader::new(ask(&address, "GET /events", &address));
    let before = next_event(&mut events);
    std::fs::write(&path, &text).unwrap();
    let after = next_event(&mut events);
    // Of the two parts of a version only that of the run has changed: the pages of the store stay.
    let parts = |version: &str| {
        let (store, run) = version.rsplit_once('+').unwrap();
        (store.to_owned(), run.to_owned())
    };
    assert_eq!(parts(&after).0, parts(&before).0);
    assert_eq!((parts(&before).1.as_str(), parts(&after).1.as_str()), ("0", "1"));
    let list = get(&address, "/");
    assert!(list.contains(&format!("data-version=\"{}\"", parts(&before).0)), "{list}");
    let page = get(&address, "/live");
    assert!(page.contains("data-version=\"+"), "{page}");
    assert!(page.contains("<b>measuring</b> 0 samples") && page.contains("data-live="), "{page}");
    let sample = Sample { to_ns: 1_000_000_000, ..Sample::nothing(Role::Server) };
    let received = Some(Traffic { bytes: 1_000_000, calls: None });
    let sample = Box::new(Sample { received, ..sample });
    text += &Record::Sample { version, run_id, sample }.render();
    std::fs::write(&path, &text).unwrap();
    let page = get(&address, "/live");
    assert!(
        page.contains("<b>measuring</b> 1 samples") && page.contains("<h2>Over time"),
        "{page}"
    );
    let failed = run_in(home.path(), "stream 127.255.255.254 --port 9 --ndjson");
    std::fs::write(&path, text + &failed.stdout).unwrap();
    let page = get(&address, "/live");
    assert!(page.contains("id=\"document\"") && !page.contains("<b>measuring"), "{page}");
    server.assert_ends();
}

#[test]
fn a_port_that_is_taken_and_a_store_that_is_none_are_told() {
    let home = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ended = run_in(home.path(), &format!("web --port {port} --store kept.db"));
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("--port"), "{}", ended.stderr);
    std::fs::write(home.path().join("text"), "no store, but a text of some length".repeat(9))
        .unwrap();
    let (server, address) = Web::start(home.path(), "web --port 0 --store text --follow x");
    assert!(get(&address, "/").starts_with("HTTP/1.1 503 "));
    // The run that is followed needs no store.
    assert!(get(&address, "/live").contains("No run has begun"));
    let mut events = BufReader::new(ask(&address, "GET /events", &address));
    assert_eq!(next_event(&mut events), "+0");
    server.assert_ends();
}
