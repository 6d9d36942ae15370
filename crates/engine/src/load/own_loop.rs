//! The loops of shards in whose loads connections come and go, or go over QUIC.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use linerate_measure::Kind;
use linerate_measure::step::{Churn, Step, StepEnd};
use socket2::Socket;

use super::Load;
use crate::connections::{Accept, Accepting, Dial, Dialing};
use crate::flow::{Ending, FlowShared};
use crate::quic_load::{Quic, QuicAcceptor, QuicDialer, QuicFlows, Side};
use crate::shard::OwnLoop;

/// What a load whose connections a shard's own loop makes needs beside its workload.
pub(crate) enum Connections {
    /// At the client.
    Dial(Dial),
    /// At the server.
    Accept(Accept),
    /// At either end: QUIC, whether its connections come and go or stay.
    Quic(Box<Quic>),
    /// In a loop that a test has made: of the flows of a shard.
    #[cfg(test)]
    Made(fn(Vec<Arc<FlowShared>>) -> OwnLoop),
}

impl Connections {
    /// What shards accept from that have file tables of their own.
    pub(super) fn listeners(&self) -> Vec<Arc<Socket>> {
        match self {
            Self::Accept(accept) if accept.limits.full_tables.is_some() => {
                accept.listener.iter().chain(&accept.more_listeners).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Load {
    /// The loop of one of a load's shards: which, of how many. At the server, `inlet` has the
    /// connections that others accepted.
    pub(super) fn own_loop(
        &self,
        connections: &Connections,
        flows: &[Arc<FlowShared>],
        (index, shards): (usize, usize),
        inlet: Receiver<Socket>,
    ) -> OwnLoop {
        let own: Vec<_> = flows.iter().skip(index).step_by(shards).cloned().collect();
        match connections {
            Connections::Quic(quic) => self.quic_loop(quic, flows, (index, shards), inlet),
            #[cfg(test)]
            Connections::Made(make) => make(own),
            Connections::Dial(dial) => {
                let (dial, shard) = (dial.clone(), (index, shards));
                let churn = self.churn_of_all(&own);
                Box::new(move |waker, local| match churn {
                    Some(churn) => Dialing { dial, churn, flows: own, shard }.run(waker, local),
                    None => own.iter().for_each(|flow| flow.set_ended(Ending::default(), local)),
                })
            }
            Connections::Accept(_) => match own.first() {
                Some(flow) => self.accepting_loop(connections, flow),
                None => Box::new(|_, _| ()),
            },
        }
    }

    /// The loop of a server's shard, which this flow stands for.
    pub(super) fn accepting_loop(
        &self,
        connections: &Connections,
        flow: &Arc<FlowShared>,
    ) -> OwnLoop {
        let (Connections::Accept(accept), Some(step)) = (connections, self.churn(0)) else {
            return Box::new(|_, _| ());
        };
        let accept = match self.is_apart() {
            true => accept.without_listener(self.most_handed_over()),
            false => accept.clone(),
        };
        let accepting = Accepting { accept, step, shared: Arc::clone(flow) };
        Box::new(move |waker, local| accepting.run(waker, local))
    }

    /// Connections that come and go that one of the shards with file tables of their own may hold: its share, as many
    /// again that are about to close, and a few more.
    fn most_handed_over(&self) -> usize {
        let shards = self.flows.len().max(1);
        (self.workload.total_flows() as usize).div_ceil(shards) * 2 + 64
    }

    /// What a flow of connections that come and go does at this end.
    fn churn(&self, flow: u32) -> Option<Churn> {
        match self.steps_of(flow).pop() {
            Some(Step::Connect(churn) | Step::Accept(churn)) => Some(*churn),
            _ => None,
        }
    }

    /// What flows do together: as many connections as all of them, at the rate of all. `None`: there are no flows.
    fn churn_of_all(&self, flows: &[Arc<FlowShared>]) -> Option<Churn> {
        let mut parts = flows.iter().filter_map(|flow| self.churn(flow.number));
        let mut all = parts.next()?;
        let mut flows = 1_u32;
        for part in parts {
            flows += 1;
            if let (StepEnd::Count { count }, StepEnd::Count { count: more }) =
                (&mut all.end, part.end)
            {
                *count = count.saturating_add(more);
            }
        }
        if let Some(schedule) = &mut all.schedule {
            schedule.per_s *= f64::from(flows);
        }
        Some(all)
    }

    fn quic_loop(
        &self,
        quic: &Quic,
        all: &[Arc<FlowShared>],
        (index, shards): (usize, usize),
        inlet: Receiver<Socket>,
    ) -> OwnLoop {
        let connects = matches!(self.workload.kind, Kind::Connect { .. });
        let is_client = matches!(quic.side, Side::Client { .. });
        let is_own = |shared: &&Arc<FlowShared>| {
            let workload = &self.workload;
            let number =
                if connects { shared.number } else { workload.connection_of(shared.number) };
            let is_opened = shared.number < workload.opened_flows();
            (connects || is_client) && is_opened && number as usize % shards == index
        };
        let flows: Vec<_> = all.iter().filter(is_own).cloned().collect();
        let churn = self.churn_of_all(&flows);
        let (quic, workload) = (quic.clone(), self.workload.clone());
        match (connects, is_client) {
            (false, _) => {
                let claims = self.claims.clone();
                let carrying = QuicFlows { quic, workload, flows, claims, inlet };
                Box::new(move |waker, local| carrying.run(waker, local))
            }
            (true, true) => {
                let shard = (index, shards);
                let dialer = QuicDialer { quic, workload, churn, flows, shard, inlet };
                Box::new(move |waker, local| dialer.run(waker, local))
            }
            (true, false) => {
                let acceptor = flows
                    .into_iter()
                    .next()
                    .zip(self.churn(0))
                    .map(|(shared, step)| QuicAcceptor { quic, workload, step, shared, inlet });
                Box::new(move |waker, local| {
                    if let Some(acceptor) = acceptor {
                        acceptor.run(waker, local);
                    }
                })
            }
        }
    }
}
