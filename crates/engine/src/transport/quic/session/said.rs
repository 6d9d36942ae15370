//! What a session says of itself.

use super::super::counted::Opened;

/// What both ends have agreed on, in TLS's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) suite: Option<u16>,
    pub(crate) group: Option<u16>,
    /// Whether it was with a ticket of an earlier connection.
    pub(crate) resumed: bool,
}

/// What a session has come to, and what became of the packets that it has opened, where they are counted.
#[derive(Clone, Debug)]
pub(in super::super) struct Said {
    pub(in super::super) agreed: Agreed,
    /// The application protocol.
    pub(in super::super) protocol: Option<Vec<u8>>,
    pub(in super::super) opened: Option<Opened>,
    /// Bytes of streams that were sent, likewise.
    pub(in super::super) sent_stream_bytes: Option<u64>,
}
