//! One end's load: its shards, its flows, its phases, its figures.
//!
//! Both ends conduct the same way. Flows are added as they arrive and make themselves ready; the
//! load opens, is measured, is stopped when its time is up, and ends when every flow has: because
//! its own end came, or its peer's, or nothing moved any more.

mod arrival;
mod carriage;
mod closing;
mod end;
mod given;
mod growth;
mod intervals;
mod meter;
mod own_loop;
mod shards;
mod shared_time;
mod spread;
mod watch;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use linerate_measure::record::TestFigures;
use linerate_measure::report::{Disturbance, EndReport};
use linerate_measure::sample::{Role, Sample};
use linerate_measure::step::{Step, flow_steps};
use linerate_measure::{Direction, End, Kind, Transport, Workload};
use linerate_system::congestion::check_congestion;
use socket2::Socket;

use crate::clock::MILLISECOND_NS;
use crate::error::Error;
use crate::flow::FlowShared;
use crate::phase::{Phase, SharedPhase};
use crate::probe::{host_facts, processors, raise_open_files_limit};
use crate::quic_load::Claims;
use crate::ready_count::ReadyCount;
use crate::shard::Shard;
use crate::tally::Tallies;
use crate::transport::PageCache;
use crate::waker::Waker;

use arrival::flows_of;
use closing::Standstill;
pub(crate) use given::{Given, PlacedShard, Placement, ThreadsEnd};
use growth::Growth;
pub(crate) use intervals::{Interval, Intervals};
use meter::Meter;
pub(crate) use own_loop::Connections;
pub(crate) use shards::RECEIVE_BYTES;
pub use shards::client_threads;
pub(crate) use spread::{Spread, is_apart, most_quic_sockets, quic_sockets, spread};

/// Flows that are looked at often; of a load that has more, silence is not known.
const MOST_WATCHED_FLOWS: usize = 256;
/// How often a load that is ending is looked at, and how much longer that is for each flow: a look
/// asks all of them.
const LOOK_NS: u64 = 5 * MILLISECOND_NS;
const LOOK_NS_PER_FLOW: u64 = 1_000;

/// One end's load.
pub(crate) struct Load {
    role: Role,
    workload: Workload,
    /// What a dialect has given; without steps, they are those of the workload.
    given: Given,
    phase: Arc<SharedPhase>,
    ready_count: Arc<ReadyCount>,
    /// Where the shards have file tables of their own.
    apart: Option<Apart>,
    shards: Vec<Shard>,
    /// Each shard's: takes connections that come and go and that others accepted, or UDP
    /// sockets for QUIC.
    inlets: Vec<Sender<Socket>>,
    quic_sockets: QuicSockets,
    /// What flows send from that have no bytes of their own.
    file: Option<PageCache>,
    flows: Vec<Option<Arc<FlowShared>>>,
    /// Where the tallies of flows that arrive are allocated.
    tallies: Tallies,
    /// Where flows come from that shards take in themselves.
    claims: Option<Arc<Claims>>,
    /// Why a flow never came to its shard.
    undelivered: Option<String>,
    meter: Meter,
    /// Datagrams that the peer says it sent, flow by flow.
    peer_sent: Vec<Option<u64>>,
    peer_has_sent_all: bool,
    /// When it is next looked whether the load that is ending has ended.
    next_look_ns: u64,
    /// Whether the peer has been told what this end sent.
    told_sent: bool,
    /// When the load was stopped.
    stopped_ns: Option<u64>,
    /// When something was last seen to move after the stop, and the sum of all counters then.
    moved: (u64, u64),
    /// After so long without any movement a load that was stopped is given up.
    stall_ns: u64,
    /// When it was last asked whether the peer's bytes come, and the sum of them then.
    peer_progress: (u64, u64),
    /// Whether the client has said that it is done.
    peer_is_done: bool,
    /// How long what senders' sockets hold is awaited, once that is found out.
    drain_ns: Option<u64>,
    /// Tells that a load stands still that would never be stopped.
    standstill: Option<Standstill>,
    notes: Vec<String>,
}

/// What a load has whose shards have file tables of their own.
#[derive(Default)]
struct Apart {
    /// How many connections that come and go were handed to them.
    handed_over: Cell<usize>,
    /// What further shards are made from, where the load may get more.
    growth: Option<Growth>,
}

/// The UDP sockets of a load over QUIC, at the server.
struct QuicSockets {
    /// Which have come.
    come: Vec<bool>,
    /// How many there may be.
    most: u32,
}

impl Load {
    /// What the reader of this end's report must know.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// A load without flows: its shards run and wait for them.
    pub(crate) fn prepare(
        role: Role,
        workload: &Workload,
        cpus: &[u32],
        waker: &Arc<Waker>,
        connections: Option<Connections>,
    ) -> Result<Self, Error> {
        // Each flow would fail by it. The connections of QUIC have controls of their own.
        if let (Some(name), Transport::Tcp | Transport::Tls) =
            (&workload.socket.congestion, workload.transport)
        {
            check_congestion(name)?;
        }
        Self::prepare_with(role, workload, Given::default(), cpus, waker, connections)
    }

    fn prepare_with(
        role: Role,
        workload: &Workload,
        given: Given,
        cpus: &[u32],
        waker: &Arc<Waker>,
        connections: Option<Connections>,
    ) -> Result<Self, Error> {
        let flows = workload.total_flows();
        let connects = matches!(workload.kind, Kind::Connect { .. });
        let host = host_facts();
        let threads = shards::threads(role, workload, processors(cpus));
        let spread = match &given.placement {
            Some(placement) => placement.spread(),
            None => spread_for(workload, threads, connections.as_ref())?,
        };
        // At the server, whom a shard serves is no flow of its own.
        let total = match connections {
            Some(Connections::Accept(_)) => spread.shards,
            Some(Connections::Quic(_)) if connects && role == Role::Server => spread.shards,
            _ => flows,
        };
        let is_claimed =
            matches!(connections, Some(Connections::Quic(_))) && role == Role::Server && !connects;
        let stands = connections.is_some() && !is_claimed;
        let mut standing = vec![None; total as usize];
        let opened = if workload.payload.duplex { workload.flows } else { total };
        let mut tallies = Tallies::new(total as usize);
        for number in (0..opened).filter(|_| stands) {
            for flow in flows_of(workload, role, number, None, &mut tallies) {
                if let Some(slot) = standing.get_mut(flow.number as usize) {
                    *slot = Some(flow);
                }
            }
        }
        let mut load = Self {
            role,
            workload: workload.clone(),
            given,
            phase: Arc::new(SharedPhase::new()),
            ready_count: Arc::new(ReadyCount::new(total)),
            apart: spread.apart.then(Apart::default),
            shards: Vec::new(),
            inlets: Vec::new(),
            quic_sockets: QuicSockets {
                come: Vec::new(),
                most: most_quic_sockets(workload, raise_open_files_limit()),
            },
            file: None,
            flows: standing,
            tallies,
            claims: is_claimed.then(|| Arc::new(Claims::new(workload))),
            undelivered: None,
            meter: Meter::new(role, host),
            peer_sent: Vec::new(),
            peer_has_sent_all: false,
            next_look_ns: 0,
            told_sent: false,
            stopped_ns: None,
            moved: (0, 0),
            stall_ns: closing::STALL_NS,
            peer_progress: (0, 0),
            peer_is_done: false,
            drain_ns: None,
            standstill: None,
            notes: Vec::new(),
        };
        load.spawn_shards(spread, cpus, waker, connections)?;
        Ok(load)
    }

    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    fn steps_of(&self, flow: u32) -> Vec<Step> {
        match &self.given.steps[..] {
            [] => {}
            [all] => return all.clone(),
            each => return each.get(flow as usize).cloned().unwrap_or_default(),
        }
        let steps = flow_steps(&self.workload, flow);
        match self.role {
            Role::Client => steps.client,
            Role::Server => steps.server,
        }
    }

    /// Whether every flow has come and can carry load.
    pub(crate) fn all_ready(&self) -> bool {
        self.ready_count.all_ready()
    }

    /// Whether every flow has ended, or will never say so.
    pub(crate) fn all_ended(&self) -> bool {
        self.ready_count.all_ended() || self.has_failed()
    }

    /// Whether a flow has ended.
    pub(crate) fn any_ended(&self) -> bool {
        self.ready_count.ended() > 0
    }

    /// Why a flow has ended, where one has that could not begin.
    pub(crate) fn why_ended(&self) -> Option<String> {
        self.flows.iter().flatten().find_map(|flow| flow.error())
    }

    /// When the gate was opened.
    pub(crate) fn opened_ns(&self) -> Option<u64> {
        self.meter.opened_ns()
    }

    /// When the measured part began.
    pub(crate) fn measuring_ns(&self) -> Option<u64> {
        self.opened_ns().filter(|_| !self.meter.measured_nothing()).map(|_| self.meter.measuring_ns)
    }

    /// Opens the gate: those that begin an exchange or a transfer begin now.
    pub(crate) fn open(&mut self, now_ns: u64) {
        let warming = self.workload.omit_ns > 0;
        self.meter.open(now_ns, self.workload.interval_ns, warming);
        self.standstill = self.watch_for_standstill(now_ns);
        let awaits = self.asks() && matches!(self.workload.kind, Kind::Rr { .. });
        let receives = (self.receives_stream() || awaits) && self.flows.len() <= MOST_WATCHED_FLOWS;
        self.meter.watch.open(now_ns, receives, &self.shards);
        if let Some(socket) = self.sending_socket() {
            self.meter.watch.begin_own_queue(&socket);
        }
        let phase = if warming { Phase::WarmUp } else { Phase::Measure };
        if let Some(ends_ns) = self.planned_end_ns() {
            self.phase.plan_end(ends_ns);
        }
        self.advance_to(phase, now_ns);
    }

    /// Whether the gate is open.
    pub(crate) fn is_open(&self) -> bool {
        self.phase.current() > Phase::Hold
    }

    /// Does what is due at this time; returns the sample of an interval that is over.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Option<Sample> {
        self.take_claimed();
        growth::grow(self);
        let opened_ns = self.meter.opened_ns()?;
        let load_ns = now_ns.saturating_sub(opened_ns);
        let warming = self.phase.current() == Phase::WarmUp;
        let mut sample = None;
        shared_time::look(self, now_ns);
        // First, so that the flows end when the time is up, not after all that the sample takes to be made.
        if self.planned_end_ns().is_some_and(|ends_ns| now_ns >= ends_ns) {
            self.stop();
        }
        if warming && load_ns >= self.workload.omit_ns {
            // First, so that the flows begin to count when the sample is cut, not after all that
            // it reads.
            self.advance_to(Phase::Measure, now_ns);
            sample = self.meter.end_warm_up(now_ns, &self.flows, &self.shards);
            self.meter.watch.begin_measuring(now_ns, &self.shards);
        } else if self.meter.is_due(now_ns) && !self.all_ended() {
            // Where all have ended, what is left of the interval is the last sample's.
            sample = self.meter.take_sample(now_ns, &self.flows, &self.shards);
        }
        self.end_if_failed();
        let is_ending = self.phase.current() >= Phase::Stop || self.all_ended();
        if is_ending && !self.meter.knows_end() && self.last_moved_ns().is_some() {
            self.meter.note_end();
        }
        self.look_for_disturbance(now_ns);
        self.look_for_standstill(now_ns);
        if self.phase.current() >= Phase::Stop || self.peer_has_sent_all {
            self.look_after_ending(now_ns);
        }
        sample
    }

    /// Looks whether the conductor is late, and whether something comes.
    fn look_for_disturbance(&mut self, now_ns: u64) {
        if self.phase.current() >= Phase::Stop || self.all_ended() {
            return self.meter.watch.end();
        }
        if self.meter.watch.is_due(now_ns) {
            let flows = &self.flows;
            self.meter.watch.look(now_ns, || {
                flows.iter().flatten().fold(0, |sum: u64, flow| {
                    let tally = &flow.tally;
                    let come = tally.received_bytes.value();
                    sum.wrapping_add(come).wrapping_add(tally.transactions.value())
                })
            });
            if self.is_tcp_stream() {
                for flow in self.flows.iter().flatten().take(Sample::MAX_FLOWS) {
                    if let Some(socket) = &flow.socket {
                        self.meter.watch.look_at_socket(flow.number, socket);
                    }
                }
            }
        }
    }

    /// Whether bytes go in streams over TCP, with keys or not.
    fn is_tcp_stream(&self) -> bool {
        let over_tcp = matches!(self.workload.transport, Transport::Tcp | Transport::Tls);
        over_tcp && self.workload.direction().is_some()
    }

    /// The socket of the first flow of a stream that this end sends, where it is known here.
    fn sending_socket(&self) -> Option<Arc<Socket>> {
        let from_here = match self.role {
            Role::Client => Direction::Up,
            Role::Server => Direction::Down,
        };
        let way = self.workload.direction()?;
        let sends = way == from_here || way == Direction::Both;
        let first = self.flows.iter().flatten().next().filter(|_| sends)?;
        first.socket.clone()
    }

    /// Whether bytes of a stream come to this end.
    fn receives_stream(&self) -> bool {
        let to_here = match self.role {
            Role::Client => Direction::Down,
            Role::Server => Direction::Up,
        };
        self.workload.direction().is_some_and(|way| way == to_here || way == Direction::Both)
    }

    /// Whether the measured part goes on.
    pub(crate) fn is_measuring(&self) -> bool {
        self.phase.current() == Phase::Measure && !self.all_ended()
    }

    /// The server serves so many other tests at the same time.
    pub(crate) fn handle_other_tests(&mut self, others: u32) {
        self.meter.watch.other_tests = Some(self.meter.watch.other_tests.unwrap_or(0).max(others));
    }

    /// When the load's time is up; `None` where it doesn't end by time, or hasn't begun.
    fn planned_end_ns(&self) -> Option<u64> {
        let End::Time { duration_ns } = self.workload.end else { return None };
        let length_ns = duration_ns.saturating_add(self.workload.omit_ns);
        Some(self.meter.opened_ns()?.saturating_add(length_ns))
    }

    /// When `tick` is next of use.
    pub(crate) fn next_tick(&self, now_ns: u64) -> Option<u64> {
        let opened_ns = self.meter.opened_ns()?;
        let phase = self.phase.current();
        let shared_ns = self.meter.totals.due_ns(now_ns);
        if phase >= Phase::Stop || self.peer_has_sent_all {
            return Some(self.next_look_ns.max(now_ns).min(shared_ns));
        }
        let mut next_ns = self.meter.next_due().min(shared_ns);
        next_ns = next_ns.min(self.meter.watch.next_due(now_ns).unwrap_or(u64::MAX));
        if phase == Phase::WarmUp {
            next_ns = next_ns.min(opened_ns.saturating_add(self.workload.omit_ns));
        }
        Some(self.planned_end_ns().map_or(next_ns, |ends_ns| next_ns.min(ends_ns)))
    }

    fn advance_to(&self, phase: Phase, now_ns: u64) {
        if self.phase.current() < phase {
            self.phase.advance_to(phase, now_ns);
            for shard in &self.shards {
                shard.wake();
            }
        }
    }

    /// Whether this end sends requests.
    fn asks(&self) -> bool {
        self.role == Role::Client && self.workload.has_transactions()
    }

    /// Bytes of a datagram of a stream.
    fn unit_bytes(&self) -> u64 {
        self.workload.unit_bytes().map_or(0, u64::from)
    }

    fn is_datagrams(&self) -> bool {
        self.workload.has_datagrams()
    }

    /// What the load came to so far, warm-up included; `None` where it has not begun.
    pub(crate) fn figures(&mut self, now_ns: u64) -> Option<TestFigures> {
        self.take_claimed();
        let opened_ns = self.opened_ns()?;
        let ended_ns = self.last_moved_ns().filter(|_| self.all_ended()).unwrap_or(now_ns);
        let counts = self.counts();
        Some(TestFigures {
            elapsed_ns: ended_ns.saturating_sub(opened_ns),
            received_bytes: counts.received_bytes,
            sent_bytes: counts.sent_bytes,
            transactions: counts.transactions,
        })
    }

    /// Ends the shards and says what was counted. Flows that have not ended are given up.
    pub(crate) fn finish(mut self, now_ns: u64) -> (Option<Sample>, EndReport) {
        self.take_claimed();
        shared_time::look(&mut self, now_ns);
        let moved_ns = self.last_moved_ns().map_or(now_ns, |moved_ns| moved_ns.min(now_ns));
        let sample = self.meter.take_last_sample(moved_ns, &self.flows, &self.shards);
        if !self.ready_count.all_ended() {
            self.abort();
        }
        let machine = self.meter.machine_since_measuring();
        let disturbance = self.disturbance();
        let ends = self.shards.drain(..).map(Shard::join).collect();
        let mut report = end::report(&self, &self.meter, machine, ends, now_ns);
        report.disturbance = disturbance;
        report.shared_time = self.meter.totals.taken();
        for flow in &mut report.flows {
            flow.queues = self.meter.watch.queues_of(flow.flow);
        }
        (sample, report)
    }

    /// What disturbed the measured part; `None` where there was none.
    fn disturbance(&self) -> Option<Box<Disturbance>> {
        let measured = self.meter.opened_ns().is_some() && !self.meter.measured_nothing();
        measured.then(|| Box::new(self.meter.watch.disturbance(&self.shards)))
    }
}

/// How a load with these connections is spread.
fn spread_for(
    workload: &Workload,
    threads: u32,
    connections: Option<&Connections>,
) -> Result<Spread, Error> {
    let flows = match connections {
        // What is handed over is in the shared table.
        Some(Connections::Quic(_)) => {
            let shards = quic_sockets(workload, threads).max(1);
            return Ok(Spread { shards, apart: false });
        }
        Some(connections) if growth::grows(connections) => {
            return Ok(Spread { shards: threads.max(1), apart: true });
        }
        Some(_) => workload.total_flows(),
        None => workload.opened_flows(),
    };
    spread(flows, threads, raise_open_files_limit()).map_err(Error::Host)
}

impl Drop for Load {
    /// Dropping a load that hasn't finished doesn't wait for its threads: they end by
    /// themselves when they see the phase, and none of them can hold up a server.
    fn drop(&mut self) {
        if !self.shards.is_empty() {
            self.abort();
            self.shards.drain(..).for_each(Shard::leave);
        }
    }
}

#[cfg(test)]
mod tests;
