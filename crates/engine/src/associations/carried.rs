//! One connection that carries flows which stay.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use linerate_measure::Workload;
use linerate_wire::native::datagram::tag_of;
use linerate_wire::native::opening::OPENING_BYTES;
use linerate_wire::step::Step;
use socket2::Socket;

use super::Quic;
use crate::flow::{DatagramFlow, FlowShared, Native, StreamFlow};
use crate::load::flow_tag;
use crate::shard::Slots;
use crate::transport::quic::{
    Arrivals, Facts, QuicDatagrams, QuicStream, SharedConnection, StreamId,
};

/// Datagrams that may wait for a flow that receives in bulk: more than a round takes in, so that none
/// is dropped here.
const MOST_WAITING: usize = 32_768;
/// Requests or responses that may wait for a flow.
const MOST_REQUESTS_WAITING: usize = 4_096;

/// Whose a stream is.
pub(super) enum Holder {
    /// A flow's: its number among the slots, and its stream.
    Flow(usize, StreamId, Arc<FlowShared>),
    /// Nobody's yet: as much of its opening as has come.
    Arriving([u8; OPENING_BYTES], usize),
}

/// One connection.
pub(super) struct Carried {
    pub(super) connection: SharedConnection,
    pub(super) socket: Arc<Socket>,
    pub(super) facts: Facts,
    /// By their streams' numbers.
    pub(super) holders: Vec<Holder>,
    /// Flows that look at datagrams, by the tags of these.
    looking: HashMap<u32, Looking>,
    /// Which of the flows is first when all may send again.
    first: usize,
    /// Flows that wait for it to stand, at the client.
    pub(super) waiting: Vec<Arc<FlowShared>>,
}

/// A flow that looks at datagrams.
struct Looking {
    /// Its number among the slots.
    slot: usize,
    arrivals: Arrivals,
    most: usize,
}

impl Carried {
    pub(super) fn new(
        connection: SharedConnection,
        socket: Arc<Socket>,
        facts: Facts,
        waiting: Vec<Arc<FlowShared>>,
    ) -> Self {
        let (holders, looking) = (Vec::new(), HashMap::new());
        Self { connection, socket, facts, holders, looking, first: 0, waiting }
    }

    /// Begins a flow that has opened a stream: in it, or in datagrams beside it.
    pub(super) fn begin(
        &mut self,
        id: StreamId,
        shared: Arc<FlowShared>,
        steps: Vec<Step>,
        (quic, workload, pattern): (&Quic, &Workload, &Bytes),
        slots: &mut Slots,
    ) {
        let (connection, socket) = (self.connection.clone(), Arc::clone(&self.socket));
        if !workload.quic.datagrams {
            let (pattern, is_bulk) = (pattern.clone(), workload.direction().is_some());
            let stream = QuicStream::new(connection, id, socket, pattern, self.facts, is_bulk);
            return slots.add(Box::new(StreamFlow::new(stream, shared, steps)));
        }
        // The stream has said whose it is, and that is all.
        let _closed_with_the_connection = connection.borrow_mut().finish(id);
        let tag = flow_tag(&quic.token, shared.number);
        let arrivals = Arrivals::default();
        let most = match steps.first() {
            Some(Step::Receive(_)) => MOST_WAITING,
            Some(Step::Exchange(_) | Step::Answer(_)) => MOST_REQUESTS_WAITING,
            _ => 0,
        };
        let looking = Looking { slot: slots.len(), arrivals: Arrivals::clone(&arrivals), most };
        self.looking.insert(tag, looking);
        let path = QuicDatagrams::new(connection, arrivals, socket, self.facts);
        slots.add(Box::new(DatagramFlow::over(path, shared, Native::new(tag), steps)));
    }

    /// Gives every flow the datagrams that show its tag. What shows another, or comes for a flow that
    /// looks at none, is nobody's.
    pub(super) fn sort_datagrams(&mut self, slots: &mut Slots) {
        let mut connection = self.connection.borrow_mut();
        while let Some(datagram) = connection.poll_datagram() {
            let looking = tag_of(&datagram).and_then(|tag| self.looking.get(&tag));
            let Some(Looking { slot, arrivals, most }) = looking else { continue };
            let mut arrivals = arrivals.borrow_mut();
            if arrivals.len() < *most {
                arrivals.push_back(datagram);
                slots.handle_ready(*slot);
            }
        }
    }

    /// Has every flow look again, another one first each time; says how many they are.
    pub(super) fn wake_flows(&mut self, slots: &mut Slots) -> usize {
        self.first = (self.first + 1) % self.holders.len().max(1);
        let (later, sooner) = self.holders.split_at(self.first);
        let flows = sooner.iter().chain(later).filter_map(|holder| match holder {
            Holder::Flow(slot, ..) => Some(*slot),
            Holder::Arriving(..) => None,
        });
        flows.map(|slot| slots.handle_ready(slot)).count()
    }
}
