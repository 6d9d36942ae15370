//! Why flows end early.

use std::io;

use linerate_measure::step::LifeFault;

use crate::transport::quic::peer_code;

/// Why a flow ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowError {
    /// The kind that results count it under.
    pub(crate) kind: &'static str,
    /// What the system said.
    pub(crate) text: String,
    /// The code that the peer's application broke the stream off or closed the connection with.
    pub(crate) code: Option<u64>,
}

impl FlowError {
    pub(crate) fn new(kind: &'static str, text: &str) -> Self {
        Self { kind, text: text.to_owned(), code: None }
    }
}

impl From<io::Error> for FlowError {
    fn from(error: io::Error) -> Self {
        Self { kind: error_kind(&error), text: error.to_string(), code: peer_code(&error) }
    }
}

/// A peer answered what it hadn't been asked, or not wholly. Such an answer has no latency.
#[derive(Debug, thiserror::Error)]
#[error("a response came before its request had been sent")]
pub(crate) struct EarlyResponse;

impl From<EarlyResponse> for io::Error {
    fn from(early: EarlyResponse) -> Self {
        Self::new(io::ErrorKind::InvalidData, early)
    }
}

/// A connection was under way when its load was ended at once.
#[derive(Debug, thiserror::Error)]
#[error("the load was ended at once")]
pub(crate) struct GivenUp;

impl From<GivenUp> for io::Error {
    fn from(given_up: GivenUp) -> Self {
        Self::other(given_up)
    }
}

/// The kind that results count a failure under.
pub(crate) fn error_kind(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if error.get_ref().is_some_and(|cause| cause.is::<EarlyResponse>()) => "early_response",
        _ if error.get_ref().is_some_and(|cause| cause.is::<GivenUp>()) => "given_up",
        _ if error.raw_os_error() == Some(libc::ENOBUFS) => "queue_full",
        io::ErrorKind::InvalidData => {
            let fault = error.get_ref().and_then(|cause| cause.downcast_ref::<LifeFault>());
            fault.map_or("tls", LifeFault::kind)
        }
        io::ErrorKind::ConnectionRefused => "refused",
        // Of a connection that stood: its peer's reset came before the call, as shutdown(2) tells it.
        io::ErrorKind::NotConnected => "reset",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset",
        io::ErrorKind::ConnectionAborted => "aborted",
        io::ErrorKind::TimedOut => "timed_out",
        io::ErrorKind::UnexpectedEof => "closed_early",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        io::ErrorKind::NetworkDown => "network_down",
        io::ErrorKind::FileTooLarge => "too_large",
        _ => "io",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_no_longer_connected_was_reset() {
        for errno in [libc::ENOTCONN, libc::ECONNRESET, libc::EPIPE] {
            assert_eq!(error_kind(&io::Error::from_raw_os_error(errno)), "reset", "{errno}");
        }
    }
}
