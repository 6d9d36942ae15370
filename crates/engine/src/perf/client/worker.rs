//! One thread of a client: its share of the connections.

mod deliveries;
mod end;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_wire::perf::exchange::{Exchange, Shape};
use linerate_wire::perf::render_block;

use deliveries::DeliveryLooks;
use end::Progress;

use super::report::Totals;
use super::{ClientEvent, ClientPlan, ThreadContext};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::perf::NO_CODE;
use crate::perf::streams::{LENT_BYTES, Push, Sender, Streams};
use crate::socket::is_short_of_descriptors;
use crate::transport::multiplexer::{Destination, Link, LinkEvent, Multiplexer, Sending};

/// Connections begun before those that are under way get their turn.
const DIALED_AT_ONCE: u32 = 32;
/// Connections of a thread that may be under way at a time. All of a thousand at once would overflow the
/// buffer of the server's socket, and those that get lost are tried again after a second, all at once again.
const HANDSHAKES_AT_ONCE: usize = 64;
/// After a failure the next try waits so long: a server that isn't there is not stormed.
const BACK_OFF_NS: u64 = 10 * MILLISECOND_NS;

pub(super) struct Worker<'a, M> {
    plan: &'a ClientPlan,
    context: ThreadContext<'a>,
    endpoint: M,
    destination: Destination,
    /// What every request repeats, so many times.
    block: Arc<Vec<u8>>,
    blocks: u64,
    links: HashMap<Link, Connection>,
    to_dial: u64,
    /// Connections that are under way.
    opening: usize,
    dial_after_ns: u64,
    latency_limit: usize,
    running: bool,
    progress: Progress,
    totals: Totals,
}

#[derive(Default)]
struct Connection {
    streams: Streams<Exchange>,
    opened: u32,
    established: bool,
    /// Acknowledgements that had come at the last look.
    acks: u64,
}

impl<'a, M: Multiplexer> Worker<'a, M> {
    pub(super) fn new(plan: &'a ClientPlan, context: ThreadContext<'a>, endpoint: M) -> Self {
        let addresses = &plan.addresses;
        let mut server_name = addresses.server_name.clone();
        if addresses.numbered_names && !server_name.is_empty() {
            server_name.push_str(&format!("{:02X}", context.number % 256));
        }
        let places = addresses.local.iter().cycle();
        let local = places.clone().nth(context.number as usize).copied();
        let remote = addresses.remote;
        let blocks = if endpoint.lends() && !plan.copies { blocks_of(&plan.shape) } else { 1 };
        let block = render_block(plan.shape.header(), plan.shape.repeated_bytes());
        let block = Arc::new(block.repeat(blocks));
        let mut endpoint = endpoint;
        if !plan.copies {
            endpoint.lend(&block);
        }
        if plan.tells.waits {
            endpoint.watch_waits();
        }
        let connections = context.share(u64::from(plan.connections));
        // Dealt as connections are: each has as many streams as any other.
        let latencies = (plan.latency_limit as u64).div_ceil(u64::from(plan.connections).max(1));
        Self {
            destination: Destination { remote, local, server_name },
            block,
            blocks: blocks as u64,
            links: HashMap::new(),
            to_dial: connections,
            opening: 0,
            dial_after_ns: 0,
            latency_limit: latencies.saturating_mul(connections) as usize,
            running: true,
            progress: Progress::new(now_us(), DeliveryLooks::new(&endpoint)),
            totals: Totals::default(),
            plan,
            context,
            endpoint,
        }
    }

    /// Runs until everything is done or the time is up, or until it can't go on; what came out by then.
    pub(super) fn run(mut self, totals: &mut Totals) -> io::Result<()> {
        let went = self.drive();
        let was_silent = self.is_silent();
        let ended = self.end(was_silent);
        self.totals.elapsed_ns = monotonic_ns() - self.context.began_ns;
        self.totals.measured_ns = match was_silent {
            true => (self.progress.last_us * 1000).saturating_sub(self.context.began_ns),
            false => self.totals.elapsed_ns,
        };
        self.endpoint.flush();
        self.totals.counted = self.context.counts.reading();
        *totals = self.totals;
        went.and(ended)
    }

    fn drive(&mut self) -> io::Result<()> {
        // One thread tells it for all.
        let refused = self.plan.placement.settle(self.context.number);
        if let Some(why) = refused.filter(|_| self.context.number == 0) {
            let _unheard = self.context.sender.send(ClientEvent::Refused(why));
        }
        while !self.context.is_over() && (self.to_dial > 0 || !self.links.is_empty()) {
            self.dial();
            let mut at_most = self.context.look_after();
            if self.may_dial() {
                let left_ns = self.dial_after_ns.saturating_sub(monotonic_ns());
                at_most = at_most.min(Duration::from_nanos(left_ns));
            }
            self.endpoint.wait(at_most.min(self.progress.looks.left(now_us())))?;
            while let Some((link, event)) = self.endpoint.poll_event() {
                self.handle_event(link, event);
            }
            if self.progress.looks.is_due(now_us()) {
                self.look_for_deliveries();
            }
        }
        Ok(())
    }

    /// Whether another connection may begin.
    fn may_dial(&self) -> bool {
        self.to_dial > 0 && self.opening < HANDSHAKES_AT_ONCE
    }

    fn dial(&mut self) {
        let mut dialed = 0;
        while self.may_dial() && dialed < DIALED_AT_ONCE && monotonic_ns() >= self.dial_after_ns {
            dialed += 1;
            self.to_dial -= 1;
            match self.endpoint.connect(&self.destination) {
                Ok(link) => {
                    self.opening += 1;
                    self.links.insert(link, Connection::default());
                }
                Err(error) => self.handle_failure(not_begun(&error)),
            }
        }
    }

    /// A connection didn't come to stand; another one follows if they are repeated.
    fn handle_failure(&mut self, kind: &'static str) {
        *self.totals.failures.entry(kind).or_default() += 1;
        if self.plan.gives_up_unreached && !self.context.stood.load(Ordering::Relaxed) {
            self.context.stop.store(true, Ordering::Relaxed);
        }
        self.dial_after_ns = monotonic_ns() + BACK_OFF_NS;
        self.to_dial += u64::from(self.plan.repeats_connections);
    }

    fn handle_event(&mut self, link: Link, event: LinkEvent) {
        match event {
            LinkEvent::Established => {
                self.progress.record(now_us());
                if self.context.counts.connections.value() == 0 {
                    self.context.stood.store(true, Ordering::Relaxed);
                }
                self.context.counts.connections.add(1);
                if let Some(connection) = self.links.get_mut(&link) {
                    connection.established = true;
                    self.opening = self.opening.saturating_sub(1);
                }
                if self.plan.streams == 0 {
                    self.endpoint.close(link);
                } else {
                    self.open_streams(link);
                }
            }
            LinkEvent::Received { stream, bytes, finished, .. } => {
                let now_us = now_us();
                self.progress.record(now_us);
                let stops = self.exchange(link, stream, |exchange| {
                    exchange.handle_received(bytes as u64, finished, now_us)
                });
                if stops == Some(true) {
                    self.endpoint.stop(link, stream, NO_CODE);
                }
                self.settle_if_over(link, stream);
            }
            LinkEvent::Delivered { stream, bytes } => {
                let now_us = now_us();
                self.progress.record(now_us);
                self.exchange(link, stream, |exchange| exchange.handle_delivered(bytes, now_us));
                self.settle_if_over(link, stream);
            }
            LinkEvent::Reset { stream, .. } => {
                self.count_delivered(link, stream);
                self.endpoint.abort(link, stream, NO_CODE);
                let now_us = now_us();
                self.exchange(link, stream, |exchange| exchange.handle_reset(now_us));
                self.settle_if_over(link, stream);
            }
            LinkEvent::Stopped { stream, code } => {
                self.count_delivered(link, stream);
                // An end that stops a stream may keep the room that others wait for until the reset arrives
                // (RFC 9000, section 3.5).
                self.endpoint.reset(link, stream, code);
                let now_us = now_us();
                self.exchange(link, stream, |exchange| exchange.handle_send_aborted(now_us));
                self.settle_if_over(link, stream);
            }
            LinkEvent::Writable { stream: Some(stream) } => self.send_all(link, stream),
            LinkEvent::Writable { stream: None } => {
                self.send_waiting(link);
                self.open_streams(link);
            }
            LinkEvent::Ended { ending } => self.handle_ended(link, ending),
        }
    }

    /// Notes how much of a stream has reached the other end, where the transport tells only when asked.
    fn count_delivered(&mut self, link: Link, stream: u64) {
        if let Some(bytes) = self.endpoint.delivered_bytes(link, stream) {
            let now_us = now_us();
            self.exchange(link, stream, |exchange| exchange.record_delivered(bytes, now_us));
        }
    }

    /// Counts what has reached the server by now. An acknowledgement is a sign of life as what it sends is.
    fn look_for_deliveries(&mut self) {
        if !self.endpoint.tells_deliveries_late() {
            return;
        }
        let began_us = now_us();
        let mut is_heard = false;
        for (link, connection) in &mut self.links {
            let Some(acks) = self.endpoint.received_acks(*link) else { continue };
            if acks == connection.acks {
                continue;
            }
            connection.acks = acks;
            is_heard = true;
            for (stream, exchange) in connection.streams.iter_mut() {
                let Some(bytes) = self.endpoint.delivered_bytes(*link, stream) else { continue };
                let record = |one: &mut Exchange| one.record_delivered(bytes, began_us);
                self.context.counts.record(exchange, record);
            }
        }
        if is_heard {
            self.progress.record(began_us);
        }
        self.progress.looks.record(began_us, now_us());
    }

    fn exchange<T>(
        &mut self,
        link: Link,
        stream: u64,
        handle: impl FnOnce(&mut Exchange) -> T,
    ) -> Option<T> {
        let exchange = self.links.get_mut(&link)?.streams.stream(stream)?;
        Some(self.context.counts.record(exchange, handle))
    }

    /// Opens streams until there are as many as the plan says, or the other end has no room.
    fn open_streams(&mut self, link: Link) {
        loop {
            let Some(connection) = self.links.get_mut(&link) else { return };
            let wanted = connection.established
                && (connection.streams.len() as u64) < u64::from(self.plan.streams)
                && (self.plan.repeats_streams || connection.opened < self.plan.streams);
            if !wanted || !self.running {
                return;
            }
            let Some(stream) = self.endpoint.open_stream(link) else { return };
            connection.opened = connection.opened.saturating_add(1);
            connection.streams.insert(stream, Exchange::new(self.plan.shape, now_us()));
            self.send_all(link, stream);
        }
    }

    /// Counts a stream that has ended both ways, and goes on as the plan says.
    fn settle_if_over(&mut self, link: Link, stream: u64) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        if !connection.streams.stream(stream).is_some_and(|exchange| exchange.is_over()) {
            return;
        }
        if let Some(exchange) = connection.streams.remove(stream) {
            self.tell_waits(link, stream);
            self.settle(&exchange);
        }
        if self.plan.repeats_streams {
            self.open_streams(link);
        } else if self.links.get(&link).is_some_and(|connection| {
            connection.streams.len() == 0 && connection.opened >= self.plan.streams
        }) {
            self.endpoint.close(link);
        }
    }

    fn tell_waits(&mut self, link: Link, stream: u64) {
        if let Some(waits) = self.endpoint.take_waits(link, stream) {
            // Nobody listens any more only when the program is ending.
            let _unheard = self.context.sender.send(ClientEvent::StreamWaited(waits));
        }
    }

    fn settle(&mut self, exchange: &Exchange) {
        let outcome = exchange.outcome();
        let totals = &mut self.totals;
        totals.upload_rates_kbps += outcome.upload.map_or(0, |sent| u64::from(sent.rate_kbps()));
        totals.download_rates_kbps +=
            outcome.download.map_or(0, |received| u64::from(received.rate_kbps()));
        // What the end of the run has cut is not completed, whatever it came to.
        if let Some(latency_us) = outcome.latency_us.filter(|_| self.running) {
            self.context.counts.streams.add(1);
            self.context.counts.latency_sum_us.add(latency_us);
            if totals.latencies_us.len() < self.latency_limit {
                totals.latencies_us.push(u32::try_from(latency_us).unwrap_or(u32::MAX));
            }
        }
        if self.plan.tells.streams {
            // Nobody listens any more only when the program is ending.
            let _unheard = self.context.sender.send(ClientEvent::StreamEnded(outcome));
        }
    }
}

impl<M: Multiplexer> Sender for Worker<'_, M> {
    type Stream = Exchange;

    fn streams(&mut self, link: Link) -> Option<&mut Streams<Exchange>> {
        self.links.get_mut(&link).map(|connection| &mut connection.streams)
    }

    fn send_block(&mut self, link: Link, stream: u64) -> Push {
        let Some(connection) = self.links.get_mut(&link) else { return Push::Done };
        let Some(exchange) = connection.streams.stream(stream) else { return Push::Done };
        let Some(piece) = exchange.poll_run(now_us(), self.blocks) else { return Push::Done };
        let bytes = self.block.get(piece.offset..piece.offset + piece.length).unwrap_or_default();
        let sending = Sending { bytes, opens: piece.opens, finishes: piece.finishes };
        match self.endpoint.send(link, stream, sending) {
            None => Push::Full,
            Some(taken) => {
                exchange.record_sent(&piece, taken);
                Push::of(taken, piece.length, piece.finishes)
            }
        }
    }
}

/// The word that a connection is counted by which couldn't begin.
fn not_begun(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        // The last where a UDP socket is to have any port and none is left.
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable | io::ErrorKind::WouldBlock => {
            "local address"
        }
        _ if is_short_of_descriptors(error) => "out of descriptors",
        _ => "not begun",
    }
}

/// How many times a request's block is lent: as far as that is of use.
fn blocks_of(shape: &Shape) -> usize {
    let block_bytes = shape.repeated_bytes();
    let wanted = if shape.timed { u64::MAX } else { shape.upload.div_ceil(block_bytes as u64) };
    (LENT_BYTES / block_bytes).min(usize::try_from(wanted).unwrap_or(usize::MAX)).max(1)
}

/// Microseconds on the monotonic clock.
fn now_us() -> u64 {
    monotonic_ns() / 1000
}
