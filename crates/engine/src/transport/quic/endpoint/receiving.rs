//! The first half of a turn: packets in, and timers.

use std::cmp::Reverse;
use std::io;
use std::time::Instant;

use quinn_proto::{DatagramEvent, EcnCodepoint, Incoming, Transmit};

use super::super::cause::Cause;
use super::super::coalesced::{packets_in, split_off_last};
use super::super::connection::SharedConnection;
use super::super::first_flight::{Arrived, is_first};
use super::super::settings::MOST_JUMBO_CONNECTIONS;
use super::bounds::Intake;
use super::half_open::Reply;
use super::sending::is_of_the_path;
use super::stay::LATE;
use super::undecided::Candidate;
use super::{Endpoint, Event, Link};

/// The first byte of whatever is QUIC's is at least this (RFC 9000, section 17: the fixed bit).
const FIRST_OF_QUIC: u8 = 0x40;
/// What isn't QUIC's is kept until it is asked for, so many at most.
const MOST_FOREIGN: usize = 16;

impl Endpoint {
    /// The first half of a turn: packets in where some have come, timers, and the events that come of them; says
    /// whether there may be more packets.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(crate) fn take_in(&mut self) -> io::Result<bool> {
        self.waiting.ask_at_once(&self.ports)?;
        let mut intake = if self.ports.are_apart { Intake::told() } else { Intake::default() };
        let (now, mut more, mut failed) = (Instant::now(), false, None);
        while !intake.is_spent()
            && let Some(number) = self.waiting.unread.pop_front()
        {
            match self.receive(number, now, &mut intake) {
                Ok(has_more) => more |= has_more,
                // Other sockets, and all timers, go on.
                Err(error) => failed = Some(error),
            }
        }
        self.waiting.look.record_turn(intake.bytes());
        self.look_at_times(now);
        // Before, that is done when there is nothing else to do.
        self.look_at_stays(now, LATE);
        failed.map_or(Ok(more || !self.waiting.unread.is_empty()), Err)
    }

    /// Takes in what has come to a socket, as far as the turn has room; says whether there may be more.
    fn receive(&mut self, number: u32, now: Instant, intake: &mut Intake) -> io::Result<bool> {
        let before = intake.bytes();
        let received = self.receive_trains(number, now, intake);
        if intake.bytes() > before {
            self.waiting.last_port = Some(number);
            if let Some(stay) = self.ports.at_mut(number).and_then(|port| port.stay()) {
                stay.record_heard(now);
            }
        }
        match received {
            Err(error) => self.lose(number, error).map(|()| false),
            received => received,
        }
    }

    fn receive_trains(
        &mut self,
        number: u32,
        now: Instant,
        intake: &mut Intake,
    ) -> io::Result<bool> {
        while !intake.is_spent() {
            intake.record_request();
            let Some(port) = self.ports.at_mut(number) else { return Ok(false) };
            let mut train = match port.packets.receive() {
                Ok(Some(train)) => train,
                Ok(None) => return Ok(false),
                // An earlier packet found the peer's port closed or no way there, by an ICMP message that may be forged.
                Err(error) if is_of_the_path(&error) => {
                    let is_client = self.accepts.is_none() || port.own.is_some();
                    if error.kind() == io::ErrorKind::ConnectionRefused && is_client {
                        self.tell_refused(number);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_alone = intake.record_train(train.bytes(), train.segment_bytes);
            let (from, to, ecn) = (train.from, train.to, train.ecn);
            while let Some(mut datagram) = train.next() {
                if datagram.first().is_some_and(|first| *first < FIRST_OF_QUIC) {
                    if let Some(foreign) = &mut self.foreign
                        && foreign.len() < MOST_FOREIGN
                    {
                        foreign.push_back((number, datagram));
                    }
                    continue;
                }
                let last = split_off_last(&mut datagram);
                for part in std::iter::once(datagram).chain(last) {
                    self.outgoing.clear();
                    let packets = if self.counts { packets_in(&part) } else { 0 };
                    let asks = self.half_open.undecided.is_some();
                    let first = (asks && is_first(&part)).then(|| part.to_vec());
                    let Some(port) = self.ports.at_mut(number) else { return Ok(false) };
                    let event = port.proto.handle(now, from, to, ecn, part, &mut self.outgoing);
                    self.handle_datagram(number, now, (packets, ecn), event);
                    if let Some(mut first) = first {
                        self.tell_incoming(&mut first);
                    }
                }
            }
            if is_alone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells the connections over a socket that aren't established.
    fn tell_refused(&mut self, number: u32) {
        let Some(port) = self.ports.get(number) else { return };
        for index in port.slots.iter().flatten() {
            if let Some((link, connection)) = self.slots.at(*index)
                && connection.borrow().proto.is_handshaking()
            {
                self.events.push_back((link, Event::Refused));
            }
        }
    }

    fn handle_datagram(
        &mut self,
        number: u32,
        now: Instant,
        (packets, ecn): (u64, Option<EcnCodepoint>),
        event: Option<DatagramEvent>,
    ) {
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let place = self.ports.get(number).and_then(|port| port.place(handle));
                if let Some((_, connection)) = place.and_then(|place| self.slots.at(place)) {
                    let mut connection = connection.borrow_mut();
                    connection.record_datagram(packets, ecn);
                    connection.proto.handle_event(event);
                    connection.touch();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(number, now, incoming, (packets, ecn));
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(number, &transmit),
            None => {}
        }
    }

    fn accept(
        &mut self,
        number: u32,
        now: Instant,
        incoming: Incoming,
        (packets, ecn): (u64, Option<EcnCodepoint>),
    ) {
        self.outgoing.clear();
        let Some(port) = self.ports.at_mut(number) else { return };
        let (from, open) = (incoming.remote_address(), port.connections);
        let has_room = open < self.blueprint.settings.connections;
        let server = self.accepts.as_ref().filter(|_| has_room);
        // With more connections long packets would overflow the socket.
        let is_jumbo = open < MOST_JUMBO_CONNECTIONS as usize;
        let routes = port.routes.as_mut().filter(|_| is_jumbo && has_room);
        let route = routes.and_then(|routes| routes.transport(from, now));
        let route = route.as_ref().or(port.route.as_ref());
        let Some(config) = server.map(|server| server.config(from, route)) else {
            self.refused += 1;
            let refusal = port.proto.refuse(incoming, &mut self.outgoing);
            return self.respond(number, &refusal);
        };
        match self.half_open.reply(from, incoming.remote_address_validated()) {
            Reply::Accept => {}
            Reply::Retry => {
                // It can't be asked twice, but a client that answered once has a validated address.
                if let Ok(retry) = port.proto.retry(incoming, &mut self.outgoing) {
                    self.respond(number, &retry);
                }
                return;
            }
            Reply::Ignore => return port.proto.ignore(incoming),
            Reply::Replace(place) => self.give_up(place as u32),
        }
        let link = self.slots.reserve();
        let half_open_number = self.half_open.add(from, link.index as usize, now);
        let client = Candidate { link, number, incoming, config, packets, ecn, half_open_number };
        match &mut self.half_open.undecided {
            None => drop(self.admit(client)),
            Some(undecided) => undecided.insert(client),
        }
    }

    /// Tells of a client whose first message is whole with this datagram, a copy of what may be one of its first. A
    /// client that can't be accepted is turned away and not told.
    fn tell_incoming(&mut self, datagram: &mut [u8]) {
        let read = self.half_open.undecided.as_mut().and_then(|clients| clients.read(datagram));
        let Some((link, from, arrived)) = read else { return };
        match arrived {
            Arrived::Part => {}
            Arrived::Whole(offer) => {
                self.events.push_back((link, Event::Incoming(from, offer.protocols)));
            }
            Arrived::Wrong => self.refuse_incoming(link),
            Arrived::Gone => self.turn_away(link, false),
        }
    }

    /// Accepts a client whose handshake then begins.
    fn admit(&mut self, client: Candidate) -> bool {
        let Candidate { link, number, incoming, config, packets, ecn, half_open_number } = client;
        self.outgoing.clear();
        let Some(port) = self.ports.at_mut(number) else { return false };
        match port.proto.accept(incoming, Instant::now(), &mut self.outgoing, Some(config)) {
            Ok((handle, proto)) => {
                self.insert(link, number, handle, proto);
                if let Some(connection) = self.slots.get(link) {
                    let mut connection = connection.borrow_mut();
                    connection.record_datagram(packets, ecn);
                    connection.half_open_number = Some(half_open_number);
                }
                self.events.push_back((link, Event::Accepted));
                true
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.respond(number, &response);
                }
                self.half_open.remove(half_open_number);
                self.slots.release(link);
                false
            }
        }
    }

    fn take_undecided(&mut self, link: Link) -> Option<Candidate> {
        self.half_open.undecided.as_mut()?.take(link)
    }

    /// Accepts a client that its user was asked about; whether the handshake can go on.
    pub(crate) fn accept_incoming(&mut self, link: Link) -> bool {
        let client = self.take_undecided(link);
        client.is_some_and(|client| self.admit(client))
    }

    /// The same, and agrees with the client on this application protocol. A handshake with a client that doesn't offer
    /// it fails.
    pub(crate) fn accept_incoming_with(&mut self, link: Link, protocol: Vec<u8>) -> bool {
        let Some(mut client) = self.take_undecided(link) else { return false };
        if let Some(server) = &self.accepts {
            client.config = server.agreeing(&client.config, protocol);
        }
        self.admit(client)
    }

    /// Refuses a client that its user was asked about.
    pub(crate) fn refuse_incoming(&mut self, link: Link) {
        self.turn_away(link, true);
    }

    /// Ends the wait of a client for a decision; `answers`: whether it is told that it is refused.
    fn turn_away(&mut self, link: Link, answers: bool) {
        let Some(client) = self.take_undecided(link) else { return };
        let Candidate { link, number, incoming, half_open_number, .. } = client;
        self.half_open.remove(half_open_number);
        self.slots.release(link);
        self.outgoing.clear();
        let Some(port) = self.ports.at_mut(number) else { return };
        if !answers {
            return port.proto.ignore(incoming);
        }
        let refusal = port.proto.refuse(incoming, &mut self.outgoing);
        self.respond(number, &refusal);
    }

    /// Ends a connection whose handshake isn't done, or the wait of a client for a decision.
    fn give_up(&mut self, index: u32) {
        if let Some((_, connection)) = self.slots.at(index) {
            let mut connection = connection.borrow_mut();
            connection.half_open_number = None;
            return connection.close(0, b"");
        }
        let link = self.half_open.undecided.as_ref().and_then(|clients| clients.link(index));
        if let Some(link) = link {
            self.refuse_incoming(link);
            let (kind, text) = (io::ErrorKind::TimedOut, "nobody decided in time".to_owned());
            let cause = Cause { kind, code: None, text, close: None };
            self.events.push_back((link, Event::Closed(cause)));
        }
    }

    /// Answers a datagram that belongs to no connection. A client that doesn't get the answer asks again.
    fn respond(&mut self, number: u32, transmit: &Transmit) {
        if let Some(port) = self.ports.at_mut(number) {
            let _asked_again = port.packets.send(transmit, &self.outgoing);
        }
    }

    /// Timers, and the events that come of them and of what was taken in.
    fn look_at_times(&mut self, now: Instant) {
        self.handle_times(now);
        self.queue.extend(self.touched.borrow_mut().drain(..));
        for at in 0..self.queue.len() {
            let Some(index) = self.queue.get(at).copied() else { break };
            if let Some((_, connection)) = self.slots.at(index) {
                let connection = SharedConnection::clone(connection);
                self.collect(index, &mut connection.borrow_mut());
            }
        }
    }

    fn handle_times(&mut self, now: Instant) {
        while let Some(place) = self.half_open.poll_overdue(now) {
            self.give_up(place as u32);
        }
        while let Some(Reverse((due, index))) = self.times.peek().copied() {
            if due > now {
                return;
            }
            self.times.pop();
            let Some((_, connection)) = self.slots.at(index) else { continue };
            let mut connection = connection.borrow_mut();
            if connection.due != Some(due) {
                continue;
            }
            connection.due = None;
            match connection.next_time() {
                Some(real) if real > now => {
                    connection.due = Some(real);
                    self.times.push(Reverse((real, index)));
                }
                Some(_) => connection.handle_time(now),
                None => {}
            }
        }
    }

    /// When a timer is due.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.times.peek().map(|Reverse((due, _))| *due)
    }
}
