//! Whether what is asked of TLS makes sense.

use super::{Checked, refuse_first, refuse_if};
use crate::plan::{Closing, Handshake, Kind, Transport, Workload, limits};
use crate::units::quoted;

impl Workload {
    /// Whether its connections agree on keys.
    pub fn has_keys(&self) -> bool {
        matches!(self.transport, Transport::Tls | Transport::Quic)
    }

    pub(super) fn check_tls(&self) -> Checked {
        let (connects, server_closes) = match self.kind {
            Kind::Connect { close, .. } => (true, close == Closing::Server),
            _ => (false, false),
        };
        refuse_first(&[
            (
                !self.has_keys() && !self.tls.is_default(),
                "options of keys with a transport without keys: leave them out, or ask for TLS or QUIC",
            ),
            (
                !connects && self.tls.handshake != Handshake::Full,
                "resumed handshakes of connections that stay, each with one handshake: leave it out, or \
                 measure connect",
            ),
            (
                server_closes && self.tls.handshake != Handshake::Full,
                "resumed handshakes with a server that closes, perhaps before its ticket has left: let the \
                 client close",
            ),
        ])?;
        let Some(name) = &self.tls.alpn else { return Ok(()) };
        let fits = limits::ALPN_BYTES.contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        refuse_if(!fits, || {
            format!(
                "{} is no name of a protocol (ALPN): write 1 to {} letters, digits and signs, such as \
                 h2",
                quoted(name),
                limits::ALPN_BYTES.end(),
            )
        })
    }
}
