//! Why a connection ended.

use std::io;

use bytes::Bytes;
use linerate_wire::visible::visible_line;
use quinn_proto::coding::Codec;
use quinn_proto::{ConnectionClose, ConnectionError, TransportErrorCode};

use super::connection::StreamAbort;
use super::hello::take_varint;

/// How a peer closed a connection (RFC 9000, section 19.19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerClose {
    /// Where its transport closed it: the type of the frame that was to blame, 0 if none. `None`: its application did.
    pub(crate) frame: Option<u64>,
    pub(crate) code: u64,
    pub(crate) reason: Bytes,
}

impl PeerClose {
    fn of(error: &ConnectionError) -> Option<Self> {
        match error {
            ConnectionError::ConnectionClosed(close) => Some(Self {
                frame: Some(blamed(close)),
                code: close.error_code.into(),
                reason: close.reason.clone(),
            }),
            ConnectionError::ApplicationClosed(close) => Some(Self {
                frame: None,
                code: close.error_code.into_inner(),
                reason: close.reason.clone(),
            }),
            _ => None,
        }
    }
}

/// The type of the frame that a close blames, 0 if none. The crate tells it in no other way than as on the wire.
fn blamed(close: &ConnectionClose) -> u64 {
    let Some(frame) = close.frame_type else { return 0 };
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    take_varint(&mut &*bytes).unwrap_or(0)
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Cause {
    /// What a socket would have said.
    pub(crate) kind: io::ErrorKind,
    /// The application's code, where the peer closed with one (RFC 9000, section 19.19).
    pub(crate) code: Option<u64>,
    pub(crate) text: String,
    /// How the peer closed it, where it did.
    pub(crate) close: Option<PeerClose>,
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
        let close = PeerClose::of(error);
        let code = close.as_ref().filter(|close| close.frame.is_none()).map(|close| close.code);
        Self { kind, code, text: visible_line(&format!("QUIC: {error}")), close }
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
