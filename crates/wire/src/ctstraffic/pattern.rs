//! Which end sends on a TCP connection.

/// Which end sends when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// The client sends.
    #[default]
    Push,
    /// The server sends.
    Pull,
    /// Both send in turn, the client first.
    PushPull,
    /// Both send at the same time, each a half.
    Duplex,
}
