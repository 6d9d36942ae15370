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
                match &self.tls {
                    tls if tls.handshake != Handshake::Full => "handshake",
                    tls if tls.cipher.is_some() => "cipher",
                    _ => "ALPN",
                },
                "options of TLS with a transport without TLS: leave them out, or use TLS or QUIC",
            ),
            (
                !connects && self.tls.handshake != Handshake::Full,
                "handshake",
                "only connections that come and go can resume handshakes: leave it out, or measure \
                 connect",
            ),
            (
                server_closes && self.tls.handshake != Handshake::Full,
                "handshake",
                "a server that closes first may do so before it has sent its ticket, so the next \
                 handshake can't resume: let the client close",
            ),
        ])?;
        let Some(name) = &self.tls.alpn else { return Ok(()) };
        let fits = limits::ALPN_BYTES.contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        refuse_if(!fits, "ALPN", || {
            format!(
                "{} isn't a protocol name (ALPN): give 1 to {} letters, digits and signs, such as h2",
                quoted(name),
                limits::ALPN_BYTES.end(),
            )
        })
    }
}
