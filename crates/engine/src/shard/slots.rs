//! The flows of a polled shard, who is due for a turn, and who waits for what.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::flow::{Drive, Local, Turn};
use crate::phase::Phase;

/// Entries of the heap that may have lost their meaning before it is cleaned, beside one a flow.
const MOST_PASSED_OVER: usize = 64;
/// Flows that rest and are ended at once.
const ENDED_AT_ONCE: usize = 16;
/// The most flows that receive one after the other before any of them sends. The kernel's code for either
/// leaves little room in the processor's first cache, so that a call is faster after one of its kind. (In a
/// bare loop with 100 flows on two processors 1.053 of the rate, with 16 at a time 1.043, with 64 1.058; with
/// 1,000 flows, whose sockets leave the caches meanwhile, 64 bring nothing, 16 bring 1.039.)
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

struct Slot {
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
    slots: Vec<Slot>,
    queue: VecDeque<usize>,
    /// Who has received and is about to send.
    senders: Vec<usize>,
    /// Who waits for a place among the active flows, in the order of their turns.
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
        self.slots.push(Slot {
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

    /// The phase has changed, to this one: everybody looks at it, but those who rest have nothing to do until
    /// it is over.
    pub(crate) fn handle_phase(&mut self, phase: Phase) {
        for index in 0..self.slots.len() {
            if matches!(self.slots[index].waiting, Waiting::Socket | Waiting::Time | Waiting::Phase)
            {
                self.enqueue(index);
            }
        }
        self.ending |= phase >= Phase::Stop;
    }

    /// Whoever waits for a socket may try it.
    pub(crate) fn try_sockets(&mut self) {
        for index in 0..self.slots.len() {
            self.handle_ready(index);
        }
    }

    /// Gives everybody a turn whose time has come.
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

    /// Gives a turn to everybody who is in the queue now. Those who rest and for whom a place has become free
    /// are in the queue then; at the end some of those who rest, so that they don't keep those waiting whose
    /// responses come.
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

    /// Gives a turn to so many who are in the queue, then another to those who are about to send.
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
mod tests {
    use std::cell::RefCell;
    use std::io::{Read, Write};
    use std::ops::Range;
    use std::rc::Rc;
    use std::sync::Arc;

    use linerate_wire::step::{Content, Exchange, Framing, Step, StepEnd};
    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::flow::{ActiveFlows, FlowShared, Fresh, Over};
    use crate::latencies::Latencies;
    use crate::load::{Bell, Census};
    use crate::pattern::Pattern;
    use crate::phase::SharedPhase;

    /// A flow whose turns end as written down, and then for ever as the last one.
    struct Scripted {
        socket: Socket,
        turns: VecDeque<Turn>,
    }

    impl Drive for Scripted {
        fn turn(&mut self, _local: &mut Local) -> Turn {
            self.turns.pop_front().unwrap_or(Turn::READY)
        }

        fn socket(&self) -> &Socket {
            &self.socket
        }
    }

    fn scripted(turns: &[Turn]) -> (Slots, Local) {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let bell = Arc::new(Bell::new().unwrap());
        let mut slots = Slots::default();
        slots.add(Box::new(Scripted { socket, turns: turns.iter().copied().collect() }));
        let latencies = Latencies::default();
        let phase = Arc::new(SharedPhase::new());
        let (pattern, census) = (Arc::new(Pattern::new(1)), Arc::new(Census::new(1)));
        (slots, Local::new(1, pattern, latencies, phase, census, bell, false))
    }

    fn wait(until_ns: u64) -> Turn {
        Turn::Wait { until_ns: Some(until_ns) }
    }

    #[test]
    fn a_deadline_that_moves_ahead_is_kept() {
        let turns = [wait(200), wait(50), Turn::Pause { until_ns: 20 }, wait(300)];
        let (mut slots, mut local) = scripted(&turns);
        for next_ns in [200, 50, 20] {
            slots.run_queue(&mut local);
            assert_eq!(slots.next_time(), Some(next_ns));
            slots.enqueue(0);
        }
        slots.run_queue(&mut local);
        // The entries at 20, 50 and 200 come up, and nobody gets a turn before 300.
        for now_ns in [20, 50, 200, 299] {
            slots.handle_time(now_ns);
            assert!(!slots.has_queue(), "{now_ns}");
        }
        slots.handle_time(300);
        assert!(slots.has_queue());
    }

    const ASKING: u32 = 5;

    /// Flows that ask with one byte for one, of which so many may be active, and the other ends of their
    /// connections.
    fn asking(most: usize, end: StepEnd) -> (Slots, Local, Arc<SharedPhase>, Vec<Socket>) {
        let phase = Arc::new(SharedPhase::new());
        let (pattern, census) = (Arc::new(Pattern::new(1)), Arc::new(Census::new(ASKING)));
        let (latencies, bell) = (Latencies::default(), Arc::new(Bell::new().unwrap()));
        let mut local = Local::new(1, pattern, latencies, Arc::clone(&phase), census, bell, false);
        local.active = ActiveFlows::new(most, ASKING as usize);
        let (mut slots, mut peers) = (Slots::default(), Vec::new());
        for number in 0..ASKING {
            let (socket, peer) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            peer.set_nonblocking(true).unwrap();
            let shared = Arc::new(FlowShared::new(number, None));
            let steps = vec![Step::Exchange(exchange(end))];
            let fresh = Fresh { shared, steps, over: Over::Tcp };
            slots.add(fresh.begin(Arc::new(socket)));
            peers.push(peer);
        }
        (slots, local, phase, peers)
    }

    fn exchange(end: StepEnd) -> Exchange {
        Exchange {
            end,
            request_bytes: 1,
            response_bytes: 1,
            outstanding: 1,
            schedule: None,
            timeout_ns: None,
            content: Content::Filler,
            framing: Framing::None,
        }
    }

    /// The flows of which a request has come, and was taken.
    fn asked(peers: &[Socket]) -> Vec<usize> {
        (0..peers.len()).filter(|peer| (&peers[*peer]).read(&mut [0; 9]).is_ok()).collect()
    }

    /// The flow's request is answered.
    fn answer(index: usize, peers: &[Socket], slots: &mut Slots, local: &mut Local) {
        (&peers[index]).write_all(&[0]).unwrap();
        slots.handle_ready(index);
        slots.run_queue(local);
    }

    /// The gate opens.
    fn open(phase: &SharedPhase, slots: &mut Slots, local: &mut Local) {
        slots.run_queue(local);
        assert_eq!((slots.has_queue(), slots.ended()), (false, 0));
        phase.advance_to(Phase::Measure, 1);
        slots.handle_phase(Phase::Measure);
        slots.run_queue(local);
        slots.run_queue(local);
    }

    #[test]
    fn flows_take_turns_in_being_active() {
        let (mut slots, mut local, phase, peers) = asking(2, StepEnd::Peer);
        open(&phase, &mut slots, &mut local);
        assert_eq!(asked(&peers), [0, 1]);
        assert_eq!((slots.has_queue(), slots.resting.len()), (false, 3));
        for request in 1..16 {
            answer(1, &peers, &mut slots, &mut local);
            assert_eq!(asked(&peers), [1], "{request}");
        }
        // Nobody sees to the places but the queue.
        answer(1, &peers, &mut slots, &mut local);
        assert!(slots.has_queue() && asked(&peers).is_empty());
        slots.run_queue(&mut local);
        assert_eq!(asked(&peers), [2]);
        phase.advance_to(Phase::Stop, 2);
        slots.handle_phase(Phase::Stop);
        slots.run_queue(&mut local);
        slots.run_queue(&mut local);
        assert_eq!((slots.ended(), local.active.free()), (3, 0));
        answer(0, &peers, &mut slots, &mut local);
        answer(2, &peers, &mut slots, &mut local);
        assert_eq!((slots.ended(), local.active.free(), slots.has_queue()), (5, 2, false));
    }

    #[test]
    fn the_place_of_a_flow_that_breaks_is_free_for_others() {
        let (mut slots, mut local, phase, mut peers) = asking(1, StepEnd::Peer);
        open(&phase, &mut slots, &mut local);
        assert_eq!(asked(&peers), [0]);
        drop(peers.remove(0));
        slots.handle_ready(0);
        slots.run_queue(&mut local);
        slots.run_queue(&mut local);
        assert_eq!((slots.ended(), asked(&peers)), (1, vec![0]));
    }

    #[test]
    fn a_flow_whose_last_request_is_its_turns_last_ends_with_it() {
        let (mut slots, mut local, phase, peers) = asking(1, StepEnd::Count { count: 16 });
        open(&phase, &mut slots, &mut local);
        for _ in 0..16 {
            assert_eq!((slots.ended(), asked(&peers)), (0, vec![0]));
            answer(0, &peers, &mut slots, &mut local);
        }
        assert_eq!((slots.ended(), local.active.free()), (1, 1));
    }

    /// A flow that receives and sends, and notes either with its number.
    struct Noting {
        number: usize,
        socket: Socket,
        notes: Rc<RefCell<Vec<(&'static str, usize)>>>,
    }

    impl Drive for Noting {
        fn turn(&mut self, local: &mut Local) -> Turn {
            let (what, turn) = match (local.receives_together, self.notes.borrow().last()) {
                (true, _) => ("received", Turn::ThenSend),
                (false, Some(("received" | "sent", _))) => ("sent", Turn::READY),
                (false, _) => ("received and sent", Turn::READY),
            };
            self.notes.borrow_mut().push((what, self.number));
            turn
        }

        fn socket(&self) -> &Socket {
            &self.socket
        }
    }

    #[test]
    fn flows_that_are_ready_together_receive_before_any_of_them_sends() {
        const MOST: usize = RECEIVING_TOGETHER;
        for (flows, expected) in [
            (1, vec![("received and sent", 0..1)]),
            (2, vec![("received", 0..2), ("sent", 0..2)]),
            (
                MOST + 2,
                vec![
                    ("received", 0..MOST),
                    ("sent", 0..MOST),
                    ("received", MOST..MOST + 2),
                    ("sent", MOST..MOST + 2),
                ],
            ),
        ] {
            let (_, mut local) = scripted(&[Turn::READY]);
            let (mut slots, notes) = (Slots::default(), Rc::default());
            for number in 0..flows {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
                slots.add(Box::new(Noting { number, socket, notes: Rc::clone(&notes) }));
            }
            slots.run_queue(&mut local);
            let each = |(what, flows): (_, Range<usize>)| flows.map(move |flow| (what, flow));
            let expected: Vec<_> = expected.into_iter().flat_map(each).collect();
            assert_eq!(*notes.borrow(), expected, "{flows}");
            assert!(!slots.has_queue() && !local.receives_together, "{flows}");
        }
    }

    #[test]
    fn few_of_those_who_rest_end_at_once() {
        let (mut slots, mut local) = scripted(&[Turn::READY]);
        slots.resting = (0..100).map(|_| 0).collect();
        slots.handle_phase(Phase::Stop);
        slots.run_queue(&mut local);
        assert_eq!((slots.queue.len(), slots.resting.len()), (ENDED_AT_ONCE, 100 - ENDED_AT_ONCE));
    }

    #[test]
    fn deadlines_that_come_and_go_take_no_memory() {
        let turns: Vec<Turn> = (0..10_000).flat_map(|n| [wait(1_000_000 + n), wait(n)]).collect();
        let (mut slots, mut local) = scripted(&turns);
        for now_ns in 0..10_000 {
            slots.run_queue(&mut local);
            slots.enqueue(0);
            slots.run_queue(&mut local);
            slots.handle_time(now_ns);
            assert!(slots.has_queue(), "{now_ns}");
            assert!(slots.times.len() < 80, "{}", slots.times.len());
        }
    }
}
