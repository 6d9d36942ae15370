//! The client's connections that come and go: each is begun when it is due and seen through.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_measure::step::{Churn, Step, flow_steps};
use linerate_measure::{Handshake, Workload};
use linerate_wire::native::opening::{OPENING_BYTES, Opening};
use socket2::Socket;

use super::attempt::{Attempt, Script};
use super::{DONE, Quic, Side, Sockets};
use crate::clock::monotonic_ns;
use crate::connections::{Due, Milestones, Slots};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::{Phase, Reached};
use crate::shard::Inlet;
use crate::transport::quic::{ClientSide, Event, Link};

/// The part of a load of connections that falls to one shard.
pub(crate) struct QuicDialer {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
    pub(crate) inlet: Receiver<Socket>,
}

/// What sits in one of the places.
#[derive(Default)]
struct Dial {
    attempt: Option<(Link, Attempt)>,
}

struct Caller {
    client: ClientSide,
    server: std::net::SocketAddr,
    script: Script,
    /// How connections are to agree on their keys.
    handshake: Handshake,
    slots: Slots,
    dials: Vec<Dial>,
    /// Places whose connection has its response, and waits for the ticket that the next needs.
    parting: Vec<usize>,
    /// Which place a connection has.
    dial_of: HashMap<Link, usize>,
}

impl QuicDialer {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let flows = self.flows.clone();
        let sockets = Sockets::new(&self.quic, &self.workload, self.inlet);
        let caller = Caller::new(&self.quic, &self.workload, self.flows, self.shard, local);
        let (Some(mut caller), Ok(mut sockets)) = (caller, sockets) else {
            flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        loop {
            if sockets.take_new(waker).is_some() {
                flows.iter().for_each(|flow| flow.set_ready(local));
            }
            let more_in = sockets.take_in();
            while let Some((link, event)) = sockets.poll_event() {
                caller.handle(link, &event, local);
            }
            caller.part(local);
            let (reached, now_ns) = (local.reached(), monotonic_ns());
            if caller.is_over(reached, now_ns) || sockets.is_released() {
                break;
            }
            if reached.phase > Phase::Hold {
                caller.begin_due(reached, &mut sockets);
                caller.sweep(now_ns);
            }
            let more_out = sockets.send_out();
            if !more_in && !more_out {
                let at_most_ns = caller.slots.wait_at_most_ns(reached.phase);
                sockets.wait(Duration::from_nanos(at_most_ns), waker, reached.phase);
            }
        }
        caller.slots.leave(monotonic_ns(), local);
        sockets.close();
    }
}

impl Caller {
    /// `None` where the shard has nothing to do.
    fn new(
        quic: &Quic,
        workload: &Workload,
        flows: Vec<Arc<FlowShared>>,
        (shard, _): (usize, usize),
        local: &Local,
    ) -> Option<Self> {
        let Side::Client { server, client, agreement } = quic.side.clone() else { return None };
        let steps: Vec<Churn> = flows
            .iter()
            .filter_map(|flow| match flow_steps(workload, flow.number).client.pop() {
                Some(Step::Connect(step)) => Some(step),
                _ => None,
            })
            .collect();
        let (request, response) = steps.first()?.life.amounts();
        let (request_bytes, response_bytes) = (as_length(request), as_length(response));
        let opening = Opening { flow: shard as u32, token: quic.token };
        let mut first_bytes = opening.encode().to_vec();
        first_bytes.extend_from_slice(local.pattern.slice(0, request_bytes));
        let mut slots = Slots::new(&steps, flows)?;
        let handshake = agreement.wanted();
        slots.count_handshakes(agreement);
        Some(Self {
            client,
            server,
            script: Script { first_bytes, response_bytes },
            handshake,
            dials: (0..slots.len()).map(|_| Dial::default()).collect(),
            slots,
            parting: Vec::new(),
            dial_of: HashMap::new(),
        })
    }

    fn is_over(&mut self, reached: Reached, now_ns: u64) -> bool {
        if reached.phase == Phase::Abort {
            for index in 0..self.dials.len() {
                self.give_up(index, "given_up", now_ns);
            }
            return true;
        }
        self.slots.are_done(reached, now_ns)
    }

    fn begin_due(&mut self, reached: Reached, sockets: &mut Sockets) {
        if reached.phase >= Phase::Stop {
            return;
        }
        self.slots.open_turn(reached);
        while let Some(due) = self.slots.take_due() {
            self.begin(&due, sockets);
        }
    }

    fn begin(&mut self, due: &Due, sockets: &mut Sockets) {
        let began_ns = monotonic_ns();
        let endpoint = &mut sockets.endpoint;
        let made = endpoint.connect(0, self.server, "linerate", &self.client).and_then(|place| {
            let gone = std::io::ErrorKind::NotConnected;
            Ok((place, endpoint.connection(place).cloned().ok_or(gone)?))
        });
        let index = due.index;
        let Some(dial) = self.dials.get_mut(index) else { return };
        self.slots.note_first(index, began_ns);
        match made {
            Ok((place, connection)) => {
                let due_ns = due.scheduled_ns.unwrap_or(began_ns);
                let mut attempt = Attempt::new(connection, due_ns, began_ns, due.warm_up);
                let begun = attempt.begin_early(&self.script, self.slots.tally(index));
                dial.attempt = Some((place, attempt));
                self.dial_of.insert(place, index);
                if let Err(error) = begun {
                    self.give_up(index, error_kind(&error), began_ns);
                }
            }
            Err(error) => self.slots.fail(index, error_kind(&error), due.warm_up, began_ns),
        }
    }

    fn handle(&mut self, place: Link, event: &Event, local: &mut Local) {
        let Some(&index) = self.dial_of.get(&place) else { return };
        if let Event::Closed(cause) = event {
            return self.give_up(index, error_kind(&cause.error()), monotonic_ns());
        }
        let Some(dial) = self.dials.get_mut(index) else { return };
        let Some((_, attempt)) = &mut dial.attempt else { return };
        match attempt.handle(event, &self.script, self.slots.tally(index)) {
            Ok(false) => {}
            Ok(true) if self.handshake == Handshake::Full => self.finish(index, local),
            Ok(true) => self.parting.push(index),
            Err(error) => self.give_up(index, error_kind(&error), monotonic_ns()),
        }
    }

    /// Sees out connections that have all they came for.
    fn part(&mut self, local: &mut Local) {
        for index in std::mem::take(&mut self.parting) {
            match self.dials.get(index).and_then(|dial| dial.attempt.as_ref()) {
                Some((_, attempt)) if attempt.has_ticket() => self.finish(index, local),
                Some(_) => self.parting.push(index),
                None => {}
            }
        }
    }

    fn take_attempt(&mut self, index: usize) -> Option<Attempt> {
        let (place, attempt) = self.dials.get_mut(index)?.attempt.take()?;
        self.dial_of.remove(&place);
        Some(attempt)
    }

    fn finish(&mut self, index: usize, local: &mut Local) {
        let Some(attempt) = self.take_attempt(index) else { return };
        let handshake = attempt.handshake();
        // What waits for a ticket has been done before.
        let done_ns = attempt.answered_ns;
        attempt.close(DONE);
        let closed_ns = if self.handshake == Handshake::Full { monotonic_ns() } else { done_ns };
        let times = Milestones {
            due_ns: attempt.due_ns,
            began_ns: attempt.began_ns,
            established_ns: attempt.established_ns,
            first_byte_ns: attempt.first_byte_ns,
            closed_ns,
            warm_up: attempt.warm_up,
            handshake: Some(handshake),
        };
        self.slots.finish(index, &times, local);
    }

    /// A connection under way comes to nothing.
    fn give_up(&mut self, index: usize, kind: &'static str, now_ns: u64) {
        let Some(attempt) = self.take_attempt(index) else { return };
        attempt.close(DONE);
        self.slots.fail(index, kind, attempt.warm_up, now_ns);
    }

    /// Ends connections that take too long, and pauses that have been long enough.
    fn sweep(&mut self, now_ns: u64) {
        self.slots.end_pauses(now_ns);
        let Some(oldest_ns) = self.slots.oldest_begin(now_ns) else { return };
        for index in 0..self.dials.len() {
            let begun = self.dials.get(index).and_then(|dial| dial.attempt.as_ref());
            if begun.is_some_and(|(_, attempt)| attempt.began_ns < oldest_ns) {
                self.give_up(index, "timed_out", now_ns);
            }
        }
    }
}

/// A number of bytes as a length in memory.
pub(super) fn as_length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes before the request, which are no payload.
pub(super) const NO_PAYLOAD_BYTES: usize = OPENING_BYTES;
