//! Messages on their way in.

use super::Fault;
use super::frame::FrameReader;
use super::message::MessageError;

/// How many of the first bytes of a foreign protocol are kept to show them.
const SEEN_BYTES: usize = 64;

/// A part of a message that is larger than this takes time to arrive.
const LARGE_BYTES: usize = 64 * 1024;

/// Takes in bytes and gives messages.
#[derive(Debug)]
pub(super) struct Inbox {
    reader: FrameReader,
    /// The first bytes that came.
    seen: Vec<u8>,
}

impl Inbox {
    /// An inbox for frames of at most `limit_bytes`.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { reader: FrameReader::new(limit_bytes), seen: Vec::new() }
    }

    /// Takes in bytes.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) {
        let room = SEEN_BYTES.saturating_sub(self.seen.len());
        self.seen.extend(bytes.iter().take(room));
        self.reader.handle_bytes(bytes);
    }

    /// The next message; `greeted` says whether one came before.
    ///
    /// # Errors
    ///
    /// When the bytes are no message. First bytes that can't begin a message are another protocol's.
    pub(super) fn poll_message<M>(
        &mut self,
        greeted: bool,
        decode: fn(&[u8]) -> Result<M, MessageError>,
    ) -> Result<Option<M>, Fault> {
        let (ours, text) = match self.reader.poll_frame() {
            Ok(None) => return Ok(None),
            Ok(Some(body)) => match decode(body) {
                Ok(message) => return Ok(Some(message)),
                Err(error) => (body.first() == Some(&b'{'), error.to_string()),
            },
            Err(error) => (false, error.to_string()),
        };
        if greeted || ours {
            return Err(Fault::Protocol(text));
        }
        Err(Fault::NotLinerate { seen: self.seen.iter().map(|byte| printable(*byte)).collect() })
    }

    /// Whether a part of a message is there that only a result is large enough for.
    pub(super) fn is_mid_large_message(&self) -> bool {
        self.reader.pending_bytes() > LARGE_BYTES
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
}
