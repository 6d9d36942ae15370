//! The way of events from a loop of streams to the caller: a queue of limited length, which loses no row of status.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_system::affinity::pin_to;

use super::media_event::{MediaEvent, MediaRun};
use super::{LAST_LINES_NS, MOST_WAITING};
use crate::clock::monotonic_ns;
use crate::error::Error;

/// Bad datagrams that may wait. Any program can send such datagrams, at any rate.
const MOST_BAD_WAITING: usize = 1024;
/// Frames of jitter that may wait. How many there are is decided by this end.
const MOST_FRAMES_WAITING: usize = 1 << 20;
/// Rows of status that may wait.
const MOST_ROWS_WAITING: usize = 1024;

/// Where the events of a loop of streams go.
pub(super) struct Events<'a> {
    sender: Sender<MediaEvent>,
    queue: &'a Queue,
    lost: Cell<u64>,
}

/// What both ends of the queue know.
#[derive(Debug)]
struct Queue {
    /// How many events wait, by their kinds.
    waiting: [AtomicUsize; 4],
    /// From then on the caller is told no more of single streams and frames.
    last_lines_ns: AtomicU64,
}

impl Default for Queue {
    fn default() -> Self {
        Self { waiting: Default::default(), last_lines_ns: AtomicU64::new(u64::MAX) }
    }
}

/// Kinds of events of which any number may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A line of a stream.
    Stream,
    BadDatagram,
    Frame,
    Status,
}

impl Kind {
    fn of(event: &MediaEvent) -> Option<Self> {
        match event {
            MediaEvent::Established { .. } | MediaEvent::Finished(_) => Some(Self::Stream),
            MediaEvent::BadDatagram { .. } => Some(Self::BadDatagram),
            MediaEvent::Jitter(_) => Some(Self::Frame),
            MediaEvent::Status(_) => Some(Self::Status),
            MediaEvent::Listening(_)
            | MediaEvent::Note(_)
            | MediaEvent::TimeIsUp
            | MediaEvent::Pausing => None,
        }
    }

    /// How many may wait. The loop asks for room for a row of status before it cuts one.
    fn most_waiting(self) -> usize {
        match self {
            Self::Stream => MOST_WAITING,
            Self::BadDatagram => MOST_BAD_WAITING,
            Self::Frame => MOST_FRAMES_WAITING,
            Self::Status => usize::MAX,
        }
    }
}

impl Queue {
    fn waiting(&self, kind: Kind) -> &AtomicUsize {
        &self.waiting[kind as usize]
    }
}

impl Events<'_> {
    /// Tells an event, or counts it where too many of its kind wait.
    pub(super) fn tell(&self, event: MediaEvent) {
        if let Some(kind) = Kind::of(&event) {
            let waiting = self.queue.waiting(kind);
            if waiting.load(Ordering::Relaxed) >= kind.most_waiting() {
                return self.lost.set(self.lost.get() + 1);
            }
            waiting.fetch_add(1, Ordering::Relaxed);
        }
        // The receiver lives as long as the loop.
        let _received = self.sender.send(event);
    }

    /// Whether a row of status finds room. One that doesn't is not cut yet, so that its frames and bits are the next
    /// one's.
    pub(super) fn has_room_for_status(&self) -> bool {
        self.queue.waiting(Kind::Status).load(Ordering::Relaxed) < MOST_ROWS_WAITING
    }

    /// The run is stopped: what waits is told for a short time only.
    pub(super) fn stop(&self) {
        let until_ns = monotonic_ns().saturating_add(LAST_LINES_NS);
        self.queue.last_lines_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Events that found no room.
    pub(super) fn lost(&self) -> u64 {
        self.lost.get()
    }
}

/// Runs a loop of streams in a thread of its own, on these processors if any are given, and tells its events here.
pub(super) fn with_events(
    tell: &mut dyn FnMut(MediaEvent),
    cpus: &[u32],
    run: impl FnOnce(&Events<'_>) -> MediaRun + Send,
) -> Result<MediaRun, Error> {
    let (sender, events): (_, Receiver<MediaEvent>) = channel();
    let queue = &Queue::default();
    std::thread::scope(|scope| {
        let body = move || {
            // Frames are due at fractions of a millisecond; the default slack of 50 us is too coarse.
            let _coarser_at_worst =
                rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            let events = Events { sender, queue, lost: Cell::new(0) };
            if let Err(why) = pin_to(cpus) {
                events.tell(MediaEvent::Note(why));
            }
            run(&events)
        };
        let thread = std::thread::Builder::new().name("streams".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(|error| Error::no_thread(&error))?;
        let late = tell_all(&events, queue, tell);
        let run = thread.join();
        let run =
            run.map_err(|_| Error::Host("the thread of the streams has failed".to_owned()))?;
        Ok(MediaRun { lost_events: run.lost_events + late, ..run })
    })
}

/// Tells events until the loop has ended; how many were too late.
fn tell_all(events: &Receiver<MediaEvent>, queue: &Queue, tell: &mut dyn FnMut(MediaEvent)) -> u64 {
    let mut late = 0;
    for event in events {
        let kind = Kind::of(&event);
        if let Some(kind) = kind {
            queue.waiting(kind).fetch_sub(1, Ordering::Relaxed);
        }
        let last_lines_ns = queue.last_lines_ns.load(Ordering::Relaxed);
        let is_line = kind.is_some_and(|kind| kind != Kind::Status);
        if is_line && last_lines_ns < u64::MAX && monotonic_ns() >= last_lines_ns {
            late += 1;
        } else {
            tell(event);
        }
    }
    late
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use linerate_measure::{EndReport, Role};

    use super::super::media_event::{MediaStatus, MediaTotals};
    use super::*;

    fn established() -> MediaEvent {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        MediaEvent::Established { at_ns: 0, addresses: (address, address) }
    }

    #[test]
    fn a_full_queue_keeps_rows_of_status_and_the_time_limit() {
        let mut told = Vec::new();
        let mut tell = |event| told.push(event);
        let run = with_events(&mut tell, &[], |events| {
            // Nothing is taken while this runs.
            events.queue.waiting(Kind::Stream).store(MOST_WAITING, Ordering::Relaxed);
            events.tell(established());
            events.tell(MediaEvent::Status(MediaStatus::default()));
            events.tell(MediaEvent::TimeIsUp);
            MediaRun {
                totals: MediaTotals::default(),
                open: 0,
                elapsed_ns: 0,
                is_complete: false,
                lost_events: events.lost(),
                report: EndReport::nothing(Role::Server),
            }
        });
        assert_eq!(run.unwrap().lost_events, 1);
        assert!(matches!(told[..], [MediaEvent::Status(_), MediaEvent::TimeIsUp]), "{told:?}");
    }

    #[test]
    fn rows_of_status_need_room() {
        let (sender, events) = channel();
        let queue = &Queue::default();
        let sending = Events { sender, queue, lost: Cell::new(0) };
        for _ in 0..MOST_ROWS_WAITING {
            assert!(sending.has_room_for_status());
            sending.tell(MediaEvent::Status(MediaStatus::default()));
        }
        assert!(!sending.has_room_for_status());
        drop(sending);
        assert_eq!(tell_all(&events, queue, &mut |_| {}), 0);
        assert_eq!(queue.waiting(Kind::Status).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_stopped_run_tells_waiting_lines_for_a_short_time() {
        let (sender, events) = channel();
        let queue = &Queue::default();
        let sending = Events { sender, queue, lost: Cell::new(0) };
        sending.tell(established());
        sending.tell(MediaEvent::TimeIsUp);
        drop(sending);
        queue.last_lines_ns.store(monotonic_ns(), Ordering::Relaxed);
        let mut told = 0;
        assert_eq!(tell_all(&events, queue, &mut |_| told += 1), 1);
        assert_eq!(told, 1);
    }
}
