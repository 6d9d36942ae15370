//! The bytes by which both ends say where the test stands.

/// Where a test stands: one signed byte on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// The server has all streams: initialise.
    TestStart = 1,
    /// The server says: go.
    TestRunning = 2,
    /// The client is done.
    TestEnd = 4,
    /// The server wants the parameters.
    ParamExchange = 9,
    /// The server wants the streams.
    CreateStreams = 10,
    /// The server was interrupted.
    ServerTerminate = 11,
    /// The client was interrupted.
    ClientTerminate = 12,
    /// The server wants the results, and tells its own.
    ExchangeResults = 13,
    /// The server has told its results.
    DisplayResults = 14,
    /// The client has no more to say.
    IperfDone = 16,
    /// The server is busy.
    AccessDenied = -1,
    /// The server gives up; two numbers follow.
    ServerError = -2,
}

impl State {
    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        (self as i8).to_be_bytes()[0]
    }

    /// The state that a byte means; `None` for all that no release sends.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }

    const ALL: [Self; 12] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::IperfDone,
        Self::AccessDenied,
        Self::ServerError,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_the_byte_that_the_original_sends() {
        assert_eq!(State::AccessDenied.byte(), 0xff);
        assert_eq!(State::ServerError.byte(), 0xfe);
        assert_eq!(State::DisplayResults.byte(), 14);
        for byte in 0..=u8::MAX {
            assert!(State::of(byte).is_none_or(|state| state.byte() == byte));
        }
        assert_eq!((0..=u8::MAX).filter(|byte| State::of(*byte).is_some()).count(), 12);
    }
}
