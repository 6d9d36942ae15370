//! The server's loop: takes connections from the listener, answers each once, sees it closed.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_measure::Closing;
use linerate_measure::step::Connection;
use socket2::Socket;

use super::guest::{Fate, Guest, Stage};
use super::spin_wait::{CONNECTIONS_PER_LOOK, SpinWait};
use super::strangers::Strangers;
use super::wake_ups::WakeUps;
use super::{Interest, LONGEST_WAIT_NS, Poll, Serve};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::socket::{accept_stream, is_short_of_descriptors, set_defer_accept};
use crate::tally::Tally;

/// Marks the listener among the events.
const LISTENER: usize = 0;
/// The first index of a guest among the events.
const FIRST_GUEST: usize = 1;
/// How long a listener that blocks waits for a connection, and a connection for its bytes.
const LONGEST_BLOCK: Duration = Duration::from_nanos(LONGEST_WAIT_NS);
/// How long a shard leaves the listener alone when there are no more descriptors.
const SHORTAGE: Duration = Duration::from_millis(1);
/// Whoever hasn't said what it is after this time goes to the reception too.
const PATIENCE_NS: u64 = SECOND_NS;

/// Limits how long a listener that a load makes block does so. What it accepts inherits that.
pub(crate) fn limit_blocking(listener: &Socket) -> io::Result<()> {
    listener.set_read_timeout(Some(LONGEST_BLOCK))?;
    listener.set_write_timeout(Some(LONGEST_BLOCK))
}

/// Undoes what a load may have set of a listener.
pub(crate) fn restore_listener(listener: &Socket) {
    let _is_woken_late = set_defer_accept(listener.as_fd(), false);
    let _blocks_for_a_moment = listener.set_nonblocking(true);
}

/// Undoes what a connection has inherited of such a listener, but for its receive buffer, which a test may want.
pub(crate) fn restore_accepted(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_read_timeout(None)?;
    socket.set_write_timeout(None)
}

/// The part of a load of connections that one of the server's shards serves.
pub(crate) struct Serving {
    pub(crate) serve: Serve,
    pub(crate) step: Connection,
    /// Stands for all that this shard serves.
    pub(crate) shared: Arc<FlowShared>,
    /// Connections that others accepted; their openings have been read.
    pub(crate) inlet: Receiver<Socket>,
}

struct Host<'a> {
    serve: &'a Serve,
    step: &'a Connection,
    tally: &'a Tally,
    inlet: &'a Receiver<Socket>,
    poll: Poll,
    guests: Vec<Option<Guest>>,
    free: Vec<usize>,
    strangers: Strangers,
    /// Guests that have their response and are about to close, where no wake-up is to be spent on
    /// that: the close of one is there, as a rule, when the next comes.
    closing: Vec<usize>,
    next_sweep_ns: u64,
    wake_ups: WakeUps,
    /// Connections accepted since this began or ceased to sleep in its calls.
    accepted_since: u32,
    /// Present while this sleeps in the calls that receive and accept: where one connection comes at
    /// a time that takes fewer calls, and shorter ones, than a poll set. One that is silent ends that for
    /// a while, so that a crowd of them holds nobody up; so does one that others accepted, of which the
    /// listener says nothing.
    spin_wait: Option<SpinWait>,
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
                strangers: Strangers::new(&self.serve.strangers),
                closing: Vec::new(),
                next_sweep_ns: 0,
                wake_ups: WakeUps::default(),
                accepted_since: 0,
                spin_wait: None,
            };
            self.serve.hosts.fetch_add(1, Ordering::Relaxed);
            host.set_blocks(host.may_block());
            host.run(waker, local, &mut ending);
            host.set_blocks(false);
            self.serve.hosts.fetch_sub(1, Ordering::Relaxed);
        }
        self.shared.tally.last_ns.set(monotonic_ns());
        self.shared.set_ended(ending, local);
    }
}

impl Host<'_> {
    fn run(&mut self, waker: &Inlet, local: &mut Local, ending: &mut Ending) {
        let mut ready = Vec::new();
        while local.phase() < Phase::Drained {
            if self.blocks() && self.serve.hosts.load(Ordering::Relaxed) > 1 {
                self.set_blocks(false);
            } else if !self.blocks() && self.is_to_block_again() {
                self.set_blocks(true);
            }
            let about_to_close = std::mem::take(&mut self.closing);
            if !(self.blocks() && self.accept_awake(local, ending)) {
                self.poll.wait(LONGEST_WAIT_NS);
                self.poll.take_ready(&mut ready, waker);
            }
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
            // What another loop has taken beyond the limit makes up for one that waits here.
            while self.guests_of_all() > self.serve.most_guests && self.make_room() {}
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
            if !self.accept_one(local, ending) {
                return;
            }
        }
    }

    /// Sleeps in accept if nothing comes in a moment; says whether there was a connection.
    fn accept_awake(&mut self, local: &mut Local, ending: &mut Ending) -> bool {
        let listener = &self.serve.listener;
        let _or_comes = self.spin_wait.as_mut().is_some_and(|wait| wait.has_come(listener));
        self.accept_one(local, ending)
    }

    /// Says whether there was a connection.
    fn accept_one(&mut self, local: &mut Local, ending: &mut Ending) -> bool {
        let guest_blocks = self.blocks() && !self.wake_ups.once();
        let socket = match accept_stream(&self.serve.listener, guest_blocks) {
            Ok(socket) => socket,
            Err(error) => {
                if is_short_of_descriptors(&error) {
                    // The reception makes room in time; the listener would be ready all the while.
                    std::thread::sleep(SHORTAGE);
                }
                return false;
            }
        };
        self.accepted_since = self.accepted_since.saturating_add(1);
        if self.wake_ups.choose(&self.serve.listener, &socket) {
            self.choose_wait(self.blocks());
        }
        if self.is_full() && !self.make_room() {
            self.hand_over(socket);
        } else {
            let mut guest = Guest::new(socket, Stage::Opening);
            guest.blocks = guest_blocks;
            self.receive(guest, local, ending);
        }
        true
    }

    /// Whether this may sleep in its calls: connections come one at a time, nobody waits in the poll set,
    /// and no handshake can hold it up, byte by byte.
    fn may_block(&self) -> bool {
        let waits = |guest: &Guest| guest.watched.is_some();
        self.serve.at_once == 1
            && self.serve.tls.is_none()
            && self.serve.hosts.load(Ordering::Relaxed) == 1
            && !self.guests.iter().flatten().any(waits)
    }

    fn blocks(&self) -> bool {
        self.spin_wait.is_some()
    }

    /// Whether what ended that is over: a silent one, or another load.
    fn is_to_block_again(&self) -> bool {
        self.accepted_since >= CONNECTIONS_PER_LOOK && self.may_block()
    }

    /// Makes the listener block or not, and so for everyone who accepts from it: whoever blocks sees
    /// within a round that it isn't alone any more.
    fn set_blocks(&mut self, blocks: bool) {
        if blocks == self.blocks() {
            return;
        }
        self.accepted_since = 0;
        let is_set = self.serve.listener.set_nonblocking(!blocks).is_ok();
        self.choose_wait(blocks && is_set);
    }

    /// Where it is woken once for a connection, its peer shares the processor.
    fn choose_wait(&mut self, blocks: bool) {
        self.spin_wait = blocks.then(|| SpinWait::new(!self.wake_ups.once()));
    }

    /// Takes those whose opening others have read.
    fn take_opened(&mut self, local: &mut Local, ending: &mut Ending) {
        while let Ok(socket) = self.inlet.try_recv() {
            // Before the first others may have had the listener.
            if self.wake_ups.accepted() > 0 {
                self.set_blocks(false);
            }
            if self.is_full() && !self.make_room() && self.is_full_of_own() {
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

    fn guests_of_all(&self) -> usize {
        self.serve.guests.load(Ordering::Relaxed)
    }

    fn is_full(&self) -> bool {
        self.guests_of_all() >= self.serve.most_guests
    }

    /// Whether it would be full without those that haven't said whose they are.
    fn is_full_of_own(&self) -> bool {
        let strangers = self.serve.strangers.load(Ordering::Relaxed);
        self.guests_of_all().saturating_sub(strangers) >= self.serve.most_guests
    }

    /// Has the reception take whoever has waited here longest without saying whose it is, so that none of them keeps
    /// out one that has said so; says whether there was one.
    fn make_room(&mut self) -> bool {
        let oldest = self.strangers.take_oldest(&self.guests);
        let Some(guest) = oldest.and_then(|index| self.remove(index)) else { return false };
        self.hand_over_guest(guest);
        true
    }

    fn receive(&mut self, guest: Guest, local: &mut Local, ending: &mut Ending) {
        self.serve.guests.fetch_add(1, Ordering::Relaxed);
        let index = self.free.pop().unwrap_or_else(|| {
            self.guests.push(None);
            self.guests.len() - 1
        });
        self.guests[index] = Some(guest);
        self.advance(index, local, ending);
    }

    fn advance(&mut self, index: usize, local: &mut Local, ending: &mut Ending) {
        let Some(Some(guest)) = self.guests.get_mut(index) else { return };
        let fate = guest.advance(self.serve, self.step, self.tally, local, &mut self.spin_wait);
        self.strangers.note(index, guest);
        match fate {
            Ok(Fate::Answered) if self.wake_ups.once() || self.step.close == Closing::Rst => {
                self.closing.push(index);
            }
            Ok(fate @ (Fate::Answered | Fate::Waits(_))) => {
                let interest = match fate {
                    Fate::Waits(interest) => interest,
                    _ => Interest::Readable,
                };
                let fd = guest.carrier.as_fd();
                if self.poll.watch(fd, index + FIRST_GUEST, guest.watched, interest) {
                    guest.watched = Some(interest);
                } else {
                    self.remove(index);
                }
                self.set_blocks(false);
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
        let mut guest = self.guests.get_mut(index)?.take()?;
        self.strangers.leave(&mut guest);
        self.free.push(index);
        self.serve.guests.fetch_sub(1, Ordering::Relaxed);
        Some(guest)
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
        // It was accepted so that it blocks, perhaps; the reception never waits for one.
        let _fails_when_read = socket.set_nonblocking(true);
        // The reception ends only with the server.
        let _ended = self.serve.reception.send(socket);
        self.serve.reception_waker.wake();
    }

    /// Ends what takes too long.
    fn sweep(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + PATIENCE_NS / 4;
        self.strangers.forget_others(&self.guests);
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
