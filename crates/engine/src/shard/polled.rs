//! Many flows in an edge-triggered poll set.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{self, PollFd, PollFlags};
use rustix::time::Timespec;

use super::inlet::{Coming, Inlet};
use super::slots::Slots;
use crate::clock::monotonic_ns;
use crate::flow::Local;
use crate::phase::Phase;
use crate::poll::timespec;

/// Marks the waker among the events.
const WAKER: u64 = u64::MAX;
/// Events taken at once.
const EVENTS: usize = 256;
/// Up to so many flows, a spinning shard tries every socket rather than ask which is ready.
const FEW_FLOWS: usize = 8;
/// Before the load begins a spinning shard sleeps as others do, and where it tries every socket it does so once
/// in this time.
const HELD_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// A spinning shard looks at the clock once in so many rounds.
const ROUNDS_PER_TIME: u32 = 64;
/// A spinning shard looks for new flows and a new phase once in so many rounds.
const ROUNDS_PER_LOOK: u32 = 256;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// epoll_wait(2) counts in milliseconds, which is no pace for waits shorter than this; ppoll(2)
/// counts in nanoseconds and costs a call more.
const COARSE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// A longer wait ends so much too early, and the rest is waited for in nanoseconds.
const REST_NS: u64 = 10_000_000;

/// Runs until all `expected` flows have come and ended, or no more can come; returns them.
pub(super) fn run(inlet: &Inlet, expected: usize, spinning: bool, local: &mut Local) -> Slots {
    // Without a poll set every socket is tried in every round: slower, never wrong.
    let poll = epoll::create(CreateFlags::CLOEXEC).ok();
    if let Some(poll) = &poll {
        let _polled_by_rounds =
            epoll::add(poll, inlet.as_fd(), EventData::new_u64(WAKER), EventFlags::IN);
    }
    // Where every socket is tried anyway, the poll set would only cost each arrival its notice.
    let try_all = poll.is_none() || (spinning && expected <= FEW_FLOWS);
    let sockets = poll.as_ref().filter(|_| !try_all);
    let mut slots = Slots::default();
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    let mut rounds = 0_u32;
    let mut open = true;
    let mut seen = Phase::Hold;
    loop {
        slots.run_queue(local);
        // Looked at before the wait: after the last flow's end the waker may not be used any more.
        if slots.ended() >= expected || (!open && slots.ended() >= slots.len()) {
            return slots;
        }
        let held = seen == Phase::Hold;
        if slots.has_times() && (!spinning || held || rounds.is_multiple_of(ROUNDS_PER_TIME)) {
            slots.handle_time(monotonic_ns());
        }
        rounds = rounds.wrapping_add(1);
        if try_all && (held || !rounds.is_multiple_of(ROUNDS_PER_LOOK)) {
            slots.try_sockets();
        }
        if try_all && !held && !rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            continue;
        }
        let timeout = match held {
            true if try_all => Some(HELD_WAIT),
            false if spinning => Some(NO_WAIT),
            _ => wait_at_most(&slots),
        };
        if take_events(poll.as_ref(), &mut events, timeout, &mut slots) {
            inlet.silence();
            open = take_new(inlet, sockets, &mut slots);
            // Every arrival wakes the shard too; the flows needn't know.
            let phase = local.phase();
            match (seen, phase) {
                (Phase::Hold, Phase::Measure) => slots.handle_opening(),
                _ if seen != phase => slots.handle_phase(phase),
                _ => {}
            }
            seen = phase;
        }
    }
}

/// Waits for events and hands them on; says whether the shard's waker was used.
fn take_events(
    poll: Option<&OwnedFd>,
    events: &mut Vec<Event>,
    timeout: Option<Timespec>,
    slots: &mut Slots,
) -> bool {
    let Some(poll) = poll else { return true };
    let mut woken = false;
    events.clear();
    let mut timeout = timeout;
    if timeout.is_some_and(|wait| NO_WAIT < wait && wait < COARSE_WAIT) {
        let mut polled = [PollFd::new(poll, PollFlags::IN)];
        let _interrupted = event::poll(&mut polled, timeout.as_ref());
        timeout = Some(NO_WAIT);
    }
    // Interrupted by a signal: a round with no events.
    let _interrupted = epoll::wait(poll, spare_capacity(events), timeout.as_ref());
    for event in events.iter() {
        match event.data.u64() {
            WAKER => woken = true,
            index => slots.handle_ready(usize::try_from(index).unwrap_or(usize::MAX)),
        }
    }
    woken
}

/// How long to wait for events; `None`: until there is one.
fn wait_at_most(slots: &Slots) -> Option<Timespec> {
    if slots.has_queue() {
        return Some(NO_WAIT);
    }
    let mut wait_ns = slots.next_time()?.saturating_sub(monotonic_ns());
    if wait_ns >= COARSE_WAIT.tv_nsec as u64 {
        wait_ns -= REST_NS;
    }
    Some(timespec(wait_ns))
}

/// Takes the flows that have come; says whether more can.
fn take_new(inlet: &Inlet, poll: Option<&OwnedFd>, slots: &mut Slots) -> bool {
    loop {
        match inlet.take() {
            Coming::Flow(flow) => {
                if let Some(poll) = poll {
                    let edges = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                    let data = EventData::new_u64(slots.len() as u64);
                    // A flow that can't be polled ends when its peer or the conductor ends it.
                    let _unpolled = epoll::add(poll, flow.socket().as_fd(), data, edges);
                }
                slots.add(flow);
            }
            // No load has flows and these.
            Coming::Connection(..) => {}
            Coming::Nothing => return true,
            Coming::Closed => return false,
        }
    }
}
