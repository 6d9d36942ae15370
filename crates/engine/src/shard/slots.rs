//! The flows of a polled shard: which of them are due for a turn, and what the others wait for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::flow::{Drive, Local, Turn};
use crate::phase::Phase;

/// Entries of the heap that may have lost their meaning before it is cleaned, beside one a flow.
const MOST_PASSED_OVER: usize = 64;
/// Flows that rest and are ended at once.
const ENDED_AT_ONCE: usize = 16;
/// The most flows that receive one after the other before any of them sends. The kernel's code for either
/// leaves little room in the processor's first cache, so that a call is faster after one of its kind. With
/// very many, the flows' sockets leave the caches meanwhile.
const RECEIVING_TOGETHER: usize = 32;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Its turn: it is in the queue.
    Turn,
    /// Its socket.
    Socket,
    /// A time.
    Time,
    /// The phase to change.
    Phase,
    /// A place among the active flows.
    Place,
    /// Nothing more.
    Nothing,
}

struct FlowSlot {
    flow: Box<dyn Drive>,
    waiting: Waiting,
    /// When the flow wants a turn at the latest.
    due_ns: u64,
    /// The time of the flow's entry in the heap that counts; `u64::MAX`: it has none. One that
    /// comes up early goes back with the time that holds by then, so that a deadline which moves
    /// on with every transaction costs nothing. One that comes up late is of no use: a deadline
    /// that moves ahead gets a new entry, and the old one is passed over.
    entry_ns: u64,
}

/// The flows of a polled shard.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<FlowSlot>,
    queue: VecDeque<usize>,
    /// Flows that have received and are about to send.
    senders: Vec<usize>,
    /// Flows that wait for a place among the active flows, in the order of their turns.
    resting: VecDeque<usize>,
    /// Whether they are to end.
    ending: bool,
    times: BinaryHeap<Reverse<(u64, usize)>>,
    ended: usize,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn ended(&self) -> usize {
        self.ended
    }

    /// Adds a flow, due for its first turn; its index is the length before.
    pub(crate) fn add(&mut self, flow: Box<dyn Drive>) {
        let index = self.slots.len();
        self.slots.push(FlowSlot {
            flow,
            waiting: Waiting::Turn,
            due_ns: u64::MAX,
            entry_ns: u64::MAX,
        });
        self.queue.push_back(index);
    }

    /// The flow's socket has become ready.
    pub(crate) fn handle_ready(&mut self, index: usize) {
        if self.slots.get(index).is_some_and(|slot| slot.waiting == Waiting::Socket) {
            self.enqueue(index);
        }
    }

    /// The phase has changed, to this one. All flows look at it except resting ones, which have nothing to do
    /// until they are called.
    pub(crate) fn handle_phase(&mut self, phase: Phase) {
        self.enqueue_all(&[Waiting::Socket, Waiting::Time, Waiting::Phase]);
        self.ending |= phase >= Phase::Stop;
    }

    /// The load has been opened, and all that is done counts. A flow that waits for its socket has done nothing
    /// yet and looks when the socket is ready. (When a server's 100,000 flows all looked, 0.3 s passed without an
    /// answer.)
    pub(super) fn handle_opening(&mut self) {
        self.enqueue_all(&[Waiting::Time, Waiting::Phase]);
    }

    fn enqueue_all(&mut self, waiting: &[Waiting]) {
        for index in 0..self.slots.len() {
            if waiting.contains(&self.slots[index].waiting) {
                self.enqueue(index);
            }
        }
    }

    /// Flows that wait for their sockets may try them.
    pub(crate) fn try_sockets(&mut self) {
        for index in 0..self.slots.len() {
            self.handle_ready(index);
        }
    }

    /// Gives a turn to every flow whose time has come.
    pub(crate) fn handle_time(&mut self, now_ns: u64) {
        while let Some(&Reverse((due_ns, index))) = self.times.peek() {
            if due_ns > now_ns {
                return;
            }
            self.times.pop();
            let slot = &mut self.slots[index];
            if slot.entry_ns != due_ns {
                continue;
            }
            slot.entry_ns = u64::MAX;
            if !matches!(slot.waiting, Waiting::Socket | Waiting::Time) {
                continue;
            }
            if slot.due_ns <= now_ns {
                self.enqueue(index);
            } else {
                self.push_time(index);
            }
        }
    }

    /// When `handle_time` is next of use; `None`: never.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.times.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    pub(crate) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Gives a turn to every flow in the queue now. Then queues as many resting flows as there are free places
    /// among the active flows; they come last, so that they don't delay flows with a response.
    pub(crate) fn run_queue(&mut self, local: &mut Local) {
        let mut left = self.queue.len();
        while left > 0 {
            let together = left.min(RECEIVING_TOGETHER);
            self.run_together(together, local);
            left -= together;
        }
        let called = if self.ending { ENDED_AT_ONCE } else { local.active.free() };
        for _ in 0..called.min(self.resting.len()) {
            let Some(index) = self.resting.pop_front() else { return };
            self.enqueue(index);
        }
    }

    /// Gives a turn to so many flows of the queue, then another to those that are about to send.
    fn run_together(&mut self, flows: usize, local: &mut Local) {
        local.receives_together = flows > 1;
        for _ in 0..flows {
            let Some(index) = self.queue.pop_front() else { break };
            match self.slots[index].flow.turn(local) {
                Turn::ThenSend => self.senders.push(index),
                turn => self.handle_turn(index, turn),
            }
        }
        local.receives_together = false;
        for sender in 0..self.senders.len() {
            let index = self.senders[sender];
            let turn = self.slots[index].flow.turn(local);
            self.handle_turn(index, turn);
        }
        self.senders.clear();
    }

    fn handle_turn(&mut self, index: usize, turn: Turn) {
        let slot = &mut self.slots[index];
        (slot.waiting, slot.due_ns) = match turn {
            Turn::Again | Turn::ThenSend => (Waiting::Turn, u64::MAX),
            Turn::Wait { until_ns } => (Waiting::Socket, until_ns.unwrap_or(u64::MAX)),
            Turn::Pause { until_ns } => (Waiting::Time, until_ns),
            Turn::Held => (Waiting::Phase, u64::MAX),
            Turn::Rest => (Waiting::Place, u64::MAX),
            Turn::Ended => (Waiting::Nothing, u64::MAX),
        };
        match slot.waiting {
            Waiting::Turn => self.queue.push_back(index),
            Waiting::Place => self.resting.push_back(index),
            Waiting::Nothing => self.ended += 1,
            _ => self.push_time(index),
        }
    }

    /// Sees to it that the heap has an entry that comes up in time for the flow.
    fn push_time(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.due_ns >= slot.entry_ns {
            return;
        }
        slot.entry_ns = slot.due_ns;
        self.times.push(Reverse((slot.due_ns, index)));
        if self.times.len() > 2 * self.slots.len() + MOST_PASSED_OVER {
            let slots = &self.slots;
            self.times.retain(|Reverse((due_ns, index))| slots[*index].entry_ns == *due_ns);
        }
    }

    fn enqueue(&mut self, index: usize) {
        self.slots[index].waiting = Waiting::Turn;
        self.queue.push_back(index);
    }
}

#[cfg(test)]
mod tests;
