//! The server's machine. It begins behind the cookie, by which the caller tells a test from a stream.

use std::collections::VecDeque;

use super::code::Code;
use super::inbox::{Fault, Inbox, framed};
use super::parameters::{PARAMETERS_LIMIT_BYTES, Parameters};
use super::results::{RESULTS_TO_SERVER_LIMIT_BYTES, Results, limit_bytes};
use super::state::State;
use crate::machine::{Machine, Now, transmit_first};

/// How long a client may take for its parameters.
pub const PARAMETERS_LIMIT_NS: u64 = 10_000_000_000;
/// How long a client may take for its results, and then for its last word.
pub const RESULTS_LIMIT_NS: u64 = 10_000_000_000;

/// Something that the server should do, or know.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// What the client asks for: answer with [`Server::create_streams`] or [`Server::refuse`].
    Asked(Box<Parameters>),
    /// The client has ended the test: stop counting, and answer with [`Server::exchange_results`].
    Ended,
    /// What the client counted: answer with [`Server::send_results`].
    Results(Box<Results>),
    /// The client has received all. The conversation is over.
    Done,
    /// The client was interrupted. The conversation is over.
    ClientTerminated,
    /// The client gives up, for reasons of its own, and says so in order. The conversation is over.
    Left,
    /// The conversation is over and has failed. If the client may still receive the reason, it is
    /// among the bytes to write.
    Failed(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until the parameters are there.
    Parameters,
    /// Until the caller has looked at them.
    Deciding,
    /// Until the streams are there.
    Streams,
    Running,
    /// The client has ended the test, and this end hasn't asked for results yet.
    Ended,
    /// Until the results are there.
    Results,
    /// Until the caller has told its own.
    Telling,
    /// Until the client's last word.
    Displaying,
    Over,
}

/// The server's end of a conversation. Time is nanoseconds on any monotonic clock.
#[derive(Debug)]
pub struct Server {
    stage: Stage,
    inbox: Inbox,
    outbox: VecDeque<Vec<u8>>,
    events: VecDeque<ServerEvent>,
    /// How many streams the client has asked for, in both directions.
    streams: usize,
    deadline_ns: Option<u64>,
}

impl Server {
    /// Begins a conversation with a client whose cookie has come.
    pub fn new(now_ns: u64) -> Self {
        Self {
            stage: Stage::Parameters,
            inbox: Inbox::default(),
            outbox: VecDeque::from([vec![State::ParamExchange.byte()]]),
            events: VecDeque::new(),
            streams: 0,
            deadline_ns: Some(now_ns.saturating_add(PARAMETERS_LIMIT_NS)),
        }
    }

    /// The client may connect its streams.
    pub fn create_streams(&mut self) {
        if self.stage == Stage::Deciding {
            self.say(State::CreateStreams);
            self.enter(Stage::Streams, None);
        }
    }

    /// All streams are there, and ready.
    pub fn start(&mut self) {
        if self.stage == Stage::Streams {
            self.outbox.push_back(vec![State::TestStart.byte(), State::TestRunning.byte()]);
            self.enter(Stage::Running, None);
        }
    }

    /// Nothing more is counted.
    pub fn exchange_results(&mut self, now_ns: u64) {
        if matches!(self.stage, Stage::Running | Stage::Ended) {
            self.say(State::ExchangeResults);
            self.enter(Stage::Results, Some(now_ns.saturating_add(RESULTS_LIMIT_NS)));
        }
    }

    /// What this end counted.
    pub fn send_results(&mut self, now_ns: u64, results: &Results) {
        if self.stage == Stage::Telling {
            self.outbox.push_back(framed(&results.render()));
            self.say(State::DisplayResults);
            self.enter(Stage::Displaying, Some(now_ns.saturating_add(RESULTS_LIMIT_NS)));
        }
    }

    /// Gives up and says why. The conversation is over.
    pub fn refuse(&mut self, code: Code, system_error: i32) {
        if self.stage != Stage::Over {
            let mut bytes = vec![State::ServerError.byte()];
            bytes.extend_from_slice(&code.number().to_be_bytes());
            bytes.extend_from_slice(&system_error.to_be_bytes());
            self.outbox.push_back(bytes);
            self.enter(Stage::Over, None);
        }
    }

    /// The user wants to stop. The conversation is over.
    pub fn terminate(&mut self) {
        if self.stage != Stage::Over {
            self.say(State::ServerTerminate);
            self.enter(Stage::Over, None);
        }
    }

    fn advance(&mut self) -> Result<bool, Fault> {
        match self.stage {
            Stage::Parameters => self.take_parameters(),
            Stage::Results => self.take_results(),
            _ => match self.inbox.take_byte() {
                Some(byte) => self.handle_state(byte).map(|()| true),
                None => Ok(false),
            },
        }
    }

    fn take_parameters(&mut self) -> Result<bool, Fault> {
        let limit = PARAMETERS_LIMIT_BYTES;
        let Some(text) = self.inbox.take_message(limit, Code::RECEIVE_PARAMETERS)? else {
            return Ok(false);
        };
        let parameters = Parameters::parse(&text).map_err(Fault::Wrong)?;
        self.streams = parameters.total_streams();
        self.enter(Stage::Deciding, None);
        self.events.push_back(ServerEvent::Asked(Box::new(parameters)));
        Ok(true)
    }

    fn take_results(&mut self) -> Result<bool, Fault> {
        let limit = limit_bytes(RESULTS_TO_SERVER_LIMIT_BYTES, self.streams);
        let Some(text) = self.inbox.take_message(limit, Code::RECEIVE_RESULTS)? else {
            return Ok(false);
        };
        let results = Results::parse(&text, self.streams).map_err(Fault::Wrong)?;
        self.enter(Stage::Telling, None);
        self.events.push_back(ServerEvent::Results(Box::new(results)));
        Ok(true)
    }

    fn handle_state(&mut self, byte: u8) -> Result<(), Fault> {
        match (self.stage, State::of(byte)) {
            (_, Some(State::ClientTerminate)) => {
                self.enter(Stage::Over, None);
                self.events.push_back(ServerEvent::ClientTerminated);
            }
            (Stage::Running, Some(State::TestEnd)) => {
                self.enter(Stage::Ended, None);
                self.events.push_back(ServerEvent::Ended);
            }
            (Stage::Displaying, Some(State::IperfDone)) => self.finish(),
            (_, Some(State::IperfDone)) => self.leave(),
            _ => return Err(Fault::Wrong(Code::MESSAGE)),
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.enter(Stage::Over, None);
        self.events.push_back(ServerEvent::Done);
    }

    fn leave(&mut self) {
        self.enter(Stage::Over, None);
        self.events.push_back(ServerEvent::Left);
    }

    fn fail(&mut self, fault: Fault) {
        self.enter(Stage::Over, None);
        self.events.push_back(ServerEvent::Failed(fault));
    }

    fn enter(&mut self, stage: Stage, deadline_ns: Option<u64>) {
        self.stage = stage;
        self.deadline_ns = deadline_ns;
    }

    fn say(&mut self, state: State) {
        self.outbox.push_back(vec![state.byte()]);
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_bytes(&mut self, _now: Now, bytes: &[u8]) {
        if self.stage == Stage::Over {
            return;
        }
        self.inbox.handle_bytes(bytes);
        loop {
            match self.advance() {
                Ok(true) if self.stage != Stage::Over => {}
                Ok(_) => return,
                Err(fault) => {
                    self.refuse(fault.code(), 0);
                    self.events.push_back(ServerEvent::Failed(fault));
                    return;
                }
            }
        }
    }

    fn handle_end(&mut self, _now: Now) {
        match self.stage {
            Stage::Over => {}
            // It has received all there was.
            Stage::Displaying => self.finish(),
            // It stood where a length was awaited, and none begins with its byte alone.
            _ if self.inbox.is_only(State::IperfDone.byte()) => self.leave(),
            _ => self.fail(Fault::Wrong(Code::CONTROL_CLOSED)),
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.deadline_ns.is_none_or(|deadline_ns| now.monotonic_ns < deadline_ns) {
            return;
        }
        let (code, limit_ns) = match self.stage {
            Stage::Displaying => return self.finish(),
            Stage::Parameters => (Code::RECEIVE_PARAMETERS, PARAMETERS_LIMIT_NS),
            _ => (Code::RECEIVE_RESULTS, RESULTS_LIMIT_NS),
        };
        self.refuse(code, 0);
        self.fail(Fault::Silent { code, seconds: limit_ns / 1_000_000_000 });
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        transmit_first(&mut self.outbox, into)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }

    fn next_time(&self) -> Option<u64> {
        self.deadline_ns
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }
}
