//! The client's loop: begins connections, each when it is due, and sees them through.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::step::Churn;
use linerate_wire::native::opening::Opening;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::attempt::{Attempt, Part};
use super::script::Script;
use super::slots::{Due, Slots};
use super::source::{Source, kind_of};
use super::spin_wait::SpinWait;
use super::{Dial, LONGEST_WAIT_NS, Poll};
use crate::clock::monotonic_ns;
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::{Phase, Reached};
use crate::shard::Inlet;
use crate::waiting::Peer;

/// The part of a load of connections that falls to one shard.
pub(crate) struct Dialing {
    pub(crate) dial: Dial,
    /// What each flow does; the parts of one load.
    pub(crate) steps: Vec<Churn>,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
}

struct Dialer {
    part: Part,
    source: Source,
    slots: Slots,
    /// A connection that is due, for which a source is still looked for.
    waiting: Option<Due>,
    /// The connections under way, by their slots.
    attempts: Vec<Option<Attempt>>,
    /// Whether there is one slot, whose sockets block: that is fewer calls than a poll set takes.
    is_alone: bool,
    /// Whether a connection may take its time as long as it goes on.
    times_silence: bool,
    /// Where there is one slot, whose connections are not under TLS.
    spin_wait: Option<SpinWait>,
}

impl Dialing {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let flows = self.flows.clone();
        let (Some(mut poll), Some(mut dialer)) = (Poll::new(waker), Dialer::new(self, local))
        else {
            flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        dialer.slots.set_ready(local);
        let mut ready = Vec::new();
        loop {
            let reached = local.reached();
            let now_ns = monotonic_ns();
            if dialer.is_over(reached, now_ns) {
                return dialer.slots.leave(now_ns, local);
            }
            if reached.phase > Phase::Hold {
                dialer.begin_due(reached, &poll, local);
                dialer.sweep(now_ns);
            }
            let looks_on = dialer.waiting.is_some();
            let at_most_ns = if looks_on { 0 } else { dialer.slots.wait_at_most_ns(reached.phase) };
            if dialer.is_alone {
                dialer.wait_alone(waker, at_most_ns, &mut ready);
            } else {
                poll.wait(at_most_ns);
                poll.take_ready(&mut ready, waker);
            }
            for index in ready.drain(..) {
                dialer.advance(index, &poll, local);
            }
        }
    }
}

impl Dialer {
    /// `None` where the shard has nothing to do.
    fn new(dialing: Dialing, local: &Local) -> Option<Self> {
        let Dialing { dial, steps, flows, shard: (shard, shards) } = dialing;
        let life = &steps.first()?.life;
        let flow = flows.first()?.number;
        let script = Script::new(life, &dial.buffers);
        let mut first_bytes = match dial.token {
            Some(token) => Opening { flow, token }.encode().to_vec(),
            None => Vec::new(),
        };
        let prefix_bytes = first_bytes.len();
        if dial.tls.is_none() {
            let length = script.first_sent(local.receive_buffer.len());
            first_bytes.extend_from_slice(local.pattern.slice(0, length));
        }
        let mut slots = Slots::new(&steps, flows)?.with_rules(dial.rules);
        if dial.tls.is_some() {
            slots.count_handshakes(dial.agreement.clone());
        }
        let is_alone = slots.len() == 1 && !script.has_duplex();
        Some(Self {
            source: Source::new(&dial, shard, shards),
            waiting: None,
            attempts: (0..slots.len()).map(|_| None).collect(),
            is_alone,
            times_silence: dial.rules.times_silence,
            spin_wait: (is_alone && dial.tls.is_none()).then(|| SpinWait::new(Peer::Unknown)),
            slots,
            part: Part {
                first_bytes,
                prefix_bytes,
                script,
                tls: dial.tls,
                handshake: dial.agreement.wanted(),
            },
        })
    }

    fn is_over(&mut self, reached: Reached, now_ns: u64) -> bool {
        if reached.phase >= Phase::Stop
            && let Some(due) = self.waiting.take()
        {
            self.slots.withdraw(&due);
        }
        if reached.phase == Phase::Abort {
            for index in 0..self.attempts.len() {
                self.give_up(index, "given_up", now_ns);
            }
            return true;
        }
        self.slots.are_done(reached, now_ns)
    }

    /// Waits for the time of the next connection, unless there is one under way.
    fn wait_alone(&self, waker: &Inlet, at_most_ns: u64, ready: &mut Vec<usize>) {
        if self.attempts.iter().any(Option::is_some) {
            return ready.push(0);
        }
        if at_most_ns == 0 {
            return;
        }
        let mut polled = [PollFd::new(waker, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: at_most_ns.min(LONGEST_WAIT_NS) as _ };
        // Interrupted by a signal: as if the time were over.
        if poll(&mut polled, Some(&timeout)).unwrap_or(0) > 0 {
            waker.silence();
        }
    }

    fn begin_due(&mut self, reached: Reached, poll: &Poll, local: &mut Local) {
        if reached.phase >= Phase::Stop {
            return;
        }
        self.slots.open_turn(reached);
        while let Some(due) = self.waiting.take().or_else(|| self.slots.take_due()) {
            let index = due.index;
            self.begin(due, poll, local);
            // A slot that is free again at once gets its next turn after a look at the phase, and
            // whoever looks for a source the next after the other connections.
            if self.waiting.is_some() || self.slots.is_next(index) {
                return;
            }
        }
    }

    fn begin(&mut self, due: Due, poll: &Poll, local: &mut Local) {
        match self.source.connect(self.is_alone) {
            Ok(None) => self.waiting = Some(due),
            Ok(Some(dialed)) => {
                let due_ns = due.scheduled_ns.unwrap_or(dialed.began_ns);
                self.slots.note_first(due.index, dialed.began_ns);
                let attempt = Attempt::new(dialed, self.is_alone, due_ns, due.warm_up);
                self.attempts[due.index] = Some(attempt);
                self.advance(due.index, poll, local);
            }
            Err(error) => {
                self.slots.fail(due.index, kind_of(&error), due.warm_up, monotonic_ns());
            }
        }
    }

    fn advance(&mut self, index: usize, poll: &Poll, local: &mut Local) {
        let Some(Some(attempt)) = self.attempts.get_mut(index) else { return };
        let (part, tally) = (&mut self.part, self.slots.tally(index));
        // While a server on another processor works, this one is free for the next connection's socket.
        let is_elsewhere = self.spin_wait.as_ref().is_some_and(SpinWait::is_elsewhere);
        let makes_ahead = is_elsewhere && self.source.may_make_ahead();
        let returns = !self.is_alone || makes_ahead;
        let mut outcome = attempt.advance(returns, part, tally, local, &mut self.spin_wait);
        if makes_ahead && matches!(outcome, Ok(Some(_))) {
            self.source.make_ahead();
            outcome = attempt.advance(false, part, tally, local, &mut self.spin_wait);
        }
        match outcome {
            Ok(Some(interest)) => {
                let fd = attempt.carrier().as_fd();
                if self.is_alone || poll.watch(fd, index, attempt.watched, interest) {
                    attempt.watched = Some(interest);
                } else {
                    self.give_up(index, "io", monotonic_ns());
                }
            }
            Ok(None) => self.finish(index, local),
            Err(error) => self.give_up(index, error_kind(&error), monotonic_ns()),
        }
    }

    fn finish(&mut self, index: usize, local: &mut Local) {
        let Some(attempt) = self.attempts[index].take() else { return };
        let socket = attempt.carrier().socket();
        if let Some(spin_wait) = &mut self.spin_wait {
            spin_wait.learn(socket);
        }
        self.slots.see(index, socket);
        let times = attempt.close(self.part.script.close);
        self.slots.finish(index, &times, local);
    }

    /// A connection under way comes to nothing.
    fn give_up(&mut self, index: usize, kind: &'static str, now_ns: u64) {
        let Some(attempt) = self.attempts[index].take() else { return };
        let warm_up = attempt.warm_up;
        attempt.abandon();
        self.slots.fail(index, kind, warm_up, now_ns);
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    fn sweep(&mut self, now_ns: u64) {
        self.slots.end_pauses(now_ns);
        let Some(oldest_ns) = self.slots.oldest_begin(now_ns) else { return };
        for index in 0..self.attempts.len() {
            let Some(attempt) = &mut self.attempts[index] else { continue };
            let since_ns = match self.times_silence {
                true => attempt.silent_since_ns(now_ns),
                false => attempt.began_ns,
            };
            if since_ns < oldest_ns {
                self.give_up(index, "timed_out", now_ns);
            }
        }
    }
}
