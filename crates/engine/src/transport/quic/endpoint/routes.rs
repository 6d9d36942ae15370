//! What the routes to the peers of a socket carry that has no peer of its own.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::TransportConfig;
use socket2::{Domain, Protocol, Socket, Type};

use super::super::settings::Settings;
use crate::socket::route_mtu_bytes;

/// Peers whose routes are kept in mind.
const MOST_KEPT: usize = 64;
/// How long a route is taken to be as it was.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// The routes that a server's socket has used last.
pub(super) struct Routes {
    settings: Settings,
    kept: Vec<(IpAddr, Instant, Option<Arc<TransportConfig>>)>,
}

impl Routes {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, kept: Vec::new() }
    }

    /// What a connection from this peer is told where its route is known.
    pub(super) fn transport(
        &mut self,
        peer: SocketAddr,
        now: Instant,
    ) -> Option<Arc<TransportConfig>> {
        let ip = peer.ip().to_canonical();
        self.kept.retain(|(_, since, _)| now.saturating_duration_since(*since) < KEPT_FOR);
        if let Some((_, _, transport)) = self.kept.iter().find(|(kept, _, _)| *kept == ip) {
            return transport.clone();
        }
        let transport = self.settings.route_transport(|| route(SocketAddr::new(ip, peer.port())));
        if self.kept.len() == MOST_KEPT {
            self.kept.remove(0);
        }
        self.kept.push((ip, now, transport.clone()));
        transport
    }
}

/// Asks the kernel by way of a socket that is connected to the peer, which sends nothing.
fn route(peer: SocketAddr) -> Option<(SocketAddr, u32)> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP)).ok()?;
    socket.connect(&peer.into()).ok()?;
    Some((peer, route_mtu_bytes(socket.as_fd(), peer.is_ipv6()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_asked_for_once_in_a_while_and_bounded() {
        let mut routes = Routes::new(Settings { jumbo: true, ..Settings::default() });
        let (now, peer) = (Instant::now(), |last| SocketAddr::from(([127, 0, 0, last], 9)));
        let first = routes.transport(peer(1), now).expect("loopback is a route");
        let again = routes.transport(peer(1), now + KEPT_FOR / 2).expect("it still is");
        assert!(Arc::ptr_eq(&first, &again));
        let later = routes.transport(peer(1), now + KEPT_FOR).expect("it still is");
        assert!(!Arc::ptr_eq(&first, &later));
        for last in 2..=255 {
            routes.transport(peer(last), now + KEPT_FOR);
        }
        assert_eq!(routes.kept.len(), MOST_KEPT);
        let mapped: SocketAddr = "[::ffff:127.0.0.255]:9".parse().unwrap();
        assert!(routes.transport(mapped, now + KEPT_FOR).is_some());
        assert_eq!(routes.kept.len(), MOST_KEPT, "it is the same peer");
    }
}
