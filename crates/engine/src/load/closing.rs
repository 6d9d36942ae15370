//! How a load ends: by its own time, by its peer's word, or because nothing moves any more.

use std::net::Shutdown;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::sample::{Role, Sample};
use linerate_measure::step::Step;
use linerate_measure::{Arrivals, End, Kind, Transport, Workload};
use linerate_wire::native::message::FlowCount;

use super::{LOOK_NS, LOOK_NS_PER_FLOW, Load};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::flow::FlowShared;
use crate::phase::Phase;
use crate::shard::Shard;
use crate::socket::{tcp_movement, tcp_status};
use crate::tally::Progress;

/// A load that was stopped and in which nothing moves for so long is given up.
pub(super) const STALL_NS: u64 = 3 * SECOND_NS;
/// What bulk senders have handed to their sockets is awaited for so many round trips of the path, as it was
/// when the load was stopped; the round trips have what waits in its queues.
const DRAIN_ROUND_TRIPS: u64 = 10;
/// The least and the most that this comes to: a machine may be busy, and a buffer can hold minutes of a slow
/// path.
const DRAIN_NS: RangeInclusive<u64> = 3 * SECOND_NS..=20 * SECOND_NS;
/// Responses are awaited for so long after the load was stopped: requests sent faster than they can
/// be answered would make a short test a long one.
const LONGEST_AWAIT_NS: u64 = 30 * SECOND_NS;
/// A connection over QUIC whose peer's close got lost has timed out by then.
const LOST_CLOSE_NS: u64 = 6 * SECOND_NS;
/// Datagrams that have not come so long after the last one are lost.
const SILENCE_NS: u64 = 500 * MILLISECOND_NS;

/// A load in which nothing moves for so long, though something was due, is given up.
const STANDSTILL_NS: u64 = 30 * SECOND_NS;
/// How often it is looked whether anything moves: a look asks all flows.
const STANDSTILL_LOOK_NS: u64 = SECOND_NS;
/// No gap of a Poisson process is longer than so many mean ones, but one in 10^10.
const LONGEST_GAP: f64 = 25.0;

/// What of a load was last seen to move.
pub(super) struct Standstill {
    limit_ns: u64,
    next_look_ns: u64,
    moved_ns: u64,
    counted: u64,
    carried: u64,
}

impl Load {
    /// Those that began end; the others go on until their peers have ended.
    pub(crate) fn stop(&mut self) {
        let stopped_ns = *self.stopped_ns.get_or_insert_with(monotonic_ns);
        if self.meter.totals.done_at_stop.is_none()
            && self.asks()
            && self.workload.schedule().is_some()
        {
            self.meter.totals.done_at_stop = Some(self.measured_transactions());
        }
        self.advance_to(Phase::Stop, stopped_ns);
    }

    /// Transactions of the measured part so far, all flows together.
    pub(super) fn measured_transactions(&self) -> u64 {
        let done = self.flows.iter().flatten().map(|flow| flow.tally.measured_transactions());
        done.fold(0, u64::saturating_add)
    }

    /// Whether a thread of the load has failed. Then it is over: what it measures would be the rest.
    pub(crate) fn has_failed(&self) -> bool {
        self.shards.iter().any(Shard::has_failed)
    }

    /// What the other threads go on with would only hold the peer.
    pub(super) fn end_if_failed(&mut self) {
        if self.phase.current() < Phase::Abort && self.has_failed() {
            self.stop();
            self.abort();
        }
    }

    /// When the load was stopped, where it was to end by time; 0 otherwise.
    pub(super) fn time_was_up_ns(&self) -> u64 {
        match self.workload.end {
            End::Time { .. } => self.stopped_ns.unwrap_or(0),
            End::Bytes { .. } | End::Count { .. } => 0,
        }
    }

    /// When the last of the flows that moved anything moved something; of datagrams, whose end nothing
    /// marks, not before the load's time was up. `None` where one of them hasn't ended.
    pub(super) fn last_moved_ns(&self) -> Option<u64> {
        let mut last_ns = if self.is_datagrams() { self.time_was_up_ns() } else { 0 };
        for tally in self.flows.iter().flatten().map(|flow| &flow.tally) {
            if tally.first_ns.value() == 0 {
                continue;
            }
            match tally.last_ns.value() {
                0 => return None,
                moved_ns => last_ns = last_ns.max(moved_ns),
            }
        }
        (last_ns > 0).then_some(last_ns)
    }

    /// No more requests will come: those that answer end.
    pub(crate) fn end_answers(&mut self) {
        let connects = matches!(self.workload.kind, Kind::Connect { .. });
        if connects || (self.workload.has_transactions() && self.is_datagrams()) {
            self.drain();
        }
    }

    /// All flows end at once.
    pub(crate) fn abort(&mut self) {
        self.advance_to(Phase::Abort, monotonic_ns());
        self.shut_down(Shutdown::Both);
    }

    /// Those that receive or answer end: what was sent has arrived or never will.
    pub(crate) fn drain(&mut self) {
        self.advance_to(Phase::Drained, monotonic_ns());
        self.shut_down(Shutdown::Read);
    }

    /// How long a stopped load may stand still. On a path whose queues hold seconds, a retransmission takes as long.
    /// A client knows the path's round trip; a server's receivers don't.
    fn stall_limit_ns(&self) -> u64 {
        if !self.is_bulk_of_streams() || !self.given.steps.is_empty() {
            return self.stall_ns;
        }
        match self.role {
            Role::Client => drain_ns(&self.flows) / 2,
            // The client's last packet may get lost in a full queue: its connection times out then, before it is given up.
            Role::Server if self.peer_is_done && self.workload.transport == Transport::Quic => {
                self.stall_ns.max(LOST_CLOSE_NS)
            }
            Role::Server if self.peer_is_done => self.stall_ns,
            Role::Server => *DRAIN_NS.end() + self.stall_ns,
        }
    }

    /// Whether this end, a while after the load's time is up, ends flows whose data is still on its way. The
    /// server is told by its client; loads of other dialects know their own ends.
    fn cuts_what_is_left(&self) -> bool {
        self.role == Role::Client
            && self.given.steps.is_empty()
            && self.is_bulk_of_streams()
            && self.phase.current() < Phase::Drained
            && !self.all_ended()
    }

    fn is_bulk_of_streams(&self) -> bool {
        !self.workload.has_transactions() && !self.is_datagrams()
    }

    /// The client is done: what moves no more is not waited for any longer.
    pub(crate) fn handle_peer_done(&mut self) {
        self.peer_is_done = true;
    }

    /// Ends bulk streams as they are. The kernel drops what their sockets still hold: sent on after the test, it
    /// would load the path of the next one.
    fn cut(&mut self) {
        self.advance_to(Phase::Drained, monotonic_ns());
        for socket in self.flows.iter().flatten().filter_map(|flow| flow.socket.as_ref()) {
            let _unsent_at_worst = socket.set_linger(Some(Duration::ZERO));
        }
        self.shut_down(Shutdown::Both);
    }

    /// Wakes threads that block in a call. A shard with its own file table has none: it sees the phase when
    /// it is woken.
    fn shut_down(&self, how: Shutdown) {
        for flow in self.flows.iter().flatten() {
            if flow.tally.progress() < Progress::Ended {
                // Fails only where the connection is gone, and then nobody waits for it.
                let _gone = flow.socket.as_ref().map(|socket| socket.shutdown(how));
            }
        }
    }

    /// Ends what would wait for ever: datagram receivers when all has come or nothing comes any
    /// more, and everybody when nothing moves.
    pub(super) fn look_after_ending(&mut self, now_ns: u64) {
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = now_ns + LOOK_NS + LOOK_NS_PER_FLOW * self.flows.len() as u64;
        // What is acknowledged or arrives moves the load too, though no flow is told.
        let sum = self.sum_of_counters().wrapping_add(self.carried());
        if self.moved.0 == 0 || sum != self.moved.1 {
            self.moved = (now_ns, sum);
        }
        let still_ns = now_ns.saturating_sub(self.moved.0);
        if self.is_datagrams()
            && self.phase.current() < Phase::Drained
            && self.peer_has_sent_all
            && self.has_sent_all()
            && (self.has_all_datagrams() || still_ns >= SILENCE_NS)
        {
            self.drain();
        }
        if still_ns >= self.stall_ns
            && !self.all_ended()
            && self.phase.current() < Phase::Abort
            && still_ns >= self.stall_limit_ns()
        {
            self.notes.push(format!(
                "nothing moved for {} s after the load was stopped: flows that had not ended were \
                 given up",
                still_ns / SECOND_NS
            ));
            self.abort();
        }
        let ending_ns = self.stopped_ns.map_or(0, |stopped_ns| now_ns.saturating_sub(stopped_ns));
        if self.cuts_what_is_left() && ending_ns >= *DRAIN_NS.start() {
            let drain_ns = *self.drain_ns.get_or_insert_with(|| drain_ns(&self.flows));
            if ending_ns >= drain_ns {
                self.notes.push(format!(
                    "senders' buffers still held data {:.1} s after the load's end: it was cut off, and \
                     is not counted as received",
                    Duration::from_nanos(ending_ns).as_secs_f64()
                ));
                self.cut();
            }
        }
        if ending_ns >= LONGEST_AWAIT_NS && self.asks() && self.phase.current() < Phase::Abort {
            let (what, count_as) = match self.workload.kind {
                Kind::Connect { .. } => ("connections were still under way", "failed (given_up)"),
                _ => ("responses were still coming", "lost"),
            };
            self.notes.push(format!(
                "{what} {} s after the load was stopped: those that had not ended were given up and \
                 count as {count_as}",
                LONGEST_AWAIT_NS / SECOND_NS
            ));
            self.abort();
        }
    }

    /// The counts of all flows that send datagrams in bulk from this end, when each of them has
    /// sent its last; `None` before, after the first time, and where there are none.
    pub(crate) fn take_datagrams_sent(&mut self) -> Option<Vec<FlowCount>> {
        if self.told_sent
            || !self.is_datagrams()
            || !self.is_open()
            || self.ready_count.ended() == 0
        {
            return None;
        }
        let mut counts = Vec::new();
        for flow in self.sending_flows() {
            let flow = flow?;
            if flow.tally.progress() < Progress::Ended {
                return None;
            }
            let datagrams = flow.tally.datagrams.sent.value();
            counts.push(FlowCount { flow: flow.number, datagrams });
        }
        self.told_sent = true;
        (!counts.is_empty()).then_some(counts)
    }

    /// Whether this end sends datagrams in bulk, whose counts it will tell ([`Load::take_datagrams_sent`]).
    pub(crate) fn sends_datagrams(&self) -> bool {
        self.is_datagrams() && self.sending_flows().next().is_some()
    }

    pub(super) fn sending_flows(&self) -> impl Iterator<Item = Option<&Arc<FlowShared>>> {
        let sends = |number: usize| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            matches!(self.steps_of(number).first(), Some(Step::Send(_)))
        };
        self.flows
            .iter()
            .enumerate()
            .filter(move |(number, _)| sends(*number))
            .map(|(_, f)| f.as_ref())
    }

    /// The peer has sent so many datagrams, and will send no more.
    pub(crate) fn handle_peer_sent(&mut self, counts: &[FlowCount]) {
        self.peer_sent.resize(self.flows.len(), None);
        for count in counts {
            if let Some(slot) = self.peer_sent.get_mut(count.flow as usize) {
                *slot = Some(count.datagrams);
            }
        }
        self.peer_has_sent_all = true;
    }

    pub(super) fn sum_of_counters(&self) -> u64 {
        // A flow that ends moves too, though it may count nothing more.
        let ended = u64::from(self.ready_count.ended());
        self.flows.iter().flatten().fold(ended, |sum, flow| {
            let counts = flow.tally.counts();
            sum.wrapping_add(counts.sent_bytes)
                .wrapping_add(counts.received_bytes)
                .wrapping_add(counts.transactions)
        })
    }

    /// Whether no flow sends any more: those that receive can't be ended alone.
    fn has_sent_all(&self) -> bool {
        let ended = |flow: &FlowShared| flow.tally.progress() == Progress::Ended;
        self.sending_flows().flatten().all(|flow| ended(flow))
    }

    fn has_all_datagrams(&self) -> bool {
        self.flows.iter().flatten().all(|flow| {
            let Some(Step::Receive(_)) = self.steps_of(flow.number).first() else { return true };
            let sent = self.peer_sent.get(flow.number as usize).copied().flatten();
            sent.is_some_and(|sent| flow.tally.datagrams.received.value() >= sent)
        })
    }

    /// A load by time is stopped when its time is up. One by bytes or by a count would be held by a
    /// server for as long as that likes; the server itself is held by no client that is gone.
    pub(super) fn watch_for_standstill(&self, now_ns: u64) -> Option<Standstill> {
        let by_time = matches!(self.workload.end, End::Time { .. });
        // Other dialects know their own peers.
        let watched = self.role == Role::Client && !by_time && self.given.steps.is_empty();
        watched.then(|| Standstill {
            limit_ns: STANDSTILL_NS.saturating_add(longest_pause_ns(&self.workload)),
            next_look_ns: now_ns.saturating_add(STANDSTILL_LOOK_NS),
            moved_ns: now_ns,
            counted: 0,
            carried: 0,
        })
    }

    /// What the server has sampled: it may still be taking in what this end has long handed to its
    /// kernel.
    pub(crate) fn handle_peer_sample(&mut self, sample: &Sample, now_ns: u64) {
        let traffic = [sample.sent, sample.received];
        let moves = traffic.into_iter().flatten().any(|traffic| traffic.calls > Some(0));
        if let Some(standstill) = self.standstill.as_mut().filter(|_| moves) {
            standstill.moved_ns = now_ns;
        }
    }

    pub(super) fn look_for_standstill(&mut self, now_ns: u64) {
        let Some(mut standstill) = self.standstill.take() else { return };
        if self.phase.current() >= Phase::Stop {
            return;
        }
        if now_ns >= standstill.next_look_ns {
            standstill.next_look_ns = now_ns.saturating_add(STANDSTILL_LOOK_NS);
            if self.moves(&mut standstill) {
                standstill.moved_ns = now_ns;
            }
        }
        if now_ns.saturating_sub(standstill.moved_ns) >= standstill.limit_ns && !self.all_ended() {
            self.notes.push(format!(
                "nothing moved for {} s: the load was ended, and flows that had not ended were given \
                 up",
                standstill.limit_ns / SECOND_NS
            ));
            self.stop();
            self.abort();
            return;
        }
        self.standstill = Some(standstill);
    }

    /// Whether anything has been done since the last look: counted by this end's flows, or taken by
    /// the server's kernel of what they have handed to this one.
    fn moves(&self, standstill: &mut Standstill) -> bool {
        let ends = self.flows.iter().flatten().map(|flow| flow.tally.last_ns.value());
        // A connection that fails counts nothing, and has come to its end.
        let counted = ends.fold(self.sum_of_counters(), u64::wrapping_add);
        if counted != standstill.counted {
            standstill.counted = counted;
            return true;
        }
        let carried = self.carried();
        let moves = carried != standstill.carried;
        standstill.carried = carried;
        moves
    }

    /// Whether bytes or responses of the peer's have come since the last call. It looks at every flow, so it answers
    /// once a second only.
    pub(crate) fn peer_progressed(&mut self, now_ns: u64) -> bool {
        if !self.is_open() || now_ns < self.peer_progress.0.saturating_add(SECOND_NS) {
            return false;
        }
        let come = self.flows.iter().flatten().fold(0, |sum: u64, flow| {
            let counts = flow.tally.counts();
            sum.wrapping_add(counts.received_bytes).wrapping_add(counts.transactions)
        });
        let before = std::mem::replace(&mut self.peer_progress, (now_ns, come));
        before.1 != come
    }

    pub(super) fn carried(&self) -> u64 {
        self.flows.iter().flatten().fold(0, |sum: u64, flow| {
            let tcp = flow.socket.as_ref().and_then(|socket| tcp_movement(socket.as_fd()));
            // Of a stream's bytes it is known in large pieces only what was acknowledged.
            let quic = flow.path().map(|path| {
                path.acked_bytes.unwrap_or(0).wrapping_add(path.received_acks.unwrap_or(0))
            });
            sum.wrapping_add(tcp.unwrap_or(0)).wrapping_add(quic.unwrap_or(0))
        })
    }
}

/// How long bulk streams may take to deliver what their sockets hold.
fn drain_ns(flows: &[Option<Arc<FlowShared>>]) -> u64 {
    let rtt_us = |flow: &Arc<FlowShared>| {
        let tcp = flow.socket.as_ref().and_then(|socket| tcp_status(socket.as_fd()));
        tcp.map(|tcp| tcp.rtt_us).max(flow.path().map(|path| path.rtt_us))
    };
    let longest_us = flows.iter().flatten().filter_map(rtt_us).max().unwrap_or(0);
    (u64::from(longest_us) * 1000 * DRAIN_ROUND_TRIPS).clamp(*DRAIN_NS.start(), *DRAIN_NS.end())
}

/// How long a load may do nothing as it was planned: nothing is due by its rate, or a response or a
/// connection is awaited.
fn longest_pause_ns(workload: &Workload) -> u64 {
    let timeout_ns = match workload.kind {
        Kind::Stream { .. } => 0,
        Kind::Rr { timeout_ns, .. } => timeout_ns,
        Kind::Connect { timeout_ns, hold_ns, .. } => timeout_ns.saturating_add(hold_ns),
    };
    // The last flow left may be alone with its part of the rate.
    let gap_s = workload.schedule().map_or(0.0, |schedule| {
        let mean_s = f64::from(workload.flows) / schedule.per_s;
        if schedule.arrivals == Arrivals::Poisson { LONGEST_GAP * mean_s } else { mean_s }
    });
    let unit_bytes = match workload.kind {
        Kind::Stream { send_bytes, .. } if workload.has_datagrams() => send_bytes,
        // The pace cuts what a stream sends into pieces as short as it must.
        _ => 1,
    };
    let bps = workload.rate_per_flow_bps();
    let unit_s = bps.map_or(0.0, |bps| f64::from(unit_bytes) * 8.0 / bps as f64);
    // Saturates.
    timeout_ns.saturating_add(((gap_s + unit_s) * 1e9) as u64)
}
