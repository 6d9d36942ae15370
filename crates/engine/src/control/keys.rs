//! Keys, certificates and proofs.
//!
//! A server is known by its certificate's fingerprint, as SSH servers are, unless the client asks an
//! authority. The TLS handshake still proves that the server holds the certificate's private key; who
//! that is, the fingerprint says.

use std::net::SocketAddr;

use aws_lc_rs::{digest, hmac, rand};
use rustls::Connection;

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
        chain_der: Vec::new(),
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
