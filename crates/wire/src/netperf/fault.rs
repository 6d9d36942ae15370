//! Why a conversation failed.

/// Why a conversation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The server reports an error of errno(3), or 998 for a request that it doesn't know.
    #[error("remote error {number}{}", known(*number))]
    Remote {
        /// Its number.
        number: i32,
    },
    /// What came is no part of the conversation.
    #[error("the other end broke the protocol: {0}")]
    Protocol(String),
    /// Nothing came in time.
    #[error("the other end has not sent {awaited} within {} s", after_ns / 1_000_000_000)]
    Silent {
        /// What was awaited.
        awaited: &'static str,
        /// For how long.
        after_ns: u64,
    },
    /// The connection ended too early.
    #[error("the other end closed the connection before it had sent {awaited}")]
    Closed {
        /// What was awaited.
        awaited: &'static str,
    },
    /// The client doesn't know the passphrase.
    #[error("the client did not send the passphrase")]
    Passphrase,
}

/// What the errors that a netserver refuses with mean.
fn known(number: i32) -> &'static str {
    match number {
        13 => ": permission denied",
        22 => ": invalid argument",
        90 => ": message too long",
        93 => ": protocol not supported",
        95 => ": operation not supported",
        97 => ": address family not supported",
        98 => ": address already in use",
        99 => ": no such address there",
        998 => ": the server doesn't know this test",
        _ => "",
    }
}
