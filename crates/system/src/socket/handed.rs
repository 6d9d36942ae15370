//! Sockets that the parent process has opened for this program: socket activation, as systemd has it
//! (sd_listen_fds(3)).

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Domain, Socket, Type};

use super::plain;
use crate::error::Error;

/// The first of them; the others follow.
const FIRST: RawFd = 3;
/// More than any server here has use for.
const MOST: RawFd = 1_024;

const PROCESS: &str = "LISTEN_PID";
const COUNT: &str = "LISTEN_FDS";
const NAMES: &str = "LISTEN_FDNAMES";

/// The sockets that this program was started with, to serve on instead of opening its own.
#[derive(Clone, Debug, Default)]
pub struct HandedSockets {
    listeners: Vec<Arc<Socket>>,
    datagrams: Vec<Arc<Socket>>,
}

impl HandedSockets {
    /// Takes those that the environment tells of, which tells of them no longer then: programs that this one starts
    /// have nothing of them. To be called once, before a thread is started that looks at the environment. None of
    /// them: no socket was handed to this very process.
    ///
    /// # Errors
    ///
    /// When one of them isn't there, or is of a kind that no server here serves on.
    pub fn take() -> Result<Self, Error> {
        let told = |name: &str| std::env::var(name).ok();
        let is_for_this_process = told(PROCESS) == Some(std::process::id().to_string());
        let Some(count) = told(COUNT).filter(|_| is_for_this_process) else {
            return Ok(Self::default());
        };
        for name in [PROCESS, COUNT, NAMES] {
            // SAFETY: the caller has started no thread that looks at the environment, but for the standard library's
            // own functions, which share a lock with this one.
            unsafe { std::env::remove_var(name) };
        }
        let Some(count) = count.parse::<RawFd>().ok().filter(|count| (0..=MOST).contains(count))
        else {
            return Err(Error::Host(format!(
                "{COUNT}=\"{count}\" is no number of sockets up to {MOST}"
            )));
        };
        let mut handed = Self::default();
        for number in FIRST..FIRST + count {
            handed.add(number)?;
        }
        Ok(handed)
    }

    fn add(&mut self, number: RawFd) -> Result<(), Error> {
        let wrong = |what: &str| Error::Host(format!("descriptor {number} of {COUNT} {what}"));
        // SAFETY: F_GETFD takes no pointer and changes nothing, whatever the descriptor is.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
            return Err(wrong("is not open"));
        }
        // SAFETY: it is open, and the parent process has left it to this call, which is made once.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        let _inherited_at_worst = fcntl_setfd(&descriptor, FdFlags::CLOEXEC);
        let socket = Socket::from(descriptor);
        let (Ok(kind), Ok(domain)) = (socket.r#type(), socket.domain()) else {
            return Err(wrong("is no socket"));
        };
        if domain != Domain::IPV4 && domain != Domain::IPV6 {
            return Err(wrong("is no socket of IPv4 or IPv6"));
        }
        socket
            .set_nonblocking(true)
            .map_err(|error| wrong(&format!("can't be set up ({error})")))?;
        if kind == Type::STREAM && socket.is_listener().unwrap_or(false) {
            self.listeners.push(Arc::new(socket));
        } else if kind == Type::DGRAM && socket.peer_addr().is_err() {
            share_port(&socket).map_err(|error| wrong(&format!("can't be set up ({error})")))?;
            self.datagrams.push(Arc::new(socket));
        } else {
            return Err(wrong(
                "is neither a listening TCP socket nor a UDP socket without a peer (systemd: ListenStream= or \
                 ListenDatagram=, Accept=no)",
            ));
        }
        Ok(())
    }

    /// Whether none was handed over.
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.datagrams.is_empty()
    }

    /// All that listen over TCP, for a server that has no use for others.
    pub fn listeners(&self) -> Result<Vec<Socket>, Error> {
        if !self.datagrams.is_empty() {
            return Err(Error::Host(format!(
                "{COUNT} has a UDP socket, and this server uses none"
            )));
        }
        self.listeners.iter().map(|socket| copy_of(socket)).collect()
    }

    /// The one that listens over TCP, its address, and those of UDP on the same port; `None` where none was handed
    /// over.
    pub fn port(&self) -> Result<Option<HandedPort>, Error> {
        let listener = match self.listeners.as_slice() {
            _ if self.is_empty() => return Ok(None),
            [listener] => listener,
            others => {
                return Err(Error::Host(format!(
                    "{COUNT} has {} listening TCP sockets, and this server takes one (systemd: ListenStream=), with \
                     UDP beside it on the same port (ListenDatagram=)",
                    others.len()
                )));
            }
        };
        let address = address_of(listener)?;
        for datagrams in &self.datagrams {
            let other = address_of(datagrams)?;
            if other.port() != address.port() {
                return Err(Error::Host(format!(
                    "{COUNT} has TCP port {} and UDP port {}: this server has both on one port",
                    address.port(),
                    other.port()
                )));
            }
        }
        Ok(Some(HandedPort {
            listener: copy_of(listener)?,
            address,
            datagrams: self
                .datagrams
                .iter()
                .map(|socket| copy_of(socket))
                .collect::<Result<_, _>>()?,
        }))
    }
}

/// A port that was handed over.
pub struct HandedPort {
    pub listener: Socket,
    /// As the socket has it: of IPv6 where it is of both families.
    pub address: SocketAddr,
    pub datagrams: Vec<Socket>,
}

impl HandedPort {
    /// The one for UDP; `None` where none was handed over.
    pub fn only_datagrams(&mut self) -> Result<Option<Socket>, Error> {
        match self.datagrams.len() {
            0 | 1 => Ok(self.datagrams.pop()),
            more => Err(Error::Host(format!(
                "{COUNT} has {more} UDP sockets on port {}, and this server takes one",
                plain(self.address).port()
            ))),
        }
    }
}

/// Sockets of flows will be bound beside it, also where another user has opened it.
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)
}

fn address_of(socket: &Socket) -> Result<SocketAddr, Error> {
    let bound = socket.local_addr().ok().and_then(|local| local.as_socket());
    bound.ok_or_else(|| Error::Host(format!("a socket of {COUNT} has no address")))
}

fn copy_of(socket: &Socket) -> Result<Socket, Error> {
    socket
        .try_clone()
        .map_err(|error| Error::Host(format!("can't take over a socket of {COUNT}: {error}")))
}
/// A file of its own for a descriptor that this program was started with, as `3` is in `linerate ... 3>FILE`.
///
/// # Errors
///
/// When no such descriptor was handed to the program.
pub fn inherited_file(number: RawFd) -> io::Result<File> {
    // SAFETY: F_GETFD takes no pointer and changes nothing, whatever the descriptor is.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    // What the program has opened itself closes on exec; what it was started with can't.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, and nothing closes a descriptor that the program was started with while it is duplicated.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    descriptor.try_clone_to_owned().map(File::from)
}
