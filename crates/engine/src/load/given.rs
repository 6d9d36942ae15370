//! Loads of other dialects: their flows do what the dialect has given.

use std::sync::Arc;

use linerate_measure::Workload;
use linerate_measure::sample::Role;
use linerate_wire::step::Step;
use socket2::Socket;

use super::{Bell, Load};
use crate::connections::Connections;
use crate::error::Error;
use crate::flow::{MakeFlow, Over};
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
        bell: &Arc<Bell>,
        connections: Option<Connections>,
    ) -> Result<Self, Error> {
        let mut load = Self::prepare(role, workload, cpus, bell, connections)?;
        load.given = given;
        Ok(load)
    }

    /// Adds a flow that a dialect makes of its socket.
    pub(crate) fn add_made(&mut self, flow: u32, socket: Socket, make: MakeFlow) {
        self.hand_over(flow, socket, Over::Made(make));
    }

    /// What all flows have done so far.
    pub(crate) fn counts(&self) -> Counts {
        let counts = self.flows.iter().flatten().map(|flow| flow.tally.counts());
        counts.fold(Counts::default(), |sum, counts| sum.plus(&counts))
    }
}
