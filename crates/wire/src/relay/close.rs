//! How connections end, and what the other connection is then told.

/// A close as it stands on the wire (RFC 9000, section 19.19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// Whose close it is.
    pub kind: CloseKind,
    /// Its error code.
    pub code: u64,
    /// Its reason, any bytes.
    pub reason: Vec<u8>,
}

/// Whose close it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// QUIC's own, frame type 0x1c.
    Transport {
        /// The type of the frame that is to blame, 0 if none. A close that is repeated blames none: that frame was
        /// another connection's.
        frame: u64,
    },
    /// The application's, frame type 0x1d.
    Application,
}

/// Error codes of the transport that a relay uses (RFC 9000, section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Code {
    /// The end of a connection without an error.
    NoError = 0x0,
    /// The proxy, or the connection to the other end, failed.
    InternalError = 0x1,
    /// The target can't be reached, or the proxy has no room.
    ConnectionRefused = 0x2,
    /// An application's close during the handshake.
    ApplicationError = 0xc,
}

impl Close {
    /// The transport's close with this code.
    pub fn transport(code: Code, reason: &str) -> Self {
        let kind = CloseKind::Transport { frame: 0 };
        Self { kind, code: code as u64, reason: reason.as_bytes().to_vec() }
    }
}

/// How a connection of a relay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The peer closed it.
    Closed(Close),
    /// It never stood; why.
    Refused(String),
    /// The peer was silent for too long; a sentence that says so.
    Silent(String),
    /// Something else: the peer broke a rule, or a socket failed; a sentence that says so.
    Failed(String),
}

impl Ended {
    /// What the other connection is closed with. A close is repeated, unless it is an error of one
    /// connection's transport that means nothing to the other.
    pub fn carried(&self) -> Close {
        let repeated = [Code::NoError, Code::ConnectionRefused, Code::ApplicationError]
            .map(|code| code as u64);
        match self {
            Self::Closed(close) if close.kind == CloseKind::Application => close.clone(),
            Self::Closed(close) if repeated.contains(&close.code) => {
                Close { kind: CloseKind::Transport { frame: 0 }, ..close.clone() }
            }
            Self::Closed(close) => {
                let reason = String::from_utf8_lossy(&close.reason);
                let text = format!("closed with transport error {:#x}: {reason}", close.code);
                Close::transport(Code::InternalError, &text)
            }
            Self::Refused(why) => Close::transport(Code::ConnectionRefused, why),
            Self::Silent(why) | Self::Failed(why) => Close::transport(Code::InternalError, why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_are_repeated_and_errors_of_one_transport_become_internal_errors() {
        let application = |code| Close {
            kind: CloseKind::Application,
            code,
            reason: b"runtime_reached".to_vec(),
        };
        for code in [0, 0x2, 0x100, (1 << 62) - 1] {
            assert_eq!(Ended::Closed(application(code)).carried(), application(code));
        }
        for (code, carried) in
            [(0x0, 0x0), (0x1, 0x1), (0x2, 0x2), (0x3, 0x1), (0xc, 0xc), (0x12a, 0x1)]
        {
            let kind = CloseKind::Transport { frame: 0x1b };
            let close = Ended::Closed(Close { kind, code, reason: b"why".to_vec() }).carried();
            let kind = CloseKind::Transport { frame: 0 };
            assert_eq!((close.kind, close.code), (kind, carried), "{code:#x}");
            assert!(close.reason.ends_with(b"why"));
        }
        assert_eq!(Ended::Refused("down".to_owned()).carried().code, 0x2);
        assert_eq!(Ended::Silent("gone".to_owned()).carried().code, 0x1);
    }
}
