//! Keys, certificates and proofs.
//!
//! A server is known by its certificate's fingerprint, as SSH servers are: there is no authority
//! to ask. The TLS handshake still proves that the server holds the certificate's private key; who
//! that is, the fingerprint says.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::{digest, hmac, rand};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ServerSessionMemoryCache;
use rustls::{
    ClientConfig, Connection, DigitallySignedStruct, ServerConfig, SignatureScheme, version,
};

use linerate_measure::{Cipher, Handshake};

use super::{ALPN, KeyLog, Tickets};
use crate::access::{Identity, SharedKey};
use crate::error::Error;

/// Makes a server's key and a certificate for it, signed by itself.
///
/// # Errors
///
/// When the machine has no randomness to give.
pub fn make_identity() -> Result<Identity, Error> {
    let failed = |error: rcgen::Error| Error::Host(format!("can't make a key: {error}"));
    let key = rcgen::KeyPair::generate().map_err(failed)?;
    let parameters = rcgen::CertificateParams::new(vec!["linerate".to_owned()]).map_err(failed)?;
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok(Identity {
        certificate_der: certificate.der().to_vec(),
        private_key_der: key.serialize_der(),
    })
}

/// SHA-256 of a certificate, in hexadecimal.
pub(crate) fn fingerprint(certificate_der: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, certificate_der);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Error::Host("this machine has no randomness".to_owned()))?;
    Ok(bytes)
}

/// The proof that this end holds the shared key, good for this connection only: a keyed hash
/// (HMAC-SHA-256, RFC 2104) of the connection's exporter (RFC 9266).
pub(crate) fn proof(connection: &Connection, key: &SharedKey) -> Result<[u8; 32], Error> {
    let failed = |error| Error::Host(format!("can't derive a proof from the connection: {error}"));
    let binding = match connection {
        Connection::Client(client) => {
            client.export_keying_material([0_u8; 32], b"EXPORTER-Channel-Binding", Some(b""))
        }
        Connection::Server(server) => {
            server.export_keying_material([0_u8; 32], b"EXPORTER-Channel-Binding", Some(b""))
        }
    }
    .map_err(failed)?;
    let mut said = b"linerate client holds the key".to_vec();
    said.extend_from_slice(&binding);
    Ok(tag(&key.0, &said))
}

/// What a UDP client at this address must show: a keyed hash that needs no memory of the client.
pub(crate) fn cookie(
    secret: &[u8; 32],
    client: SocketAddr,
    flow: u32,
    token: &[u8; 16],
) -> [u8; 16] {
    let mut said = client.to_string().into_bytes();
    said.extend_from_slice(&flow.to_be_bytes());
    said.extend_from_slice(token);
    let mut cookie = [0; 16];
    cookie.copy_from_slice(&tag(secret, &said)[..16]);
    cookie
}

fn tag(key: &[u8], said: &[u8]) -> [u8; 32] {
    let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), said);
    let mut tag = [0; 32];
    tag.copy_from_slice(signed.as_ref());
    tag
}

fn tls_error(error: rustls::Error) -> Error {
    Error::Host(format!("can't set up TLS: {error}"))
}

/// TLS as a control connection's client speaks it: any certificate will do until its fingerprint
/// is looked at.
pub(crate) fn client_config() -> Result<Arc<ClientConfig>, Error> {
    configured_client(provider::default_provider(), None, vec![ALPN.to_vec()])
}

/// The name in the certificate of every server; the fingerprint tells them apart.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

/// TLS as a data connection's client speaks it: only the control connection's certificate will do.
pub(crate) fn data_config(
    certificate: CertificateDer<'static>,
) -> Result<Arc<ClientConfig>, Error> {
    configured_client(provider::default_provider(), Some(certificate), Vec::new())
}

/// TLS inside QUIC as the client speaks it: likewise, with our ALPN, which QUIC wants (RFC 9001,
/// section 8.1), and one cipher.
pub(crate) fn quic_client_config(
    certificate: CertificateDer<'static>,
    cipher: Option<Cipher>,
    handshake: Handshake,
    connections: u32,
) -> Result<Arc<ClientConfig>, Error> {
    let mut provider = provider::default_provider();
    let wanted = match cipher {
        None | Some(Cipher::Aes128) => rustls::CipherSuite::TLS13_AES_128_GCM_SHA256,
        Some(Cipher::Aes256) => rustls::CipherSuite::TLS13_AES_256_GCM_SHA384,
        Some(Cipher::Chacha20) => rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    };
    provider.cipher_suites.retain(|suite| suite.suite() == wanted);
    let config = configured_client(provider, Some(certificate), vec![ALPN.to_vec()])?;
    if handshake == Handshake::Full {
        return Ok(config);
    }
    let mut config = Arc::unwrap_or_clone(config);
    let tickets = Tickets::new(tickets_of(connections));
    config.resumption = Resumption::store(Arc::new(tickets));
    config.enable_early_data = handshake == Handshake::Early;
    Ok(Arc::new(config))
}

/// The same, with the secrets of its connections written to a file.
pub(crate) fn with_key_log(
    config: Arc<ClientConfig>,
    path: Option<&Path>,
) -> Result<Arc<ClientConfig>, Error> {
    let Some(path) = path else { return Ok(config) };
    let mut config = Arc::unwrap_or_clone(config);
    config.key_log = Arc::new(KeyLog::open(path)?);
    Ok(Arc::new(config))
}

/// Room for the tickets of a load: each of its connections has one in hand, and a few are on their
/// way.
fn tickets_of(connections: u32) -> usize {
    connections as usize * 2 + 64
}

/// TLS inside QUIC as the server speaks it.
pub(crate) fn quic_server_config(
    data: &ServerConfig,
    handshake: Handshake,
    connections: u32,
) -> Arc<ServerConfig> {
    let mut config = data.clone();
    config.alpn_protocols = vec![ALPN.to_vec()];
    if handshake != Handshake::Full {
        config.send_tls13_tickets = 1;
        config.session_storage = ServerSessionMemoryCache::new(tickets_of(connections));
    }
    if handshake == Handshake::Early {
        // QUIC has no other number (RFC 9001, section 4.6.1).
        config.max_early_data_size = u32::MAX;
    }
    Arc::new(config)
}

fn configured_client(
    provider: CryptoProvider,
    expected: Option<CertificateDer<'static>>,
    alpn: Vec<Vec<u8>>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider);
    let verifier = Arc::new(PinnedCertificate { provider: Arc::clone(&provider), expected });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls_error)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// TLS as the server speaks it: on control connections with our ALPN, on data connections without.
pub(crate) fn server_config(
    identity: &Identity,
    control: bool,
) -> Result<Arc<ServerConfig>, Error> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.private_key_der.clone()));
    let chain = vec![CertificateDer::from(identity.certificate_der.clone())];
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls_error)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            Error::Host(format!(
                "the server's key or certificate is no good ({error}): remove both, and new ones \
                 are made at the next start"
            ))
        })?;
    if control {
        config.alpn_protocols = vec![ALPN.to_vec()];
    }
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Accepts one certificate, or any whose fingerprint will be looked at later.
#[derive(Debug)]
struct PinnedCertificate {
    provider: Arc<CryptoProvider>,
    expected: Option<CertificateDer<'static>>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.expected {
            Some(expected) if expected != certificate => Err(rustls::Error::General(
                "a data connection's certificate is not the control connection's".to_owned(),
            )),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
