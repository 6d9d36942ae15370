//! Where a client's connections come from: source addresses and ports, one after the other.

use std::io;
use std::net::{IpAddr, SocketAddr};

use linerate_measure::SocketOptions;
use socket2::Socket;

use crate::socket::{Binding, EVERYWHERE_V4, EVERYWHERE_V6, dial_stream};

/// Ports tried for one connection before they count as exhausted.
const MOST_TRIES: u32 = 512;

/// The source addresses and ports of one shard's connections.
pub(super) struct Source {
    server: SocketAddr,
    binding: Binding,
    options: SocketOptions,
    walk: Option<Walk>,
}

/// A way through a range of ports. Shards take every n-th port, so that they never meet.
struct Walk {
    first: u32,
    count: u32,
    place: u32,
    step: u32,
}

impl Source {
    pub(super) fn new(dial: &super::Dial, shard: usize, shards: usize) -> Self {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let walk = dial.source_ports.map(|(first, last)| Walk {
            first: u32::from(first),
            count: u32::from(last - first) + 1,
            place: number(shard),
            step: number(shards).max(1),
        });
        Self {
            server: dial.server,
            binding: dial.binding.clone(),
            options: dial.options.clone(),
            walk,
        }
    }

    /// Begins a connection. A port that still waits in TIME-WAIT, or is somebody else's, is
    /// stepped over.
    pub(super) fn connect(&mut self) -> io::Result<Socket> {
        let Some(walk) = &mut self.walk else {
            return dial_stream(self.server, &self.binding, None, &self.options);
        };
        let address = self.binding.bind.unwrap_or(match self.server {
            SocketAddr::V4(_) => EVERYWHERE_V4,
            SocketAddr::V6(_) => EVERYWHERE_V6,
        });
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for _ in 0..walk.count.min(MOST_TRIES) {
            let local = walk.next(address);
            match dial_stream(self.server, &self.binding, Some(local), &self.options) {
                Err(error) if is_taken(&error) => last = error,
                other => return other,
            }
        }
        Err(last)
    }
}

impl Walk {
    fn next(&mut self, address: IpAddr) -> SocketAddr {
        let port = self.first + self.place % self.count;
        self.place = self.place.wrapping_add(self.step);
        SocketAddr::new(address, u16::try_from(port).unwrap_or(u16::MAX))
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
        Some(libc::EMFILE | libc::ENFILE) => "descriptors_exhausted",
        _ => crate::flow::error_kind(error),
    }
}
