//! How long threads waited for a processor that others had: what a busy machine takes from a load.

use std::collections::HashMap;
use std::ffi::OsString;

/// What threads have waited since a moment, as far as it was looked at. The kernel counts it (`schedstat` in proc(5)); of
/// one that doesn't, all is zero.
#[derive(Default)]
pub(crate) struct RunDelays {
    before_ns: HashMap<OsString, u64>,
    seen_ns: HashMap<OsString, u64>,
}

impl RunDelays {
    /// Leaves out what the threads of this process have waited before.
    #[allow(dead_code, reason = "for processes that run already")]
    pub(crate) fn since_now(pid: u32) -> Self {
        Self { before_ns: of_threads(pid), seen_ns: HashMap::new() }
    }

    /// Looks at the threads of a process. A thread that has ended counts as at the last look before.
    pub(crate) fn look(&mut self, pid: u32) {
        self.seen_ns.extend(of_threads(pid));
    }

    /// All threads together, in seconds.
    pub(crate) fn total_s(&self) -> f64 {
        let since = |(thread, seen_ns): (&OsString, &u64)| {
            seen_ns.saturating_sub(self.before_ns.get(thread).copied().unwrap_or(0))
        };
        self.seen_ns.iter().map(since).sum::<u64>() as f64 / 1e9
    }
}

/// What each thread of a process has waited so far, in nanoseconds; nothing of a process that has ended.
fn of_threads(pid: u32) -> HashMap<OsString, u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let delays = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((thread.file_name(), text.split_whitespace().nth(1)?.parse().ok()?))
    });
    delays.collect()
}
