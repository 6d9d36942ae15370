//! Loads of other dialects: their flows do what the dialect has given.

use std::sync::Arc;

use linerate_measure::Workload;
use linerate_measure::report::{Disturbance, EndReport, Waiting};
use linerate_measure::sample::{CpuSeconds, MachineCpu, Role, Sample};
use linerate_measure::step::Step;
use socket2::Socket;

use super::Connections;
use super::end::merge;
use super::{Load, Spread, Waker};
use crate::error::Error;
use crate::flow::{FlowShared, MakeFlow, Over};
use crate::pattern::Pattern;
use crate::phase::Phase;
use crate::shard::Shard;
use crate::tally::Counts;

/// What a dialect gives of its load beside the workload.
#[derive(Default)]
pub(crate) struct Given {
    /// The steps of each flow; one list alone is that of all.
    pub(crate) steps: Vec<Vec<Step>>,
    /// Where the flows are carried, where the dialect says so.
    pub(crate) placement: Option<Placement>,
    /// What is sent, where that is the dialect's own.
    pub(crate) pattern: Option<Arc<Pattern>>,
}

/// Which shard carries which flow.
pub(crate) struct Placement {
    pub(crate) shards: Vec<PlacedShard>,
    /// The shard of each flow.
    pub(crate) places: Vec<usize>,
}

/// A shard of a placement.
#[derive(Clone, Copy)]
pub(crate) struct PlacedShard {
    /// Flows that it carries.
    pub(crate) flows: usize,
    pub(crate) receive_bytes: usize,
}

impl Placement {
    pub(super) fn spread(&self) -> Spread {
        let shards = u32::try_from(self.shards.len()).unwrap_or(u32::MAX);
        Spread { shards: shards.max(1), apart: false }
    }

    /// The shard of a flow.
    pub(super) fn place(&self, flow: u32) -> usize {
        self.places.get(flow as usize).copied().unwrap_or(0)
    }
}

/// What a load's threads leave.
#[derive(Default)]
pub(crate) struct ThreadsEnd {
    /// Processor time of the measured part.
    pub(crate) cpu: CpuSeconds,
    /// How they waited in it.
    pub(crate) waiting: Waiting,
    /// CPU of the whole machine in it, processor by processor.
    pub(crate) machine_cpu: Vec<MachineCpu>,
    pub(crate) ran_on_cpus: Vec<u32>,
    pub(crate) notes: Vec<String>,
    pub(crate) disturbance: Option<Box<Disturbance>>,
}

impl Load {
    /// A load whose flows do what a dialect has given, one list of steps for each flow or for all. The
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
        let given = Given { steps: given, ..Given::default() };
        Self::prepare_with(role, workload, given, cpus, waker, connections)
    }

    /// Likewise, with more given.
    pub(crate) fn prepare_placed(
        role: Role,
        workload: &Workload,
        given: Given,
        cpus: &[u32],
        waker: &Arc<Waker>,
    ) -> Result<Self, Error> {
        Self::prepare_with(role, workload, given, cpus, waker, None)
    }

    /// A flow that has come.
    pub(crate) fn flow(&self, number: u32) -> Option<&Arc<FlowShared>> {
        self.flows.get(number as usize)?.as_ref()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.current()
    }

    /// When the load was stopped; `None`: not yet.
    pub(crate) fn stopped_ns(&self) -> Option<u64> {
        self.stopped_ns
    }

    /// Ends the threads. Flows that have not ended are given up.
    pub(crate) fn end_threads(&mut self) -> ThreadsEnd {
        if !self.ready_count.all_ended() {
            self.abort();
        }
        let machine_cpu = self.meter.machine_since_measuring();
        let disturbance = self.disturbance();
        let ends = self.shards.drain(..).map(Shard::join).collect();
        let mut left = ThreadsEnd { machine_cpu, disturbance, ..ThreadsEnd::default() };
        let (_, (cpu, waiting)) = merge(ends, &mut left.ran_on_cpus, &mut left.notes);
        ThreadsEnd { cpu, waiting, ..left }
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

    /// Bytes that all flows have sent, and received: payload, and texts beside it.
    pub(crate) fn bytes_with_texts(&self) -> (u64, u64) {
        self.flows.iter().flatten().fold((0, 0), |(sent, received), flow| {
            let tally = &flow.tally;
            let texts = tally.known_extra().map_or((0, 0), |extra| extra.texts.bytes());
            let more = |sum: u64, a: u64, b: u64| sum.saturating_add(a).saturating_add(b);
            (
                more(sent, tally.sent_bytes.value(), texts.0),
                more(received, tally.received_bytes.value(), texts.1),
            )
        })
    }

    /// Payload that was sent and received.
    pub(crate) fn payload(&self) -> (u64, u64) {
        let counts = sum(&self.flows);
        (counts.sent_bytes, counts.received_bytes)
    }

    /// Bytes of connections that the run itself ended, which their peers had not acknowledged then.
    pub(crate) fn unacknowledged_bytes(&self) -> u64 {
        let tallies = self.flows.iter().flatten().filter_map(|flow| flow.tally.known_extra());
        let bytes = tallies.map(|extra| extra.texts.unacknowledged_bytes.value());
        bytes.fold(0, u64::saturating_add)
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
