//! One thread of a proxy: the pairs of connections whose clients came to its socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_wire::relay::{Close, CloseKind, Code, End, Ended, Limits};
use socket2::Socket;

use super::super::counts::Counts;
use super::super::{PairEvent, ProxyEvent, ProxyPlan, QuicSides, Sessions, Shared};
use super::pair::Pair;
use super::sides::{
    FarSide, PIECE_BYTES, buffers, endpoint, first_window_bytes, server_name, target_socket,
};
use crate::error::Error;
use crate::transport::multiplexer::Link;
use crate::transport::quic::{Cause, Endpoint, Event};

/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// How often figures that cost something are counted.
const COUNT_EVERY: Duration = Duration::from_millis(500);
/// How long the last words may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Whose a connection is.
#[derive(Clone, Copy)]
struct Owner {
    generation: u32,
    pair: usize,
    end: End,
}

/// When intervals of pairs are told.
struct Told {
    interval: Duration,
    next: Instant,
}

impl Told {
    fn new(interval_ns: u64) -> Self {
        let interval = Duration::from_nanos(interval_ns);
        Self { interval, next: Instant::now() + interval }
    }
}

/// One thread of a proxy.
pub(in super::super) struct Worker {
    plan: ProxyPlan,
    sides: QuicSides,
    target_name: String,
    shared: Shared,
    counts: Arc<Counts>,
    endpoint: Endpoint,
    far_side: FarSide,
    pairs: Vec<Option<Pair>>,
    vacant: Vec<usize>,
    /// By the indices of links.
    owners: Vec<Option<Owner>>,
    /// Connections to the target whose handshake isn't done, and until when it may take.
    connecting: VecDeque<(Instant, Link)>,
    /// Pairs of which one connection has ended.
    ending: Vec<usize>,
    /// Where what happens to pairs is told.
    told: Option<Told>,
    /// Packets that connections sent which are gone, and those of them that were lost, by end.
    packets: [[u64; 2]; 2],
}

impl Worker {
    pub(in super::super) fn new(
        plan: ProxyPlan,
        (sides, sessions): (QuicSides, Sessions),
        number: u32,
        socket: Socket,
        shared: Shared,
    ) -> Result<Self, Error> {
        let both = (&sides, &sessions);
        let (endpoint, far_side) = endpoint(&plan, both, number, socket, &shared.tickets)?;
        Ok(Self {
            target_name: server_name(&plan, &sides),
            told: sides.interval_ns.map(Told::new),
            plan,
            sides,
            counts: Arc::clone(&shared.counts),
            shared,
            endpoint,
            far_side,
            pairs: Vec::new(),
            vacant: Vec::new(),
            owners: Vec::new(),
            connecting: VecDeque::new(),
            ending: Vec::new(),
            packets: [[0; 2]; 2],
        })
    }

    /// Serves until the proxy stops.
    pub(in super::super) fn run(mut self) -> io::Result<()> {
        let mut counted = Instant::now();
        while !self.shared.is_stopping() {
            self.turn()?;
            if counted.elapsed() >= COUNT_EVERY {
                counted = Instant::now();
                self.count();
            }
        }
        self.end();
        Ok(())
    }

    /// Sends what is to be sent, waits for packets or for some time to pass, and does what comes of them.
    ///
    /// # Errors
    ///
    /// Where the socket that clients come to fails.
    pub(in super::super) fn turn(&mut self) -> io::Result<()> {
        self.endpoint.send_out()?;
        if !self.endpoint.is_busy() {
            self.endpoint.close_ended();
            self.endpoint.wait(LOOK, None)?;
        }
        self.endpoint.take_in()?;
        while let Some((link, event)) = self.endpoint.poll_event() {
            self.handle_event(link, event);
        }
        self.look_at_connecting();
        self.look_at_ending();
        self.look_at_intervals();
        Ok(())
    }

    /// Tells what happens to a pair, where that is told.
    fn tell(&self, number: usize, event: impl FnOnce() -> PairEvent) {
        let pair = self.pairs.get(number).and_then(Option::as_ref);
        if let Some(pair) = pair.filter(|_| self.told.is_some()) {
            self.shared.tell(ProxyEvent::Pair(pair.number, event()));
        }
    }

    fn look_at_intervals(&mut self) {
        let now = Instant::now();
        let Some(told) = self.told.as_mut().filter(|told| told.next <= now) else { return };
        told.next += told.interval;
        for pair in self.pairs.iter_mut().flatten() {
            for end in End::ALL {
                if let Some(sent) = pair.take_interval(end) {
                    let event = PairEvent::Sent(end, Box::new(sent));
                    self.shared.tell(ProxyEvent::Pair(pair.number, event));
                }
            }
        }
    }

    fn owner(&self, link: Link) -> Option<Owner> {
        let owner = self.owners.get(link.index as usize).copied().flatten()?;
        (owner.generation == link.generation).then_some(owner)
    }

    fn own(&mut self, link: Link, pair: usize, end: End) {
        let index = link.index as usize;
        if self.owners.len() <= index {
            self.owners.resize(index + 1, None);
        }
        if let Some(owner) = self.owners.get_mut(index) {
            *owner = Some(Owner { generation: link.generation, pair, end });
        }
    }

    fn handle_event(&mut self, link: Link, event: Event) {
        if let Event::Incoming(client, protocols) = event {
            return self.begin(link, client, protocols);
        }
        let Some(Owner { pair: number, end, .. }) = self.owner(link) else { return };
        let Some(pair) = self.pairs.get_mut(number).and_then(Option::as_mut) else { return };
        match event {
            Event::Incoming(..) | Event::DatagramsWritable => return,
            Event::Accepted => return self.handle_accepted(link),
            Event::Established => {
                let elapsed_ns = pair.elapsed_ns();
                self.tell(number, || PairEvent::Established(end, elapsed_ns));
                self.enlarge_window(link);
                let Some(pair) = self.pair(number) else { return };
                let is_undecided = pair.connection(End::Client).is_none();
                if !pair.handle_established(end) {
                    return self.break_off_target(number);
                }
                if end == End::Target && is_undecided {
                    return self.accept_client(number);
                }
            }
            Event::Refused => {
                let text = format!("the target {} refuses connections", self.plan.target);
                return self.lose_target(number, text);
            }
            Event::StreamsOpened(dir) => pair.handle_streams_opened(end, dir),
            Event::StreamsAvailable(dir) => pair.handle_streams_available(end, dir),
            Event::Readable(id) => pair.relay().handle_readable(end, id.into()),
            Event::Writable(id) => pair.handle_writable(end, id.into()),
            Event::Delivered(id) => pair.relay().handle_delivered(end, id.into()),
            Event::Stopped(id, code) => pair.relay().handle_stopped(end, id.into(), code),
            Event::Datagrams => return pair.carry_datagrams(end),
            Event::Closed(cause) => return self.handle_closed(number, end, &cause),
        }
        self.work(number);
    }

    /// A client wants a connection, and offers these protocols: connects to the target for it.
    fn begin(&mut self, link: Link, client: SocketAddr, protocols: Vec<Vec<u8>>) {
        let admitted = match self.shared.admission.admit(client) {
            Ok(admitted) => admitted,
            Err(limit) => {
                self.counts.refused.add(1);
                self.shared.tell(ProxyEvent::Refused(client, limit));
                return self.endpoint.refuse_incoming(link);
            }
        };
        let (send_buffer_bytes, pieces) = buffers(&self.plan);
        let limits = Limits {
            buffer_bytes: pieces,
            piece_bytes: PIECE_BYTES,
            streams: self.plan.limits.streams as usize,
        };
        let counts = Arc::clone(&self.counts);
        let mut pair = Pair::new(client, limits, send_buffer_bytes, counts, admitted);
        pair.number = self.counts.connections.value();
        pair.set_link(End::Client, link);
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            self.pairs.len() - 1
        });
        if let Some(slot) = self.pairs.get_mut(number) {
            *slot = Some(pair);
        }
        self.own(link, number, End::Client);
        self.tell(number, || PairEvent::Begun(client));
        self.counts.connections.add(1);
        self.counts.open.add(1);
        // Of several protocols the target chooses, before the client is answered.
        let chooses = self.sides.alpn.is_none() && protocols.len() > 1;
        let connected = self.connect(number, protocols);
        if let Some(pair) = self.pair(number) {
            pair.target_chooses = chooses;
        }
        if !self.sides.waits_for_target && !chooses {
            self.accept_client(number);
        }
        if let Err(error) = connected {
            let text = format!("can't connect to the target {}: {error}", self.plan.target);
            self.lose_target(number, text);
        }
    }

    /// Connects a pair to the target, which gets the client's offer of protocols where the proxy has none of its own.
    fn connect(&mut self, number: usize, protocols: Vec<Vec<u8>>) -> io::Result<()> {
        let target = self.plan.target;
        let socket = target_socket(target, &self.sides.options)?;
        let port = self.endpoint.prepare_outgoing(socket).map_err(io::Error::other)?;
        let chooses = self.sides.alpn.is_none();
        // The session that is kept is one without application protocol.
        let takes_kept = chooses && protocols.is_empty();
        let kept = if takes_kept { self.far_side.take_kept() } else { None };
        let offering = (chooses && kept.is_none()).then(|| self.far_side.offering(protocols));
        if let Some(pair) = self.pair(number) {
            pair.set_kept(kept.clone());
        }
        let client_side = kept.as_ref().or(offering.as_ref()).unwrap_or(self.far_side.every());
        let link = self.endpoint.connect_apart(port, target, &self.target_name, client_side)?;
        self.own(link, number, End::Target);
        self.connecting.push_back((Instant::now() + self.plan.connect_timeout, link));
        let connection = self.endpoint.connection(link).cloned();
        if let (Some(pair), Some(connection)) = (self.pair(number), connection) {
            pair.set_link(End::Target, link);
            pair.set_connection(End::Target, connection);
        }
        Ok(())
    }

    fn pair(&mut self, number: usize) -> Option<&mut Pair> {
        self.pairs.get_mut(number)?.as_mut()
    }

    /// Lets a client's handshake go on.
    fn accept_client(&mut self, number: usize) {
        let Some(pair) = self.pair(number) else { return };
        let Some(link) = pair.link(End::Client) else { return };
        let target = pair.connection(End::Target).filter(|_| pair.target_chooses);
        let chosen = target.and_then(|connection| connection.borrow().protocol());
        let accepted = match chosen {
            Some(protocol) => self.endpoint.accept_incoming_with(link, protocol),
            None => self.endpoint.accept_incoming(link),
        };
        if accepted {
            self.handle_accepted(link);
        } else {
            let ended = Ended::Failed("the client's first packet could not be read".to_owned());
            self.end_side(number, End::Client, &ended);
        }
    }

    /// Lets a peer whose handshake is done send more before it is read, as far as there is memory.
    fn enlarge_window(&self, link: Link) {
        if let Some(connection) = self.endpoint.connection(link) {
            let (first, most) = (first_window_bytes(&self.plan), self.plan.limits.window_bytes);
            connection.borrow_mut().enlarge_window(first, most, &self.shared.stock);
        }
    }

    fn handle_accepted(&mut self, link: Link) {
        let Some(Owner { pair: number, end, .. }) = self.owner(link) else { return };
        let connection = self.endpoint.connection(link).cloned();
        if let (Some(pair), Some(connection)) = (self.pair(number), connection) {
            pair.set_connection(end, connection);
        }
    }

    /// The connection to the target failed before it stood, or this machine can't begin it.
    fn lose_target(&mut self, number: usize, why: String) {
        let fails =
            |pair: &&mut Pair| !pair.is_established(End::Target) && !pair.is_ended(End::Target);
        let Some(pair) = self.pair(number).filter(fails) else { return };
        let (client, kept) = (pair.client, pair.take_unused());
        if let Some(connection) = pair.connection(End::Target) {
            connection.borrow_mut().close(0, b"");
        }
        kept.into_iter().for_each(|kept| self.far_side.give_back(kept));
        self.counts.failed.add(1);
        self.shared.tell(ProxyEvent::TargetFailed(client, why.clone()));
        self.end_side(number, End::Target, &Ended::Refused(why));
    }

    /// A target refused early data, and now allows less than what was sent.
    fn break_off_target(&mut self, number: usize) {
        let Some(pair) = self.pair(number) else { return };
        let client = pair.client;
        if let Some(connection) = pair.connection(End::Target) {
            connection.borrow_mut().close(0, b"");
        }
        let text = "the target refused early data, and allows less than before".to_owned();
        self.shared.tell(ProxyEvent::TargetFailed(client, text.clone()));
        self.end_side(number, End::Target, &Ended::Failed(text));
    }

    fn handle_closed(&mut self, number: usize, end: End, cause: &Cause) {
        let Some(pair) = self.pair(number) else { return };
        let (stood, client, is_over) = (pair.is_established(end), pair.client, pair.is_ended(end));
        let has_begun = pair.connection(end).is_some();
        if end == End::Target && !stood {
            let text = format!("the target {} ended the handshake: {cause}", self.plan.target);
            return self.lose_target(number, text);
        }
        let who = match end {
            End::Client => "the client",
            End::Target => "the target",
        };
        let ended = match (&cause.close, cause.kind) {
            (Some(close), _) => Ended::Closed(Close {
                kind: close
                    .frame
                    .map_or(CloseKind::Application, |frame| CloseKind::Transport { frame }),
                code: close.code,
                reason: close.reason.to_vec(),
            }),
            // A client that was never accepted has not been silent: its wait was ended here.
            (None, io::ErrorKind::TimedOut) if has_begun => {
                Ended::Silent(format!("{who} stopped answering"))
            }
            (None, _) => Ended::Failed(format!("{who}: {cause}")),
        };
        let why = match &ended {
            Ended::Silent(_) => Some("stopped answering".to_owned()),
            Ended::Failed(_) => Some(format!("failed: {cause}")),
            Ended::Closed(_) | Ended::Refused(_) => None,
        };
        if let Some(why) = why.filter(|_| end == End::Target && !is_over) {
            let text = format!("the target {} {why}", self.plan.target);
            self.shared.tell(ProxyEvent::TargetFailed(client, text));
        }
        self.end_side(number, end, &ended);
    }

    /// A connection of a pair has ended, or never began.
    fn end_side(&mut self, number: usize, end: End, ended: &Ended) {
        if self.pair(number).is_none_or(|pair| pair.is_ended(end)) {
            return;
        }
        self.tell(number, || PairEvent::Ended(end, ended.clone()));
        let Some(pair) = self.pair(number) else { return };
        pair.handle_ended(end, ended);
        if end == End::Target && pair.connection(End::Client).is_none() {
            // Refuses a client that was not accepted yet.
            if let Some(link) = pair.link(End::Client) {
                self.endpoint.refuse_incoming(link);
            }
            return self.forget(number);
        }
        self.ending.push(number);
        self.work(number);
    }

    /// Has a pair do what there is to do.
    fn work(&mut self, number: usize) {
        let is_over = self.pair(number).is_some_and(Pair::work);
        if self.told.is_some() {
            let opened = self.pair(number).map(Pair::take_opened).unwrap_or_default();
            for stream in opened {
                self.tell(number, || PairEvent::StreamOpened(stream));
            }
        }
        if is_over {
            self.forget(number);
        }
    }

    fn look_at_connecting(&mut self) {
        while let Some((limit, link)) = self.connecting.front().copied() {
            let owner = self.owner(link);
            let pair = owner.and_then(|owner| self.pairs.get(owner.pair)?.as_ref());
            let is_connecting = pair.is_some_and(|pair| !pair.is_established(End::Target));
            if is_connecting && Instant::now() < limit {
                return;
            }
            self.connecting.pop_front();
            if let Some(owner) = owner.filter(|_| is_connecting) {
                let text = format!(
                    "the target {} has not answered for {:?}",
                    self.plan.target, self.plan.connect_timeout
                );
                self.lose_target(owner.pair, text);
            }
        }
    }

    fn look_at_ending(&mut self) {
        for number in std::mem::take(&mut self.ending) {
            let Some(pair) = self.pair(number) else { continue };
            pair.handle_time();
            if pair.work() {
                self.forget(number);
            } else if self.pair(number).is_some_and(|pair| pair.is_ending()) {
                self.ending.push(number);
            }
        }
    }

    fn forget(&mut self, number: usize) {
        let Some(pair) = self.pair(number) else { return };
        let totals = pair.sent_totals();
        self.tell(number, || PairEvent::Forgotten(totals));
        let Some(mut pair) = self.pairs.get_mut(number).and_then(Option::take) else { return };
        if let Some(kept) = pair.take_unused() {
            self.far_side.give_back(kept);
        }
        self.vacant.push(number);
        self.counts.open.set(self.counts.open.value().saturating_sub(1));
        for (end, packets) in End::ALL.into_iter().zip(&mut self.packets) {
            let more = pair.packets(end);
            packets.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            let owner = pair.link(end).and_then(|link| self.owners.get_mut(link.index as usize));
            if let Some(owner) = owner {
                owner.take_if(|owner| owner.pair == number);
            }
        }
    }

    /// Counts what the pairs hold, and whom the socket had no room for.
    fn count(&mut self) {
        self.counts.refused.add(std::mem::take(&mut self.endpoint.refused));
        for (end, gone) in End::ALL.into_iter().zip(&self.packets) {
            let (mut held_bytes, [mut sent, mut lost]) = (0, *gone);
            for pair in self.pairs.iter().flatten() {
                let packets = pair.packets(end);
                held_bytes += pair.held_bytes(end);
                (sent, lost) = (sent + packets[0], lost + packets[1]);
            }
            let counts = self.counts.end(end);
            counts.held_bytes.set(held_bytes as u64);
            counts.sent_packets.set(sent);
            counts.lost_packets.set(lost);
        }
    }

    /// Closes all connections and lets that be told.
    fn end(&mut self) {
        let close = Close::transport(Code::NoError, "the proxy ends");
        for number in 0..self.pairs.len() {
            let Some(pair) = self.pair(number) else { continue };
            let undecided =
                pair.link(End::Client).filter(|_| pair.connection(End::Client).is_none());
            pair.relay().close(&close);
            pair.work();
            if let Some(link) = undecided {
                self.endpoint.refuse_incoming(link);
            }
            self.forget(number);
        }
        self.endpoint.flush(LAST_WORDS);
        self.count();
    }
}
