//! Connections that come and go: connect, a life of transfers, close; again.
//!
//! They aren't flows that a shard holds, and they outlive no turn worth keeping: at this rate every
//! system call counts. So a shard of such a load has a loop made for it, of which the client's dials
//! and the server's accepts. Where linerate's own load has them, a server's loop takes the connections
//! from the listener of all; a connection of another client goes to the server's first thread.
//!
//! A life knows nothing of what carries it: a [`Carrier`], which is TCP, TLS over that, or a connection of the loops
//! over QUIC.

mod accept;
mod attempt;
mod attempts;
mod carrier;
mod dial;
mod finished;
mod incoming;
mod listeners;
mod living;
mod opening;
mod pending;
mod script;
mod slots;
mod source;
mod spin_wait;
mod timers;
mod wake_ups;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linerate_measure::{Handshake, SocketOptions};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use socket2::Socket;

use crate::buffers::Buffers;
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::shard::Inlet;
use crate::socket::open_stream;
use crate::waker::Waker;

pub(crate) use accept::{Accepting, limit_blocking, restore_accepted, restore_listener};
pub(crate) use attempt::{Attempt, Carrier, Part};
pub(crate) use attempts::{Advanced, Attempts};
pub(crate) use dial::Dialing;
pub use finished::Call;
pub(crate) use finished::{Failure, Finished, TellConnections, Told};
pub(crate) use living::fault;
pub(crate) use script::{LifeStream, Progress, Script};
pub(crate) use slots::{Agreement, Due, Milestones, Rules, Slots};
pub(crate) use source::Search;
pub(crate) use spin_wait::Awaited;
pub(crate) use timers::Timers;

/// Makes a socket with its options for a connection to this address, which blocks for [`LONGEST_BLOCK`] at most, or not
/// at all.
pub(crate) type OpenSocket = Arc<dyn Fn(SocketAddr, bool) -> io::Result<Socket> + Send + Sync>;

/// Makes the sockets of connections.
pub(crate) fn sockets_with(options: SocketOptions) -> OpenSocket {
    Arc::new(move |server, blocks| open_stream(server, &options, blocks.then_some(LONGEST_BLOCK)))
}

/// Where a connection goes, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub server: SocketAddr,
    /// The local address, whose port doesn't count; absent: the kernel's choice.
    pub bind: Option<SocketAddr>,
    /// The local port; absent: the kernel's choice.
    pub port: Option<u16>,
}

/// Local ports of connections, in which each address has its turn.
#[derive(Clone, Copy)]
pub(crate) struct SourcePorts {
    pub(crate) first: u16,
    pub(crate) last: u16,
    /// Where the walk through the ports of all addresses begins.
    pub(crate) begin: u64,
}

/// The routes of a load whose connections don't all go to one server.
#[derive(Clone)]
pub(crate) struct Routes {
    /// That of the connection with this number.
    pub(crate) find: Arc<dyn Fn(u64) -> Route + Send + Sync>,
    /// The number of the next connection, of whatever shard.
    pub(crate) next: Arc<AtomicU64>,
    /// After so many in a row that couldn't be had for their ports, each has been tried.
    pub(crate) count: u64,
    /// How often they are all tried again, and how long after.
    pub(crate) retries: (u32, Duration),
}

/// Where the client's connections go, and from where.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) server: SocketAddr,
    /// Each connection says first that it is of the test with this token; absent: nothing.
    pub(crate) token: Option<[u8; 16]>,
    pub(crate) device: Option<String>,
    /// Source addresses, taken in turn; none: the kernel's choice.
    pub(crate) binds: Vec<SocketAddr>,
    pub(crate) source_ports: Option<SourcePorts>,
    /// In the place of the server, its source addresses and its ports.
    pub(crate) routes: Option<Routes>,
    pub(crate) open: OpenSocket,
    pub(crate) buffers: Buffers,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) agreement: Agreement,
    pub(crate) rules: Rules,
    /// Takes note of what happens to connections, if a caller asks for it.
    pub(crate) tell: Option<TellConnections>,
}

impl Dial {
    /// Plain connections that say nothing of themselves, from wherever the kernel chooses.
    pub(crate) fn new(server: SocketAddr, open: OpenSocket) -> Self {
        Self {
            server,
            token: None,
            device: None,
            binds: Vec::new(),
            source_ports: None,
            routes: None,
            open,
            buffers: Buffers::default(),
            tls: None,
            agreement: Agreement::new(Handshake::Full, 1),
            rules: Rules::default(),
            tell: None,
        }
    }
}

/// How many connections a server accepts.
#[derive(Clone, Default)]
pub(crate) struct AcceptLimits {
    /// How many all loops may still accept; absent: any number. A loop ends when the last of its own has.
    pub(crate) left: Option<Arc<AtomicU64>>,
    /// Where each loop accepts in a file table of its own: how many of these tables are full.
    pub(crate) full_tables: Option<Arc<AtomicU32>>,
    /// Connections that others accept and one loop may hold; absent: as many as it has descriptors for.
    pub(crate) most_handed_over: Option<usize>,
}

/// Where the server's connections come from.
#[derive(Clone)]
pub(crate) struct Accept {
    /// Absent: others accept them and hand them over.
    pub(crate) listener: Option<Arc<Socket>>,
    /// Others, which a loop accepts from too. It then sleeps in no call for one of them.
    pub(crate) more_listeners: Vec<Arc<Socket>>,
    pub(crate) limits: AcceptLimits,
    /// How many loops accept from it.
    pub(crate) loops: Arc<AtomicU32>,
    pub(crate) options: SocketOptions,
    pub(crate) buffers: Buffers,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// Connections accepted before others have their turn. Where one comes at a time, asking for
    /// the next would be a call for nothing.
    pub(crate) at_once: u32,
    /// Whether the loop chooses how often a connection wakes it.
    pub(crate) chooses_wake_ups: bool,
    /// Whether a connection may take its time as long as something moves on it.
    pub(crate) times_silence: bool,
    pub(crate) tells: Tells,
    /// What tells the connections of this load from others; absent: all that come are its own.
    pub(crate) shared: Option<SharedPort>,
}

impl Accept {
    /// Of a listener that has plain connections of this load alone, one at a time.
    pub(crate) fn new(listener: Arc<Socket>) -> Self {
        Self {
            listener: Some(listener),
            more_listeners: Vec::new(),
            limits: AcceptLimits::default(),
            loops: Arc::default(),
            options: SocketOptions::default(),
            buffers: Buffers::default(),
            tls: None,
            at_once: 1,
            chooses_wake_ups: true,
            times_silence: false,
            tells: Tells::default(),
            shared: None,
        }
    }
}

impl Accept {
    /// The same for a shard with a file table of its own, which holds no descriptor of another table. The shard has
    /// listeners of its own, or others hand it so many of the connections that they accept.
    pub(crate) fn without_listener(&self, most_handed_over: usize) -> Self {
        Self {
            listener: None,
            more_listeners: Vec::new(),
            shared: None,
            loops: Arc::default(),
            limits: AcceptLimits {
                most_handed_over: Some(most_handed_over),
                ..self.limits.clone()
            },
            ..self.clone()
        }
    }
}

/// What callers are told of a server's connections, if they ask for it.
#[derive(Clone, Default)]
pub(crate) struct Tells {
    /// Where the first one came from.
    pub(crate) first_peer: Option<Arc<OnceLock<SocketAddr>>>,
    /// What happens to each.
    pub(crate) each: Option<TellConnections>,
}

/// A port to which connections of several loads come, and others.
#[derive(Clone)]
pub(crate) struct SharedPort {
    /// Which of them are this load's.
    pub(crate) token: [u8; 16],
    /// Connections that the load's shards hold, all together.
    pub(crate) incoming: Arc<AtomicUsize>,
    /// Those of them that wait and haven't said whose they are.
    pub(crate) pending: Arc<AtomicUsize>,
    /// The most connections. Beyond them a connection without its opening goes to the server's first thread, which
    /// makes room.
    pub(crate) most_incoming: usize,
    /// Takes the connections that aren't this load's, and the waker that wakes it.
    pub(crate) first_thread: Sender<Socket>,
    pub(crate) first_thread_waker: Arc<Waker>,
}

/// How long a socket that blocks waits.
const LONGEST_BLOCK: Duration = Duration::from_nanos(LONGEST_WAIT_NS);
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
    Both,
    /// A time, or a turn.
    Nothing,
}

/// A level-triggered poll set.
struct Poll {
    set: OwnedFd,
    events: Vec<Event>,
    /// Whether the waker was among the events of the last wait.
    is_woken: bool,
}

impl Poll {
    /// `None` where the machine has no descriptor for it.
    fn new(waker: &Inlet) -> Option<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC).ok()?;
        epoll::add(&set, waker.as_fd(), EventData::new_u64(WAKER), EventFlags::IN).ok()?;
        Some(Self { set, events: Vec::with_capacity(EVENTS), is_woken: false })
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
            Interest::Both => EventFlags::IN | EventFlags::OUT,
            Interest::Nothing => EventFlags::empty(),
        };
        let data = EventData::new_u64(index as u64);
        match before {
            Some(before) if before == now => true,
            None if now == Interest::Nothing => true,
            // Even of one that is watched for nothing the kernel would tell that it was closed, again and again.
            Some(_) if now == Interest::Nothing => epoll::delete(&self.set, socket).is_ok(),
            Some(Interest::Nothing) | None => epoll::add(&self.set, socket, data, flags).is_ok(),
            Some(_) => epoll::modify(&self.set, socket, data, flags).is_ok(),
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
        self.is_woken = false;
        for event in self.events.drain(..) {
            match event.data.u64() {
                WAKER => {
                    self.is_woken = true;
                    waker.silence();
                }
                index => into.push(usize::try_from(index).unwrap_or(usize::MAX)),
            }
        }
    }
}
