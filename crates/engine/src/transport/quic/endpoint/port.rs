//! The sockets of an endpoint.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::{ConnectionHandle, Transmit, TransportConfig};
use socket2::Socket;

use super::super::packets::Packets;
use super::Link;
use super::routes::Routes;
use super::stay::Stay;

/// A UDP socket, and the machine that sorts what comes to it.
pub(crate) struct Port {
    pub(super) proto: quinn_proto::Endpoint,
    pub(super) packets: Packets,
    /// What its connections are told where the socket's route is known.
    pub(super) route: Option<Arc<TransportConfig>>,
    /// Where the socket is a server's without a route, those of its peers.
    pub(super) routes: Option<Routes>,
    /// The slots of its connections, by the machine's numbers.
    pub(super) slots: Vec<Option<u32>>,
    /// How many there are that aren't forgotten yet.
    pub(super) connections: usize,
    /// What the socket had no room for, whose it is, and the connections that have more.
    pub(super) unsent: Option<(u32, Transmit, Vec<u8>)>,
    pub(super) parked: Vec<u32>,
    /// Whether the poll set tells when there is room.
    pub(super) awaits_room: bool,
    /// The connection that alone has the socket.
    pub(super) own: Option<Own>,
}

/// A connection that alone has a socket.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) link: Link,
    /// Whether it has ended, and how long the socket stays.
    pub(super) stay: Option<Stay>,
}

impl Port {
    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.packets.socket
    }

    /// Whether trains are sent, and received.
    pub(crate) fn offload(&self) -> (bool, bool) {
        (self.packets.sends_trains(), self.packets.receives_trains)
    }

    /// Whether packets are marked as able to carry congestion marks.
    pub(crate) fn marks_packets(&self) -> bool {
        self.packets.ecn
    }

    pub(super) fn place(&self, handle: ConnectionHandle) -> Option<u32> {
        self.slots.get(handle.0).copied().flatten()
    }

    pub(super) fn set_place(&mut self, handle: ConnectionHandle, place: Option<u32>) {
        if self.slots.len() <= handle.0 {
            self.slots.resize(handle.0 + 1, None);
        }
        if let Some(known) = self.slots.get_mut(handle.0) {
            *known = place;
        }
    }

    /// How long it stays, if it had a connection of its own that has ended.
    pub(super) fn stay(&mut self) -> Option<&mut Stay> {
        self.own.as_mut()?.stay.as_mut()
    }
}

/// All of an endpoint's.
#[derive(Default)]
pub(super) struct Ports {
    all: Vec<Option<Port>>,
    vacant: Vec<u32>,
    /// Whether connections have sockets of their own.
    pub(super) are_apart: bool,
    /// Those that had no room.
    pub(super) blocked: Vec<u32>,
    /// Connections that have ended, and when their sockets may close; earliest first, but for those that stay
    /// longer.
    pub(super) stays: VecDeque<(Instant, Link)>,
    /// How many have closed.
    pub(super) closed: u64,
}

impl Ports {
    pub(super) fn get(&self, number: u32) -> Option<&Port> {
        self.all.get(number as usize)?.as_ref()
    }

    pub(super) fn at_mut(&mut self, number: u32) -> Option<&mut Port> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// The number that the next one has.
    pub(super) fn next(&self) -> u32 {
        self.vacant.last().copied().unwrap_or(self.all.len() as u32)
    }

    pub(super) fn add(&mut self, port: Port) {
        match self.vacant.pop() {
            None => self.all.push(Some(port)),
            Some(number) => {
                if let Some(place) = self.all.get_mut(number as usize) {
                    *place = Some(port);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        if self.all.get_mut(number as usize).is_some_and(|place| place.take().is_some()) {
            self.vacant.push(number);
            self.closed += 1;
        }
    }

    /// One has a single connection.
    pub(super) fn set_own(&mut self, number: u32, link: Link) {
        self.are_apart = true;
        if let Some(port) = self.at_mut(number) {
            port.own = Some(Own { link, stay: None });
        }
    }

    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.all.len() as u32
    }

    pub(super) fn open(&self) -> usize {
        self.all.len() - self.vacant.len()
    }
}
