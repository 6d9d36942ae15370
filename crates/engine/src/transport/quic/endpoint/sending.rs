//! The other half of a turn: packets out, and the events of connections.

use std::cmp::Reverse;
use std::io;
use std::time::{Duration, Instant};

use quinn_proto::{Event as ProtoEvent, StreamEvent, Transmit};

use super::super::cause::Cause;
use super::super::connection::{Connection, SharedConnection};
use super::bounds::Outlet;
use super::stay::{LATE, Stay};
use super::{Endpoint, Event};

impl Endpoint {
    /// Packets out: serves the connections that have something to say, each in its turn;
    /// says whether any has more.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`].
    pub(crate) fn send_out(&mut self) -> io::Result<bool> {
        let (now, mut outlet) = (Instant::now(), Outlet::default());
        let mut result = self.send_unsent();
        self.queue.extend(self.touched.borrow_mut().drain(..));
        while let Some(index) = self.queue.pop_front() {
            if outlet.is_spent() {
                self.queue.push_front(index);
                return result.map(|()| true);
            }
            let Some((_, connection)) = self.slots.at(index) else { continue };
            let connection = SharedConnection::clone(connection);
            let mut connection = connection.borrow_mut();
            match self.serve(index, &mut connection, now) {
                Ok(true) => self.queue.push_back(index),
                Ok(false) => {}
                Err(error) => {
                    let number = connection.location.port;
                    drop(connection);
                    if let Err(error) = self.lose(number, error) {
                        // What it sent is lost; its timers find that out, and others go on.
                        result = Err(error);
                        self.queue.push_back(index);
                    }
                }
            }
            outlet.record_send(self.outgoing.len());
        }
        result.map(|()| !self.touched.borrow().is_empty())
    }

    /// One send of one connection, and whatever it has to tell; says whether it has more.
    fn serve(&mut self, index: u32, connection: &mut Connection, now: Instant) -> io::Result<bool> {
        self.outgoing.clear();
        let number = connection.location.port;
        let Some(port) = self.ports.at_mut(number) else { return Ok(false) };
        if port.unsent.is_some() {
            port.parked.push(index);
            return Ok(false);
        }
        let mut bytes = std::mem::take(&mut self.outgoing);
        let most = port.packets.most_segments(connection.proto.current_mtu().into());
        if let Some(transmit) = connection.poll_transmit(now, most, &mut bytes) {
            return self
                .transmit((number, index), Some(connection), transmit, bytes)
                .map(|()| true);
        }
        self.outgoing = bytes;
        let (is_own, was_told) = (port.own.is_some(), port.stay().is_some());
        connection.untouch();
        let due = connection.next_time();
        if let Some(due) = due
            && connection.due.is_none_or(|entry| due < entry)
        {
            connection.due = Some(due);
            self.times.push(Reverse((due, index)));
        }
        self.collect(index, connection);
        if is_own {
            self.see_out(connection, was_told, now);
        } else if connection.proto.is_drained() {
            self.forget(index, connection);
        }
        Ok(false)
    }

    /// Sends what sockets had no room for; connections that wait behind that have their turns again.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::turn`], when all of them have been tried.
    fn send_unsent(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for number in std::mem::take(&mut self.ports.blocked) {
            let unsent = self.ports.at_mut(number).and_then(|port| port.unsent.take());
            let Some((index, transmit, bytes)) = unsent else { continue };
            let connection = self.slots.at(index).map(|(_, connection)| connection.clone());
            let mut borrowed = connection.as_ref().map(|connection| connection.borrow_mut());
            let sent = self.transmit((number, index), borrowed.as_deref_mut(), transmit, bytes);
            drop(borrowed);
            if let Err(error) = sent {
                result = result.and(self.lose(number, error));
            }
            if let Some(port) = self.ports.at_mut(number).filter(|port| port.unsent.is_none()) {
                self.queue.extend(port.parked.drain(..));
                result = result.and(self.waiting.watch(&mut self.ports, number));
            }
        }
        result
    }

    /// Sends what the connection at this place has made over the socket of this number, or keeps what that has no room
    /// for.
    fn transmit(
        &mut self,
        (number, index): (u32, u32),
        connection: Option<&mut Connection>,
        transmit: Transmit,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        let Some(port) = self.ports.at_mut(number) else { return Ok(()) };
        let packets = transmit.segment_size.map_or(1, |each| transmit.size.div_ceil(each.max(1)));
        let refused = match port.packets.send(&transmit, &bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                port.unsent = Some((index, transmit, bytes));
                self.ports.blocked.push(number);
                return self.waiting.watch(&mut self.ports, number);
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
        Ok(())
    }

    /// Takes over what a connection tells its machine and its user.
    pub(super) fn collect(&mut self, index: u32, connection: &mut Connection) {
        let Some((link, _)) = self.slots.at(index) else { return };
        if let Some(port) = self.ports.at_mut(connection.location.port) {
            while let Some(event) = connection.proto.poll_endpoint_events() {
                if let Some(event) = port.proto.handle_event(connection.location.handle, event) {
                    connection.proto.handle_event(event);
                }
            }
        }
        if connection.half_open_number.is_some()
            && (!connection.proto.is_handshaking() || connection.proto.is_closed())
            && let Some(number) = connection.half_open_number.take()
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
            let event = (link, event);
            if self.events.back() != Some(&event) {
                self.events.push_back(event);
            }
        }
        if self.ports.are_apart {
            self.note_end(connection);
        }
    }

    /// Begins the stay of a socket whose own connection has closed.
    pub(super) fn note_end(&mut self, connection: &Connection) {
        let port = self.ports.at_mut(connection.location.port);
        if let Some(own) = port.and_then(|port| port.own.as_mut())
            && own.stay.is_none()
            && connection.proto.is_closed()
        {
            let (stay, link) = (Stay::new(Instant::now()), own.link);
            own.stay = Some(stay);
            self.ports.stays.push_back((stay.until, link));
        }
    }

    /// An own connection has said what it had to say: its socket closes if it may. What came of the connection may
    /// be asked for until the turn after the one that tells of its end, in which the stay began.
    pub(super) fn see_out(&mut self, connection: &Connection, was_told: bool, now: Instant) {
        let number = connection.location.port;
        if let Some(stay) = self.ports.at_mut(number).and_then(|port| port.stay()) {
            stay.record_said(now);
            if was_told && (connection.is_closed_by_peer() || stay.is_over(false, now)) {
                self.close_own(number);
            }
        }
    }

    /// A socket is of no use any more: if it is one connection's, that ends, and no other.
    ///
    /// # Errors
    ///
    /// What the socket said, where it is more than one connection's.
    pub(super) fn lose(&mut self, number: u32, error: io::Error) -> io::Result<()> {
        let Some(port) = self.ports.at_mut(number) else { return Ok(()) };
        let Some(own) = &mut port.own else { return Err(error) };
        if own.stay.is_some() {
            self.close_own(number);
            return Ok(());
        }
        let (link, stay) = (own.link, Stay::none(Instant::now()));
        own.stay = Some(stay);
        self.ports.stays.push_back((stay.until, link));
        if let Some(connection) = self.slots.get(link) {
            let mut connection = connection.borrow_mut();
            let (kind, text) = (error.kind(), error.to_string());
            let cause = Cause { kind, code: None, text, close: None };
            connection.lost = Some(cause.clone());
            connection.touch();
            self.events.push_back((link, Event::Closed(cause)));
        }
        Ok(())
    }

    /// Closes the socket that one connection alone had, and forgets both.
    fn close_own(&mut self, number: u32) {
        if let Some(own) = self.ports.get(number).and_then(|port| port.own) {
            self.remove_port(number);
            self.slots.forget(own.link.index);
        }
    }

    /// Closes sockets that might have closed so long ago.
    pub(super) fn look_at_stays(&mut self, now: Instant, late: Duration) {
        while let Some((ends, link)) = self.ports.stays.front().copied()
            && ends + late <= now
        {
            self.ports.stays.pop_front();
            let Some(connection) = self.slots.get(link).cloned() else { continue };
            let connection = connection.borrow();
            let Some(port) = self.ports.at_mut(connection.location.port) else { continue };
            let has_unsaid = port.unsent.is_some() || connection.is_touched();
            let Some(stay) = port.stay().copied() else { continue };
            if stay.is_over(has_unsaid, now) || !has_unsaid && connection.is_closed_by_peer() {
                self.close_own(connection.location.port);
            } else {
                self.ports.stays.push_back((stay.until.max(now + LATE), link));
            }
        }
    }

    /// Whether it stands among those whose sockets are to close.
    #[cfg(test)]
    pub(in super::super) fn is_to_close(&self, link: super::Link) -> bool {
        self.ports.stays.iter().any(|(_, stays)| *stays == link)
    }

    /// Closes the sockets that may close by now.
    pub(crate) fn close_ended(&mut self) {
        self.look_at_stays(Instant::now(), Duration::ZERO);
    }

    /// Closes the sockets of own connections that have ended and have said so, where sockets are rare; whether there
    /// was one.
    pub(crate) fn give_up_ended(&mut self) -> bool {
        let before = self.ports.closed;
        for number in self.ports.numbers() {
            let Some(own) = self.ports.get(number).and_then(|port| port.own) else { continue };
            let blocked = self.ports.get(number).is_some_and(|port| port.unsent.is_some());
            let connection = self.slots.get(own.link);
            let unsaid = blocked || connection.is_some_and(|one| one.borrow().is_touched());
            if own.stay.is_some() && !unsaid {
                self.close_own(number);
            }
        }
        self.ports.closed > before
    }
}

/// Whether this is said of one path, or of one packet, and not of the socket: what the machine itself
/// refuses, what routers and hosts answer (as Linux has their ICMP messages), and what an interface
/// leaves behind that has gone.
pub(super) fn is_of_the_path(error: &io::Error) -> bool {
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
