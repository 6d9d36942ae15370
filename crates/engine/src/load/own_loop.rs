//! The loops of shards in whose loads connections come and go.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use linerate_measure::Workload;
use linerate_wire::step::Step;
use socket2::Socket;

use super::flow_steps;
use crate::connections::{Connections, Dialing, Serving};
use crate::flow::FlowShared;
use crate::shard::OwnLoop;

/// The loop of one of a load's shards: which, of how many. At the server, `inlet` has the
/// connections that others accepted.
pub(super) fn own_loop(
    connections: &Connections,
    workload: &Workload,
    flows: &[Option<Arc<FlowShared>>],
    (index, shards): (usize, usize),
    inlet: Receiver<Socket>,
) -> OwnLoop {
    let own: Vec<_> = flows.iter().flatten().skip(index).step_by(shards).cloned().collect();
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
