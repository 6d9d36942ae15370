//! The client's machine.

use std::collections::VecDeque;

use super::code::Code;
use super::cookie::Cookie;
use super::inbox::{Fault, Inbox, framed};
use super::parameters::Parameters;
use super::results::{RESULTS_TO_CLIENT_LIMIT_BYTES, Results, limit_bytes};
use super::state::State;
use crate::machine::{Machine, Now, transmit_first};

/// How long a server may take for its first word, for its wish for streams, and from the streams to
/// the start.
pub const SETUP_LIMIT_NS: u64 = 30_000_000_000;
/// How long a server may take from the test's end to its results.
pub const RESULTS_LIMIT_NS: u64 = 30_000_000_000;
/// How long a server may take for the rest of an error that it has begun to tell.
const ERROR_LIMIT_NS: u64 = 2_000_000_000;

/// Something that the client should do, or know.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The server asks for parameters: answer with [`Client::send_parameters`].
    ParametersWanted,
    /// The server wants the streams: connect them one by one.
    StreamsWanted,
    /// All streams are there.
    Prepare,
    /// The load begins.
    Go,
    /// The server wants the results: stop counting, and answer with [`Client::send_results`].
    ResultsWanted,
    /// What the server counted. The conversation is over.
    Results(Box<Results>),
    /// The server was interrupted. The conversation is over.
    ServerTerminated,
    /// The conversation is over and has failed.
    Failed(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until the server asks for parameters.
    Greeting,
    /// Until it asks for streams.
    Asked,
    /// Until it begins.
    Streams,
    /// Until it says go.
    Prepared,
    Running,
    /// The client has ended the test.
    Ended,
    /// The client has sent its results, or is about to.
    Results,
    /// The server's results have come, its last word not yet.
    Displaying,
    /// The server tells an error: how much of it came.
    Error(Option<Code>),
    Over,
}

/// The client's end of a conversation. Time is nanoseconds on any monotonic clock.
#[derive(Debug)]
pub struct Client {
    stage: Stage,
    inbox: Inbox,
    outbox: VecDeque<Vec<u8>>,
    events: VecDeque<ClientEvent>,
    results: Option<Box<Results>>,
    /// How many streams were asked for, in both directions.
    streams: usize,
    /// Whether what the server printed was asked for.
    wants_output: bool,
    /// When the stage is over for lack of an answer.
    deadline_ns: Option<u64>,
}

impl Client {
    /// Begins a conversation.
    pub fn new(cookie: Cookie, now_ns: u64) -> Self {
        Self {
            stage: Stage::Greeting,
            inbox: Inbox::default(),
            outbox: VecDeque::from([cookie.wire().to_vec()]),
            events: VecDeque::new(),
            results: None,
            streams: 0,
            wants_output: false,
            deadline_ns: Some(now_ns.saturating_add(SETUP_LIMIT_NS)),
        }
    }

    /// Answers [`ClientEvent::ParametersWanted`].
    pub fn send_parameters(&mut self, parameters: &Parameters) {
        if self.stage == Stage::Asked {
            self.outbox.push_back(framed(&parameters.render()));
            self.streams = parameters.total_streams();
            self.wants_output = parameters.get_server_output;
        }
    }

    /// All streams stand at this end, however long that took: from now on the server is awaited.
    pub fn await_start(&mut self, now_ns: u64) {
        if self.stage == Stage::Streams {
            self.enter(Stage::Streams, Some(now_ns.saturating_add(SETUP_LIMIT_NS)));
        }
    }

    /// The test is over: the client's senders have stopped.
    pub fn end_test(&mut self, now_ns: u64) {
        if self.stage == Stage::Running {
            self.say(State::TestEnd);
            self.enter(Stage::Ended, Some(now_ns.saturating_add(RESULTS_LIMIT_NS)));
        }
    }

    /// Answers [`ClientEvent::ResultsWanted`].
    pub fn send_results(&mut self, results: &Results) {
        if self.stage == Stage::Results {
            self.outbox.push_back(framed(&results.render()));
        }
    }

    /// The user wants to stop.
    pub fn terminate(&mut self) {
        if self.stage != Stage::Over {
            self.say(State::ClientTerminate);
            self.enter(Stage::Over, None);
        }
    }

    /// This end can't go on: the server gets the end of the test.
    pub fn give_up(&mut self) {
        if self.stage != Stage::Over {
            self.say(State::IperfDone);
            self.enter(Stage::Over, None);
        }
    }

    /// Takes one thing from the inbox; says whether there was one.
    fn advance(&mut self, now_ns: u64) -> Result<bool, Fault> {
        match self.stage {
            Stage::Results if self.results.is_none() => self.take_results(now_ns),
            Stage::Error(code) => Ok(self.take_error(code)),
            _ => match self.inbox.take_byte() {
                Some(byte) => self.handle_state(now_ns, byte).map(|()| true),
                None => Ok(false),
            },
        }
    }

    fn take_results(&mut self, now_ns: u64) -> Result<bool, Fault> {
        let limit = limit_bytes(RESULTS_TO_CLIENT_LIMIT_BYTES, self.streams);
        let Some(text) = self.inbox.take_message(limit, Code::RECEIVE_RESULTS)? else {
            return Ok(false);
        };
        let mut results = Results::parse(&text, self.streams).map_err(Fault::Wrong)?;
        // Unasked it would only be printed.
        results.server_output = results.server_output.filter(|_| self.wants_output);
        self.results = Some(Box::new(results));
        // All that is known is here: the server's last word is waited for, not relied on.
        self.enter(Stage::Displaying, Some(now_ns.saturating_add(ERROR_LIMIT_NS)));
        Ok(true)
    }

    fn take_error(&mut self, code: Option<Code>) -> bool {
        let Some(number) = self.inbox.take_number() else { return false };
        match code {
            None => self.stage = Stage::Error(Some(Code(number))),
            Some(code) => self.fail(Fault::Peer(code, number)),
        }
        true
    }

    fn handle_state(&mut self, now_ns: u64, byte: u8) -> Result<(), Fault> {
        let soon = Some(now_ns.saturating_add(SETUP_LIMIT_NS));
        let (stage, event, deadline_ns) = match (self.stage, State::of(byte)) {
            (_, Some(State::AccessDenied)) => return Err(Fault::Wrong(Code::ACCESS_DENIED)),
            (_, Some(State::ServerError)) => {
                let deadline_ns = now_ns.saturating_add(ERROR_LIMIT_NS);
                self.enter(Stage::Error(None), Some(deadline_ns));
                return Ok(());
            }
            (_, Some(State::ServerTerminate)) => (Stage::Over, ClientEvent::ServerTerminated, None),
            // Releases from 3.21 on say this where a test isn't authorised.
            (Stage::Asked, Some(State::IperfDone)) => {
                return Err(Fault::Wrong(Code::CONTROL_CLOSED));
            }
            (Stage::Greeting, Some(State::ParamExchange)) => {
                (Stage::Asked, ClientEvent::ParametersWanted, soon)
            }
            (Stage::Asked, Some(State::CreateStreams)) => {
                (Stage::Streams, ClientEvent::StreamsWanted, soon)
            }
            (Stage::Streams, Some(State::TestStart)) => {
                (Stage::Prepared, ClientEvent::Prepare, soon)
            }
            (Stage::Prepared, Some(State::TestRunning)) => (Stage::Running, ClientEvent::Go, None),
            // A server ends a test of its own accord where its limits say so.
            (Stage::Running | Stage::Ended, Some(State::ExchangeResults)) => {
                let limit_ns = now_ns.saturating_add(RESULTS_LIMIT_NS);
                (Stage::Results, ClientEvent::ResultsWanted, Some(limit_ns))
            }
            (Stage::Displaying, Some(State::DisplayResults)) => {
                self.finish();
                return Ok(());
            }
            _ => return Err(Fault::Wrong(Code::MESSAGE)),
        };
        self.enter(stage, deadline_ns);
        self.events.push_back(event);
        Ok(())
    }

    fn finish(&mut self) {
        self.say(State::IperfDone);
        self.enter(Stage::Over, None);
        if let Some(results) = self.results.take() {
            self.events.push_back(ClientEvent::Results(results));
        }
    }

    fn fail(&mut self, fault: Fault) {
        let is_heard = match fault {
            Fault::Silent { .. } => true,
            Fault::Wrong(code) => ![Code::CONTROL_CLOSED, Code::ACCESS_DENIED].contains(&code),
            // It has given up itself.
            Fault::Peer(..) => false,
        };
        if is_heard {
            self.say(State::IperfDone);
        }
        self.enter(Stage::Over, None);
        self.events.push_back(ClientEvent::Failed(fault));
    }

    fn enter(&mut self, stage: Stage, deadline_ns: Option<u64>) {
        self.stage = stage;
        self.deadline_ns = deadline_ns;
    }

    fn say(&mut self, state: State) {
        self.outbox.push_back(vec![state.byte()]);
    }
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_bytes(&mut self, now: Now, bytes: &[u8]) {
        if self.stage == Stage::Over {
            return;
        }
        self.inbox.handle_bytes(bytes);
        loop {
            match self.advance(now.monotonic_ns) {
                Ok(true) if self.stage != Stage::Over => {}
                Ok(_) => return,
                Err(fault) => return self.fail(fault),
            }
        }
    }

    fn handle_end(&mut self, _now: Now) {
        match self.stage {
            Stage::Over => {}
            // Up to 3.20 some errors come without their second half.
            Stage::Error(Some(code)) => self.fail(Fault::Peer(code, 0)),
            Stage::Displaying => self.finish(),
            _ => self.fail(Fault::Wrong(Code::CONTROL_CLOSED)),
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.deadline_ns.is_none_or(|deadline_ns| now.monotonic_ns < deadline_ns) {
            return;
        }
        match self.stage {
            Stage::Error(Some(code)) => self.fail(Fault::Peer(code, 0)),
            Stage::Ended | Stage::Results => {
                let seconds = RESULTS_LIMIT_NS / 1_000_000_000;
                self.fail(Fault::Silent { code: Code::RECEIVE_RESULTS, seconds });
            }
            Stage::Displaying => self.finish(),
            _ => {
                let seconds = SETUP_LIMIT_NS / 1_000_000_000;
                self.fail(Fault::Silent { code: Code::RECEIVE_MESSAGE, seconds });
            }
        }
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
