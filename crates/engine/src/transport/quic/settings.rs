//! What an endpoint and its connections are told.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::{Pacing, QuicVersion};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, VarInt,
};
use rustls::client::Resumption;

mod payload;

use super::events::EventLog;
use super::governor::{GovernedFactory, first_send_window_bytes};
use super::hystart::HystartConfig;
use super::ids::ConnectionIds;
use super::qlog::{self, Log};
use super::session::{ClientCrypto, Extras, ServerCrypto};
use crate::error::Error;
pub(crate) use payload::{LEAST_PAYLOAD_BYTES, MOST_JUMBO_CONNECTIONS};
use payload::{MOST_JUMBO_BYTES, MOST_PAYLOAD_BYTES, of_family, route_payload_bytes};

/// Streams that a peer may have open until it is told of more. Each that is allowed costs memory
/// whether it is used or not.
const FIRST_STREAMS: u32 = 16;
/// What one stream may have on its way. A receiver holds at most 1,024 separate pieces of a stream,
/// so that a larger window would end a connection that loses more than this many packets of it.
pub(super) const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// The same of all streams of a connection together.
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// A server holds so many connections over one socket, unless told otherwise.
const MOST_CONNECTIONS: usize = 100_000;
/// A connection keeps to short packets for so long after losses that look like a path which carries no longer ones. The
/// crate's minute would outlast most tests. RFC 8899, section 5.2, looks for longer ones again at once.
const BLACK_HOLE_COOLDOWN: Duration = Duration::from_secs(1);
/// A connection with datagrams searches again so long after a search has ended, since a search in an outage finds too
/// little. The crate waits 10 minutes. These searches try few lengths: datagrams use no jumbo frames.
const DATAGRAM_SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// What the packets of a handshake are filled up to at most: the crate gives the length in their header two bytes.
const MOST_FIRST_BYTES: u16 = 16_000;
/// How long a client's handshake may take, unless told otherwise.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What a server keeps of one client that it has not decided about, and of all of them over one socket.
const UNDECIDED_BYTES: u64 = 64 << 10;
pub(super) const UNDECIDED_TOTAL_BYTES: u64 = 16 << 20;
/// Versions by their numbers on the wire (RFC 9000, section 15).
const VERSION_1: u32 = 1;
const DRAFT_29: u32 = 0xff00_001d;
/// What may wait to be sent in datagrams: a few trains, so that none waits for long.
const DATAGRAMS_TAKEN_BYTES: usize = 256 << 10;
/// What may have come in datagrams until it is taken: more than a turn takes in, so that none is dropped
/// here.
const DATAGRAMS_RECEIVED_BYTES: usize = 8 << 20;

/// Which congestion control connections have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    #[default]
    Cubic,
    /// Cubic with HyStart++ (RFC 9406).
    CubicHystart,
    /// NewReno (RFC 9002, section 7).
    Reno,
    /// BBR, version 1.
    Bbr,
}

impl Congestion {
    /// The names as users know them.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "cubic" => Self::Cubic,
            "reno" => Self::Reno,
            "bbr" => Self::Bbr,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::CubicHystart => "cubic-hystart",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }

    fn factory(self, initial_bytes: Option<u64>) -> Arc<dyn ControllerFactory + Send + Sync> {
        macro_rules! configured {
            ($config:ty) => {{
                let mut config = <$config>::default();
                if let Some(bytes) = initial_bytes {
                    config.initial_window(bytes);
                }
                Arc::new(config)
            }};
        }
        match self {
            Self::Cubic => configured!(CubicConfig),
            Self::CubicHystart => {
                let mut cubic = CubicConfig::default();
                if let Some(bytes) = initial_bytes {
                    cubic.initial_window(bytes);
                }
                Arc::new(HystartConfig { cubic })
            }
            Self::Reno => configured!(NewRenoConfig),
            Self::Bbr => configured!(BbrConfig),
        }
    }
}

/// The versions that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// A client speaks this one, and a server takes every version that there is here.
    All(QuicVersion),
    /// Both ends speak this one, and a server answers others with it (version negotiation).
    Only(QuicVersion),
}

impl From<QuicVersion> for Versions {
    fn from(version: QuicVersion) -> Self {
        Self::All(version)
    }
}

/// What the connections of an endpoint are told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) congestion: Congestion,
    /// The congestion window that a connection begins with; `None`: ten packets (RFC 9002).
    pub(crate) initial_window_bytes: Option<u64>,
    /// Flow control of a stream and of a connection, as the receiver grants it.
    pub(crate) stream_window_bytes: u32,
    pub(crate) connection_window_bytes: u32,
    /// A connection on which no packet arrives for so long has ended.
    pub(crate) idle: Duration,
    /// A silent connection says something this often.
    pub(crate) keep_alive: Option<Duration>,
    /// Streams of either sort that the peer may open at first.
    pub(crate) streams: u32,
    /// Connections that a server holds over one socket, those that are about to be forgotten included.
    pub(crate) connections: usize,
    /// Those whose handshake isn't done. From a quarter on a client has to show its address first; when
    /// there are more, the place that most come from makes room.
    pub(crate) half_open_connections: usize,
    /// How long a client's handshake may take, a decision of the endpoint's user included.
    pub(crate) handshake: Duration,
    /// Bytes of the largest UDP payload; `None`: found out, up to what Ethernet carries.
    pub(crate) mtu_bytes: Option<u16>,
    /// Whether streams of a connection send in turns, a packet each. If not, what came first to be sent
    /// goes first: answers are whole early, and the next requests come while others are answered.
    pub(crate) turns: bool,
    /// What the peer is asked for in acknowledging.
    pub(crate) acks: Acknowledging,
    /// Whether several packets leave with one call, where the kernel can.
    pub(crate) offload: bool,
    /// Whether packets are marked as able to carry congestion marks (ECN).
    pub(crate) ecn: bool,
    /// The differentiated-services code point.
    pub(crate) dscp: u8,
    /// Whether the peer may send datagrams (RFC 9221).
    pub(crate) datagrams: bool,
    /// The longest UDP payload that is looked for; `None`: what Ethernet carries, or the route.
    pub(crate) mtu_most_bytes: Option<u16>,
    /// Whether that is what the route of a connected socket carries, jumbo frames included.
    pub(crate) jumbo: bool,
    pub(crate) pacing: Pacing,
    pub(crate) version: Versions,
    /// What stands in connection ids; the mark must be the peer's too.
    pub(crate) ids: ConnectionIds,
    /// Whether a server's connections go on when their client's address changes. Its socket must be one that
    /// hears the new address.
    pub(crate) migrates: bool,
}

/// What a peer is asked for in acknowledging (draft-ietf-quic-ack-frequency); `None`: as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledging {
    /// At least every so many packets.
    pub(crate) packets: Option<u32>,
    /// After so long at the latest.
    pub(crate) delay: Option<Duration>,
    /// At once after so many packets out of order; 0: not.
    pub(crate) reordering: Option<u32>,
}

impl Acknowledging {
    fn config(self) -> Option<AckFrequencyConfig> {
        if self == Self::default() {
            return None;
        }
        let mut config = AckFrequencyConfig::default();
        if let Some(packets) = self.packets {
            // The threshold is the number that may come without one.
            config.ack_eliciting_threshold(packets.saturating_sub(1).into());
        }
        if let Some(packets) = self.reordering {
            config.reordering_threshold(packets.into());
        }
        config.max_ack_delay(self.delay);
        Some(config)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            congestion: Congestion::default(),
            initial_window_bytes: None,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            idle: Duration::from_secs(30),
            keep_alive: None,
            streams: FIRST_STREAMS,
            connections: MOST_CONNECTIONS,
            half_open_connections: MOST_CONNECTIONS,
            handshake: HANDSHAKE,
            mtu_bytes: None,
            turns: true,
            acks: Acknowledging::default(),
            offload: true,
            ecn: true,
            dscp: 0,
            datagrams: false,
            mtu_most_bytes: None,
            jumbo: false,
            pacing: Pacing::On,
            version: QuicVersion::V1.into(),
            ids: ConnectionIds::default(),
            migrates: false,
        }
    }
}

impl Settings {
    pub(super) fn endpoint(&self, reset_key: [u8; 32]) -> Result<EndpointConfig, Error> {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &reset_key);
        let mut config = EndpointConfig::new(Arc::new(key));
        // The fixed bit tells QUIC's datagrams from ours (RFC 9443), so peers must not play with
        // it (RFC 9287).
        config.grease_quic_bit(false);
        self.ids.apply(&mut config);
        if let Versions::Only(version) = self.version {
            config.supported_versions(vec![version_number(version)]);
        }
        let asked = self.mtu_bytes.or(self.mtu_most_bytes);
        let [jumbo_bytes, _] = MOST_JUMBO_BYTES;
        // The other end's route may carry longer packets than this one's.
        if let Some(bytes) = asked.or(self.jumbo.then_some(jumbo_bytes)) {
            config.max_udp_payload_size(bytes).map_err(|_| {
                Error::Plan(format!(
                    "a QUIC packet of {bytes} bytes is out of range: 1200 to 65527"
                ))
            })?;
        }
        Ok(config)
    }

    /// What the connections over a socket are told that is connected to a peer by a route with an MTU, where
    /// that means something; `None`: as over any other.
    pub(super) fn route_transport(
        &self,
        route: impl FnOnce() -> Option<(SocketAddr, u32)>,
    ) -> Option<Arc<TransportConfig>> {
        let found_out = self.mtu_bytes.is_none() && self.mtu_most_bytes.is_none();
        let (peer, mtu_bytes) = (self.jumbo && found_out).then(route).flatten()?;
        Some(self.transport(route_payload_bytes(peer, mtu_bytes), None))
    }

    /// `events`: where what the congestion control of each connection does is written down.
    fn transports(&self, events: Option<&Arc<EventLog>>) -> Transports {
        Transports(MOST_PAYLOAD_BYTES.map(|most_bytes| self.transport(most_bytes, events)))
    }

    fn transport(
        &self,
        most_payload_bytes: u16,
        events: Option<&Arc<EventLog>>,
    ) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        let idle = VarInt::try_from(self.idle.as_millis() as u64).unwrap_or(VarInt::MAX);
        config
            .max_concurrent_bidi_streams(self.streams.into())
            .max_concurrent_uni_streams(self.streams.into())
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .keep_alive_interval(self.keep_alive)
            .stream_receive_window(self.stream_window_bytes.into())
            .receive_window(self.connection_window_bytes.into())
            .send_window(first_send_window_bytes(self.pacing, self.mtu_bytes.unwrap_or(0)))
            .congestion_controller_factory(Arc::new(GovernedFactory {
                inner: self.congestion.factory(self.initial_window_bytes),
                pacing: self.pacing,
                cuts: self.congestion != Congestion::Bbr,
                events: events.cloned(),
            }))
            .ack_frequency_config(self.acks.config())
            .enable_segmentation_offload(self.offload)
            .send_fairness(self.turns)
            .datagram_receive_buffer_size(self.datagrams.then_some(DATAGRAMS_RECEIVED_BYTES))
            .datagram_send_buffer_size(DATAGRAMS_TAKEN_BYTES);
        if let Some(bytes) = self.mtu_bytes {
            // As the least too: losses would otherwise be taken for a path that carries less.
            let first_bytes = bytes.min(MOST_FIRST_BYTES);
            config.initial_mtu(bytes).min_mtu(first_bytes).mtu_discovery_config(None);
        } else {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery
                .upper_bound(self.mtu_most_bytes.unwrap_or(most_payload_bytes))
                .black_hole_cooldown(BLACK_HOLE_COOLDOWN);
            if self.datagrams {
                discovery.interval(DATAGRAM_SEARCH_INTERVAL);
            }
            config.mtu_discovery_config(Some(discovery));
        }
        Arc::new(config)
    }
}

fn version_number(version: QuicVersion) -> u32 {
    match version {
        QuicVersion::V1 => VERSION_1,
        QuicVersion::Draft29 => DRAFT_29,
    }
}

/// What connections to peers at addresses of IPv4 are told, and of IPv6.
#[derive(Clone)]
struct Transports([Arc<TransportConfig>; 2]);

impl Transports {
    fn of(&self, peer: SocketAddr) -> Arc<TransportConfig> {
        Arc::clone(of_family(&self.0, peer))
    }
}

/// What a client needs to make connections.
#[derive(Clone)]
pub(crate) struct ClientSide {
    /// Without what is told of the path.
    config: ClientConfig,
    crypto: Arc<ClientCrypto>,
    transports: Transports,
    version: u32,
    ids: ConnectionIds,
    /// Where the log of each connection goes.
    logs: Option<PathBuf>,
}

impl ClientSide {
    /// # Errors
    ///
    /// Where TLS has no AES-128-GCM, which the first packets of every connection need.
    pub(crate) fn new(
        tls: Arc<rustls::ClientConfig>,
        settings: &Settings,
        extras: Extras,
    ) -> Result<Self, Error> {
        let ids = settings.ids;
        let extras = Extras { mark: ids.mark, ..extras };
        let transports = settings.transports(extras.events.as_ref());
        let crypto = Arc::new(ClientCrypto::new(tls, extras).ok_or_else(no_cipher)?);
        let (Versions::All(version) | Versions::Only(version)) = settings.version;
        let version = version_number(version);
        let config = Self::config_of(&crypto, version, ids);
        Ok(Self { config, crypto, transports, version, ids, logs: None })
    }

    fn config_of(crypto: &Arc<ClientCrypto>, version: u32, ids: ConnectionIds) -> ClientConfig {
        let mut config = ClientConfig::new(Arc::clone(crypto) as Arc<_>);
        config.version(version);
        if ids.mark.is_some() {
            config.initial_dst_cid_provider(Arc::new(move || ids.first()));
        }
        config
    }

    /// The same, which offers these application protocols, and has its tickets elsewhere where that is given.
    pub(crate) fn offering(&self, protocols: Vec<Vec<u8>>, tickets: Option<Resumption>) -> Self {
        let crypto = Arc::new(self.crypto.offering(protocols, tickets));
        let config = Self::config_of(&crypto, self.version, self.ids);
        Self { config, crypto, ..self.clone() }
    }

    /// The same, with a log (qlog) of every connection in this directory.
    ///
    /// # Errors
    ///
    /// Where nothing can be written there.
    pub(crate) fn with_logs(self, directory: &Path) -> Result<Self, Error> {
        qlog::prepare(directory)?;
        Ok(Self { logs: Some(directory.to_owned()), ..self })
    }

    /// What a connection to this peer needs, and its log; `route`: what is told of the path, where its
    /// route is known.
    pub(super) fn config(
        &self,
        peer: SocketAddr,
        route: Option<&Arc<TransportConfig>>,
    ) -> io::Result<(ClientConfig, Option<Arc<Log>>)> {
        let (mut config, log) = self.logged()?;
        config.transport_config(route.map_or_else(|| self.transports.of(peer), Arc::clone));
        Ok((config, log))
    }

    fn logged(&self) -> io::Result<(ClientConfig, Option<Arc<Log>>)> {
        let Some(directory) = &self.logs else { return Ok((self.config.clone(), None)) };
        let first = self.ids.first();
        let log = Log::create(directory, &first)?;
        let mut config = ClientConfig::new(Arc::new(self.crypto.logged(Arc::clone(&log))));
        config.version(self.version).initial_dst_cid_provider(Arc::new(move || first));
        Ok((config, Some(log)))
    }
}

/// What a server needs to take connections.
#[derive(Clone)]
pub(crate) struct ServerSide {
    /// Without what is told of the path.
    config: ServerConfig,
    crypto: Arc<ServerCrypto>,
    transports: Transports,
}

impl ServerSide {
    /// # Errors
    ///
    /// As [`ClientSide::new`].
    pub(crate) fn new(
        tls: Arc<rustls::ServerConfig>,
        settings: &Settings,
        extras: Extras,
    ) -> Result<Self, Error> {
        let extras = Extras { mark: settings.ids.mark, ..extras };
        let transports = settings.transports(extras.events.as_ref());
        let crypto = Arc::new(ServerCrypto::new(tls, extras).ok_or_else(no_cipher)?);
        let mut config = ServerConfig::with_crypto(Arc::clone(&crypto) as Arc<_>);
        config
            .migration(settings.migrates)
            .incoming_buffer_size(UNDECIDED_BYTES)
            .incoming_buffer_size_total(UNDECIDED_TOTAL_BYTES);
        Ok(Self { config, crypto, transports })
    }

    /// What a connection from this peer needs; `route` as a client's.
    pub(super) fn config(
        &self,
        peer: SocketAddr,
        route: Option<&Arc<TransportConfig>>,
    ) -> Arc<ServerConfig> {
        let mut config = self.config.clone();
        config.transport_config(route.map_or_else(|| self.transports.of(peer), Arc::clone));
        Arc::new(config)
    }

    /// The same for one connection, which agrees on this application protocol and on no other.
    pub(super) fn agreeing(&self, config: &ServerConfig, protocol: Vec<u8>) -> Arc<ServerConfig> {
        let mut config = config.clone();
        config.crypto = Arc::new(self.crypto.agreeing(protocol));
        Arc::new(config)
    }
}

fn no_cipher() -> Error {
    Error::Host("can't set up QUIC: TLS here has no AES-128-GCM".to_owned())
}
