//! The loops of shards in whose loads connections come and go, or go over QUIC.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use linerate_measure::step::{Step, flow_steps};
use linerate_measure::{Kind, Workload};
use socket2::Socket;

use crate::associations::{Calling, Carrying, Claims, Hosting, Quic, Side};
use crate::connections::{Dial, Dialing, Serve, Serving};
use crate::flow::FlowShared;
use crate::shard::OwnLoop;

/// What a load whose connections a shard's own loop makes needs beside its workload.
pub(crate) enum Connections {
    /// At the client.
    Dial(Dial),
    /// At the server.
    Serve(Serve),
    /// In a loop that another dialect has made: of the flows of a shard, whose counts it keeps.
    Made(MakeLoop),
    /// At either end: QUIC, whether its connections come and go or stay.
    Quic(Box<Quic>),
}

/// Makes the loop of a shard of its flows.
pub(crate) type MakeLoop = Box<dyn Fn(Vec<Arc<FlowShared>>) -> OwnLoop + Send>;

/// The loop of one of a load's shards: which, of how many. At the server, `inlet` has the
/// connections that others accepted.
pub(super) fn own_loop(
    connections: &Connections,
    workload: &Workload,
    (flows, claims): (&[Arc<FlowShared>], Option<&Arc<Claims>>),
    (index, shards): (usize, usize),
    inlet: Receiver<Socket>,
) -> OwnLoop {
    if let Connections::Quic(quic) = connections {
        return quic_loop(quic, workload, (flows, claims), (index, shards), inlet);
    }
    let own: Vec<_> = flows.iter().skip(index).step_by(shards).cloned().collect();
    match connections {
        Connections::Made(make) => make(own),
        Connections::Dial(dial) => {
            let steps = own.iter().filter_map(|shared| {
                match flow_steps(workload, shared.number).client.pop() {
                    Some(Step::Connect(step)) => Some(step),
                    _ => None,
                }
            });
            let steps = steps.collect();
            let dialing = Dialing { dial: dial.clone(), steps, flows: own, shard: (index, shards) };
            Box::new(move |waker, local| dialing.run(waker, local))
        }
        // Has a loop of its own, above.
        Connections::Quic(_) => Box::new(|_, _| {}),
        Connections::Serve(serve) => {
            let step = match flow_steps(workload, 0).server.pop() {
                Some(Step::Accept(step)) => Some(step),
                _ => None,
            };
            let serve = serve.clone();
            let serving = own.into_iter().next().zip(step).map(|(shared, step)| Serving {
                serve,
                step,
                shared,
                inlet,
            });
            Box::new(move |waker, local| {
                if let Some(serving) = serving {
                    serving.run(waker, local);
                }
            })
        }
    }
}

fn quic_loop(
    quic: &Quic,
    workload: &Workload,
    (all, claims): (&[Arc<FlowShared>], Option<&Arc<Claims>>),
    (index, shards): (usize, usize),
    inlet: Receiver<Socket>,
) -> OwnLoop {
    let connects = matches!(workload.kind, Kind::Connect { .. });
    let is_client = matches!(quic.side, Side::Client { .. });
    let is_own = |shared: &&Arc<FlowShared>| {
        let number = if connects { shared.number } else { workload.connection_of(shared.number) };
        (connects || is_client) && number as usize % shards == index
    };
    let flows: Vec<_> = all.iter().filter(is_own).cloned().collect();
    let (quic, workload) = (quic.clone(), workload.clone());
    match (connects, is_client) {
        (false, _) => {
            let carrying = Carrying { quic, workload, flows, claims: claims.cloned(), inlet };
            Box::new(move |waker, local| carrying.run(waker, local))
        }
        (true, true) => {
            let calling = Calling { quic, workload, flows, shard: (index, shards), inlet };
            Box::new(move |waker, local| calling.run(waker, local))
        }
        (true, false) => {
            let hosting = Hosting { quic, workload, flows, inlet };
            Box::new(move |waker, local| hosting.run(waker, local))
        }
    }
}
