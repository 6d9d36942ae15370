//! Connections that come and go: one after the other, each for one request and response or for
//! nothing at all, and the server closes first.
//!
//! Both loops block in their calls: that is the fewest there can be. The server asks again for a moment
//! first where its client has another processor. A watchdog cuts off who falls
//! silent, so that such a peer costs one connection and not the test.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with};
use socket2::Socket;

use super::transfer::Transfer;
use super::watchdog::Watched;
use crate::buffers::Buffers;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::connections::{SpinWait, WakeUps};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::load::Connections;
use crate::phase::Phase;
use crate::shard::OwnLoop;
use crate::socket::is_short_of_descriptors;

/// A client's connection that doesn't go on for so long has failed.
pub(super) const CLIENT_SILENCE: Duration = Duration::from_secs(5);
/// A server's. While it waits, nobody else's is accepted.
pub(super) const SERVER_SILENCE: Duration = Duration::from_secs(1);
/// After a connection that couldn't be made none is begun for so long.
pub(super) const PAUSE: Duration = Duration::from_nanos(MILLISECOND_NS);
/// A server's pause while its load is being opened: its first client has come and waits.
const SHORT_PAUSE: Duration = Duration::from_micros(20);

/// What goes over each connection; both 0: nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    pub(super) request_bytes: usize,
    pub(super) response_bytes: usize,
    /// Whether the client says that it sends nothing more, for servers that close only then.
    pub(super) half_closes: bool,
}

/// The server's connections.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) listener: Arc<Socket>,
    pub(super) exchanged: Exchanged,
    pub(super) buffers: Buffers,
    /// After so many it is over.
    pub(super) count: Option<u64>,
    /// Whether it is its own business how often a connection wakes it.
    pub(super) chooses_wake_ups: bool,
    pub(super) watched: Watched,
}

impl Acceptor {
    pub(super) fn connections(self) -> Connections {
        Connections::Made(Box::new(move |flows| {
            let acceptor = self.clone();
            looped(flows, move |shared, local| acceptor.run(&shared, local))
        }))
    }

    fn run(self, shared: &FlowShared, local: &mut Local) -> Ending {
        let mut errors = BTreeMap::new();
        let mut left = self.count.unwrap_or(u64::MAX);
        let mut transfer = Transfer::new(&self.buffers, self.exchanged.response_bytes);
        transfer.spin_wait = Some(SpinWait::new(false));
        let _spins_at_worst = self.listener.set_nonblocking(false);
        // Connections inherit it.
        let _blocks_at_worst = self.listener.set_write_timeout(Some(SERVER_SILENCE));
        // Only a request says more than the handshake.
        let chooses = self.chooses_wake_ups && self.exchanged.request_bytes > 0;
        let mut wake_ups = chooses.then(WakeUps::default);
        while local.phase() == Phase::Hold {
            std::thread::park_timeout(SHORT_PAUSE);
        }
        shared.tally.first_ns.set(monotonic_ns());
        while left > 0 && local.phase() < Phase::Stop {
            if let Some(spin_wait) = &mut transfer.spin_wait {
                let _or_comes = spin_wait.has_come(&self.listener);
            }
            let socket = match accept_with(&*self.listener, SocketFlags::CLOEXEC) {
                Ok(socket) => Socket::from(socket),
                Err(error) => {
                    self.handle_failure(&error.into(), &mut errors);
                    continue;
                }
            };
            if let Some(wake_ups) = &mut wake_ups {
                wake_ups.choose(&self.listener, &socket);
            }
            if let Some(spin_wait) = &mut transfer.spin_wait {
                spin_wait.learn(&socket);
            }
            let serve = |socket: &Socket| self.serve(socket, &mut transfer, shared, local);
            match self.watched.run(socket, serve) {
                Ok(()) => {
                    left -= 1;
                    shared.tally.transactions.add(1);
                    // Waiting for one that doesn't come is no part of the test.
                    shared.tally.last_ns.set(monotonic_ns());
                }
                Err(error) => *errors.entry(kind_of(&error)).or_insert(0) += 1,
            }
        }
        Ending { errors, ..Ending::default() }
    }

    fn handle_failure(&self, error: &io::Error, errors: &mut BTreeMap<&'static str, u64>) {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
            // The watchdog has shut the listener down to wake this loop.
            io::ErrorKind::InvalidInput => std::thread::sleep(PAUSE),
            _ => {
                *errors.entry(kind_of(error)).or_insert(0) += 1;
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn serve(
        &self,
        socket: &Socket,
        transfer: &mut Transfer,
        shared: &FlowShared,
        local: &mut Local,
    ) -> io::Result<()> {
        if self.exchanged.request_bytes == 0 {
            return Ok(());
        }
        let until = Phase::Stop;
        if transfer.receive(socket, self.exchanged.request_bytes, until, shared, local)? > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        transfer.send_all(socket, self.exchanged.response_bytes, until, shared, local)
    }
}

/// A loop over the one flow that stands for all connections.
pub(super) fn looped(
    flows: Vec<Arc<FlowShared>>,
    body: impl FnOnce(Arc<FlowShared>, &mut Local) -> Ending + Send + 'static,
) -> OwnLoop {
    Box::new(move |_, local| {
        let Some(shared) = flows.into_iter().next() else { return };
        shared.set_ready(local);
        let ending = body(Arc::clone(&shared), local);
        shared.set_ended(ending, local);
    })
}

pub(super) fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

pub(super) fn kind_of(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if is_taken(error) => "ports_exhausted",
        _ if is_short_of_descriptors(error) => "descriptors_exhausted",
        io::ErrorKind::WouldBlock => "timed_out",
        _ => error_kind(error),
    }
}
