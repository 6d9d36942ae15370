//! `linerate secnetperf -tcp:1` asks, a server of the framing that is not ours answers.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::fixture::{results, run, without_numbers};
use crate::framed::{ABORT, FIN, Framed, OPEN};
use crate::request::{ENDLESS, wanted_bytes};

/// The longest that the server's account is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one connection asked for, told at its end.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    streams: u64,
    request_bytes: u64,
    aborted: u64,
}

/// A server in threads of its own, for as long as the test runs.
fn start() -> (u16, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                // The test has ended otherwise.
                let _unheard = sender.send(serve(socket));
            });
        }
    });
    (port, asked)
}

/// Answers one connection to its end.
fn serve(socket: TcpStream) -> Asked {
    let mut framed = Framed::accept(socket);
    let (mut asked, mut requests) = (Asked::default(), HashMap::<u32, Vec<u8>>::new());
    // A client may just go, with or without a reset.
    while let Ok(Some(piece)) = framed.receive() {
        if piece.abort {
            asked.aborted += 1;
            let _gone = framed.send(piece.stream, ABORT, &[]);
            continue;
        }
        assert_eq!(piece.open, !requests.contains_key(&piece.stream), "{}", piece.stream);
        asked.streams += u64::from(piece.open);
        asked.request_bytes += piece.data.len() as u64;
        let request = requests.entry(piece.stream).or_default();
        request.extend(piece.data);
        if !piece.fin {
            continue;
        }
        let wanted = requests.remove(&piece.stream).and_then(|request| wanted_bytes(&request));
        let answered = match wanted {
            None => framed.send(piece.stream, ABORT, &[]),
            Some(0) => framed.send(piece.stream, OPEN | FIN, &[]),
            Some(ENDLESS) => send_until_stopped(&mut framed, piece.stream),
            Some(bytes) => framed.send(piece.stream, FIN, &vec![1; bytes as usize]),
        };
        if answered.is_err() {
            break;
        }
    }
    asked
}

/// Sends until its client says something: that it has had enough.
fn send_until_stopped(framed: &mut Framed, stream: u32) -> std::io::Result<()> {
    while !framed.has_input() {
        framed.send(stream, 0, &[1; 16_360])?;
    }
    Ok(())
}

fn sum_of(asked: &Receiver<Asked>, connections: u64) -> Asked {
    let mut sum = Asked::default();
    for _ in 0..connections {
        let one = asked.recv_timeout(PATIENCE).expect("the connection's end");
        sum.streams += one.streams;
        sum.request_bytes += one.request_bytes;
        sum.aborted += one.aborted;
    }
    sum
}

#[test]
fn both_ends_count_the_same_completions() {
    let (port, asked) = start();
    for (words, connections, streams, up, down) in [
        ("", 1, 0, 0, 0),
        ("-up:8", 1, 1, 8, 0),
        ("-up:1mb", 1, 1, 1_000_000, 0),
        ("-down:2mb", 1, 1, 8, 2_000_000),
        ("-conns:3 -streams:8 -up:30kb -down:50kb", 3, 24, 720_000, 1_200_000),
        ("-iosize:300 -up:5000 -down:5000", 1, 1, 5_000, 5_000),
    ] {
        let ended = run(&format!("-target:127.0.0.1 -port:{port} -tcp:1 {words} --json"));
        assert_eq!(ended.exit_code, 0, "{words}: {}", ended.stdout);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["connections"], connections, "{words}");
        assert_eq!(document["streams"], streams, "{words}");
        assert_eq!(document["downloaded_bytes"], down, "{words}");
        let expected = Asked { streams, request_bytes: up, aborted: 0 };
        assert_eq!(sum_of(&asked, connections), expected, "{words}");
    }
}

#[test]
fn timed_runs_abort_their_answers() {
    let (port, asked) = start();
    for (words, name) in [("-up:300ms", "Upload"), ("-down:300ms", "Download")] {
        let words = format!("-target:127.0.0.1 -port:{port} -tcp:1 {words} -ptput:1");
        let ended = run(&words);
        let lines: Vec<String> = results(&ended).into_iter().map(without_numbers).collect();
        assert_eq!(lines, [format!("Result: {name} # kbps.")], "{words}");
        let seen = sum_of(&asked, 1);
        assert_eq!(seen.streams, 1, "{words}");
    }
}
