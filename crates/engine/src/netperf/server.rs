//! A netserver: its listeners, and a thread for each client.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use socket2::Socket;

use super::control::channel;
use super::crowd::Crowd;
use super::listening::{Listening, listen, listen_everywhere};
use super::session::{Farewell, House, Session};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::event::{Cancel, Event, Sink};
use crate::poll::readable_until;
use crate::probe::raise_open_files_limit;
use crate::socket::{HandedSockets, accept_stream, is_short_of_descriptors, plain};

/// Clients at once; whoever comes beyond is turned away.
const MOST_CLIENTS: usize = 4096;
/// Clients without a test; when there are more, those that most resemble each other make room.
const MOST_IDLE: usize = 1024;
/// While so many clients are on their way out, others wait to be let in.
const MOST_LEAVING: usize = 256;
/// Descriptors of a client: its control connection, two wakers, a listener, its data, and one more.
const DESCRIPTORS_OF_CLIENT: u64 = 6;
/// A session needs little room: its test has threads of its own.
const STACK_BYTES: usize = 256 << 10;
/// A client of whose machine nothing is heard for so long is gone, when no test is under way.
const SILENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the server is to stop.
const LOOK_NS: u64 = 100 * MILLISECOND_NS;
/// When descriptors have run out, the next try comes so much later.
const BREATHER: Duration = Duration::from_millis(50);
/// Whoever was told to go is gone in such a time.
const MOMENT: Duration = Duration::from_millis(2);
/// When the server stops, its sessions are waited for so long.
const PARTING: Duration = Duration::from_secs(3);

/// How a netserver serves.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Where it listens. An IPv6 address takes IPv6 alone. Addresses that this machine doesn't
    /// have, or whose family the kernel doesn't, are left out where there are others, and told when
    /// the server serves. Port 0 is any that is free, the same at all addresses that have it.
    pub listen: Vec<SocketAddr>,
    /// Sockets to serve on, in the place of own ones.
    pub handed: HandedSockets,
    /// What clients must say before anything else.
    pub passphrase: Option<String>,
    /// Processors that tests run on, in turn; empty: wherever the kernel likes.
    pub cpus: Vec<u32>,
    /// Whether a test's datagrams may go to, and come from, other addresses than the one that the
    /// client's control connection comes from.
    pub other_addresses: bool,
    /// Clients are served one after the other (`-f`).
    pub serial: bool,
    /// The number of processors that clients are told; absent: how many there are (`-n`).
    pub cpu_count: Option<u32>,
    /// Whether requests are answered (TCP_RR, UDP_RR) without ever sleeping. That takes a whole
    /// processor for each test, so that of tests at once no more do so than leave one of this process's
    /// processors to others, and one in any case.
    pub busy_poll: bool,
}

/// A netserver that listens.
pub struct Server {
    listeners: Vec<Socket>,
    /// Why it doesn't listen elsewhere.
    lacking: Vec<Error>,
    house: Arc<House>,
}

impl Server {
    /// Listens everywhere it was asked to and this machine has the address.
    ///
    /// # Errors
    ///
    /// When it can't listen at one of the addresses, or there is none.
    pub fn bind(options: &ServerOptions) -> Result<Self, Error> {
        if !options.handed.is_empty() {
            let (listeners, house) = (options.handed.listeners()?, Arc::new(House::of(options)));
            return Ok(Self { listeners, lacking: Vec::new(), house });
        }
        if options.listen.is_empty() {
            return Err(Error::Plan("a netserver needs an address to listen on".to_owned()));
        }
        let Listening { listeners, lacking } = listen_everywhere(&options.listen, listen)?;
        Ok(Self { listeners, lacking, house: Arc::new(House::of(options)) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|l| l.local_addr().ok()?.as_socket()).collect()
    }

    /// Serves clients, each in a thread of its own unless they are to come one after the other,
    /// until somebody asks to stop.
    ///
    /// # Errors
    ///
    /// None that a client can cause.
    pub fn serve(&self, sink: &Sink, cancel: &Cancel) -> Result<(), Error> {
        for error in &self.lacking {
            sink.offer(Event::Note(format!("{error}: doing without that address")));
        }
        let room = raise_open_files_limit() / DESCRIPTORS_OF_CLIENT;
        let most = usize::try_from(room).unwrap_or(MOST_CLIENTS).clamp(1, MOST_CLIENTS);
        let clients = Arc::new(AtomicUsize::new(0));
        let crowd = Arc::new(Crowd::default());
        let stopping = Arc::new(AtomicBool::new(false));
        while !cancel.requested() {
            if crowd.leaving() >= MOST_LEAVING {
                std::thread::sleep(MOMENT);
                continue;
            }
            readable_until(self.listeners.iter().map(AsFd::as_fd), monotonic_ns() + LOOK_NS);
            for listener in &self.listeners {
                match accept_stream(listener, false) {
                    Ok(socket) if self.house.serial => self.serve_alone(socket, sink, cancel),
                    Ok(socket) => {
                        admit(socket, &self.house, (&clients, most, &crowd), &stopping, sink);
                    }
                    Err(error) if is_passing(&error) => {}
                    Err(error) if is_short_of_descriptors(&error) && crowd.push_out_one() => {
                        std::thread::sleep(MOMENT);
                    }
                    Err(error) => {
                        sink.offer(Event::Note(format!("can't accept a client: {error}")));
                        std::thread::sleep(BREATHER);
                    }
                }
            }
        }
        stopping.store(true, Ordering::Relaxed);
        let step = Duration::from_millis(20);
        for _ in 0..PARTING.as_millis() / step.as_millis() {
            if clients.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::sleep(step);
        }
        Ok(())
    }

    /// Serves a client while all others wait.
    fn serve_alone(&self, socket: Socket, sink: &Sink, cancel: &Cancel) {
        match session(socket, &self.house) {
            Ok((session, client)) => {
                sink.offer(told_of(client, session.run(&cancel.flag(), None)));
            }
            Err(error) => sink.offer(Event::Note(error.to_string())),
        }
    }

    /// Serves one client, whose connection somebody else has accepted (inetd), to its end.
    ///
    /// # Errors
    ///
    /// When it is no connection, or this machine has no room for it.
    pub fn serve_connection(
        socket: Socket,
        options: &ServerOptions,
        sink: &Sink,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let (session, client) = session(socket, &Arc::new(House::of(options)))?;
        sink.offer(told_of(client, session.run(&cancel.flag(), None)));
        Ok(())
    }
}

/// Takes a client in, or turns it away.
fn admit(
    socket: Socket,
    house: &Arc<House>,
    (clients, most, crowd): (&Arc<AtomicUsize>, usize, &Arc<Crowd>),
    stopping: &Arc<AtomicBool>,
    sink: &Sink,
) {
    let full = clients.load(Ordering::Relaxed) >= most;
    let crowded = full || crowd.idle() >= MOST_IDLE.min(most);
    if !(crowded && crowd.push_out_one()) && full {
        if let Some(client) = socket.peer_addr().ok().and_then(|peer| peer.as_socket()) {
            let why = format!("{most} clients are here already, and there is no room for more");
            sink.offer(Event::Refused { client: plain(client), why });
        }
        return;
    }
    let (session, client) = match session(socket, house) {
        Ok(session) => session,
        Err(error) => return sink.offer(Event::Note(error.to_string())),
    };
    clients.fetch_add(1, Ordering::Relaxed);
    let seat = crowd.admit(client, session.waker());
    let (counted, stopping, told) = (Arc::clone(clients), Arc::clone(stopping), sink.clone());
    let thread = std::thread::Builder::new().name("session".into()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let farewell = session.run(&stopping, Some(seat));
        counted.fetch_sub(1, Ordering::Relaxed);
        told.offer(told_of(client, farewell));
    });
    if let Err(error) = started {
        clients.fetch_sub(1, Ordering::Relaxed);
        sink.offer(Event::Note(format!("a client is not served: {}", Error::no_thread(&error))));
    }
}

fn told_of(client: SocketAddr, farewell: Farewell) -> Event {
    match farewell {
        Farewell::Ended(tests) => Event::Note(format!("{client}: left, tests: {tests}")),
        Farewell::Failed(why) => Event::Refused { client, why },
    }
}

fn session(socket: Socket, house: &Arc<House>) -> Result<(Session, SocketAddr), Error> {
    let failed = |source| Error::Io {
        operation: "serve",
        address: "a client's connection".to_owned(),
        source,
    };
    let address = |of: io::Result<socket2::SockAddr>| {
        of.ok().and_then(|address| address.as_socket()).map(plain)
    };
    let ends = (address(socket.local_addr()), address(socket.peer_addr()));
    let (Some(local), Some(client)) = ends else {
        return Err(failed(io::ErrorKind::NotConnected.into()));
    };
    let channel = channel(socket, SILENCE).map_err(failed)?;
    let session = Session::new(channel, (local, client), Arc::clone(house))?;
    Ok((session, client))
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}
