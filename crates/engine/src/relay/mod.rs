//! A performance-enhancing proxy: it ends each client's connection and carries it on over another one, to
//! the target. [`linerate_wire::relay`] has the rules of a pair of connections.
//!
//! [`Proxy::start`] starts a thread for each processor. The threads share the port (SO_REUSEPORT), and a
//! thread owns both connections of each of its pairs.

mod admission;
mod counts;
mod options;
mod quic;
mod tcp;
mod tickets;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_measure::plan::LocalAddress;

use crate::access::{Authority, Identity};
use crate::control::{CacheWriter, fingerprint};
use crate::error::Error;
use crate::probe::raise_open_files_limit;
use crate::socket::plain;
use crate::transport::quic::Stock;
use admission::Admission;
pub use admission::Limit;
use counts::Counts;
pub use counts::{EndTotals, Totals};
pub use linerate_wire::relay::{Close, CloseKind, End, Ended};
use options::Sessions;
pub use options::SideOptions;
use tickets::TargetTickets;

pub use crate::transport::quic::Congestion;

/// Events that may wait for a reader; more are dropped, and counted.
const EVENTS_WAITING_MAX: usize = 1_024;

/// What a proxy does.
#[derive(Clone)]
pub struct ProxyPlan {
    /// The address it listens on; absent: all, of both families.
    pub bind: Option<LocalAddress>,
    /// The port it listens on; 0: any free one.
    pub port: u16,
    /// Where its connections go.
    pub target: SocketAddr,
    /// How many threads.
    pub threads: u32,
    /// What it may hold.
    pub limits: ProxyLimits,
    /// How long the handshake with the target may take.
    pub connect_timeout: Duration,
    /// What it carries.
    pub carries: Carries,
}

/// What a proxy carries.
#[derive(Clone)]
pub enum Carries {
    /// QUIC connections, stream by stream.
    Quic(Box<QuicSides>),
    /// TCP connections, byte by byte: what is encrypted inside stays so.
    Tcp,
}

/// The two QUIC connections of each client.
#[derive(Clone)]
pub struct QuicSides {
    /// The target's name, which TLS asks for.
    pub target_name: String,
    /// Whether a client's handshake goes on only when the connection to the target stands.
    pub waits_for_target: bool,
    /// The application protocol (ALPN) of both connections; absent: the target is offered what the client offers.
    pub alpn: Option<String>,
    /// Whether a target that gave a ticket before is sent what its client has sent before the handshake is done.
    pub early_data: bool,
    /// The proxy's own certificate and key.
    pub identity: Identity,
    /// Who vouches for the target's certificate; absent: any certificate will do.
    pub authority: Option<Authority>,
    /// How the QUIC connections of each side send.
    pub sending: Sending,
    /// What else they have.
    pub options: SideOptions,
    /// Where each connection's begin and end are told, and what it sends: the length of an interval, ns.
    pub interval_ns: Option<u64>,
}

/// What a proxy may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Bytes that wait in the proxy, for each pair of connections and each direction.
    pub buffer_bytes: u32,
    /// Bytes that a peer may send before they are read: of a stream, and of a connection.
    pub window_bytes: u32,
    /// Streams of each class that a peer may have open.
    pub streams: u32,
    /// Pairs of connections.
    pub connections: u32,
    /// Those of them whose client has one address (or network /64 of IPv6).
    pub connections_per_origin: u32,
}

/// How QUIC connections send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// The congestion control.
    pub congestion: Congestion,
    /// Packets of the first congestion window; absent: 10 (RFC 9002, section 7.2).
    pub first_window_packets: Option<u32>,
}

/// Something that a proxy tells.
#[derive(Clone, Debug)]
pub enum ProxyEvent {
    /// A client was refused, because of this limit.
    Refused(SocketAddr, Limit),
    /// The connection to the target failed or broke off, of this client; why.
    TargetFailed(SocketAddr, String),
    /// What happens to a pair, where that is told.
    Pair(u64, PairEvent),
}

/// Something that happens to a pair of connections.
#[derive(Clone, Debug)]
pub enum PairEvent {
    /// A client at this address begins.
    Begun(SocketAddr),
    /// The connection of this end stands, so long after it began, ns.
    Established(End, u64),
    /// A stream was opened.
    StreamOpened(u64),
    /// An interval of a connection is over.
    Sent(End, Box<SentInterval>),
    /// A connection has ended.
    Ended(End, Ended),
    /// Both connections are gone: what was sent over the client's and the target's, where they stood.
    Forgotten([Option<SentTotals>; 2]),
}

/// What was sent to one end in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentTotals {
    /// Bytes of streams that were given to the connection.
    pub bytes: u64,
    /// Packets that it sent.
    pub packets: u64,
    /// Packets that it took for lost.
    pub lost_packets: u64,
}

/// What was sent to one end in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentInterval {
    /// The interval's number, from 0.
    pub index: u32,
    /// How long it was.
    pub measured_ns: u64,
    /// Bytes of streams that were given to the connection.
    pub bytes: u64,
    /// Packets that it sent.
    pub packets: u64,
    /// Packets that it took for lost.
    pub lost_packets: u64,
    /// The congestion window at the end, bytes.
    pub window_bytes: u64,
}

/// What a proxy leaves when it ends.
#[derive(Clone, Debug)]
pub struct ProxyOutcome {
    /// What it has done.
    pub totals: Totals,
    /// What it had still to tell.
    pub events: Vec<ProxyEvent>,
    /// Why files of sessions are not up to date: faults that [`Proxy::save_sessions`] has not told.
    pub faults: Vec<String>,
}

/// A proxy at work. It ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    fingerprint: Option<String>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    counts: Vec<Arc<Counts>>,
    events: Receiver<ProxyEvent>,
    sessions: Sessions,
    /// Writes clients' sessions down.
    cache: Option<CacheWriter>,
    fault: Arc<Mutex<Option<String>>>,
}

/// What one thread shares with the others, and its own counts.
#[derive(Clone)]
struct Shared {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    admission: Arc<Admission>,
    /// Memory for the windows of all connections beyond what each begins with.
    stock: Stock,
    /// Tickets of the target.
    tickets: TargetTickets,
    events: SyncSender<ProxyEvent>,
}

impl Shared {
    /// Tells something. If too much waits to be read, it is only counted.
    fn tell(&self, event: ProxyEvent) {
        if self.events.try_send(event).is_err() {
            self.counts.untold.add(1);
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Proxy {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When it can't listen there, or this machine refuses keys or threads.
    pub fn start(plan: &ProxyPlan) -> Result<Self, Error> {
        raise_open_files_limit();
        let (events, told) = sync_channel(EVENTS_WAITING_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let limits = plan.limits;
        let stock = Stock::of_machine();
        let admission = Admission::new(limits.connections, limits.connections_per_origin);
        let shared = Shared {
            counts: Arc::default(),
            stop: Arc::clone(&stop),
            admission: Arc::new(admission),
            stock,
            tickets: TargetTickets::default(),
            events,
        };
        let mut proxy = Self {
            address: plan.target,
            fingerprint: None,
            stop,
            threads: Vec::new(),
            counts: Vec::new(),
            events: told,
            sessions: Sessions::default(),
            cache: None,
            fault: Arc::default(),
        };
        match &plan.carries {
            Carries::Quic(sides) => proxy.start_quic(plan, sides, &shared)?,
            Carries::Tcp => proxy.start_tcp(plan, &shared)?,
        }
        Ok(proxy)
    }

    fn start_quic(
        &mut self,
        plan: &ProxyPlan,
        sides: &QuicSides,
        shared: &Shared,
    ) -> Result<(), Error> {
        let sockets = quic::bind(plan, &sides.options)?;
        self.sessions = Sessions::open(&sides.options)?;
        self.cache = self.sessions.clients.as_ref().map(CacheWriter::start).transpose()?;
        let address = sockets.first().and_then(|socket| socket.local_addr().ok()?.as_socket());
        let address =
            address.ok_or_else(|| Error::Host("a UDP socket has no address".to_owned()))?;
        self.address = plain(address);
        self.fingerprint = Some(fingerprint(&sides.identity.certificate_der));
        for (number, socket) in (0..).zip(sockets) {
            let (plan, sides) = (plan.clone(), sides.clone());
            let clients = self.sessions.clients.clone();
            let target = self.sessions.target.clone().filter(|_| number == 0);
            let sessions = Sessions { clients, target };
            self.spawn(shared, move |shared| {
                quic::Worker::new(plan, (sides, sessions), number, socket, shared)
                    .and_then(|worker| worker.run().map_err(broken))
            })?;
        }
        Ok(())
    }

    fn start_tcp(&mut self, plan: &ProxyPlan, shared: &Shared) -> Result<(), Error> {
        let (listener, address) = tcp::bind(plan)?;
        self.address = plain(address);
        for _ in 0..plan.threads.max(1) {
            let (plan, listener) = (plan.clone(), Arc::clone(&listener));
            self.spawn(shared, move |shared| {
                tcp::Worker::new(&plan, listener, shared).and_then(tcp::Worker::run).map_err(broken)
            })?;
        }
        Ok(())
    }

    fn spawn(
        &mut self,
        shared: &Shared,
        work: impl FnOnce(Shared) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let shared = Shared { counts: Arc::default(), ..shared.clone() };
        self.counts.push(Arc::clone(&shared.counts));
        let fault = Arc::clone(&self.fault);
        let worker = move || {
            // A reader of events doesn't miss the fault: the channel is open until it is known.
            let _open = shared.events.clone();
            if let Err(error) = work(shared) {
                let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(error.to_string());
            }
        };
        let spawned = thread::Builder::new().name("proxy".to_owned()).spawn(worker);
        self.threads.push(spawned.map_err(|error| Error::no_thread(&error))?);
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of its certificate, in hexadecimal; `None`: it has none.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// What it tells next; `None`: nothing for so long, or no thread goes on, which [`Proxy::fault`] says.
    pub fn next_event(&self, wait: Duration) -> Option<ProxyEvent> {
        self.events.recv_timeout(wait).ok()
    }

    /// Writes the session with the target, if it is new; why a file of sessions is not up to date, once.
    pub fn save_sessions(&self) -> Option<String> {
        self.sessions.save().or_else(|| self.cache.as_ref()?.take_fault())
    }

    /// Why a thread can't go on; `None`: all do.
    pub fn fault(&self) -> Option<String> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let has_ended = self.threads.iter().any(JoinHandle::is_finished);
        fault.or_else(|| has_ended.then(|| "a thread of the proxy failed".to_owned()))
    }

    /// What it has done so far.
    pub fn totals(&self) -> Totals {
        self.counts.iter().fold(Totals::default(), |sum, counts| sum.with(counts))
    }

    /// Closes all connections, ends, and writes the files of sessions for the last time.
    pub fn end(mut self) -> ProxyOutcome {
        self.end_threads();
        // The threads change sessions until they end.
        let target = self.sessions.save();
        let clients = self.cache.take().and_then(CacheWriter::finish);
        ProxyOutcome {
            totals: self.totals(),
            events: self.events.try_iter().collect(),
            faults: target.into_iter().chain(clients).collect(),
        }
    }

    fn end_threads(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that broke off has nothing more to end.
            let _ended = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn broken(error: io::Error) -> Error {
    Error::Host(format!("a thread of the proxy can't go on: {error}"))
}

#[cfg(test)]
mod tests;
