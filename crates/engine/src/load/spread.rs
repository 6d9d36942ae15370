//! Over how many shards a load is spread, and whether they have file tables of their own.

use linerate_measure::plan::limits::THREADS;
use linerate_measure::{Kind, Workload};

/// The most flows of a shard that has a file table of its own.
const MOST_FLOWS_APART: u64 = 19_000;
/// Descriptors of such a shard that aren't flows': standard ones, link, waker, poll set.
const OTHERS_APART: u64 = 16;

/// How a load is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) shards: u32,
    /// Whether each shard has a file table of its own.
    pub(crate) apart: bool,
}

/// Whether a load has more flows than it may take of the file table that all share, where a table
/// has room for so many: half of it, so that others have room beside it.
pub(crate) fn is_apart(flows: u32, open_files: u64) -> bool {
    u64::from(flows) > open_files / 2
}

/// Flows for which a shard's own file table has descriptors, of so many in all.
pub(super) fn room_in_table(open_files: u64) -> u64 {
    open_files.saturating_sub(OTHERS_APART)
}

/// The most UDP sockets that a client opens for a load over QUIC. Where the plan leaves the number of threads to the
/// client there may be as many as any has, and no more than a quarter of a file table holds. Each is a socket in the
/// table that all share.
pub(crate) fn most_quic_sockets(workload: &Workload, open_files: u64) -> u32 {
    let untold = (open_files / 4).clamp(1, *THREADS.end()) as u32;
    quic_sockets(workload, untold)
}

/// The UDP sockets of a load over QUIC that has so many threads unless its plan says otherwise: one for each, and no
/// more than connections.
pub(crate) fn quic_sockets(workload: &Workload, untold: u32) -> u32 {
    let connections = match workload.kind {
        Kind::Connect { .. } => workload.flows,
        Kind::Stream { .. } | Kind::Rr { .. } => workload.quic_connections(),
    };
    workload.threading.threads.unwrap_or(untold).min(connections)
}

/// Spreads so many flows over `threads` shards, or more where a file table can't hold that many.
///
/// # Errors
///
/// Where that takes more threads than there may be; the text names the limit and the way out.
pub(crate) fn spread(flows: u32, threads: u32, open_files: u64) -> Result<Spread, String> {
    let threads = threads.clamp(1, flows.max(1));
    if !is_apart(flows, open_files) {
        return Ok(Spread { shards: threads, apart: false });
    }
    let most = room_in_table(open_files).min(MOST_FLOWS_APART);
    let needed = u64::from(flows).checked_div(most).map_or(u64::MAX, |whole| whole + 1);
    let shards = needed.max(threads.into());
    match u32::try_from(shards) {
        Ok(shards) if shards <= *THREADS.end() as u32 => Ok(Spread { shards, apart: true }),
        _ => Err(format!(
            "{flows} flows need more than {} threads where a thread may have {open_files} open \
             files: ask for fewer --flows, or raise the limit (ulimit -n)",
            THREADS.end()
        )),
    }
}

#[cfg(test)]
mod tests {
    use linerate_measure::Transport;

    use super::*;

    #[test]
    fn small_loads_stay_in_the_shared_table() {
        assert_eq!(spread(1, 2, 20_000), Ok(Spread { shards: 1, apart: false }));
        assert_eq!(spread(10_000, 2, 20_000), Ok(Spread { shards: 2, apart: false }));
        assert_eq!(spread(10_001, 2, 20_000), Ok(Spread { shards: 2, apart: true }));
    }

    #[test]
    fn no_shard_has_more_flows_than_its_table_holds() {
        for open_files in [64, 1024, 20_000, 1 << 20] {
            for flows in [600_000, 20_001, 38_000, 38_001, 100_000, 1_000_000] {
                let Ok(Spread { shards, apart: true }) = spread(flows, 2, open_files) else {
                    continue;
                };
                let each = u64::from(flows.div_ceil(shards));
                assert!(each <= MOST_FLOWS_APART, "{flows} flows, {shards} shards");
                assert!(each + OTHERS_APART <= open_files, "{flows} flows, {shards} shards");
            }
        }
    }

    #[test]
    fn a_client_has_a_quic_socket_for_each_thread_and_no_more_than_connections() {
        let most = |flows, threads, open_files| {
            let mut workload = Workload { flows, ..Workload::rr(Transport::Quic) };
            workload.threading.threads = threads;
            most_quic_sockets(&workload, open_files)
        };
        assert_eq!((most(100_000, Some(7), 20_000), most(5, Some(7), 20_000)), (7, 5));
        assert_eq!((most(100_000, None, 20_000), most(100_000, None, 1_024)), (1_024, 256));
        let mut shared = Workload { flows: 100, ..Workload::rr(Transport::Quic) };
        shared.quic.streams = 30;
        assert_eq!(most_quic_sockets(&shared, 20_000), 4);
        let connect = Workload { flows: 100, ..Workload::connect(Transport::Quic) };
        assert_eq!(most_quic_sockets(&connect, 20_000), 100);
    }

    #[test]
    fn a_limit_that_is_too_low_is_named() {
        let error = spread(1_000_000, 2, 100).unwrap_err();
        assert!(error.contains("100 open files") && error.contains("ulimit -n"), "{error}");
        assert!(spread(100, 2, 10).is_err());
    }
}
