//! The loops of shards in whose loads connections come and go, or go over QUIC.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use linerate_measure::Kind;
use linerate_measure::step::{Churn, Step};
use socket2::Socket;

use super::Load;
use crate::connections::{Accept, Accepting, Dial, Dialing};
use crate::flow::FlowShared;
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
                let steps = own.iter().filter_map(|shared| self.churn(shared.number)).collect();
                let dialing =
                    Dialing { dial: dial.clone(), steps, flows: own, shard: (index, shards) };
                Box::new(move |waker, local| dialing.run(waker, local))
            }
            Connections::Accept(accept) => {
                let accept =
                    if self.is_apart() { accept.without_listener() } else { accept.clone() };
                let accepting = own
                    .into_iter()
                    .next()
                    .zip(self.churn(0))
                    .map(|(shared, step)| Accepting { accept, step, shared });
                Box::new(move |waker, local| {
                    if let Some(accepting) = accepting {
                        accepting.run(waker, local);
                    }
                })
            }
        }
    }

    /// What a flow of connections that come and go does at this end.
    fn churn(&self, flow: u32) -> Option<Churn> {
        match self.steps_of(flow).pop() {
            Some(Step::Connect(churn) | Step::Accept(churn)) => Some(*churn),
            _ => None,
        }
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
        let steps = flows.iter().filter_map(|shared| self.churn(shared.number)).collect();
        let (quic, workload) = (quic.clone(), self.workload.clone());
        match (connects, is_client) {
            (false, _) => {
                let claims = self.claims.clone();
                let carrying = QuicFlows { quic, workload, flows, claims, inlet };
                Box::new(move |waker, local| carrying.run(waker, local))
            }
            (true, true) => {
                let shard = (index, shards);
                let dialer = QuicDialer { quic, workload, steps, flows, shard, inlet };
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
