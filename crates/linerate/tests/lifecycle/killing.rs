//! A hundred kills of either side, at random times of random loads.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::ends::{Ended, Server, holds_within, let_pass};
use crate::resources::{Held, assert_idle};

/// Kills in all, and those of them that hit the server.
const KILLS: u32 = 100;
const KILLS_OF_SERVERS: u32 = 30;
/// Kills that go on at the same time.
const LANES: u32 = 4;
/// A client must have noticed after so long that its server is gone.
const NOTICED: Duration = Duration::from_secs(6);
/// So much may the memory of a server have grown that has lost so many clients: what the allocator
/// keeps of the most that was ever in use at once.
const GROWTH_BYTES: u64 = 16 << 20;
/// And so much after it had lost half of them already.
const LATER_GROWTH_BYTES: u64 = 6 << 20;

const LOADS: [&str; 17] = [
    "stream --up",
    "stream --down --rate 200M",
    "stream --both --flows 2",
    "stream --duplex --flows 2",
    "stream --tls --down",
    "stream --tls --both --flows 3 --rate 100M",
    "stream --udp --up --rate 50M",
    "stream --udp --down --flows 4 --rate 50M",
    "rr",
    "rr --tls --flows 3 --threads 1",
    "rr --udp --flows 2",
    "connect --flows 4",
    "connect --close rst --rate 500 --flows 2",
    "stream --quic --both --flows 2 --rate 50M",
    "stream --quic --duplex --rate 50M",
    "rr --quic --flows 3 --streams 3",
    "connect --quic --flows 2",
];

/// A small generator of numbers that look random: xorshift64* (Vigna, 2016).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn load(&mut self) -> String {
        let load = LOADS[self.throw(LOADS.len() as u64) as usize];
        format!("{load} --time 20s --interval 50ms")
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.throw(301))
    }
}

/// Kills that many clients of one server, some at the same time.
fn kill_clients(server: &Server, count: u32, seed: u64) {
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                let mut dice = Dice(seed + u64::from(lane) * 7919);
                for _ in (lane..count).step_by(LANES as usize) {
                    let client = server.start_client(&dice.load());
                    std::thread::sleep(dice.delay());
                    client.signal(Signal::KILL);
                    assert_eq!(client.finish().exit_code, None);
                }
            });
        }
    });
}

#[test]
fn killed_clients_leave_nothing_behind() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let half = (KILLS - KILLS_OF_SERVERS) / 2;
    kill_clients(&server, half, 1);
    assert_idle(&server, idle, Duration::from_secs(5));
    let later = Held::by(server.pid());
    kill_clients(&server, half, 2);
    assert_idle(&server, idle, Duration::from_secs(5));
    let last = Held::by(server.pid());
    let growth = |since: Held| last.resident_bytes.saturating_sub(since.resident_bytes);
    assert!(growth(idle) <= GROWTH_BYTES, "{idle:?} grew to {last:?}");
    assert!(growth(later) <= LATER_GROWTH_BYTES, "{later:?} grew to {last:?}");
    server.measure("rr --count 3").document(0);
}

#[test]
fn clients_of_killed_servers_say_so_with_what_they_have() {
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                let mut dice = Dice(3 + u64::from(lane) * 7919);
                for _ in (lane..KILLS_OF_SERVERS).step_by(LANES as usize) {
                    let server = Server::start("");
                    let load = dice.load();
                    let client = server.start_client(&load);
                    std::thread::sleep(dice.delay());
                    drop(server);
                    assert_says_so(&client.finish_within(NOTICED), &load);
                }
            });
        }
    });
}

#[track_caller]
fn assert_says_so(ended: &Ended, load: &str) {
    let code = ended.exit_code.unwrap_or(-1);
    assert!(code == 1 || code == 3, "{load} ended with {code}: {}", ended.stderr);
    let document = ended.document(code);
    assert_eq!(document.outcome(), "failed", "{load}");
    assert!(!document.message().is_empty(), "{load}");
}

#[test]
fn a_server_that_dies_or_hangs_under_load_leaves_the_client_a_partial_result() {
    std::thread::scope(|scope| {
        for (load, signal) in [
            ("stream --up --rate 50M", Signal::KILL),
            ("stream --down --udp --rate 20M", Signal::KILL),
            ("stream --both --tls --rate 50M", Signal::STOP),
            ("rr --udp", Signal::STOP),
            ("rr", Signal::STOP),
            ("stream --quic --both --rate 50M", Signal::KILL),
            ("rr --quic", Signal::STOP),
        ] {
            scope.spawn(move || {
                let server = Server::start("");
                let client = server.start_client(&format!("{load} --time 30s --interval 50ms"));
                server.await_record("test_started");
                let_pass(Duration::from_millis(500));
                server.signal(signal);
                let ended = client.finish_within(NOTICED);
                let document = ended.document(1);
                assert_eq!(document.outcome(), "failed", "{load}");
                assert!(!document.samples("client").is_empty(), "{load}");
                assert!(!document.samples("server").is_empty(), "{load}");
                assert!(document.report("client")["elapsed_ns"].as_u64() > Some(100_000_000));
            });
        }
    });
}

#[test]
fn a_server_that_is_asked_to_end_does_so_under_load() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = Server::start("");
        let clients =
            ["stream --both --rate 50M", "rr --udp"].map(|load| server.start_client(load));
        server.await_record("test_started");
        server.await_record("test_started");
        let_pass(Duration::from_millis(200));
        server.signal(signal);
        let asked = Instant::now();
        assert!(holds_within(Duration::from_secs(3), || !server.is_running()), "{signal:?}");
        assert_eq!(server.exit_code(), Some(0), "{signal:?} after {:?}", asked.elapsed());
        for client in clients {
            assert_eq!(client.finish_within(NOTICED).document(1).outcome(), "failed");
        }
    }
}
