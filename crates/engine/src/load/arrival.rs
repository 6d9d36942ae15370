//! How flows come to a load, and from there to their shards.

use std::io;
use std::sync::Arc;

use linerate_measure::sample::Role;
use linerate_measure::{Transport, Workload};
use socket2::Socket;

use super::Load;
use crate::flow::{DatagramSettings, FlowShared, Fresh, Over};
use crate::tally::Tallies;
use crate::transport::Negotiation;

impl Load {
    /// Whether the flow is one of this load's and hasn't come yet.
    pub(crate) fn lacks(&self, flow: u32) -> bool {
        self.claims.is_none()
            && flow < self.workload.opened_flows()
            && matches!(self.flows.get(flow as usize), Some(None))
    }

    /// Whether the QUIC socket is one of this load's and hasn't come yet.
    pub(crate) fn lacks_quic_socket(&self, number: u32) -> bool {
        let is_quic = self.workload.transport == Transport::Quic;
        let come = self.quic_sockets.come.get(number as usize).copied().unwrap_or(false);
        is_quic && number < self.quic_sockets.most && !come
    }

    /// How many UDP sockets a client opens for its load over QUIC: one a shard.
    pub(crate) fn quic_sockets(&self) -> u32 {
        u32::try_from(self.shards.len()).unwrap_or(u32::MAX)
    }

    /// Adds a connected UDP socket whose peer's address is validated, for a shard to carry QUIC over.
    pub(crate) fn add_quic_socket(&mut self, number: u32, socket: Socket) {
        let number = number as usize;
        let arrived = &mut self.quic_sockets.come;
        if arrived.len() <= number {
            arrived.resize(number + 1, false);
        }
        if let Some(come) = arrived.get_mut(number) {
            *come = true;
        }
        let index = number % self.shards.len().max(1);
        if let (Some(inlet), Some(shard)) = (self.inlets.get(index), self.shards.get(index)) {
            // A shard that has ended takes nothing more.
            let _ended = inlet.send(socket);
            shard.wake();
        }
    }

    /// Adds a flow over a connection, under TLS where there is something to agree on.
    pub(crate) fn add_stream(
        &mut self,
        flow: u32,
        socket: Socket,
        negotiation: Option<Negotiation>,
    ) {
        let over = self.carriage(&self.steps_of(flow), negotiation);
        self.hand_over(flow, socket, over);
    }

    /// Adds a connection of those that come and go, of which the opening has been read; it says its number.
    ///
    /// Shards with file tables of their own get connections in turn: each has room for its share of them only.
    pub(crate) fn add_connection(&self, number: u32, socket: Socket) {
        let turn = match &self.apart {
            Some(apart) => apart.handed_over.replace(apart.handed_over.get().wrapping_add(1)),
            None => number as usize,
        };
        let index = turn % self.shards.len().max(1);
        if let Some(shard) = self.shards.get(index) {
            // Where the kernel doesn't pass it on, it is closed, which its client counts.
            let _closed = shard.add_connection(number, socket);
        }
    }

    /// Whether its shards have file tables of their own.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Adds a flow of datagrams over a connected socket.
    pub(crate) fn add_datagrams(&mut self, flow: u32, socket: Socket, tag: u32) {
        let settings = DatagramSettings { tag, offload: !self.workload.socket.no_offload };
        self.hand_over(flow, socket, Over::Datagrams(settings));
    }

    pub(super) fn hand_over(&mut self, flow: u32, socket: Socket, over: Over) {
        let socket = Arc::new(socket);
        let kept = (!self.is_apart()).then(|| Arc::clone(&socket));
        let made = flows_of(&self.workload, self.role, flow, kept, &mut self.tallies);
        for flow in &made {
            if let Some(slot) = self.flows.get_mut(flow.number as usize) {
                *slot = Some(Arc::clone(flow));
            }
        }
        let [shared, ..] = &made[..] else { return };
        let shared = Arc::clone(shared);
        if self.undelivered.is_some() {
            // The load can't be whole, and each further try would keep its conductor waiting.
            return;
        }
        let fresh = Fresh { shared, steps: self.steps_of(flow), over };
        let in_turn = flow as usize % self.shards.len().max(1);
        let place = self.given.placement.as_ref().map_or(in_turn, |given| given.place(flow));
        if let Some(shard) = self.shards.get(place)
            && let Err(error) = shard.add(fresh, socket)
        {
            self.undelivered = Some(undelivered(&error));
        }
    }

    /// Takes note of the flows that shards have taken in themselves.
    pub(super) fn take_claimed(&mut self) {
        let Some(claims) = &self.claims else { return };
        for flow in claims.take_new() {
            if let Some(slot) = self.flows.get_mut(flow.number as usize) {
                *slot = Some(flow);
            }
        }
    }

    /// How many of its flows have come.
    pub(crate) fn flows_come(&self) -> usize {
        self.flows.iter().flatten().count()
    }

    /// Why a flow never came to its shard, where that happened: such a load can't be whole.
    pub(crate) fn undelivered(&self) -> Option<&str> {
        self.undelivered.as_deref()
    }
}

/// A flow that has a connection of its own, and with it the one that goes over the same.
pub(super) fn flows_of(
    workload: &Workload,
    role: Role,
    flow: u32,
    kept: Option<Arc<Socket>>,
    tallies: &mut Tallies,
) -> Vec<Arc<FlowShared>> {
    if !workload.payload.duplex {
        return vec![Arc::new(FlowShared::with_tally(flow, kept, tallies.next_place()))];
    }
    let sends_other = role == Role::Server;
    let (own, other) = FlowShared::duplex(flow, flow + workload.flows, sends_other, kept);
    vec![Arc::new(own), other]
}

fn undelivered(error: &io::Error) -> String {
    let way_out = match error.raw_os_error() {
        Some(libc::ETOOMANYREFS) => {
            ": other programs of this user pass as many descriptors as may be open (ulimit -n); raise \
             that limit, or end those programs"
        }
        _ => "",
    };
    format!("a flow's socket could not be passed to its thread ({error}){way_out}")
}
