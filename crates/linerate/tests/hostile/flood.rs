//! Connections that want nothing, by the thousand: a test is still begun and made in time.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::conversation::{Conversation, connect, tls_session};
use crate::ends::Server;
use crate::extent::extent;
use crate::resources::{Held, assert_idle};

/// Half-open connections from one address.
const CROWD: usize = 10_000;
/// So much later may a test come to its end because of them.
const DELAY: Duration = Duration::from_secs(1);
/// Attacks at full speed are made one after the other.
pub(crate) static FULL_SPEED: Mutex<()> = Mutex::new(());
/// A client's addresses: that of the flood, and another.
const HOMES: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];

/// What a test takes from this address while it goes on: the lower quartile of three at least, as
/// whatever else the machine does makes some of them slower. From an address that isn't the
/// flood's every one must succeed; from the flood's own, three of four.
#[track_caller]
fn small_tests(server: &Server, home: Ipv4Addr, goes_on: impl Fn() -> bool) -> Duration {
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    while took.len() + failed.len() < 4 || goes_on() {
        let ended = server.measure(&format!("rr --count 3 --bind {home}"));
        match ended.exit_code {
            Some(0) => took.push(ended.took),
            _ => failed.push(ended.stderr),
        }
        // What it says of the crowd must not pile up here.
        server.records();
    }
    took.sort();
    eprintln!("from {home}: {} tests, {} failed", took.len(), failed.len());
    let most_failed = if home == HOMES[0] { took.len() / 3 } else { 0 };
    assert!(failed.len() <= most_failed, "from {home}, beside {}: {failed:?}", took.len());
    eprintln!("{:?} to {:?}", took[0], took[took.len() - 1]);
    took[took.len() / 4]
}

fn greeting() -> Vec<u8> {
    let mut greeting = Vec::new();
    tls_session(&[b"linerate"]).write_tls(&mut greeting).unwrap();
    greeting
}

#[test]
fn ten_thousand_half_open_connections_delay_a_test_by_less_than_a_second() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let alone = HOMES.map(|home| small_tests(&server, home, || false));
    let running = server.start_client("stream --both --rate 20M --time 5s --interval 100ms");
    server.await_record("test_started");
    let greeting = greeting();
    let opened = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| {
            let mut kept: Vec<Box<dyn Send>> = Vec::new();
            for number in 0..CROWD {
                // Some say nothing, some half of what a client says, some all of it, some begin as
                // a flow does, and some are greeted and go no further.
                let said = match number % 50 {
                    0 => {
                        let mut conversation = Conversation::connect(server.port);
                        conversation.greet();
                        kept.push(Box::new(conversation));
                        opened.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    1..15 => &greeting[..greeting.len() / 2],
                    15..25 => &greeting[..],
                    25..30 => b"LRD1\0\0",
                    _ => &[],
                };
                let mut socket = connect(server.port);
                // It may have been pushed out already.
                let _pushed_out = socket.write_all(said);
                kept.push(Box::new(socket));
                opened.fetch_add(1, Ordering::Relaxed);
            }
            kept
        });
        for (home, alone) in HOMES.into_iter().zip(alone) {
            let goal = if home == HOMES[0] { CROWD / 2 } else { CROWD };
            let goes_on = || opened.load(Ordering::Relaxed) < goal && !crowd.is_finished();
            let amid = small_tests(&server, home, goes_on);
            assert!(amid < alone + DELAY, "{home}: {amid:?} where {alone:?} was enough before");
            assert!(Held::by(server.pid()).descriptors < idle.descriptors + 600);
        }
        let kept = crowd.join().unwrap();
        assert_eq!(kept.len(), CROWD);
        let document = running.finish().document(0);
        for figure in ["goodput_up_bps", "goodput_down_bps"] {
            assert!(document.figure(figure) > 15e6, "{figure}: {}", document.figure(figure));
        }
        assert_idle(&server, idle, Duration::from_secs(10));
    });
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// Connects from one address for ever, a few thousand times a second, keeps as many open as a
/// server might, and says this.
fn flood(port: u16, said: &[u8], each: Duration, goes_on: &AtomicBool) -> usize {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (mut kept, mut count, began) = (VecDeque::new(), 0, Instant::now());
    while goes_on.load(Ordering::Relaxed) {
        if let Ok(mut socket) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            // Gone without a trace when it is dropped, so that the flood never runs out of ports.
            set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
            let _pushed_out = socket.write_all(said);
            kept.push_back(socket);
        }
        if kept.len() > 1_000 {
            kept.pop_front();
        }
        count += 1;
        std::thread::sleep((each * count as u32).saturating_sub(began.elapsed()));
    }
    count
}

/// Ends an attack, also where a test fails.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_flood_that_never_ends_pushes_no_client_out() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let alone = HOMES.map(|home| small_tests(&server, home, || false));
    let greeting = greeting();
    let words = [&b""[..], &greeting[..200], &greeting[..], b"LRD1\0\0"];
    // A whole greeting costs the server a key exchange and a signature.
    let each = [200, 250, 1_000, 200].map(Duration::from_micros);
    for (said, each) in words.into_iter().zip(each) {
        let goes_on = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let end = EndOnDrop(&goes_on);
            let began = Instant::now();
            let flood = scope.spawn(|| flood(server.port, said, each, &goes_on));
            std::thread::sleep(Duration::from_millis(300));
            let time = Duration::from_secs(extent(1, 30));
            let amid = HOMES.map(|home| {
                let until = Instant::now() + time;
                small_tests(&server, home, || Instant::now() < until)
            });
            drop(end);
            let count = flood.join().unwrap();
            let per_second = count as f64 / began.elapsed().as_secs_f64();
            eprintln!("{} bytes each, {per_second:.0} connections/s", said.len());
            for (amid, alone) in amid.into_iter().zip(alone) {
                assert!(amid < alone + DELAY, "{amid:?} where {alone:?} was enough before");
            }
        });
    }
    assert_idle(&server, idle, Duration::from_secs(10));
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}
