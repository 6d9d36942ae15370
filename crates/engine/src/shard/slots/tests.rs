use std::cell::RefCell;
use std::io::{Read, Write};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use linerate_measure::step::{Content, Exchange, Framing, Step, StepEnd};
use socket2::{Domain, Socket, Type};

use super::*;
use crate::flow::{ActiveFlows, FlowShared, Fresh, Over};
use crate::latencies::Latencies;
use crate::pattern::Pattern;
use crate::phase::SharedPhase;
use crate::ready_count::ReadyCount;
use crate::waker::Waker;

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
    let waker = Arc::new(Waker::new().unwrap());
    let mut slots = Slots::default();
    slots.add(Box::new(Scripted { socket, turns: turns.iter().copied().collect() }));
    let latencies = Latencies::default();
    let phase = Arc::new(SharedPhase::new());
    let (pattern, ready_count) = (Arc::new(Pattern::new(1)), Arc::new(ReadyCount::new(1)));
    (slots, Local::new(1, pattern, latencies, phase, ready_count, waker, false))
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

#[test]
fn at_the_opening_nobody_is_asked_who_waits_for_its_socket() {
    let looks = |turn| {
        let (mut slots, mut local) = scripted(&[turn]);
        slots.run_queue(&mut local);
        slots.handle_opening();
        slots.has_queue()
    };
    let waits = [Turn::Held, Turn::Pause { until_ns: 9 }, Turn::READY, wait(9)];
    assert_eq!(waits.map(looks), [true, true, false, false]);
}

const ASKING: u32 = 5;

/// Flows that ask with one byte for one, of which so many may be active, and the other ends of their
/// connections.
fn asking(most: usize, end: StepEnd) -> (Slots, Local, Arc<SharedPhase>, Vec<Socket>) {
    let phase = Arc::new(SharedPhase::new());
    let (pattern, ready_count) = (Arc::new(Pattern::new(1)), Arc::new(ReadyCount::new(ASKING)));
    let (latencies, waker) = (Latencies::default(), Arc::new(Waker::new().unwrap()));
    let mut local =
        Local::new(1, pattern, latencies, Arc::clone(&phase), ready_count, waker, false);
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
    slots.handle_opening();
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
