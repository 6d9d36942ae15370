//! One connection at the server, from its opening to its close.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::step::Connection;
use linerate_measure::{Closing, SocketOptions};
use linerate_wire::native::opening::{Arrival, OPENING_BYTES, Opening, sniff};
use rustix::net::{RecvFlags, recv};
use rustls::{Connection as Session, ServerConnection};
use socket2::Socket;

use super::carrier::Carrier;
use super::spin_wait::{Awaited, SpinWait};
use super::{Interest, Serve};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Local};
use crate::socket::configure_asked;
use crate::tally::Tally;

/// A connection that was accepted.
pub(super) struct Guest {
    pub(super) carrier: Carrier,
    pub(super) stage: Stage,
    pub(super) watched: Option<Interest>,
    pub(super) expires_ns: u64,
    /// Whether its socket blocks, for a moment.
    pub(super) blocks: bool,
    /// Its number among those that wait and haven't said whose they are.
    pub(super) stranger: Option<u64>,
}

/// How far it has come; the numbers are bytes done.
pub(super) enum Stage {
    Opening,
    Securing,
    Asked(usize),
    Answering(usize),
    /// The client closes.
    Closing,
}

/// What becomes of a guest.
pub(super) enum Fate {
    /// It has its response, and will close.
    Answered,
    Waits(Interest),
    Closed,
    /// It isn't one of this load's.
    Foreign,
}

impl Guest {
    pub(super) fn new(socket: Socket, stage: Stage) -> Self {
        Self {
            carrier: Carrier::new(socket),
            stage,
            watched: None,
            expires_ns: 0,
            blocks: false,
            stranger: None,
        }
    }

    /// After the opening: sets the options that were asked for, and begins TLS where the load has it.
    pub(super) fn prepare(&mut self, serve: &Serve) -> io::Result<()> {
        if serve.options != SocketOptions::default() {
            configure_asked(self.carrier.socket(), &serve.options)?;
        }
        if let Some(config) = &serve.tls {
            let session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
            self.carrier.secure(Session::from(session));
            self.stage = Stage::Securing;
        }
        Ok(())
    }

    /// Goes on as far as it can.
    pub(super) fn advance(
        &mut self,
        serve: &Serve,
        step: &Connection,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Fate> {
        let mut calls = 0;
        loop {
            calls += 1;
            let interest = match self.stage {
                Stage::Answering(_) => Interest::Writable,
                _ => Interest::Readable,
            };
            if self.blocks && calls > CALLS_PER_TURN {
                // Whoever takes so long waits where it holds nobody up.
                self.carrier.socket().set_nonblocking(true)?;
                self.blocks = false;
                return Ok(Fate::Waits(interest));
            }
            match self.step(serve, step, tally, local, spin_wait) {
                Ok(Some(fate)) => return Ok(fate),
                Ok(None) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(Fate::Waits(interest)),
                    io::ErrorKind::Interrupted => {}
                    // Whoever closes by a reset has had its response.
                    io::ErrorKind::ConnectionReset if matches!(self.stage, Stage::Closing) => {
                        return Ok(Fate::Closed);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    /// One operation; `None`: the next may follow.
    fn step(
        &mut self,
        serve: &Serve,
        step: &Connection,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Fate>> {
        match self.stage {
            Stage::Opening => return self.open(serve, step, tally, local, spin_wait),
            Stage::Securing => {
                self.carrier.establish()?;
                self.stage = Stage::Asked(0);
            }
            Stage::Asked(done) => {
                let length =
                    self.carrier.receive(Awaited::Bytes, &mut local.receive_buffer, spin_wait)?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                tally.record_received(length);
                self.stage = if done + length >= step.request_bytes as usize {
                    Stage::Answering(0)
                } else {
                    Stage::Asked(done + length)
                };
            }
            Stage::Answering(done) => return self.answer(done, step, tally, local),
            Stage::Closing => {
                // Whoever says more than it should gets no more attention than anybody else.
                return Ok(Some(
                    match self.carrier.receive(
                        Awaited::Close,
                        &mut local.receive_buffer,
                        spin_wait,
                    )? {
                        0 => Fate::Closed,
                        _ => Fate::Waits(Interest::Readable),
                    },
                ));
            }
        }
        Ok(None)
    }

    /// Sends the response, of which so much is done.
    fn answer(
        &mut self,
        done: usize,
        step: &Connection,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Option<Fate>> {
        let response_bytes = step.response_bytes as usize;
        let length = (response_bytes - done).min(local.receive_buffer.len());
        let mut sent = 0;
        if length > 0 {
            sent = self.carrier.send(local.pattern.slice(0, length))?;
            tally.record_sent(sent);
        } else {
            self.carrier.flush()?;
        }
        self.stage = Stage::Answering(done + sent);
        if done + sent < response_bytes {
            return Ok(None);
        }
        if self.carrier.wants_write() {
            return Ok(Some(Fate::Waits(Interest::Writable)));
        }
        tally.transactions.add(1);
        if step.close == Closing::Server {
            return Ok(Some(Fate::Closed));
        }
        self.stage = Stage::Closing;
        Ok(match self.blocks {
            // Answered before its last word, which brings the ticket that the client waits for.
            _ if self.carrier.is_handshaking() => Some(Fate::Waits(Interest::Readable)),
            true => None,
            false => Some(Fate::Answered),
        })
    }

    /// Sees whose connection it is, and takes the request that comes with the opening.
    fn open(
        &mut self,
        serve: &Serve,
        step: &Connection,
        tally: &Tally,
        local: &mut Local,
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<Option<Fate>> {
        let secured = serve.tls.is_some();
        let most = OPENING_BYTES + if secured { 0 } else { step.request_bytes as usize };
        let most = most.min(local.receive_buffer.len());
        let buffer = &mut local.receive_buffer[..most];
        let seen = match spin_wait {
            Some(spin_wait) => {
                spin_wait.receive(Awaited::Bytes, self.carrier.socket(), buffer, RecvFlags::PEEK)?
            }
            None => recv(self.carrier.as_fd(), &mut *buffer, RecvFlags::PEEK)?.0,
        };
        match sniff(&buffer[..seen.min(OPENING_BYTES)]) {
            // One that comes in pieces is the reception's: there it waits without being looked at.
            Some(Arrival::Data) if seen < OPENING_BYTES => return Ok(Some(Fate::Foreign)),
            Some(Arrival::Data) => {}
            _ => return Ok(Some(Fate::Foreign)),
        }
        let opening = buffer.first_chunk::<OPENING_BYTES>().map(Opening::decode);
        if !matches!(opening, Some(Ok(opening)) if opening.token == serve.token) {
            return Ok(Some(Fate::Foreign));
        }
        let (length, _) = recv(self.carrier.as_fd(), &mut *buffer, RecvFlags::empty())?;
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(monotonic_ns());
        }
        let request = length.saturating_sub(OPENING_BYTES);
        tally.record_received(request);
        self.expires_ns = 0;
        self.stage = if request >= step.request_bytes as usize {
            Stage::Answering(0)
        } else {
            Stage::Asked(request)
        };
        self.prepare(serve)?;
        Ok(None)
    }
}
