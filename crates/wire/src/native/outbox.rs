//! Messages on their way out.

use std::collections::VecDeque;

use serde::Serialize;

use super::frame::encode_frame;
use crate::machine::transmit_first;

/// Frames that wait to be written, in order.
#[derive(Debug)]
pub(super) struct Outbox {
    limit_bytes: usize,
    frames: VecDeque<Vec<u8>>,
    unsent_bytes: usize,
}

impl Outbox {
    /// An outbox for frames of at most `limit_bytes`.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, frames: VecDeque::new(), unsent_bytes: 0 }
    }

    /// Queues a message.
    ///
    /// # Errors
    ///
    /// When it doesn't fit a frame; nothing is queued then.
    pub(super) fn push(&mut self, message: &impl Serialize) -> Result<(), String> {
        let body = serde_json::to_vec(message).map_err(|error| error.to_string())?;
        let Some(frame) = encode_frame(&body, self.limit_bytes) else {
            return Err(format!("it has {} bytes, the limit is {}", body.len(), self.limit_bytes));
        };
        self.unsent_bytes += frame.len();
        self.frames.push_back(frame);
        Ok(())
    }

    /// Moves the next frame to the end of `into`; whether there was one.
    pub(super) fn transmit_first(&mut self, into: &mut Vec<u8>) -> bool {
        let before = into.len();
        let has_frame = transmit_first(&mut self.frames, into);
        self.unsent_bytes -= into.len() - before;
        has_frame
    }

    /// Bytes of the frames that wait.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }
}

/// The longest start of `text` that has at most `limit_bytes`.
pub(super) fn clip(text: &str, limit_bytes: usize) -> String {
    let whole = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=limit_bytes.min(text.len())).rev().find(whole).unwrap_or(0);
    text.get(..end).unwrap_or_default().to_owned()
}
