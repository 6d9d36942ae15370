//! One control conversation at the server.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::Workload;
use linerate_wire::Machine as _;
use linerate_wire::native::server::{Server as Machine, ServerConfig, ServerEvent};
use linerate_wire::native::{Stage, TOKEN_BYTES};
use rustls::{Connection, ServerConnection};
use socket2::Socket;

use super::test::Test;
use crate::acceptor::Progress;
use crate::access::SharedKey;
use crate::clock::{SECOND_NS, monotonic_ns, now};
use crate::control::{Conversation, Lost, Reading, TlsChannel, proof};
use crate::error::Error;

/// TLS must be agreed on within this time.
const HANDSHAKE_NS: u64 = 3 * SECOND_NS;
/// A conversation that is over must have been written out within this time.
const LAST_MESSAGE_NS: u64 = 2 * SECOND_NS;

/// What a conversation has to do with a lease: a place that is kept for its holder between tests, and that tests on
/// other connections share who show its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LeasePart {
    /// Nothing: its tests count by themselves.
    #[default]
    None,
    /// It gets one when its test is admitted.
    Wants,
    /// It has the one with this token.
    Holds([u8; TOKEN_BYTES]),
    /// Its test belongs to the lease of the client with this number.
    Within(usize),
}

/// One control conversation.
pub(super) struct Control {
    pub(super) client: SocketAddr,
    /// Its machine begins when TLS is agreed on.
    pub(super) conversation: Conversation<Option<Machine>, TlsChannel>,
    pub(super) test: Option<Test>,
    /// What the client wants, while it waits to be alone.
    pub(super) waiting: Option<Box<Workload>>,
    pub(super) lease: LeasePart,
    deadline_ns: Option<u64>,
    is_closing: bool,
    has_unread: bool,
}

/// Whether a conversation goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Goes,
    /// It is over; why, where that was not as planned.
    Over(Option<String>),
}

impl Control {
    pub(super) fn new(
        socket: Socket,
        client: SocketAddr,
        config: &Arc<rustls::ServerConfig>,
    ) -> Result<Self, Error> {
        let session = ServerConnection::new(Arc::clone(config))
            .map_err(|error| Error::Host(format!("can't begin TLS: {error}")))?;
        Ok(Self {
            client,
            conversation: Conversation::new(
                None,
                TlsChannel::new(socket, Connection::from(session)),
            ),
            test: None,
            waiting: None,
            lease: LeasePart::None,
            deadline_ns: Some(monotonic_ns() + HANDSHAKE_NS),
            is_closing: false,
            has_unread: false,
        })
    }

    /// The client whose place a test of this conversation takes, which has this number.
    pub(super) fn place(&self, number: usize) -> usize {
        match self.lease {
            LeasePart::Within(holder) => holder,
            LeasePart::None | LeasePart::Wants | LeasePart::Holds(_) => number,
        }
    }

    /// How far the client has come; `None` when it is admitted, waits to be, or has a place that is kept.
    pub(super) fn progress(&self) -> Option<Progress> {
        match &self.conversation.machine {
            _ if self.test.is_some() || self.waiting.is_some() => None,
            _ if matches!(self.lease, LeasePart::Holds(_)) => None,
            Some(machine) if machine.stage() == Stage::Delivering => Some(Progress::Served),
            Some(_) => Some(Progress::Agreed),
            None if self.conversation.channel().has_answered() => Some(Progress::Answered),
            None => Some(Progress::Silent),
        }
    }

    /// Whether TLS is agreed on.
    pub(super) fn has_agreed(&self) -> bool {
        self.conversation.machine.is_some()
    }

    /// Whether more has arrived than `listen` took.
    pub(super) fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// Takes what has arrived.
    pub(super) fn listen(&mut self, key: Option<&SharedKey>) -> Standing {
        let (arrived, reading) = self.conversation.read();
        self.has_unread = matches!(reading, Ok(Reading::More));
        if self.conversation.machine.is_none()
            && reading.is_ok()
            && !self.conversation.channel().is_handshaking()
            && let Err(why) = self.begin_conversation(key)
        {
            return Standing::Over(Some(why));
        }
        let has_begun = self.conversation.machine.is_some();
        match self.conversation.handle(&arrived, reading) {
            Err(Lost::Reading(error)) if !has_begun => {
                Standing::Over(Some(format!("TLS failed: {error}")))
            }
            Ok(Reading::Ended) if !has_begun => {
                Standing::Over(Some("it closed during the TLS handshake".to_owned()))
            }
            // The machine tells what it missed.
            _ => Standing::Goes,
        }
    }

    fn begin_conversation(&mut self, key: Option<&SharedKey>) -> Result<(), String> {
        if self.conversation.channel().session().alpn_protocol() != Some(crate::control::ALPN) {
            return Err("it speaks TLS, but not linerate's protocol".to_owned());
        }
        let expected_proof = key
            .map(|key| proof(self.conversation.channel().session(), key))
            .transpose()
            .map_err(|error| error.to_string())?;
        let software = format!("linerate {}", env!("CARGO_PKG_VERSION"));
        self.conversation.machine =
            Some(Machine::new(ServerConfig { software, expected_proof }, now()));
        self.deadline_ns = None;
        Ok(())
    }

    pub(super) fn poll_event(&mut self) -> Option<ServerEvent> {
        self.conversation.machine.poll_event()
    }

    /// Whether the conversation's own time is up for something.
    pub(super) fn is_overdue(&self) -> bool {
        self.conversation.is_overdue()
    }

    /// Does what is due at this time, and writes what there is to say.
    pub(super) fn conduct(&mut self, now_ns: u64) -> Standing {
        self.conversation.handle_time();
        if let (Some(test), Some(machine)) = (&mut self.test, &mut self.conversation.machine) {
            test.conduct(machine, now_ns);
        }
        let is_broken = self.conversation.say().is_err();
        if self.conversation.machine.is_over() && !self.is_closing {
            self.is_closing = true;
            self.deadline_ns = Some(now_ns + LAST_MESSAGE_NS);
        }
        let late = self.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns);
        match self.is_closing {
            _ if is_broken => Standing::Over(Some("the connection broke".to_owned())),
            true if late || self.conversation.is_closed() => Standing::Over(None),
            false if late => Standing::Over(Some("it was too slow to greet".to_owned())),
            _ => Standing::Goes,
        }
    }

    /// When `conduct` is next of use.
    pub(super) fn next_time(&self, now_ns: u64) -> Option<u64> {
        let test = self.test.as_ref().map(|test| test.next_time(now_ns));
        [self.conversation.machine.next_time(), test, self.deadline_ns].into_iter().flatten().min()
    }
}
