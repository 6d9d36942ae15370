//! A netserver: its listeners, and a thread for each client.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_measure::EndReport;
use socket2::Socket;

use super::control::channel;
use super::listening::{Listening, listen, listen_everywhere};
use super::observer::Asked;
use super::session::{ServedClient, ServerContext, SessionEnd};
use crate::acceptor::{Accepted, SlotLimits, Slots, accept};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::event::{Cancel, Event, Observe, Sink};
use crate::poll::readable_until;
use crate::probe::raise_open_files_limit;
use crate::socket::{HandedSockets, plain};
use crate::waker::Waker;

/// Clients at once; further ones are turned away.
const MOST_CLIENTS: usize = 4096;
/// Clients without a test; when there are more, those that most resemble each other make room.
const MOST_IDLE: usize = 1024;
/// While so many clients are on their way out, others wait to be let in.
const MOST_LEAVING: usize = 256;
/// Descriptors of a client: its control connection, two wakers, a listener, its data, and one more.
const DESCRIPTORS_OF_CLIENT: u64 = 6;
/// A session needs little room: its test has threads of its own.
const STACK_BYTES: usize = 256 << 10;
/// Without a test, a client whose machine sends nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the server is to stop.
const LOOK_NS: u64 = 100 * MILLISECOND_NS;
/// The pause before the next accept when descriptors have run out.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(50);
/// The pause in which a client that was told to end does so.
const ENDING_PAUSE: Duration = Duration::from_millis(2);
/// When the server stops, its sessions are waited for so long.
const STOPPING_NS: u64 = 3 * SECOND_NS;

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
    /// The number of processors reported to clients; absent: how many there are (`-n`).
    pub cpu_count: Option<u32>,
    /// Whether requests are answered (TCP_RR, UDP_RR) without ever sleeping. That takes a whole
    /// processor for each test, so that of tests at once no more do so than leave one of this process's
    /// processors to others, and one in any case.
    pub busy_poll: bool,
    /// Receives what happens in tests, where their results are kept.
    pub observe: Option<Arc<dyn Observe<Asked, EndReport>>>,
}

/// A netserver that listens.
pub struct Server {
    listeners: Vec<Socket>,
    /// Why it doesn't listen elsewhere.
    lacking: Vec<Error>,
    context: Arc<ServerContext>,
}

impl Server {
    /// Listens everywhere it was asked to and this machine has the address.
    ///
    /// # Errors
    ///
    /// When it can't listen at one of the addresses, or there is none.
    pub fn bind(options: &ServerOptions) -> Result<Self, Error> {
        if !options.handed.is_empty() {
            let (listeners, context) =
                (options.handed.listeners()?, Arc::new(ServerContext::of(options)));
            return Ok(Self { listeners, lacking: Vec::new(), context });
        }
        if options.listen.is_empty() {
            return Err(Error::Plan("a netserver needs an address to listen on".to_owned()));
        }
        let Listening { listeners, lacking } = listen_everywhere(&options.listen, listen)?;
        Ok(Self { listeners, lacking, context: Arc::new(ServerContext::of(options)) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|l| l.local_addr().ok()?.as_socket()).collect()
    }

    /// Serves clients, each in a thread of its own unless they are to come one after the other,
    /// until it is asked to stop.
    ///
    /// # Errors
    ///
    /// None that a client can cause.
    pub fn serve(&self, sink: &Sink, cancel: &Cancel) -> Result<(), Error> {
        for error in &self.lacking {
            sink.offer(Event::Note(format!("{error}: netserver doesn't listen on that address")));
        }
        let room = raise_open_files_limit() / DESCRIPTORS_OF_CLIENT;
        let most = usize::try_from(room).unwrap_or(MOST_CLIENTS).clamp(1, MOST_CLIENTS);
        let slots = Slots::new(SlotLimits {
            most,
            most_idle: MOST_IDLE,
            most_leaving: MOST_LEAVING,
            promised: false,
        });
        let stopping = Arc::new(AtomicBool::new(false));
        while !cancel.requested() {
            if slots.is_settling() {
                std::thread::sleep(ENDING_PAUSE);
                continue;
            }
            readable_until(self.listeners.iter().map(AsFd::as_fd), monotonic_ns() + LOOK_NS);
            for listener in &self.listeners {
                match accept(listener) {
                    Ok(Accepted::Gone | Accepted::Empty) => {}
                    Ok(Accepted::Client(socket, _)) if self.context.serial => {
                        self.serve_alone(socket, sink, cancel);
                    }
                    Ok(Accepted::Client(socket, client)) => {
                        self.admit((socket, client), (&slots, most), &stopping, sink);
                    }
                    Ok(Accepted::Short(_)) if slots.push_out_one() => {
                        std::thread::sleep(ENDING_PAUSE)
                    }
                    Ok(Accepted::Short(error)) | Err(error) => {
                        sink.offer(Event::Note(format!("can't accept a client: {error}")));
                        std::thread::sleep(SHORTAGE_PAUSE);
                    }
                }
            }
        }
        stopping.store(true, Ordering::Relaxed);
        let until_ns = monotonic_ns() + STOPPING_NS;
        while slots.len() > 0 && monotonic_ns() < until_ns {
            std::thread::sleep(ENDING_PAUSE);
        }
        Ok(())
    }

    /// Takes a client in, or turns it away.
    fn admit(
        &self,
        (socket, client): (Socket, SocketAddr),
        (slots, most): (&Arc<Slots>, usize),
        stopping: &Arc<AtomicBool>,
        sink: &Sink,
    ) {
        let waker = match Waker::new() {
            Ok(waker) => Arc::new(waker),
            Err(error) => return sink.offer(Event::Note(error.to_string())),
        };
        // Before the session is made, so that a refused client costs little.
        let Some(slot) = slots.admit(client, Arc::clone(&waker)) else {
            let why = format!("there are {most} clients already, and no room for more");
            return sink.offer(Event::Refused { client, why });
        };
        let session = match session(socket, &self.context, waker) {
            Ok((session, _)) => session,
            Err(error) => return sink.offer(Event::Note(error.to_string())),
        };
        let (stopping, told) = (Arc::clone(stopping), sink.clone());
        let thread = std::thread::Builder::new().name("session".into()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            told.offer(told_of(client, session.run(&stopping, Some(slot))));
        });
        if let Err(error) = started {
            let why = Error::no_thread(&error);
            sink.offer(Event::Note(format!("a client is not served: {why}")));
        }
    }

    /// Serves a client while all others wait.
    fn serve_alone(&self, socket: Socket, sink: &Sink, cancel: &Cancel) {
        let begun = Waker::new().and_then(|waker| session(socket, &self.context, Arc::new(waker)));
        match begun {
            Ok((session, client)) => {
                sink.offer(told_of(client, session.run(&cancel.flag(), None)));
            }
            Err(error) => sink.offer(Event::Note(error.to_string())),
        }
    }

    /// Serves one client, whose connection another process has accepted (inetd), to its end.
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
        let (context, waker) = (Arc::new(ServerContext::of(options)), Arc::new(Waker::new()?));
        let (session, client) = session(socket, &context, waker)?;
        sink.offer(told_of(client, session.run(&cancel.flag(), None)));
        Ok(())
    }
}

fn told_of(client: SocketAddr, end: SessionEnd) -> Event {
    match end {
        SessionEnd::Ended(tests) => Event::Note(format!("{client}: left, tests: {tests}")),
        SessionEnd::Failed(why) => Event::Refused { client, why },
    }
}

fn session(
    socket: Socket,
    context: &Arc<ServerContext>,
    waker: Arc<Waker>,
) -> Result<(ServedClient, SocketAddr), Error> {
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
    Ok((ServedClient::new(channel, (local, client), Arc::clone(context), waker), client))
}
