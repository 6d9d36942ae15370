//! The client's end of a conversation.

use std::collections::VecDeque;

use super::fault::out_of_order;
use super::frame::{TO_CLIENT_LIMIT_BYTES, TO_SERVER_LIMIT_BYTES};
use super::hex::{parse_hex, render_hex};
use super::inbox::Inbox;
use super::message::{
    Admitted, ClientHello, ClientMessage, FlowCount, MAX_COUNTS, MAX_SOFTWARE_BYTES, Ping, Pong,
    Queued, Request, Sent, ServerHello, ServerMessage, Start,
};
use super::outbox::{Outbox, clip};
use super::silence::Silence;
use super::{Fault, LeaseWish, SEVERAL_TESTS_VERSION, Stage, VERSIONS};
use crate::machine::{Machine, Now, Sign};

mod event;
mod pings;

pub use event::{ClientConfig, ClientEvent, ClockSample};
use pings::{BURST_PINGS, PING_NS, Pings};

/// A server that has not greeted so long after the connection stood is none.
pub const GREETING_NS: u64 = 10_000_000_000;

/// A server that has greeted and is silent for so long is gone. It answers a ping every second.
pub const SILENCE_NS: u64 = 5_000_000_000;

/// How long a server may take to answer the request (a place in the queue is an answer; it is
/// repeated with each pong) or to start the load when it should.
pub const ANSWER_NS: u64 = 10_000_000_000;

/// How long the server may take to be ready from when the last flow stood.
pub const SETUP_NS: u64 = 120_000_000_000;

/// How long a server may take from the end of the load to its result, not counting the time in
/// which a large one arrives piece by piece.
pub const RESULT_NS: u64 = 30_000_000_000;

/// The client's end of a conversation.
#[derive(Debug)]
pub struct Client {
    /// What to ask for, once welcome.
    request: Option<Request>,
    wishes: Wishes,
    stage: Stage,
    inbox: Inbox,
    outbox: Outbox,
    events: VecDeque<ClientEvent>,
    clock: Pings,
    /// The time of the last `handle_` call: while the conversation lasts, a second ago at most.
    now: Now,
    connected_ns: u64,
    silence: Silence,
    /// When the server last did what it owes.
    progress_ns: u64,
    /// How long the load's start is away, where a time was agreed on.
    start_wait_ns: u64,
    place: Option<u32>,
}

/// What a client wants beside its test.
#[derive(Clone, Copy, Debug)]
struct Wishes {
    /// Whether the request is to measure alone: only then may the server have it wait.
    exclusive: bool,
    /// Whether the conversation goes on after a result.
    stays: bool,
    /// How its tests are counted.
    lease: LeaseWish,
}

impl Client {
    /// A client that has just connected. Its greeting waits to be written.
    pub fn new(config: ClientConfig, now: Now) -> Self {
        let mut client = Self {
            wishes: Wishes {
                exclusive: config.exclusive,
                stays: config.stays,
                lease: config.lease,
            },
            request: Some(config.lease.request(config.plan, config.exclusive)),
            stage: Stage::Greeting,
            inbox: Inbox::new(TO_CLIENT_LIMIT_BYTES),
            outbox: Outbox::new(TO_SERVER_LIMIT_BYTES),
            events: VecDeque::new(),
            clock: Pings::default(),
            now,
            connected_ns: now.monotonic_ns,
            silence: Silence::new(now.monotonic_ns),
            progress_ns: now.monotonic_ns,
            start_wait_ns: 0,
            place: None,
        };
        client.say(ClientMessage::Hello(ClientHello {
            versions: VERSIONS.to_vec(),
            software: clip(&config.software, MAX_SOFTWARE_BYTES),
            proof: config.proof.map(|proof| render_hex(&proof)),
        }));
        client
    }

    /// How far the conversation has come.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Another flow stands: the server has as long again to be ready.
    pub fn flow_stood(&mut self, now: Now) {
        self.now = now;
        if self.stage == Stage::Admitted {
            self.progress_ns = now.monotonic_ns;
        }
    }

    /// Asks the server to start the load at a time (UTC, nanoseconds since 1970) or at once.
    /// Does nothing unless the server is ready and this is the first time.
    pub fn start(&mut self, at_utc_ns: Option<i64>) {
        if self.stage != Stage::Ready {
            return;
        }
        self.enter(Stage::Starting);
        let wait_ns = at_utc_ns.map_or(0, |at| at.saturating_sub(self.now.utc_ns).max(0));
        self.start_wait_ns = wait_ns.unsigned_abs();
        self.say(ClientMessage::Start(Start { at_utc_ns }));
    }

    /// Asks for another test. Does nothing unless the result of one has come and the conversation goes on.
    pub fn ask(&mut self, plan: String, exclusive: bool) {
        if self.stage == Stage::Delivering {
            (self.wishes.exclusive, self.place, self.start_wait_ns) = (exclusive, None, 0);
            self.enter(Stage::Asking);
            self.say(ClientMessage::Request(self.wishes.lease.request(plan, exclusive)));
        }
    }

    /// Tells the server how many datagrams this end has sent, so that it knows where a flow ends
    /// though the last ones be lost. Does nothing unless the load runs.
    pub fn sent(&mut self, counts: &[FlowCount]) {
        for datagrams in counts.chunks(MAX_COUNTS) {
            if self.stage == Stage::Running {
                self.say(ClientMessage::Sent(Sent { datagrams: datagrams.to_vec() }));
            }
        }
    }

    /// The load is done: the result is awaited. Before the load runs, it gives up: the
    /// conversation is over once the frames that are left are written.
    pub fn finish(&mut self) {
        if self.stage > Stage::Running {
            return;
        }
        self.say(ClientMessage::Finish);
        let running = self.stage == Stage::Running;
        self.enter(if running { Stage::Finishing } else { Stage::Over });
    }

    fn handle_message(&mut self, message: ServerMessage) {
        // Of a server that is asked for its result, only the result is progress.
        if self.stage != Stage::Finishing && !matches!(message, ServerMessage::Pong(_)) {
            self.progress_ns = self.now.monotonic_ns;
        }
        match (self.stage, message) {
            (_, ServerMessage::Error(error)) => self.fail(Fault::Reported(error.text)),
            (stage, ServerMessage::Refused(refused)) if stage < Stage::Running => {
                self.enter(Stage::Over);
                let (cause, text) = (refused.cause, refused.text);
                self.events.push_back(ClientEvent::Refused { cause, text });
            }
            (Stage::Greeting, ServerMessage::Hello(hello)) => self.handle_hello(hello),
            (Stage::Asking, ServerMessage::Queued(_)) if !self.wishes.exclusive => {
                let text = "the server queued a test that isn't exclusive";
                self.fail(Fault::Protocol(text.to_owned()));
            }
            (Stage::Asking, ServerMessage::Queued(Queued { place })) => {
                if self.place.replace(place) != Some(place) {
                    self.events.push_back(ClientEvent::Queued { place });
                }
            }
            (Stage::Asking, ServerMessage::Admitted(admitted)) => self.handle_admitted(admitted),
            (Stage::Admitted, ServerMessage::Ready) => {
                self.enter(Stage::Ready);
                self.events.push_back(ClientEvent::Ready);
            }
            (Stage::Starting, ServerMessage::Started(started)) => {
                self.enter(Stage::Running);
                self.clock.hasten();
                self.events.push_back(ClientEvent::Started { utc_ns: started.utc_ns });
            }
            (stage, ServerMessage::Pong(pong)) if stage >= Stage::Asking => self.handle_pong(pong),
            (Stage::Running | Stage::Finishing, ServerMessage::Sample(sample)) => {
                self.events.push_back(ClientEvent::Sample(sample.sample));
            }
            (Stage::Running | Stage::Finishing, ServerMessage::Sent(sent)) => {
                self.events.push_back(ClientEvent::PeerSent(sent.datagrams));
            }
            (Stage::Running | Stage::Finishing, ServerMessage::Result(result)) => {
                self.enter(if self.wishes.stays { Stage::Delivering } else { Stage::Over });
                self.events.push_back(ClientEvent::Result(result.report));
            }
            (stage, message) => self.fail(out_of_order(message.kind(), stage)),
        }
    }

    fn handle_hello(&mut self, hello: ServerHello) {
        if !VERSIONS.contains(&hello.version) {
            return self.fail(Fault::Version { theirs: hello.version });
        }
        self.wishes.stays &= hello.version >= SEVERAL_TESTS_VERSION;
        self.enter(Stage::Asking);
        let (version, software) = (hello.version, hello.software);
        self.events.push_back(ClientEvent::Welcomed { version, software });
        self.clock.due_ns = Some(self.now.monotonic_ns.saturating_add(PING_NS));
        if let Some(request) = self.request.take() {
            self.say(ClientMessage::Request(request));
        }
    }

    fn handle_admitted(&mut self, admitted: Admitted) {
        let Some(token) = parse_hex(&admitted.token) else {
            return self.fail(Fault::Protocol("a token is not hexadecimal".to_owned()));
        };
        self.enter(Stage::Admitted);
        if let Some(lease) = admitted.lease.as_deref().and_then(parse_hex) {
            self.events.push_back(ClientEvent::Leased(lease));
        }
        let (run_id, host) = (admitted.run_id, admitted.host);
        self.events.push_back(ClientEvent::Admitted { run_id, token, host });
        self.clock.burst = BURST_PINGS;
        self.ping();
    }

    fn handle_pong(&mut self, pong: Pong) {
        if !self.clock.settle(pong.sent_ns) {
            let text = "a pong answers no ping".to_owned();
            return self.fail(Fault::Protocol(text));
        }
        let elapsed_ns = self.now.monotonic_ns.saturating_sub(pong.sent_ns);
        self.events.push_back(ClientEvent::ClockSample(ClockSample {
            client_sent_utc_ns: self.now.utc_ns.saturating_sub_unsigned(elapsed_ns),
            server_received_utc_ns: pong.received_ns,
            server_replied_utc_ns: pong.replied_ns,
            client_received_utc_ns: self.now.utc_ns,
            client_monotonic_ns: (pong.sent_ns, self.now.monotonic_ns),
            server_monotonic_ns: pong.monotonic_ns,
        }));
        if self.clock.burst > 0 {
            self.ping();
        } else if self.stage == Stage::Running {
            self.clock.hasten();
        }
    }

    fn ping(&mut self) {
        let sent_ns = self.now.monotonic_ns;
        self.clock.record_sent(sent_ns);
        self.say(ClientMessage::Ping(Ping { sent_ns }));
    }

    /// When, as things stand, the server has failed, and how.
    fn deadline(&self) -> (u64, Fault) {
        let stage = self.stage;
        let (silent_ns, after_ns) = match stage {
            Stage::Greeting => (self.connected_ns.saturating_add(GREETING_NS), GREETING_NS),
            _ => self.silence.deadline(SILENCE_NS),
        };
        let silent = (silent_ns, Fault::Silent { after_ns, stage });
        let after_ns = match stage {
            Stage::Asking => ANSWER_NS,
            Stage::Starting => ANSWER_NS.saturating_add(self.start_wait_ns),
            Stage::Admitted => SETUP_NS,
            Stage::Finishing => RESULT_NS,
            _ => return silent,
        };
        let stalled_ns = self.progress_ns.saturating_add(after_ns);
        if stalled_ns < silent.0 {
            (stalled_ns, Fault::Stalled { after_ns, stage })
        } else {
            silent
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.progress_ns = self.now.monotonic_ns;
    }

    fn say(&mut self, message: ClientMessage) {
        let checked = message.check().map_err(|error| error.to_string());
        if let Err(text) = checked.and_then(|()| self.outbox.push(&message)) {
            self.fail(Fault::Unsendable(text));
        }
    }

    fn fail(&mut self, fault: Fault) {
        if !self.is_over() {
            self.enter(Stage::Over);
            self.events.push_back(ClientEvent::Failed(fault));
        }
    }
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        if self.is_over() || bytes.is_empty() {
            return;
        }
        self.now = now;
        self.silence.record_heard(now.monotonic_ns);
        self.inbox.handle_bytes(bytes);
        while !self.is_over() {
            let greeted = self.stage > Stage::Greeting;
            match self.inbox.poll_message(greeted, ServerMessage::decode) {
                Ok(Some(message)) => self.handle_message(message),
                Ok(None) => break,
                Err(fault) => self.fail(fault),
            }
        }
        if self.inbox.is_mid_large_message() {
            self.progress_ns = now.monotonic_ns;
        }
    }

    fn handle_end(&mut self, now: Now) {
        self.now = now;
        self.fail(Fault::Closed { stage: self.stage });
    }

    fn handle_timeout(&mut self, now: Now) {
        self.now = now;
        let (deadline_ns, fault) = self.deadline();
        if now.monotonic_ns >= deadline_ns {
            self.fail(fault);
        } else if self.clock.due_ns.is_some_and(|due_ns| now.monotonic_ns >= due_ns) {
            self.ping();
        }
    }

    fn handle_sign(&mut self, now: Now, sign: Sign) {
        self.now = now;
        if sign != Sign::Life || matches!(self.stage, Stage::Running | Stage::Finishing) {
            self.silence.record(now.monotonic_ns, sign);
        }
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        self.outbox.transmit_first(into)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }

    fn next_time(&self) -> Option<u64> {
        let (deadline_ns, _) = self.deadline();
        let due_ns = self.clock.due_ns.unwrap_or(deadline_ns);
        (!self.is_over()).then_some(due_ns.min(deadline_ns))
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }
}
