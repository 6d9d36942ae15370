//! One end's streams, the shards that carry them, and the phases they go through.

use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_wire::iperf3::{Code, Parameters, Protocol, Results, stream_id};
use rustix::thread::{CpuSet, sched_getaffinity};
use socket2::Socket;

use super::figures::Shared;
use super::payload::payload;
use super::spread::Spread;
use super::streams::StreamPlan;
use super::{Failure, Role, Stream};
use crate::clock::monotonic_ns;
use crate::flow::{ActiveFlows, FlowShared, Fresh, Goal};
use crate::latencies::Latencies;
use crate::pattern::Pattern;
use crate::phase::{Phase, SharedPhase};
use crate::ready_count::ReadyCount;
use crate::shard::{Shape, Shard, ShardEnd, ShardPlan};
use crate::socket::{is_multipath, plain, set_pacing_rate};
use crate::tally::Progress;
use crate::waker::Waker;

/// What an end's streams are to do.
pub(super) struct Setup {
    pub(super) role: Role,
    pub(super) parameters: Parameters,
    pub(super) file: Option<PathBuf>,
    pub(super) affinity: Option<u32>,
}

impl Setup {
    /// Whether this end sends on the stream that was made as this one.
    fn sends(&self, index: usize) -> bool {
        let client_sends = self.parameters.client_sends(index);
        match self.role {
            Role::Client => client_sends,
            // A server makes those that it receives on first, whatever the client calls them.
            Role::Server => !client_sends,
        }
    }
}

/// One end's streams.
pub(super) struct Load {
    pub(super) setup: Setup,
    pub(super) streams: Vec<(Stream, Shared)>,
    /// What the streams that send share, and what those that receive do.
    goals: [Arc<Goal>; 2],
    phase: Arc<SharedPhase>,
    ready_count: Arc<ReadyCount>,
    shards: Vec<Shard>,
    /// Which shard carries which stream.
    spread: Spread,
    /// When the load was stopped.
    stopped_ns: Option<u64>,
}

impl Load {
    /// Streams over these sockets, in the order in which they were made; they wait.
    pub(super) fn prepare(
        setup: Setup,
        sockets: Vec<Socket>,
        waker: &Arc<Waker>,
    ) -> Result<Self, Failure> {
        check_affinity(setup.affinity)?;
        let total = u32::try_from(sockets.len()).unwrap_or(u32::MAX);
        let parameters = &setup.parameters;
        let goal = goal_bytes(parameters).filter(|_| setup.role == Role::Client);
        let sends: Vec<bool> = (0..sockets.len()).map(|index| setup.sends(index)).collect();
        let mut load = Self {
            streams: Vec::new(),
            goals: [goal; 2].map(Goal::new).map(Arc::new),
            phase: Arc::new(SharedPhase::new()),
            ready_count: Arc::new(ReadyCount::new(total)),
            shards: Vec::new(),
            spread: Spread::new(&sends, parameters.protocol == Protocol::Udp),
            stopped_ns: None,
            setup,
        };
        let parameters = &load.setup.parameters;
        let payload = payload(parameters.block_bytes as usize, parameters.repeating_payload);
        load.spawn_shards(&payload, waker)?;
        let is_alone = load.spread.threads.iter().all(|streams| *streams == 1);
        let plan = StreamPlan::new(&load.setup, &payload, is_alone)?;
        for (index, socket) in sockets.into_iter().enumerate() {
            load.add(index, socket, &plan)?;
        }
        Ok(load)
    }

    fn spawn_shards(&mut self, payload: &Arc<Pattern>, waker: &Arc<Waker>) -> Result<(), Failure> {
        let block_bytes = self.setup.parameters.block_bytes as usize;
        for (index, flows) in self.spread.threads.iter().copied().enumerate() {
            let plan = ShardPlan {
                shape: if flows == 1 { Shape::Alone } else { Shape::Polled },
                flows,
                active: ActiveFlows::ALL,
                apart: false,
                cpu: self.setup.affinity,
                receive_bytes: self.spread.receive_bytes(index, block_bytes),
                pattern: Arc::clone(payload),
                latencies: Latencies::default(),
                phase: Arc::clone(&self.phase),
                ready_count: Arc::clone(&self.ready_count),
                own_loop: None,
            };
            let shard = Shard::spawn(plan, waker);
            let shard = shard
                .map_err(|error| Failure::of(Code::THREAD_CREATE).because(error.to_string()))?;
            self.shards.push(shard);
        }
        Ok(())
    }

    fn add(&mut self, index: usize, socket: Socket, plan: &StreamPlan) -> Result<(), Failure> {
        let unset = || SocketAddr::from(([0, 0, 0, 0], 0));
        let address = |address: std::io::Result<socket2::SockAddr>| {
            address.ok().and_then(|address| address.as_socket()).map_or_else(unset, plain)
        };
        let sends = self.setup.sends(index);
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let stream = Stream {
            id: stream_id(index),
            socket: number.saturating_mul(2).saturating_add(5),
            sends,
            local: address(socket.local_addr()),
            remote: address(socket.peer_addr()),
        };
        let socket = Arc::new(socket);
        let flow = Arc::new(FlowShared::new(number, Some(Arc::clone(&socket))));
        let shared = Shared { flow: Arc::clone(&flow), sends };
        let [sent, received] = &self.goals;
        let goal = if sends { sent } else { received };
        let steps = plan.steps(&self.setup, sends);
        let over = plan.over(&self.setup, &socket, sends, goal)?;
        if let Some(shard) = self.shards.get(self.spread.place(index)) {
            // Fails only where shards have file tables of their own.
            let _same_table = shard.add(Fresh { shared: flow, steps, over }, socket);
        }
        self.streams.push((stream, shared));
        Ok(())
    }

    /// How many streams are plain TCP although MPTCP was asked for.
    pub(super) fn single_path_streams(&self) -> usize {
        if !self.setup.parameters.mptcp || self.setup.parameters.protocol != Protocol::Tcp {
            return 0;
        }
        let sockets = self.streams.iter().filter_map(|(_, shared)| shared.flow.socket.as_ref());
        sockets.filter(|socket| !is_multipath(socket.as_fd())).count()
    }

    /// Lets the kernel keep each stream to its rate, where one is asked for.
    pub(super) fn pace(&self) -> std::io::Result<()> {
        let bps = self.setup.parameters.fq_rate_bps;
        let sockets = self.streams.iter().filter_map(|(_, shared)| shared.flow.socket.as_ref());
        sockets.filter(|_| bps > 0).try_for_each(|socket| set_pacing_rate(socket.as_fd(), bps))
    }

    /// The load begins.
    pub(super) fn go(&self) {
        let warm_up = self.setup.parameters.omit_s > 0;
        self.advance_to(if warm_up { Phase::WarmUp } else { Phase::Measure });
    }

    /// The omitted time is over.
    pub(super) fn measure(&self) {
        self.advance_to(Phase::Measure);
    }

    /// Senders stop. A server's receivers go on with what is on its way.
    pub(super) fn stop_sending(&mut self) {
        self.stopped_ns.get_or_insert_with(monotonic_ns);
        self.advance_to(Phase::Stop);
    }

    /// Senders stop, and receivers end. A server's count what has come already; what comes to a client now isn't
    /// counted.
    pub(super) fn drain(&mut self) {
        self.stopped_ns.get_or_insert_with(monotonic_ns);
        self.advance_to(Phase::Drained);
        self.shut_down(Shutdown::Read);
    }

    /// Everybody ends at once.
    pub(super) fn abort(&self) {
        self.advance_to(Phase::Abort);
        self.shut_down(Shutdown::Both);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.current()
    }

    /// Whether all streams wait for the load to begin.
    pub(super) fn all_ready(&self) -> bool {
        self.ready_count.all_ready()
    }

    pub(super) fn all_ended(&self) -> bool {
        self.ready_count.all_ended()
    }

    pub(super) fn any_ended(&self) -> bool {
        self.ready_count.ended() > 0
    }

    /// Whether all that was asked for has been sent, or all of it received: where both ends send, the
    /// first direction to be done ends the test.
    pub(super) fn goal_is_reached(&self) -> bool {
        self.goals.iter().any(|goal| goal.is_reached())
    }

    /// When the last stream ended, on the monotonic clock: with its last byte, where that came after
    /// the load was stopped.
    pub(super) fn ended_ns(&self) -> u64 {
        let ended = self.streams.iter().map(|(_, shared)| self.stream_ended_ns(shared)).max();
        ended.unwrap_or_else(monotonic_ns)
    }

    /// When a stream ended.
    pub(super) fn stream_ended_ns(&self, shared: &Shared) -> u64 {
        match shared.flow.tally.last_ns.value() {
            0 => self.stopped_ns.unwrap_or_else(monotonic_ns),
            last_ns => last_ns,
        }
    }

    /// Whether all has come that the other end says it sent.
    pub(super) fn has_all_of(&self, theirs: &Results) -> bool {
        let udp = self.setup.parameters.protocol == Protocol::Udp;
        self.streams.iter().filter(|(stream, _)| !stream.sends).all(|(stream, shared)| {
            let (ours, omitted) = (shared.figures(), shared.omitted());
            theirs.stream(stream.id).is_none_or(|theirs| {
                let (omitted, all) = match theirs.omitted_bytes {
                    Some(senders) => (0, theirs.bytes.saturating_add(senders)),
                    None => (omitted.bytes, theirs.bytes),
                };
                let arrived = ours.bytes.saturating_sub(omitted);
                if udp { ours.packets >= theirs.packets } else { arrived >= all }
            })
        })
    }

    /// Ends the threads, and says what they used.
    pub(super) fn join(&mut self) -> Vec<ShardEnd> {
        if !self.all_ended() {
            self.abort();
        }
        self.shards.drain(..).filter_map(Shard::join).collect()
    }

    /// Closes the streams' sockets, once their threads have ended.
    pub(super) fn close(&mut self) {
        for (_, shared) in &self.streams {
            let _gone = shared.flow.socket.as_ref().map(|socket| socket.shutdown(Shutdown::Both));
        }
    }

    fn advance_to(&self, phase: Phase) {
        self.phase.advance_to(phase, monotonic_ns());
        for shard in &self.shards {
            shard.wake();
        }
    }

    /// Wakes whoever is blocked in a call.
    fn shut_down(&self, how: Shutdown) {
        for (_, shared) in &self.streams {
            let receives = !shared.sends || how == Shutdown::Both;
            if receives && shared.flow.tally.progress() < Progress::Ended {
                let _gone = shared.flow.socket.as_ref().map(|socket| socket.shutdown(how));
            }
        }
    }
}

/// How much is to be carried in each direction, where that is what ends the test.
pub(super) fn goal_bytes(parameters: &Parameters) -> Option<u64> {
    let blocks_bytes = parameters.block_count.saturating_mul(parameters.block_bytes.into());
    [parameters.num_bytes, blocks_bytes].into_iter().find(|bytes| *bytes > 0)
}

/// Refuses a processor that this process may not run on.
fn check_affinity(cpu: Option<u32>) -> Result<(), Failure> {
    let allowed =
        sched_getaffinity(None).map_err(|error| Failure::system(Code::AFFINITY, &error.into()))?;
    match cpu.map(|cpu| cpu as usize) {
        Some(cpu) if cpu >= CpuSet::MAX_CPU || !allowed.is_set(cpu) => {
            let error = std::io::Error::from_raw_os_error(libc::EINVAL);
            Err(Failure::system(Code::AFFINITY, &error))
        }
        _ => Ok(()),
    }
}

impl Drop for Load {
    /// Whoever drops a load doesn't wait for its threads.
    fn drop(&mut self) {
        if !self.shards.is_empty() {
            self.abort();
            self.shards.drain(..).for_each(Shard::leave);
        }
    }
}
