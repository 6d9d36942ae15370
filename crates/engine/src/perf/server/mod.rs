//! The server: it answers any client, over every transport that it has.

mod clients;
mod delays;
mod observed;
mod remote_stop;
mod worker;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_measure::Transport;
use socket2::Socket;

use super::quic;
use super::trust;
use super::{Ending, Placement, QuicOptions};
use crate::clock::monotonic_ns;
use crate::error::Error;
use crate::event::Observe;
use crate::probe::raise_open_files_limit;
use crate::socket::{HandedSockets, enlarge_datagram_buffers, listen, or_over_v4};
use crate::transport::framed::FramedEndpoint;
use crate::transport::quic::{Stock, share_packets_of};
use clients::{ClientCounts, Clients};
pub use delays::Delay;
use observed::ObservedTests;
pub use observed::{Asked, TestReport};
#[cfg(test)]
pub(super) use remote_stop::REQUEST as STOP_REQUEST;
use worker::Worker;

/// What a server does.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// Where it listens; an unspecified address is both families.
    pub address: SocketAddr,
    /// Sockets to serve on, in the place of own ones. Over QUIC each has a thread then.
    pub handed: HandedSockets,
    /// How many threads, for each carriage.
    pub threads: u32,
    /// How the threads run.
    pub placement: Placement,
    /// What QUIC connections are told.
    pub quic: QuicOptions,
    /// The cipher suites that it takes, as a sum of 1 (AES-128), 2 (AES-256) and 4 (ChaCha20); 0: all.
    pub suites: u8,
    /// What it waits before each answer.
    pub delay: Option<Delay>,
    /// Whether the end of each connection is told.
    pub tells_connections: bool,
    /// What makes an observer for each test, where tests are observed.
    pub observe: Option<Arc<dyn Observe<Asked, TestReport>>>,
    /// Where a datagram may ask it to stop. Any program that can send there can stop the server.
    pub stop_address: Option<SocketAddr>,
}

/// Something that a server tells.
#[derive(Debug)]
pub enum ServerEvent {
    /// A connection has ended.
    ConnectionEnded(Box<Ending>),
    /// It was asked to stop.
    StopAsked,
    /// What this machine refuses to its threads, which run all the same.
    Refused(String),
    /// A thread can't go on.
    Broken(String),
}

/// Events of a server's threads.
#[derive(Debug)]
enum Message {
    Event(ServerEvent),
    /// An address has its first connection on a thread.
    Client(Arc<ClientCounts>),
}

/// Ports that are tried where any will do.
const PORTS_TRIED: u32 = 8;

/// A server at work. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    serves_tcp: bool,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    messages: Receiver<Message>,
    tests: Option<ObservedTests>,
}

impl Server {
    /// Starts one, without TCP where another program has its port.
    ///
    /// # Errors
    ///
    /// When it can't listen there, or this machine refuses keys or threads.
    pub fn start(plan: &ServerPlan) -> Result<Self, Error> {
        let takes_any = plan.address.port() == 0;
        let mut started = Self::start_at(plan);
        for _ in 1..PORTS_TRIED {
            match &started {
                // The port that the kernel gave for TCP may be another program's for UDP.
                Err(Error::Io { source, .. })
                    if takes_any && source.kind() == io::ErrorKind::AddrInUse =>
                {
                    started = Self::start_at(plan);
                }
                _ => break,
            }
        }
        started
    }

    fn start_at(plan: &ServerPlan) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Io {
            operation: "listen on",
            address: plan.address.to_string(),
            source,
        };
        raise_open_files_limit();
        let handed = plan.handed.port()?;
        let address = handed.as_ref().map_or(plan.address, |port| port.address);
        let (handed, datagrams) = handed.map(|port| (port.listener, port.datagrams)).unzip();
        let listener =
            match handed.map_or_else(|| or_over_v4(address, |address| listen(address, None)), Ok) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    // Servers of one user could share the port of UDP, each with a part of the clients.
                    match UdpSocket::bind(plan.address) {
                        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                            return Err(failed(error));
                        }
                        _ => None,
                    }
                }
                listener => Some(Arc::new(listener.map_err(failed)?)),
            };
        let address =
            listener.as_ref().and_then(|listener| listener.local_addr().ok()?.as_socket());
        let address = address.unwrap_or(plan.address);
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, messages) = channel();
        let serves_tcp = listener.is_some();
        let tests = plan.observe.clone().map(|observe| ObservedTests::new(observe, address));
        let mut server = Self { address, serves_tcp, stop, threads: Vec::new(), messages, tests };
        if let Some(stop_address) = plan.stop_address {
            let socket = remote_stop::bind(stop_address).map_err(|source| Error::Io {
                operation: "await the request to stop on",
                address: stop_address.to_string(),
                source,
            })?;
            let (sender, stop) = (sender.clone(), Arc::clone(&server.stop));
            server.spawn("perf stop", move || remote_stop::run(&socket, &stop, &sender))?;
        }
        let config = trust::server_config(plan.suites)?;
        server.start_quic(plan, datagrams.unwrap_or_default(), &config, &sender)?;
        let numbers = listener.iter().flat_map(|listener| {
            (0..plan.threads.max(1)).map(move |number| (number, Arc::clone(listener)))
        });
        for (number, listener) in numbers {
            let plan = plan.clone();
            let config = Arc::clone(&config);
            let context = server.context(number, &sender, Transport::Tls);
            server.spawn("perf tcp", move || {
                let sender = context.sender.clone();
                let ended = FramedEndpoint::server(config, listener, plan.placement.busy)
                    .and_then(|endpoint| Worker::new(&plan, context, endpoint).run());
                report(&sender, ended);
            })?;
        }
        Ok(server)
    }

    /// Whether it serves TCP, too.
    pub fn serves_tcp(&self) -> bool {
        self.serves_tcp
    }

    /// The threads of QUIC, each with a socket of its own on the same port.
    fn start_quic(
        &mut self,
        plan: &ServerPlan,
        handed: Vec<Socket>,
        config: &Arc<rustls::ServerConfig>,
        sender: &Sender<Message>,
    ) -> Result<(), Error> {
        let sockets: Vec<Socket> = if handed.is_empty() {
            let each = (0..plan.threads.max(1)).map(|_| quic::bind_server(self.address));
            each.collect::<Result<_, _>>()?
        } else {
            for socket in &handed {
                // A socket with smaller buffers serves too, and drops more.
                let _as_large_as_it_goes = enlarge_datagram_buffers(socket);
            }
            handed
        };
        if let Some(first) = sockets.first() {
            share_packets_of(first, plan.quic.ids);
        }
        let stock = Stock::of_machine();
        for (number, socket) in (0..).zip(sockets) {
            let plan = plan.clone();
            let stock = stock.clone();
            let config = Arc::clone(config);
            let context = self.context(number, sender, Transport::Quic);
            self.spawn("perf quic", move || {
                let sender = context.sender.clone();
                let ended = quic::server(config, socket, &plan, number, stock)
                    .and_then(|endpoint| Worker::new(&plan, context, endpoint).run());
                report(&sender, ended);
            })?;
        }
        Ok(())
    }

    fn context(
        &self,
        number: u32,
        sender: &Sender<Message>,
        transport: Transport,
    ) -> ThreadContext {
        let clients =
            self.tests.as_ref().map(|_| Clients::new((transport, number), sender.clone()));
        let (stop, sender) = (Arc::clone(&self.stop), sender.clone());
        ThreadContext { number, stop, sender, clients }
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = spawned.map_err(|error| Error::no_thread(&error))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it tells next, within this time; `None`: nothing. Meanwhile the tests are observed.
    pub fn next_event(&mut self, at_most: Duration) -> Option<ServerEvent> {
        let at_most_ns = u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX);
        let limit_ns = monotonic_ns().saturating_add(at_most_ns);
        loop {
            let now_ns = monotonic_ns();
            let mut left_ns = limit_ns.saturating_sub(now_ns);
            if let Some(tests) = &mut self.tests {
                // Each look is at all tests, so that events that follow each other closely don't have one each.
                if tests.left_ns(now_ns) == 0 {
                    tests.tick(now_ns);
                }
                left_ns = left_ns.min(tests.left_ns(now_ns));
            }
            match self.messages.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(Message::Event(event)) => return Some(event),
                Ok(Message::Client(counts)) => self.add_client(counts),
                Err(RecvTimeoutError::Timeout) if now_ns < limit_ns => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(ServerEvent::Broken("its threads have ended".to_owned()));
                }
            }
        }
    }

    fn add_client(&mut self, counts: Arc<ClientCounts>) {
        self.tests.iter_mut().for_each(|tests| tests.add(Arc::clone(&counts)));
    }

    /// Ends it, and the tests that are under way; what it had still to tell.
    pub fn end(mut self) -> Vec<ServerEvent> {
        self.end_threads();
        let mut events = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Event(event) => events.push(event),
                Message::Client(counts) => self.add_client(counts),
            }
        }
        self.tests.iter_mut().for_each(|tests| tests.end(monotonic_ns()));
        events
    }

    fn end_threads(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that broke off has nothing more to end.
            let _ended = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_threads();
    }
}

/// What one thread knows of the others.
struct ThreadContext {
    number: u32,
    stop: Arc<AtomicBool>,
    sender: Sender<Message>,
    /// Its clients, where tests are observed.
    clients: Option<Clients>,
}

impl ThreadContext {
    fn tell(&self, event: ServerEvent) {
        tell(&self.sender, event);
    }
}

fn tell(sender: &Sender<Message>, event: ServerEvent) {
    // Fails only when the server is ending.
    let _unheard = sender.send(Message::Event(event));
}

fn report(sender: &Sender<Message>, ended: io::Result<()>) {
    if let Err(error) = ended {
        tell(sender, ServerEvent::Broken(error.to_string()));
    }
}
