//! What the QUIC connections of both sides have that a user seldom asks for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_measure::QuicVersion;
use socket2::Socket;

use crate::control::{KeyLog, SessionCache, SessionFile};
use crate::error::Error;
use crate::transport::quic::{Settings, Versions};

/// What the QUIC connections of both sides have.
#[derive(Clone, Debug, Default)]
pub struct SideOptions {
    /// Bytes of each UDP socket's buffers; absent: as much as flows have. The kernel grants what its limits allow.
    pub socket_bytes: Option<usize>,
    /// Whether packets leave one by one (no UDP segmentation offload).
    pub no_offload: bool,
    /// The one version that is spoken on both sides; absent: version 1 with the target, and any with clients.
    pub version: Option<QuicVersion>,
    /// The file that TLS secrets are appended to (SSLKEYLOGFILE), and what named it.
    pub key_log: Option<(PathBuf, &'static str)>,
    /// The file that clients' sessions are kept in across restarts; absent: none are resumed.
    pub session_cache: Option<PathBuf>,
    /// The file that a session with the target is kept in for the next start.
    pub session: Option<PathBuf>,
}

/// Sessions that outlive the proxy.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    /// Those of clients.
    pub(super) clients: Option<Arc<SessionCache>>,
    /// That with the target, for one connection of one thread.
    pub(super) target: Option<Arc<SessionFile>>,
}

impl Sessions {
    /// Opens both files. A kept session has no application protocol.
    ///
    /// # Errors
    ///
    /// Where a file can't be read, or holds something else.
    pub(super) fn open(options: &SideOptions) -> Result<Self, Error> {
        let clients = options.session_cache.as_deref().map(SessionCache::open).transpose()?;
        let target = options.session.as_deref().map(SessionFile::open).transpose()?;
        Ok(Self { clients, target: target.map(Arc::new) })
    }

    /// Writes the session with the target, if it is new; why it can't be written.
    pub(super) fn save(&self) -> Option<String> {
        self.target.as_ref()?.save().err()
    }
}

impl SideOptions {
    /// Gives a socket its buffers.
    pub(super) fn set_buffers(&self, socket: &Socket) -> io::Result<()> {
        let Some(bytes) = self.socket_bytes else { return Ok(()) };
        socket.set_recv_buffer_size(bytes)?;
        socket.set_send_buffer_size(bytes)
    }

    /// Settings with these options.
    pub(super) fn apply(&self, settings: Settings) -> Settings {
        let version = self.version.map_or(settings.version, Versions::Only);
        Settings { offload: !self.no_offload, version, ..settings }
    }

    /// Where secrets are written down.
    ///
    /// # Errors
    ///
    /// Where they can't be written.
    pub(super) fn key_log(&self) -> Result<Option<Arc<KeyLog>>, Error> {
        let open = |(path, named_by): &(PathBuf, &str)| KeyLog::open(path, named_by).map(Arc::new);
        self.key_log.as_ref().map(open).transpose()
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn sockets_and_settings_are_as_asked() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let before = socket.recv_buffer_size().unwrap();
        SideOptions::default().set_buffers(&socket).unwrap();
        assert_eq!(socket.recv_buffer_size().unwrap(), before);
        let (socket_bytes, version) = (Some(8 << 10), Some(QuicVersion::Draft29));
        let asked =
            SideOptions { socket_bytes, version, no_offload: true, ..SideOptions::default() };
        asked.set_buffers(&socket).unwrap();
        // The kernel doubles what it is asked for (socket(7)).
        assert_eq!(socket.recv_buffer_size().unwrap(), 16 << 10);
        let settings = asked.apply(Settings::default());
        assert_eq!(settings.version, Versions::Only(QuicVersion::Draft29));
        assert!(!settings.offload && SideOptions::default().apply(Settings::default()).offload);
    }
}
