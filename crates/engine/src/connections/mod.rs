//! Connections that come and go: connect, one request, one response, close; again.
//!
//! They aren't flows that a shard holds, and they outlive no turn worth keeping: at this rate every
//! system call counts. So a shard of such a load has a loop made for it, of which the client's dials
//! and the server's serves. A server's loop takes the connections from the listener itself; one that
//! turns out to be somebody else's goes to the reception.

mod carrier;
mod dial;
mod guest;
mod places;
mod serve;
mod source;
mod spin_wait;
mod strangers;
mod wake_ups;
mod worker;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::mpsc::Sender;

use linerate_measure::SocketOptions;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use socket2::Socket;

use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::shard::Inlet;
use crate::waker::Waker;

pub(crate) use dial::Dialing;
pub(crate) use places::{Agreement, Due, Milestones, Places};
pub(crate) use serve::{Serving, limit_blocking, restore_accepted, restore_listener};
pub(crate) use spin_wait::{Awaited, SpinWait};
pub(crate) use wake_ups::WakeUps;

/// Where the client's connections go, and from where.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) server: SocketAddr,
    pub(crate) token: [u8; 16],
    pub(crate) device: Option<String>,
    /// Source addresses, taken in turn; none: the kernel's choice.
    pub(crate) binds: Vec<SocketAddr>,
    pub(crate) source_ports: Option<(u16, u16)>,
    /// Where the walk through the source ports of all addresses begins. By chance: those that the
    /// last run has used wait in TIME-WAIT for a minute.
    pub(crate) first_source: u64,
    pub(crate) options: SocketOptions,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) agreement: Agreement,
}

/// Where the server's connections come from.
#[derive(Clone)]
pub(crate) struct Serve {
    pub(crate) listener: Arc<Socket>,
    /// How many loops accept from it.
    pub(crate) hosts: Arc<AtomicU32>,
    pub(crate) token: [u8; 16],
    pub(crate) options: SocketOptions,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// Connections accepted before others have their turn. Where one comes at a time, asking for
    /// the next would be a call for nothing.
    pub(crate) at_once: u32,
    /// Connections that the load's shards hold, all together.
    pub(crate) guests: Arc<AtomicUsize>,
    /// Those of them that wait and haven't said whose they are.
    pub(crate) strangers: Arc<AtomicUsize>,
    /// The most guests. For whoever comes beyond, one that hasn't said whose it is goes to the reception, which knows
    /// how to make room.
    pub(crate) most_guests: usize,
    /// Takes the connections that aren't this load's, and the waker that wakes it.
    pub(crate) reception: Sender<Socket>,
    pub(crate) reception_waker: Arc<Waker>,
}

/// The longest a loop sleeps: time-outs are looked at this often.
const LONGEST_WAIT_NS: u64 = 10 * MILLISECOND_NS;
/// Marks the waker among the events.
const WAKER: u64 = u64::MAX;
/// Events taken at once.
const EVENTS: usize = 256;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interest {
    Readable,
    Writable,
}

/// A level-triggered poll set.
struct Poll {
    set: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    /// `None` where the machine has no descriptor for it.
    fn new(waker: &Inlet) -> Option<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC).ok()?;
        epoll::add(&set, waker.as_fd(), EventData::new_u64(WAKER), EventFlags::IN).ok()?;
        Some(Self { set, events: Vec::with_capacity(EVENTS) })
    }

    /// Waits for one thing of a socket; `before` is what it waited for until now.
    fn watch(
        &self,
        socket: impl AsFd,
        index: usize,
        before: Option<Interest>,
        now: Interest,
    ) -> bool {
        let flags = match now {
            Interest::Readable => EventFlags::IN,
            Interest::Writable => EventFlags::OUT,
        };
        let data = EventData::new_u64(index as u64);
        match before {
            Some(before) if before == now => true,
            Some(_) => epoll::modify(&self.set, socket, data, flags).is_ok(),
            None => epoll::add(&self.set, socket, data, flags).is_ok(),
        }
    }

    /// Waits for connections, of which each wakes one of those that wait.
    fn watch_listener(&self, listener: &Socket, index: usize) -> bool {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&self.set, listener, EventData::new_u64(index as u64), flags).is_ok()
    }

    /// Watches a socket no longer.
    fn forget(&self, socket: impl AsFd) {
        // Fails only where it wasn't watched.
        let _not_watched = epoll::delete(&self.set, socket);
    }

    /// Waits, no longer than this; the events are read with [`Poll::take_ready`].
    fn wait(&mut self, at_most_ns: u64) {
        let wait_ns = at_most_ns.min(LONGEST_WAIT_NS);
        let timeout =
            Timespec { tv_sec: (wait_ns / SECOND_NS) as i64, tv_nsec: (wait_ns % SECOND_NS) as _ };
        self.events.clear();
        let mut timeout = Some(timeout);
        if (1..LONGEST_WAIT_NS).contains(&wait_ns) {
            // epoll_wait(2) counts in milliseconds, poll in nanoseconds.
            let mut polled = [rustix::event::PollFd::new(&self.set, rustix::event::PollFlags::IN)];
            let _interrupted = rustix::event::poll(&mut polled, timeout.as_ref());
            timeout = Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        // Interrupted by a signal: a round with no events.
        let _interrupted =
            epoll::wait(&self.set, spare_capacity(&mut self.events), timeout.as_ref());
    }

    /// Takes the last wait's events: the indexes of those that are ready.
    fn take_ready(&mut self, into: &mut Vec<usize>, waker: &Inlet) {
        for event in self.events.drain(..) {
            match event.data.u64() {
                WAKER => waker.silence(),
                index => into.push(usize::try_from(index).unwrap_or(usize::MAX)),
            }
        }
    }
}
