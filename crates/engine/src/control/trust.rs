//! Which certificates a client takes.

use std::sync::Arc;

use linerate_wire::visible::visible_line;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::access::Authority;
use crate::error::Error;

/// Which certificates a client takes.
#[derive(Debug)]
pub(crate) enum Trusts {
    /// Any: its fingerprint is looked at later.
    Any,
    /// This one alone.
    Only(CertificateDer<'static>),
    /// Any, which is not even parsed, and signatures neither: for servers of other tools.
    Unread,
    /// Those that an authority vouches for, by their chain, their time and their name.
    Vouched(Arc<WebPkiServerVerifier>),
}

impl Trusts {
    /// # Errors
    ///
    /// Where the authority's certificates can't be used.
    pub(crate) fn vouched(
        authority: &Authority,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let unusable = |why: String| {
            Error::Host(format!("the certificates of the authority (--ca) are invalid: {why}"))
        };
        let mut roots = RootCertStore::empty();
        for certificate in &authority.certificates_der {
            roots
                .add(CertificateDer::from(certificate.clone()))
                .map_err(|error| unusable(error.to_string()))?;
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        verifier.build().map(Self::Vouched).map_err(|error| unusable(error.to_string()))
    }
}

/// What is wrong with a certificate of a server that was asked for by the name `host`; its chain should end with
/// `authority`.
pub fn certificate_fault(why: &CertificateError, host: &str, authority: &str) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired, or this machine's clock is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it isn't valid yet, or this machine's clock is wrong".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is for another name than \"{host}\"")
        }
        CertificateError::UnknownIssuer => format!("its chain doesn't end with {authority}"),
        CertificateError::BadSignature => "a signature in its chain is wrong".to_owned(),
        CertificateError::BadEncoding => "it can't be read".to_owned(),
        other => match other.to_string() {
            text if text.contains("CaUsedAsEndEntity") => {
                "it is an authority's, and so can't be a server's".to_owned()
            }
            text => visible_line(&text),
        },
    }
}

/// Asks [`Trusts`].
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) trusts: Trusts,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.trusts {
            Trusts::Only(expected) if expected != certificate => Err(rustls::Error::General(
                "a data connection's certificate is not the control connection's".to_owned(),
            )),
            Trusts::Any | Trusts::Only(_) | Trusts::Unread => Ok(ServerCertVerified::assertion()),
            Trusts::Vouched(verifier) => {
                verifier.verify_server_cert(certificate, intermediates, name, ocsp, now)
            }
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
        if matches!(self.trusts, Trusts::Unread) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
