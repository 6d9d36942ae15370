//! QUIC with something wrong in it, by the million: first packets whose frames are changed before they are
//! sealed, datagrams that are changed as they fly, and packets in clear, whose frames anybody can change.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::dialect::{Dialect, FLOOD, HONEST, Host, Process};
use crate::ends::{LONGEST, holds_within};
use crate::extent::{extent, is_long};
use crate::flood::{EndOnDrop, FULL_SPEED};
use crate::quic_packets::{LEAST_BYTES, Opening};
use crate::random::Random;

/// Mutants in the long form.
const ALL: u64 = 10_000_000;
/// How many honest tests are due in the short form.
const SHORT: u32 = 9;
/// What an attack may cost a server: handshakes that are begun, their number limited.
const MOST_BYTES: u64 = 400 << 20;
/// Sent before the sender sees whether the server keeps up.
const AT_ONCE: usize = 100;
/// What has got no answer is said again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// An honest client's requests: connections by streams, and how often it makes them. Left alone it takes a
/// fraction of that time, so that it can make up for being late. A busy machine gets more time.
const REQUESTS: (u64, u64) = (4, 50);
const LEAST_PERIOD: Duration = Duration::from_secs(1);
const TIMES_ALONE: u32 = 6;

/// An address that speaks QUIC by hand, and counts what it said and what came.
struct RawClient {
    socket: UdpSocket,
    sent_bytes: usize,
    received_bytes: usize,
}

impl RawClient {
    fn new(port: u16) -> Self {
        let socket = UdpSocket::bind((FLOOD, 0)).unwrap();
        socket.connect((FLOOD, port)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, sent_bytes: 0, received_bytes: 0 }
    }

    fn say(&mut self, datagram: &[u8]) {
        // What the kernel has no room for is lost, as in any network.
        self.sent_bytes += self.socket.send(datagram).unwrap_or(0);
    }

    /// What has come; never more than three times what was sent (RFC 9000, section 8.1).
    fn hear(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 65_536];
        let length = self.socket.recv(&mut bytes).ok()?;
        self.received_bytes += length;
        let (sent, received) = (self.sent_bytes, self.received_bytes);
        assert!(received <= 3 * sent, "{received} bytes came for {sent}");
        Some(bytes[..length].to_vec())
    }

    /// Waits until the server has taken in what came before: an opening of this packet's is answered.
    fn await_server(&mut self, opening: &mut Opening, random: &mut Random) {
        opening.source = random.number().to_be_bytes();
        let packet = opening.packet(random.number().to_be_bytes(), 0, &opening.frames);
        let is_answer = |datagram: Vec<u8>| {
            // The length of the connection id that it goes to, and the id (RFC 9000, section 17.2).
            datagram.get(5..14).is_some_and(|to| to[0] == 8 && to[1..] == opening.source)
        };
        let (mut said, mut answered, end) = (None, false, Instant::now() + LONGEST);
        while !answered {
            assert!(Instant::now() < end, "the server answers no more");
            if said.is_none_or(|said: Instant| said.elapsed() >= AGAIN) {
                self.say(&packet);
                said = Some(Instant::now());
            }
            // A hundred mutants take it less than the 10 ms of other waits: millions would take hours.
            std::thread::sleep(Duration::from_micros(200));
            while let Some(datagram) = self.hear() {
                answered |= is_answer(datagram);
            }
        }
    }
}

/// Connections that begin wrongly, and datagrams that are wrong throughout.
fn open_wrongly(port: u16, sent: &AtomicU64, goes_on: &AtomicBool) {
    let mut random = Random::draw("first packets");
    let mut opening = Opening::new(&mut random);
    let mut client = RawClient::new(port);
    while goes_on.load(Ordering::Relaxed) {
        for _ in 0..AT_ONCE {
            let destination = random.number().to_be_bytes();
            let mut frames = opening.frames.clone();
            let flies_wrong = random.within(0..4) == 0;
            if !flies_wrong {
                random.mutate(&mut frames);
                frames.truncate(LEAST_BYTES - 100);
            }
            let number = random.number() as u32;
            let mut packet = opening.packet(destination, number, &frames);
            if flies_wrong {
                random.mutate(&mut packet);
            }
            client.say(&packet);
        }
        client.await_server(&mut opening, &mut random);
        sent.fetch_add(AT_ONCE as u64, Ordering::Relaxed);
        if random.within(0..20) == 0 {
            client = RawClient::new(port);
        }
    }
}

/// Carries one client's datagrams to a server and back, each of the client's with wrong ones behind it.
fn carry_with_mutants(front: &UdpSocket, port: u16, sent: &AtomicU64, goes_on: &AtomicBool) {
    let back = UdpSocket::bind((FLOOD, 0)).unwrap();
    back.connect((FLOOD, port)).unwrap();
    for socket in [front, &back] {
        socket.set_nonblocking(true).unwrap();
    }
    let (mut random, mut bytes, mut client) = (Random::draw("datagrams"), [0; 65_536], None);
    let is_quiet = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused)
    };
    while goes_on.load(Ordering::Relaxed) {
        let mut idle = true;
        match front.recv_from(&mut bytes) {
            Ok((length, from)) => {
                (idle, client) = (false, Some(from));
                // What the kernel has no room for is lost, as in any network.
                let _lost = back.send(&bytes[..length]);
                for _ in 0..3 {
                    let mut wrong = bytes[..length].to_vec();
                    random.mutate(&mut wrong);
                    let _lost = back.send(&wrong);
                }
                sent.fetch_add(3, Ordering::Relaxed);
            }
            Err(error) => assert!(is_quiet(&error), "{error}"),
        }
        match back.recv(&mut bytes) {
            Ok(length) => {
                idle = false;
                if let Some(client) = client {
                    let _lost = front.send_to(&bytes[..length], client);
                }
            }
            Err(error) => assert!(is_quiet(&error), "{error}"),
        }
        if idle {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A client whose packets are carried so, over and over, as it soon comes to an end by the mutants.
fn client_with_mutants(clear: bool, port: u16, sent: &AtomicU64, goes_on: &AtomicBool) {
    let front = UdpSocket::bind((FLOOD, 0)).unwrap();
    let relay = front.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(|| carry_with_mutants(&front, port, sent, goes_on));
        while goes_on.load(Ordering::Relaxed) {
            let flags = if clear { "-encrypt:0" } else { "" };
            let load = "-conns:3 -rconn:1 -streams:3 -rstream:1 -up:3000 -down:3000 -run:2s";
            let words =
                format!("secnetperf -target:127.0.0.1 -port:{relay} -bind:{FLOOD} {flags} {load}");
            let mut client = Process::start(&words);
            let ended = client.exit_code_within(LONGEST);
            assert!(ended.is_some(), "the client doesn't end: {}", client.said());
            assert!(!client.said().contains("panicked"), "{}", client.said());
        }
    });
}

/// Makes an honest test, over QUIC or with these flags; the share of its requests that were completed.
pub(crate) fn completed_share(host: &Host, flags: &str) -> f64 {
    let (connections, streams) = REQUESTS;
    let words = format!(
        "secnetperf -target:127.0.0.1 -port:{} -bind:{HONEST} -conns:{connections} -streams:{streams} \
         -up:2000 -down:2000 {flags} --json",
        host.port
    );
    let mut client = Process::start(&words);
    let code = client.exit_code_within(LONGEST);
    assert_eq!(code, Some(0), "{}", client.said());
    // Its last words may be on their way here.
    assert!(holds_within(LONGEST, || client.said().ends_with("}\n")), "{}", client.said());
    let said = client.said();
    let document: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let done = document["streams"].as_u64().unwrap_or_else(|| panic!("{said}"));
    done as f64 / (connections * streams) as f64
}

#[test]
fn quic_mutants_end_no_server_use_no_memory_and_disturb_no_test() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(Dialect::Quic);
    let (sent, goes_on) = ([const { AtomicU64::new(0) }; 3], AtomicBool::new(true));
    let all = || sent.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(completed_share(&host, ""), 1.0, "alone");
    }
    let period = LEAST_PERIOD.max(began.elapsed() / 2 * TIMES_ALONE);
    let began = Instant::now();
    let (mut worst, mut tests) = (f64::INFINITY, 0);
    // Tests' worth of requests: those that were completed, and those that were due in the end, but for the last.
    let (mut done, mut due) = (0.0, 0);
    std::thread::scope(|scope| {
        let end = EndOnDrop(&goes_on);
        let attacks = [
            scope.spawn(|| open_wrongly(host.port, &sent[0], &goes_on)),
            scope.spawn(|| client_with_mutants(true, host.port, &sent[1], &goes_on)),
            scope.spawn(|| client_with_mutants(false, host.port, &sent[2], &goes_on)),
        ];
        let is_over = || if is_long() { all() >= ALL } else { began.elapsed() > period * SHORT };
        while tests < 2 || !is_over() {
            std::thread::sleep((period * tests).saturating_sub(began.elapsed()));
            let share = completed_share(&host, "");
            worst = worst.min(share);
            done += share;
            tests += 1;
            host.assert_holds_at_most(8, MOST_BYTES);
            assert!(attacks.iter().all(|attack| !attack.is_finished()), "an attack broke off");
        }
        due = began.elapsed().as_nanos() / period.as_nanos();
        drop(end);
    });
    assert!(due >= 8, "{due} tests are too few for a rate");
    let in_time = done / due as f64;
    eprintln!("{sent:?} in {:?}; at worst {worst} of {tests} tests' requests", began.elapsed());
    eprintln!("{in_time} of the requests that were due");
    assert!(in_time > 0.95, "an honest client got {in_time} of the rate that it asked for");
    assert!(worst > 0.95, "only {worst} of an honest client's requests were completed");
    assert!(sent.iter().all(|count| count.load(Ordering::Relaxed) > 100), "{sent:?}");
    host.assert_serves();
    host.assert_idle();
}

/// Without a word from their owners, for the address might be somebody else's.
#[test]
fn unvalidated_quic_clients_get_at_most_three_times_what_they_sent() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::start(Dialect::Quic);
    let mut random = Random::draw("clients");
    let opening = Opening::new(&mut random);
    let (mut clients, mut retries, mut answers) = (Vec::new(), 0, 0);
    let count = extent(400, 10_000);
    let mut hear_all = |clients: &mut [RawClient]| {
        for client in clients {
            while let Some(datagram) = client.hear() {
                // A long header's kind (RFC 9000, section 17.2): 0 begins a handshake, 3 asks back.
                match datagram[0] >> 4 & 3 {
                    0 => answers += 1,
                    3 => retries += 1,
                    _ => {}
                }
            }
        }
    };
    for number in 0..count {
        let mut client = RawClient::new(host.port);
        let destination = random.number().to_be_bytes();
        client.say(&opening.packet(destination, 0, &opening.frames));
        clients.push(client);
        if number % AT_ONCE == 0 {
            // So many handshakes take a server some time.
            std::thread::sleep(Duration::from_millis(50));
            hear_all(&mut clients);
        }
    }
    // What the server retransmits to a client that doesn't answer.
    let end = Instant::now() + Duration::from_millis(extent(1_200, 12_000));
    while Instant::now() < end {
        hear_all(&mut clients);
        std::thread::sleep(Duration::from_millis(20));
    }
    eprintln!("{count} clients: {answers} answers, {retries} were asked back");
    assert!(answers > 100, "{answers} answers");
    host.assert_serves();
}
