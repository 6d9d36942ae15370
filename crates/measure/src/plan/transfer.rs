//! What connections that come and go carry in the place of a request and a response.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::{
    BytePattern, Close, Draws, Life, LifeContent, LifeStep, PATTERN_STRIDE, Size, Text,
};

/// What the server sends when a transfer is whole at its end.
const DONE: Text = Text::Fixed { bytes: "DONE" };

/// The bytes of one turn where both ends send in turns, unless told otherwise.
const DEFAULT_TURN_BYTES: u32 = 1 << 20;

/// A transfer over a connection that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectTransfer {
    /// Bytes of each connection, both directions together; a range is drawn from for each connection.
    pub bytes: Size,
    /// Which end sends them.
    pub pattern: TransferPattern,
    /// Bytes of the client's turns where both ends send in turns.
    pub push_bytes: u32,
    /// The same of the server's.
    pub pull_bytes: u32,
    /// Bytes of one send or receive at both ends, drawn from a range for each; absent: as many as the buffers hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<Size>,
    /// Where the random numbers begin with which sizes are drawn, the same at both ends.
    #[serde(default)]
    pub seed: u64,
}

/// Which end sends the bytes of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransferPattern {
    /// The client.
    #[default]
    Push,
    /// The server.
    Pull,
    /// Both in turns, the client first.
    PushPull,
    /// Both at the same time, each one half.
    Duplex,
}

impl ConnectTransfer {
    /// So many bytes from the client to the server.
    pub fn new(bytes: Size) -> Self {
        Self {
            bytes,
            pattern: TransferPattern::default(),
            push_bytes: DEFAULT_TURN_BYTES,
            pull_bytes: DEFAULT_TURN_BYTES,
            buffer_bytes: None,
            seed: 0,
        }
    }

    /// The client's part of each connection. The server says when it has had all, so that what it finds wrong fails
    /// the connection at both ends.
    pub(crate) fn life(&self, close: Close, verify: bool) -> Life {
        let bytes = self.bytes;
        let step = match self.pattern {
            TransferPattern::Push => LifeStep::Send { bytes },
            TransferPattern::Pull => LifeStep::Receive { bytes },
            TransferPattern::Duplex => LifeStep::Duplex { bytes },
            TransferPattern::PushPull => LifeStep::Alternate {
                bytes,
                send_bytes: self.push_bytes,
                receive_bytes: self.pull_bytes,
                sends_first: true,
            },
        };
        let content = match verify {
            false => LifeContent::Filler,
            true => LifeContent::Pattern {
                pattern: BytePattern::Native,
                send_offset: 0,
                receive_offset: PATTERN_STRIDE,
                stride: 2 * PATTERN_STRIDE,
                verify,
            },
        };
        Life {
            content,
            unit_bytes: self.buffer_bytes,
            draws: Draws::Seed { seed: self.seed },
            ..Life::new(vec![step, LifeStep::ReceiveText { text: DONE }], close)
        }
    }
}
