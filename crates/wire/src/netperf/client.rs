//! The client's end of a control connection.

use std::collections::VecDeque;

use super::classic::Classic;
use super::end::PAD_NS;
use super::fault::Fault;
use super::message::{Form, Inbox, Message, code};
use super::omni;
use super::test::{Length, Request, Results, Setup};
use crate::machine::{Machine, Now, transmit_first};

/// A server that answers a request does it in this time: one that serves its clients one after the
/// other has to end with those before.
const ANSWER_NS: u64 = 120 * SECOND_NS;
/// Results come in this time after the data is over; servers whose clients have no way to say so
/// have four seconds more than the test.
const RESULTS_NS: u64 = 20 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;

/// Something that the server has said, or not said.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// It listens: connect.
    Setup(Setup),
    /// What it did.
    Results(Results),
    /// What its processors are worth, and how many there are.
    Calibration {
        /// Their rate.
        rate: f32,
        /// How many.
        cpus: u32,
    },
    /// The conversation is over.
    Failed(Fault),
}

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Setup,
    Results { cpu: bool },
    Calibration,
    Over,
}

impl State {
    fn awaited(self) -> &'static str {
        match self {
            State::Setup => "its answer to the request",
            State::Results { .. } => "its results",
            State::Calibration => "its processors' rate",
            State::Idle | State::Over => "anything",
        }
    }
}

/// The client's end of a control connection.
#[derive(Debug)]
pub struct Client {
    form: Form,
    state: State,
    /// The classic test that was asked for; `None`: omni.
    classic: Option<Classic>,
    /// Bytes of each datagram that a classic test sends.
    datagram_bytes: u32,
    inbox: Inbox,
    written: VecDeque<Vec<u8>>,
    events: VecDeque<ClientEvent>,
    deadline_ns: Option<u64>,
    awaiting_since_ns: u64,
    /// How long the test is, where it is so long.
    length_ns: Option<u64>,
    /// When the server's own timer ends the test at the latest.
    servers_end_ns: Option<u64>,
}

impl Client {
    /// A client of a connection that stands.
    pub fn new(form: Form, passphrase: Option<&str>) -> Self {
        let mut client = Self {
            form,
            state: State::Idle,
            classic: None,
            datagram_bytes: 0,
            inbox: Inbox::default(),
            written: VecDeque::new(),
            events: VecDeque::new(),
            deadline_ns: None,
            awaiting_since_ns: 0,
            length_ns: None,
            servers_end_ns: None,
        };
        if let Some(passphrase) = passphrase {
            let mut message = Message::new(form, code::PASSPHRASE, -1);
            message.put_data(passphrase.as_bytes());
            client.written.push_back(message.into_bytes());
        }
        client
    }

    /// The length of its messages.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Asks for a test; `cpu` is the processor that the server shall run on. In short messages the
    /// test is a classic one.
    ///
    /// # Errors
    ///
    /// When no message says it; the text says why.
    pub fn request(
        &mut self,
        now_ns: u64,
        request: &Request,
        cpu: Option<u32>,
    ) -> Result<(), String> {
        if self.state != State::Idle {
            return Err("a test is under way already, or the conversation is over".to_owned());
        }
        self.classic = match self.form {
            Form::Long => None,
            Form::Short => Some(Classic::for_request(request)?),
        };
        self.datagram_bytes = request.receive_bytes.unwrap_or(0);
        let message = match self.classic {
            None => omni::encode_request(self.form, request, cpu),
            Some(classic) => classic.encode_request(self.form, request, cpu),
        };
        self.length_ns = match request.length {
            Length::Seconds(seconds) => Some(u64::from(seconds) * SECOND_NS),
            Length::Units(_) | Length::Open => None,
        };
        self.servers_end_ns = None;
        // So long it waits for data, none of which may arrive.
        self.handle_data_begun(now_ns);
        self.written.push_back(message.into_bytes());
        self.await_for(now_ns, State::Setup, ANSWER_NS);
        Ok(())
    }

    /// Asks what the server's processors are worth.
    pub fn calibrate(&mut self, now_ns: u64) {
        let message = Message::new(self.form, code::CPU_CALIBRATE, -1);
        self.written.push_back(message.into_bytes());
        // Some systems measure it, which takes them a while.
        self.await_for(now_ns, State::Calibration, 160 * SECOND_NS);
    }

    /// This end's data begins: the server counts from there.
    pub fn handle_data_begun(&mut self, now_ns: u64) {
        let end_ns = self.length_ns.map(|length_ns| now_ns.saturating_add(length_ns + PAD_NS));
        self.servers_end_ns = self.servers_end_ns.max(end_ns);
    }

    /// This end's data is over: results are due soon. Where nothing on the wire tells the server
    /// so, they come by its own timer.
    pub fn handle_data_over(&mut self, now_ns: u64, server_knows: bool) {
        if !matches!(self.state, State::Results { .. }) {
            return;
        }
        let by_timer_ns = self.servers_end_ns.filter(|_| !server_knows).unwrap_or(0);
        self.awaiting_since_ns = now_ns;
        self.deadline_ns = Some(now_ns.max(by_timer_ns).saturating_add(RESULTS_NS));
    }

    /// Whether results are still to come.
    pub fn awaits_results(&self) -> bool {
        matches!(self.state, State::Results { .. })
    }

    fn handle_message(&mut self, now_ns: u64, message: &Message) {
        if self.state == State::Over {
            return;
        }
        // The code of results is what an earlier message left there, and means nothing.
        if message.second() != 0 {
            return self.fail(Fault::Remote { number: message.second() });
        }
        match self.state {
            State::Setup => {
                let setup = match self.classic {
                    None => omni::decode_setup(message),
                    Some(classic) => classic.decode_setup(message),
                };
                match setup {
                    Ok(setup) => {
                        self.await_for(now_ns, State::Results { cpu: setup.cpu }, u64::MAX);
                        self.events.push_back(ClientEvent::Setup(setup));
                    }
                    Err(what) => self.fail(Fault::Protocol(format!("it names {what}"))),
                }
            }
            State::Results { cpu } => {
                let results = match self.classic {
                    None => omni::decode_results(message, cpu),
                    Some(classic) => self.classic_results(classic, message, cpu),
                };
                self.rest();
                self.events.push_back(ClientEvent::Results(results));
            }
            State::Calibration => {
                let rate = message.f32_at(8).unwrap_or(0.0);
                let cpus = message.u32_at(12);
                self.rest();
                self.events.push_back(ClientEvent::Calibration { rate, cpus });
            }
            State::Idle => {
                self.fail(Fault::Protocol("it sent a message without a request".to_owned()));
            }
            State::Over => {}
        }
    }

    /// What a classic test came to. Servers of before 2.6 have the bytes of datagrams the other way
    /// round, and count a last one of another size: their clients multiply, too.
    fn classic_results(&self, classic: Classic, message: &Message, cpu: bool) -> Results {
        let mut results = classic.decode_results(message, cpu);
        if classic == Classic::UdpStream {
            results.bytes_received =
                u64::from(results.receive_calls) * u64::from(self.datagram_bytes);
        }
        results
    }

    fn await_for(&mut self, now_ns: u64, state: State, limit_ns: u64) {
        self.state = state;
        self.awaiting_since_ns = now_ns;
        self.deadline_ns = Some(now_ns.saturating_add(limit_ns)).filter(|_| limit_ns < u64::MAX);
    }

    fn rest(&mut self) {
        self.state = State::Idle;
        self.deadline_ns = None;
    }

    fn fail(&mut self, fault: Fault) {
        self.state = State::Over;
        self.deadline_ns = None;
        self.events.push_back(ClientEvent::Failed(fault));
    }
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        let now_ns = now.monotonic_ns;
        if self.state == State::Over {
            return;
        }
        self.inbox.handle_bytes(bytes);
        while let Some(message) = self.inbox.poll_message(self.form) {
            self.handle_message(now_ns, &message);
        }
        if self.state == State::Idle && self.inbox.pending_bytes() > 0 {
            self.fail(Fault::Protocol("it sent a message without a request".to_owned()));
        }
    }

    fn handle_end(&mut self, _now: Now) {
        match self.state {
            State::Idle | State::Over => self.state = State::Over,
            state => self.fail(Fault::Closed { awaited: state.awaited() }),
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        let now_ns = now.monotonic_ns;
        if self.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
            let after_ns = now_ns.saturating_sub(self.awaiting_since_ns);
            self.fail(Fault::Silent { awaited: self.state.awaited(), after_ns });
        }
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        transmit_first(&mut self.written, into)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }

    fn next_time(&self) -> Option<u64> {
        self.deadline_ns
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }
}
