//! What a peer can do wrong, and what our end makes of it. Each fault is one connection; the next one is another peer's.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::fixture::{Ended, Folder, LIMIT, PORT, own_address, run_client, start, start_server};
use crate::peer::{ID, data, reset};

/// What a peer sends, and what it does then.
pub(crate) type Act = (Vec<u8>, Then);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Says that it sends nothing more, and waits for our end.
    Finish,
    /// Resets the connection when our end has sent so much.
    Reset(usize),
}

pub(crate) const TOO_FEW: &str = "ErrorNotAllDataTransferred";
pub(crate) const TOO_MANY: &str = "ErrorTooMuchDataTransferred";
pub(crate) const WRONG: &str = "ErrorDataDidNotMatchBitPattern";
pub(crate) const RESET: &str = "10054: Connection reset by peer";
pub(crate) const GOOD: &str = "Succeeded";

/// Acts, with what is sent in pieces of so many bytes.
fn act(mut peer: TcpStream, (bytes, then): Act, piece_bytes: usize) {
    peer.set_nodelay(true).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Our end may have closed before it has taken all.
    let _cut_short = bytes.chunks(piece_bytes).try_for_each(|piece| peer.write_all(piece));
    match then {
        Then::Finish => {
            let _gone = peer.shutdown(Shutdown::Write);
            let _reset = peer.read_to_end(&mut Vec::new());
        }
        Then::Reset(after) => {
            peer.read_exact(&mut vec![0; after]).unwrap();
            // What was sent is to be taken before the reset.
            thread::sleep(Duration::from_millis(200));
            reset(peer);
        }
    }
}

pub(crate) fn concat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A server's connection of 5,000 bytes of `pull`.
fn pulled(rest: &[u8]) -> Vec<u8> {
    concat(&[ID, &data(0, 5000), rest])
}

pub(crate) fn with_wrong_bit(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x10;
    bytes
}

/// Runs our client with one connection for each of these servers; the results by the rows of its file.
pub(crate) fn results_at_client(
    pattern: &str,
    acts: Vec<Act>,
    piece_bytes: usize,
) -> (Vec<String>, Folder) {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let words = format!(
        "-pattern:{pattern} -transfer:5000 -connections:1 -iterations:{} \
         -connectionfilename:client.csv -errorfilename:errors.txt",
        acts.len()
    );
    let serving = thread::spawn(move || {
        for one in acts {
            act(listener.accept().unwrap().0, one, piece_bytes);
        }
    });
    let ended = run_client(address, &words, &folder);
    serving.join().unwrap();
    let results: Vec<_> = folder.rows("client.csv").iter().map(|row| row[8].clone()).collect();
    let failed = results.iter().filter(|result| **result != GOOD).count();
    assert_eq!(ended.exit_code, if failed == 13 { 14 } else { failed as i32 }, "{ended:?}");
    (results, folder)
}

/// Runs our server with one connection from each of these clients; the results by the rows of its file, and its end.
pub(crate) fn results_at_server(words: &str, acts: Vec<Act>) -> (Vec<String>, Ended, Folder) {
    let (address, folder) = (own_address(), Folder::new());
    let words = format!(
        "{words} -serverexitlimit:{} -connectionfilename:server.csv -errorfilename:errors.txt",
        acts.len()
    );
    let server = start_server(address, &words, &folder);
    for (number, one) in acts.into_iter().enumerate() {
        // Some come in pieces.
        let piece_bytes = if number % 3 == 0 { usize::MAX } else { 7 };
        act(TcpStream::connect((address, PORT)).unwrap(), one, piece_bytes);
        // Each is to have its row before the next.
        let end = std::time::Instant::now() + LIMIT;
        while folder.rows("server.csv").len() <= number {
            assert!(std::time::Instant::now() < end, "no row {number}");
            thread::sleep(Duration::from_millis(5));
        }
    }
    let ended = server.wait();
    let results = folder.rows("server.csv").iter().map(|row| row[8].clone()).collect();
    (results, ended, folder)
}

#[test]
fn a_client_of_pull_names_each_fault_of_a_server() {
    use Then::{Finish, Reset};
    let cases: Vec<(&str, Act)> = vec![
        (GOOD, (pulled(b"DONE"), Finish)),
        (TOO_FEW, (vec![], Finish)),
        (TOO_FEW, (ID[..36].to_vec(), Finish)),
        (TOO_FEW, (ID.to_vec(), Finish)),
        (TOO_FEW, (concat(&[ID, &data(0, 4999)]), Finish)),
        (WRONG, (with_wrong_bit(pulled(b"DONE"), 37), Finish)),
        (WRONG, (with_wrong_bit(pulled(b"DONE"), 37 + 4999), Finish)),
        (TOO_FEW, (pulled(b""), Finish)),
        (TOO_FEW, (pulled(b"DON"), Finish)),
        (TOO_FEW, (pulled(b"DONT"), Finish)),
        (TOO_FEW, (pulled(b"!DONE"), Finish)),
        (TOO_MANY, (pulled(b"DONE!"), Finish)),
        (RESET, (vec![], Reset(0))),
        (RESET, (ID[..20].to_vec(), Reset(0))),
        (RESET, (pulled(b""), Reset(0))),
        (RESET, (pulled(b"DONE"), Reset(0))),
        (GOOD, (pulled(b"DONE"), Finish)),
    ];
    let (expected, acts): (Vec<&str>, Vec<Act>) = cases.into_iter().unzip();
    assert_eq!(results_at_client("pull", acts.clone(), 7).0, expected);
    let (results, folder) = results_at_client("pull", acts, usize::MAX);
    assert_eq!(results, expected);
    let errors = folder.read("errors.txt");
    let id = "b060598b-3bdb-4b90-9b3b-cfc0a15e636b";
    assert!(
        errors.contains(&format!("[{id}] wrong data: byte 0 is 0x10, expected 0x00")),
        "{errors}"
    );
    assert!(errors.contains(&format!("[{id}] wrong data: byte 4999 is 0x19, expected 0x09")));
    assert!(errors.contains("] Connection aborted due to the protocol error ErrorNotAllData"));
    assert!(errors.contains("] recv failed (10054) Connection reset by peer"), "{errors}");
}

#[test]
fn a_client_of_push_names_each_fault_of_a_server() {
    use Then::{Finish, Reset};
    let told = |rest: &[u8]| concat(&[ID, rest]);
    let cases: Vec<(&str, Act)> = vec![
        (GOOD, (told(b"DONE"), Finish)),
        // Pattern data where DONE should be: a server of another pattern.
        (TOO_FEW, (told(&data(0, 5000)), Finish)),
        (TOO_MANY, (told(b"DONEDONE"), Finish)),
        (TOO_FEW, (told(b""), Finish)),
        (RESET, (told(b""), Reset(5000))),
        (RESET, (told(b"DONE"), Reset(5000))),
    ];
    let (expected, acts): (Vec<&str>, Vec<Act>) = cases.into_iter().unzip();
    for piece_bytes in [7, usize::MAX] {
        assert_eq!(results_at_client("push", acts.clone(), piece_bytes).0, expected);
    }
}

#[test]
fn a_server_names_each_fault_of_a_client() {
    use Then::{Finish, Reset};
    let pushed = |rest: &[u8]| concat(&[&data(0, 5000), rest]);
    let cases: Vec<(&str, Act)> = vec![
        (GOOD, (pushed(b""), Finish)),
        (WRONG, (with_wrong_bit(pushed(b""), 0), Finish)),
        (WRONG, (with_wrong_bit(pushed(b""), 4321), Finish)),
        (TOO_FEW, (vec![], Finish)),
        (TOO_FEW, (data(0, 4999), Finish)),
        (TOO_MANY, (data(0, 5001), Finish)),
        (TOO_MANY, (data(0, 90_000), Finish)),
        (RESET, (data(0, 100), Reset(37))),
        (RESET, (vec![], Reset(37))),
        // The client has had all it needs.
        (GOOD, (pushed(b""), Reset(41))),
        (GOOD, (pushed(b""), Finish)),
    ];
    let (expected, acts): (Vec<&str>, Vec<Act>) = cases.into_iter().unzip();
    let (results, ended, folder) = results_at_server("-pattern:push -transfer:5000", acts);
    assert_eq!(results, expected);
    let failed = expected.iter().filter(|result| **result != GOOD).count();
    assert_eq!((ended.exit_code, ended.totals()), (failed as i32, [3, 2, 6]), "{ended:?}");
    let errors = folder.read("errors.txt");
    assert!(
        errors.contains("wrong data: byte 4321 is 0x18, expected 0x08; 1 of 1 bytes"),
        "{errors}"
    );
    // What a mismatch of options looks like is explained once.
    assert_eq!(ended.stderr.matches("the other end stopped early: are -Pattern").count(), 1);
}

#[test]
fn a_peer_that_stops_ends_a_connection_by_the_idle_time_out_alone() {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let words = "-pattern:pull -transfer:5000 -connections:2 -iterations:1";
    let silent = format!("{words} --idle-timeout:300");
    let ended = run_client(address, &silent, &folder);
    assert_eq!((ended.exit_code, ended.totals()), (2, [0, 2, 0]), "{ended:?}");
    assert!(ended.stderr.contains("failed (10060) Connection timed out"), "{ended:?}");
    // Without one the run's own limit ends it, and nothing has failed.
    let limited = format!("{words} -timelimit:700");
    let ended = run_client(address, &limited, &folder);
    assert_eq!((ended.exit_code, ended.totals()), (254, [0, 0, 0]), "{ended:?}");
    assert!(ended.stdout.contains("**** Time-limit of 700 reached ****"), "{ended:?}");
    drop(listener);
}

#[test]
fn a_server_that_is_not_there_refuses_every_connection() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-connections:3 -iterations:2 -connectionfilename:client.csv -consoleverbosity:5";
    let ended = run_client(address, words, &folder);
    assert_eq!((ended.exit_code, ended.totals()), (6, [0, 6, 0]), "{ended:?}");
    for row in folder.rows("client.csv") {
        assert_eq!(row[1..], ["", "", "0", "0", "0", "0", "0", "10061: Connection refused", ""]);
    }
    assert!(ended.stderr.contains("] connect failed (10061) Connection refused"), "{ended:?}");
}

#[test]
fn ends_with_different_options_fail_as_the_originals_do() {
    let (address, folder) = (own_address(), Folder::new());
    // A client that has less to send waits, and the server misses the rest when it goes.
    let server = "-transfer:200000 -serverexitlimit:1 -connectionfilename:server.csv";
    let server = start_server(address, server, &folder);
    let client = "-transfer:100000 -connections:1 -iterations:1 -timelimit:500";
    let client = run_client(address, client, &folder);
    let server = server.wait();
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]), "{client:?}");
    assert_eq!((server.exit_code, server.totals()), (1, [0, 0, 1]), "{server:?}");
    let row = &folder.rows("server.csv")[0];
    assert_eq!((&*row[5], &*row[8]), ("100000", TOO_FEW), "{row:?}");
    let total = |ended: &Ended, text: &str| ended.stdout.contains(text);
    assert!(total(&client, "Total Bytes Recv : 37\n  Total Bytes Sent : 100000\n"), "{client:?}");
    assert!(total(&server, "Total Bytes Recv : 100000\n  Total Bytes Sent : 37\n"), "{server:?}");
    // Where both send, the client takes the server's data for a wrong DONE, or the server the client's for too much.
    let address = own_address();
    let words = "-transfer:100000 -consoleverbosity:4";
    let server = format!("{words} -pattern:pull -serverexitlimit:1");
    let server = start_server(address, &server, &folder);
    let client = format!("{words} -pattern:push -connections:1 -iterations:1");
    let client = run_client(address, &client, &folder);
    assert_eq!(client.exit_code, 1, "{client:?}");
    let aborted = "Connection aborted due to the protocol error ErrorNotAllDataTransferred";
    let is_told = client.stderr.contains(aborted) || client.stderr.contains("failed (10054)");
    assert!(is_told, "{client:?}");
    server.wait();
}

#[test]
fn no_more_connections_wait_for_their_id_than_the_throttle_lets() {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let client = start(
        &format!("-target:{address} -connections:20 -throttleconnections:3 -timelimit:1500"),
        &folder,
    );
    thread::sleep(Duration::from_millis(1000));
    listener.set_nonblocking(true).unwrap();
    let mut waiting = Vec::new();
    while let Ok((peer, _)) = listener.accept() {
        waiting.push(peer);
    }
    assert_eq!(waiting.len(), 3);
    let ended = client.wait();
    assert_eq!((ended.exit_code, ended.totals()), (254, [0, 0, 0]), "{ended:?}");
}
