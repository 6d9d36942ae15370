//! The ctsTraffic dialect over sockets: clients and servers of transfers over TCP, and of media streams over UDP.
//!
//! Nothing is negotiated, so there is no conversation. Each TCP connection lives the life that the options come to
//! ([`Life`](linerate_measure::step::Life)), in the loops that all connections that come and go have; here they are
//! counted by what came of them. The machines of streams are `linerate_wire::ctstraffic::media`'s; here they get
//! sockets, clocks and threads. One thread has all streams of an end. Events go to the caller's thread, so that a
//! slow reader delays neither data nor frames. `docs/compat/ctstraffic.md` says what is like the original and what
//! isn't.

mod media_client;
mod media_event;
mod media_plan;
mod media_run;
mod media_server;
mod tcp_event;
mod tcp_notices;
mod tcp_plan;
mod tcp_run;
mod tcp_sockets;

pub use crate::connections::Route;
pub use media_client::run_media_client;
pub use media_event::{MediaError, MediaEvent, MediaRun, MediaStatus, MediaStreamEnd, MediaTotals};
pub use media_plan::{MediaClientPlan, MediaRoute, MediaServerPlan, MediaSockets};
pub use media_run::MediaTimes;
pub use media_server::run_media_server;
pub use tcp_event::{TcpConnectionEnd, TcpEvent, TcpKernelFigures, TcpStatus, TcpTotals};
pub use tcp_plan::{TcpEnd, TcpPlan, TcpRoutes, TcpSockets};
pub use tcp_run::{TcpRun, run_tcp};

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::clock::MILLISECOND_NS;
use crate::error::Error;
use linerate_system::affinity::pin_to;

/// The longest that a loop of streams sleeps: it checks this often whether it is cancelled.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// Events that may wait for the caller, whose output may be stopped while peers decide how many there are. Further
/// ones are only counted.
const MOST_WAITING: usize = 16_384;
/// Bad datagrams among them. Any program can send such datagrams, at any rate.
const MOST_BAD_WAITING: usize = 1024;

/// Where the events of a loop of streams go.
struct Events<'a> {
    sender: SyncSender<MediaEvent>,
    bad_waiting: &'a AtomicUsize,
    lost: Cell<u64>,
}

impl Events<'_> {
    fn tell(&self, event: MediaEvent) {
        let is_bad = matches!(event, MediaEvent::BadDatagram { .. });
        let is_room = !is_bad || self.bad_waiting.load(Ordering::Relaxed) < MOST_BAD_WAITING;
        self.bad_waiting.fetch_add(usize::from(is_bad), Ordering::Relaxed);
        if !(is_room && self.sender.try_send(event).is_ok()) {
            self.bad_waiting.fetch_sub(usize::from(is_bad), Ordering::Relaxed);
            self.lost.set(self.lost.get() + 1);
        }
    }

    /// Events that found no room.
    fn lost(&self) -> u64 {
        self.lost.get()
    }
}

/// Runs a loop of streams in a thread of its own, on these processors if any are given, and tells its events here.
fn with_events<T: Send>(
    tell: &mut dyn FnMut(MediaEvent),
    cpus: &[u32],
    run: impl FnOnce(&Events<'_>) -> T + Send,
) -> Result<T, Error> {
    let (sender, events): (_, Receiver<MediaEvent>) = sync_channel(MOST_WAITING);
    let bad_waiting = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let body = move || {
            let _on_any_processor_at_worst = pin_to(cpus);
            // Frames are due at fractions of a millisecond; the default slack of 50 us is too coarse.
            let _coarser_at_worst =
                rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            run(&Events { sender, bad_waiting, lost: Cell::new(0) })
        };
        let thread = std::thread::Builder::new().name("streams".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(|error| Error::no_thread(&error))?;
        for event in events {
            if matches!(event, MediaEvent::BadDatagram { .. }) {
                bad_waiting.fetch_sub(1, Ordering::Relaxed);
            }
            tell(event);
        }
        thread.join().map_err(|_| Error::Host("the thread of the streams has failed".to_owned()))
    })
}

#[cfg(test)]
mod tests;
