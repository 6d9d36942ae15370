//! Conversations with the dialects' servers that are cut, changed, or were never any.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::conversation::connect;
use crate::dialect::{Dialect, FLOOD, Host, Process, Work};
use crate::ends::{LONGEST, holds_within};
use crate::extent::extent;
use crate::random::Random;

/// A client that got nowhere is ended after so long.
const PATIENCE: Duration = Duration::from_millis(500);
/// Harm is done to so many conversations at a time.
const AT_ONCE: usize = 9;
/// What an attack may cost a server.
const MOST_BYTES: u64 = 100 << 20;

/// What is done to a client's words.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// The connection ends in order.
    Ends,
    /// It is reset.
    Resets,
    /// One bit is wrong.
    Flips,
    /// Rubbish is put in.
    Inserts,
    /// Nothing more comes through.
    Stops,
}

const HARMS: [Harm; 5] = [Harm::Ends, Harm::Resets, Harm::Flips, Harm::Inserts, Harm::Stops];

/// Carries one client's connections to a server, and does harm to the first of them behind so many
/// bytes.
fn relay(listener: &TcpListener, port: u16, harm: (Harm, usize), goes_on: &AtomicBool) {
    listener.set_nonblocking(true).unwrap();
    std::thread::scope(|scope| {
        let mut harm = Some(harm);
        while goes_on.load(Ordering::Relaxed) {
            let Ok((near, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            };
            near.set_nonblocking(false).unwrap();
            let far = connect(port);
            let (near_again, far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let harm = harm.take();
            scope.spawn(move || carry(&near, &far, harm, goes_on));
            scope.spawn(move || carry(&far_again, &near_again, None, goes_on));
        }
    });
}

fn carry(mut from: &TcpStream, mut to: &TcpStream, harm: Option<(Harm, usize)>, on: &AtomicBool) {
    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    to.set_write_timeout(Some(PATIENCE)).unwrap();
    let (mut bytes, mut count) = (vec![0; 64 << 10], 0);
    while on.load(Ordering::Relaxed) {
        let length = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => break,
        };
        let mut said = bytes[..length].to_vec();
        if let Some((harm, at)) = harm
            && (count..count + length).contains(&at)
        {
            let at = at - count;
            match harm {
                Harm::Flips => said[at] ^= 0x40,
                Harm::Inserts => drop(said.splice(at..at, [0xff; 300])),
                Harm::Ends | Harm::Resets | Harm::Stops => said.truncate(at),
            }
            let _gone = to.write_all(&said);
            match harm {
                Harm::Ends => break,
                Harm::Resets => {
                    set_socket_linger(to, Some(Duration::ZERO)).unwrap();
                    // The kernel resets what is closed with bytes unread or time to linger of none.
                    let _gone = to.shutdown(Shutdown::Both);
                    return;
                }
                Harm::Stops => return std::thread::sleep(PATIENCE),
                Harm::Flips | Harm::Inserts => {}
            }
        } else if to.write_all(&said).is_err() {
            break;
        }
        count += length;
    }
    let _gone = to.shutdown(Shutdown::Write);
}

/// Bytes that a client says on its first connection, nearly.
fn said_bytes(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Native => 300,
        Dialect::Netperf => 656,
        Dialect::Iperf3 => 600,
        Dialect::Framed | Dialect::Quic => 900,
    }
}

fn harm_changes_nothing_for_others(dialect: Dialect) {
    let host = Host::start(dialect);
    let mut random = Random::draw("harm");
    let mut harms: Vec<(Harm, usize)> = Vec::new();
    for at in [0, 1, 36, 37, 38, 41] {
        harms.push((HARMS[harms.len() % HARMS.len()], at));
    }
    for number in 0..extent(12, 2_000) {
        harms.push((HARMS[number % HARMS.len()], random.within(0..said_bytes(dialect))));
    }
    let harms = Mutex::new(harms);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(harm) = { harms.lock().unwrap().pop() } {
                    let listener = TcpListener::bind((FLOOD, 0)).unwrap();
                    let port = listener.local_addr().unwrap().port();
                    let goes_on = AtomicBool::new(true);
                    std::thread::scope(|scope| {
                        scope.spawn(|| relay(&listener, host.port, harm, &goes_on));
                        let words = dialect.client_words(FLOOD, port, Work::Little);
                        let mut client = Process::start(&words);
                        client.exit_code_within(PATIENCE);
                        assert!(!client.said().contains("panicked"), "{harm:?}: {}", client.said());
                        goes_on.store(false, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    host.assert_serves();
    rubbish(&host, &mut random);
    host.assert_serves();
    host.assert_holds_at_most(100, MOST_BYTES);
    host.assert_idle();
}

/// Says what nobody says, for long.
fn rubbish(host: &Host, random: &mut Random) {
    for number in 0..extent(100, 20_000) {
        let mut bytes = vec![[0, 0xff, b'{', 1][number % 4]; random.within(1..3_000)];
        random.mutate(&mut bytes);
        let mut socket = connect(host.port);
        // The server may have heard enough.
        let _closed = socket.write_all(&bytes);
    }
    for byte in [0, 0xff, b'['] {
        let mut socket = connect(host.port);
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let piece = vec![byte; 1 << 20];
        // For ever, as far as it is let. Some servers read on for a moment, so that their last words
        // arrive.
        let closed = holds_within(LONGEST, || socket.write_all(&piece).is_err());
        assert!(closed, "the server never had enough of {byte}");
        host.assert_holds_at_most(200, MOST_BYTES);
    }
}

#[test]
fn no_harm_done_to_netperf_changes_anything_for_others() {
    harm_changes_nothing_for_others(Dialect::Netperf);
}

#[test]
fn no_harm_done_to_iperf3_changes_anything_for_others() {
    harm_changes_nothing_for_others(Dialect::Iperf3);
}

#[test]
fn no_harm_done_to_secnetperf_changes_anything_for_others() {
    harm_changes_nothing_for_others(Dialect::Framed);
}

/// What iperf3's server answers to these parameters, whatever length they claim.
fn answer_to(host: &Host, claimed: u32, parameters: &[u8]) -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut socket = connect(host.port);
    socket.set_read_timeout(Some(LONGEST)).unwrap();
    // One test may be ending still when the next begins.
    let cookie = format!("{:036}\0", NEXT.fetch_add(1, Ordering::Relaxed));
    socket.write_all(cookie.as_bytes()).unwrap();
    let mut byte = [0];
    socket.read_exact(&mut byte).unwrap();
    assert_eq!(byte, [9], "parameters are asked for");
    // The server may have heard enough.
    let _closed = socket.write_all(&claimed.to_be_bytes());
    let _closed = socket.write_all(parameters);
    let mut answer = vec![0; 9];
    let length = socket.read(&mut answer).unwrap_or(0);
    answer.truncate(length);
    answer
}

#[test]
fn parameters_of_iperf3_have_a_limit() {
    let host = Host::start(Dialect::Iperf3);
    let padded = |bytes: usize| {
        let mut text = b"{\"tcp\":true,\"time\":1,\"title\":\"".to_vec();
        text.resize(bytes - 2, b'x');
        [text, b"\"}".to_vec()].concat()
    };
    let create_streams = 10;
    let server_error = 254;
    let (eight_kib, eight_mib) = (padded(8 << 10), padded(8 << 20));
    assert_eq!(answer_to(&host, 8 << 10, &eight_kib), [create_streams]);
    // Refused by its length alone; the rest may meet a closed connection.
    for (claimed, text) in
        [(8 << 20, &eight_mib[..]), ((8 << 10) + 1, &[]), (u32::MAX, &[]), (0, &[])]
    {
        let answer = answer_to(&host, claimed, text);
        assert!(answer.is_empty() || answer[0] == server_error, "{claimed}: {answer:?}");
        host.assert_holds_at_most(10, 20 << 20);
    }
    for text in [vec![b'['; 8 << 10], vec![0xff; 8 << 10], b"{}".repeat(4 << 10), b"null".to_vec()]
    {
        let answer = answer_to(&host, text.len() as u32, &text);
        assert_eq!(answer.first(), Some(&server_error), "{text:?}");
    }
    host.assert_serves();
    host.assert_idle();
}
