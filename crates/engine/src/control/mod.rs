//! Control connections: one driver for the machines of all dialects, over TCP in the clear or inside TLS with keys that
//! are pinned or vouched for, and the proof of a shared key.

mod channel;
mod conversation;
mod key_log;
mod keys;
mod replay;
mod session_cache;
mod session_file;
mod tcp_channel;
mod tickets;
mod tls;
mod tls_channel;
mod trust;

pub(crate) use channel::{Channel, Reading, wait};
pub(crate) use conversation::{Conversation, Lost};
pub(crate) use key_log::{KeyLog, key_log_note};
pub use keys::make_identity;
pub(crate) use keys::{cookie, fingerprint, proof, random};
pub(crate) use replay::Inputs;
pub(crate) use session_cache::{CacheWriter, SessionCache};
pub(crate) use session_file::SessionFile;
pub(crate) use tcp_channel::TcpChannel;
use tickets::Tickets;
pub use tls::check_identity;
pub(crate) use tls::{
    cipher_of, client_tls, control_client, control_server, data_client, data_server, server_name,
    server_tls,
};
pub(crate) use tls_channel::TlsChannel;
pub(crate) use trust::Trusts;
pub use trust::certificate_fault;

/// What client and server agree to speak inside TLS (ALPN, RFC 7301).
pub(crate) const ALPN: &[u8] = b"linerate";
