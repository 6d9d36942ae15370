//! One end's streams, and the load that carries them.

use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_measure::{Direction, End, Kind, Transport, Workload};
use linerate_wire::iperf3::{Code, Parameters, Protocol, Results, stream_id};
use rustix::thread::{CpuSet, sched_getaffinity};
use socket2::Socket;

use super::figures::Shared;
use super::payload::payload;
use super::spread::Spread;
use super::stream_plan::StreamPlan;
use super::{Failure, Role, Stream};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::flow::Goal;
use crate::load::{Given, Load};
use crate::socket::{is_multipath, plain, set_pacing_rate};
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

/// One end's streams, and the load that carries them.
pub(super) struct Streams {
    pub(super) setup: Setup,
    pub(super) each: Vec<(Stream, Shared)>,
    pub(super) load: Load,
    /// What the streams that send share, and what those that receive do.
    goals: [Arc<Goal>; 2],
    /// Which shard carries which stream, as long as they do.
    _spread: Spread,
}

impl Streams {
    /// Streams over these sockets, in the order in which they were made; they wait.
    pub(super) fn prepare(
        setup: Setup,
        sockets: Vec<Socket>,
        waker: &Arc<Waker>,
    ) -> Result<Self, Failure> {
        check_affinity(setup.affinity)?;
        let (parameters, total) = (&setup.parameters, sockets.len());
        let (udp, block_bytes) =
            (parameters.protocol == Protocol::Udp, parameters.block_bytes as usize);
        let goal = goal_bytes(parameters).filter(|_| setup.role == Role::Client);
        let sends: Vec<bool> = (0..total).map(|index| setup.sends(index)).collect();
        let spread = Spread::new(&sends, udp);
        let payload = payload(block_bytes, parameters.repeating_payload);
        let plan = StreamPlan::new(&setup, &payload, spread.are_all_alone())?;
        let given = Given {
            steps: sends.iter().map(|sends| plan.steps(&setup, *sends)).collect(),
            placement: Some(spread.placement(block_bytes)),
            pattern: Some(payload),
        };
        let cpus: Vec<u32> = setup.affinity.into_iter().collect();
        let workload = workload(parameters, total);
        let load = Load::prepare_placed(setup.role, &workload, given, &cpus, waker)
            .map_err(|error| Failure::of(Code::THREAD_CREATE).because(error.to_string()))?;
        let goals = [goal; 2].map(Goal::new).map(Arc::new);
        let mut streams = Self { setup, each: Vec::new(), load, goals, _spread: spread };
        for (number, socket) in (0..).zip(sockets) {
            streams.add(number, socket, &plan)?;
        }
        Ok(streams)
    }

    fn add(&mut self, number: u32, socket: Socket, plan: &StreamPlan) -> Result<(), Failure> {
        let unset = || SocketAddr::from(([0, 0, 0, 0], 0));
        let address = |address: std::io::Result<socket2::SockAddr>| {
            address.ok().and_then(|address| address.as_socket()).map_or_else(unset, plain)
        };
        let sends = self.setup.sends(number as usize);
        let stream = Stream {
            id: stream_id(number as usize),
            socket: number.saturating_mul(2).saturating_add(5),
            sends,
            local: address(socket.local_addr()),
            remote: address(socket.peer_addr()),
        };
        let [sent, received] = &self.goals;
        let goal = if sends { sent } else { received };
        let make = plan.make(&self.setup, &socket, sends, goal)?;
        self.load.add_made(number, socket, make);
        if let Some(flow) = self.load.flow(number) {
            self.each.push((stream, Shared { flow: Arc::clone(flow), sends }));
        }
        Ok(())
    }

    /// How many streams are plain TCP although MPTCP was asked for.
    pub(super) fn single_path_streams(&self) -> usize {
        if !self.setup.parameters.mptcp || self.setup.parameters.protocol != Protocol::Tcp {
            return 0;
        }
        let sockets = self.each.iter().filter_map(|(_, shared)| shared.flow.socket.as_ref());
        sockets.filter(|socket| !is_multipath(socket.as_fd())).count()
    }

    /// Lets the kernel keep each stream to its rate, where one is asked for.
    pub(super) fn pace(&self) -> std::io::Result<()> {
        let bps = self.setup.parameters.fq_rate_bps;
        let sockets = self.each.iter().filter_map(|(_, shared)| shared.flow.socket.as_ref());
        sockets.filter(|_| bps > 0).try_for_each(|socket| set_pacing_rate(socket.as_fd(), bps))
    }

    /// Senders stop. A server's receivers go on with what is on its way.
    pub(super) fn stop_sending(&mut self) {
        self.load.stop();
    }

    /// Senders stop, and receivers end. A server's count what has come already; what comes to a client now isn't
    /// counted.
    pub(super) fn drain(&mut self) {
        self.load.stop();
        self.load.drain();
    }

    /// Whether all that was asked for has been sent, or all of it received: where both ends send, the
    /// first direction to be done ends the test.
    pub(super) fn goal_is_reached(&self) -> bool {
        self.goals.iter().any(|goal| goal.is_reached())
    }

    /// When the last stream ended, on the monotonic clock: with its last byte, where that came after
    /// the load was stopped.
    pub(super) fn ended_ns(&self) -> u64 {
        let ended = self.each.iter().map(|(_, shared)| self.stream_ended_ns(shared)).max();
        ended.unwrap_or_else(monotonic_ns)
    }

    /// When a stream ended.
    pub(super) fn stream_ended_ns(&self, shared: &Shared) -> u64 {
        match shared.flow.tally.last_ns.value() {
            0 => self.load.stopped_ns().unwrap_or_else(monotonic_ns),
            last_ns => last_ns,
        }
    }

    /// Whether all has come that the other end says it sent.
    pub(super) fn has_all_of(&self, theirs: &Results) -> bool {
        let udp = self.setup.parameters.protocol == Protocol::Udp;
        self.each.iter().filter(|(stream, _)| !stream.sends).all(|(stream, shared)| {
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

    /// Closes the streams' sockets, once their threads have ended.
    pub(super) fn close(&mut self) {
        for (_, shared) in &self.each {
            let _gone = shared.flow.socket.as_ref().map(|socket| socket.shutdown(Shutdown::Both));
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

/// What the load has to know beside what its streams do: they are conducted by iperf3's own end.
fn workload(parameters: &Parameters, streams: usize) -> Workload {
    let transport = match parameters.protocol {
        Protocol::Udp => Transport::Udp,
        _ => Transport::Tcp,
    };
    let mut workload = Workload::stream(Direction::Up, transport);
    workload.flows = u32::try_from(streams).unwrap_or(u32::MAX);
    workload.omit_ns = u64::from(parameters.omit_s) * SECOND_NS;
    workload.interval_ns = u64::MAX;
    workload.end = End::Time { duration_ns: u64::MAX };
    if let Kind::Stream { send_bytes, .. } = &mut workload.kind {
        *send_bytes = parameters.block_bytes;
    }
    workload
}
