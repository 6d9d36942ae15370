//! Keys and certificates of the dialect: servers make their own, clients look at none.

use std::sync::Arc;

use linerate_wire::perf::ALPN;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme, version,
};

use crate::control::make_identity;
use crate::error::Error;

/// The original's numbers of cipher suites, to be added up.
const SUITES: [(u8, CipherSuite); 3] = [
    (1, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (2, CipherSuite::TLS13_AES_256_GCM_SHA384),
    (4, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

fn tls_error(error: rustls::Error) -> Error {
    Error::Host(format!("can't set up TLS: {error}"))
}

/// TLS as clients speak it. The server's certificate is not looked at, not even parsed: the original
/// signs itself one whose version X.509 doesn't have, and its clients don't look either.
pub(super) fn client_config() -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(Unseen(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls_error)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// TLS as servers speak it, with a key of this moment, and the cipher suites of this sum only; none
/// of them is all.
pub(super) fn server_config(suites: u8) -> Result<Arc<ServerConfig>, Error> {
    let identity = make_identity()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.private_key_der));
    let chain = vec![CertificateDer::from(identity.certificate_der)];
    let allowed = |suite: CipherSuite| {
        SUITES.iter().any(|(number, known)| *known == suite && suites & number != 0)
    };
    let mut crypto = provider::default_provider();
    if SUITES.iter().any(|(number, _)| suites & number != 0) {
        crypto.cipher_suites.retain(|suite| allowed(suite.suite()));
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(crypto))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls_error)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(tls_error)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Takes any certificate, and any signature, unread.
#[derive(Debug)]
struct Unseen(Arc<CryptoProvider>);

impl ServerCertVerifier for Unseen {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
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
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
