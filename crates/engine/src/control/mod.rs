//! The control connection: TLS with keys that are pinned, and the proof of a shared key.

mod key_log;
mod keys;
mod link;
mod tickets;

use key_log::KeyLog;
pub use keys::make_identity;
pub(crate) use keys::{
    client_config, cookie, data_config, fingerprint, proof, quic_client_config, quic_server_config,
    random, server_config, server_name, with_key_log,
};
pub(crate) use link::{Link, Reading};
use tickets::Tickets;

/// What client and server agree to speak inside TLS (ALPN, RFC 7301).
pub(crate) const ALPN: &[u8] = b"linerate";
