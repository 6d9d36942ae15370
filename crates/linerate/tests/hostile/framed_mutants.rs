//! Frames over TCP with something wrong in them, by the million, all under seals that are right: the handshake
//! is an honest one.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::dialect::{Dialect, Host};
use crate::extent::{extent, is_long};
use crate::flood::{EndOnDrop, FULL_SPEED};
use crate::framed::{ABORT, FIN, Framed, OPEN};
use crate::quic_mutants::completed_share;
use crate::random::Random;
use crate::request::request;

/// Mutants in the long form.
const ALL: u64 = 10_000_000;
/// How long the short form goes on.
const SHORT: Duration = Duration::from_secs(6);
/// What an attack may cost a server: a connection or two at a time.
const MOST_BYTES: u64 = 100 << 20;
/// Frames of a connection, the last of which may end it.
const AT_ONCE: u64 = 200;
/// Bytes of answers that a connection of the attacker's takes before it goes, and how long it waits for them.
const MOST_ANSWERS: usize = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(2);
/// An honest client asks so often, for so much.
const REQUESTS: u32 = 150;
const EACH: Duration = Duration::from_millis(10);
const ANSWER_BYTES: u64 = 50_000;
/// The kinds of frames, and the key of data.
const HANDSHAKE: u8 = 0;
const STREAM: u8 = 1;
const DATA_KEY: u8 = 3;
/// The longest payload that a frame may have.
const MOST_PAYLOAD: usize = 16_384 - 4 - 16;

/// A frame of a stream as anybody may send it: its number, its flags and its request are random, and changed.
fn odd_stream(framed: &Framed, random: &mut Random) -> Vec<u8> {
    let flags = *random.one_of(&[OPEN, OPEN | FIN, FIN, 0, ABORT, OPEN | ABORT, FIN | ABORT]);
    let any = random.number() as u32 & (OPEN - 1);
    let stream = *random.one_of(&[0, 1, 2, 3, OPEN - 1, any]);
    let wanted = *random.one_of(&[0, 1, 1_000, 100_000, u64::MAX - 1, u64::MAX]);
    let mut payload = (stream | flags).to_le_bytes().to_vec();
    payload.extend(wanted.to_be_bytes());
    payload.resize(payload.len() + random.within(0..100), 0x2a);
    random.mutate(&mut payload);
    // Too short for a stream's number ends the connection, as the last frame may.
    payload.resize(payload.len().clamp(4, MOST_PAYLOAD), 0);
    framed.sealed(header(DATA_KEY, STREAM, payload.len()), payload)
}

fn header(level: u8, kind: u8, length: usize) -> [u8; 4] {
    let [low, high] = (length as u16).to_le_bytes();
    [level, kind, low, high]
}

/// A frame that no client sends.
fn wrong(framed: &Framed, random: &mut Random) -> Vec<u8> {
    let length = *random.one_of(&[0, 1, 3, 4, 100, MOST_PAYLOAD, MOST_PAYLOAD + 1, 65_535]);
    let mut payload: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
    match random.within(0..6) {
        // A key or a kind that isn't there, or isn't for this.
        0 => {
            let level = *random.one_of(&[0, 1, 2, 3, 4, 255]);
            let kind = *random.one_of(&[0, 1, 2, 255]);
            framed.sealed(header(level, kind, length), payload)
        }
        // A length that isn't the payload's, sealed with it.
        1 => {
            let said = *random.one_of(&[0, 1, length / 2, length + 1, MOST_PAYLOAD, 65_535]);
            framed.sealed(header(DATA_KEY, STREAM, said), payload)
        }
        // The handshake goes on, or so it says: rubbish, a key update, a ticket (RFC 8446, section 4.6).
        2 => {
            if let [kind, rest @ ..] = payload.as_mut_slice() {
                *kind = *random.one_of(&[0, 1, 4, 11, 20, 24, 255]);
                rest.iter_mut().take(3).for_each(|byte| *byte = 0);
            }
            framed.sealed(header(DATA_KEY, HANDSHAKE, length), payload)
        }
        // Changed as it flies.
        3 => {
            let mut frame = framed.sealed(header(DATA_KEY, STREAM, length), payload);
            random.mutate(&mut frame);
            frame
        }
        // Not all of it.
        4 => {
            let mut frame = framed.sealed(header(DATA_KEY, STREAM, length), payload);
            frame.truncate(random.within(0..frame.len()));
            frame
        }
        _ => framed.sealed(header(DATA_KEY, STREAM, length), payload),
    }
}

/// Connections that say much that is odd, then something that is wrong.
fn speak_wrongly(port: u16, counts: (&AtomicU64, &AtomicU64), goes_on: &AtomicBool) {
    let (random, mut answers) = (&mut Random::draw("frames"), vec![0; 65_536]);
    let (sent, answered) = counts;
    while goes_on.load(Ordering::Relaxed) {
        let mut framed = Framed::connect(port);
        let mut frames = Vec::new();
        for _ in 1..AT_ONCE {
            frames.extend(odd_stream(&framed, random));
        }
        frames.extend(wrong(&framed, random));
        let socket = &mut framed.socket;
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may have heard enough, or wait for somebody to take its answers.
        let _closed = socket.write_all(&frames).and_then(|()| socket.shutdown(Shutdown::Write));
        let (mut taken, until) = (0, Instant::now() + PATIENCE);
        while taken < MOST_ANSWERS && Instant::now() < until {
            match socket.read(&mut answers) {
                Ok(bytes) if bytes > 0 => taken += bytes,
                _ => break,
            }
        }
        set_socket_linger(&*socket, Some(Duration::ZERO)).unwrap();
        sent.fetch_add(AT_ONCE, Ordering::Relaxed);
        answered.fetch_add(taken as u64, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(extent(20, 0)));
    }
}

/// Asks for an answer every so often; the share of what could be done in that time that was.
fn done_in_time(port: u16) -> f64 {
    let mut framed = Framed::connect(port);
    let (began, mut answered) = (Instant::now(), 0);
    for number in 1..=REQUESTS {
        let due = EACH * number;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        framed.send(number, OPEN | FIN, &request(ANSWER_BYTES, 2_000)).unwrap();
        let mut bytes = 0;
        loop {
            let piece = framed.receive().unwrap().expect("the connection goes on");
            assert_eq!((piece.stream, piece.abort), (number, false), "nobody else's answer");
            bytes += piece.data.len() as u64;
            if piece.fin {
                break;
            }
        }
        assert_eq!(bytes, ANSWER_BYTES);
        answered += u32::from(began.elapsed() < EACH * (REQUESTS + 1));
    }
    f64::from(answered) / f64::from(REQUESTS)
}

#[test]
fn correctly_sealed_mutants_end_no_server_use_no_memory_and_disturb_no_test() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(Dialect::Framed);
    let (sent, answers, goes_on) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(true));
    let began = Instant::now();
    let (mut in_time, mut worst) = (Vec::new(), f64::INFINITY);
    std::thread::scope(|scope| {
        let end = EndOnDrop(&goes_on);
        let attack = scope.spawn(|| {
            speak_wrongly(host.port, (&sent, &answers), &goes_on);
        });
        let all = || sent.load(Ordering::Relaxed);
        let is_over = || if is_long() { all() >= ALL } else { began.elapsed() > SHORT };
        while in_time.len() < 3 || !is_over() {
            in_time.push(done_in_time(host.port));
            worst = worst.min(completed_share(&host, "-tcp:1"));
            host.assert_holds_at_most(4, MOST_BYTES);
            assert!(!attack.is_finished(), "the attack broke off");
        }
        drop(end);
    });
    let sent = sent.into_inner();
    let tests = in_time.len();
    let mean = in_time.iter().sum::<f64>() / tests as f64;
    in_time.sort_by(f64::total_cmp);
    // Of a few tests one may meet a pause of the machine.
    let share = extent(in_time[tests / 2], mean);
    eprintln!(
        "{sent} mutants in {:?}; {in_time:?} of the tests' requests in time",
        began.elapsed()
    );
    assert!(share > 0.95, "{share} of an honest client's requests were answered in time");
    assert!(worst > 0.95, "only {worst} of an honest client's requests were completed");
    assert!(sent > 2_000, "{sent} mutants");
    // They are heard: some ask for answers, and get them.
    let answered = answers.into_inner();
    assert!(answered > sent, "{answered} bytes of answers to {sent} mutants");
    host.assert_serves();
    host.assert_idle();
}
