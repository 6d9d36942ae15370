//! What comes before the life of a client's connection over TCP or TLS.

use std::io;
use std::sync::Arc;

use linerate_measure::Handshake;
use rustls::{ClientConnection, Connection};

use super::Interest;
use super::attempt::{Attempt, Carrier, Part, Stage};
use super::carrier::TcpCarrier;
use super::script::{LifeStream, Progress};
use super::slots::Milestones;
use crate::clock::monotonic_ns;
use crate::flow::Local;
use crate::tally::Tally;

/// How far a connection has come before its life.
#[derive(Clone, Copy)]
pub(super) enum TcpOpening {
    /// A socket that blocks came back before the connection stood.
    Connecting,
    /// The connection is on its way, and nothing is sent before it stands.
    Standing,
    /// So many of the first bytes have left.
    Sending(usize),
    /// TLS is agreed on; so many bytes of the request left before.
    Securing(usize),
}

impl TcpOpening {
    pub(super) fn advance(
        &mut self,
        carrier: &mut TcpCarrier,
        part: &Part,
        times: &mut Milestones,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Option<Progress>> {
        match *self {
            Self::Connecting => {
                carrier.await_connection()?;
                *self = Self::Sending(0);
                Ok(None)
            }
            Self::Standing => {
                carrier.see_connection()?;
                *self = Self::Sending(0);
                Ok(None)
            }
            Self::Sending(done) => self.send_first(done, carrier, part, times, tally, local),
            Self::Securing(early) => {
                carrier.establish()?;
                times.established_ns = monotonic_ns();
                // What was said early and not taken is forgotten, and said again.
                let taken = carrier.handshake() == Some(Handshake::Early);
                Ok(Some(part.script.begin(if taken { early } else { 0 }, 0)))
            }
        }
    }

    /// Sends the first bytes, of which so many have left.
    fn send_first(
        &mut self,
        done: usize,
        carrier: &mut TcpCarrier,
        part: &Part,
        times: &mut Milestones,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Option<Progress>> {
        let tried_ns = if done == 0 { monotonic_ns() } else { times.established_ns };
        let rest = part.first_bytes.get(done..).unwrap_or_default();
        if !rest.is_empty() {
            let sent = carrier.send(rest)?;
            tally.record_sent(part.payload(done + sent) - part.payload(done));
            *self = Self::Sending(done + sent);
            times.established_ns = tried_ns;
            if sent < rest.len() {
                return Ok(None);
            }
        }
        let Some(config) = &part.tls else {
            times.established_ns = tried_ns;
            return Ok(Some(part.script.begin(part.payload(part.first_bytes.len()), 0)));
        };
        let session = ClientConnection::new(Arc::clone(config), crate::control::server_name());
        carrier.secure(Connection::from(session.map_err(io::Error::other)?));
        let mut early = 0;
        if part.handshake == Handshake::Early {
            let length = part.script.first_sent(local.receive_buffer.len());
            early = carrier.send_early(local.pattern.slice(0, length))?;
            if early > 0 {
                tally.record_sent(early);
            }
        }
        *self = Self::Securing(early);
        Ok(None)
    }
}

impl Attempt<TcpCarrier> {
    /// What it waits for.
    pub(super) fn interest(&self, part: &Part) -> Interest {
        let interest = match (&self.stage, self.opening) {
            (
                Stage::Opening,
                TcpOpening::Connecting | TcpOpening::Standing | TcpOpening::Sending(_),
            )
            | (Stage::Flushing, _) => Interest::Writable,
            (Stage::Living(progress), _) => part.script.interest(progress),
            (Stage::Opening | Stage::Parting | Stage::Closing, _) => Interest::Readable,
        };
        match interest {
            Interest::Readable if self.carrier.wants_write() => Interest::Both,
            Interest::Nothing if self.carrier.wants_write() => Interest::Writable,
            interest => interest,
        }
    }
}
