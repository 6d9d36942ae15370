//! What an endpoint does in its turns.

use std::cmp::Reverse;
use std::io;
use std::time::Instant;

use quinn_proto::{
    DatagramEvent, EcnCodepoint, Event as ProtoEvent, Incoming, StreamEvent, Transmit,
};

use super::super::cause::Cause;
use super::super::coalesced::{packets_in, split_off_last};
use super::super::connection::{Connection, SharedConnection};
use super::super::settings::MOST_JUMBO_CONNECTIONS;
use super::bounds::{Intake, Outlet};
use super::half_open::Reply;
use super::{Endpoint, Event, Link};

/// The first byte of whatever is QUIC's is at least this (RFC 9000, section 17: the fixed bit).
const FIRST_OF_QUIC: u8 = 0x40;
/// What isn't QUIC's is kept until it is asked for, so many at most.
const MOST_FOREIGN: usize = 16;

impl Endpoint {
    pub(super) fn receive(&mut self, now: Instant, intake: &mut Intake) -> io::Result<bool> {
        while !intake.is_spent() {
            intake.record_request();
            let mut train = match self.packets.receive() {
                Ok(Some(train)) => train,
                Ok(None) => return Ok(false),
                // An earlier packet found the peer's port closed or no way there, or so somebody says.
                Err(error) if is_of_the_path(&error) => {
                    self.refusals += u64::from(error.kind() == io::ErrorKind::ConnectionRefused);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_alone = intake.record_train(train.bytes(), train.segment_bytes);
            while let Some(mut datagram) = train.next() {
                if datagram.first().is_some_and(|first| *first < FIRST_OF_QUIC) {
                    if self.keeps_foreign && self.foreign.len() < MOST_FOREIGN {
                        self.foreign.push_back(datagram);
                    }
                    continue;
                }
                let last = split_off_last(&mut datagram);
                for part in std::iter::once(datagram).chain(last) {
                    self.outgoing.clear();
                    let packets = if self.counts { packets_in(&part) } else { 0 };
                    let (from, to, ecn) = (train.from, train.to, train.ecn);
                    let event = self.proto.handle(now, from, to, ecn, part, &mut self.outgoing);
                    self.handle_datagram(now, (packets, ecn), event);
                }
            }
            if is_alone {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn handle_datagram(
        &mut self,
        now: Instant,
        (packets, ecn): (u64, Option<EcnCodepoint>),
        event: Option<DatagramEvent>,
    ) {
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(Some(connection)) = self.connections.get(handle.0) {
                    let mut connection = connection.borrow_mut();
                    connection.record_datagram(packets, ecn);
                    connection.proto.handle_event(event);
                    connection.touch();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(now, incoming, (packets, ecn));
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit),
            None => {}
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        (packets, ecn): (u64, Option<EcnCodepoint>),
    ) {
        self.outgoing.clear();
        let from = incoming.remote_address();
        let has_room = self.open < self.most_connections;
        let server = self.accepts.as_ref().filter(|_| has_room);
        // With more connections long packets would overflow the socket.
        let is_jumbo = self.open < MOST_JUMBO_CONNECTIONS as usize;
        let routes = self.routes.as_mut().filter(|_| is_jumbo && has_room);
        let route = routes.and_then(|routes| routes.transport(from, now));
        let route = route.as_ref().or(self.route.as_ref());
        let Some(config) = server.map(|server| server.config(from, route)) else {
            self.refused += 1;
            let refusal = self.proto.refuse(incoming, &mut self.outgoing);
            return self.respond(&refusal);
        };
        match self.half_open.reply(from, incoming.remote_address_validated()) {
            Reply::Accept => {}
            Reply::Retry => {
                // It can't be asked twice; but who answered once has shown its address.
                if let Ok(retry) = self.proto.retry(incoming, &mut self.outgoing) {
                    self.respond(&retry);
                }
                return;
            }
            Reply::Ignore => return self.proto.ignore(incoming),
            Reply::Replace(place) => self.give_up(place),
        }
        match self.proto.accept(incoming, now, &mut self.outgoing, Some(config)) {
            Ok((handle, proto)) => {
                self.insert(handle, proto);
                if let Some(Some(connection)) = self.connections.get(handle.0) {
                    let number = self.half_open.add(from, handle.0, now);
                    let mut connection = connection.borrow_mut();
                    connection.record_datagram(packets, ecn);
                    connection.stranger = Some(number);
                }
                self.events.push_back((Link(handle.0), Event::Accepted));
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.respond(&response);
                }
            }
        }
    }

    /// Ends a connection whose handshake isn't done.
    fn give_up(&mut self, place: usize) {
        if let Some(Some(connection)) = self.connections.get(place) {
            let mut connection = connection.borrow_mut();
            connection.stranger = None;
            connection.close(0, b"");
        }
    }

    /// Answers a datagram that belongs to no connection. Whoever doesn't get the answer asks again.
    fn respond(&mut self, transmit: &Transmit) {
        let _asked_again = self.packets.send(transmit, &self.outgoing);
    }

    pub(super) fn handle_times(&mut self, now: Instant) {
        while let Some(place) = self.half_open.poll_overdue(now) {
            self.give_up(place);
        }
        while let Some(Reverse((due, index))) = self.times.peek().copied() {
            if due > now {
                return;
            }
            self.times.pop();
            let Some(Some(connection)) = self.connections.get(index) else { continue };
            let mut connection = connection.borrow_mut();
            if connection.due != Some(due) {
                continue;
            }
            connection.due = None;
            match connection.next_time() {
                Some(real) if real > now => {
                    connection.due = Some(real);
                    drop(connection);
                    self.times.push(Reverse((real, index)));
                }
                Some(_) => connection.handle_time(now),
                None => {}
            }
        }
    }

    /// Serves the connections that have something to say, each in its turn; says whether any has
    /// more.
    pub(super) fn send(&mut self, now: Instant, outlet: &mut Outlet) -> io::Result<bool> {
        self.queue.extend(self.touched.borrow_mut().drain(..));
        if let Some((index, transmit, bytes)) = self.unsent.take() {
            let connection = self.connections.get(index).cloned().flatten();
            let mut connection = connection.as_ref().map(|connection| connection.borrow_mut());
            if !self.transmit(index, connection.as_deref_mut(), transmit, bytes)? {
                return Ok(false);
            }
        }
        while let Some(index) = self.queue.pop_front() {
            if outlet.is_spent() {
                self.queue.push_front(index);
                return Ok(true);
            }
            let Some(Some(connection)) = self.connections.get(index).cloned() else { continue };
            if self.serve(index, &connection, now)? {
                self.queue.push_back(index);
            }
            outlet.record_send(self.outgoing.len());
            if self.unsent.is_some() {
                return Ok(false);
            }
        }
        Ok(!self.touched.borrow().is_empty())
    }

    /// One send of one connection, and whatever it has to tell; says whether it has more.
    fn serve(
        &mut self,
        index: usize,
        connection: &SharedConnection,
        now: Instant,
    ) -> io::Result<bool> {
        let mut connection = connection.borrow_mut();
        let connection = &mut *connection;
        let mut bytes = std::mem::take(&mut self.outgoing);
        bytes.clear();
        let most = self.packets.most_segments(connection.proto.current_mtu().into());
        if let Some(transmit) = connection.poll_transmit(now, most, &mut bytes) {
            self.transmit(index, Some(connection), transmit, bytes)?;
            return Ok(true);
        }
        self.outgoing = bytes;
        connection.untouch();
        let due = connection.next_time();
        if let Some(due) = due
            && connection.due.is_none_or(|entry| due < entry)
        {
            connection.due = Some(due);
            self.times.push(Reverse((due, index)));
        }
        self.collect(index, connection);
        if connection.proto.is_drained() {
            self.forget(index);
        }
        Ok(false)
    }

    /// Sends what the connection with this number has made; says whether the socket had room.
    fn transmit(
        &mut self,
        index: usize,
        connection: Option<&mut Connection>,
        transmit: Transmit,
        bytes: Vec<u8>,
    ) -> io::Result<bool> {
        let packets = transmit.segment_size.map_or(1, |each| transmit.size.div_ceil(each.max(1)));
        let refused = match self.packets.send(&transmit, &bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent = Some((index, transmit, bytes));
                return Ok(false);
            }
            // What a path doesn't take at once, it has lost: a probe that is too long, a full queue,
            // a filter. So it is with what leads nowhere: a peer that says it is at port 0, or that wrote
            // to an address from which nothing can be sent (multicast, one that is gone, with its interface
            // or without). QUIC finds out by itself, and other connections go on.
            Err(error) if !is_of_the_path(&error) => return Err(error),
            Err(_) => packets,
            Ok(refused) => refused,
        };
        self.outgoing = bytes;
        if let Some(connection) = connection {
            connection.datagrams.record_departure(packets, refused);
        }
        Ok(true)
    }

    pub(super) fn collect(&mut self, index: usize, connection: &mut Connection) {
        while let Some(event) = connection.proto.poll_endpoint_events() {
            if let Some(event) = self.proto.handle_event(connection.handle, event) {
                connection.proto.handle_event(event);
            }
        }
        if connection.stranger.is_some()
            && (!connection.proto.is_handshaking() || connection.proto.is_closed())
            && let Some(number) = connection.stranger.take()
        {
            self.half_open.remove(number);
        }
        while let Some(event) = connection.proto.poll() {
            let event = match event {
                ProtoEvent::Connected => Event::Established,
                ProtoEvent::ConnectionLost { reason } => {
                    let cause = Cause::of(&reason);
                    if let Some(log) = &connection.log {
                        log.record_close("remote", cause.code, &cause.text);
                    }
                    connection.lost = Some(cause.clone());
                    Event::Closed(cause)
                }
                ProtoEvent::Stream(event) => match event {
                    StreamEvent::Opened { dir } => Event::StreamsOpened(dir),
                    StreamEvent::Available { dir } => Event::StreamsAvailable(dir),
                    StreamEvent::Readable { id } => Event::Readable(id),
                    StreamEvent::Writable { id } => Event::Writable(id),
                    StreamEvent::Finished { id } => Event::Delivered(id),
                    StreamEvent::Stopped { id, error_code } => {
                        Event::Stopped(id, error_code.into_inner())
                    }
                },
                ProtoEvent::DatagramReceived => Event::Datagrams,
                ProtoEvent::DatagramsUnblocked => Event::DatagramsWritable,
                ProtoEvent::HandshakeDataReady => continue,
            };
            // Many packets of a train say the same of one stream.
            let event = (Link(index), event);
            if self.events.back() != Some(&event) {
                self.events.push_back(event);
            }
        }
    }

    fn forget(&mut self, index: usize) {
        if let Some(place) = self.connections.get_mut(index)
            && place.take().is_some()
        {
            self.open -= 1;
        }
    }
}

/// Whether this is said of one path, or of one packet, and not of the socket: what the machine itself
/// refuses, what routers and hosts answer (as Linux has their ICMP messages), and what an interface
/// leaves behind that has gone.
fn is_of_the_path(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EINVAL
                | libc::EADDRNOTAVAIL
                | libc::EACCES
                | libc::EMSGSIZE
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::EPERM
                | libc::ECONNREFUSED
                | libc::EHOSTDOWN
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::ENODEV
                | libc::ENONET
                | libc::ENOPROTOOPT
                | libc::ENXIO
                | libc::EOPNOTSUPP
                | libc::EPROTO
        )
    )
}
