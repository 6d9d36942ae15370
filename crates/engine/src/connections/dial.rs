//! The client's loop: begins connections, each when it is due, and sees them through.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::step::Churn;
use linerate_wire::native::opening::Opening;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::attempt::Part;
use super::attempts::{Advanced, Attempts};
use super::carrier::TcpCarrier;
use super::opening::TcpOpening;
use super::slots::{Due, Slots};
use super::source::{Source, kind_of};
use super::spin_wait::SpinWait;
use super::{Dial, LONGEST_WAIT_NS, Poll};
use crate::clock::monotonic_ns;
use crate::flow::{Ending, FlowShared, Local};
use crate::phase::{Phase, Reached};
use crate::shard::Inlet;
use crate::waiting::Peer;

/// How many connections of a load may be under way over which nothing has come: no more than a listener's queue holds
/// (4,096 by default), since those beyond it are begun again only after a second.
const MOST_PENDING: usize = 3_072;

/// Connections begun before those under way have their turn.
const MOST_BEGUN_AT_ONCE: usize = 128;

/// The part of a load of connections that falls to one shard.
pub(crate) struct Dialing {
    pub(crate) dial: Dial,
    /// What all its flows do together.
    pub(crate) churn: Churn,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
}

struct Dialer {
    attempts: Attempts<TcpCarrier>,
    source: Source,
    /// A connection that is due, for which a source is still looked for.
    waiting: Option<Due>,
    /// How many connections may be under way over which nothing has come.
    most_pending: usize,
    /// Whether there is one slot, whose sockets block: that is fewer calls than a poll set takes.
    is_alone: bool,
    /// Where there is one slot, whose connections are not under TLS.
    spin_wait: Option<SpinWait>,
}

impl Dialing {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let Some(mut poll) = Poll::new(waker) else {
            self.flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        let mut dialer = Dialer::new(self, waker.is_apart(), local);
        dialer.attempts.slots.set_ready(local);
        let mut ready = Vec::new();
        loop {
            let reached = local.reached();
            let now_ns = monotonic_ns();
            if dialer.is_over(reached, now_ns) {
                return dialer.attempts.slots.leave(now_ns, local);
            }
            if reached.phase > Phase::Hold {
                dialer.begin_due(reached, &poll, local);
                dialer.attempts.sweep(now_ns);
            }
            let looks_on = dialer.waiting.is_some();
            let at_most_ns = match dialer.attempts.pending < dialer.most_pending {
                true if looks_on => dialer.source.retries_at_ns().saturating_sub(now_ns),
                true => dialer.attempts.wait_at_most_ns(reached.phase, now_ns),
                // One of them comes first, or its time is over.
                false => dialer.attempts.resumes_within_ns(now_ns),
            };
            if dialer.is_alone {
                dialer.wait_alone(waker, at_most_ns, &mut ready);
            } else {
                poll.wait(at_most_ns);
                poll.take_ready(&mut ready, waker);
                if poll.is_woken && waker.is_apart() {
                    waker.discard();
                }
                dialer.attempts.take_resumed(&mut ready);
            }
            if reached.phase >= Phase::Stop {
                dialer.attempts.end_holds(&mut ready);
            }
            for index in ready.drain(..) {
                dialer.advance(index, &poll, local);
            }
        }
    }
}

/// A shard's part of what all may have together; one at least, so that each goes on.
fn share(most: usize, shard: usize, shards: usize) -> usize {
    let shards = shards.max(1);
    (most / shards + usize::from(shard < most % shards)).max(1)
}

impl Dialer {
    fn new(dialing: Dialing, is_apart: bool, local: &Local) -> Self {
        let Dialing { dial, churn, flows, shard: (shard, shards) } = dialing;
        let life = &churn.life;
        let flow = flows.first().map_or(0, |flow| flow.number);
        let opening = dial.token.map(|token| Opening { flow, token });
        let source = Source::new(&dial, shard, shards);
        let keys = (dial.tls, dial.agreement.wanted());
        let mut part = Part::new(life, &dial.buffers, opening, keys, local);
        part.script = part.script.telling(life, dial.tell).counting_texts_in(flows.first());
        let mut slots = Slots::new(&churn, flows).with_rules(dial.rules);
        let most_pending = share(dial.rules.most_pending.unwrap_or(MOST_PENDING), shard, shards);
        let has_tls = part.tls.is_some();
        if has_tls {
            slots.count_handshakes(dial.agreement);
        }
        let is_alone = slots.len() == 1 && part.script.is_plain() && !is_apart;
        Self {
            attempts: Attempts::new(part, slots, (shard, shards)),
            source,
            waiting: None,
            most_pending,
            is_alone,
            spin_wait: (is_alone && !has_tls).then(|| SpinWait::new(Peer::Unknown)),
        }
    }

    fn is_over(&mut self, reached: Reached, now_ns: u64) -> bool {
        if reached.phase >= Phase::Stop
            && let Some(due) = self.waiting.take()
        {
            self.attempts.slots.withdraw(&due);
        }
        self.attempts.are_over(reached, now_ns)
    }

    /// Waits for the time of the next connection, unless there is one under way.
    fn wait_alone(&self, waker: &Inlet, at_most_ns: u64, ready: &mut Vec<usize>) {
        if self.attempts.are_any() {
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
        self.attempts.slots.open_turn(reached);
        for _ in 0..MOST_BEGUN_AT_ONCE {
            if self.attempts.pending >= self.most_pending {
                return;
            }
            let waiting = self.waiting.take();
            let Some(due) = waiting.or_else(|| self.attempts.slots.take_due()) else { return };
            let index = due.index;
            self.begin(due, poll, local);
            // A slot that is free again at once gets its next turn after a look at the phase. A slot that looks
            // for a source gets its next turn after the other connections.
            if self.waiting.is_some() || self.attempts.slots.is_next(index) {
                return;
            }
        }
    }

    fn begin(&mut self, due: Due, poll: &Poll, local: &mut Local) {
        match self.source.connect(self.is_alone) {
            Ok(None) => self.waiting = Some(due),
            Ok(Some(dialed)) => {
                let began_ns = dialed.began_ns;
                let opening = match (dialed.in_progress, self.is_alone) {
                    (true, true) => TcpOpening::Connecting,
                    (true, false) if self.attempts.part.script.tells() => TcpOpening::Standing,
                    _ => TcpOpening::Sending(0),
                };
                let carrier = TcpCarrier::new(dialed.socket);
                self.attempts.begin(&due, began_ns, carrier, opening);
                self.advance(due.index, poll, local);
            }
            Err(error) => {
                let now_ns = monotonic_ns();
                let call = self.source.call();
                let script = &self.attempts.part.script;
                script.tell_finished::<TcpCarrier>(None, None, call, Some(&error));
                self.attempts.slots.fail(due.index, kind_of(&error), due.warm_up, now_ns);
            }
        }
    }

    fn advance(&mut self, index: usize, poll: &Poll, local: &mut Local) {
        // While a server on another processor works, this one is free for the next connection's socket.
        let is_elsewhere = self.spin_wait.as_ref().is_some_and(SpinWait::is_elsewhere);
        let makes_ahead = is_elsewhere && self.source.may_make_ahead();
        let returns = !self.is_alone || makes_ahead;
        let mut advanced = self.attempts.advance(index, returns, local, &mut self.spin_wait);
        if makes_ahead && advanced == Advanced::Waits {
            self.source.make_ahead();
            advanced = self.attempts.advance(index, false, local, &mut self.spin_wait);
        }
        match advanced {
            Advanced::Waits if self.is_alone => {}
            Advanced::Waits => self.watch(index, poll),
            Advanced::Complete => self.finish(index, local),
            Advanced::Gone => {}
        }
    }

    /// Waits for what the connection waits for.
    fn watch(&mut self, index: usize, poll: &Poll) {
        let Attempts { part, under_way, .. } = &mut self.attempts;
        let Some(Some(attempt)) = under_way.get_mut(index) else { return };
        let interest = attempt.interest(part);
        if poll.watch(attempt.carrier.as_fd(), index, attempt.watched, interest) {
            attempt.watched = Some(interest);
        } else {
            self.attempts.give_up(index, &io::ErrorKind::Other.into(), monotonic_ns());
        }
    }

    fn finish(&mut self, index: usize, local: &mut Local) {
        let Attempts { slots, under_way, .. } = &mut self.attempts;
        if let Some(Some(attempt)) = under_way.get(index) {
            let socket = attempt.carrier.socket();
            if let Some(spin_wait) = &mut self.spin_wait {
                spin_wait.learn(socket);
            }
            slots.see(index, socket);
        }
        self.attempts.finish(index, local);
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shards_share_a_limit_exactly() {
        for (most, shards) in [(1, 1), (3, 2), (7, 3), (8, 4), (1000, 7)] {
            let shares = (0..shards).map(|shard| share(most, shard, shards));
            assert_eq!(shares.sum::<usize>(), most, "{most} {shards}");
        }
        assert_eq!((share(1, 1, 2), share(usize::MAX, 0, 1)), (1, usize::MAX));
    }
}
