//! Streams on shards: what they send, and what the conductor sees of them.

mod datagram_receiver;
mod datagram_sender;
mod goal;
mod pace;
mod payload;
mod receiver;
mod sender;

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::Role;
use crate::clock::monotonic_ns;
use crate::flow::{Ending, FlowError, FlowShared, Local, Turn};
use crate::phase::Phase;
use crate::socket::tcp_status;
use crate::tally::{Counter, Progress};

pub(super) use datagram_receiver::DatagramReceiver;
pub(super) use datagram_sender::DatagramSender;
pub(super) use goal::Goal;
pub(super) use pace::Throttle;
pub(super) use payload::{Payload, Sink};
pub(super) use receiver::Receiver;
pub(super) use sender::{Company, Sender};

/// What a stream has done so far, beside its flow's tally: datagrams, and what lies in the omitted
/// time. Written by its shard and read by anybody.
#[derive(Debug, Default)]
pub(super) struct StreamTally {
    lost: Counter,
    out_of_order: Counter,
    /// Nanoseconds, the bits of a floating-point number.
    jitter_ns: Counter,
    omitted_bytes: Counter,
    omitted_calls: Counter,
    omitted_packets: Counter,
    omitted_lost: Counter,
    omitted_out_of_order: Counter,
    /// Segments sent again until the stream ended.
    resent: Counter,
    /// 1 when those of the omitted time stand.
    began: Counter,
}

/// A stream's figures at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) packets: u64,
    /// Negative since an earlier moment, where more came late than were lost meanwhile.
    pub(super) lost: i64,
    pub(super) out_of_order: u64,
    pub(super) jitter_ns: f64,
}

impl Figures {
    /// What has happened since an earlier moment.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            calls: self.calls.saturating_sub(before.calls),
            packets: self.packets.saturating_sub(before.packets),
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            jitter_ns: self.jitter_ns,
        }
    }
}

/// A stream as its shard and the conductor both see it.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) flow: Arc<FlowShared>,
    pub(super) tally: Arc<StreamTally>,
    pub(super) sends: bool,
}

impl Shared {
    /// All since the beginning, the omitted time included.
    pub(super) fn figures(&self) -> Figures {
        let counts = self.flow.tally.counts();
        Figures {
            bytes: if self.sends { counts.sent_bytes } else { counts.received_bytes },
            calls: if self.sends { counts.send_calls } else { counts.receive_calls },
            packets: if self.sends { counts.datagrams_sent } else { counts.datagrams_expected },
            lost: i64::try_from(self.tally.lost.value()).unwrap_or(i64::MAX),
            out_of_order: self.tally.out_of_order.value(),
            jitter_ns: f64::from_bits(self.tally.jitter_ns.value()),
        }
    }

    /// Segments that its connection sent again: known since it ended, or asked for now.
    pub(super) fn retransmits(&self) -> u32 {
        if self.flow.tally.progress() == Progress::Ended {
            return u32::try_from(self.tally.resent.value()).unwrap_or(u32::MAX);
        }
        let socket = self.flow.socket.as_ref();
        let status = socket.and_then(|socket| tcp_status(socket.as_fd()));
        status.map_or(0, |status| status.retransmitted_segments)
    }

    /// What of that lies in the omitted time. A stream that hasn't seen the end of that time yet has
    /// done nothing since.
    pub(super) fn omitted(&self) -> Figures {
        if self.tally.began.value() == 0 {
            return self.figures();
        }
        Figures {
            bytes: self.tally.omitted_bytes.value(),
            calls: self.tally.omitted_calls.value(),
            packets: self.tally.omitted_packets.value(),
            lost: i64::try_from(self.tally.omitted_lost.value()).unwrap_or(i64::MAX),
            out_of_order: self.tally.omitted_out_of_order.value(),
            jitter_ns: 0.0,
        }
    }
}

/// What the four kinds of streams have in common.
pub(super) struct Course {
    shared: Shared,
    goal: Arc<Goal>,
    role: Role,
    ready: bool,
    measuring: bool,
    /// What this stream has claimed of the goal and not sent yet.
    claimed_bytes: u64,
    /// Whether what comes now was on its way when the test ended.
    tail: bool,
    /// Whether it waits for its rate or for the end, with nothing on its way into the socket.
    rests: bool,
    /// Whether its end is when the last of it came: its sender may stop by itself, and this end sees it later.
    ends_with_its_last: bool,
}

/// What a stream does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    /// Its work. Says whether the omitted time has just ended.
    Works { begins: bool },
    /// Takes what has come, and no more.
    Drains,
    /// Nothing until the phase changes.
    Waits,
    /// Nothing any more.
    Ends,
}

impl Course {
    pub(super) fn new(shared: Shared, goal: Arc<Goal>, role: Role) -> Self {
        let ends_with_its_last = !shared.sends && goal.is_set();
        Self {
            shared,
            goal,
            role,
            ready: false,
            measuring: false,
            claimed_bytes: 0,
            tail: false,
            rests: false,
            ends_with_its_last,
        }
    }

    #[inline]
    fn now(&mut self, local: &mut Local) -> Now {
        match local.phase() {
            Phase::Measure if self.measuring => Now::Works { begins: false },
            Phase::Measure => {
                self.begin_measuring();
                Now::Works { begins: true }
            }
            Phase::WarmUp => Now::Works { begins: false },
            Phase::Hold => {
                if !self.ready {
                    self.ready = true;
                    self.shared.flow.set_ready(local);
                }
                Now::Waits
            }
            Phase::Stop if self.takes_the_tail() => {
                self.begin_tail();
                Now::Works { begins: false }
            }
            Phase::Drained if self.takes_the_tail() => {
                self.begin_tail();
                Now::Drains
            }
            Phase::Stop | Phase::Drained | Phase::Abort => Now::Ends,
        }
    }

    /// A server counts what the client had sent when it ended the test; a client's test ends when the
    /// client says so.
    fn takes_the_tail(&self) -> bool {
        self.role == Role::Server && !self.shared.sends
    }

    /// The test has ended, perhaps before this stream saw it begin.
    fn begin_tail(&mut self) {
        self.tail = true;
        if !self.measuring {
            self.begin_measuring();
        }
    }

    /// Only what comes from here on counts.
    #[cold]
    fn begin_measuring(&mut self) {
        self.measuring = true;
        let figures = self.shared.figures();
        let tally = &self.shared.tally;
        tally.omitted_bytes.set(figures.bytes);
        tally.omitted_calls.set(figures.calls);
        tally.omitted_packets.set(figures.packets);
        tally.omitted_lost.set(tally.lost.value());
        tally.omitted_out_of_order.set(figures.out_of_order);
        tally.began.set(1);
    }

    /// Received bytes; tells the conductor when they are all that was asked for. A server leaves
    /// that to its client.
    #[inline]
    fn record_received(&self, bytes: usize, local: &Local) {
        let tally = &self.shared.flow.tally;
        tally.record_received(bytes);
        if self.tail || self.ends_with_its_last {
            tally.last_ns.set(monotonic_ns());
        }
        if self.measuring && self.role == Role::Client && self.goal.record(bytes as u64) {
            local.ring_conductor();
        }
    }

    /// Whether another block may be sent.
    #[inline]
    fn may_send(&mut self, bytes: usize, local: &Local) -> bool {
        if !self.measuring || self.role == Role::Server || !self.goal.is_set() {
            return true;
        }
        let granted = self.goal.claim(bytes as u64);
        if granted {
            self.claimed_bytes += bytes as u64;
        } else {
            local.ring_conductor();
        }
        granted
    }

    /// Nothing is sent until then.
    fn pause(&mut self, until_ns: u64) -> Turn {
        self.rests = true;
        Turn::Pause { until_ns }
    }

    /// Sent so much, of what was claimed where anything was.
    #[inline]
    fn record_sent(&mut self, bytes: usize, local: &Local) {
        self.rests = false;
        self.shared.flow.tally.record_sent(bytes);
        let settled_bytes = self.claimed_bytes.min(bytes as u64);
        if settled_bytes > 0 {
            self.settle(settled_bytes, local);
        }
    }

    /// There is nothing more to send, whatever was claimed.
    fn exhaust(&mut self, local: &Local) {
        self.goal.exhaust();
        self.settle(self.claimed_bytes, local);
    }

    #[inline]
    fn settle(&mut self, bytes: u64, local: &Local) {
        self.claimed_bytes -= bytes;
        if self.goal.settle(bytes) {
            local.ring_conductor();
        }
    }

    fn end(&mut self, error: Option<FlowError>, local: &Local) -> Turn {
        let flow = &self.shared.flow;
        // Waiting for more of the tail is no part of the test, nor is sleeping through its end.
        if !self.tail && !self.rests && !self.ends_with_its_last {
            flow.tally.last_ns.set(monotonic_ns());
        }
        // The kernel forgets some of it when the connection ends.
        let tcp = flow.socket.as_ref().and_then(|socket| tcp_status(socket.as_fd()));
        if let (Some(tcp), Some(socket)) = (&tcp, &flow.socket) {
            self.shared.tally.resent.set(tcp.retransmitted_segments.into());
            if self.role == Role::Server && self.shared.sends {
                // Up to 3.15 a client that has a part of a block waits for the rest before it hears
                // that its results are wanted: it is told that there is none.
                let _gone = socket.shutdown(Shutdown::Write);
            }
        }
        flow.set_ended(Ending { error, tcp, ..Ending::default() }, local);
        Turn::Ended
    }
}
