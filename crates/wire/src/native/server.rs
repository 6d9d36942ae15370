//! The server's end of a conversation.

use std::collections::VecDeque;

use super::fault::out_of_order;
use super::frame::{TO_CLIENT_LIMIT_BYTES, TO_SERVER_LIMIT_BYTES};
use super::hex::render_hex;
use super::inbox::Inbox;
use super::message::{
    Admitted, ClientHello, ClientMessage, Failure, FlowCount, MAX_COUNTS, MAX_SOFTWARE_BYTES,
    MAX_TEXT_BYTES, Ping, Pong, Queued, RefusalCause, Refused, Report, Sample, Sent, ServerHello,
    ServerMessage, Started,
};
use super::outbox::{Outbox, clip};
use super::silence::Silence;
use super::{Fault, SEVERAL_TESTS_VERSION, Stage, TOKEN_BYTES};
use crate::machine::{Machine, Now, Sign};

mod event;
mod greeting;

pub use event::{ServerConfig, ServerEvent};
use greeting::check_greeting;

/// A client that has asked and is silent for so long has lost its lease. It pings every second.
pub const LEASE_NS: u64 = 4_000_000_000;

/// A client that has not made its request so long after the connection stood is none.
pub const REQUEST_NS: u64 = 3_000_000_000;

/// How long a client that pings may hold a test that is ready without starting it: as long as a client that measures
/// alone may name its start ahead.
pub const START_NS: u64 = 60_000_000_000;

/// How long a client that has not closed, and pings, is given to take in a result that was handed
/// over to be written, or whatever stands before it. A client that doesn't ping has its lease for
/// that.
pub const DELIVERY_NS: u64 = 60_000_000_000;

/// With more than this waiting to be written, samples and pongs are dropped.
pub const MAX_UNSENT_BYTES: usize = 1024 * 1024;

/// The server's end of a conversation.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    stage: Stage,
    greeted: Greeted,
    inbox: Inbox,
    outbox: Outbox,
    events: VecDeque<ServerEvent>,
    /// The time of the last `handle_` call.
    now: Now,
    connected_ns: u64,
    /// When the last whole message came. Single bytes don't keep a lease.
    silence: Silence,
    ready_ns: u64,
    delivery: Delivery,
    place: Option<u32>,
    /// The token of the lease that this connection holds.
    lease: Option<[u8; TOKEN_BYTES]>,
    dropped_samples: u64,
}

/// What the client has said of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Greeted {
    /// The version that both speak; 0: it has not greeted.
    version: u16,
    /// Whether it has made its request.
    asked: bool,
}

/// How far the result has come.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// When something of what leads up to the result, or the result, was last taken to be written.
    moved_ns: u64,
    /// Whether the last of the result was.
    is_over: bool,
}

impl Server {
    /// A server that has just accepted a connection.
    pub fn new(config: ServerConfig, now: Now) -> Self {
        Self {
            config,
            stage: Stage::Greeting,
            greeted: Greeted::default(),
            inbox: Inbox::new(TO_SERVER_LIMIT_BYTES),
            outbox: Outbox::new(TO_CLIENT_LIMIT_BYTES),
            events: VecDeque::new(),
            now,
            connected_ns: now.monotonic_ns,
            silence: Silence::new(now.monotonic_ns),
            ready_ns: 0,
            delivery: Delivery::default(),
            place: None,
            lease: None,
            dropped_samples: 0,
        }
    }

    /// How far the conversation has come.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Samples dropped so far because the client reads too slowly, or they were too large.
    pub fn dropped_samples(&self) -> u64 {
        self.dropped_samples
    }

    /// Admits the client's test. Does nothing unless a request waits for an answer.
    pub fn admit(&mut self, run_id: [u8; 16], token: [u8; TOKEN_BYTES], host: &str) {
        if self.stage == Stage::Asking && self.greeted.asked {
            self.stage = Stage::Admitted;
            self.say(ServerMessage::Admitted(Admitted {
                run_id: render_hex(&run_id),
                token: render_hex(&token),
                host: host.to_owned(),
                lease: self.lease.map(|lease| render_hex(&lease)),
            }));
        }
    }

    /// Keeps a place for this connection: [`Self::admit`] tells the client the token from now on.
    pub fn grant_lease(&mut self, token: [u8; TOKEN_BYTES]) {
        self.lease = Some(token);
    }

    /// Tells the client its place in the queue (1: next). From then on each pong repeats it.
    /// Does nothing unless a request waits for an answer.
    pub fn queue(&mut self, place: u32) {
        let place = place.max(1);
        if self.stage == Stage::Asking
            && self.greeted.asked
            && self.place.replace(place) != Some(place)
        {
            self.say_place();
        }
    }

    /// Turns the client away, which ends the conversation. Does nothing once the load runs.
    pub fn refuse(&mut self, cause: RefusalCause, text: &str) {
        if self.stage < Stage::Running {
            let text = clip(text, MAX_TEXT_BYTES);
            self.say(ServerMessage::Refused(Refused { cause, text }));
            self.stage = Stage::Over;
        }
    }

    /// All flows have arrived. Does nothing unless the test is admitted.
    pub fn ready(&mut self) {
        if self.stage == Stage::Admitted {
            self.stage = Stage::Ready;
            self.ready_ns = self.now.monotonic_ns;
            self.say(ServerMessage::Ready);
        }
    }

    /// The load runs, since `utc_ns` (UTC, nanoseconds since 1970). Does nothing unless the
    /// client has asked for the start.
    pub fn started(&mut self, utc_ns: i64) {
        if self.stage == Stage::Starting {
            self.stage = Stage::Running;
            self.say(ServerMessage::Started(Started { utc_ns }));
        }
    }

    /// Offers a sample to the client while the load runs. It is dropped and counted when more
    /// than [`MAX_UNSENT_BYTES`] wait to be written already, or when it is too large.
    pub fn sample(&mut self, document: String) {
        if !self.is_loaded() {
            return;
        }
        let message = ServerMessage::Sample(Sample { sample: document });
        let fits = !self.is_choked() && message.check().is_ok();
        if !(fits && self.outbox.push(&message).is_ok()) {
            self.dropped_samples += 1;
        }
    }

    /// Tells the client how many datagrams this end has sent, so that it knows where a flow ends
    /// though the last ones be lost. Does nothing unless the load runs.
    pub fn sent(&mut self, counts: &[FlowCount]) {
        for datagrams in counts.chunks(MAX_COUNTS) {
            if self.is_loaded() {
                self.say(ServerMessage::Sent(Sent { datagrams: datagrams.to_vec() }));
            }
        }
    }

    /// Sends what this end counted in all. The conversation is over when the client has it and
    /// closes. Does nothing unless the load runs or the client has finished.
    pub fn result(&mut self, document: String) {
        if self.is_loaded() {
            self.stage = Stage::Delivering;
            self.delivery.moved_ns = self.now.monotonic_ns;
            self.say(ServerMessage::Result(Report { report: document }));
        }
    }

    /// Reports a failure of this end, which ends the conversation.
    pub fn error(&mut self, text: &str) {
        if !self.is_over() {
            self.tell(text);
            self.stage = Stage::Over;
        }
    }

    fn handle_message(&mut self, message: ClientMessage) {
        self.silence.record_heard(self.now.monotonic_ns);
        match (self.stage, message) {
            (Stage::Greeting, ClientMessage::Hello(hello)) => self.handle_hello(&hello),
            (stage, ClientMessage::Ping(ping)) if stage >= Stage::Asking => self.answer(ping),
            (Stage::Asking, ClientMessage::Request(request)) if !self.greeted.asked => {
                self.greeted.asked = true;
                self.events.push_back(ServerEvent::of(request));
            }
            (Stage::Ready, ClientMessage::Start(start)) => {
                self.stage = Stage::Starting;
                self.events.push_back(ServerEvent::Start { at_utc_ns: start.at_utc_ns });
            }
            (Stage::Running, ClientMessage::Sent(sent)) => {
                self.events.push_back(ServerEvent::PeerSent(sent.datagrams));
            }
            (Stage::Running, ClientMessage::Finish) => {
                self.stage = Stage::Finishing;
                self.events.push_back(ServerEvent::Finish);
            }
            (stage, ClientMessage::Finish) if Stage::Asking <= stage && stage < Stage::Running => {
                self.stage = Stage::Over;
                self.events.push_back(ServerEvent::Finish);
            }
            (Stage::Delivering, ClientMessage::Request(request))
                if self.greeted.version >= SEVERAL_TESTS_VERSION && self.delivery.is_over =>
            {
                self.stage = Stage::Asking;
                (self.delivery.is_over, self.place) = (false, None);
                self.events.push_back(ServerEvent::of(request));
            }
            // The result crossed what the client said last.
            (Stage::Delivering, ClientMessage::Sent(_) | ClientMessage::Finish) => {}
            (stage, message) => self.fail_aloud(out_of_order(message.kind(), stage)),
        }
    }

    fn handle_hello(&mut self, hello: &ClientHello) {
        let checked = check_greeting(hello, self.config.expected_proof.as_ref());
        self.greeted.version = match checked {
            Ok(version) => version,
            Err((cause, text)) => {
                self.refuse(cause, &text);
                self.events.push_back(ServerEvent::TurnedAway { cause });
                return;
            }
        };
        self.stage = Stage::Asking;
        self.say(ServerMessage::Hello(ServerHello {
            version: self.greeted.version,
            software: clip(&self.config.software, MAX_SOFTWARE_BYTES),
            key_required: self.config.expected_proof.is_some(),
        }));
    }

    fn answer(&mut self, ping: Ping) {
        if self.is_choked() {
            return;
        }
        let utc_ns = self.now.utc_ns;
        let (sent_ns, received_ns, replied_ns) = (ping.sent_ns, utc_ns, utc_ns);
        let monotonic_ns = Some(self.now.monotonic_ns);
        self.say(ServerMessage::Pong(Pong { sent_ns, received_ns, replied_ns, monotonic_ns }));
        if self.stage == Stage::Asking {
            self.say_place();
        }
    }

    fn say_place(&mut self) {
        if let Some(place) = self.place.filter(|_| !self.is_choked()) {
            self.say(ServerMessage::Queued(Queued { place }));
        }
    }

    /// When, as things stand, the client has lost its lease, and how.
    fn deadline(&self) -> (u64, Fault) {
        let stage = self.stage;
        if !self.greeted.asked {
            let after_ns = REQUEST_NS;
            let deadline_ns = self.connected_ns.saturating_add(after_ns);
            return (deadline_ns, Fault::Silent { after_ns, stage });
        }
        let (lease_ns, after_ns) = self.silence.deadline(LEASE_NS);
        let silent = (lease_ns, Fault::Silent { after_ns, stage });
        let (since_ns, after_ns) = match stage {
            Stage::Ready => (self.ready_ns, START_NS),
            Stage::Delivering => (self.delivery.moved_ns, DELIVERY_NS),
            _ => return silent,
        };
        let stalled_ns = since_ns.saturating_add(after_ns);
        if stalled_ns < lease_ns {
            (stalled_ns, Fault::Stalled { after_ns, stage })
        } else {
            silent
        }
    }

    fn is_loaded(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Finishing)
    }

    fn is_choked(&self) -> bool {
        self.outbox.unsent_bytes() > MAX_UNSENT_BYTES
    }

    fn say(&mut self, message: ServerMessage) {
        let checked = message.check().map_err(|error| error.to_string());
        if let Err(text) = checked.and_then(|()| self.outbox.push(&message)) {
            self.fail_aloud(Fault::Unsendable(text));
        }
    }

    fn tell(&mut self, text: &str) {
        let text = clip(text, MAX_TEXT_BYTES);
        // A clipped sentence always fits; were it otherwise, closing has to be answer enough.
        let _ = self.outbox.push(&ServerMessage::Error(Failure { text }));
    }

    fn fail_aloud(&mut self, fault: Fault) {
        if !self.is_over() {
            self.tell(&told(&fault));
            self.fail(fault);
        }
    }

    fn fail(&mut self, fault: Fault) {
        if !self.is_over() {
            self.stage = Stage::Over;
            self.events.push_back(ServerEvent::Failed(fault));
        }
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        if self.is_over() || bytes.is_empty() {
            return;
        }
        self.now = now;
        self.inbox.handle_bytes(bytes);
        while !self.is_over() {
            let greeted = self.stage > Stage::Greeting;
            match self.inbox.poll_message(greeted, ClientMessage::decode) {
                Ok(Some(message)) => self.handle_message(message),
                Ok(None) => break,
                Err(fault) => self.fail_aloud(fault),
            }
        }
    }

    fn handle_end(&mut self, now: Now) {
        self.now = now;
        match self.stage {
            Stage::Delivering if self.delivery.is_over => self.stage = Stage::Over,
            stage => self.fail(Fault::Closed { stage }),
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        self.now = now;
        let (deadline_ns, fault) = self.deadline();
        if now.monotonic_ns < deadline_ns {
            return;
        }
        match self.stage {
            Stage::Delivering if self.delivery.is_over => self.stage = Stage::Over,
            _ => self.fail_aloud(fault),
        }
    }

    fn handle_sign(&mut self, now: Now, sign: Sign) {
        self.now = now;
        if sign != Sign::Life || matches!(self.stage, Stage::Running) {
            self.silence.record(now.monotonic_ns, sign);
        }
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        let has_frame = self.outbox.transmit_first(into);
        if self.stage == Stage::Delivering && !self.delivery.is_over {
            if has_frame {
                self.delivery.moved_ns = self.now.monotonic_ns;
            }
            self.delivery.is_over = self.outbox.unsent_bytes() == 0;
        }
        has_frame
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }

    fn next_time(&self) -> Option<u64> {
        (!self.is_over()).then_some(self.deadline().0)
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }
}

/// A fault as the client should read it: the client is the other end.
fn told(fault: &Fault) -> String {
    match fault {
        Fault::Protocol(text) => format!("the client broke the protocol: {text}"),
        Fault::Silent { after_ns, .. } => {
            format!(
                "the client sent nothing for {} s: its test has ended",
                after_ns / 1_000_000_000
            )
        }
        Fault::Unsendable(text) => format!("the server can't send a message: {text}"),
        fault => format!("the server gave up: {fault}"),
    }
}
