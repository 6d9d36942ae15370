//! Why a connection ended.

use std::io;

use linerate_wire::visible::visible_line;
use quinn_proto::{ConnectionError, TransportErrorCode};

use super::connection::StreamAbort;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Cause {
    /// What a socket would have said.
    pub(crate) kind: io::ErrorKind,
    /// The application's code, where the peer closed with one (RFC 9000, section 19.19).
    pub(crate) code: Option<u64>,
    pub(crate) text: String,
}

impl Cause {
    pub(super) fn of(error: &ConnectionError) -> Self {
        let tls = |code: TransportErrorCode| (0x100..0x200).contains(&u64::from(code));
        let kind = match error {
            ConnectionError::TransportError(error) if tls(error.code) => io::ErrorKind::InvalidData,
            ConnectionError::ConnectionClosed(close) if tls(close.error_code) => {
                io::ErrorKind::InvalidData
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
            {
                io::ErrorKind::ConnectionRefused
            }
            ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => {
                io::ErrorKind::UnexpectedEof
            }
            ConnectionError::ApplicationClosed(_) | ConnectionError::Reset => {
                io::ErrorKind::ConnectionReset
            }
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::VersionMismatch => io::ErrorKind::Unsupported,
            ConnectionError::TransportError(_)
            | ConnectionError::ConnectionClosed(_)
            | ConnectionError::LocallyClosed => io::ErrorKind::ConnectionAborted,
            ConnectionError::CidsExhausted => io::ErrorKind::Other,
        };
        let code = match error {
            ConnectionError::ApplicationClosed(close) => Some(close.error_code.into_inner()),
            _ => None,
        };
        Self { kind, code, text: visible_line(&format!("QUIC: {error}")) }
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.clone())
    }
}

/// The code that a peer's application broke off a stream or closed a connection with, where that is why.
pub(crate) fn peer_code(error: &io::Error) -> Option<u64> {
    let inner = error.get_ref()?;
    let of_stream = inner.downcast_ref().map(|abort: &StreamAbort| abort.code());
    of_stream.or_else(|| inner.downcast_ref::<Cause>()?.code)
}
