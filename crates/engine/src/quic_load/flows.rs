//! Flows that stay: streams over connections that stand while the load lasts.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use bytes::Bytes;
use linerate_measure::Workload;
use linerate_measure::sample::QuicStatus;
use linerate_measure::step::{Step, flow_steps};
use linerate_wire::native::opening::Opening;
use socket2::Socket;

use super::Claims;
use super::flow::{Carried, Holder};
use super::{FOREIGN, LINGER, LONGEST_WAIT, Quic, Side, Sockets};
use crate::clock::monotonic_ns;
use crate::flow::{FlowError, FlowShared, Local};
use crate::phase::Phase;
use crate::shard::{Inlet, Slots};
use crate::socket::socket_drops;
use crate::transport::quic::{Cause, Dir, Event, Link, StreamId, shared_pattern};

/// Handshakes of a client's shard that are under way at a time.
const OPENING_AT_ONCE: usize = 64;

/// What connections say of their paths is published this often.
const PUBLISHING: Duration = Duration::from_millis(10);

/// The flows of a shard that go over QUIC.
pub(crate) struct QuicFlows {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    /// Those of this shard at the client.
    pub(crate) flows: Vec<Arc<FlowShared>>,
    /// All of the load's at the server, where the client chooses which shard a flow comes to.
    pub(crate) claims: Option<Arc<Claims>>,
    pub(crate) inlet: Receiver<Socket>,
}

struct FlowCarrier {
    quic: Quic,
    workload: Workload,
    pattern: Bytes,
    flows: Vec<Arc<FlowShared>>,
    claims: Option<Arc<Claims>>,
    slots: Slots,
    carried: HashMap<Link, Carried>,
    /// Streams whose last bytes haven't been acknowledged.
    undelivered: usize,
    /// Flows that ended before they began.
    never_begun: usize,
    /// Over which of its UDP sockets the client makes its connections.
    socket: Option<u32>,
    /// How many of them don't stand yet.
    opening: usize,
}

impl QuicFlows {
    /// Runs until every flow has ended (at the client) or the load is over (at the server).
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let Self { quic, workload, flows, claims, inlet } = self;
        let mut sockets = match Sockets::new(&quic, &workload, inlet) {
            Ok(sockets) => sockets,
            Err(error) => return end_all(&flows, &FlowError::new("io", &error.to_string()), local),
        };
        let mut carrier = FlowCarrier {
            pattern: shared_pattern(&local.pattern),
            quic,
            workload,
            flows,
            claims,
            slots: Slots::default(),
            carried: HashMap::new(),
            undelivered: 0,
            never_begun: 0,
            socket: None,
            opening: 0,
        };
        let mut seen = Phase::Hold;
        let mut published = Instant::now();
        let mut lingering: Option<Instant> = None;
        loop {
            if let Some(number) = sockets.take_new(waker) {
                carrier.begin(number);
            }
            let more_in = sockets.take_in();
            while let Some((link, event)) = sockets.poll_event() {
                carrier.handle(link, event, &sockets, local);
            }
            carrier.open_connections(&mut sockets, local);
            let phase = local.phase();
            if phase != seen {
                seen = phase;
                carrier.slots.handle_phase(phase);
            }
            if carrier.slots.has_times() {
                carrier.slots.handle_time(monotonic_ns());
            }
            carrier.slots.run_queue(local);
            let more_out = sockets.send_out();
            let now = Instant::now();
            if now.duration_since(published) >= PUBLISHING {
                published = now;
                carrier.publish();
            }
            if sockets.is_released() || phase == Phase::Abort {
                break;
            }
            if carrier.is_over() {
                let until = *lingering.get_or_insert(now + LINGER);
                if carrier.undelivered == 0 || now >= until {
                    break;
                }
            }
            if !more_in && !more_out && !carrier.slots.has_queue() {
                sockets.wait(carrier.wait_at_most(), waker, local.phase());
            }
        }
        carrier.give_up(seen, local);
        sockets.close();
    }
}

impl FlowCarrier {
    /// A new UDP socket: the client's end makes its connections over it.
    fn begin(&mut self, number: u32) {
        if self.is_client() && self.socket.is_none() {
            self.socket = Some(number);
            // The next is then at the end.
            self.flows.reverse();
        }
    }

    /// Begins connections, as many at a time as both ends can see through before they take each other
    /// for dead.
    fn open_connections(&mut self, sockets: &mut Sockets, local: &Local) {
        while let Some(number) = self.socket
            && self.opening < OPENING_AT_ONCE
            && let Some(last) = self.flows.last()
        {
            let streams = self.workload.quic.streams.max(1);
            let connection = last.number / streams;
            let others = |flow: &Arc<FlowShared>| flow.number / streams != connection;
            let first = self.flows.iter().rposition(others).map_or(0, |place| place + 1);
            let mut group = self.flows.split_off(first);
            group.reverse();
            self.connect(number, group, sockets, local);
        }
    }

    fn connect(
        &mut self,
        number: u32,
        group: Vec<Arc<FlowShared>>,
        sockets: &mut Sockets,
        local: &Local,
    ) {
        let Side::Client { server, client, .. } = self.quic.side.clone() else { return };
        match sockets.endpoint.connect(number, server, "linerate", &client) {
            Ok(link) => {
                self.carry(link, group, sockets);
                self.opening += 1;
            }
            Err(error) => self.end_unbegun(&group, &error.into(), local),
        }
    }

    /// Has a connection carry flows: those that wait for it to stand, and those that it brings.
    fn carry(&mut self, link: Link, waiting: Vec<Arc<FlowShared>>, sockets: &Sockets) {
        if let Some(connected) = sockets.connected(link) {
            self.carried.insert(link, Carried::new(connected, waiting));
        }
    }

    fn handle(&mut self, place: Link, event: Event, sockets: &Sockets, local: &Local) {
        match event {
            Event::Accepted => self.carry(place, Vec::new(), sockets),
            Event::Established => {
                self.opening = self.opening.saturating_sub(1);
                self.open_flows(place, local);
            }
            Event::StreamsOpened(dir) if dir == self.dir() => self.accept_streams(place, dir),
            Event::Readable(id) => match self.holder(place, id) {
                Some(Holder::Flow(slot, ..)) => {
                    let slot = *slot;
                    self.slots.handle_ready(slot);
                }
                Some(Holder::Arriving(_)) => self.read_opening(place, id),
                Some(Holder::Asking(_)) | None => {}
            },
            Event::Writable(id) | Event::Stopped(id, _) => {
                if let Some(Holder::Flow(slot, ..)) = self.holder(place, id) {
                    let slot = *slot;
                    self.slots.handle_ready(slot);
                }
            }
            Event::Delivered(id) => {
                self.undelivered = self.undelivered.saturating_sub(1);
                if let Some(Holder::Flow(slot, ..)) = self.holder(place, id) {
                    let slot = *slot;
                    self.slots.handle_ready(slot);
                }
            }
            Event::Datagrams => {
                if let Some(carried) = self.carried.get_mut(&place) {
                    carried.sort_datagrams(&mut self.slots);
                }
            }
            Event::DatagramsWritable => {
                if let Some(carried) = self.carried.get_mut(&place) {
                    carried.wake_flows(&mut self.slots);
                }
            }
            Event::Closed(cause) => self.handle_close(place, &cause, local),
            Event::StreamsOpened(_)
            | Event::StreamsAvailable(_)
            | Event::Refused
            | Event::Incoming(..) => {}
        }
    }

    fn holder(&mut self, place: Link, id: StreamId) -> Option<&mut Holder> {
        self.carried.get_mut(&place)?.holder(id)
    }

    /// Which streams the flows of the load go in.
    fn dir(&self) -> Dir {
        if self.workload.quic.unidirectional { Dir::Uni } else { Dir::Bi }
    }

    fn is_client(&self) -> bool {
        matches!(self.quic.side, Side::Client { .. })
    }

    fn steps_of(&self, flow: u32) -> Vec<Step> {
        let steps = flow_steps(&self.workload, flow);
        if self.is_client() { steps.client } else { steps.server }
    }

    /// The client's connection stands: each of its flows gets a stream, which it opens with the
    /// test's token. Where that has one direction and the flow needs the other, it asks for one, and ends when
    /// the flow has: so the client stays until the server knows of that.
    fn open_flows(&mut self, place: Link, local: &Local) {
        let dir = self.dir();
        let Some(carried) = self.carried.get_mut(&place) else { return };
        for shared in std::mem::take(&mut carried.waiting) {
            let opening = Opening { flow: shared.number, token: self.quic.token };
            let Some(id) = carried.open(dir, &opening) else {
                let text = "the server allows fewer streams than the load has";
                shared.end_unbegun(&FlowError::new("streams", text), local);
                self.never_begun += 1;
                continue;
            };
            self.undelivered += 1;
            let steps = flow_steps(&self.workload, shared.number).client;
            if dir == Dir::Uni && !matches!(steps.first(), Some(Step::Send(_))) {
                carried.holders.push(Holder::Asking(shared.number));
                carried.expected.push(shared);
                continue;
            }
            let over = (&self.quic, &self.workload, &self.pattern);
            carried.begin(id, shared, steps, over, &mut self.slots);
        }
    }

    /// Takes what the peer has opened.
    fn accept_streams(&mut self, place: Link, dir: Dir) {
        while let Some(carried) = self.carried.get_mut(&place)
            && let Some(id) = carried.accept(dir)
        {
            self.read_opening(place, id);
        }
    }

    /// A stream belongs to this load only with the test's token and a free flow.
    fn read_opening(&mut self, place: Link, id: StreamId) {
        let Some(carried) = self.carried.get_mut(&place) else { return };
        let opening = match carried.read_opening(id) {
            Ok(opening) if opening.token == self.quic.token => opening,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            _ => return carried.over.connection.borrow_mut().close(FOREIGN, b"no opening"),
        };
        let asked = carried.expected.iter().position(|shared| shared.number == opening.flow);
        let flow = match asked {
            Some(place) => Some(carried.expected.swap_remove(place)),
            None => self.claims.as_ref().and_then(|claims| claims.claim(opening.flow)),
        };
        let Some(shared) = flow else {
            return carried.over.connection.borrow_mut().close(FOREIGN, b"no flow of this test");
        };
        let steps = self.steps_of(shared.number);
        let dir = self.dir();
        let Some(carried) = self.carried.get_mut(&place) else { return };
        let mut own = Some(id);
        if dir == Dir::Uni && matches!(steps.first(), Some(Step::Send(_))) {
            // The client asks for a stream in the other direction.
            if let Some(holder) = carried.holder(id) {
                *holder = Holder::Asking(opening.flow);
            }
            own = carried.open(dir, &opening);
        }
        let Some(id) = own else {
            return carried.over.connection.borrow_mut().close(FOREIGN, b"too few streams");
        };
        let over = (&self.quic, &self.workload, &self.pattern);
        carried.begin(id, shared, steps, over, &mut self.slots);
    }

    /// A connection has ended: its flows see that in their next turn.
    fn handle_close(&mut self, place: Link, cause: &Cause, local: &Local) {
        let Some(mut carried) = self.carried.remove(&place) else { return };
        if self.is_client() && !carried.waiting.is_empty() {
            self.opening = self.opening.saturating_sub(1);
        }
        carried.waiting.append(&mut carried.expected);
        self.end_unbegun(&carried.waiting, &cause.error().into(), local);
        self.undelivered = self.undelivered.saturating_sub(carried.wake_flows(&mut self.slots));
    }

    fn end_unbegun(&mut self, flows: &[Arc<FlowShared>], error: &FlowError, local: &Local) {
        end_all(flows, error, local);
        self.never_begun += flows.len();
    }

    fn publish(&mut self) {
        for carried in self.carried.values() {
            let mut connection = carried.over.connection.borrow_mut();
            connection.fit_send_window();
            let socket_drops = socket_drops(carried.over.socket.as_fd());
            let status = QuicStatus { socket_drops, ..connection.status() };
            for (stream, shared) in carried.flows() {
                if (shared.number as usize) < linerate_measure::Sample::MAX_FLOWS {
                    let acked_bytes = connection.delivered_bytes(stream);
                    shared.sender().set_path(&QuicStatus { acked_bytes, ..status });
                }
            }
        }
    }

    /// Whether the client's flows have all come and ended.
    fn is_over(&self) -> bool {
        let begun = self.slots.len() + self.never_begun;
        let waits = |one: &Carried| !one.waiting.is_empty() || !one.expected.is_empty();
        let waiting = self.carried.values().any(waits);
        self.is_client()
            && self.flows.is_empty()
            && !waiting
            && begun > 0
            && self.slots.ended() == self.slots.len()
    }

    fn wait_at_most(&self) -> Duration {
        let until = self.slots.next_time().map(|due| due.saturating_sub(monotonic_ns()));
        until.map_or(LONGEST_WAIT, Duration::from_nanos)
    }

    /// Ends what hasn't ended: the load is over.
    fn give_up(&mut self, phase: Phase, local: &mut Local) {
        if phase == Phase::Abort {
            self.slots.handle_phase(phase);
            self.slots.run_queue(local);
        }
        let error = FlowError::new("given_up", "ended before the connection was established");
        let waiting: Vec<_> = self
            .carried
            .values_mut()
            .flat_map(|one| one.waiting.drain(..).chain(one.expected.drain(..)))
            .collect();
        self.end_unbegun(&waiting, &error, local);
        if self.is_client() {
            let flows = std::mem::take(&mut self.flows);
            self.end_unbegun(&flows, &error, local);
        }
    }
}

fn end_all(flows: &[Arc<FlowShared>], error: &FlowError, local: &Local) {
    flows.iter().for_each(|shared| shared.end_unbegun(error, local));
}
