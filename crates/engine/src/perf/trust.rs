//! Keys and certificates of the dialect: servers make their own, clients look at none.

use std::path::Path;
use std::sync::Arc;

use linerate_wire::perf::ALPN;
use rustls::{CipherSuite, ClientConfig, ServerConfig};

use crate::control::{KeyLog, Trusts, client_tls, make_identity, server_tls};
use crate::error::Error;

/// The original's numbers of cipher suites, to be added up.
const SUITES: [(u8, CipherSuite); 3] = [
    (1, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (2, CipherSuite::TLS13_AES_256_GCM_SHA384),
    (4, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// TLS as clients speak it. The server's certificate is not looked at, not even parsed: the original
/// signs itself one whose version X.509 doesn't have, and its clients don't look either.
pub(super) fn client_config(key_log: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut config = client_tls(|_| Ok(Trusts::Unread), &[], vec![ALPN.to_vec()])?;
    if let Some(path) = key_log {
        config.key_log = Arc::new(KeyLog::open(path, "SSLKEYLOGFILE")?);
    }
    Ok(Arc::new(config))
}

/// TLS as servers speak it, with a key of this moment, and the cipher suites of this sum only; none
/// of them is all.
pub(super) fn server_config(suites: u8) -> Result<Arc<ServerConfig>, Error> {
    let wanted = SUITES.iter().filter(|(number, _)| suites & number != 0);
    let suites: Vec<CipherSuite> = wanted.map(|(_, suite)| *suite).collect();
    server_tls(&make_identity()?, &suites, vec![ALPN.to_vec()]).map(Arc::new)
}
