//! Why a connection of qperf ended.

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// The peer's transport closed it (frame 0x1c of RFC 9000, section 19.19).
    Transport {
        /// The error code.
        code: u64,
        /// The type of the frame that was to blame, 0 if none.
        frame: u64,
        /// The peer's reason: one line without control characters.
        reason: String,
    },
    /// The peer's application closed it (frame 0x1d).
    Application {
        /// The error code.
        code: u64,
        /// The peer's reason: one line without control characters.
        reason: String,
    },
    /// The peer doesn't know the connection (stateless reset).
    Reset,
    /// Nothing came for as long as a connection may be idle.
    Idle,
    /// This server was stopped.
    Stopped,
    /// Anything else, in words.
    Other(String),
}
