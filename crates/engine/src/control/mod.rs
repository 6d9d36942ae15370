//! The control connection: TLS with keys that are pinned or vouched for, and the proof of a shared key.

mod key_log;
mod keys;
mod link;
mod tickets;
mod tls;
mod trust;

pub(crate) use key_log::{KeyLog, key_log_note};
pub use keys::make_identity;
pub(crate) use keys::{cookie, fingerprint, proof, random};
pub(crate) use link::{Link, Reading};
use tickets::Tickets;
pub use tls::check_identity;
pub(crate) use tls::{
    cipher_of, client_tls, control_client, control_server, data_client, data_server, server_name,
    server_tls,
};
pub(crate) use trust::Trusts;

/// What client and server agree to speak inside TLS (ALPN, RFC 7301).
pub(crate) const ALPN: &[u8] = b"linerate";
