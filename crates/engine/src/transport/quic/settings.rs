//! What an endpoint and its connections are told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, VarInt,
};

use super::session::{ClientCrypto, Extras, ServerCrypto};
use crate::error::Error;

/// Streams that a peer may have open until it is told of more. Each that is allowed costs memory
/// whether it is used or not.
const FIRST_STREAMS: u32 = 16;
/// What one stream may have on its way. A receiver holds at most 1,024 separate pieces of a stream,
/// so that a larger window would end a connection that loses more than this many packets of it.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// The same of all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// A server holds so many connections over one socket, unless told otherwise.
const MOST_CONNECTIONS: usize = 100_000;
/// The longest UDP payload that a path is tried with: what fits into an Ethernet frame over IPv4 and
/// over IPv6.
const MOST_PAYLOAD_BYTES: [u16; 2] = [1_472, 1_452];

/// What a sender may have unacknowledged until its congestion window is known.
const FIRST_SEND_WINDOW_BYTES: u64 = 1 << 20;

/// Which congestion control connections have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Congestion {
    #[default]
    Cubic,
    Reno,
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
            Self::Reno => configured!(NewRenoConfig),
            Self::Bbr => configured!(BbrConfig),
        }
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
    /// A connection that hears nothing for so long has ended.
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
    /// Bytes of the largest UDP payload; `None`: found out, up to what Ethernet carries.
    pub(crate) mtu_bytes: Option<u16>,
    /// Whether streams of a connection send in turns, a packet each. If not, what came first to be sent
    /// goes first: answers are whole early, and the next requests come while others are answered.
    pub(crate) turns: bool,
    /// Packets that the peer may leave without an acknowledgement; `None`: what it likes.
    pub(crate) ack_packets: Option<u32>,
    /// Whether several packets leave with one call, where the kernel can.
    pub(crate) offload: bool,
    /// Whether packets are marked as able to carry congestion marks (ECN).
    pub(crate) ecn: bool,
    /// The differentiated-services code point.
    pub(crate) dscp: u8,
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
            mtu_bytes: None,
            turns: true,
            ack_packets: None,
            offload: true,
            ecn: true,
            dscp: 0,
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
        if let Some(bytes) = self.mtu_bytes {
            config.max_udp_payload_size(bytes).map_err(|_| {
                Error::Plan(format!("a QUIC packet of {bytes} bytes: 1200 to 65527 can be had"))
            })?;
        }
        Ok(config)
    }

    fn transport(&self, most_payload_bytes: u16) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        let idle = VarInt::try_from(self.idle.as_millis() as u64).unwrap_or(VarInt::MAX);
        config
            .max_concurrent_bidi_streams(self.streams.into())
            .max_concurrent_uni_streams(self.streams.into())
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .keep_alive_interval(self.keep_alive)
            .stream_receive_window(self.stream_window_bytes.into())
            .receive_window(self.connection_window_bytes.into())
            .send_window(FIRST_SEND_WINDOW_BYTES)
            .congestion_controller_factory(self.congestion.factory(self.initial_window_bytes))
            .enable_segmentation_offload(self.offload)
            .send_fairness(self.turns);
        if let Some(packets) = self.ack_packets {
            // The threshold is the number that may come without one.
            let mut acks = AckFrequencyConfig::default();
            acks.ack_eliciting_threshold(packets.saturating_sub(1).into());
            config.ack_frequency_config(Some(acks));
        }
        if let Some(bytes) = self.mtu_bytes {
            config.initial_mtu(bytes).mtu_discovery_config(None);
        } else {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(most_payload_bytes);
            config.mtu_discovery_config(Some(discovery));
        }
        Arc::new(config)
    }
}

/// What a client needs to make connections.
#[derive(Clone)]
pub(crate) struct ClientSide {
    /// For peers at addresses of IPv4, and of IPv6.
    configs: [ClientConfig; 2],
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
        let crypto = ClientCrypto::new(tls, extras).ok_or_else(no_cipher)?;
        let crypto = Arc::new(crypto);
        let configs = MOST_PAYLOAD_BYTES.map(|bytes| {
            let mut config = ClientConfig::new(Arc::clone(&crypto) as _);
            config.transport_config(settings.transport(bytes));
            config
        });
        Ok(Self { configs })
    }

    pub(super) fn config(&self, peer: SocketAddr) -> ClientConfig {
        let [ipv4, ipv6] = &self.configs;
        if is_ipv6(peer) { ipv6 } else { ipv4 }.clone()
    }
}

/// What a server needs to take connections.
#[derive(Clone)]
pub(crate) struct ServerSide {
    /// For peers at addresses of IPv4, and of IPv6.
    configs: [Arc<ServerConfig>; 2],
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
        let crypto = ServerCrypto::new(tls, extras).ok_or_else(no_cipher)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.migration(false);
        let configs = MOST_PAYLOAD_BYTES.map(|bytes| {
            let mut config = config.clone();
            config.transport_config(settings.transport(bytes));
            Arc::new(config)
        });
        Ok(Self { configs })
    }

    pub(super) fn config(&self, peer: SocketAddr) -> Arc<ServerConfig> {
        let [ipv4, ipv6] = &self.configs;
        Arc::clone(if is_ipv6(peer) { ipv6 } else { ipv4 })
    }
}

fn is_ipv6(peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_ipv6()
}

fn no_cipher() -> Error {
    Error::Host("can't set up QUIC: TLS here has no AES-128-GCM".to_owned())
}
