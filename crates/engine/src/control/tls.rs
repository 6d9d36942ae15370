//! TLS 1.3 as control connections, data connections and other dialects speak it.

use std::path::Path;
use std::sync::Arc;

use linerate_measure::{Cipher, Handshake, Kind, Transport, Workload};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ServerSessionMemoryCache;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{CipherSuite, ClientConfig, InconsistentKeys, ServerConfig, version};

use super::replay::{Clock, Inputs};
use super::trust::{Trusts, Verifier};
use super::{ALPN, KeyLog, Tickets};
use crate::access::{Authority, Identity};
use crate::error::Error;

/// TLS as a client speaks it: only these cipher suites (none: all that there are), these names of the
/// protocol inside.
pub(crate) fn client_tls(
    trusts: impl FnOnce(&Arc<CryptoProvider>) -> Result<Trusts, Error>,
    suites: &[CipherSuite],
    alpn: Vec<Vec<u8>>,
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(provider_with(suites));
    let trusts = trusts(&provider)?;
    let verifier = Arc::new(Verifier { provider: Arc::clone(&provider), trusts });
    configured_client(provider, Arc::new(DefaultTimeProvider), verifier, alpn)
}

/// TLS of a client that looks at no certificate and whose handshakes can be replayed: all that goes into one is noted,
/// or comes from notes. A ticket is taken only by a client with the verifier and the certificates of the one that got
/// it, so that all handshakes share both.
pub(super) struct ReplayableTls {
    verifier: Arc<Verifier>,
    certificates: Arc<dyn ResolvesClientCert>,
}

impl ReplayableTls {
    pub(super) fn new() -> Result<Self, Error> {
        let provider = Arc::new(provider_with(&[]));
        let (trusts, time) = (Trusts::Unread, Arc::new(DefaultTimeProvider));
        let verifier = Arc::new(Verifier { provider: Arc::clone(&provider), trusts });
        let config = configured_client(provider, time, Arc::clone(&verifier), Vec::new())?;
        Ok(Self { verifier, certificates: config.client_auth_cert_resolver })
    }

    /// For the handshake with these inputs.
    pub(super) fn config(
        &self,
        inputs: &'static Inputs,
        tickets: &Arc<Tickets>,
    ) -> Result<ClientConfig, Error> {
        let mut provider = provider_with(&[]);
        provider.secure_random = inputs;
        provider.kx_groups = vec![inputs];
        let (time, verifier) = (Arc::new(Clock(inputs)), Arc::clone(&self.verifier));
        let mut config = configured_client(Arc::new(provider), time, verifier, Vec::new())?;
        config.client_auth_cert_resolver = Arc::clone(&self.certificates);
        config.resumption = Resumption::store(Arc::clone(tickets) as Arc<_>);
        config.enable_early_data = true;
        Ok(config)
    }
}

fn configured_client(
    provider: Arc<CryptoProvider>,
    time: Arc<dyn TimeProvider>,
    verifier: Arc<Verifier>,
    alpn: Vec<Vec<u8>>,
) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls_error)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn;
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// TLS as a server speaks it, likewise.
pub(crate) fn server_tls(
    identity: &Identity,
    suites: &[CipherSuite],
    alpn: Vec<Vec<u8>>,
) -> Result<ServerConfig, Error> {
    let no_good = |why: String| {
        Error::Host(format!(
            "the server's key or certificate is invalid ({why}): remove both, and the next start makes \
             new ones"
        ))
    };
    let mut config = configured_server(identity, suites).map_err(no_good)?;
    config.alpn_protocols = alpn;
    Ok(config)
}

/// Looks whether a server can use this identity.
///
/// # Errors
///
/// Why not.
pub fn check_identity(identity: &Identity) -> Result<(), String> {
    configured_server(identity, &[]).map(|_| ())
}

fn configured_server(identity: &Identity, suites: &[CipherSuite]) -> Result<ServerConfig, String> {
    let key = PrivateKeyDer::try_from(identity.private_key_der.clone())
        .map_err(|_| "the private key has a type that linerate doesn't support".to_owned())?;
    let chain = std::iter::once(&identity.certificate_der).chain(&identity.chain_der);
    let chain = chain.map(|one| CertificateDer::from(one.clone())).collect();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider_with(suites)))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                "the private key doesn't belong to the certificate".to_owned()
            }
            rustls::Error::InvalidCertificate(error) => {
                format!("the certificate can't be read: {error}")
            }
            error => error.to_string(),
        })?;
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn provider_with(suites: &[CipherSuite]) -> CryptoProvider {
    let mut provider = provider::default_provider();
    provider.cipher_suites.retain(|suite| suites.is_empty() || suites.contains(&suite.suite()));
    provider
}

fn tls_error(error: rustls::Error) -> Error {
    Error::Host(format!("can't set up TLS: {error}"))
}

/// TLS as a control connection's client speaks it: without an authority any certificate will do until
/// its fingerprint is looked at.
pub(crate) fn control_client(authority: Option<&Authority>) -> Result<ClientConfig, Error> {
    let trusts = |provider: &Arc<CryptoProvider>| match authority {
        Some(authority) => Trusts::vouched(authority, provider),
        None => Ok(Trusts::Any),
    };
    client_tls(trusts, &[], vec![ALPN.to_vec()])
}

/// TLS as a control connection's server speaks it.
pub(crate) fn control_server(identity: &Identity) -> Result<ServerConfig, Error> {
    server_tls(identity, &[], vec![ALPN.to_vec()])
}

/// The name that a client asks for where no authority looks at it; the fingerprint tells servers
/// apart.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

/// TLS as the client of a load's connections speaks it, over TCP or inside QUIC: only the control
/// connection's certificate will do.
pub(crate) fn data_client(
    certificate: CertificateDer<'static>,
    workload: &Workload,
    key_log: Option<&Path>,
) -> Result<Arc<ClientConfig>, Error> {
    let is_quic = workload.transport == Transport::Quic;
    let cipher = workload.tls.cipher.or(is_quic.then_some(Cipher::Aes128));
    let suites: Vec<CipherSuite> = cipher.map(suite_of).into_iter().collect();
    let mut config = client_tls(|_| Ok(Trusts::Only(certificate)), &suites, data_alpn(workload))?;
    // A flow seals its records itself.
    config.enable_secret_extraction = workload.transport == Transport::Tls;
    let handshake = workload.tls.handshake;
    if handshake != Handshake::Full {
        let tickets = Tickets::new(tickets_of(workload.flows));
        config.resumption = Resumption::store(Arc::new(tickets));
        config.enable_early_data = handshake == Handshake::Early;
    }
    if let Some(path) = key_log {
        config.key_log = Arc::new(KeyLog::open(path, "--keylog or SSLKEYLOGFILE")?);
    }
    Ok(Arc::new(config))
}

/// TLS as the server of a load's connections speaks it, with the identity that `base` has.
pub(crate) fn data_server(base: &ServerConfig, workload: &Workload) -> Arc<ServerConfig> {
    let mut config = base.clone();
    config.alpn_protocols = data_alpn(workload);
    config.enable_secret_extraction = workload.transport == Transport::Tls;
    let handshake = workload.tls.handshake;
    if handshake != Handshake::Full {
        config.send_tls13_tickets = 1;
        config.session_storage = ServerSessionMemoryCache::new(tickets_of(workload.flows));
    }
    if handshake == Handshake::Early {
        config.max_early_data_size = match (workload.transport, &workload.kind) {
            // QUIC has no other number (RFC 9001, section 4.6.1).
            (Transport::Quic, _) => u32::MAX,
            (_, Kind::Connect { request_bytes, .. }) => *request_bytes,
            _ => 0,
        };
        // The response to an early request doesn't wait for the client's last word either.
        config.send_half_rtt_data = workload.transport != Transport::Quic;
    }
    Arc::new(config)
}

/// QUIC wants a name (RFC 9001, section 8.1).
fn data_alpn(workload: &Workload) -> Vec<Vec<u8>> {
    match &workload.tls.alpn {
        Some(name) => vec![name.clone().into_bytes()],
        None if workload.transport == Transport::Quic => vec![ALPN.to_vec()],
        None => Vec::new(),
    }
}

/// Room for the tickets of a load: each of its connections has one in hand, and a few are on their
/// way.
fn tickets_of(connections: u32) -> usize {
    connections as usize * 2 + 64
}

fn suite_of(cipher: Cipher) -> CipherSuite {
    match cipher {
        Cipher::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Cipher::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
        Cipher::Chacha20 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

/// What seals the records of a connection, by its name.
pub(crate) fn cipher_of(suite: CipherSuite) -> Option<Cipher> {
    [Cipher::Aes128, Cipher::Aes256, Cipher::Chacha20]
        .into_iter()
        .find(|cipher| suite_of(*cipher) == suite)
}
