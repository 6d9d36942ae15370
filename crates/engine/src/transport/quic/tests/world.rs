//! A client and a server of one connection in memory, under a clock that nobody waits for, and a path
//! between them that has a chance of its own.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{DatagramEvent, EcnCodepoint, Event as ProtoEvent};

use super::super::coalesced::packets_in;
use super::super::connection::{Connection, Location};
use super::super::{Extras, Settings};
use super::sides_with;
use linerate_measure::random::next_word;

/// What happens to how many of a thousand datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) late: u64,
    /// A bit is wrong.
    pub(super) spoiled: u64,
    /// Marked as having met congestion.
    pub(super) marked: u64,
    /// Nothing at all reaches the client.
    pub(super) deaf: bool,
}

/// How long a datagram takes, and by how much more a late one at most.
const DELAY: Duration = Duration::from_millis(10);
const LATE_US: u64 = 40_000;

/// Which end.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// One end.
pub(super) struct Node {
    proto: quinn_proto::Endpoint,
    pub(super) connection: Option<Connection>,
    pub(super) address: SocketAddr,
    pub(super) established: bool,
    /// What else the connection has told.
    pub(super) events: Vec<ProtoEvent>,
    /// Bytes that it has sent, and that have come to it.
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
}

/// A datagram on its way: when it arrives, its number, whose it will be, from where, its mark, its bytes.
type Flying = (Instant, u64, usize, SocketAddr, u8, Vec<u8>);

pub(super) struct World {
    began: Instant,
    now: Instant,
    pub(super) nodes: [Node; 2],
    flying: BinaryHeap<Reverse<Flying>>,
    next_number: u64,
    chance: u64,
    pub(super) path: Path,
    /// Whether the server has its clients show their address first.
    asks_back: bool,
    /// The first byte of every datagram that has left.
    pub(super) first_bytes: Vec<u8>,
    /// What a server may have sent for what it received, while it knows no client's address.
    pub(super) worst_ratio: f64,
}

impl World {
    pub(super) fn new(
        settings: &Settings,
        extras: (Extras, Extras),
        path: Path,
        asks_back: bool,
        seed: u64,
    ) -> Self {
        let (client, server) = sides_with(settings, extras);
        let mut chance = seed;
        let mut node = |accepts: bool, port: u16| {
            let mut random = [0; 32];
            random.fill_with(|| next_word(&mut chance) as u8);
            let config = settings.endpoint(random).unwrap().into();
            let address = SocketAddr::from(([192, 0, 2, 1], port));
            let server = accepts.then(|| server.config(address, None));
            Node {
                proto: quinn_proto::Endpoint::new(config, server, true, Some(random)),
                connection: None,
                address,
                established: false,
                events: Vec::new(),
                sent_bytes: 0,
                received_bytes: 0,
            }
        };
        let mut nodes = [node(false, 1_000), node(true, 4_433)];
        let now = Instant::now();
        let to = nodes[SERVER].address;
        let config = client.config(to, None).unwrap().0;
        let (handle, proto) = nodes[CLIENT].proto.connect(now, config, to, "linerate").unwrap();
        let touched = Rc::new(RefCell::new(Vec::new()));
        nodes[CLIENT].connection =
            Some(Connection::new(proto, Location { port: 0, handle, place: 0 }, touched));
        Self {
            began: now,
            now,
            nodes,
            flying: BinaryHeap::new(),
            next_number: 0,
            chance,
            path,
            asks_back,
            first_bytes: Vec::new(),
            worst_ratio: 0.0,
        }
    }

    /// How long it has run, on its own clock.
    pub(super) fn elapsed(&self) -> Duration {
        self.now - self.began
    }

    pub(super) fn connection(&mut self, end: usize) -> Option<&mut Connection> {
        self.nodes[end].connection.as_mut()
    }

    /// Until both ends' connections stand.
    pub(super) fn establish(&mut self) {
        while !self.nodes.iter().all(|node| node.established) {
            assert!(self.step() && self.elapsed() < Duration::from_secs(60), "it never stands");
        }
    }

    /// Lets this time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.next().is_some_and(|next| next <= end) && self.step() {}
        self.now = end;
    }

    /// Has an end send what it can at once; how many bytes that was.
    pub(super) fn burst(&mut self, end: usize) -> u64 {
        let before = self.nodes[end].sent_bytes;
        self.send(end);
        self.nodes[end].sent_bytes - before
    }

    /// Closes one end's connection.
    pub(super) fn close(&mut self, end: usize) {
        let now = self.now;
        if let Some(connection) = self.connection(end) {
            connection.proto.close(now, 0_u32.into(), bytes::Bytes::new());
        }
    }

    /// Whether both ends have forgotten the connection.
    pub(super) fn is_over(&self) -> bool {
        let over = |node: &Node| node.connection.as_ref().is_none_or(|one| one.proto.is_drained());
        self.nodes.iter().all(over)
    }

    /// Sends what there is; when the next thing happens.
    fn next(&mut self) -> Option<Instant> {
        for end in [CLIENT, SERVER] {
            self.send(end);
        }
        let mut next = self.flying.peek().map(|Reverse((due, ..))| *due);
        for node in &mut self.nodes {
            let timer = node.connection.as_mut().and_then(Connection::next_time);
            next = next.into_iter().chain(timer).min();
        }
        next
    }

    /// Sends what there is, and goes on to the next thing that happens; false where nothing will.
    pub(super) fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        for end in [CLIENT, SERVER] {
            let connection = self.nodes[end].connection.as_mut();
            if let Some(connection) = connection
                && connection.next_time().is_some_and(|due| due <= self.now)
            {
                connection.handle_time(self.now);
            }
        }
        while self.flying.peek().is_some_and(|Reverse((due, ..))| *due <= self.now)
            && let Some(Reverse((_, _, end, from, mark, bytes))) = self.flying.pop()
        {
            self.deliver(end, from, mark, &bytes);
        }
        self.collect();
        true
    }

    fn send(&mut self, end: usize) {
        loop {
            let mut bytes = Vec::new();
            let Some(connection) = self.nodes[end].connection.as_mut() else { return };
            let Some(sent) = connection.poll_transmit(self.now, 10, &mut bytes) else {
                return;
            };
            let each = sent.segment_size.unwrap_or(sent.size).max(1);
            for datagram in bytes[..sent.size].chunks(each) {
                self.launch(end, sent.destination, sent.ecn.map_or(0, |ecn| ecn as u8), datagram);
            }
        }
    }

    /// A datagram leaves an end, and has its fate.
    fn launch(&mut self, from: usize, to: SocketAddr, mark: u8, datagram: &[u8]) {
        self.first_bytes.extend(datagram.first());
        let [client, server] = &mut self.nodes;
        let (sender, receiver) = if from == CLIENT { (client, server) } else { (server, client) };
        sender.sent_bytes += datagram.len() as u64;
        if from == SERVER {
            let ratio = sender.sent_bytes as f64 / sender.received_bytes.max(1) as f64;
            self.worst_ratio = self.worst_ratio.max(ratio);
        }
        let (source, known) = (sender.address, receiver.address == to);
        let mut throw = |below: u64| next_word(&mut self.chance) % below;
        let path = self.path;
        let mut copies = 1 + u64::from(throw(1_000) < path.repeated);
        if !known || throw(1_000) < path.lost || path.deaf && from == SERVER {
            copies = 0;
        }
        for _ in 0..copies {
            let mut bytes = datagram.to_vec();
            if throw(1_000) < path.spoiled {
                let at = throw(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << throw(8);
            }
            let marked = mark != 0 && path.marked > 0 && throw(1_000) < path.marked;
            let mark = if marked { EcnCodepoint::Ce as u8 } else { mark };
            let late_us = if throw(1_000) < path.late { throw(LATE_US) } else { 0 };
            let due = self.now + DELAY + Duration::from_micros(late_us);
            self.next_number += 1;
            self.flying.push(Reverse((due, self.next_number, 1 - from, source, mark, bytes)));
        }
    }

    fn deliver(&mut self, end: usize, from: SocketAddr, mark: u8, bytes: &[u8]) {
        let (ecn, packets) = (EcnCodepoint::from_bits(mark), packets_in(bytes));
        let node = &mut self.nodes[end];
        node.received_bytes += bytes.len() as u64;
        let mut answer = Vec::new();
        let event =
            node.proto.handle(self.now, from, None, ecn, BytesMut::from(bytes), &mut answer);
        let response = match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let connection =
                    node.connection.as_mut().filter(|one| one.location.handle == handle);
                if let Some(connection) = connection {
                    connection.record_datagram(packets, ecn);
                    connection.proto.handle_event(event);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                // A first packet that was late or repeated may begin another, which nobody wants.
                if node.connection.is_some() {
                    node.proto.ignore(incoming);
                    None
                } else if self.asks_back && !incoming.remote_address_validated() {
                    node.proto.retry(incoming, &mut answer).ok()
                } else {
                    match node.proto.accept(incoming, self.now, &mut answer, None) {
                        Ok((handle, proto)) => {
                            let touched = Rc::new(RefCell::new(Vec::new()));
                            let mut connection = Connection::new(
                                proto,
                                Location { port: 0, handle, place: 0 },
                                touched,
                            );
                            connection.record_datagram(packets, ecn);
                            node.connection = Some(connection);
                            None
                        }
                        Err(error) => error.response,
                    }
                }
            }
            Some(DatagramEvent::Response(response)) => Some(response),
            None => None,
        };
        if let Some(response) = response {
            self.launch(end, response.destination, 0, &answer[..response.size]);
        }
    }

    /// Takes what connections tell their endpoints and their users.
    fn collect(&mut self) {
        for node in &mut self.nodes {
            let Some(connection) = node.connection.as_mut() else { continue };
            while let Some(event) = connection.proto.poll_endpoint_events() {
                if let Some(event) = node.proto.handle_event(connection.location.handle, event) {
                    connection.proto.handle_event(event);
                }
            }
            while let Some(event) = connection.proto.poll() {
                match event {
                    ProtoEvent::Connected => node.established = true,
                    ProtoEvent::ConnectionLost { reason } => {
                        connection.lost = Some(super::super::cause::Cause::of(&reason));
                    }
                    other => node.events.push(other),
                }
            }
        }
    }
}
