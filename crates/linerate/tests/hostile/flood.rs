//! Connections that want nothing, by the thousand: a test is still begun and made in time.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_wire::native::server::REQUEST_NS;
use rustix::net::sockopt::set_socket_linger;
use rustix::process::Signal;

use crate::attackers::{Starved, yield_to_others};
use crate::conversation::{Conversation, connect, stream, tls_session, workload};
use crate::ends::Server;
use crate::extent::extent;
use crate::resources::{Held, assert_idle};
use crate::run_delay::RunDelays;

/// Half-open connections from one address.
const IDLE_CONNECTIONS: usize = 10_000;
/// So much later may a test come to its end because of them.
const DELAY: Duration = Duration::from_secs(1);
/// So much later where the flood has pushed it out.
const AGAIN: Duration = Duration::from_secs(2);
/// Small tests made from each address at least.
const LEAST_TESTS: usize = 10;
/// Attacks at full speed are made one after the other.
pub(crate) static FULL_SPEED: Mutex<()> = Mutex::new(());
/// A client's addresses: that of the flood, and another.
const HOMES: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
/// Connections of one kind in a flood that never ends, at least.
const LEAST_FLOOD: usize = 2_000;
/// How long a slow machine may take for them.
const PATIENCE: Duration = Duration::from_secs(60);

/// What small tests take, sorted.
struct Took {
    /// Of the server that is attacked.
    amid: Vec<Duration>,
    /// Of a server that isn't, each beside one of the others: what the machine itself makes of it.
    beside: Vec<Duration>,
    /// Why others failed.
    failed: Vec<String>,
}

impl Took {
    fn quartile(&self) -> Duration {
        self.amid[self.amid.len() / 4]
    }

    fn most(&self) -> Duration {
        self.amid[self.amid.len() - 1]
    }

    fn most_beside(&self) -> Duration {
        self.beside[self.beside.len() - 1]
    }
}

/// What tests take from this address while it goes on. (One from a flood's own address may be pushed out before it is
/// greeted: SECURITY.md, "What a flood can still do". It tries again.)
fn small_tests(
    server: &Server,
    quiet: &Server,
    home: Ipv4Addr,
    goes_on: impl Fn() -> bool,
) -> Took {
    let (mut amid, mut beside, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    while amid.len() + failed.len() < LEAST_TESTS || goes_on() {
        let words = format!("rr --count 3 --bind {home}");
        let ended = server.measure(&words);
        match ended.exit_code {
            Some(0) => amid.push(ended.took),
            _ => failed.push(ended.stderr),
        }
        beside.push(quiet.measure(&words).took);
        // What they say must not pile up here.
        server.records();
        quiet.records();
    }
    amid.sort();
    beside.sort();
    let took = Took { amid, beside, failed };
    eprintln!("{home}: {} tests, {took}", took.amid.len());
    took
}

impl std::fmt::Display for Took {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (quartile, most, beside) = (self.quartile(), self.most(), self.most_beside());
        write!(formatter, "{quartile:?} to {most:?}, at most {beside:?} without an attack")
    }
}

pub(crate) fn greeting() -> Vec<u8> {
    let mut greeting = Vec::new();
    tls_session(&[b"linerate"]).write_tls(&mut greeting).unwrap();
    greeting
}

#[test]
fn ten_thousand_half_open_connections_delay_a_test_by_less_than_a_second() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, quiet) = (Server::start(""), Server::start(""));
    let idle = Held::by_idle(&server);
    let mut running = server.start_client("stream --both --rate 20M --time 60s --interval 100ms");
    server.await_record("test_started");
    let mut delays = RunDelays::since_now(server.pid());
    let comes = AtomicBool::new(true);
    let (kept, was_running) = std::thread::scope(|scope| {
        for home in HOMES {
            let (server, quiet, comes) = (&server, &quiet, &comes);
            scope.spawn(move || {
                let mut delays = RunDelays::since_now(server.pid());
                let took = small_tests(server, quiet, home, || comes.load(Ordering::Relaxed));
                delays.look(server.pid());
                assert!(took.failed.is_empty(), "{home}: {:?}", took.failed);
                let most = took.most_beside() + DELAY + lost_syn(&delays);
                assert!(
                    took.most() < most,
                    "{home}: {took}, {:.3} s without a processor",
                    delays.total_s()
                );
                assert!(Held::by(server.pid()).descriptors < idle.descriptors + 600);
            });
        }
        let _here = EndOnDrop(&comes);
        (open_idle_connections(&server), running.is_running())
    });
    assert_eq!(kept.len(), IDLE_CONNECTIONS);
    assert!(was_running, "it was over before the connections were open");
    [running.pid(), server.pid()].into_iter().for_each(|pid| delays.look(pid));
    running.signal(Signal::INT);
    let document = running.finish().document(130);
    // An end that has no processor sends nothing.
    let least_bps = 20e6 * (0.75 - delays.total_s() / document.figure("elapsed_s"));
    for figure in ["goodput_up_bps", "goodput_down_bps"] {
        let bps = document.figure(figure);
        assert!(bps > least_bps, "{figure}: {bps}, not {least_bps}");
    }
    assert_idle(&server, idle, Duration::from_secs(10));
    drop(kept);
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// What two lost SYNs take.
const MOST_LOST_SYN: Duration = Duration::from_secs(3);

/// How much later a client may come to its end whose server waited so long for processors. The kernel drops its SYN where
/// the backlog is full. It is sent again after a second, and once more after two more (RFC 6298, section 5).
fn lost_syn(delays: &RunDelays) -> Duration {
    Duration::from_secs_f64(delays.total_s()).min(MOST_LOST_SYN)
}

/// Opens the idle connections, one after the other, while a busy machine runs the server.
fn open_idle_connections(server: &Server) -> Vec<Box<dyn Send>> {
    let (port, greeting) = (server.port, greeting());
    let mut starved = Starved::new(server.pid());
    let mut kept: Vec<Box<dyn Send>> = Vec::new();
    for number in 0..IDLE_CONNECTIONS {
        while starved.look() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Some say nothing, some half of what a client says, some all of it, some begin as a flow
        // does, and some are greeted and go no further.
        let said = match number % 50 {
            0 => {
                let mut conversation = Conversation::connect(port);
                conversation.greet();
                kept.push(Box::new(conversation));
                continue;
            }
            1..15 => &greeting[..greeting.len() / 2],
            15..25 => &greeting[..],
            25..30 => b"LRD1\0\0",
            _ => &[],
        };
        let mut socket = connect(port);
        // It may have been pushed out already.
        let _pushed_out = socket.write_all(said);
        kept.push(Box::new(socket));
    }
    kept
}

/// Connects from one address for ever, a few thousand times a second, keeps as many open as a
/// server might, and says this. Where a process is named, it waits while a busy machine doesn't run that.
pub(crate) fn flood(
    port: u16,
    waits_for: Option<u32>,
    said: &[u8],
    each: Duration,
    goes_on: &AtomicBool,
    count: &AtomicUsize,
) {
    yield_to_others();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (mut kept, mut due) = (VecDeque::new(), Instant::now());
    let mut starved = waits_for.map(Starved::new);
    while goes_on.load(Ordering::Relaxed) {
        if starved.as_mut().is_some_and(Starved::look) {
            std::thread::sleep(Duration::from_millis(1));
            due = Instant::now();
            continue;
        }
        if let Ok(mut socket) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            // Gone without a trace when it is dropped, so that the flood never runs out of ports.
            set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
            let _pushed_out = socket.write_all(said);
            kept.push_back(socket);
        }
        if kept.len() > 1_000 {
            kept.pop_front();
        }
        count.fetch_add(1, Ordering::Relaxed);
        due += each;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Ends an attack, also where a test fails.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn an_endless_flood_pushes_no_client_out() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, quiet) = (Server::start(""), Server::start(""));
    let idle = Held::by_idle(&server);
    let greeting = greeting();
    let words = [&b""[..], &greeting[..200], &greeting[..], b"LRD1\0\0"];
    // A whole greeting costs the server a key exchange and a signature.
    let each = [200, 250, 1_000, 200].map(Duration::from_micros);
    for (said, each) in words.into_iter().zip(each) {
        let (goes_on, count) = (AtomicBool::new(true), AtomicUsize::new(0));
        let mut delays = RunDelays::since_now(server.pid());
        std::thread::scope(|scope| {
            let end = EndOnDrop(&goes_on);
            let began = Instant::now();
            let flood = scope
                .spawn(|| flood(server.port, Some(server.pid()), said, each, &goes_on, &count));
            std::thread::sleep(Duration::from_millis(300));
            let time = Duration::from_secs(extent(1, 30));
            let amid = HOMES.map(|home| {
                let until = Instant::now() + time;
                let is_enough = || count.load(Ordering::Relaxed) >= LEAST_FLOOD;
                small_tests(&server, &quiet, home, || {
                    let now = Instant::now();
                    now < until || (!is_enough() && now < until + PATIENCE)
                })
            });
            drop(end);
            flood.join().unwrap();
            let count = count.load(Ordering::Relaxed);
            assert!(count >= LEAST_FLOOD, "{} bytes each: {count} connections", said.len());
            let per_second = count as f64 / began.elapsed().as_secs_f64();
            delays.look(server.pid());
            let starved = lost_syn(&delays);
            eprintln!(
                "{} bytes each, {per_second:.0} connections/s, starved for {starved:?}",
                said.len()
            );
            for (home, took) in HOMES.into_iter().zip(amid) {
                assert!(took.failed.is_empty(), "{home}: {:?}", took.failed);
                // One that was pushed out begins again, up to four times.
                let delayed = if home == HOMES[0] { AGAIN + DELAY } else { DELAY };
                let (quartile, most) = (took.quartile(), took.most());
                let beside = took.most_beside();
                assert!(quartile < beside + DELAY, "{home}: {took}");
                assert!(most < beside + delayed + starved, "{home}: {took}");
            }
        });
    }
    assert_idle(&server, idle, Duration::from_secs(10));
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// A load of connections takes them from the listener itself, so the flood's wait in places of the test.
#[test]
fn silent_connections_fail_none_of_a_test_that_connects() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let each = Duration::from_millis(2);
    for flags in ["", "--tls", "--flows 8 --threads 2"] {
        let (goes_on, count) = (AtomicBool::new(true), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let _here = EndOnDrop(&goes_on);
            scope.spawn(|| flood(server.port, None, b"", each, &goes_on, &count));
            std::thread::sleep(Duration::from_millis(300));
            let words = format!("connect --time 3s --bind {} {flags}", HOMES[1]);
            let client = server.start_client(&words);
            std::thread::sleep(Duration::from_secs(2));
            let held = Held::by(server.pid()).descriptors;
            assert!(held < idle.descriptors + 800, "{flags}: {held} descriptors, {idle:?}");
            let document = client.finish().document(0);
            server.records();
            let summary = &document.json()["summary"];
            let seen = document.report("server")["errors"].as_object();
            assert!(summary["errors"].is_null() && seen.is_none(), "{flags}: {summary}, {seen:?}");
            assert!(document.count("transactions") > 100, "{flags}: {summary}");
            let silent = count.load(Ordering::Relaxed);
            assert!(silent > 200, "{flags}: {silent} silent connections");
            eprintln!("{flags}: {} beside {silent}", document.count("transactions"));
        });
    }
    assert_idle(&server, idle, Duration::from_secs(10));
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// Handshakes take turns, and a client's own address has many. Its request is no handshake.
#[test]
fn a_request_that_waits_behind_handshakes_is_no_silence() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    let mut client = Conversation::connect(server.port);
    client.greet();
    let greeting = greeting();
    // What comes while the server stands still is all there at once when it goes on.
    server.signal(Signal::STOP);
    let handshakes: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut socket = connect(server.port);
            socket.write_all(&greeting).unwrap();
            socket
        })
        .collect();
    let plan = workload(&stream("up"), "tcp", 1).to_string();
    client.say(&serde_json::json!({ "kind": "request", "plan": plan }));
    std::thread::sleep(Duration::from_nanos(REQUEST_NS) + Duration::from_millis(100));
    server.signal(Signal::CONT);
    let answer = client.hear();
    assert_eq!(answer["kind"], "admitted", "{answer}, beside {} handshakes", handshakes.len());
}
