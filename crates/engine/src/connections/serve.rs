//! The server's loop: takes connections from the listener, answers each once, sees it closed.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_measure::SocketOptions;
use linerate_wire::native::opening::{Arrival, OPENING_BYTES, Opening, sniff};
use linerate_wire::step::{Closing, Connection};
use rustix::net::{RecvFlags, recv};
use rustls::{Connection as Session, ServerConnection};
use socket2::Socket;

use super::carrier::Carrier;
use super::{Interest, LONGEST_WAIT_NS, Poll, Serve};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::socket::{accept_stream, configure_asked, is_short_of_descriptors};
use crate::tally::Tally;

/// Marks the listener among the events.
const LISTENER: usize = 0;
/// The first index of a guest among the events.
const FIRST_GUEST: usize = 1;
/// How long a shard leaves the listener alone when there are no more descriptors.
const SHORTAGE: Duration = Duration::from_millis(1);
/// Whoever hasn't said what it is after this time goes to the reception too.
const PATIENCE_NS: u64 = SECOND_NS;

/// The part of a load of connections that one of the server's shards serves.
pub(crate) struct Serving {
    pub(crate) serve: Serve,
    pub(crate) step: Connection,
    /// Stands for all that this shard serves.
    pub(crate) shared: Arc<FlowShared>,
    /// Connections that others accepted; their openings have been read.
    pub(crate) inlet: Receiver<Socket>,
}

/// A connection that was accepted.
struct Guest {
    carrier: Carrier,
    stage: Stage,
    watched: Option<Interest>,
    expires_ns: u64,
}

/// How far it has come; the numbers are bytes done.
enum Stage {
    Opening,
    Securing,
    Asked(usize),
    Answering(usize),
    /// The client closes.
    Closing,
}

/// What becomes of a guest.
enum Fate {
    /// It has its response, and will close.
    Answered,
    Waits(Interest),
    Closed,
    /// It isn't one of this load's.
    Foreign,
}

struct Host<'a> {
    serve: &'a Serve,
    step: &'a Connection,
    tally: &'a Tally,
    inlet: &'a Receiver<Socket>,
    poll: Poll,
    guests: Vec<Option<Guest>>,
    free: Vec<usize>,
    /// Guests that have their response and are about to close. The close of one is there, as a
    /// rule, when the next comes, so that no wake-up is spent on it.
    closing: Vec<usize>,
    next_sweep_ns: u64,
}

impl Serving {
    /// Runs until the load has ended.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let mut ending = Ending::default();
        if let Some(poll) = Poll::new(waker)
            && poll.watch_listener(&self.serve.listener, LISTENER)
        {
            self.shared.set_ready(local);
            let mut host = Host {
                serve: &self.serve,
                step: &self.step,
                tally: &self.shared.tally,
                inlet: &self.inlet,
                poll,
                guests: Vec::new(),
                free: Vec::new(),
                closing: Vec::new(),
                next_sweep_ns: 0,
            };
            host.run(waker, local, &mut ending);
        }
        self.shared.tally.last_ns.set(monotonic_ns());
        self.shared.set_ended(ending, local);
    }
}

impl Host<'_> {
    fn run(&mut self, waker: &Inlet, local: &mut Local, ending: &mut Ending) {
        let mut ready = Vec::new();
        while local.phase() < Phase::Drained {
            self.poll.wait(LONGEST_WAIT_NS);
            self.poll.take_ready(&mut ready, waker);
            let about_to_close = std::mem::take(&mut self.closing);
            for index in ready.drain(..) {
                match index {
                    LISTENER => self.accept(local, ending),
                    guest => self.advance(guest - FIRST_GUEST, local, ending),
                }
            }
            for index in about_to_close {
                self.advance(index, local, ending);
            }
            self.take_opened(local, ending);
            self.sweep();
        }
        // Whoever hasn't said yet whose it is may be another load's.
        for guest in std::mem::take(&mut self.guests).into_iter().flatten() {
            if matches!(guest.stage, Stage::Opening) {
                self.hand_over_guest(guest);
            }
        }
    }

    fn accept(&mut self, local: &mut Local, ending: &mut Ending) {
        for _ in 0..self.serve.at_once {
            let socket = match accept_stream(&self.serve.listener) {
                Ok(socket) => socket,
                Err(error) if is_short_of_descriptors(&error) => {
                    // The reception makes room in time; the listener would be ready all the while.
                    return std::thread::sleep(SHORTAGE);
                }
                Err(_) => return,
            };
            if self.is_full() {
                self.hand_over(socket);
            } else {
                self.receive(Guest::new(socket, Stage::Opening), local, ending);
            }
        }
    }

    /// Takes those whose opening others have read.
    fn take_opened(&mut self, local: &mut Local, ending: &mut Ending) {
        while let Ok(socket) = self.inlet.try_recv() {
            if self.is_full() {
                // More than the load may have at once.
                continue;
            }
            if self.tally.first_ns.value() == 0 {
                self.tally.first_ns.set(monotonic_ns());
            }
            let mut guest = Guest::new(socket, Stage::Asked(0));
            match guest.prepare(self.serve) {
                Ok(()) => self.receive(guest, local, ending),
                Err(error) => *ending.errors.entry(error_kind(&error)).or_insert(0) += 1,
            }
        }
    }

    fn is_full(&self) -> bool {
        self.guests.len() >= self.serve.most_guests && self.free.is_empty()
    }

    fn receive(&mut self, guest: Guest, local: &mut Local, ending: &mut Ending) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.guests.push(None);
            self.guests.len() - 1
        });
        self.guests[index] = Some(guest);
        self.advance(index, local, ending);
    }

    fn advance(&mut self, index: usize, local: &mut Local, ending: &mut Ending) {
        let Some(Some(guest)) = self.guests.get_mut(index) else { return };
        let fate = guest.advance(self.serve, self.step, self.tally, local);
        match fate {
            Ok(Fate::Answered) => self.closing.push(index),
            Ok(Fate::Waits(interest)) => {
                let fd = guest.carrier.as_fd();
                if self.poll.watch(fd, index + FIRST_GUEST, guest.watched, interest) {
                    guest.watched = Some(interest);
                } else {
                    self.remove(index);
                }
            }
            Ok(Fate::Closed) => {
                if let Some(guest) = self.remove(index) {
                    guest.carrier.close();
                }
            }
            Ok(Fate::Foreign) => {
                if let Some(guest) = self.remove(index) {
                    self.hand_over_guest(guest);
                }
            }
            Err(_) if matches!(guest.stage, Stage::Opening) => {
                // Nobody knows whose it was.
                self.remove(index);
            }
            Err(error) => {
                self.remove(index);
                *ending.errors.entry(error_kind(&error)).or_insert(0) += 1;
            }
        }
    }

    fn remove(&mut self, index: usize) -> Option<Guest> {
        self.free.push(index);
        self.guests.get_mut(index)?.take()
    }

    fn hand_over_guest(&self, guest: Guest) {
        if guest.watched.is_some() {
            self.poll.forget(guest.carrier.as_fd());
        }
        if let Some(socket) = guest.carrier.into_socket() {
            self.hand_over(socket);
        }
    }

    fn hand_over(&self, socket: Socket) {
        // The reception ends only with the server.
        let _ended = self.serve.reception.send(socket);
        self.serve.reception_bell.ring();
    }

    /// Ends what takes too long.
    fn sweep(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + PATIENCE_NS / 4;
        for index in 0..self.guests.len() {
            let Some(guest) = &mut self.guests[index] else { continue };
            let opening = matches!(guest.stage, Stage::Opening);
            if guest.expires_ns == 0 {
                let patience_ns = if opening { PATIENCE_NS } else { self.step.timeout_ns };
                guest.expires_ns = now_ns + patience_ns;
            } else if guest.expires_ns <= now_ns
                && let Some(guest) = self.remove(index)
                && opening
            {
                self.hand_over_guest(guest);
            }
        }
    }
}

impl Guest {
    fn new(socket: Socket, stage: Stage) -> Self {
        Self { carrier: Carrier::new(socket), stage, watched: None, expires_ns: 0 }
    }

    /// After the opening: sets the options that were asked for, and begins TLS where the load has it.
    fn prepare(&mut self, serve: &Serve) -> io::Result<()> {
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
    fn advance(
        &mut self,
        serve: &Serve,
        step: &Connection,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Fate> {
        loop {
            let interest = match self.stage {
                Stage::Answering(_) => Interest::Writable,
                _ => Interest::Readable,
            };
            match self.step(serve, step, tally, local) {
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
    ) -> io::Result<Option<Fate>> {
        let (request_bytes, response_bytes) =
            (step.request_bytes as usize, step.response_bytes as usize);
        match self.stage {
            Stage::Opening => return self.open(serve, step, tally, local),
            Stage::Securing => {
                self.carrier.establish()?;
                self.stage = Stage::Asked(0);
            }
            Stage::Asked(done) => {
                let length = self.carrier.receive(&mut local.receive_buffer)?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                tally.record_received(length);
                self.stage = if done + length >= request_bytes {
                    Stage::Answering(0)
                } else {
                    Stage::Asked(done + length)
                };
            }
            Stage::Answering(done) => {
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
                return Ok(Some(Fate::Answered));
            }
            Stage::Closing => {
                // Whoever says more than it should gets no more attention than anybody else.
                return Ok(Some(match self.carrier.receive(&mut local.receive_buffer)? {
                    0 => Fate::Closed,
                    _ => Fate::Waits(Interest::Readable),
                }));
            }
        }
        Ok(None)
    }

    /// Sees whose connection it is, and takes the request that comes with the opening.
    fn open(
        &mut self,
        serve: &Serve,
        step: &Connection,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Option<Fate>> {
        let secured = serve.tls.is_some();
        let most = OPENING_BYTES + if secured { 0 } else { step.request_bytes as usize };
        let most = most.min(local.receive_buffer.len());
        let buffer = &mut local.receive_buffer[..most];
        let (seen, _) = recv(self.carrier.as_fd(), &mut *buffer, RecvFlags::PEEK)?;
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
