//! Loads of servers that get more shards: each accepts in a file table of its own until that is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_measure::plan::limits::{FLOWS, THREADS};

use super::own_loop::Connections;
use super::shards::ShardTemplate;
use super::spread::room_in_table;
use super::{Load, Waker};
use crate::flow::FlowShared;
use crate::phase::Phase;
use crate::probe::raise_open_files_limit;
use crate::shard::{Shape, Shard};

/// What further shards are made from.
pub(super) struct Growth {
    connections: Connections,
    template: ShardTemplate,
    waker: Arc<Waker>,
    /// How many of the shards' file tables are full.
    full_tables: Arc<AtomicU32>,
    most_shards: usize,
}

impl Growth {
    /// Of a load whose shards accept in file tables of their own; `None`: they don't.
    pub(super) fn new(
        connections: Option<Connections>,
        template: ShardTemplate,
        waker: &Arc<Waker>,
    ) -> Option<Self> {
        let Some(Connections::Accept(accept)) = connections else { return None };
        Some(Self {
            full_tables: Arc::clone(accept.limits.full_tables.as_ref()?),
            connections: Connections::Accept(accept),
            template,
            waker: Arc::clone(waker),
            most_shards: most_shards(raise_open_files_limit()),
        })
    }
}

/// Whether a load accepts in a file table for each shard.
pub(super) fn grows(connections: &Connections) -> bool {
    matches!(connections, Connections::Accept(accept) if accept.limits.full_tables.is_some())
}

/// Shards for as many connections as a load may have flows.
fn most_shards(open_files: u64) -> usize {
    let shards = FLOWS.end().div_ceil(room_in_table(open_files).max(1));
    shards.min(*THREADS.end()) as usize
}

/// Adds a shard to a load where no other has a descriptor for another connection.
pub(super) fn grow(load: &mut Load) {
    let Some(growth) = load.apart.as_ref().and_then(|apart| apart.growth.as_ref()) else { return };
    let full = growth.full_tables.load(Ordering::Relaxed) as usize;
    let index = load.shards.len();
    let may_grow = index < growth.most_shards && load.phase.current() < Phase::Stop;
    if full < index || !may_grow {
        return;
    }
    let number = u32::try_from(index).unwrap_or(u32::MAX);
    let flow = Arc::new(FlowShared::with_tally(number, None, load.tallies.next_place()));
    let own_loop = load.accepting_loop(&growth.connections, &flow);
    let plan = load.shard_plan(&growth.template, index, (Shape::Own, 1), Some(own_loop));
    match Shard::spawn(plan, &growth.waker) {
        Ok(shard) => {
            load.ready_count.add_flow();
            load.shards.push(shard);
            load.flows.push(Some(flow));
        }
        Err(error) => {
            load.apart.iter_mut().for_each(|apart| apart.growth = None);
            load.note(format!("further connections wait until others have gone: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_room_for_a_million_connections_where_threads_do_not_run_out() {
        for (open_files, most) in [(20_000, 51), (1 << 20, 1), (4_000, 252), (120, 1_024)] {
            assert_eq!(most_shards(open_files), most, "{open_files}");
        }
    }
}
