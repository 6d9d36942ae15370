//! What an end does, and how QUIC is set up for that.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::{Pacing, QuicVersion};
use socket2::{Domain, Protocol, Socket, Type};

use super::files::Files;
use crate::access::Identity;
use crate::control::{
    CacheWriter, KeyLog, SessionCache, SessionFile, Trusts, client_tls, server_tls,
};
use crate::error::Error;
use crate::socket::connect_datagram;
use crate::transport::quic::{
    Acknowledging, ClientSide, Congestion, ConnectionIds, Endpoint, EventLog, Extras, ServerSide,
    Settings,
};

/// The UDP payload of the original's packets, bytes.
const PACKET_BYTES: u16 = 1_280;
/// What the original counts an initial window's packet as, bytes.
const WINDOW_PACKET_BYTES: u64 = 1_472;
/// A connection on which no packet arrives for so long has ended.
const IDLE: Duration = Duration::from_secs(30);
/// Streams that a client may have open.
const STREAMS: u32 = 100;
/// Packets for each acknowledgement that a peer is asked for: what the original's frames end up with, and the most
/// that its receivers grant.
const PACKETS_PER_ACK: u32 = 10;
/// What a client may have on its way to a server, which reads nothing but requests.
const REQUEST_BYTES: u32 = 16 << 10;
/// Connections of a server, and those of them whose handshake isn't done.
const MOST_CONNECTIONS: usize = 10_000;
const MOST_HALF_OPEN: usize = 4_096;

/// What QUIC connections of either end are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicPlan {
    /// Whether the congestion control is CUBIC and not NewReno.
    pub cubic: bool,
    /// The initial congestion window, packets.
    pub window_packets: u32,
    /// The receive windows of a stream and of a connection, bytes.
    pub receive_bytes: u64,
    /// The buffers of the UDP socket, bytes; the kernel grants what its limits allow.
    pub socket_bytes: u64,
    /// Whether several packets leave with one call.
    pub segments: bool,
    /// The acknowledgement delay that the peer is asked for; `None`: the extension isn't spoken.
    pub ack_delay: Option<Duration>,
    /// Whether a client speaks draft 29 of QUIC and not version 1.
    pub draft_29: bool,
    /// The file that TLS secrets are appended to (SSLKEYLOGFILE).
    pub key_log: Option<PathBuf>,
    /// The file that what happens to each connection goes to, with quicly's names.
    pub events: Option<PathBuf>,
}

/// What a client does.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The server.
    pub remote: SocketAddr,
    /// The name that the connection asks for; empty: none.
    pub server_name: String,
    /// What QUIC is told.
    pub quic: QuicPlan,
    /// How long to receive, from the first byte on; `None`: the first byte is the end.
    pub runtime: Option<Duration>,
    /// How long an interval is, ns.
    pub interval_ns: u64,
    /// The directory that the connection's log goes to (qlog).
    pub logs: Option<PathBuf>,
    /// The file that the session is kept in for the next run.
    pub session: Option<PathBuf>,
}

/// What a server does.
#[derive(Clone)]
pub struct ServerPlan {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate and key.
    pub identity: Identity,
    /// What QUIC is told.
    pub quic: QuicPlan,
    /// How long an interval of a connection is, ns.
    pub interval_ns: u64,
    /// The file that sessions are kept in across restarts; absent: none are resumed.
    pub session_cache: Option<PathBuf>,
}

impl QuicPlan {
    fn settings(&self) -> Settings {
        let window_bytes = u32::try_from(self.receive_bytes).unwrap_or(u32::MAX);
        let asks = |delay| Acknowledging {
            packets: Some(PACKETS_PER_ACK),
            delay: Some(delay),
            reordering: None,
        };
        Settings {
            congestion: if self.cubic { Congestion::Cubic } else { Congestion::Reno },
            initial_window_bytes: Some(u64::from(self.window_packets) * WINDOW_PACKET_BYTES),
            stream_window_bytes: window_bytes,
            connection_window_bytes: window_bytes,
            idle: IDLE,
            streams: 0,
            connections: MOST_CONNECTIONS,
            half_open_connections: MOST_HALF_OPEN,
            mtu_bytes: Some(PACKET_BYTES),
            acks: self.ack_delay.map(asks).unwrap_or_default(),
            // The original marks none.
            ecn: false,
            pacing: Pacing::Off,
            version: if self.draft_29 { QuicVersion::Draft29 } else { QuicVersion::V1 }.into(),
            ids: ConnectionIds { empty: true, ..ConnectionIds::default() },
            ..Settings::default()
        }
    }

    fn events(&self) -> Result<Option<Arc<EventLog>>, Error> {
        self.events.as_deref().map(EventLog::create).transpose()
    }

    fn extras(&self, events: Option<&Arc<EventLog>>) -> Extras {
        Extras {
            events: events.cloned(),
            counts: true,
            transport_close: true,
            no_ack_frequency: self.ack_delay.is_none(),
            older_acks: self.ack_delay.is_some(),
            ..Extras::default()
        }
    }

    /// What doesn't fit the kernel's own number is more than it grants.
    fn buffer_bytes(&self) -> usize {
        usize::try_from(self.socket_bytes.min(i32::MAX as u64)).unwrap_or(usize::MAX)
    }

    fn enlarge_buffers(&self, socket: &Socket) -> Result<(), Error> {
        let bytes = self.buffer_bytes();
        let set =
            socket.set_recv_buffer_size(bytes).and_then(|()| socket.set_send_buffer_size(bytes));
        set.map_err(|error| Error::Host(format!("can't set the buffers of a UDP socket: {error}")))
    }

    fn key_log(&self) -> Result<Option<Arc<KeyLog>>, Error> {
        let open = |path| KeyLog::open(path, "-l").map(Arc::new);
        self.key_log.as_deref().map(open).transpose()
    }
}

/// A client that is about to connect.
pub(super) struct ClientEnd {
    pub(super) endpoint: Endpoint,
    pub(super) client: ClientSide,
    /// Where events go.
    pub(super) events: Option<Arc<EventLog>>,
    /// What is kept for the next run.
    pub(super) session: Option<SessionFile>,
}

impl ClientPlan {
    /// The client's endpoint with its socket, and what belongs to it.
    ///
    /// # Errors
    ///
    /// Where this machine has no socket, or a log can't be written.
    pub(super) fn end(&self) -> Result<ClientEnd, Error> {
        // Trains of packets that come are taken whole whatever is asked for; no output shows that.
        let settings = self.quic.settings();
        let session = self.session.as_deref().map(SessionFile::open).transpose()?;
        let mut tls = match &session {
            Some(session) => session.client_tls()?,
            None => client_tls(|_| Ok(Trusts::Unread), &[], Vec::new())?,
        };
        if let Some(log) = self.quic.key_log()? {
            tls.key_log = log;
        }
        let events = self.quic.events()?;
        let inputs = session.as_ref().map(SessionFile::inputs);
        let extras = Extras { inputs, ..self.quic.extras(events.as_ref()) };
        let mut client = ClientSide::new(Arc::new(tls), &settings, extras)?;
        if let Some(directory) = &self.logs {
            client = client.with_logs(directory)?;
        }
        let socket = Arc::new(self.socket()?);
        let endpoint = Endpoint::over(socket, &settings, None)?.counting(true).looking();
        Ok(ClientEnd { endpoint, client, events, session })
    }

    fn socket(&self) -> Result<Socket, Error> {
        let buffer_bytes = Some(self.quic.buffer_bytes());
        connect_datagram(None, self.remote, buffer_bytes).map_err(|source| Error::Io {
            operation: "open a socket to",
            address: self.remote.to_string(),
            source,
        })
    }
}

impl ServerPlan {
    fn settings(&self) -> Settings {
        Settings {
            streams: STREAMS,
            offload: self.quic.segments,
            stream_window_bytes: REQUEST_BYTES,
            connection_window_bytes: REQUEST_BYTES,
            ..self.quic.settings()
        }
    }

    /// What the server needs to take connections, and what it writes to.
    ///
    /// # Errors
    ///
    /// Where the key is none, or a log can't be written.
    pub(super) fn side(&self) -> Result<(ServerSide, Files), Error> {
        let mut tls = server_tls(&self.identity, &[], Vec::new())?;
        if let Some(log) = self.quic.key_log()? {
            tls.key_log = log;
        }
        let cache = self.session_cache.as_deref().map(SessionCache::open).transpose()?;
        let writer = cache.as_ref().map(CacheWriter::start).transpose()?;
        if let Some(cache) = &cache {
            SessionCache::serve(cache, &mut tls);
        }
        let events = self.quic.events()?;
        let extras = Extras { any_protocol: true, ..self.quic.extras(events.as_ref()) };
        let side = ServerSide::new(Arc::new(tls), &self.settings(), extras)?;
        Ok((side, Files::new(events, writer)))
    }

    /// The server's endpoint over a socket that was bound for it.
    ///
    /// # Errors
    ///
    /// Where the socket can't be set up.
    pub(super) fn endpoint(&self, socket: Socket, side: &ServerSide) -> Result<Endpoint, Error> {
        let endpoint = Endpoint::over(Arc::new(socket), &self.settings(), Some(side))?;
        Ok(endpoint.counting(true).looking())
    }

    /// A socket that no other program shares.
    ///
    /// # Errors
    ///
    /// Where it can't listen there.
    pub(super) fn socket(&self) -> Result<Socket, Error> {
        let (domain, udp) = (Domain::for_address(self.address), Some(Protocol::UDP));
        let bound = Socket::new(domain, Type::DGRAM.nonblocking(), udp)
            .and_then(|socket| socket.bind(&self.address.into()).map(|()| socket));
        let socket = bound.map_err(|source| Error::Io {
            operation: "listen for QUIC on",
            address: self.address.to_string(),
            source,
        })?;
        self.quic.enlarge_buffers(&socket)?;
        Ok(socket)
    }
}
