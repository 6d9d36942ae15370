//! Peers that mutate what an honest one says: datagrams, first words of connections, and control
//! messages under TLS.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_wire::native::frame::encode_frame;
use linerate_wire::native::message::ClientMessage;
use linerate_wire::native::opening::Opening;
use rustix::net::sockopt::set_socket_linger;
use serde_json::json;

use crate::address::{Address, KINDS, datagram};
use crate::conversation::{Conversation, connect, connect_data, stream, tls_session, workload};
use crate::extent::extent;
use crate::held_test::{HeldTest, frame};
use crate::random::Random;
use crate::run_delay::RunDelays;

/// Legal mutants in one conversation, before the one that may end it.
const HARMLESS: usize = 8;
/// Datagrams between two looks whether the server has taken them in.
const AT_ONCE: usize = 100;
/// A read that takes longer has ended by its own timeout, after 10 s, not by the server.
const SILENT: Duration = Duration::from_secs(9);
/// What an attack yields to others: its own work is none that a server would have.
const NICENESS: i32 = 10;
/// How long a server is looked at before it is taken for starved, or not.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What has been sent so far, by the way it was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// UDP datagrams.
    pub(crate) datagrams: AtomicU64,
    /// First words of TCP connections.
    pub(crate) openings: AtomicU64,
    /// Control messages under TLS, as they were drawn at random. The server has read each, and most of them
    /// have ended their conversation.
    pub(crate) messages: AtomicU64,
    /// Control messages under TLS that the server has to take as they are: oddly written, but legal.
    pub(crate) harmless: AtomicU64,
}

impl Sent {
    /// Messages that were drawn at random, openings, and all mutants together.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let Self { datagrams, openings, messages, harmless } = self;
        let [messages, openings, datagrams, harmless] =
            [messages, openings, datagrams, harmless].map(|count| count.load(Ordering::Relaxed));
        [messages, openings, messages + openings + datagrams + harmless]
    }
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

/// Lets everybody else's threads go before this one.
pub(crate) fn yield_to_others() {
    rustix::process::nice(NICENESS).unwrap();
}

/// Whether a server waits for processors that others have, looked at again after a while. A flood goes on when it does no
/// longer: what a server can take is told by what it does with a processor.
pub(crate) struct Starved {
    pid: u32,
    delays: RunDelays,
    since: Instant,
    is_so: bool,
}

impl Starved {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, delays: RunDelays::since_now(pid), since: Instant::now(), is_so: false }
    }

    pub(crate) fn look(&mut self) -> bool {
        let time = self.since.elapsed();
        if time > LOOK_EVERY {
            self.delays.look(self.pid);
            let is_so = self.delays.total_s() > time.as_secs_f64() / 2.0;
            *self = Self { is_so, ..Self::new(self.pid) };
        }
        self.is_so
    }
}

/// One that sends datagrams: to the port where flows begin, and to a flow that runs.
pub(crate) struct DatagramAttacker<'a> {
    random: Random,
    sent: &'a Sent,
    beginning: HeldTest,
    running: HeldTest,
    stranger: Address,
}

impl<'a> DatagramAttacker<'a> {
    pub(crate) fn new(port: u16, sent: &'a Sent) -> Self {
        Self {
            random: Random::draw("mutated datagrams"),
            sent,
            beginning: HeldTest::beginning(port, "rr", "udp"),
            running: HeldTest::running(port),
            stranger: Address::new(port),
        }
    }

    pub(crate) fn go_on(&mut self) {
        for _ in 0..extent(4, 16) {
            self.send_datagrams();
        }
        self.beginning.keep();
        self.running.keep();
    }

    fn send_datagrams(&mut self) {
        if !self.beginning.is_young() {
            self.beginning.keep();
        }
        for _ in 0..AT_ONCE {
            let length = *self.random.one_of(&[16, 24, 64, 64, 64, 1_400]);
            let (kind, flow) = (*self.random.one_of(&KINDS), self.random.within(0..3) as u32);
            let to_running = self.random.number().is_multiple_of(2);
            let test = if to_running { &mut self.running } else { &mut self.beginning };
            let mut mutant = datagram(kind, length, flow, test.token);
            self.random.mutate(&mut mutant);
            if to_running {
                let _closed_by_a_mutant = test.owner.socket.send(&mutant);
            } else {
                self.stranger.say(&mutant);
            }
        }
        while self.running.owner.socket.recv(&mut [0; 2_048]).is_ok() {}
        // The server has taken in what came before: none was dropped for want of room.
        self.beginning.owner.await_server(self.beginning.token);
        add(&self.sent.datagrams, AT_ONCE);
        std::thread::sleep(Duration::from_millis(extent(2, 0)));
    }
}

/// One that begins connections and leads conversations, each up to a word that is wrong.
pub(crate) struct ConversationAttacker<'a> {
    port: u16,
    random: Random,
    sent: &'a Sent,
    /// Tests that flows may want to belong to: the last doesn't take them.
    beginning: [HeldTest; 3],
}

impl<'a> ConversationAttacker<'a> {
    pub(crate) fn new(port: u16, sent: &'a Sent) -> Self {
        let beginning = [("rr", "tcp"), ("connect", "tcp"), ("rr", "udp")]
            .map(|(kind, transport)| HeldTest::beginning(port, kind, transport));
        Self { port, random: Random::draw("mutated conversations"), sent, beginning }
    }

    pub(crate) fn go_on(&mut self) {
        self.beginning.iter_mut().for_each(HeldTest::keep);
        self.send_opening();
        self.send_messages();
    }

    /// The first words of a connection: TLS's, or a flow's.
    fn send_opening(&mut self) {
        let mut said = Vec::new();
        if self.random.number().is_multiple_of(2) {
            tls_session(&[b"linerate"]).write_tls(&mut said).unwrap();
        } else {
            let [requests, connects, udp] = [0, 1, 2].map(|test| self.beginning[test].token);
            let flow = self.random.within(0..4) as u32;
            let stranger = [self.random.number() as u8; 16];
            let token = *self.random.one_of(&[requests, connects, udp, stranger]);
            said.extend(Opening { flow, token }.encode());
        }
        self.random.mutate(&mut said);
        let mut socket = connect(self.port);
        set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
        let _closed = socket.write_all(&said);
        add(&self.sent.openings, 1);
    }

    /// A conversation under TLS that goes well up to some message.
    fn send_messages(&mut self) {
        let mut conversation = Conversation::connect(self.port);
        set_socket_linger(conversation.socket(), Some(Duration::ZERO)).unwrap();
        // How far it goes well: nowhere, to the greeting, to a test, to a load that runs.
        let stage = *self.random.one_of(&[0, 1, 1, 1, 2, 2, 2, 3]);
        let (_flow, harmless) = self.go_well(&mut conversation, stage);
        let words = [
            json!({ "kind": "hello", "versions": [1], "software": "linerate 0.1.0" }),
            json!({
                "kind": "request", "plan": workload(&stream("up"), "tcp", 1).to_string(),
                "exclusive": false,
            }),
            json!({ "kind": "ping", "sent_ns": 12_345_678_901_234_u64 }),
            json!({ "kind": "start", "at_utc_ns": 1_700_000_000_000_000_000_i64 }),
            json!({ "kind": "sent", "datagrams": [{ "flow": 0, "datagrams": 12 }] }),
            json!({ "kind": "finish" }),
        ];
        // Mostly the word that has its place here.
        let due = [0, 1, 3, 4][stage];
        let word = *self.random.one_of(&[due, due, due, 0, 1, 2, 3, 4, 5]);
        let mut mutant = frame(&words[word]);
        self.random.mutate(&mut mutant);
        if conversation.say_bytes(&mutant).is_ok() {
            // It ends here, whatever the mutant claims is to follow; and when the server closes, it
            // has read all.
            let _closed_already = conversation.end();
            loop {
                let asked = Instant::now();
                let heard = conversation.hear_or_end();
                assert!(asked.elapsed() < SILENT, "neither read nor closed: {mutant:?}");
                if heard.is_none() {
                    break;
                }
            }
            add(&self.sent.messages, 1);
            add(&self.sent.harmless, harmless);
        }
    }

    /// Leads a conversation to this stage, legally but oddly; how many odd messages that took.
    fn go_well(
        &mut self,
        conversation: &mut Conversation,
        stage: usize,
    ) -> (Option<TcpStream>, usize) {
        if stage == 0 {
            return (None, 0);
        }
        conversation.greet();
        let mut flow = None;
        if stage > 1 {
            let token = conversation.ask(&workload(&stream("up"), "tcp", 1));
            if stage > 2 {
                let data = connect_data(self.port, 0, token);
                set_socket_linger(&data, Some(Duration::ZERO)).unwrap();
                flow = Some(data);
                conversation.await_kind("ready");
                conversation.say(&json!({ "kind": "start" }));
                conversation.await_kind("started");
            }
        }
        let odd: Vec<u8> = (0..HARMLESS).flat_map(|_| self.harmless()).collect();
        conversation.say_bytes(&odd).unwrap();
        // It has stood all of that.
        (0..HARMLESS).for_each(|_| conversation.await_kind("pong"));
        (flow, HARMLESS)
    }

    /// A mutant of a ping that is a ping all the same.
    fn harmless(&mut self) -> Vec<u8> {
        loop {
            let sent_ns = self.random.number();
            let mut body = json!({ "kind": "ping", "sent_ns": sent_ns }).to_string().into_bytes();
            self.random.mutate(&mut body);
            if matches!(ClientMessage::decode(&body), Ok(ClientMessage::Ping(_))) {
                return encode_frame(&body, usize::MAX).unwrap();
            }
        }
    }
}
