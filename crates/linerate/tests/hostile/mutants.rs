//! Conversations with something wrong in them, by the million: nothing panics, nothing grows, and
//! an honest test beside them has its due.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::attackers::{ConversationAttacker, DatagramAttacker, Sent, yield_to_others};
use crate::ends::Server;
use crate::extent::{extent, is_long};
use crate::flood::{EndOnDrop, FULL_SPEED};
use crate::resources::{Held, assert_idle};

/// Mutants in the long form: so many in all, of which so many at least have ended conversations
/// under TLS, and so many were the first words of connections.
const ALL: u64 = 10_000_000;
const ALL_MESSAGES: u64 = 400_000;
const ALL_OPENINGS: u64 = 400_000;
/// How long the short form goes on.
const SHORT: Duration = Duration::from_secs(9);
/// What it fails after where the machine is so slow.
const LONGEST: Duration = Duration::from_secs(60);
/// Threads that hold conversations at a time.
const CONVERSATIONS: usize = 3;
/// The long form says after so many rounds, a minute or so, how far it is.
const ROUNDS_A_LINE: usize = 25;
/// What a server may hold more after the attack than soon after its beginning.
const GROWN_BYTES: u64 = 24 << 20;
/// What honest tests must have, in each direction, of the rate that they asked for.
const SHARE: f64 = 0.95;
/// Of so many rounds nine of ten must have that, each for itself.
const MANY_ROUNDS: usize = 10;
/// What they have at least on a machine that has nothing else to do.
const QUIET_SHARE: f64 = 0.98;
/// Rounds before the attack where they have less.
const MORE_QUIET_ROUNDS: usize = 6;
const DIRECTIONS: [&str; 4] = ["TCP up", "TCP down", "UDP up", "UDP down"];

#[test]
fn mutants_end_no_server_use_no_memory_and_disturb_no_test() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let quiet = quiet_rounds(&server);
    let (sent, goes_on) = (Sent::default(), AtomicBool::new(true));
    let began = Instant::now();
    let (mut early, mut rounds) = (None, Vec::new());
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&goes_on);
        let attack = attack(scope, server.port, &sent, &goes_on);
        let goes_well = || !attack.iter().any(std::thread::ScopedJoinHandle::is_finished);
        while goes_on.load(Ordering::Relaxed) && goes_well() {
            rounds.push(shares(&server));
            early.get_or_insert_with(|| Held::by(server.pid()).resident_bytes);
            server.records();
            if is_long() && rounds.len().is_multiple_of(ROUNDS_A_LINE) {
                eprintln!("{sent:?} after {:?}", began.elapsed());
            }
            let is_late = !is_long() && began.elapsed() > LONGEST;
            let over = is_late || (is_all(&sent) && (is_long() || began.elapsed() > SHORT));
            goes_on.store(!over, Ordering::Relaxed);
        }
        goes_on.store(false, Ordering::Relaxed);
    });
    let took = began.elapsed();
    eprintln!("{sent:?} in {took:?}, {} rounds of honest tests", rounds.len());
    for (direction, name) in DIRECTIONS.into_iter().enumerate() {
        // Every round counts, and a pause of the machine as much as it lasted.
        let got = rounds.iter().map(|round| round[direction]).sum::<f64>() / rounds.len() as f64;
        let least = SHARE * quiet.iter().map(|round| round[direction]).fold(1.0, f64::min);
        eprintln!("{name}: {got:.4} of the rate that was asked for, at least {least:.4}");
        assert!(
            got > least,
            "{name}: {got} of the rate that was asked for; {rounds:?} after {quiet:?}"
        );
        let behind = rounds.iter().filter(|round| round[direction] <= least).count();
        assert!(
            rounds.len() < MANY_ROUNDS || behind * 10 <= rounds.len(),
            "{name}: behind in {behind} rounds; {rounds:?}"
        );
    }
    let late = Held::by(server.pid()).resident_bytes;
    let early = early.expect("a measurement");
    assert!(late < early + GROWN_BYTES, "{early} bytes early on, {late} bytes at the end");
    // An attack that broke off early shows nothing.
    assert!(is_all(&sent), "{sent:?} where {:?} were to be", least());
    assert_idle(&server, idle, Duration::from_secs(10));
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --count 3").document(0);
}

/// Messages that were drawn at random, openings, and all mutants together, at least.
fn least() -> [u64; 3] {
    extent([500, 500, 20_000], [ALL_MESSAGES, ALL_OPENINGS, ALL])
}

fn is_all(sent: &Sent) -> bool {
    sent.counts().into_iter().zip(least()).all(|(sent, least)| sent >= least)
}

/// Attacks in several ways at once, for as long as it shall go on.
fn attack<'a>(
    scope: &'a std::thread::Scope<'a, '_>,
    port: u16,
    sent: &'a Sent,
    goes_on: &'a AtomicBool,
) -> Vec<std::thread::ScopedJoinHandle<'a, ()>> {
    let conversations = (0..CONVERSATIONS).map(|_| {
        scope.spawn(move || {
            yield_to_others();
            let mut attacker = ConversationAttacker::new(port, sent);
            while goes_on.load(Ordering::Relaxed) {
                attacker.go_on();
            }
        })
    });
    let mut attackers: Vec<_> = conversations.collect();
    attackers.push(scope.spawn(move || {
        yield_to_others();
        let mut attacker = DatagramAttacker::new(port, sent);
        while goes_on.load(Ordering::Relaxed) {
            attacker.go_on();
        }
    }));
    attackers
}

/// Honest tests before the attack: what other programs leave to them is no matter of it. A busy machine leaves now more
/// and now less, which more of them show.
fn quiet_rounds(server: &Server) -> Vec<[f64; 4]> {
    let mut rounds = vec![shares(server), shares(server)];
    if rounds.iter().flatten().any(|share| *share < QUIET_SHARE) {
        rounds.extend((0..MORE_QUIET_ROUNDS).map(|_| shares(server)));
    }
    rounds
}

/// Makes honest tests; the share that each direction had of what its rate and time make.
fn shares(server: &Server) -> [f64; 4] {
    let loads = [
        ("stream --both --rate 20M --time 2s", 20e6),
        ("stream --both --udp --verify --rate 5M --size 1000 --time 2s", 5e6),
    ];
    let clients = loads.map(|(words, _)| server.start_client(words));
    let documents = clients.map(|client| client.finish().document(0));
    let share = |(load, receiver): (usize, &str)| {
        let received_bytes = documents[load].sum_of_flows(receiver, "received/bytes");
        received_bytes as f64 * 8.0 / (loads[load].1 * 2.0)
    };
    [(0, "server"), (0, "client"), (1, "server"), (1, "client")].map(share)
}
