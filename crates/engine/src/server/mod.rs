//! The end that is measured against: one port, many clients, each with a lease.
//!
//! One thread, the *acceptor*, accepts connections, holds every control conversation, opens UDP
//! flows and conducts every test's load; the tests' shards are the only other threads. A client
//! costs nothing but a descriptor and a few hundred bytes until it has said something, and a client
//! that goes silent, in whatever state, is gone with all it had within seconds.

mod acceptor;
mod admission;
mod arrival;
mod conclusion;
mod control;
mod lifetime;
mod listening;
mod requests;
mod status;
mod test;
mod turns;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::plan::LocalAddress;
use socket2::Socket;

use crate::acceptor::{listen_error, listening_address};
use crate::access::{Identity, SharedKey};
use crate::connections::limit_blocking;
use crate::control::fingerprint;
use crate::error::Error;
use crate::event::{Cancel, Event, Sink};
use crate::socket::{HandedSockets, bind_datagram, listen, or_over_v4, plain};
use acceptor::NativeAcceptor;
use status::Teller;

pub use status::{ServerGauge, ServerStatus};

/// What a server is told.
#[derive(Clone)]
pub struct ServeOptions {
    /// The address to listen on; absent: all of them, IPv4 and IPv6.
    pub bind: Option<LocalAddress>,
    /// The port, TCP and UDP; 0: any that is free for both.
    pub port: u16,
    /// Sockets to serve on, in the place of own ones.
    pub handed: HandedSockets,
    /// Processors that the threads of tests are pinned to, in turn; empty: wherever.
    pub cpus: Vec<u32>,
    /// The network device to listen on.
    pub bind_device: Option<String>,
    /// Tests that may run at once.
    pub max_tests: u32,
    /// The most that all tests together may ask for, in bits of payload per second.
    pub max_rate_bps: Option<u64>,
    /// The longest a test may take, warm-up included.
    pub max_time_ns: Option<u64>,
    /// Whether tests may have this end poll without sleeping, where their clients want that.
    pub busy_poll: bool,
    /// Whether the server ends after one test.
    pub one_off: bool,
    /// A server without a test for so long ends.
    pub idle_timeout_ns: Option<u64>,
    /// The key that clients must hold.
    pub shared_key: Option<SharedKey>,
    /// The server's own key.
    pub identity: Identity,
}

impl ServeOptions {
    /// The options of a server that is told nothing: port 5250 everywhere, 64 tests at once.
    pub fn new(identity: Identity) -> Self {
        Self {
            bind: None,
            port: linerate_measure::plan::DEFAULT_PORT,
            handed: HandedSockets::default(),
            cpus: Vec::new(),
            bind_device: None,
            max_tests: 64,
            busy_poll: false,
            max_rate_bps: None,
            max_time_ns: None,
            one_off: false,
            idle_timeout_ns: None,
            shared_key: None,
            identity,
        }
    }
}

/// A server that listens.
pub struct Server {
    address: SocketAddr,
    fingerprint: String,
    acceptor: NativeAcceptor,
}

impl Server {
    /// Opens the server's port. What happens at the server goes to `sink`, the address first.
    ///
    /// # Errors
    ///
    /// When the port is taken or not allowed, or the key is no good.
    pub fn bind(options: ServeOptions, sink: Sink) -> Result<Self, Error> {
        let (listener, datagrams, address) = open_port(&options)?;
        let fingerprint = fingerprint(&options.identity.certificate_der);
        sink.offer(Event::Listening { address, fingerprint: fingerprint.clone() });
        let acceptor = NativeAcceptor::new(options, listener, datagrams, address, sink)?;
        Ok(Self { address, fingerprint, acceptor })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The fingerprint of its key: SHA-256 of its certificate, in hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Has it tell once a second what it does.
    pub fn tell_status(&mut self, gauge: Arc<ServerGauge>) {
        self.acceptor.lifetime.teller = Teller::new(Some(gauge));
    }

    /// Serves until `cancel` is requested, or its options say that it has served enough.
    ///
    /// # Errors
    ///
    /// When the machine fails: clients alone can't end a server.
    pub fn serve(mut self, cancel: &Cancel) -> Result<(), Error> {
        self.acceptor.serve(cancel)
    }
}

/// TCP and UDP on one port number.
fn open_port(options: &ServeOptions) -> Result<(Socket, Socket, SocketAddr), Error> {
    if let Some(mut port) = options.handed.port()? {
        let datagrams = match port.only_datagrams()? {
            Some(datagrams) => Ok(datagrams),
            None => bind_datagram(port.address, options.bind_device.as_deref()),
        };
        let datagrams = datagrams.and_then(|datagrams| {
            limit_blocking(&port.listener)?;
            Ok(datagrams)
        });
        let datagrams = datagrams.map_err(|error| listen_error(port.address, &error))?;
        return Ok((port.listener, datagrams, plain(port.address)));
    }
    let address = listening_address(options.bind.as_ref(), options.port)?;
    let open = || or_over_v4(address, |address| open_pair(address, options));
    let mut opened = open();
    // A port that the kernel chose for TCP may be taken for UDP: then it chooses again.
    for _ in 1..if options.port == 0 { 16 } else { 1 } {
        opened = opened.or_else(|_| open());
    }
    opened.map_err(|error| listen_error(address, &error))
}

fn open_pair(
    address: SocketAddr,
    options: &ServeOptions,
) -> io::Result<(Socket, Socket, SocketAddr)> {
    let device = options.bind_device.as_deref();
    let listener = listen(address, device)?;
    limit_blocking(&listener)?;
    let unknown = || io::Error::from(io::ErrorKind::AddrNotAvailable);
    let bound = listener.local_addr()?.as_socket().ok_or_else(unknown)?;
    let datagrams = bind_datagram(bound, device)?;
    Ok((listener, datagrams, plain(bound)))
}
