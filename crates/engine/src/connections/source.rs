//! Where a client's connections come from: source addresses and ports, one after the other.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_measure::SocketOptions;
use socket2::Socket;

use super::Dial;
use crate::clock::monotonic_ns;
use crate::socket::{Binding, dial_stream, is_short_of_descriptors};

/// A connection on its way.
pub(super) struct Dialed {
    pub(super) socket: Socket,
    /// When its first packet left, or just before.
    pub(super) began_ns: u64,
    /// Whether it was still on its way when the call came back.
    pub(super) in_progress: bool,
}

/// Ports tried for one connection before they count as exhausted.
const MOST_TRIES: u32 = 512;

/// The source addresses and ports of one shard's connections: every port of the first address, then
/// every port of the next; without a range of ports, each address in turn.
pub(super) struct Source {
    server: SocketAddr,
    device: Option<String>,
    binds: Vec<IpAddr>,
    options: SocketOptions,
    ports: Option<(u16, u16)>,
    /// The next place in the walk. Shards take every n-th, so that they never meet.
    place: u64,
    step: u64,
}

impl Source {
    pub(super) fn new(dial: &Dial, shard: usize, shards: usize) -> Self {
        Self {
            server: dial.server,
            device: dial.device.clone(),
            binds: dial.binds.clone(),
            options: dial.options.clone(),
            ports: dial.source_ports,
            place: shard as u64,
            step: shards as u64,
        }
    }

    /// Begins a connection. A port that is somebody else's, or that is taken for this peer, is
    /// stepped over.
    pub(super) fn connect(&mut self, blocks_for: Option<Duration>) -> io::Result<Dialed> {
        let tries = match self.ports {
            Some((first, last)) => (u32::from(last - first) + 1).min(MOST_TRIES),
            None => self.binds.len().clamp(1, MOST_TRIES as usize) as u32,
        };
        let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
        for _ in 0..tries {
            let (bind, port) = self.next();
            let binding = Binding { bind, device: self.device.clone() };
            let began_ns = monotonic_ns();
            outcome = dial_stream(self.server, &binding, port, &self.options, blocks_for)
                .map(|(socket, in_progress)| Dialed { socket, began_ns, in_progress });
            if !matches!(&outcome, Err(error) if is_taken(error)) {
                break;
            }
        }
        outcome
    }

    fn next(&mut self) -> (Option<IpAddr>, Option<u16>) {
        let place = self.place;
        self.place = self.place.wrapping_add(self.step);
        let address = |turn: u64| {
            let addresses = self.binds.len().max(1) as u64;
            self.binds.get((turn % addresses) as usize).copied()
        };
        match self.ports {
            Some((first, last)) => {
                let ports = u64::from(last - first) + 1;
                (address(place / ports), Some(first + (place % ports) as u16))
            }
            None => (address(place), None),
        }
    }
}

/// Whether no connection can be had from there now.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

/// The kind that results count a failed beginning under.
pub(super) fn kind_of(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL) => "ports_exhausted",
        _ if is_short_of_descriptors(error) => "descriptors_exhausted",
        None if error.kind() == io::ErrorKind::AddrNotAvailable => "address_unavailable",
        _ => crate::flow::error_kind(error),
    }
}
