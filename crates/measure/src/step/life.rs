//! What happens on each of the connections that come and go, at one end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Close;
use crate::random::next_word;

/// Bytes of [`Text::Id`].
pub const ID_BYTES: usize = 37;

/// What one end does on a connection between the handshake and the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Life {
    /// The steps, one after the other.
    pub steps: Vec<LifeStep>,
    /// How the connection ends.
    pub close: Close,
    /// Bytes of one send or receive, drawn for each; absent: as many as the buffers hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<Size>,
    /// How many receives of `unit_bytes` one call makes, where the bytes of as many wait.
    #[serde(skip_serializing_if = "is_one")]
    pub receives_at_once: u32,
    /// What the bytes of transfers are.
    #[serde(skip_serializing_if = "LifeContent::is_filler")]
    pub content: LifeContent,
    /// The pace of sends; absent: as fast as it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<LifePace>,
    /// With which random numbers the sizes of transfers are drawn.
    #[serde(skip_serializing_if = "Draws::is_default")]
    pub draws: Draws,
}

/// One thing that an end does in a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum LifeStep {
    /// Send.
    Send {
        /// Bytes.
        bytes: Size,
    },
    /// Receive.
    Receive {
        /// Bytes.
        bytes: Size,
    },
    /// Send and receive at the same time.
    Duplex {
        /// Bytes of both ends together, of which each sends one half. An odd number is raised by one.
        bytes: Size,
    },
    /// Send and receive in turns.
    Alternate {
        /// Bytes of both ends together. The last turn is cut short.
        bytes: Size,
        /// Bytes that this end sends in one turn.
        send_bytes: u32,
        /// Bytes that it receives in one turn.
        receive_bytes: u32,
        /// Whether this end has the first turn.
        sends_first: bool,
    },
    /// Send a text, which counts as no payload.
    SendText {
        /// The text.
        text: Text,
    },
    /// Receive a text.
    ReceiveText {
        /// The text.
        text: Text,
    },
    /// Leave the connection open and silent.
    Hold {
        /// How long.
        time_ns: u64,
    },
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// Always the same.
    Fixed(u64),
    /// Drawn, each number as likely as any other.
    Range {
        /// The least.
        low_bytes: u64,
        /// The most.
        high_bytes: u64,
    },
}

/// A short text that one end sends whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "text")]
pub enum Text {
    /// The same on every connection. The receiver compares it.
    Fixed {
        /// The text, of at most [`ID_BYTES`] bytes.
        bytes: &'static str,
    },
    /// A random UUID (RFC 9562, version 4) in 36 lower-case characters and a zero byte, another one on each
    /// connection. The receiver keeps it.
    Id,
}

/// What the bytes of a life's transfers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "content")]
pub enum LifeContent {
    /// Anything; the receiver doesn't look.
    #[default]
    Filler,
    /// A pattern, which each way runs on from step to step.
    Pattern {
        /// Which.
        pattern: BytePattern,
        /// Position in the pattern of the first byte that this end sends on connection number 0.
        send_offset: u64,
        /// The same of the first byte that it receives.
        receive_offset: u64,
        /// How much further on the bytes of the next connection begin.
        stride: u64,
        /// Whether this end compares what it receives.
        verify: bool,
    },
}

/// A sequence of bytes that repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BytePattern {
    /// linerate's own, with a prime period.
    Native,
    /// The numbers 0 to 0x7fff in 16 bits, little-endian: a period of 65,536 bytes.
    Count,
}

/// How an end's sends on a connection are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "pace")]
pub enum LifePace {
    /// A number of bytes in each slice of time. A send that is longer takes from the next slices.
    Rate {
        /// Bytes per second, which each connection draws.
        bytes_per_s: Size,
        /// Length of a slice.
        slice_ns: u64,
    },
    /// Sends in groups. The first group lacks one send.
    Bursts {
        /// Sends of a group.
        sends: u64,
        /// Time before the first send of each group but the first.
        delay_ns: u64,
    },
}

/// With which random numbers the sizes of transfers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Draws {
    /// Those of this seed and the number of the connection: the same at both ends.
    Seed {
        /// The seed.
        seed: u64,
    },
    /// Its own at each end.
    Each,
}

impl Default for Draws {
    fn default() -> Self {
        Self::Seed { seed: 0 }
    }
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Draws {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where received bytes differ from the pattern for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Offset of the byte among all that this end received on the connection.
    pub offset: u64,
    /// The byte as it should be.
    pub expected: u8,
    /// The byte that came.
    pub found: u8,
    /// Bytes from that one to the last one that differs, both included, among those received at once.
    pub extent_bytes: u64,
    /// How many of these differ.
    pub wrong_bytes: u64,
    /// Bytes that were received at once.
    pub received_bytes: u64,
}

impl Difference {
    /// Between what came, which begins at this offset, and what should have come; `None` where they are alike.
    pub fn find(offset: u64, came: &[u8], expected: &[u8]) -> Option<Self> {
        let mut difference: Option<Self> = None;
        for ((found, expected), at) in came.iter().zip(expected).zip(offset..) {
            if found == expected {
                continue;
            }
            let wrong = difference.get_or_insert(Self {
                offset: at,
                expected: *expected,
                found: *found,
                extent_bytes: 0,
                wrong_bytes: 0,
                received_bytes: came.len() as u64,
            });
            wrong.extent_bytes = at - wrong.offset + 1;
            wrong.wrong_bytes += 1;
        }
        difference
    }
}

/// What a peer did against a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LifeFault {
    /// It sent other bytes than the pattern's.
    #[error("byte {} is {:#04x} instead of {:#04x}", .0.offset, .0.found, .0.expected)]
    Corrupt(Difference),
    /// It sent more than it should.
    #[error("more bytes came than were to be received")]
    Excess,
    /// It sent another text.
    #[error("another text came than was to be received")]
    WrongText,
}

impl LifeFault {
    /// The kind that results count such a failure under.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Corrupt(_) => "corrupt",
            Self::Excess => "excess_bytes",
            Self::WrongText => "wrong_text",
        }
    }
}

impl LifeContent {
    fn is_filler(&self) -> bool {
        *self == Self::Filler
    }

    /// The same as the other end has it.
    fn mirrored(self) -> Self {
        match self {
            Self::Filler => Self::Filler,
            Self::Pattern { pattern, send_offset, receive_offset, stride, verify } => {
                Self::Pattern {
                    pattern,
                    send_offset: receive_offset,
                    receive_offset: send_offset,
                    stride,
                    verify,
                }
            }
        }
    }
}

impl Size {
    /// The least and the most it can be.
    pub fn bounds(&self) -> (u64, u64) {
        match *self {
            Self::Fixed(bytes) => (bytes, bytes),
            Self::Range { low_bytes, high_bytes } => (low_bytes, high_bytes.max(low_bytes)),
        }
    }

    /// The number that comes next in a sequence of random numbers. A fixed number takes none.
    pub fn draw(&self, state: &mut u64) -> u64 {
        let (low, high) = self.bounds();
        if low == high {
            return low;
        }
        let choices = u128::from(high - low) + 1;
        // The upper half of the product: less than `choices`, and so even that no number stands out.
        let place = (u128::from(next_word(state)) * choices) >> 64;
        low + u64::try_from(place).unwrap_or(0)
    }

    /// Whether it is drawn.
    pub fn is_range(&self) -> bool {
        matches!(self, Self::Range { .. })
    }
}

impl Text {
    /// How long it is.
    pub fn length(&self) -> usize {
        match self {
            Self::Fixed { bytes } => bytes.len(),
            Self::Id => ID_BYTES,
        }
    }
}

impl Life {
    /// These steps, at full speed and without verification.
    pub fn new(steps: Vec<LifeStep>, close: Close) -> Self {
        Self {
            steps,
            close,
            unit_bytes: None,
            receives_at_once: 1,
            content: LifeContent::Filler,
            pace: None,
            draws: Draws::default(),
        }
    }

    /// A request and its response, as the client sees them. Nothing of 0 bytes is done.
    pub fn exchange(request_bytes: u32, response_bytes: u32, close: Close) -> Self {
        let [request, response] = [request_bytes, response_bytes].map(|n| Size::Fixed(n.into()));
        let steps = [LifeStep::Send { bytes: request }, LifeStep::Receive { bytes: response }];
        Self::new(steps.into_iter().filter(|step| step.amounts() != (0, 0)).collect(), close)
    }

    /// The same connection as the other end sees it, which closes it as told. That end holds nothing open: it waits.
    pub fn mirrored(&self, close: Close) -> Self {
        let steps = self.steps.iter().filter_map(|step| step.mirrored()).collect();
        Self { steps, close, content: self.content.mirrored(), ..self.clone() }
    }

    /// Whether this end compares what it receives.
    pub fn verifies(&self) -> bool {
        matches!(self.content, LifeContent::Pattern { verify: true, .. })
    }

    /// The most payload that this end sends in all, and that it receives.
    pub fn amounts(&self) -> (u64, u64) {
        let amounts = self.steps.iter().map(|step| step.amounts());
        amounts.fold((0, 0), |(sent, received), (send, receive)| {
            (sent.saturating_add(send), received.saturating_add(receive))
        })
    }

    /// Whether it is nothing but sends and receives of fixed sizes, whose bytes aren't verified.
    pub fn is_plain(&self) -> bool {
        let fixed = |step: &LifeStep| match step {
            LifeStep::Send { bytes } | LifeStep::Receive { bytes } => !bytes.is_range(),
            _ => false,
        };
        self.steps.iter().all(fixed)
            && self.unit_bytes.is_none()
            && self.content == LifeContent::Filler
            && self.pace.is_none()
    }

    /// Whether both ends draw sizes, for which both must know the number of a connection, or its bytes depend on
    /// that number.
    pub fn is_numbered(&self) -> bool {
        let draws = matches!(self.draws, Draws::Seed { .. });
        let strides = matches!(self.content, LifeContent::Pattern { stride, .. } if stride > 0);
        strides
            || draws
                && self.steps.iter().any(|step| step.bytes().is_some_and(|size| size.is_range()))
    }

    /// Whether it begins with what the other end sends.
    pub fn begins_by_receiving(&self) -> bool {
        match self.steps.first() {
            Some(LifeStep::Alternate { sends_first, .. }) => !sends_first,
            Some(LifeStep::Receive { .. } | LifeStep::ReceiveText { .. }) => true,
            _ => false,
        }
    }

    /// Whether something in it happens by the clock.
    pub fn is_timed(&self) -> bool {
        let holds = |step: &LifeStep| matches!(step, LifeStep::Hold { .. });
        self.pace.is_some() || self.steps.iter().any(holds)
    }
}

impl LifeStep {
    /// Whether anything is sent in it.
    pub fn sends(&self) -> bool {
        match *self {
            LifeStep::Send { .. } | LifeStep::Duplex { .. } | LifeStep::SendText { .. } => true,
            LifeStep::Alternate { send_bytes, .. } => send_bytes > 0,
            LifeStep::Receive { .. } | LifeStep::ReceiveText { .. } | LifeStep::Hold { .. } => {
                false
            }
        }
    }

    /// The payload that is drawn for it, where it has any.
    pub(super) fn bytes(&self) -> Option<Size> {
        match *self {
            LifeStep::Send { bytes }
            | LifeStep::Receive { bytes }
            | LifeStep::Duplex { bytes }
            | LifeStep::Alternate { bytes, .. } => Some(bytes),
            LifeStep::SendText { .. } | LifeStep::ReceiveText { .. } | LifeStep::Hold { .. } => {
                None
            }
        }
    }

    /// The most bytes to send, and to receive.
    pub fn amounts(&self) -> (u64, u64) {
        let most = self.bytes().map_or(0, |bytes| bytes.bounds().1);
        match *self {
            LifeStep::Send { .. } => (most, 0),
            LifeStep::Receive { .. } => (0, most),
            LifeStep::Duplex { .. } => (most.div_ceil(2), most.div_ceil(2)),
            LifeStep::Alternate { send_bytes, receive_bytes, sends_first, .. } => {
                let (send, receive) = (u64::from(send_bytes), u64::from(receive_bytes));
                let round = (send + receive).max(1);
                let (rounds, rest) = (most / round, most % round);
                let first = rest.min(if sends_first { send } else { receive });
                let (last_sent, last_received) =
                    if sends_first { (first, rest - first) } else { (rest - first, first) };
                (rounds * send + last_sent, rounds * receive + last_received)
            }
            LifeStep::SendText { .. } | LifeStep::ReceiveText { .. } | LifeStep::Hold { .. } => {
                (0, 0)
            }
        }
    }

    fn mirrored(self) -> Option<Self> {
        Some(match self {
            LifeStep::Send { bytes } => LifeStep::Receive { bytes },
            LifeStep::Receive { bytes } => LifeStep::Send { bytes },
            LifeStep::Duplex { bytes } => LifeStep::Duplex { bytes },
            LifeStep::Alternate { bytes, send_bytes, receive_bytes, sends_first } => {
                LifeStep::Alternate {
                    bytes,
                    send_bytes: receive_bytes,
                    receive_bytes: send_bytes,
                    sends_first: !sends_first,
                }
            }
            LifeStep::SendText { text } => LifeStep::ReceiveText { text },
            LifeStep::ReceiveText { text } => LifeStep::SendText { text },
            LifeStep::Hold { .. } => return None,
        })
    }
}
