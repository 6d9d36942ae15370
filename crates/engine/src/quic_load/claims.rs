//! The flows of a server's load over QUIC, of which the client chooses which shard each comes to. They are made as
//! they come: a plan that announces many costs nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_measure::Workload;

use crate::flow::FlowShared;

/// Which flows of a load have come over QUIC.
pub(crate) struct Claims {
    workload: Workload,
    come: Mutex<Come>,
}

#[derive(Default)]
struct Come {
    numbers: HashSet<u32>,
    /// Those that the conductor doesn't know yet.
    new: Vec<Arc<FlowShared>>,
}

impl Claims {
    /// Of a load of which no flow has come.
    pub(crate) fn new(workload: &Workload) -> Self {
        Self { workload: workload.clone(), come: Mutex::default() }
    }

    /// Makes a flow that has come; `None` where the load has none of this number, or has it already.
    pub(crate) fn claim(&self, number: u32) -> Option<Arc<FlowShared>> {
        let mut come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        if number >= self.workload.opened_flows() || !come.numbers.insert(number) {
            return None;
        }
        let flow = if self.workload.payload.duplex {
            // A server sends what goes down.
            let other = number + self.workload.flows;
            let (flow, other) = FlowShared::duplex(number, other, true, None);
            come.new.push(other);
            Arc::new(flow)
        } else {
            Arc::new(FlowShared::new(number, None))
        };
        come.new.push(Arc::clone(&flow));
        Some(flow)
    }

    /// The flows that have come since this was last asked.
    pub(crate) fn take_new(&self) -> Vec<Arc<FlowShared>> {
        std::mem::take(&mut self.come.lock().unwrap_or_else(PoisonError::into_inner).new)
    }
}

#[test]
fn a_flow_is_claimed_once_and_no_other_than_those_of_the_load() {
    use linerate_measure::Transport;
    let claims = Claims::new(&Workload { flows: 3, ..Workload::rr(Transport::Quic) });
    assert_eq!(claims.claim(2).map(|flow| flow.number), Some(2));
    assert!(claims.claim(2).is_none() && claims.claim(3).is_none());
    claims.claim(0).unwrap();
    let new: Vec<u32> = claims.take_new().iter().map(|flow| flow.number).collect();
    assert_eq!((new, claims.take_new().len()), (vec![2, 0], 0));
}
