//! Loads of other dialects: their flows do what the dialect has given.

use std::sync::Arc;

use linerate_measure::Workload;
use linerate_measure::report::EndReport;
use linerate_measure::sample::{Role, Sample};
use linerate_measure::step::Step;
use socket2::Socket;

use super::Connections;
use super::{Load, Waker};
use crate::error::Error;
use crate::flow::{FlowShared, MakeFlow, Over};
use crate::tally::Counts;

impl Load {
    /// A load whose flows do what a dialect has given, one list of steps for each flow. The
    /// workload says the rest: how many flows there are and over what, when the load ends, how long
    /// a sample is, and the largest call, for the buffers.
    pub(crate) fn prepare_given(
        role: Role,
        workload: &Workload,
        given: Vec<Vec<Step>>,
        cpus: &[u32],
        waker: &Arc<Waker>,
        connections: Option<Connections>,
    ) -> Result<Self, Error> {
        Self::prepare_with(role, workload, given, cpus, waker, connections)
    }

    /// Gives up a load that was stopped and in which nothing moves only after so long. A dialect
    /// that waits for its peer to have taken all that was sent can't see that move.
    pub(crate) fn be_patient(&mut self, stall_ns: u64) {
        self.stall_ns = stall_ns;
    }

    /// Adds a flow that a dialect makes of its socket.
    pub(crate) fn add_made(&mut self, flow: u32, socket: Socket, make: MakeFlow) {
        self.hand_over(flow, socket, Over::Made(make));
    }

    /// What all flows have done so far.
    pub(crate) fn counts(&self) -> Counts {
        sum(&self.flows)
    }

    /// Ends the shards, as [`Load::finish`] does, and says, too, what all flows have done.
    pub(crate) fn conclude(self, now_ns: u64) -> (Option<Sample>, Counts, EndReport) {
        let flows = self.flows.clone();
        let (sample, report) = self.finish(now_ns);
        (sample, sum(&flows), report)
    }
}

fn sum(flows: &[Option<Arc<FlowShared>>]) -> Counts {
    let counts = flows.iter().flatten().map(|flow| flow.tally.counts());
    counts.fold(Counts::default(), |sum, counts| sum.plus(&counts))
}
