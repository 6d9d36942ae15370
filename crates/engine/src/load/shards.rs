//! A load's shards: how many flows each gets, of which shape it is, and what it has in memory.

use std::sync::Arc;
use std::sync::mpsc::channel;

use linerate_measure::sample::Role;
use linerate_measure::{Kind, Workload};
use socket2::Socket;

use super::Connections;
use super::carriage::{file_for, pattern_for};
use super::growth::Growth;
use super::spread::spread;
use super::{Load, Spread, Waker};
use crate::error::Error;
use crate::flow::ActiveFlows;
use crate::latencies::Latencies;
use crate::pattern::Pattern;
use crate::probe::{processors, raise_open_files_limit};
use crate::shard::{OwnLoop, Shape, Shard, ShardPlan};

/// A shard's receive buffer, unless larger sends ask for a larger one. Longer reads take fewer calls.
pub(crate) const RECEIVE_BYTES: usize = 256 << 10;
const MOST_RECEIVE_BYTES: usize = 1 << 20;

/// What all shards of a load have alike.
pub(super) struct ShardTemplate {
    /// Whether each has a file table of its own.
    apart: bool,
    cpus: Vec<u32>,
    receive_bytes: usize,
    pattern: Arc<Pattern>,
    /// What each accepts from in its own file table.
    listeners: Vec<Arc<Socket>>,
}

impl Load {
    pub(super) fn spawn_shards(
        &mut self,
        spread: Spread,
        cpus: &[u32],
        waker: &Arc<Waker>,
        connections: Option<Connections>,
    ) -> Result<(), Error> {
        let workload = &self.workload;
        let (receive_bytes, longest) = buffer_sizes(workload);
        let own_pattern = self.given.pattern.clone();
        let pattern =
            own_pattern.unwrap_or_else(|| pattern_for(workload, &self.steps_of(0), longest));
        self.file = file_for(workload, &pattern, longest, spread)?;
        // A flow that waits for its socket and a time at once, or for lent memory to come back,
        // can't be in a blocking call.
        let overlaps = workload.outstanding() > 1
            || workload.schedule().is_some()
            || workload.payload.variant.zero_copy
            || workload.payload.duplex;
        let shards = spread.shards as usize;
        let active = self.active_flows(shards)?;
        let template = ShardTemplate {
            apart: spread.apart,
            cpus: cpus.to_vec(),
            receive_bytes,
            pattern,
            listeners: connections.as_ref().map_or_else(Vec::new, Connections::listeners),
        };
        let standing: Vec<_> = self.flows.iter().flatten().cloned().collect();
        for index in 0..shards {
            let share = |whole: usize| (whole - index).div_ceil(shards);
            let in_turn = share(self.flows.len().min(self.workload.opened_flows() as usize));
            let placed = self.given.placement.as_ref().and_then(|given| given.shards.get(index));
            let flows = placed.map_or(in_turn, |shard| shard.flows);
            let own_loop = match &connections {
                Some(connections) => {
                    let (sender, receiver) = channel();
                    self.inlets.push(sender);
                    Some(self.own_loop(connections, &standing, (index, shards), receiver))
                }
                None => None,
            };
            let shape = match flows {
                _ if own_loop.is_some() => Shape::Own,
                _ if workload.threading.busy_poll => Shape::Spinning,
                1 if !spread.apart && !overlaps => Shape::Alone,
                _ => Shape::Polled,
            };
            let plan = ShardPlan {
                active: active
                    .map_or(ActiveFlows::ALL, |most| ActiveFlows::new(share(most), flows)),
                receive_bytes: placed.map_or(receive_bytes, |shard| shard.receive_bytes),
                ..self.shard_plan(&template, index, (shape, flows), own_loop)
            };
            self.shards.push(Shard::spawn(plan, waker)?);
        }
        if let Some(apart) = &mut self.apart {
            apart.growth = Growth::new(connections, template, waker);
        }
        Ok(())
    }

    /// What the shard of this number is to be, with so many flows.
    pub(super) fn shard_plan(
        &self,
        template: &ShardTemplate,
        index: usize,
        (shape, flows): (Shape, usize),
        own_loop: Option<OwnLoop>,
    ) -> ShardPlan {
        let cpus = &template.cpus;
        ShardPlan {
            shape,
            flows,
            active: ActiveFlows::ALL,
            apart: template.apart,
            cpu: cpus.get(index % cpus.len().max(1)).copied(),
            receive_bytes: template.receive_bytes,
            pattern: Arc::clone(&template.pattern),
            latencies: Latencies::new(&self.workload, self.role),
            phase: Arc::clone(&self.phase),
            ready_count: Arc::clone(&self.ready_count),
            own_loop,
            listeners: template.listeners.clone(),
        }
    }

    /// How many flows of this end have a request on their way at a time, where that is limited.
    fn active_flows(&self, shards: usize) -> Result<Option<usize>, Error> {
        let most = self.workload.active_flows().filter(|_| self.asks());
        match most.map(|most| most as usize) {
            Some(most) if most < shards => Err(Error::Host(format!(
                "{most} active flows are fewer than the {shards} threads that {} flows take on this \
                 machine: use --active {shards} or more",
                self.flows.len()
            ))),
            most => Ok(most),
        }
    }
}

/// Threads that the flows of a client's load over TCP, TLS or UDP take on these processors of this machine (none: on
/// those that it may run on), where they don't take turns.
///
/// # Errors
/// `Host` where that is more than there may be; the text names the limit and the way out.
pub fn client_threads(workload: &Workload, cpus: &[u32]) -> Result<u32, Error> {
    let threads = threads(Role::Client, workload, processors(cpus));
    let spread = spread(workload.opened_flows(), threads, raise_open_files_limit());
    Ok(spread.map_err(Error::Host)?.shards)
}

/// Threads that a load is to have: one for each processor unless told otherwise, and where flows take
/// turns no more at the client than may be active.
pub(super) fn threads(role: Role, workload: &Workload, processors: u32) -> u32 {
    let threads = workload.threading.threads.unwrap_or(processors);
    match workload.active_flows() {
        Some(active) if role == Role::Client => threads.min(active),
        _ => threads,
    }
}

/// Bytes of a shard's receive buffer, and of the longest slice of the pattern that it needs.
fn buffer_sizes(workload: &Workload) -> (usize, usize) {
    let largest = match workload.kind {
        Kind::Stream { send_bytes, .. } => send_bytes,
        Kind::Connect { transfer: Some(transfer), .. } => {
            let most = transfer.buffer_bytes.map_or(0, |bytes| bytes.bounds().1);
            // A longer send takes several calls.
            most.min(MOST_RECEIVE_BYTES as u64) as u32
        }
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => request_bytes.max(response_bytes),
    } as usize;
    let receive_bytes = largest.clamp(RECEIVE_BYTES, MOST_RECEIVE_BYTES);
    (receive_bytes, largest.max(receive_bytes))
}
