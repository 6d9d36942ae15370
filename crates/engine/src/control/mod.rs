//! The control connection: TLS with keys that are pinned, and the proof of a shared key.

mod keys;
mod link;
mod tickets;

pub use keys::make_identity;
pub(crate) use keys::{
    client_config, cookie, data_config, fingerprint, proof, quic_client_config, quic_server_config,
    random, server_config, server_name,
};
pub(crate) use link::{Link, Reading};
use tickets::Tickets;

/// What client and server agree to speak inside TLS (ALPN, RFC 7301).
pub(crate) const ALPN: &[u8] = b"linerate";
