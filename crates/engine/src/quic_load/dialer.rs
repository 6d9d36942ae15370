//! The client's connections that come and go: each is begun when it is due and seen through.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use linerate_measure::Workload;
use linerate_measure::step::Churn;
use linerate_wire::native::opening::Opening;
use socket2::Socket;

use super::carrier::QuicCarrier;
use super::{Quic, Side, Sockets};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::connections::{Advanced, Attempt, Attempts, Due, Part, Slots};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::{Phase, Reached};
use crate::shard::Inlet;
use crate::transport::quic::{ClientSide, Event, Link, StreamAbort, shared_pattern};

/// The part of a load of connections that falls to one shard.
pub(crate) struct QuicDialer {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    /// What all its flows do together; absent: it has none.
    pub(crate) churn: Option<Churn>,
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// Which shard this is, of how many.
    pub(crate) shard: (usize, usize),
    pub(crate) inlet: Receiver<Socket>,
}

struct Dialer {
    client: ClientSide,
    server: SocketAddr,
    pattern: Bytes,
    attempts: Attempts<QuicCarrier>,
    /// Slots whose connection has something to do of which no event tells: it waits for the ticket that the next
    /// needs, or its time has come.
    due: Vec<usize>,
    /// The slot that the last connection at each place of the endpoint has or had.
    slots_of: Vec<usize>,
}

impl QuicDialer {
    /// Runs until the load is stopped and the last connection is closed.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let flows = self.flows.clone();
        let dialer = Dialer::new(&self.quic, self.churn, self.flows, self.shard, local);
        let sockets = Sockets::new(&self.quic, &self.workload, self.inlet);
        let (Some(mut dialer), Ok(mut sockets)) = (dialer, sockets) else {
            flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
            return;
        };
        loop {
            if sockets.take_new(waker).is_some() {
                dialer.attempts.slots.set_ready(local);
            }
            let more_in = sockets.take_in();
            while let Some((link, event)) = sockets.poll_event() {
                dialer.handle(link, &event, local);
            }
            dialer.advance_due(local);
            let (reached, now_ns) = (local.reached(), monotonic_ns());
            if dialer.attempts.are_over(reached, now_ns) || sockets.is_released() {
                break;
            }
            if reached.phase >= Phase::Stop {
                dialer.attempts.end_holds(&mut dialer.due);
            }
            if reached.phase > Phase::Hold {
                dialer.begin_due(reached, &mut sockets, local);
                dialer.attempts.sweep(now_ns);
            }
            let more_out = sockets.send_out();
            if !more_in && !more_out {
                let at_most_ns = dialer.attempts.wait_at_most_ns(reached.phase, now_ns);
                sockets.wait(Duration::from_nanos(at_most_ns), waker, reached.phase);
            }
        }
        dialer.attempts.slots.leave(monotonic_ns(), local);
        sockets.close();
    }
}

impl Dialer {
    /// `None` where the shard has nothing to do.
    fn new(
        quic: &Quic,
        churn: Option<Churn>,
        flows: Vec<Arc<FlowShared>>,
        (shard, shards): (usize, usize),
        local: &Local,
    ) -> Option<Self> {
        let Side::Client { server, client, agreement } = quic.side.clone() else { return None };
        let churn = churn?;
        let life = &churn.life;
        let opening = Opening { flow: shard as u32, token: quic.token };
        // QUIC agrees on the keys before anything is sent in a stream.
        let keys = (None, agreement.wanted());
        let mut part = Part::new(life, &Buffers::default(), Some(opening), keys, local);
        part.script = part.script.counting_texts_in(flows.first());
        let mut slots = Slots::new(&churn, flows);
        slots.count_handshakes(agreement);
        Some(Self {
            client,
            server,
            pattern: shared_pattern(&local.pattern),
            attempts: Attempts::new(part, slots, (shard, shards)),
            due: Vec::new(),
            slots_of: Vec::new(),
        })
    }

    fn begin_due(&mut self, reached: Reached, sockets: &mut Sockets, local: &mut Local) {
        if reached.phase >= Phase::Stop {
            return;
        }
        self.attempts.slots.open_turn(reached);
        while let Some(due) = self.attempts.slots.take_due() {
            self.begin(&due, sockets, local);
        }
    }

    fn begin(&mut self, due: &Due, sockets: &mut Sockets, local: &mut Local) {
        let began_ns = monotonic_ns();
        match self.connect(sockets) {
            Ok(carrier) => {
                let place = carrier.link.index as usize;
                if self.slots_of.len() <= place {
                    self.slots_of.resize(place + 1, usize::MAX);
                }
                self.slots_of[place] = due.index;
                self.attempts.begin(due, began_ns, carrier, ());
                self.advance(due.index, local);
            }
            Err(error) => {
                let slots = &mut self.attempts.slots;
                slots.note_first(due.index, began_ns);
                slots.fail(due.index, error_kind(&error), due.warm_up, began_ns);
            }
        }
    }

    fn connect(&self, sockets: &mut Sockets) -> io::Result<QuicCarrier> {
        let link = sockets.endpoint.connect(0, self.server, "linerate", &self.client)?;
        let connected = sockets.connected(link).ok_or(io::ErrorKind::NotConnected)?;
        Ok(QuicCarrier::new(link, connected, self.pattern.clone()))
    }

    /// The slot of a connection that is under way.
    fn slot_of(&self, link: Link) -> Option<usize> {
        let index = *self.slots_of.get(link.index as usize)?;
        (self.attempts.get(index)?.carrier.link == link).then_some(index)
    }

    fn handle(&mut self, link: Link, event: &Event, local: &mut Local) {
        let Some(index) = self.slot_of(link) else { return };
        let error = match event {
            Event::Stopped(_, code) => StreamAbort::Stopped(*code).into(),
            Event::Closed(cause) => {
                // What came before may be all that it waits for.
                self.advance(index, local);
                cause.error()
            }
            _ => return self.advance(index, local),
        };
        if self.slot_of(link).is_some() {
            self.attempts.give_up(index, &error, monotonic_ns());
        }
    }

    fn is_parting(&self, index: usize) -> bool {
        self.attempts.get(index).is_some_and(Attempt::is_parting)
    }

    fn advance_due(&mut self, local: &mut Local) {
        self.attempts.take_resumed(&mut self.due);
        for index in std::mem::take(&mut self.due) {
            self.advance(index, local);
            if self.is_parting(index) {
                self.due.push(index);
            }
        }
    }

    fn advance(&mut self, index: usize, local: &mut Local) {
        let was_parting = self.is_parting(index);
        match self.attempts.advance(index, false, local, &mut ()) {
            Advanced::Waits if !was_parting && self.is_parting(index) => self.due.push(index),
            Advanced::Waits => {}
            Advanced::Complete => self.attempts.finish(index, local),
            Advanced::Gone => {}
        }
    }
}
