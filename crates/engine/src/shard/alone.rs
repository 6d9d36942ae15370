//! One flow, in blocking calls: the shape with the fewest system calls.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

use super::inlet::Inlet;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Drive, Local, Turn};
use crate::poll::timespec;

/// A sender that is blocked looks at the phase this often.
const LONGEST_SEND: Duration = Duration::from_millis(50);
/// The longest nap of a paced sender, so that it sees the phase change.
const LONGEST_NAP_NS: u64 = 20 * MILLISECOND_NS;
/// A held flow looks at the phase this often should a wake-up be missed.
const LONGEST_PARK: Duration = Duration::from_millis(20);

/// Returns the flow that has ended.
pub(super) fn run(inlet: &Inlet, local: &mut Local) -> Option<Box<dyn Drive>> {
    let mut flow = inlet.wait()?;
    let socket = flow.socket();
    // A socket that keeps its old mode still carries the flow, at the cost of spinning.
    let _mode = socket.set_nonblocking(false);
    let _timeout = socket.set_write_timeout(Some(LONGEST_SEND));
    loop {
        match flow.turn(local) {
            Turn::Again | Turn::ThenSend | Turn::Wait { .. } => {}
            Turn::Pause { until_ns } => nap_until(until_ns),
            Turn::Held | Turn::Rest => std::thread::park_timeout(LONGEST_PARK),
            Turn::Ended => return Some(flow),
        }
    }
}

fn nap_until(until_ns: u64) {
    let now_ns = monotonic_ns();
    let nap_ns = until_ns.saturating_sub(now_ns).min(LONGEST_NAP_NS);
    if nap_ns >= MILLISECOND_NS {
        // A change of the phase ends it.
        return std::thread::park_timeout(Duration::from_nanos(nap_ns));
    }
    let until = timespec(now_ns + nap_ns);
    // Interrupted by a signal: the flow looks at the clock and sleeps again.
    let _interrupted = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}
