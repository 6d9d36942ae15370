//! One end's load: its shards, its flows, its phases, its figures.
//!
//! Both ends conduct the same way. Flows are added as they arrive and make themselves ready; the
//! load opens, is measured, is stopped when its time is up, and ends when every flow has: because
//! its own end came, or its peer's, or nothing moved any more.

mod bell;
mod closing;
mod end;
mod meter;
mod steps;

use std::sync::Arc;

use linerate_measure::report::EndReport;
use linerate_measure::sample::{Role, Sample};
use linerate_measure::{End, Kind, Transport, Workload};
use linerate_wire::native::message::FlowCount;
use linerate_wire::step::Step;
use socket2::Socket;

use crate::clock::MILLISECOND_NS;
use crate::error::Error;
use crate::flow::{DatagramFlow, DatagramSettings, Drive, FlowShared, StreamFlow};
use crate::pattern::Pattern;
use crate::phase::{Phase, SharedPhase};
use crate::probe::host_facts;
use crate::shard::{Shape, Shard, ShardPlan};
use crate::tally::Progress;
use crate::transport::{Tcp, Tls};

pub(crate) use bell::Bell;
use meter::Meter;
pub use steps::flow_steps;
pub(crate) use steps::{flow_tag, no_delay};

/// A shard's receive buffer, unless larger sends ask for a larger one.
const RECEIVE_BYTES: usize = 128 << 10;
const MOST_RECEIVE_BYTES: usize = 1 << 20;
/// How often a load that is ending is looked at.
const LOOK_NS: u64 = 5 * MILLISECOND_NS;

/// One end's load.
pub(crate) struct Load {
    role: Role,
    workload: Workload,
    phase: Arc<SharedPhase>,
    bell: Arc<Bell>,
    shards: Vec<Shard>,
    flows: Vec<Option<Arc<FlowShared>>>,
    meter: Meter,
    /// Datagrams that the peer says it sent, flow by flow.
    peer_sent: Vec<Option<u64>>,
    peer_has_sent_all: bool,
    /// Whether the peer has been told what this end sent.
    told_sent: bool,
    /// When the load was stopped.
    stopped_ns: Option<u64>,
    /// When something was last seen to move after the stop, and the sum of all counters then.
    moved: (u64, u64),
    notes: Vec<String>,
}

impl Load {
    /// A load without flows: its shards run and wait for them.
    pub(crate) fn prepare(
        role: Role,
        workload: &Workload,
        cpus: &[u32],
        bell: Arc<Bell>,
    ) -> Result<Self, Error> {
        let phase = Arc::new(SharedPhase::new());
        let total = workload.total_flows() as usize;
        let host = host_facts();
        let threads = workload.threads.unwrap_or(host.cpus_online).clamp(1, workload.total_flows());
        let (receive_bytes, longest) = buffer_sizes(workload);
        let pattern = Arc::new(if workload.verify {
            Pattern::new(longest)
        } else {
            Pattern::beginning(longest)
        });
        let mut shards = Vec::new();
        for index in 0..threads as usize {
            let flows = (total - index).div_ceil(threads as usize);
            shards.push(Shard::spawn(ShardPlan {
                shape: match flows {
                    _ if workload.busy_poll => Shape::Spinning,
                    1 => Shape::Alone,
                    _ => Shape::Polled,
                },
                flows,
                cpu: cpus.get(index % cpus.len().max(1)).copied(),
                receive_bytes,
                pattern: Arc::clone(&pattern),
                phase: Arc::clone(&phase),
            })?);
        }
        Ok(Self {
            role,
            workload: workload.clone(),
            phase,
            bell,
            shards,
            flows: vec![None; total],
            meter: Meter::new(role, host),
            peer_sent: vec![None; total],
            peer_has_sent_all: false,
            told_sent: false,
            stopped_ns: None,
            moved: (0, 0),
            notes: Vec::new(),
        })
    }

    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Whether the flow is one of this load's and hasn't come yet.
    pub(crate) fn lacks(&self, flow: u32) -> bool {
        matches!(self.flows.get(flow as usize), Some(None))
    }

    /// Adds a flow over a connection, under TLS where a session is given.
    pub(crate) fn add_stream(
        &mut self,
        flow: u32,
        socket: Socket,
        session: Option<rustls::Connection>,
    ) {
        let shared = self.share(flow, socket);
        let steps = self.steps_of(flow);
        let socket = Arc::clone(&shared.socket);
        let driven: Box<dyn Drive> = match session {
            Some(session) => Box::new(StreamFlow::new(Tls::new(socket, session), shared, steps)),
            None => Box::new(StreamFlow::new(Tcp(socket), shared, steps)),
        };
        self.hand_over(flow, driven);
    }

    /// Adds a flow of datagrams over a connected socket.
    pub(crate) fn add_datagrams(&mut self, flow: u32, socket: Socket, tag: u32) {
        let shared = self.share(flow, socket);
        let settings = DatagramSettings { tag, offload: !self.workload.socket.no_offload };
        let driven = DatagramFlow::new(shared, settings, self.steps_of(flow));
        self.hand_over(flow, Box::new(driven));
    }

    fn share(&mut self, flow: u32, socket: Socket) -> Arc<FlowShared> {
        let shared = Arc::new(FlowShared::new(flow, socket, Arc::clone(&self.bell)));
        if let Some(slot) = self.flows.get_mut(flow as usize) {
            *slot = Some(Arc::clone(&shared));
        }
        shared
    }

    fn steps_of(&self, flow: u32) -> Vec<Step> {
        let steps = flow_steps(&self.workload, flow);
        match self.role {
            Role::Client => steps.client,
            Role::Server => steps.server,
        }
    }

    fn hand_over(&self, flow: u32, driven: Box<dyn Drive>) {
        let shards = self.shards.len().max(1);
        if let Some(shard) = self.shards.get(flow as usize % shards) {
            shard.add(driven);
        }
    }

    /// Whether every flow has come and can carry load.
    pub(crate) fn all_ready(&self) -> bool {
        self.all_at_least(Progress::Ready)
    }

    /// Whether every flow has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.all_at_least(Progress::Ended)
    }

    /// Whether a flow has ended.
    pub(crate) fn any_ended(&self) -> bool {
        let mut flows = self.flows.iter().flatten();
        flows.any(|flow| flow.tally.progress() >= Progress::Ended)
    }

    fn all_at_least(&self, progress: Progress) -> bool {
        self.flows
            .iter()
            .all(|flow| flow.as_ref().is_some_and(|flow| flow.tally.progress() >= progress))
    }

    /// Opens the gate: those that begin an exchange or a transfer begin now.
    pub(crate) fn open(&mut self, now_ns: u64) {
        self.meter.open(now_ns, self.workload.interval_ns, &self.flows);
        let phase = if self.workload.omit_ns == 0 { Phase::Measure } else { Phase::WarmUp };
        self.advance_to(phase);
    }

    /// Whether the gate is open.
    pub(crate) fn is_open(&self) -> bool {
        self.phase.current() > Phase::Hold
    }

    /// Does what is due at this time; returns the sample of an interval that is over.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Option<Sample> {
        let opened_ns = self.meter.opened_ns()?;
        let load_ns = now_ns.saturating_sub(opened_ns);
        let warming = self.phase.current() == Phase::WarmUp;
        let mut sample = None;
        if warming && load_ns >= self.workload.omit_ns {
            // First, so that the flows begin to count when the sample is cut, not after all that
            // it reads.
            self.advance_to(Phase::Measure);
            sample = self.meter.end_warm_up(now_ns, &self.flows, &self.shards);
        } else if self.meter.is_due(now_ns) {
            sample = self.meter.take_sample(now_ns, warming, &self.flows, &self.shards);
        }
        if self.time_is_up(load_ns) {
            self.stop();
        }
        if self.phase.current() >= Phase::Stop || self.peer_has_sent_all {
            self.look_after_ending(now_ns);
        }
        sample
    }

    fn time_is_up(&self, load_ns: u64) -> bool {
        let End::Time { duration_ns } = self.workload.end else { return false };
        load_ns >= duration_ns.saturating_add(self.workload.omit_ns)
    }

    /// When `tick` is next of use.
    pub(crate) fn next_tick(&self, now_ns: u64) -> Option<u64> {
        let opened_ns = self.meter.opened_ns()?;
        let phase = self.phase.current();
        if phase >= Phase::Stop || self.peer_has_sent_all {
            return Some(now_ns + LOOK_NS);
        }
        let mut next_ns = self.meter.next_due();
        if phase == Phase::WarmUp {
            next_ns = next_ns.min(opened_ns.saturating_add(self.workload.omit_ns));
        }
        if let End::Time { duration_ns } = self.workload.end {
            let length_ns = duration_ns.saturating_add(self.workload.omit_ns);
            next_ns = next_ns.min(opened_ns.saturating_add(length_ns));
        }
        Some(next_ns)
    }

    fn advance_to(&self, phase: Phase) {
        if self.phase.current() < phase {
            self.phase.advance_to(phase);
            for shard in &self.shards {
                shard.wake();
            }
        }
    }

    /// Whether this end sends requests.
    fn asks(&self) -> bool {
        self.role == Role::Client && matches!(self.workload.kind, Kind::Rr { .. })
    }

    /// Bytes of a datagram of a stream.
    fn unit_bytes(&self) -> u64 {
        match self.workload.kind {
            Kind::Stream { send_bytes, .. } => u64::from(send_bytes),
            Kind::Rr { .. } => 0,
        }
    }

    fn is_datagrams(&self) -> bool {
        self.workload.transport == Transport::Udp
    }

    /// The counts of all flows that send datagrams in bulk from this end, when each of them has
    /// sent its last; `None` before, after the first time, and where there are none.
    pub(crate) fn take_datagrams_sent(&mut self) -> Option<Vec<FlowCount>> {
        if self.told_sent || !self.is_datagrams() || !self.is_open() {
            return None;
        }
        let mut counts = Vec::new();
        for flow in self.sending_flows() {
            let flow = flow?;
            if flow.tally.progress() < Progress::Ended {
                return None;
            }
            let datagrams = flow.tally.datagrams_sent.value();
            counts.push(FlowCount { flow: flow.number, datagrams });
        }
        self.told_sent = true;
        (!counts.is_empty()).then_some(counts)
    }

    fn sending_flows(&self) -> impl Iterator<Item = Option<&Arc<FlowShared>>> {
        let sends = |number: usize| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            matches!(self.steps_of(number).first(), Some(Step::Send(_)))
        };
        self.flows
            .iter()
            .enumerate()
            .filter(move |(number, _)| sends(*number))
            .map(|(_, f)| f.as_ref())
    }

    /// The peer has sent so many datagrams, and will send no more.
    pub(crate) fn handle_peer_sent(&mut self, counts: &[FlowCount]) {
        for count in counts {
            if let Some(slot) = self.peer_sent.get_mut(count.flow as usize) {
                *slot = Some(count.datagrams);
            }
        }
        self.peer_has_sent_all = true;
    }

    /// Ends the shards and says what was counted. Flows that have not ended are given up.
    pub(crate) fn finish(mut self, now_ns: u64) -> (Option<Sample>, EndReport) {
        let sample = self.meter.take_last_sample(now_ns, &self.flows, &self.shards);
        if !self.all_ended() {
            self.abort();
        }
        let machine = self.meter.machine_since_measuring();
        let ends = self.shards.drain(..).map(Shard::join).collect();
        let report = end::report(&self, &self.meter, machine, ends, now_ns);
        (sample, report)
    }
}

impl Drop for Load {
    /// Whoever drops a load that hasn't finished doesn't wait for its threads: they end by
    /// themselves when they see the phase, and none of them can hold up a server.
    fn drop(&mut self) {
        if !self.shards.is_empty() {
            self.abort();
            self.shards.drain(..).for_each(Shard::leave);
        }
    }
}

/// Bytes of a shard's receive buffer, and of the longest slice of the pattern that it needs.
fn buffer_sizes(workload: &Workload) -> (usize, usize) {
    let largest = match workload.kind {
        Kind::Stream { send_bytes, .. } => send_bytes,
        Kind::Rr { request_bytes, response_bytes, .. } => request_bytes.max(response_bytes),
    } as usize;
    let receive_bytes = largest.clamp(RECEIVE_BYTES, MOST_RECEIVE_BYTES);
    (receive_bytes, largest.max(receive_bytes))
}
