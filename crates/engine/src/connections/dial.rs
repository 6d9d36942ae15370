//! The client's loop: begins connections, each when it is due, and sees them through.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::step::Connection;
use linerate_wire::native::opening::Opening;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::places::{Due, Places};
use super::source::{Source, kind_of};
use super::spin_wait::SpinWait;
use super::worker::{Attempt, Script};
use super::{Dial, LONGEST_WAIT_NS, Poll};
use crate::clock::monotonic_ns;
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::{Phase, Reached};
use crate::shard::Inlet;

/// The part of a load of connections that falls to one shard.
pub(crate) struct Dialing {
    pub(crate) dial: Dial,
    /// What each of them does; the parts of one load.
    pub(crate) steps: Vec<Connection>,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
}

struct Dialer {
    script: Script,
    source: Source,
    places: Places,
    /// A connection that is due, for which a source is still looked for.
    waiting: Option<Due>,
    /// The connections under way, by their places.
    attempts: Vec<Option<Attempt>>,
    /// Where there is one place, whose connections are not under TLS.
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
        dialer.places.set_ready(local);
        let mut ready = Vec::new();
        loop {
            let reached = local.reached();
            let now_ns = monotonic_ns();
            if dialer.is_over(reached, now_ns) {
                return dialer.places.leave(now_ns, local);
            }
            if reached.phase > Phase::Hold {
                dialer.begin_due(reached, &poll, local);
                dialer.sweep(now_ns);
            }
            let looks_on = dialer.waiting.is_some();
            let at_most_ns =
                if looks_on { 0 } else { dialer.places.wait_at_most_ns(reached.phase) };
            if dialer.is_alone() {
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
        let step = dialing.steps.first()?;
        let flow = dialing.flows.first()?.number;
        let mut first_bytes = Opening { flow, token: dialing.dial.token }.encode().to_vec();
        if dialing.dial.tls.is_none() {
            first_bytes.extend_from_slice(local.pattern.slice(0, step.request_bytes as usize));
        }
        let mut places = Places::new(&dialing.steps, dialing.flows)?;
        if dialing.dial.tls.is_some() {
            places.count_handshakes(dialing.dial.agreement.clone());
        }
        let (shard, shards) = dialing.shard;
        Some(Self {
            script: Script {
                first_bytes,
                request_bytes: step.request_bytes as usize,
                response_bytes: step.response_bytes as usize,
                close: step.close,
                tls: dialing.dial.tls.clone(),
                handshake: dialing.dial.agreement.wanted(),
            },
            source: Source::new(&dialing.dial, shard, shards),
            waiting: None,
            attempts: (0..places.len()).map(|_| None).collect(),
            spin_wait: (places.len() == 1 && dialing.dial.tls.is_none())
                .then(|| SpinWait::new(false)),
            places,
        })
    }

    fn is_over(&mut self, reached: Reached, now_ns: u64) -> bool {
        if reached.phase >= Phase::Stop
            && let Some(due) = self.waiting.take()
        {
            self.places.withdraw(&due);
        }
        if reached.phase == Phase::Abort {
            for index in 0..self.attempts.len() {
                self.give_up(index, "given_up", now_ns);
            }
            return true;
        }
        self.places.are_done(reached, now_ns)
    }

    /// Whether there is one place: then its socket blocks, which is fewer calls than a poll set
    /// takes.
    fn is_alone(&self) -> bool {
        self.attempts.len() == 1
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
        self.places.open_turn(reached);
        while let Some(due) = self.waiting.take().or_else(|| self.places.take_due()) {
            let index = due.index;
            self.begin(due, poll, local);
            // A place that is free again at once gets its next turn after a look at the phase, and
            // whoever looks for a source the next after the other connections.
            if self.waiting.is_some() || self.places.is_next(index) {
                return;
            }
        }
    }

    fn begin(&mut self, due: Due, poll: &Poll, local: &mut Local) {
        let alone = self.is_alone();
        let blocks_for = alone.then_some(Duration::from_nanos(LONGEST_WAIT_NS));
        match self.source.connect(blocks_for) {
            Ok(None) => self.waiting = Some(due),
            Ok(Some(dialed)) => {
                let due_ns = due.scheduled_ns.unwrap_or(dialed.began_ns);
                self.places.note_first(due.index, dialed.began_ns);
                self.attempts[due.index] = Some(Attempt::new(dialed, alone, due_ns, due.warm_up));
                self.advance(due.index, poll, local);
            }
            Err(error) => {
                self.places.fail(due.index, kind_of(&error), due.warm_up, monotonic_ns());
            }
        }
    }

    fn advance(&mut self, index: usize, poll: &Poll, local: &mut Local) {
        let alone = self.is_alone();
        let Some(Some(attempt)) = self.attempts.get_mut(index) else { return };
        match attempt.advance(&self.script, self.places.tally(index), local, &mut self.spin_wait) {
            Ok(Some(interest)) => {
                if alone || poll.watch(attempt.carrier().as_fd(), index, attempt.watched, interest)
                {
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
        if let Some(spin_wait) = &mut self.spin_wait {
            spin_wait.learn(attempt.carrier().socket());
        }
        let times = attempt.close(self.script.close);
        self.places.finish(index, &times, local);
    }

    /// A connection under way comes to nothing.
    fn give_up(&mut self, index: usize, kind: &'static str, now_ns: u64) {
        let Some(attempt) = self.attempts[index].take() else { return };
        let warm_up = attempt.warm_up;
        attempt.abandon();
        self.places.fail(index, kind, warm_up, now_ns);
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    fn sweep(&mut self, now_ns: u64) {
        self.places.end_pauses(now_ns);
        let Some(oldest_ns) = self.places.oldest_begin(now_ns) else { return };
        for index in 0..self.attempts.len() {
            let overdue = |attempt: &Attempt| attempt.began_ns < oldest_ns;
            if self.attempts[index].as_ref().is_some_and(overdue) {
                self.give_up(index, "timed_out", now_ns);
            }
        }
    }
}
