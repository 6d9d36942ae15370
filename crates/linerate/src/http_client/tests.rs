//! HTTP to a server that stands in the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use linerate_engine::event::Cancel;
use linerate_results::exchange::{Exchange, Request};

use super::client::authorization;
use super::{Http, Remote, Service, checked};
use crate::args::ServerArgs;

const SERVICE: Service = Service { variable: "NO_SUCH_VARIABLE", example: "https://h:1" };

/// Answers connections one after the other, each with one of these texts; an empty one is cut. What was asked comes out.
fn serve(answers: Vec<&'static str>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, asked) = channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            told.send(read_request(&stream)).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, asked)
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    format!("{head}\n{}", String::from_utf8(body).unwrap())
}

fn http(url: &str, authorization: Option<&str>) -> Http {
    let target = Remote {
        url: url.to_owned(),
        authorization: authorization.map(str::to_owned),
        authorities: Vec::new(),
    };
    Http::new(&target, &Cancel::default()).unwrap()
}

#[test]
fn a_request_carries_body_kind_and_credential() {
    let (address, asked) = serve(vec![
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        "HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull",
        "",
    ]);
    let mut http = http(&format!("http://{address}/search"), Some("ApiKey abc"));
    let bulk = Request { method: "POST", path: "/_bulk", body: "{}\n{}\n" };
    let reply = http.send(&bulk).unwrap();
    assert_eq!((reply.status, reply.retry_after, reply.body.as_str()), (200, None, "{}"));
    let seen = asked.recv().unwrap().to_ascii_lowercase();
    for part in
        ["post /search/_bulk ", "authorization: apikey abc", "application/x-ndjson", "\n{}\n{}\n"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let reply = http.send(&Request { method: "GET", path: "/", body: "" }).unwrap();
    assert_eq!((reply.status, reply.body.as_str()), (429, "full"));
    assert_eq!(reply.retry_after.map(|time| time.as_secs()), Some(7));
    assert!(http.send(&Request { method: "GET", path: "/", body: "" }).is_err(), "cut");
}

#[test]
fn a_pause_ends_where_nothing_is_wanted() {
    let cancel = Cancel::default();
    cancel.request();
    let target =
        Remote { url: "http://h".to_owned(), authorization: None, authorities: Vec::new() };
    let mut http = Http::new(&target, &cancel).unwrap();
    assert!(!http.pause(std::time::Duration::from_secs(3600)));
}

#[test]
fn a_request_ends_where_nothing_is_wanted() {
    let cancel = Cancel::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = Remote { url, authorization: None, authorities: Vec::new() };
    let mut http = Http::new(&target, &cancel).unwrap();
    let (ended, end) = channel::<()>();
    let interrupt = cancel.clone();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let seen = read_request(&stream);
        interrupt.request();
        // The server says nothing until the client has given up.
        let _closed = end.recv();
        (seen, listener)
    });
    let request = Request { method: "GET", path: "/silent", body: "" };
    assert_eq!(http.send(&request).unwrap_err(), "interrupted");
    drop(ended);
    let (seen, listener) = server.join().unwrap();
    assert!(seen.starts_with("GET /silent "), "{seen}");
    assert_eq!(http.send(&request).unwrap_err(), "interrupted");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nothing is asked any more");
}

#[test]
fn credentials_become_headers() {
    let header = |line: &str| authorization(line).unwrap_or_else(|why| format!("refused: {why}"));
    assert_eq!(header("Basic u:p\n"), "Basic dTpw");
    assert_eq!(header("bearer t"), "Bearer t");
    assert_eq!(header("ApiKey k=="), "ApiKey k==");
    for wrong in ["", "u:p", "Basic u", "Digest x", "Bearer ", "Bearer a\nb"] {
        assert!(header(wrong).starts_with("refused: "), "{wrong}");
    }
}

#[test]
fn addresses_are_checked() {
    let address = |url| checked(&SERVICE, "--index", url);
    assert_eq!(address("http://h:9200/").unwrap(), "http://h:9200");
    assert_eq!(address("https://h/search").unwrap(), "https://h/search");
    for credential in [
        "https://user:secret@h",
        "HTTPS://user:secret@h",
        "user:secret@h:9200",
        "http://user:sec/secret@h",
        "http:///user:secret@h",
    ] {
        let why = address(credential).unwrap_err();
        assert!(why.contains("--auth-file") && !why.contains("secret"), "{credential}: {why}");
    }
    for wrong in ["h:9200", "http://", "ftp://h", "http://h?x", "http://h o"] {
        assert!(address(wrong).unwrap_err().contains("--index"), "{wrong}");
    }
}

#[test]
fn files_that_are_missing_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let none = directory.path().join("none");
    let server = ServerArgs { ca: Some(none.clone()), auth_file: None };
    let why = Remote::new(&SERVICE, "--index", "https://h", &server).unwrap_err();
    assert!(why.contains("--ca") && why.contains("none"), "{why}");
    let why = Remote::new(&SERVICE, "--index", "http://h", &server).unwrap_err();
    assert!(why.contains("--ca needs an address of https"), "{why}");
    let server = ServerArgs { ca: None, auth_file: Some(none) };
    let why = Remote::new(&SERVICE, "--index", "http://h", &server).unwrap_err();
    assert!(why.contains("--auth-file"), "{why}");
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "no certificate").unwrap();
    let server = ServerArgs { ca: Some(empty), auth_file: None };
    let why = Remote::new(&SERVICE, "--index", "https://h", &server).unwrap_err();
    assert!(why.contains("no certificate in PEM"), "{why}");
}
