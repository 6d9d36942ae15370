//! One control conversation at the server.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::Workload;
use linerate_wire::native::Stage;
use linerate_wire::native::server::{Server as Machine, ServerConfig, ServerEvent};
use rustls::{Connection, ServerConnection};
use socket2::Socket;

use super::test::Test;
use crate::access::SharedKey;
use crate::clock::{SECOND_NS, monotonic_ns, now};
use crate::control::{Link, Reading, proof};
use crate::error::Error;
use crate::pending::Acquaintance;

/// TLS must be agreed on within this time.
const HANDSHAKE_NS: u64 = 3 * SECOND_NS;
/// A conversation that is over must have been written out within this time.
const PARTING_NS: u64 = 2 * SECOND_NS;

/// One control conversation.
pub(super) struct Control {
    pub(super) client: SocketAddr,
    link: Link,
    /// `None` until TLS is agreed on.
    pub(super) machine: Option<Machine>,
    pub(super) test: Option<Test>,
    /// What the client wants, while it waits to be alone.
    pub(super) waiting: Option<Box<Workload>>,
    deadline_ns: Option<u64>,
    closing: bool,
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
            link: Link::new(socket, Connection::from(session)),
            machine: None,
            test: None,
            waiting: None,
            deadline_ns: Some(monotonic_ns() + HANDSHAKE_NS),
            closing: false,
            has_unread: false,
        })
    }

    /// How far the client has come; `None` when it is admitted, or waits to be.
    pub(super) fn acquaintance(&self) -> Option<Acquaintance> {
        match &self.machine {
            _ if self.test.is_some() || self.waiting.is_some() => None,
            Some(machine) if machine.stage() == Stage::Delivering => Some(Acquaintance::Served),
            Some(_) => Some(Acquaintance::Agreed),
            None if self.link.has_answered() => Some(Acquaintance::Answered),
            None => Some(Acquaintance::Silent),
        }
    }

    /// Whether more has arrived than `listen` took.
    pub(super) fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// Takes what has arrived.
    pub(super) fn listen(&mut self, key: Option<&SharedKey>) -> Standing {
        let mut plaintext = Vec::new();
        let reading = self.link.read(&mut plaintext);
        self.has_unread = matches!(reading, Ok(Reading::More));
        if let (None, Err(error)) = (&self.machine, &reading) {
            return Standing::Over(Some(format!("TLS failed: {error}")));
        }
        if self.machine.is_none()
            && !self.link.is_handshaking()
            && let Err(why) = self.begin_conversation(key)
        {
            return Standing::Over(Some(why));
        }
        let Some(machine) = &mut self.machine else {
            return match reading {
                Ok(Reading::Open | Reading::More) => Standing::Goes,
                _ => Standing::Over(Some("it left during the TLS handshake".to_owned())),
            };
        };
        if !plaintext.is_empty() {
            machine.handle_round_trip(self.link.rtt_ns());
        }
        machine.handle_bytes(now(), &plaintext);
        if !matches!(reading, Ok(Reading::Open | Reading::More)) {
            machine.handle_end(now());
        }
        Standing::Goes
    }

    fn begin_conversation(&mut self, key: Option<&SharedKey>) -> Result<(), String> {
        if self.link.session().alpn_protocol() != Some(crate::control::ALPN) {
            return Err("it speaks TLS, but not linerate's protocol".to_owned());
        }
        let expected_proof = key
            .map(|key| proof(self.link.session(), key))
            .transpose()
            .map_err(|error| error.to_string())?;
        let software = format!("linerate {}", env!("CARGO_PKG_VERSION"));
        self.machine = Some(Machine::new(ServerConfig { software, expected_proof }, now()));
        self.deadline_ns = None;
        Ok(())
    }

    pub(super) fn poll_event(&mut self) -> Option<ServerEvent> {
        self.machine.as_mut()?.poll_event()
    }

    /// Whether the conversation's own time is up for something.
    pub(super) fn is_overdue(&self, now_ns: u64) -> bool {
        self.machine.as_ref().is_some_and(|machine| is_due(machine, now_ns))
    }

    /// Does what is due at this time, and writes what there is to say.
    pub(super) fn conduct(&mut self, now_ns: u64) -> Standing {
        if let Some(machine) = &mut self.machine {
            if machine.stage() >= Stage::Asking && self.link.is_found_dark(now_ns) {
                machine.handle_dark_path();
            }
            if is_due(machine, now_ns) {
                machine.handle_timeout(now());
            }
            if let Some(test) = &mut self.test {
                test.conduct(machine, now_ns);
            }
        }
        self.say(now_ns)
    }

    fn say(&mut self, now_ns: u64) -> Standing {
        let flushed = self.link.flush();
        while let Some(machine) = &mut self.machine
            // Samples that can't leave wait in the machine, which drops them when they are many.
            && !self.link.wants_write()
            && let Some(bytes) = machine.poll_write()
        {
            if self.link.write(&bytes).and_then(|()| self.link.flush()).is_err() {
                return Standing::Over(Some("the connection broke".to_owned()));
            }
        }
        let over = self.machine.as_ref().is_some_and(Machine::is_over);
        if over && !self.closing {
            self.closing = true;
            self.link.close();
            self.deadline_ns = Some(now_ns + PARTING_NS);
            let _written_later = self.link.flush();
        }
        let late = self.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns);
        match flushed {
            Err(_) => Standing::Over(Some("the connection broke".to_owned())),
            Ok(()) if self.closing && (late || !self.link.wants_write()) => Standing::Over(None),
            Ok(()) if late => Standing::Over(Some("it was too slow to greet".to_owned())),
            Ok(()) => Standing::Goes,
        }
    }

    /// When `conduct` is next of use.
    pub(super) fn next_time(&self, now_ns: u64) -> Option<u64> {
        let machine = self.machine.as_ref().and_then(Machine::poll_timeout);
        let test = self.test.as_ref().map(|test| test.next_time(now_ns));
        [machine, test, self.deadline_ns].into_iter().flatten().min()
    }
}

fn is_due(machine: &Machine, now_ns: u64) -> bool {
    machine.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns)
}
