//! What the sockets of an endpoint have in common.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn_proto::EndpointConfig;
use socket2::Socket;

use super::super::packets::Packets;
use super::super::settings::{ServerSide, Settings};
use super::port::Port;
use super::routes::Routes;
use crate::control::random;
use crate::error::Error;

/// What the sockets of an endpoint have in common, made once for all of them.
pub(super) struct Blueprint {
    pub(super) settings: Settings,
    /// Where some sockets accept and some don't, those of the latter.
    pub(super) outgoing: Option<Settings>,
    config: Arc<EndpointConfig>,
}

impl Blueprint {
    /// # Errors
    ///
    /// Where the settings are out of bounds, or this machine has no randomness.
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let config = Arc::new(settings.endpoint(random()?)?);
        Ok(Self { settings, outgoing: None, config })
    }

    /// Sets a socket up; it accepts connections if it's a server's.
    ///
    /// # Errors
    ///
    /// Where the socket can't be set up.
    pub(super) fn port(
        &self,
        socket: Arc<Socket>,
        accepts: Option<&ServerSide>,
    ) -> Result<Port, Error> {
        let outgoing = self.outgoing.as_ref().filter(|_| accepts.is_none());
        let settings = outgoing.unwrap_or(&self.settings);
        // Each connection is accepted with what its peer's address asks for.
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let server = accepts.map(|server| server.config(any, None));
        let packets = Packets::new(socket, settings.offload, settings.ecn, settings.dscp)
            .map_err(|error| Error::Host(format!("can't set up a UDP socket for QUIC: {error}")))?;
        // With IP_RECVERR the kernel reports no closed port of the target on a connected socket.
        let tells = settings.datagrams && outgoing.is_none();
        let packets = if tells { packets.telling_refusals() } else { packets };
        let route = settings.route_transport(|| packets.route());
        let finds_routes = route.is_none() && accepts.is_some() && settings.jumbo;
        let config = Arc::clone(&self.config);
        Ok(Port {
            proto: quinn_proto::Endpoint::new(config, server, true, Some(random()?)),
            packets,
            route,
            routes: finds_routes.then(|| Routes::new(settings.clone())),
            slots: Vec::new(),
            connections: 0,
            unsent: None,
            parked: Vec::new(),
            awaits_room: false,
            own: None,
        })
    }
}
