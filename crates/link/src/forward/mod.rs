//! The link between sockets: what comes to one address is forwarded to another, through the same
//! paths as packets are. No privileges are needed. One thread does it all.

mod reach;
mod tcp;
mod traffic;
mod udp;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use linerate_measure::link::report::Form;
use linerate_measure::link::{Link, Report};
use rustix::event::epoll::{self, CreateFlags};

use self::reach::{for_datagrams, for_streams, not_emulated};
use self::tcp::Connections;
use self::traffic::{Lane, Running};
use self::udp::Associations;
use super::packet_loop::prepare_thread;
use super::punctuality::Punctuality;
use super::{Ending, Pace, paths};
use linerate_system::cancel::Cancel;
use linerate_system::clock::{monotonic_ns, utc_ns};
use linerate_system::error::Error;

/// Clients of UDP, or connections of TCP, at once; what comes beyond them is turned away.
const CLIENTS_MAX: usize = 1024;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// Tries to find a port that is free for both UDP and TCP.
const PORT_TRIES: usize = 16;

/// What to forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwarderOptions {
    /// Where clients come to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where they are forwarded to.
    pub target: SocketAddr,
    /// Whether UDP is forwarded.
    pub udp: bool,
    /// Whether TCP is forwarded.
    pub tcp: bool,
}

/// Sockets that listen for what is to be forwarded.
#[derive(Debug)]
pub struct Forwarder {
    options: ForwarderOptions,
    address: SocketAddr,
    udp: Option<UdpSocket>,
    tcp: Option<TcpListener>,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A client's datagrams.
    Datagrams,
    /// The target's datagrams for the client of this mark.
    Answers(u32),
    /// A client's connection.
    Arrival,
    /// A connection's left (0) or right (1) end.
    End(u32, usize),
}

impl Source {
    fn data(self) -> epoll::EventData {
        let (kind, tag) = match self {
            Source::Datagrams => (0, 0),
            Source::Answers(tag) => (1, tag),
            Source::Arrival => (2, 0),
            Source::End(tag, end) => (3 + end as u64, tag),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(tag))
    }

    fn of(data: epoll::EventData) -> Self {
        let tag = data.u64() as u32;
        match data.u64() >> 32 {
            0 => Source::Datagrams,
            1 => Source::Answers(tag),
            2 => Source::Arrival,
            kind => Source::End(tag, (kind & 1) as usize ^ 1),
        }
    }
}

impl Forwarder {
    /// Binds the sockets.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the address is taken or isn't this machine's.
    pub fn bind(options: ForwarderOptions) -> Result<Self, Error> {
        let wrong = |source| Error::Io {
            operation: "listen on",
            address: options.listen.to_string(),
            source,
        };
        let mut tries = if options.listen.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            match Self::try_bind(options) {
                Ok(forwarder) => return Ok(forwarder),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                Err(error) => return Err(wrong(error)),
            }
        }
    }

    fn try_bind(options: ForwarderOptions) -> io::Result<Self> {
        let mut address = options.listen;
        let mut tcp = None;
        if options.tcp {
            let domain = socket2::Domain::for_address(address);
            let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            let listener = TcpListener::from(socket);
            address = listener.local_addr()?;
            tcp = Some(listener);
        }
        let mut udp = None;
        if options.udp {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            address = socket.local_addr()?;
            udp = Some(socket);
        }
        Ok(Self { options, address, udp, tcp })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Between what it stands: left, right, and how to use it.
    pub fn describe(&self) -> [String; 3] {
        let what = match (self.options.udp, self.options.tcp) {
            (true, false) => "UDP",
            (false, true) => "TCP",
            _ => "UDP and TCP",
        };
        [
            format!("clients of {what} at {}", self.address),
            format!("{}", self.options.target),
            format!("give programs the address {} instead", self.address),
        ]
    }

    /// Forwards until the time is over or a request to stop comes, in the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where a socket fails that all depends on.
    pub fn run(self, link: &Link, pace: &Pace, cancel: &Cancel) -> Result<Report, Error> {
        let prepared = prepare_thread(pace)?;
        let mut notes = prepared.notes.clone();
        let (started_utc_ns, begun_ns) = (utc_ns(), monotonic_ns());
        let (address, options) = (self.address, self.options);
        let not_emulated = not_emulated(link, options);
        let mut running = self.start(link, pace).map_err(|source| fails(address, source))?;
        running.forward(link, pace, cancel).map_err(|source| fails(address, source))?;
        let elapsed_ns = monotonic_ns() - begun_ns;
        running.notes(&mut notes);
        notes.push("rates count payload: there are no headers here".to_owned());
        let (to_right, to_left, accuracy) = running.close();
        let ending = Ending {
            form: Form::Forward {
                listen: address.to_string(),
                target: options.target.to_string(),
                udp: options.udp,
                tcp: options.tcp,
            },
            started_utc_ns,
            elapsed_ns,
            pace: *pace,
            to_right,
            to_left,
            accuracy,
            not_emulated,
            notes,
        };
        Ok(ending.report(link))
    }

    fn start(self, link: &Link, pace: &Pace) -> io::Result<Running> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let lane = |link: &Link, bytes| {
            let (right, left) = paths(link, bytes, false);
            Lane { right, left }
        };
        let udp = match self.udp {
            Some(socket) => {
                let lane = lane(&for_datagrams(link), udp::BUFFER_BYTES);
                Some((Associations::new(socket, self.options.target, &poll)?, lane))
            }
            None => None,
        };
        let tcp = match self.tcp {
            Some(listener) => {
                let lane = lane(&for_streams(link), tcp::BUFFER_BYTES);
                Some((Connections::new(listener, self.options.target, &poll)?, lane))
            }
            None => None,
        };
        let punctuality = Punctuality::new(pace.waiting, monotonic_ns());
        Ok(Running { poll, udp, tcp, punctuality })
    }
}

fn fails(address: SocketAddr, source: io::Error) -> Error {
    Error::Io { operation: "relay what comes to", address: address.to_string(), source }
}

#[cfg(test)]
mod tests;
