//! Why a connection or stream failed.

use crate::ctstraffic::data::Mismatch;

/// Why a connection or stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The other end stopped before all was transferred, or sent something else than expected.
    NotAllDataTransferred,
    /// The other end sent more than was to come.
    TooMuchDataTransferred,
    /// Received data is wrong.
    DataDidNotMatchBitPattern(Mismatch),
    /// The system reports an error, by its number.
    Network(i32),
}

impl Fault {
    /// The original's name of a protocol error; `None` for an error of the network.
    pub fn protocol_error(&self) -> Option<&'static str> {
        match self {
            Self::NotAllDataTransferred => Some("ErrorNotAllDataTransferred"),
            Self::TooMuchDataTransferred => Some("ErrorTooMuchDataTransferred"),
            Self::DataDidNotMatchBitPattern(_) => Some("ErrorDataDidNotMatchBitPattern"),
            Self::Network(_) => None,
        }
    }

    /// What a protocol error may come from. The ends negotiate nothing, so options that differ look
    /// like errors of the network.
    pub fn hint(&self, is_udp: bool) -> Option<&'static str> {
        match self {
            Self::NotAllDataTransferred if is_udp => Some(
                "no usable datagram came: does the server run, with the same -Port, \
                 -BitsPerSecond, -FrameRate and -StreamLength?",
            ),
            Self::NotAllDataTransferred => Some(
                "the other end stopped early: are -Pattern, -Transfer, -PushBytes and -PullBytes \
                 the same at both ends?",
            ),
            Self::TooMuchDataTransferred => Some(
                "the other end sent more than expected: are -Pattern and -Transfer the same at \
                 both ends?",
            ),
            Self::DataDidNotMatchBitPattern(_) | Self::Network(_) => None,
        }
    }
}
