//! What endpoints with the same settings have in common.

use std::cell::RefCell;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use quinn_proto::EndpointConfig;
use socket2::Socket;

use super::super::packets::Packets;
use super::super::settings::{ServerSide, Settings};
use super::Endpoint;
use super::half_open::HalfOpen;
use super::look::Look;
use super::routes::Routes;
use crate::control::random;
use crate::error::Error;

/// What endpoints with the same settings have in common, made once for all of them.
pub(crate) struct Blueprint {
    settings: Settings,
    config: Arc<EndpointConfig>,
}

impl Blueprint {
    /// # Errors
    ///
    /// Where the settings are out of bounds, or this machine has no randomness.
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let config = Arc::new(settings.endpoint(random()?)?);
        Ok(Self { settings, config })
    }

    /// An endpoint with this socket; it accepts connections if it's a server's.
    ///
    /// # Errors
    ///
    /// Where the socket can't be set up.
    pub(crate) fn endpoint(
        &self,
        socket: Arc<Socket>,
        accepts: Option<&ServerSide>,
    ) -> Result<Endpoint, Error> {
        let settings = &self.settings;
        // Each connection is accepted with what its peer's address asks for.
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let server = accepts.map(|server| server.config(any, None));
        let packets = Packets::new(socket, settings.offload, settings.ecn, settings.dscp)
            .map_err(|error| Error::Host(format!("can't set up a UDP socket for QUIC: {error}")))?;
        let packets = if settings.datagrams { packets.telling_refusals() } else { packets };
        let route = settings.route_transport(|| packets.route());
        let finds_routes = route.is_none() && accepts.is_some() && settings.jumbo;
        let routes = finds_routes.then(|| Routes::new(settings.clone()));
        let config = Arc::clone(&self.config);
        Ok(Endpoint {
            proto: quinn_proto::Endpoint::new(config, server, true, Some(random()?)),
            packets,
            accepts: accepts.cloned(),
            route,
            routes,
            most_connections: settings.connections,
            connections: Vec::new(),
            open: 0,
            half_open: HalfOpen::new(settings.half_open_connections),
            touched: Rc::new(RefCell::new(Vec::new())),
            queue: VecDeque::new(),
            times: BinaryHeap::new(),
            events: VecDeque::new(),
            foreign: VecDeque::new(),
            keeps_foreign: false,
            outgoing: Vec::new(),
            unsent: None,
            look: Look::new(),
            counts: false,
            refused: 0,
            refusals: 0,
        })
    }
}
