//! The server's end of a control connection.

use std::collections::VecDeque;

use super::classic::Classic;
use super::fault::Fault;
use super::message::{Form, Inbox, Message, UNKNOWN_REQUEST, code};
use super::omni;
use super::test::{Request, Results, Setup};
use crate::machine::{Machine, Now, transmit_first};

/// A client says something in this time after it has connected.
const FIRST_WORDS_NS: u64 = 20 * SECOND_NS;
/// A client asks for the next test in this time.
const IDLE_NS: u64 = 600 * SECOND_NS;
/// A message that has begun is whole in this time.
const REST_NS: u64 = 10 * SECOND_NS;
/// Where so many bytes came and nothing for so long, the messages are short ones.
const SHORT_AFTER_NS: u64 = SECOND_NS / 4;
const SECOND_NS: u64 = 1_000_000_000;
/// Messages that may wait while a test is under way. No client needs to send any.
const MOST_WAITING: usize = 4;
/// Answers that may wait until the client takes them.
const MOST_UNREAD: usize = 1_000;

/// What an old question about the system is answered with.
const SYSINFO_ANSWER: &[u8] = b",Deprecated,Deprecated,Deprecated,Deprecated";

/// Something that the client has asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// A test: answer with [`Server::set_up`] or [`Server::refuse`].
    Test {
        /// What is asked for.
        request: Box<Request>,
        /// The processor that the test shall run on.
        cpu: Option<u32>,
        /// Whether the client says on the data connection when the test is over.
        marks_end: bool,
    },
    /// What the processors are worth: answer with [`Server::calibrate`].
    Calibration,
    /// The client has finished.
    Ended,
    /// The conversation is over.
    Failed(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a request.
    Idle,
    /// A request waits for its answer.
    Answering,
    /// A test is under way.
    Running,
    Over,
}

/// The server's end of a control connection.
#[derive(Debug)]
pub struct Server {
    form: Option<Form>,
    passphrase: Option<String>,
    state: State,
    /// The classic test that was asked for; `None`: omni.
    classic: Option<Classic>,
    inbox: Inbox,
    written: VecDeque<Vec<u8>>,
    events: VecDeque<ServerEvent>,
    deadline_ns: Option<u64>,
    /// When a message that has begun must be whole.
    rest_due_ns: Option<u64>,
    last_heard_ns: u64,
}

impl Server {
    /// A server of a connection that has come just now. Where there is a passphrase the client must
    /// say it before anything else.
    pub fn new(passphrase: Option<&str>, now_ns: u64) -> Self {
        Self {
            form: None,
            passphrase: passphrase.map(str::to_owned),
            state: State::Idle,
            classic: None,
            inbox: Inbox::default(),
            written: VecDeque::new(),
            events: VecDeque::new(),
            deadline_ns: Some(now_ns + FIRST_WORDS_NS),
            rest_due_ns: None,
            last_heard_ns: now_ns,
        }
    }

    fn read(&mut self, now_ns: u64) {
        while self.state == State::Idle {
            let Some(form) = self.form else { break };
            let Some(message) = self.inbox.poll_message(form) else { break };
            self.rest_due_ns = None;
            self.handle_message(now_ns, form, &message);
        }
        if self.written.len() > MOST_UNREAD {
            return self.fail(Fault::Protocol("it reads none of its answers".to_owned()));
        }
        if self.inbox.pending_bytes() > MOST_WAITING * Form::Long.message_bytes() {
            self.fail(Fault::Protocol(
                "it sent a request before the previous one was answered".to_owned(),
            ));
        }
        if self.state != State::Idle || self.inbox.pending_bytes() == 0 {
            self.rest_due_ns = None;
            return;
        }
        // Counted from its first byte: one byte now and then is no message.
        let rest_due_ns = *self.rest_due_ns.get_or_insert(now_ns.saturating_add(REST_NS));
        self.deadline_ns = Some(match self.form {
            None if self.may_be_short() => rest_due_ns.min(now_ns.saturating_add(SHORT_AFTER_NS)),
            _ => rest_due_ns,
        });
    }

    fn may_be_short(&self) -> bool {
        let pending = self.inbox.pending_bytes();
        pending > 0 && pending.is_multiple_of(Form::Short.message_bytes())
    }

    fn handle_message(&mut self, now_ns: u64, form: Form, message: &Message) {
        self.deadline_ns = Some(now_ns + IDLE_NS);
        if message.code() == code::PASSPHRASE {
            if let Some(expected) = &self.passphrase {
                if !is_same(message.data_text(), expected.as_bytes()) {
                    return self.fail(Fault::Passphrase);
                }
                self.passphrase = None;
            }
            return;
        }
        if self.passphrase.is_some() {
            return self.fail(Fault::Passphrase);
        }
        let classic = Classic::of(message.code());
        let request = match (message.code(), classic) {
            (code::OMNI, _) => omni::decode_request(message),
            (_, Some(classic)) => classic.decode_request(message),
            (code::CPU_CALIBRATE, _) => {
                self.state = State::Answering;
                return self.events.push_back(ServerEvent::Calibration);
            }
            (code::DEBUG_ON | code::DEBUG_OFF, _) => {
                return self.write(Message::new(form, code::DEBUG_OK, 0));
            }
            (code::SYSINFO, _) => {
                let mut answer = Message::new(form, code::SYSINFO + 1, 0);
                answer.put_data(SYSINFO_ANSWER);
                return self.write(answer);
            }
            _ => return self.write(Message::new(form, code::NONE, UNKNOWN_REQUEST)),
        };
        self.classic = classic;
        self.state = State::Answering;
        match request {
            Ok(request) => {
                self.deadline_ns = None;
                let cpu = u32::try_from(message.second()).ok();
                let marks_end = classic.is_none_or(Classic::marks_end);
                let request = Box::new(request);
                self.events.push_back(ServerEvent::Test { request, cpu, marks_end });
            }
            Err(error) => self.say_refusal(now_ns, error),
        }
    }

    /// Answers a request: the server listens.
    pub fn set_up(&mut self, setup: &Setup) {
        let Some(form) = self.form.filter(|_| self.state == State::Answering) else { return };
        self.state = State::Running;
        self.write(match self.classic {
            None => omni::encode_setup(form, setup),
            Some(classic) => classic.encode_setup(form, setup),
        });
    }

    /// Answers a request with an error of errno(3).
    pub fn refuse(&mut self, now_ns: u64, error: i32) {
        self.say_refusal(now_ns, error);
        self.read(now_ns);
    }

    fn say_refusal(&mut self, now_ns: u64, error: i32) {
        let Some(form) = self.form.filter(|_| self.state == State::Answering) else { return };
        let code = self.classic.map_or(code::OMNI, Classic::code) + 1;
        self.write(Message::new(form, code, error));
        self.rest(now_ns);
    }

    /// Says what came of the test that was under way.
    pub fn finish(&mut self, now_ns: u64, results: &Results) {
        let Some(form) = self.form.filter(|_| self.state == State::Running) else { return };
        self.write(match self.classic {
            None => omni::encode_results(form, results),
            Some(classic) => classic.encode_results(form, results),
        });
        self.rest(now_ns);
        self.read(now_ns);
    }

    /// Says what the processors are worth, and how many there are.
    pub fn calibrate(&mut self, now_ns: u64, rate: f32, cpus: u32) {
        let Some(form) = self.form.filter(|_| self.state == State::Answering) else { return };
        let mut message = Message::new(form, code::CPU_CALIBRATE, 0);
        message.put_words(8, &[rate.to_bits(), cpus]);
        self.write(message);
        self.rest(now_ns);
        self.read(now_ns);
    }

    /// Whether a test is asked for or under way.
    pub fn is_busy(&self) -> bool {
        matches!(self.state, State::Answering | State::Running)
    }

    fn write(&mut self, message: Message) {
        self.written.push_back(message.into_bytes());
    }

    fn rest(&mut self, now_ns: u64) {
        self.state = State::Idle;
        self.deadline_ns = Some(now_ns.saturating_add(IDLE_NS));
    }

    fn fail(&mut self, fault: Fault) {
        self.state = State::Over;
        self.deadline_ns = None;
        self.events.push_back(ServerEvent::Failed(fault));
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        let now_ns = now.monotonic_ns;
        if self.state == State::Over || bytes.is_empty() {
            return;
        }
        self.last_heard_ns = now_ns;
        self.inbox.handle_bytes(bytes);
        if self.form.is_none() && self.inbox.pending_bytes() >= Form::Long.message_bytes() {
            self.form = Some(Form::Long);
        }
        self.read(now_ns);
    }

    fn handle_end(&mut self, _now: Now) {
        match self.state {
            State::Over => {}
            State::Idle if self.inbox.pending_bytes() == 0 => {
                self.state = State::Over;
                self.deadline_ns = None;
                self.events.push_back(ServerEvent::Ended);
            }
            State::Idle => self.fail(Fault::Closed { awaited: "the rest of a message" }),
            State::Answering | State::Running => {
                self.fail(Fault::Closed { awaited: "the end of its test" });
            }
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        let now_ns = now.monotonic_ns;
        if self.deadline_ns.is_none_or(|deadline_ns| deadline_ns > now_ns) {
            return;
        }
        if self.form.is_none() && self.may_be_short() {
            self.form = Some(Form::Short);
            return self.read(now_ns);
        }
        let after_ns = now_ns.saturating_sub(self.last_heard_ns);
        self.fail(Fault::Silent { awaited: "a request", after_ns });
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

/// Compares without telling by its time where the difference is.
fn is_same(said: &[u8], expected: &[u8]) -> bool {
    let differing = said.iter().zip(expected).fold(0, |sum, (one, other)| sum | (one ^ other));
    said.len() == expected.len() && differing == 0
}
