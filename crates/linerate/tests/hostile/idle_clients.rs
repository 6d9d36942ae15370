//! Thousands of connections without a request: other clients are served.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use linerate_wire::iperf3::COOKIE_BYTES;
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni::encode_request;
use linerate_wire::netperf::test::{Length, Part, Request, Transport};

use crate::attackers::Starved;
use crate::conversation::connect;
use crate::dialect::{Dialect, FLOOD, HONEST, Host, Process, Work};
use crate::ends::{LONGEST, holds_within};
use crate::flood::{self, EndOnDrop, FULL_SPEED};
use crate::random::Random;

/// Half-open connections from one address: ten times what netserver holds.
const IDLE_CLIENTS: usize = 10_000;
/// Connections that talk slowly, at a time.
const SLOW_TALKERS: usize = 50;
/// Connections of a flood, at least.
const LEAST_FLOOD: usize = 2_000;
/// How soon they follow each other.
const EACH: Duration = Duration::from_micros(500);
/// What idle clients may cost a server: netserver has 1,024 clients without a test, each with a thread, and
/// those that are on their way out.
const MOST_BYTES: u64 = 200 << 20;
/// Above this a flood waits for a server without processors: a quarter of what a socket holds.
const MOST_WAITING_BYTES: usize = 50_000;
/// Packets of a flood that wait for such a server, at most.
const MOST_KEPT: usize = 10_000;

/// What one in ten clients says before it falls silent; the others say less than all of it, or
/// nothing.
fn first_words(dialect: Dialect) -> Vec<Vec<u8>> {
    match dialect {
        Dialect::Native => vec![flood::greeting()],
        Dialect::Netperf => {
            let request = |part, length| {
                let request = Request { length, ..Request::new(part, Transport::Tcp) };
                encode_request(Form::Long, &request, None).into_bytes()
            };
            vec![
                request(Part::Receive, Length::Seconds(100_000)),
                request(Part::Answer, Length::Open),
            ]
        }
        Dialect::Iperf3 => vec![
            // Cookies of their own, once their numbers are put in; one that many share.
            cookie("00000000"),
            cookie("the same for all of them"),
            asking(cookie("00000000"), b"{\"tcp\":true,\"time\":1}"),
        ],
        Dialect::Framed => vec![greeting()],
        Dialect::Quic => Vec::new(),
    }
}

/// A cookie of iperf3's, which begins with this.
fn cookie(start: &str) -> Vec<u8> {
    let mut bytes = start.as_bytes().to_vec();
    bytes.resize(COOKIE_BYTES - 1, b'x');
    bytes.push(0);
    bytes
}

/// A cookie and parameters.
fn asking(cookie: Vec<u8>, parameters: &[u8]) -> Vec<u8> {
    let length = (parameters.len() as u32).to_be_bytes();
    [&cookie[..], &length, parameters].concat()
}

/// The first that a client of secnetperf says over TCP.
fn greeting() -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _client = Process::start(&Dialect::Framed.client_words(HONEST, port, Work::Little));
    let (mut socket, _) = listener.accept().unwrap();
    let mut bytes = vec![0; 4096];
    let length = socket.read(&mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

fn idle_clients_do_not_block_others(dialect: Dialect, descriptors: usize) {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(dialect);
    let (words, size) = (first_words(dialect), IDLE_CLIENTS);
    let mut running = host.client(HONEST, Work::Sends(2));
    let opened = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let mut kept = Vec::with_capacity(size);
            for number in 0..size {
                let mut said = words[number / 10 % words.len()].clone();
                match number % 10 {
                    0 => {}
                    1..4 => said.truncate(said.len() / 2),
                    _ => said.clear(),
                }
                if said.starts_with(b"0000") {
                    said[..8].copy_from_slice(format!("{number:08}").as_bytes());
                }
                let mut socket = connect(host.port);
                // It may have been pushed out already.
                let _pushed_out = socket.write_all(&said);
                kept.push(socket);
                opened.fetch_add(1, Ordering::Relaxed);
            }
            kept
        });
        let (mut served, mut longest) = (0, Duration::ZERO);
        while served < 4 || !flood.is_finished() {
            longest = longest.max(host.assert_serves());
            host.assert_holds_at_most(descriptors, MOST_BYTES);
            served += 1;
            // The idle clients and the server need the processors.
            std::thread::sleep(Duration::from_millis(200));
        }
        let kept = flood.join().unwrap();
        assert_eq!(kept.len(), size);
        // All are there now.
        longest = longest.max(host.assert_serves());
        eprintln!(
            "{dialect:?}: {served} were served beside the idle clients, each within {longest:?}"
        );
        let code = running.exit_code_within(LONGEST);
        assert_eq!(code, Some(0), "{dialect:?}: {}", running.said());
    });
    host.assert_idle();
    host.assert_serves();
}

#[test]
fn thousands_of_idle_clients_of_netserver_do_not_block_others() {
    // A test that waits for its connection has a listener.
    idle_clients_do_not_block_others(Dialect::Netperf, 8_000);
}

#[test]
fn thousands_of_idle_clients_of_iperf3_do_not_block_others() {
    idle_clients_do_not_block_others(Dialect::Iperf3, 512 + 2 * 64 * 4);
}

#[test]
fn thousands_of_idle_clients_of_secnetperf_do_not_block_others() {
    let threads = std::thread::available_parallelism().unwrap().get();
    idle_clients_do_not_block_others(Dialect::Framed, 2_100 * threads);
}

/// Says something a byte at a time over several connections, again and again.
fn talk_slowly(port: u16, words: &[u8], goes_on: &AtomicBool) {
    let mut talkers = Vec::new();
    while goes_on.load(Ordering::Relaxed) {
        talkers.resize_with(SLOW_TALKERS, || (connect(port), words.iter()));
        // One that was closed, or has said all, begins again.
        talkers.retain_mut(|(socket, rest): &mut (TcpStream, std::slice::Iter<'_, u8>)| {
            rest.next().is_some_and(|byte| socket.write_all(&[*byte]).is_ok())
        });
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The same idle clients at every server that has TCP. Some send nothing, some half of a client's first bytes, some all of
/// them, some talk slowly, and some come and go as fast as they can.
#[test]
fn every_server_serves_beside_the_same_mix_of_idle_clients() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    for dialect in [Dialect::Native, Dialect::Netperf, Dialect::Iperf3, Dialect::Framed] {
        let host = Host::start(dialect);
        let said = first_words(dialect).swap_remove(0);
        let mut running = host.client(HONEST, Work::Sends(2));
        let (goes_on, count) = (AtomicBool::new(true), AtomicUsize::new(0));
        let kept = std::thread::scope(|scope| {
            let end = EndOnDrop(&goes_on);
            scope.spawn(|| talk_slowly(host.port, &said, &goes_on));
            let half = &said[..said.len() / 2];
            scope.spawn(|| flood::flood(host.port, None, half, EACH, &goes_on, &count));
            let mut kept = Vec::new();
            let mut served = 0;
            while served < 4 || count.load(Ordering::Relaxed) < LEAST_FLOOD {
                for words in [&[][..], half, &said] {
                    for _ in 0..50 {
                        let mut socket = connect(host.port);
                        let _pushed_out = socket.write_all(words);
                        kept.push(socket);
                    }
                }
                let took = host.assert_serves();
                served += 1;
                eprintln!("{dialect:?}: served amid {count:?} of the flood within {took:?}");
            }
            drop(end);
            kept
        });
        let code = running.exit_code_within(LONGEST);
        assert_eq!(code, Some(0), "{dialect:?}: {}", running.said());
        drop(kept);
        host.assert_idle();
        host.assert_serves();
    }
}

/// What waits in the socket of a server on this port (proc(5): /proc/net/udp and udp6).
fn waiting_bytes(port: u16) -> usize {
    let table = |name| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let table = table("udp") + &table("udp6");
    let waiting = table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        let received = fields.nth(2)?.split_once(':')?.1;
        let is_its = local.ends_with(&format!(":{port:04X}"));
        is_its.then(|| usize::from_str_radix(received, 16).unwrap_or(0))
    });
    waiting.max().unwrap_or(0)
}

/// Sends a server what comes here, whole and with wrong bits, and gives nothing back. A server that a busy machine
/// doesn't run is waited for: others' packets must not be dropped for want of room. What comes meanwhile is kept.
fn swallow(from: &UdpSocket, host: &Host, goes_on: &AtomicBool, count: &AtomicUsize) {
    let to = UdpSocket::bind((FLOOD, 0)).unwrap();
    to.connect((FLOOD, host.port)).unwrap();
    from.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (mut random, mut bytes) = (Random::draw("packets"), [0; 2048]);
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    let mut starved = Starved::new(host.pid());
    while goes_on.load(Ordering::Relaxed) {
        if let Ok(length) = from.recv(&mut bytes)
            && kept.len() < MOST_KEPT
        {
            kept.push_back(bytes[..length].to_vec());
        }
        if starved.look() && waiting_bytes(host.port) > MOST_WAITING_BYTES {
            continue;
        }
        let Some(mut packet) = kept.pop_front() else { continue };
        // What the kernel has no room for is lost, as in any network.
        let _lost = to.send(&packet);
        random.mutate(&mut packet);
        let _lost = to.send(&packet[..packet.len().min(60_000)]);
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn unfinished_quic_handshakes_do_not_block_others() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(Dialect::Quic);
    let swallower = UdpSocket::bind((FLOOD, 0)).unwrap();
    let port = swallower.local_addr().unwrap().port();
    let (goes_on, count) = (AtomicBool::new(true), AtomicUsize::new(0));
    let mut running = host.client(HONEST, Work::Sends(2));
    std::thread::scope(|scope| {
        let end = EndOnDrop(&goes_on);
        scope.spawn(|| swallow(&swallower, &host, &goes_on, &count));
        let words = Dialect::Quic.client_words(FLOOD, port, Work::Little);
        // Each has 64 of them under way at a time, on each of its threads.
        let _flood: Vec<Process> =
            (0..12).map(|_| Process::start(&format!("{words} -threads:2 -conns:125"))).collect();
        // More than half of the flood has begun, however long this machine takes for it.
        let has_begun = || {
            host.assert_serves();
            host.assert_holds_at_most(8, MOST_BYTES);
            count.load(Ordering::Relaxed) > 1_000
        };
        assert!(holds_within(LONGEST, has_begun), "the flood had {count:?} packets");
        drop(end);
    });
    let code = running.exit_code_within(LONGEST);
    assert_eq!(code, Some(0), "{}", running.said());
    host.assert_serves();
    host.assert_idle();
}

#[test]
fn clients_that_read_nothing_do_not_delay_others() {
    for dialect in [Dialect::Netperf, Dialect::Iperf3, Dialect::Framed, Dialect::Quic] {
        let host = Host::start(dialect);
        let frozen: Vec<Process> = (0..4).map(|_| host.client(FLOOD, Work::Receives(60))).collect();
        // QUIC has one descriptor for all.
        let wanted = if dialect == Dialect::Quic { 0 } else { frozen.len() };
        assert!(holds_within(LONGEST, || host.busy_descriptors() >= wanted), "{dialect:?}");
        std::thread::sleep(Duration::from_millis(200));
        frozen.iter().for_each(Process::freeze);
        for _ in 0..3 {
            host.assert_serves();
            host.assert_holds_at_most(100, 200 << 20);
        }
        drop(frozen);
        host.assert_idle();
        host.assert_serves();
    }
}
