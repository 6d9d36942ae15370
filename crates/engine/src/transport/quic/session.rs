//! The TLS session of a connection: rustls's, with transport parameters that can have more than
//! the protocol's own, and packets that can go in clear where both ends ask for it.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::HandshakeKind;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{
    ClientConnection, Connection, KeyChange, Secrets, ServerConnection, Suite, Version,
};

mod extras;
mod first;
mod retry;
mod said;

use super::clear::{ClearHeader, ClearPacket};
use super::counted::PacketCounts;
use super::events::ConnectionEvents;
use super::hello::{Hello, Offer, parameter, parameter_ids};
use super::keys::ClosingPacket;
use super::older_acks::OlderAcks;
use super::qlog::{ACK_DELAY_EXPONENT, Log, LoggedPacket, PacketKind};
use extras::CLEAR_PACKETS;
pub(crate) use extras::Extras;
use first::noted;
pub(super) use first::{initial_suite, version_of};
pub(crate) use said::Agreed;
pub(super) use said::Said;

/// The transport parameter that has the exponent of delays; at most 20 (RFC 9000, section 18.2).
const ACK_DELAY: u64 = 0x0a;

/// TLS as the clients of an endpoint speak it.
pub(super) struct ClientCrypto {
    tls: Arc<rustls::ClientConfig>,
    suite: Suite,
    extras: Extras,
    /// Where the packets of the one connection that it is for are written down.
    log: Option<Arc<Log>>,
}

/// TLS as its servers speak it.
pub(super) struct ServerCrypto {
    tls: Arc<rustls::ServerConfig>,
    suite: Suite,
    extras: Extras,
    /// Has the keys of first packets and the tags of retries.
    standard: Arc<QuicServerConfig>,
    /// The number of the first packet that was opened last: its session begins next.
    first: Arc<AtomicU64>,
}

impl ClientCrypto {
    /// `None` where TLS has no AES-128-GCM, which the first packets of every connection need.
    pub(super) fn new(tls: Arc<rustls::ClientConfig>, extras: Extras) -> Option<Self> {
        Some(Self { tls, suite: initial_suite()?, extras, log: None })
    }

    /// The same, which offers these application protocols, and has its tickets elsewhere where that is given.
    pub(super) fn offering(&self, protocols: Vec<Vec<u8>>, tickets: Option<Resumption>) -> Self {
        let (mut tls, extras) = (Arc::clone(&self.tls), self.extras.clone());
        let changed = Arc::make_mut(&mut tls);
        changed.alpn_protocols = protocols;
        if let Some(tickets) = tickets {
            changed.resumption = tickets;
        }
        Self { tls, suite: self.suite, extras, log: self.log.clone() }
    }

    /// The same for one connection, whose packets are written down.
    pub(super) fn logged(&self, log: Arc<Log>) -> Self {
        let (tls, extras) = (Arc::clone(&self.tls), self.extras.clone());
        Self { tls, suite: self.suite, extras, log: Some(log) }
    }
}

impl ServerCrypto {
    /// As [`ClientCrypto::new`].
    pub(super) fn new(tls: Arc<rustls::ServerConfig>, extras: Extras) -> Option<Self> {
        let suite = initial_suite()?;
        let standard = QuicServerConfig::with_initial(Arc::clone(&tls), suite).ok()?;
        Some(Self { tls, suite, extras, standard: Arc::new(standard), first: Arc::default() })
    }

    /// The same, which agrees on this application protocol and on no other.
    pub(super) fn agreeing(&self, protocol: Vec<u8>) -> Self {
        let mut tls = Arc::clone(&self.tls);
        Arc::make_mut(&mut tls).alpn_protocols = vec![protocol];
        let extras = Extras { any_protocol: false, ..self.extras.clone() };
        let (standard, first) = (Arc::clone(&self.standard), Arc::clone(&self.first));
        Self { tls, suite: self.suite, extras, standard, first }
    }
}

impl crypto::ClientConfig for ClientCrypto {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let version = version_of(version)?;
        let wrong = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| wrong())?.to_owned();
        let bytes = self.extras.render_parameters(parameters, self.extras.clear_packets);
        if let Some(inputs) = self.extras.inputs {
            inputs.record_start(version, server_name, &bytes);
        }
        let tls = ClientConnection::new(Arc::clone(&self.tls), version, name, bytes)
            .map_err(|_| wrong())?;
        let stage = Stage::Speaking(Box::new(Connection::Client(tls)));
        let extras = self.extras.clone();
        let session = QuicTls::new(Side::Client, version, self.suite, extras, stage);
        Ok(Box::new(QuicTls { log: self.log.clone(), ..session }))
    }
}

impl crypto::ServerConfig for ServerCrypto {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        let keys = self.standard.initial_keys(version, dst_cid)?;
        Ok(if self.extras.counts { noted(keys, &self.first) } else { keys })
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.standard.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        // The version was looked at when the keys of the first packet were asked for.
        let version = version_of(version).unwrap_or_default();
        let tls = Arc::clone(&self.tls);
        let bytes = |clear| self.extras.render_parameters(parameters, clear);
        let stage = if self.extras.clear_packets || self.extras.any_protocol {
            let with_clear = bytes(self.extras.clear_packets);
            let without = bytes(false);
            Stage::Listening { tls, received: Vec::new(), with_clear, without }
        } else {
            Stage::begun(tls, version, bytes(false))
        };
        let session = QuicTls::new(Side::Server, version, self.suite, self.extras.clone(), stage);
        if let Some(counts) = &session.counts {
            counts.record_opened(PacketKind::Initial, self.first.load(Ordering::Relaxed));
        }
        Box::new(session)
    }
}

/// How far a session has come.
enum Stage {
    /// A server that chooses its answer by the client's first message: what it has received, and the
    /// parameters of either answer.
    Listening {
        tls: Arc<rustls::ServerConfig>,
        received: Vec<u8>,
        with_clear: Vec<u8>,
        without: Vec<u8>,
    },
    Speaking(Box<Connection>),
    /// The machine could not begin.
    Failed,
}

impl Stage {
    fn begun(tls: Arc<rustls::ServerConfig>, version: Version, parameters: Vec<u8>) -> Self {
        ServerConnection::new(tls, version, parameters)
            .map_or(Self::Failed, |tls| Self::Speaking(Box::new(Connection::Server(tls))))
    }
}

/// One connection's session.
struct QuicTls {
    side: Side,
    version: Version,
    suite: Suite,
    extras: Extras,
    stage: Stage,
    has_handshake_data: bool,
    next_secrets: Option<Secrets>,
    is_clear: bool,
    log: Option<Arc<Log>>,
    counts: Option<Arc<PacketCounts>>,
    events: Option<ConnectionEvents>,
}

impl QuicTls {
    fn new(side: Side, version: Version, suite: Suite, extras: Extras, stage: Stage) -> Self {
        Self {
            counts: extras.counts.then(Arc::default),
            events: extras.events.as_ref().map(|log| log.connection()),
            side,
            version,
            suite,
            extras,
            stage,
            has_handshake_data: false,
            next_secrets: None,
            is_clear: false,
            log: None,
        }
    }

    fn tls(&self) -> Option<&Connection> {
        match &self.stage {
            Stage::Speaking(tls) => Some(tls),
            Stage::Listening { .. } | Stage::Failed => None,
        }
    }

    /// Hands the client's first words over when they are all there; before, keeps them.
    fn listen(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, TransportError> {
        let Stage::Listening { tls, received, with_clear, without } = &mut self.stage else {
            return Ok(Some(bytes.to_vec()));
        };
        received.extend_from_slice(bytes);
        let Offer { parameters, protocols } = match Hello::parse(received) {
            Hello::Part => return Ok(None),
            Hello::Whole(offer) => offer,
            // TLS itself says what is wrong with it.
            Hello::Wrong => Offer::default(),
        };
        let clear = parameters.contains(&CLEAR_PACKETS);
        let parameters = std::mem::take(if clear { with_clear } else { without });
        let (mut tls, received) = (Arc::clone(tls), std::mem::take(received));
        if let Some(protocol) = protocols.into_iter().next().filter(|_| self.extras.any_protocol) {
            Arc::make_mut(&mut tls).alpn_protocols = vec![protocol];
        }
        self.stage = Stage::begun(tls, self.version, parameters);
        Ok(Some(received))
    }

    /// Whether both ends want their packets in clear.
    fn agreed_on_clear(&self) -> bool {
        let theirs = self.tls().and_then(Connection::quic_transport_parameters);
        self.extras.clear_packets
            && theirs.is_some_and(|bytes| parameter_ids(bytes).contains(&CLEAR_PACKETS))
    }

    fn packet_key(&self, key: Box<dyn rustls::quic::PacketKey>) -> Box<dyn crypto::PacketKey> {
        let closes = self.extras.transport_close;
        let key: Box<dyn crypto::PacketKey> =
            if self.is_clear { Box::new(ClearPacket) } else { Box::new(key) };
        let key = self.logged(self.in_older_words(key), PacketKind::Data);
        if closes { Box::new(ClosingPacket(key)) } else { key }
    }

    /// The same key, with a peer's older words for acknowledgements where it has no others.
    fn in_older_words(&self, key: Box<dyn crypto::PacketKey>) -> Box<dyn crypto::PacketKey> {
        let theirs = self.tls().and_then(Connection::quic_transport_parameters);
        let is_older = theirs.is_some_and(|bytes| self.extras.older_acks_of(bytes).is_some());
        if is_older { Box::new(OlderAcks(key)) } else { key }
    }

    /// The same key, its packets counted and written down where they are to be.
    fn logged(
        &self,
        inner: Box<dyn crypto::PacketKey>,
        kind: PacketKind,
    ) -> Box<dyn crypto::PacketKey> {
        let inner: Box<dyn crypto::PacketKey> = match &self.counts {
            None => inner,
            Some(counts) => Box::new(counts.counted(inner, kind)),
        };
        let inner = match &self.events {
            None => inner,
            Some(events) => events.traced(inner, kind),
        };
        match &self.log {
            None => inner,
            Some(log) => {
                let theirs = self.tls().filter(|_| kind == PacketKind::Data);
                let ack_delay_exponent = theirs
                    .and_then(Connection::quic_transport_parameters)
                    .and_then(|bytes| parameter(bytes, ACK_DELAY).and_then(|one| one.first()))
                    .map_or(ACK_DELAY_EXPONENT, |exponent| *exponent);
                Box::new(LoggedPacket { inner, log: Arc::clone(log), kind, ack_delay_exponent })
            }
        }
    }
}

impl crypto::Session for QuicTls {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        let keys = self.suite.keys(dst_cid, side, self.version);
        Keys {
            header: KeyPair {
                local: Box::new(keys.local.header),
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: self.logged(Box::new(keys.local.packet), PacketKind::Initial),
                remote: self.logged(Box::new(keys.remote.packet), PacketKind::Initial),
            },
        }
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let tls = self.tls().filter(|_| self.has_handshake_data)?;
        let suite = tls.negotiated_cipher_suite().map(|suite| u16::from(suite.suite()));
        let group = tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        let resumed = tls.handshake_kind() == Some(HandshakeKind::Resumed);
        let opened = self.counts.as_ref().map(|counts| counts.opened());
        let sent_stream_bytes = self.counts.as_ref().map(|counts| counts.sent_stream_bytes());
        let agreed = Agreed { suite, group, resumed };
        let protocol = tls.alpn_protocol().map(<[u8]>::to_vec);
        Some(Box::new(Said { agreed, protocol, opened, sent_stream_bytes }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain = self.tls()?.peer_certificates()?;
        let owned: Vec<CertificateDer<'static>> =
            chain.iter().map(|one| one.clone().into_owned()).collect();
        Some(Box::new(owned))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn crypto::PacketKey>)> {
        let keys = self.tls()?.zero_rtt_keys()?;
        let packet = self.logged(Box::new(keys.packet), PacketKind::Early);
        Some((Box::new(keys.header), self.in_older_words(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match self.tls()? {
            Connection::Client(tls) => {
                let is_accepted = tls.is_early_data_accepted();
                if let Some(events) = self.events.as_ref().filter(|_| !is_accepted) {
                    events.record_early_refused();
                }
                Some(is_accepted)
            }
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls().is_none_or(|tls| tls.is_handshaking())
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let Some(bytes) = self.listen(bytes)? else { return Ok(false) };
        if let Some(inputs) = self.extras.inputs {
            inputs.record_heard(&bytes);
        }
        let Stage::Speaking(tls) = &mut self.stage else {
            let code = TransportErrorCode::INTERNAL_ERROR;
            return Err(TransportError { code, frame: None, reason: "TLS could not begin".into() });
        };
        if let Err(error) = tls.read_hs(&bytes) {
            let code = tls.alert().map_or(TransportErrorCode::PROTOCOL_VIOLATION, |alert| {
                TransportErrorCode::crypto(alert.into())
            });
            return Err(TransportError { code, frame: None, reason: error.to_string() });
        }
        let named = match &**tls {
            Connection::Server(tls) => tls.server_name().is_some(),
            Connection::Client(_) => false,
        };
        let is_there = named || tls.alpn_protocol().is_some() || !tls.is_handshaking();
        if let Some(counts) = &self.counts {
            counts.record_handshake(!tls.is_handshaking());
        }
        let is_news = is_there && !self.has_handshake_data;
        self.has_handshake_data |= is_there;
        Ok(is_news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        match self.tls().and_then(Connection::quic_transport_parameters) {
            None => Ok(None),
            Some(bytes) => {
                self.extras.check_mark(bytes)?;
                let bytes = self.extras.in_todays_parameters(bytes);
                let read = TransportParameters::read(self.side, &mut io::Cursor::new(bytes))?;
                Ok(Some(read))
            }
        }
    }

    fn write_handshake(&mut self, into: &mut Vec<u8>) -> Option<Keys> {
        let Stage::Speaking(tls) = &mut self.stage else { return None };
        let (keys, next) = match tls.write_hs(into)? {
            KeyChange::Handshake { keys } => (keys, None),
            KeyChange::OneRtt { keys, next } => (keys, Some(next)),
        };
        let is_last = next.is_some();
        self.next_secrets = next.or(self.next_secrets.take());
        self.is_clear = is_last && self.agreed_on_clear();
        let header = |key: Box<dyn rustls::quic::HeaderProtectionKey>| -> Box<dyn HeaderKey> {
            if self.is_clear { Box::new(ClearHeader) } else { Box::new(key) }
        };
        let packet = |key: Box<dyn rustls::quic::PacketKey>| {
            if is_last {
                self.packet_key(key)
            } else {
                self.logged(Box::new(key), PacketKind::Handshake)
            }
        };
        Some(Keys {
            header: KeyPair {
                local: header(keys.local.header),
                remote: header(keys.remote.header),
            },
            packet: KeyPair {
                local: packet(keys.local.packet),
                remote: packet(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: self.packet_key(keys.local), remote: self.packet_key(keys.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let is_valid = retry::is_valid(self.version, orig_dst_cid, header, payload);
        if let Some(counts) = self.counts.as_ref().filter(|_| is_valid) {
            counts.record_unnumbered();
        }
        is_valid
    }

    fn export_keying_material(
        &self,
        into: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let tls = self.tls().ok_or(ExportKeyingMaterialError)?;
        let exported = tls.export_keying_material(into, label, Some(context));
        exported.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}
