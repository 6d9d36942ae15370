//! One connection that carries flows which stay.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use linerate_measure::Workload;
use linerate_measure::step::Step;
use linerate_wire::native::datagram::{flow_tag, tag_of};
use linerate_wire::native::opening::Opening;

use super::Quic;
use super::connected::Connected;
use super::opening::ArrivingOpening;
use crate::flow::{DatagramFlow, FlowShared, Native, flow_over};
use crate::shard::Slots;
use crate::transport::quic::{Arrivals, Dir, QuicDatagrams, Side, StreamId, Way};

/// Datagrams that may wait for a flow that receives in bulk: more than a round takes in, so that none
/// is dropped here.
const MOST_WAITING: usize = 32_768;
/// Requests or responses that may wait for a flow.
const MOST_REQUESTS_WAITING: usize = 4_096;

/// Whose a stream is.
pub(super) enum Holder {
    /// A flow's: its number among the slots, and its stream.
    Flow(usize, StreamId, Arc<FlowShared>),
    /// Of no flow yet: its opening is on its way.
    Arriving(ArrivingOpening),
    /// One that has asked for another, in the other direction, for the flow of this number.
    Asking(u32),
}

/// One connection.
pub(super) struct Carried {
    pub(super) over: Connected,
    /// By the numbers of the streams that the client has opened.
    pub(super) holders: Vec<Holder>,
    /// By those that the server has.
    returned: Vec<Holder>,
    /// The client's flows that wait for a stream of the server's.
    pub(super) expected: Vec<Arc<FlowShared>>,
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
    pub(super) fn new(over: Connected, waiting: Vec<Arc<FlowShared>>) -> Self {
        Self {
            over,
            holders: Vec::new(),
            returned: Vec::new(),
            expected: Vec::new(),
            looking: HashMap::new(),
            first: 0,
            waiting,
        }
    }

    /// The streams that are flows', and whose.
    pub(super) fn flows(&self) -> impl Iterator<Item = (StreamId, &Arc<FlowShared>)> {
        self.holders.iter().chain(&self.returned).filter_map(|holder| match holder {
            Holder::Flow(_, id, shared) => Some((*id, shared)),
            Holder::Arriving(_) | Holder::Asking(_) => None,
        })
    }

    fn holders_of(&mut self, id: StreamId) -> &mut Vec<Holder> {
        match id.initiator() {
            Side::Client => &mut self.holders,
            Side::Server => &mut self.returned,
        }
    }

    /// Whose a stream is.
    pub(super) fn holder(&mut self, id: StreamId) -> Option<&mut Holder> {
        let index = usize::try_from(id.index()).ok()?;
        self.holders_of(id).get_mut(index)
    }

    /// The stream that has asked for the one that this flow goes in.
    fn asking(&self, flow: u32) -> Option<StreamId> {
        let of_flow = |holder: &Holder| matches!(holder, Holder::Asking(number) if *number == flow);
        let index = self.holders.iter().position(of_flow)?;
        Some(StreamId::new(Side::Client, Dir::Uni, index as u64))
    }

    /// Takes the next stream that the peer has opened.
    pub(super) fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let id = self.over.connection.borrow_mut().accept_stream(dir)?;
        self.holders_of(id).push(Holder::Arriving(ArrivingOpening::default()));
        Some(id)
    }

    /// Opens a stream that says whose it is.
    pub(super) fn open(&mut self, dir: Dir, opening: &Opening) -> Option<StreamId> {
        let mut connection = self.over.connection.borrow_mut();
        let id = connection.open_stream(dir)?;
        let opening = opening.encode();
        let sent = connection.send(id, &opening).ok()?;
        (sent == opening.len()).then_some(id)
    }

    /// Reads as much of an opening as has come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where that isn't all, and anything else where it will never be.
    pub(super) fn read_opening(&mut self, id: StreamId) -> io::Result<Opening> {
        let connection = self.over.connection.clone();
        match self.holder(id) {
            Some(Holder::Arriving(opening)) => opening.read(&connection, id),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Begins a flow whose stream says whose it is: in it, or in datagrams beside it.
    pub(super) fn begin(
        &mut self,
        id: StreamId,
        shared: Arc<FlowShared>,
        steps: Vec<Step>,
        (quic, workload, pattern): (&Quic, &Workload, &Bytes),
        slots: &mut Slots,
    ) {
        let holder = Holder::Flow(slots.len(), id, Arc::clone(&shared));
        let index = usize::try_from(id.index()).unwrap_or(usize::MAX);
        let holders = self.holders_of(id);
        match holders.get_mut(index) {
            Some(place) => *place = holder,
            None => holders.push(holder),
        }
        if !workload.quic.datagrams {
            let is_bulk = workload.direction().is_some();
            let way = match steps.first() {
                _ if id.dir() == Dir::Bi => Way::Both,
                Some(Step::Send(_)) => Way::Out,
                _ => Way::In(self.asking(shared.number)),
            };
            let stream = self.over.stream(id, way, pattern, is_bulk);
            return slots.add(flow_over(stream, shared, steps));
        }
        let Connected { connection, socket, facts } = self.over.clone();
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
        let path = QuicDatagrams::new(connection, arrivals, socket, facts);
        slots.add(Box::new(DatagramFlow::over(path, shared, Native::new(tag), steps)));
    }

    /// Gives every flow the datagrams that show its tag. What shows another, or comes for a flow that
    /// looks at none, is nobody's.
    pub(super) fn sort_datagrams(&mut self, slots: &mut Slots) {
        let mut connection = self.over.connection.borrow_mut();
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
        let all = sooner.iter().chain(later).chain(&self.returned);
        let flows = all.filter_map(|holder| match holder {
            Holder::Flow(slot, ..) => Some(*slot),
            Holder::Arriving(_) | Holder::Asking(_) => None,
        });
        flows.map(|slot| slots.handle_ready(slot)).count()
    }
}
