//! The server's loop: takes connections from the listener, sees each through its life, and closed.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_measure::step::{Churn, Close, StepEnd};
use socket2::Socket;

use super::attempt::Carrier;
use super::finished::Call;
use super::incoming::{Fate, Incoming, Stage};
use super::listeners::{LISTENER, Listeners, MORE_LISTENERS};
use super::pending::Pending;
use super::script::Script;
use super::spin_wait::{CONNECTIONS_PER_LOOK, SpinWait};
use super::timers::Timers;
use super::wake_ups::WakeUps;
use super::{Accept, Interest, LONGEST_BLOCK, LONGEST_WAIT_NS, Poll, SharedPort};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::{Coming, Inlet};
use crate::socket::{accept_stream, is_short_of_descriptors, set_defer_accept};
use crate::tally::Tally;

/// The first index of a connection among the events.
const FIRST_INCOMING: usize = 1;
/// A connection without its opening after this time goes to the server's first thread too.
const OPENING_NS: u64 = SECOND_NS;

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
pub(crate) struct Accepting {
    pub(crate) accept: Accept,
    pub(crate) step: Churn,
    /// Stands for all that this shard serves.
    pub(crate) shared: Arc<FlowShared>,
}

struct AcceptLoop<'a> {
    accept: &'a Accept,
    /// When it is over, and how long a connection may take.
    step: &'a Churn,
    listeners: Listeners,
    script: Script,
    tally: &'a Tally,
    poll: Poll,
    incoming: Vec<Option<Incoming>>,
    free: Vec<usize>,
    pending: Pending,
    /// Connections that have had all and are about to close, where no wake-up is to be spent on
    /// that: the close of one is there, as a rule, when the next comes.
    closing: Vec<usize>,
    /// Connections that go on by themselves.
    timers: Timers<usize>,
    next_sweep_ns: u64,
    wake_ups: WakeUps,
    /// Connections accepted since this began or ceased to sleep in its calls.
    accepted_since: u32,
    /// Present while this sleeps in the calls that receive and accept: where one connection comes at
    /// a time that takes fewer calls, and shorter ones, than a poll set. A silent connection ends that
    /// for a while, so that many silent connections don't delay others. So does a connection that another thread
    /// accepted.
    spin_wait: Option<SpinWait>,
}

impl Accepting {
    /// Runs until the load has ended.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let mut ending = Ending::default();
        let listeners = Listeners::new(&self.accept, waker);
        if let Some(poll) = Poll::new(waker)
            && listeners.watch(&poll)
        {
            self.shared.set_ready(local);
            let script = Script::new(&self.step.life, &self.accept.buffers)
                .telling(&self.step.life, self.accept.tells.each.clone());
            // A client that awaits something first says nothing that could wake this.
            let peer_begins = self.accept.shared.is_some() || self.step.life.begins_by_receiving();
            let pending = self.accept.shared.as_ref().map(|shared| Arc::clone(&shared.pending));
            let mut acceptor = AcceptLoop {
                accept: &self.accept,
                step: &self.step,
                listeners,
                script,
                tally: &self.shared.tally,
                poll,
                incoming: Vec::new(),
                free: Vec::new(),
                pending: Pending::new(&pending.unwrap_or_default()),
                closing: Vec::new(),
                timers: Timers::default(),
                next_sweep_ns: 0,
                wake_ups: WakeUps::new(self.accept.chooses_wake_ups && peer_begins),
                accepted_since: 0,
                spin_wait: None,
            };
            self.accept.loops.fetch_add(1, Ordering::Relaxed);
            acceptor.set_blocks(acceptor.may_block());
            acceptor.run(waker, local, &mut ending);
            acceptor.set_blocks(false);
            self.accept.loops.fetch_sub(1, Ordering::Relaxed);
        }
        if self.accept.shared.is_some() || self.shared.tally.last_ns.value() == 0 {
            self.shared.tally.last_ns.set(monotonic_ns());
        }
        self.shared.set_ended(ending, local);
    }
}

impl AcceptLoop<'_> {
    fn run(&mut self, waker: &Inlet, local: &mut Local, ending: &mut Ending) {
        let mut ready = Vec::new();
        let most = match self.step.end {
            StepEnd::Count { count } => count,
            _ => u64::MAX,
        };
        while local.phase() < Phase::Drained
            && self.tally.transactions.value() < most
            && !self.is_exhausted()
        {
            if self.blocks() && self.accept.loops.load(Ordering::Relaxed) > 1 {
                self.set_blocks(false);
            } else if !self.blocks() && self.is_to_block_again() {
                self.set_blocks(true);
            }
            let about_to_close = std::mem::take(&mut self.closing);
            if !(self.blocks() && self.accept_awake(local, ending)) {
                self.wait(&mut ready, waker);
            }
            for index in ready.drain(..) {
                match index {
                    LISTENER => self.accept_some(0, local, ending),
                    other if other >= MORE_LISTENERS => {
                        self.accept_some(other - MORE_LISTENERS + 1, local, ending);
                    }
                    one => self.advance(one - FIRST_INCOMING, local, ending),
                }
            }
            for index in about_to_close {
                self.advance(index, local, ending);
            }
            if self.poll.is_woken || !waker.is_apart() {
                self.take_opened(waker, local, ending);
            }
            // What another loop has taken beyond the limit makes up for one that waits here.
            while self.is_over_full() && self.make_room() {}
            self.sweep();
        }
        // A connection without its opening may be another load's.
        for one in std::mem::take(&mut self.incoming).into_iter().flatten() {
            if matches!(one.stage, Stage::Opening) {
                self.hand_over_incoming(one);
            } else if self.accept.tells.each.is_some() {
                self.script.record_unacknowledged(self.tally, one.carrier.unacknowledged_bytes());
            }
        }
    }

    /// Waits for what connections wait for.
    fn wait(&mut self, ready: &mut Vec<usize>, waker: &Inlet) {
        if self.timers.is_empty() {
            self.poll.wait(LONGEST_WAIT_NS);
            return self.poll.take_ready(ready, waker);
        }
        self.poll.wait(self.timers.wait_at_most_ns(monotonic_ns(), LONGEST_WAIT_NS));
        self.poll.take_ready(ready, waker);
        self.timers.take_due(monotonic_ns(), ready);
    }

    fn accept_some(&mut self, from: usize, local: &mut Local, ending: &mut Ending) {
        for _ in 0..self.accept.at_once {
            if !self.accept_one(from, local, ending) {
                return;
            }
        }
    }

    /// Sleeps in accept if nothing comes in a moment; says whether there was a connection.
    fn accept_awake(&mut self, local: &mut Local, ending: &mut Ending) -> bool {
        let Some(listener) = &self.accept.listener else { return false };
        let _or_comes = self.spin_wait.as_mut().is_some_and(|wait| wait.has_come(listener));
        self.accept_one(0, local, ending)
    }

    /// Whether all connections were accepted that there may be, and those of this loop have ended.
    fn is_exhausted(&self) -> bool {
        let is_last = |left: &Arc<AtomicU64>| left.load(Ordering::Relaxed) == 0;
        self.accept.limits.left.as_ref().is_some_and(is_last)
            && self.free.len() == self.incoming.len()
    }

    /// Whether one more may be accepted; the listeners are left alone where none may.
    fn take_one_of_left(&self) -> bool {
        let Some(left) = &self.accept.limits.left else { return true };
        let less = |left: u64| left.checked_sub(1);
        let is_taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if !is_taken {
            self.listeners.forget(&self.poll);
        }
        is_taken
    }

    /// Says whether there was a connection.
    fn accept_one(&mut self, from: usize, local: &mut Local, ending: &mut Ending) -> bool {
        let blocks = self.blocks() && !self.wake_ups.once();
        let Some(listener) = self.listeners.get(from).filter(|_| self.take_one_of_left()) else {
            return false;
        };
        let socket = match accept_stream(listener, blocks) {
            Ok(socket) => socket,
            Err(error) => {
                if let Some(left) = &self.accept.limits.left {
                    left.fetch_add(1, Ordering::Relaxed);
                }
                if is_short_of_descriptors(&error) {
                    self.listeners.handle_shortage(&error, &self.poll, local);
                }
                return false;
            }
        };
        self.accepted_since = self.accepted_since.saturating_add(1);
        if let Some(listener) = self.listeners.get(from)
            && self.wake_ups.choose(listener, &socket)
        {
            self.choose_wait(self.blocks());
        }
        if let Some(first_peer) =
            self.accept.tells.first_peer.as_ref().filter(|one| one.get().is_none())
            && let Some(peer) = socket.peer_addr().ok().and_then(|peer| peer.as_socket())
        {
            let _is_set = first_peer.set(peer);
        }
        if self.is_full() && !self.make_room() {
            self.hand_over(socket);
        } else {
            let mut one = Incoming::new(socket, Stage::Opening);
            one.blocks = blocks;
            self.receive(one, local, ending);
        }
        true
    }

    /// Whether this may sleep in its calls: connections come one at a time, nobody waits in the poll set,
    /// and no handshake can hold it up, byte by byte.
    fn may_block(&self) -> bool {
        let waits = |one: &Incoming| one.watched.is_some();
        self.accept.listener.is_some()
            && self.accept.more_listeners.is_empty()
            && self.accept.at_once == 1
            && self.accept.tls.is_none()
            && self.script.is_plain()
            && self.accept.loops.load(Ordering::Relaxed) == 1
            && !self.incoming.iter().flatten().any(waits)
    }

    fn blocks(&self) -> bool {
        self.spin_wait.is_some()
    }

    /// Whether what ended that is over: a silent one, or another load.
    fn is_to_block_again(&self) -> bool {
        self.accepted_since >= CONNECTIONS_PER_LOOK && self.may_block()
    }

    /// Makes the listener block or not, for all threads that accept from it. A thread that blocks sees within a round
    /// that it isn't alone any more.
    fn set_blocks(&mut self, blocks: bool) {
        if blocks == self.blocks() {
            return;
        }
        self.accepted_since = 0;
        let listener = self.accept.listener.as_ref();
        let is_set = listener.is_some_and(|one| one.set_nonblocking(!blocks).is_ok());
        self.choose_wait(blocks && is_set);
    }

    fn choose_wait(&mut self, blocks: bool) {
        self.spin_wait = blocks.then(|| SpinWait::new(self.wake_ups.peer()));
    }

    /// Takes those whose opening others have read.
    fn take_opened(&mut self, waker: &Inlet, local: &mut Local, ending: &mut Ending) {
        while let Coming::Connection(number, socket) = waker.take() {
            let Some(socket) = Arc::into_inner(socket) else { continue };
            // Before the first others may have had the listener.
            if self.wake_ups.accepted() > 0 {
                self.set_blocks(false);
            }
            let held = self.incoming.len() - self.free.len();
            if self.is_full() && !self.make_room() && self.is_full_of_own()
                || self.accept.limits.most_handed_over.is_some_and(|most| held >= most)
            {
                // More than the load may have at once.
                continue;
            }
            if self.tally.first_ns.value() == 0 {
                self.tally.first_ns.set(monotonic_ns());
            }
            let mut one = Incoming::new(socket, Stage::Opening);
            match one.prepare(self.accept, &mut self.script, number, 0) {
                Ok(()) => self.receive(one, local, ending),
                Err(error) => *ending.errors.entry(error_kind(&error)).or_insert(0) += 1,
            }
        }
    }

    /// Of how many connections the load has so many, where their number is limited.
    fn room(&self) -> Option<(&SharedPort, usize)> {
        let shared = self.accept.shared.as_ref()?;
        Some((shared, shared.incoming.load(Ordering::Relaxed)))
    }

    fn is_full(&self) -> bool {
        self.room().is_some_and(|(shared, incoming)| incoming >= shared.most_incoming)
    }

    fn is_over_full(&self) -> bool {
        self.room().is_some_and(|(shared, incoming)| incoming > shared.most_incoming)
    }

    /// Whether it would be full without those that haven't said whose they are.
    fn is_full_of_own(&self) -> bool {
        self.room().is_some_and(|(shared, incoming)| {
            let pending = shared.pending.load(Ordering::Relaxed);
            incoming.saturating_sub(pending) >= shared.most_incoming
        })
    }

    /// Hands the oldest connection without its opening to the server's first thread, so that such connections keep out
    /// none that has sent its opening. Returns whether there was one.
    fn make_room(&mut self) -> bool {
        let oldest = self.pending.take_oldest(&self.incoming);
        let Some(one) = oldest.and_then(|index| self.remove(index)) else { return false };
        self.hand_over_incoming(one);
        true
    }

    fn receive(&mut self, one: Incoming, local: &mut Local, ending: &mut Ending) {
        if let Some(shared) = &self.accept.shared {
            shared.incoming.fetch_add(1, Ordering::Relaxed);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.incoming.push(None);
            self.incoming.len() - 1
        });
        self.incoming[index] = Some(one);
        self.advance(index, local, ending);
    }

    fn advance(&mut self, index: usize, local: &mut Local, ending: &mut Ending) {
        let Some(Some(one)) = self.incoming.get_mut(index) else { return };
        let fate =
            one.advance(self.accept, &mut self.script, self.tally, local, &mut self.spin_wait);
        self.pending.note(index, one);
        match fate {
            Ok(Fate::Answered)
                if self.wake_ups.once() || self.script.close == Close::AfterReset =>
            {
                self.closing.push(index);
            }
            Ok(fate @ (Fate::Answered | Fate::Waits(_))) => {
                let interest = match fate {
                    Fate::Waits(interest) => interest,
                    _ => Interest::Readable,
                };
                let fd = one.carrier.as_fd();
                if self.poll.watch(fd, index + FIRST_INCOMING, one.watched, interest) {
                    one.watched = Some(interest);
                    if let Some(resumes_ns) = one.take_resumption() {
                        self.timers.add(resumes_ns, index + FIRST_INCOMING);
                    }
                } else {
                    self.remove(index);
                }
                self.set_blocks(false);
            }
            Ok(Fate::Closes) => self.close(index),
            Ok(Fate::Foreign) => {
                if let Some(one) = self.remove(index) {
                    self.hand_over_incoming(one);
                }
            }
            Err(_) if matches!(one.stage, Stage::Opening) => {
                // Its client is unknown.
                self.remove(index);
            }
            Err(error) => {
                if let Some(one) = self.remove(index) {
                    self.script.tell_finished(
                        one.living(),
                        Some(&one.carrier),
                        Call::Receive,
                        Some(&error),
                    );
                    if !self.script.is_plain() {
                        one.carrier.reset();
                    }
                }
                *ending.errors.entry(error_kind(&error)).or_insert(0) += 1;
            }
        }
    }

    /// It has had all.
    fn close(&mut self, index: usize) {
        let Some(one) = self.remove(index) else { return };
        self.script.tell_finished(one.living(), Some(&one.carrier), Call::Receive, None);
        match self.script.close {
            Close::Reset => one.carrier.reset(),
            _ => one.carrier.close(),
        }
        if self.accept.shared.is_none() {
            // Waiting for one that doesn't come is no part of the test.
            self.tally.last_ns.set(monotonic_ns());
        }
    }

    fn remove(&mut self, index: usize) -> Option<Incoming> {
        let mut one = self.incoming.get_mut(index)?.take()?;
        self.listeners.handle_departure(&self.poll);
        self.pending.leave(&mut one);
        self.free.push(index);
        if let Some(shared) = &self.accept.shared {
            shared.incoming.fetch_sub(1, Ordering::Relaxed);
        }
        Some(one)
    }

    fn hand_over_incoming(&self, one: Incoming) {
        if one.watched.is_some() {
            self.poll.forget(one.carrier.as_fd());
        }
        if let Some(socket) = one.carrier.into_socket() {
            self.hand_over(socket);
        }
    }

    fn hand_over(&self, socket: Socket) {
        let Some(shared) = &self.accept.shared else { return };
        // It was accepted so that it blocks, perhaps; the first thread never waits for one.
        let _fails_when_read = socket.set_nonblocking(true);
        // The first thread ends only with the server.
        let _ended = shared.first_thread.send(socket);
        shared.first_thread_waker.wake();
    }

    /// Ends what takes too long.
    fn sweep(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + OPENING_NS / 4;
        self.pending.forget_others(&self.incoming);
        let times_silence = self.accept.times_silence || !self.script.is_plain();
        for index in 0..self.incoming.len() {
            let Some(one) = &mut self.incoming[index] else { continue };
            let opening = matches!(one.stage, Stage::Opening);
            if one.expires_ns == 0 || (times_silence && one.has_moved(now_ns)) {
                let limit_ns = if opening { OPENING_NS } else { self.step.timeout_ns };
                one.expires_ns = now_ns.saturating_add(limit_ns);
            } else if one.expires_ns <= now_ns
                && let Some(one) = self.remove(index)
            {
                if opening {
                    self.hand_over_incoming(one);
                } else {
                    let error = io::ErrorKind::TimedOut.into();
                    self.script.tell_finished(
                        one.living(),
                        Some(&one.carrier),
                        Call::Receive,
                        Some(&error),
                    );
                    if !self.script.is_plain() {
                        one.carrier.reset();
                    }
                }
            }
        }
    }
}
