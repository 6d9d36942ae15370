//! What the two sides of a proxy are told: the plan in the transport's terms.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::Socket;

use super::super::tickets::TargetTickets;
use super::super::{ProxyPlan, QuicSides, Sessions, SideOptions};
use crate::acceptor::{listen_error, listening_address};
use crate::control::{SessionCache, SessionFile, Trusts, client_tls, server_tls};
use crate::error::Error;
use crate::socket::{connect_datagram, force_datagram_buffers, or_over_v4};
use crate::transport::quic::{
    ClientSide, ConnectionIds, Endpoint, Extras, ServerSide, Settings, bind_shared,
    share_packets_of,
};

/// How often a silent connection to the target says something. The client's own silence ends both.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Clients of one thread whose handshake isn't done.
const HALF_OPEN_CONNECTIONS: usize = 4_096;
/// What a peer may send at first, of a connection.
const FIRST_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of a packet in a first window: what Ethernet carries over IPv4.
const FIRST_PACKET_BYTES: u64 = 1_472;
/// What may wait in pieces that the other end has not taken, of the buffer.
const PIECES: u32 = 4;

/// The most of one piece.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// Bytes that wait in QUIC's send buffer beside those on their way, and in pieces.
pub(super) fn buffers(plan: &ProxyPlan) -> (u64, usize) {
    let buffer_bytes = plan.limits.buffer_bytes;
    let pieces = buffer_bytes / PIECES;
    (u64::from(buffer_bytes - pieces), pieces as usize)
}

/// What a peer may send at first before it is read: more is allowed when its handshake is done.
pub(super) fn first_window_bytes(plan: &ProxyPlan) -> u32 {
    plan.limits.window_bytes.min(FIRST_WINDOW_BYTES)
}

fn settings(plan: &ProxyPlan, sides: &QuicSides) -> Settings {
    let limits = &plan.limits;
    let first_packets = sides.sending.first_window_packets;
    sides.options.apply(Settings {
        congestion: sides.sending.congestion,
        initial_window_bytes: first_packets
            .map(|packets| u64::from(packets).saturating_mul(FIRST_PACKET_BYTES)),
        stream_window_bytes: limits.window_bytes,
        connection_window_bytes: first_window_bytes(plan),
        streams: limits.streams,
        // Admission decides. A socket also counts connections that are over and not yet forgotten.
        connections: (limits.connections as usize).saturating_mul(2),
        half_open_connections: HALF_OPEN_CONNECTIONS,
        datagrams: true,
        jumbo: true,
        ..Settings::default()
    })
}

/// The sockets of all threads, which share a port.
///
/// # Errors
///
/// Where nothing can listen there.
pub(in super::super) fn bind(
    plan: &ProxyPlan,
    options: &SideOptions,
) -> Result<Vec<Socket>, Error> {
    let wanted = listening_address(plan.bind.as_ref(), plan.port)?;
    let failed = |error| listen_error(wanted, &error);
    // A thread carries what comes over both of its sides: while it is at one, packets of the other wait here.
    let open = |address| {
        let socket = bind_shared(address)?;
        force_datagram_buffers(&socket)?;
        options.set_buffers(&socket).map(|()| socket)
    };
    let first = or_over_v4(wanted, open).map_err(failed)?;
    let address = first.local_addr().map_err(failed)?.as_socket().unwrap_or(wanted);
    let mut sockets = vec![first];
    for _ in 1..plan.threads.max(1) {
        sockets.push(open(address).map_err(failed)?);
    }
    if let Some(first) = sockets.first() {
        share_packets_of(first, ConnectionIds::default());
    }
    Ok(sockets)
}

/// What connections to the target need.
pub(super) struct FarSide {
    every: ClientSide,
    /// Where the target's tickets are, if early data is sent.
    tickets: Option<TargetTickets>,
    /// What the one connection needs whose session is kept, until it begins.
    kept: Option<ClientSide>,
    /// The session that is kept.
    session: Option<Arc<SessionFile>>,
}

impl FarSide {
    /// What a connection needs whose offer of protocols is the proxy's own.
    pub(super) fn every(&self) -> &ClientSide {
        &self.every
    }

    /// What a connection needs that offers these protocols.
    pub(super) fn offering(&self, protocols: Vec<Vec<u8>>) -> ClientSide {
        let tickets = self.tickets.as_ref().map(|tickets| tickets.of(&protocols));
        self.every.offering(protocols, tickets)
    }

    /// What the connection needs whose session is kept. It is given back if the target is lost before its
    /// handshake is done.
    pub(super) fn take_kept(&mut self) -> Option<ClientSide> {
        self.kept.take()
    }

    /// The connection whose session is kept came to nothing: another one has its turn.
    pub(super) fn give_back(&mut self, kept: ClientSide) {
        if self.session.as_ref().is_some_and(|session| session.begin_again()) {
            self.kept = Some(kept);
        }
    }
}

/// The endpoint of the thread of this number: clients come over its socket.
///
/// # Errors
///
/// Where QUIC can't be set up as the plan has it.
pub(super) fn endpoint(
    plan: &ProxyPlan,
    (sides, sessions): (&QuicSides, &Sessions),
    number: u32,
    socket: Socket,
    tickets: &TargetTickets,
) -> Result<(Endpoint, FarSide), Error> {
    let alpn =
        || -> Vec<Vec<u8>> { sides.alpn.iter().map(|name| name.clone().into_bytes()).collect() };
    let ids = ConnectionIds::default().numbered(number);
    // A client may wait for the target, whose own limit ends that, and goes on with its handshake after that.
    let handshake = plan.connect_timeout.saturating_add(Settings::default().handshake);
    let near = Settings { ids, migrates: true, handshake, ..settings(plan, sides) };
    let far = Settings { ids, keep_alive: Some(KEEP_ALIVE), ..settings(plan, sides) };
    let any_protocol = sides.alpn.is_none();
    let extras = || Extras { transport_close: true, any_protocol, ..Extras::default() };
    let trusts = |provider: &_| match &sides.authority {
        Some(authority) => Trusts::vouched(authority, provider),
        None => Ok(Trusts::Unread),
    };
    let mut server = server_tls(&sides.identity, &[], alpn())?;
    let mut client = client_tls(trusts, &[], alpn())?;
    let key_log = sides.options.key_log()?;
    if let Some(log) = &key_log {
        (server.key_log, client.key_log) = (Arc::clone(log) as Arc<_>, Arc::clone(log) as Arc<_>);
    }
    if let Some(cache) = &sessions.clients {
        SessionCache::serve(cache, &mut server);
    }
    if sides.early_data {
        (client.resumption, client.enable_early_data) = (tickets.of(&alpn()), true);
    }
    let server = ServerSide::new(Arc::new(server), &near, extras())?;
    let every = ClientSide::new(Arc::new(client), &far, extras())?;
    let kept = sessions.target.as_ref().map(|session| {
        let mut tls = session.client_tls()?;
        if let Some(log) = key_log {
            tls.key_log = log;
        }
        ClientSide::new(Arc::new(tls), &far, Extras { inputs: Some(session.inputs()), ..extras() })
    });
    let far_side = FarSide {
        every,
        tickets: sides.early_data.then(|| tickets.clone()),
        kept: kept.transpose()?,
        session: sessions.target.clone(),
    };
    let endpoint = Endpoint::over(Arc::new(socket), &near, Some(&server))?;
    Ok((endpoint.asking().connecting(far).looking(), far_side))
}

/// The name that TLS asks the target for (SNI). If the plan's name is none that TLS can send, it is the target's
/// address, for which TLS sends no name.
pub(super) fn server_name(plan: &ProxyPlan, sides: &QuicSides) -> String {
    if ServerName::try_from(sides.target_name.as_str()).is_ok() {
        sides.target_name.clone()
    } else {
        plan.target.ip().to_string()
    }
}

/// A socket for one connection to the target.
pub(super) fn target_socket(target: SocketAddr, options: &SideOptions) -> io::Result<Arc<Socket>> {
    let socket = connect_datagram(None, target, None)?;
    force_datagram_buffers(&socket)?;
    options.set_buffers(&socket)?;
    Ok(Arc::new(socket))
}
