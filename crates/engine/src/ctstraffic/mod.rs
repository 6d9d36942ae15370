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
mod media_server;
mod tcp_event;
mod tcp_plan;
mod tcp_run;
mod tcp_sockets;

pub use crate::connections::Route;
pub use media_client::run_media_client;
pub use media_event::{MediaError, MediaEvent, MediaRun, MediaStatus, MediaStreamEnd, MediaTotals};
pub use media_plan::{MediaClientPlan, MediaRoute, MediaServerPlan, MediaSockets};
pub use media_server::run_media_server;
pub use tcp_event::{TcpConnectionEnd, TcpEvent, TcpKernelFigures, TcpStatus, TcpTotals};
pub use tcp_plan::{TcpEnd, TcpPlan, TcpRoutes, TcpSockets};
pub use tcp_run::{TcpRun, run_tcp};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::clock::MILLISECOND_NS;
use crate::error::Error;

/// The longest that a loop of streams sleeps: it checks this often whether it is cancelled.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// Bad datagrams whose events may wait for the caller. Any program can send such datagrams, at any rate, while the
/// caller's output is stopped; further ones are only counted.
const MOST_BAD_WAITING: usize = 1024;

/// Where the events of a loop of streams go.
struct Events<'a> {
    sender: Sender<MediaEvent>,
    bad_waiting: &'a AtomicUsize,
}

impl Events<'_> {
    fn tell(&self, event: MediaEvent) {
        if matches!(event, MediaEvent::BadDatagram { .. }) {
            if self.bad_waiting.load(Ordering::Relaxed) >= MOST_BAD_WAITING {
                return;
            }
            self.bad_waiting.fetch_add(1, Ordering::Relaxed);
        }
        // The receiver lives as long as the loop.
        let _received = self.sender.send(event);
    }
}

/// Runs a loop of streams in a thread of its own, and tells its events here.
fn with_events<T: Send>(
    tell: &mut dyn FnMut(MediaEvent),
    run: impl FnOnce(&Events<'_>) -> T + Send,
) -> Result<T, Error> {
    let (sender, events): (_, Receiver<MediaEvent>) = channel();
    let bad_waiting = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let body = move || {
            // Frames are due at fractions of a millisecond; the default slack of 50 us is too coarse.
            let _coarser_at_worst =
                rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            run(&Events { sender, bad_waiting })
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
