//! Messages: all of one size, with a code, a second word and data.

/// The codes of requests; an answer has its request's code and one more.
pub mod code {
    /// Of the answer to a request that isn't known, as the original's.
    pub const NONE: i32 = 0;
    /// Turn the server's debug log on, and off.
    pub const DEBUG_ON: i32 = 1;
    /// See [`DEBUG_ON`].
    pub const DEBUG_OFF: i32 = 2;
    /// The answer to both.
    pub const DEBUG_OK: i32 = 3;
    /// What are your processors worth?
    pub const CPU_CALIBRATE: i32 = 5;
    /// A passphrase; there is no answer.
    pub const PASSPHRASE: i32 = 6;
    /// Classic tests.
    pub const TCP_STREAM: i32 = 10;
    /// See [`TCP_STREAM`].
    pub const TCP_RR: i32 = 13;
    /// See [`TCP_STREAM`].
    pub const UDP_STREAM: i32 = 16;
    /// See [`TCP_STREAM`].
    pub const UDP_RR: i32 = 19;
    /// See [`TCP_STREAM`].
    pub const TCP_CRR: i32 = 34;
    /// See [`TCP_STREAM`].
    pub const TCP_MAERTS: i32 = 94;
    /// The test that all kinds are by now.
    pub const OMNI: i32 = 97;
    /// See [`TCP_STREAM`].
    pub const TCP_CC: i32 = 300;
    /// What are you? Long out of use.
    pub const SYSINFO: i32 = 600;
}

/// The error of a server that doesn't know a request's code.
pub const UNKNOWN_REQUEST: i32 = 998;

/// How long messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 256 bytes: netperf 2.5 and before.
    Short,
    /// 656 bytes: netperf 2.6 and later.
    Long,
}

impl Form {
    /// Bytes of a message.
    pub const fn message_bytes(self) -> usize {
        match self {
            Self::Short => 256,
            Self::Long => 656,
        }
    }
}

/// Where the data begins, behind the code and the second word.
const DATA: usize = 8;

/// A message. What doesn't fit its form is left out; what a form doesn't have reads as zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message without data. The second word of a request is the processor that the server shall
    /// run on, or -1; of an answer it is an error, or 0.
    pub fn new(form: Form, code: i32, second: i32) -> Self {
        let mut message = Self { bytes: vec![0; form.message_bytes()] };
        message.put(0, &code.to_be_bytes());
        message.put(4, &second.to_be_bytes());
        message
    }

    /// Its bytes, as they go over the wire.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What it is.
    pub fn code(&self) -> i32 {
        self.i32_at(0)
    }

    /// The word behind the code.
    pub fn second(&self) -> i32 {
        self.i32_at(4)
    }

    /// The number at an offset.
    pub fn i32_at(&self, offset: usize) -> i32 {
        i32::from_be_bytes(self.array_at(offset))
    }

    /// The number at an offset.
    pub fn u32_at(&self, offset: usize) -> u32 {
        u32::from_be_bytes(self.array_at(offset))
    }

    /// The number of 64 bits at an offset, the upper half first.
    pub fn u64_at(&self, offset: usize) -> u64 {
        u64::from_be_bytes(self.array_at(offset))
    }

    /// The number at an offset, where it is one that can be measured: finite and not negative.
    pub fn f32_at(&self, offset: usize) -> Option<f32> {
        Some(f32::from_bits(self.u32_at(offset))).filter(|x| x.is_finite() && *x >= 0.0)
    }

    /// Likewise, of double length.
    pub fn f64_at(&self, offset: usize) -> Option<f64> {
        Some(f64::from_bits(self.u64_at(offset))).filter(|x| x.is_finite() && *x >= 0.0)
    }

    /// The text in the `length` bytes at an offset, up to a zero; `None` where it is empty, or not
    /// of printable ASCII.
    pub fn text_at(&self, offset: usize, length: usize) -> Option<String> {
        let field = self.bytes.get(offset..)?;
        let text = field.iter().take(length).take_while(|byte| **byte != 0);
        let printable = text.clone().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        let text: String = text.map(|byte| char::from(*byte)).collect();
        (printable && !text.is_empty()).then_some(text)
    }

    /// The data as bytes, up to a zero.
    pub fn data_text(&self) -> &[u8] {
        let data = self.bytes.get(DATA..).unwrap_or_default();
        data.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Writes numbers one behind the other, from an offset on.
    pub(super) fn put_words(&mut self, offset: usize, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.put(offset + 4 * index, &word.to_be_bytes());
        }
    }

    /// Writes a text of at most `length` bytes, the zero behind it included.
    pub(super) fn put_text(&mut self, offset: usize, length: usize, text: &str) {
        let most = text.len().min(length.saturating_sub(1));
        self.put(offset, text.as_bytes().get(..most).unwrap_or_default());
    }

    /// Writes data, as much as there is room for.
    pub(super) fn put_data(&mut self, data: &[u8]) {
        // A zero behind it.
        let most = data.len().min(self.bytes.len().saturating_sub(DATA + 1));
        self.put(DATA, data.get(..most).unwrap_or_default());
    }

    pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
        let room = self.bytes.get_mut(offset..).unwrap_or_default();
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = *byte;
        }
    }

    fn array_at<const N: usize>(&self, offset: usize) -> [u8; N] {
        let field = self.bytes.get(offset..).and_then(|rest| rest.first_chunk());
        field.copied().unwrap_or([0; N])
    }
}

impl From<Vec<u8>> for Message {
    /// Takes the bytes of a message, whole or not: what isn't there reads as zero.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

/// Takes in bytes and gives messages.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that no message has been made of.
    pub(super) fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn poll_message(&mut self, form: Form) -> Option<Message> {
        let length = form.message_bytes();
        if self.bytes.len() < length {
            return None;
        }
        let rest = self.bytes.split_off(length);
        Some(Message::from(std::mem::replace(&mut self.bytes, rest)))
    }
}
