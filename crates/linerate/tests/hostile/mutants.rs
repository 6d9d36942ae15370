//! Conversations with something wrong in them, by the million: nothing panics, nothing grows, and
//! an honest test beside them has its due.

use std::io::Write;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_wire::native::frame::encode_frame;
use linerate_wire::native::opening::Opening;
use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use crate::address::{Address, KINDS, datagram};
use crate::conversation::{Conversation, connect, stream, tls_session, workload};
use crate::ends::Server;
use crate::extent::{extent, is_long};
use crate::flood::{EndOnDrop, FULL_SPEED};
use crate::lot::Lot;
use crate::resources::Held;

/// Mutants in the long form.
const ALL: u64 = 10_000_000;
/// How long the short form goes on.
const SHORT: Duration = Duration::from_secs(9);
/// What a server may hold more after the attack than soon after its beginning.
const GROWN_BYTES: u64 = 24 << 20;

/// What has been sent so far, by the way it was sent.
#[derive(Debug, Default)]
struct Sent {
    datagrams: AtomicU64,
    messages: AtomicU64,
    connections: AtomicU64,
}

impl Sent {
    fn all(&self) -> u64 {
        [&self.datagrams, &self.messages, &self.connections]
            .map(|count| count.load(Ordering::Relaxed))
            .iter()
            .sum()
    }
}

/// What a client says from its first word to its last.
fn conversation(workload: &Value) -> Vec<Vec<u8>> {
    [
        json!({ "kind": "hello", "versions": [1], "software": "linerate 0.1.0" }),
        json!({ "kind": "request", "plan": workload.to_string(), "exclusive": false }),
        json!({ "kind": "ping", "sent_ns": 12_345_678_901_234_u64 }),
        json!({ "kind": "start", "at_utc_ns": 1_700_000_000_000_000_000_i64 }),
        json!({ "kind": "sent", "datagrams": [{ "flow": 0, "datagrams": 12 }] }),
        json!({ "kind": "finish" }),
    ]
    .iter()
    .map(|message| encode_frame(message.to_string().as_bytes(), usize::MAX).unwrap())
    .collect()
}

/// One that mutates and sends for as long as it is wanted.
struct Attacker<'a> {
    port: u16,
    lot: Lot,
    sent: &'a Sent,
    /// A test of its own, whose token it knows.
    own: Conversation,
    token: [u8; 16],
    owner: Address,
    stranger: Address,
}

impl<'a> Attacker<'a> {
    fn new(port: u16, sent: &'a Sent) -> Self {
        let (own, token, owner) = Self::admitted(port);
        let stranger = Address::new(port);
        Self { port, lot: Lot::draw("mutants"), sent, own, token, owner, stranger }
    }

    fn admitted(port: u16) -> (Conversation, [u8; 16], Address) {
        let mut own = Conversation::connect(port);
        own.greet();
        let rr = json!({
            "name": "rr", "request_bytes": 64, "response_bytes": 64, "timeout_ns": 1_000_000_000,
        });
        let token = own.ask(&workload(&rr, "udp", 3));
        let mut owner = Address::new(port);
        owner.prove(0, token);
        (own, token, owner)
    }

    fn go_on(&mut self) {
        for _ in 0..extent(4, 16) {
            self.send_datagrams();
        }
        self.send_connection();
        self.send_messages();
        // Its own lease lasts; a test that is over by its mutants is replaced.
        let ping = encode_frame(b"{\"kind\":\"ping\",\"sent_ns\":1}", usize::MAX).unwrap();
        if self.own.say_bytes(&ping).is_err() || self.own.hear_or_end().is_none() {
            (self.own, self.token, self.owner) = Self::admitted(self.port);
        }
    }

    fn send_datagrams(&mut self) {
        for _ in 0..100 {
            let length = *self.lot.one_of(&[16, 24, 64, 64, 64, 1_400]);
            let (kind, flow) = (*self.lot.one_of(&KINDS), self.lot.within(0..3) as u32);
            let mut mutant = datagram(kind, length, flow, self.token);
            self.lot.mutate(&mut mutant);
            if self.lot.number().is_multiple_of(2) {
                self.stranger.say(&mutant);
            } else {
                let _closed_by_a_mutant = self.owner.socket.send(&mutant);
            }
        }
        while self.owner.socket.recv(&mut [0; 2_048]).is_ok() {}
        self.sent.datagrams.fetch_add(100, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(extent(4, 0)));
    }

    /// The first words of a connection: TLS's, or a flow's.
    fn send_connection(&mut self) {
        let mut said = Vec::new();
        if self.lot.number().is_multiple_of(2) {
            tls_session(&[b"linerate"]).write_tls(&mut said).unwrap();
        } else {
            let flow = self.lot.within(0..4) as u32;
            said.extend(Opening { flow, token: self.token }.encode());
        }
        self.lot.mutate(&mut said);
        let mut socket = connect(self.port);
        set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
        let _closed = socket.write_all(&said);
        self.sent.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A conversation under TLS that goes well up to some message.
    fn send_messages(&mut self) {
        let mut conversation_of_one = Conversation::connect(self.port);
        set_socket_linger(conversation_of_one.socket(), Some(Duration::ZERO)).unwrap();
        let messages = conversation(&workload(&stream("up"), "tcp", 1));
        let wrong_from = self.lot.within(0..messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            let mut message = message;
            if index >= wrong_from {
                self.lot.mutate(&mut message);
                self.sent.messages.fetch_add(1, Ordering::Relaxed);
            }
            if conversation_of_one.say_bytes(&message).is_err() {
                break;
            }
        }
    }
}

#[test]
fn mutants_end_nothing_grow_nothing_and_disturb_nobody() {
    let _alone = FULL_SPEED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start("");
    Held::by_idle(&server);
    let (sent, goes_on) = (Sent::default(), AtomicBool::new(true));
    let began = Instant::now();
    let (mut early, mut best) = (None, 0.0_f64);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&goes_on);
        let attack = scope.spawn(|| {
            let mut attacker = Attacker::new(server.port, &sent);
            while goes_on.load(Ordering::Relaxed) {
                attacker.go_on();
            }
        });
        while !attack.is_finished() && goes_on.load(Ordering::Relaxed) {
            best = best.max(worst_share(&server));
            early.get_or_insert_with(|| Held::by(server.pid()).resident_bytes);
            server.records();
            let over = if is_long() { sent.all() >= ALL } else { began.elapsed() > SHORT };
            goes_on.store(!over, Ordering::Relaxed);
        }
        goes_on.store(false, Ordering::Relaxed);
    });
    // Whatever else the machine does can only make it less.
    assert!(best > 0.95, "at best {best} of the rates that were asked for");
    eprintln!("{sent:?} in {:?}", began.elapsed());
    let late = Held::by(server.pid()).resident_bytes;
    let early = early.expect("a measurement");
    assert!(late < early + GROWN_BYTES, "{early} bytes early on, {late} bytes at the end");
    assert!(sent.all() > 1_000, "{sent:?}");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --count 3").document(0);
}

/// Makes honest tests; the least share that one of them had of its rate.
fn worst_share(server: &Server) -> f64 {
    let loads = [
        "stream --both --rate 20M --time 2s",
        "stream --both --udp --verify --rate 5M --size 1000 --time 2s",
    ];
    let clients = loads.map(|load| server.start_client(load));
    let mut worst = f64::INFINITY;
    for (client, rate_bps) in clients.into_iter().zip([20e6, 5e6]) {
        let document = client.finish().document(0);
        for figure in ["goodput_up_bps", "goodput_down_bps"] {
            worst = worst.min(document.figure(figure) / rate_bps);
        }
    }
    worst
}
