//! The client's end of one stream: requests it, takes in datagrams, renders frames after a delay.

use super::datagram::{Datagram, DatagramError};
use super::jitter::{Jitter, JitterRow, Stamps};
use super::shape::StreamShape;
use crate::ctstraffic::ConnectionId;
use crate::ctstraffic::Fault;
use crate::ctstraffic::data::{Mismatch, Reference};

/// What a client waits for an answer to its START beside the time of a frame, ns.
const START_AGAIN_NS: u64 = 500_000_000;

/// The system's number for a datagram that is longer than its buffer (`EMSGSIZE`).
const MESSAGE_TOO_LONG: i32 = 90;

/// How a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// The stream's frames.
    pub shape: StreamShape,
    /// Frames that are held back ([`StreamShape::buffered_frames`]).
    pub buffered_frames: u64,
    /// Whether a malformed or wrong datagram ends the stream at once, as in the original. Else it counts as
    /// an error, and the stream fails at its end.
    pub is_strict: bool,
}

/// What a stream's frames came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of which as many bytes came as they have.
    pub completed: u64,
    /// Frames of which less came.
    pub dropped: u64,
    /// Frames of which more came.
    pub repeated: u64,
    /// Datagrams that were too late, too early, or of no frame; malformed and wrong ones.
    pub errors: u64,
    /// Bits of datagrams with data, headers included, too late or not.
    pub bits: u64,
}

/// What came of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It has the stream's id.
    Id,
    /// It belongs to a frame that is to be rendered.
    Counted,
    /// It belongs to a frame that was rendered, or is too far ahead, or doesn't exist.
    OutsideWindow,
    /// It is no datagram of a stream.
    Malformed(DatagramError),
    /// Its data is wrong.
    Wrong(Mismatch),
    /// It came after the end of the stream.
    Ignored,
}

/// What came of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rendered {
    /// All of it came.
    Completed(JitterRow),
    /// Less came. The row has zeros.
    Dropped(JitterRow),
    /// More came. There is no row.
    Repeated,
}

impl Rendered {
    /// The frame's row in the file of jitter.
    pub fn row(&self) -> Option<JitterRow> {
        match self {
            Self::Completed(row) | Self::Dropped(row) => Some(*row),
            Self::Repeated => None,
        }
    }
}

/// What came of one frame so far.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    bytes: u64,
    stamps: Stamps,
}

/// A stream as its client receives it. Times are nanoseconds on any monotonic clock.
#[derive(Clone, Debug)]
pub struct StreamReceiver {
    settings: ReceiverSettings,
    /// Twice as many slots as frames are held back.
    window: Vec<Slot>,
    /// The number of the next frame to render, from 1.
    head: u64,
    begun_ns: u64,
    /// When START is to be sent; `None`: the stream is there.
    next_start_ns: Option<u64>,
    /// When a datagram of the last frame came, or the stream failed.
    ended_ns: Option<u64>,
    counts: FrameCounts,
    jitter: Jitter,
    id: Option<ConnectionId>,
    fault: Option<Fault>,
    /// The fault of the first malformed or wrong datagram, with which a stream that goes on fails at its end.
    deferred_fault: Option<Fault>,
}

impl StreamReceiver {
    /// A stream that is requested now.
    pub fn new(settings: ReceiverSettings, now_ns: u64) -> Self {
        let most = super::shape::BUFFERED_MOST_FRAMES;
        let buffered_frames = settings.buffered_frames.clamp(1, most);
        let settings = ReceiverSettings { buffered_frames, ..settings };
        Self {
            settings,
            window: vec![Slot::default(); 2 * buffered_frames as usize],
            head: 1,
            begun_ns: now_ns,
            next_start_ns: Some(now_ns),
            ended_ns: None,
            counts: FrameCounts::default(),
            jitter: Jitter::default(),
            id: None,
            fault: None,
            deferred_fault: None,
        }
    }

    /// Whether to send [`START`](super::datagram::START) now. It counts as sent.
    pub fn poll_start(&mut self, now_ns: u64) -> bool {
        let is_due = self.next_start_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if is_due && !self.is_over() {
            let frame_ms = 1000 / u64::from(self.settings.shape.frame_rate.max(1));
            let wait_ns = START_AGAIN_NS + frame_ms * 1_000_000;
            self.next_start_ns = Some(now_ns.saturating_add(wait_ns));
            return true;
        }
        false
    }

    /// The longest datagram that may come, bytes: what a buffer needs, and one byte more to see that a
    /// datagram is longer.
    pub fn datagram_most_bytes(&self) -> u32 {
        self.settings.shape.frame_bytes.min(self.settings.shape.datagram_bytes)
    }

    /// A datagram came from the server, with this end's counter and its ticks per second. Its data is
    /// compared with `reference`, if there is one.
    pub fn handle_datagram(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        (receiver_counter, receiver_frequency): (i64, i64),
        reference: Option<&Reference>,
    ) -> Reception {
        if self.is_over() {
            return Reception::Ignored;
        }
        let (header, data) = match Datagram::decode(bytes) {
            Ok(Datagram::Data(header, data)) => (header, data),
            Ok(Datagram::Id(id)) => {
                self.next_start_ns = None;
                self.id = Some(id);
                return Reception::Id;
            }
            Err(error) => {
                self.count_error(now_ns, Fault::NotAllDataTransferred);
                return Reception::Malformed(error);
            }
        };
        if let Some(wrong) = reference.and_then(|reference| reference.compare(0, data)) {
            self.count_error(now_ns, Fault::DataDidNotMatchBitPattern(wrong));
            return Reception::Wrong(wrong);
        }
        self.next_start_ns = None;
        self.counts.bits = self.counts.bits.saturating_add(8 * bytes.len() as u64);
        let frames = self.settings.shape.frames;
        let sequence = u64::try_from(header.sequence).unwrap_or(0);
        if sequence == frames {
            self.ended_ns = Some(now_ns);
        }
        let window = self.window.len() as u64;
        let is_inside = (self.head..self.head.saturating_add(window)).contains(&sequence);
        let slot = self.window.get_mut((sequence % window) as usize);
        let Some(slot) = slot.filter(|_| is_inside && sequence <= frames) else {
            self.counts.errors += 1;
            return Reception::OutsideWindow;
        };
        slot.bytes += bytes.len() as u64;
        slot.stamps = Stamps {
            sender_counter: header.sender_counter,
            sender_frequency: header.sender_frequency,
            receiver_counter,
            receiver_frequency,
        };
        Reception::Counted
    }

    /// A datagram came that is longer than [`StreamReceiver::datagram_most_bytes`]: the server's
    /// `-DatagramByteSize` is greater. That fails the stream.
    pub fn handle_truncated(&mut self, now_ns: u64) {
        self.fail(now_ns, Fault::Network(MESSAGE_TOO_LONG));
    }

    /// The system reports an error of the socket, by its number.
    pub fn handle_error(&mut self, now_ns: u64, number: i32) {
        self.fail(now_ns, Fault::Network(number));
    }

    /// Renders the next frame if it is due; the result of it. Where nothing has come at all by then, the
    /// stream fails with all frames dropped.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<Rendered> {
        if self.is_over() || self.render_ns() > now_ns {
            return None;
        }
        if self.head == 1 && self.next_start_ns.is_some() {
            self.counts.dropped = self.settings.shape.frames;
            self.fail(now_ns, Fault::NotAllDataTransferred);
            return None;
        }
        let window = self.window.len() as u64;
        let slot = self.window.get_mut((self.head % window) as usize)?;
        let Slot { bytes, stamps } = std::mem::take(slot);
        let sequence = self.head as i64;
        self.head += 1;
        let frame_bytes = u64::from(self.settings.shape.frame_bytes);
        Some(if bytes == frame_bytes {
            self.counts.completed += 1;
            Rendered::Completed(self.jitter.record_completed(sequence, stamps))
        } else if bytes < frame_bytes {
            self.counts.dropped += 1;
            Rendered::Dropped(JitterRow { sequence, ..JitterRow::default() })
        } else {
            self.counts.repeated += 1;
            Rendered::Repeated
        })
    }

    /// When to call [`StreamReceiver::poll_start`] and [`StreamReceiver::poll_frame`] again, ns; `None`:
    /// the stream is over.
    pub fn next_time(&self) -> Option<u64> {
        let due_ns = self.render_ns();
        (!self.is_over()).then(|| self.next_start_ns.map_or(due_ns, |start| start.min(due_ns)))
    }

    /// Whether the last frame was rendered, or the stream failed.
    pub fn is_over(&self) -> bool {
        self.fault.is_some() || self.has_rendered_all()
    }

    fn has_rendered_all(&self) -> bool {
        self.head > self.settings.shape.frames
    }

    /// Why the stream failed. A stream fails at its end where no datagram of a frame came, or where a datagram was
    /// malformed or wrong.
    pub fn fault(&self) -> Option<Fault> {
        let nothing_came = (self.counts.bits == 0).then_some(Fault::NotAllDataTransferred);
        let at_end = self.deferred_fault.or(nothing_came).filter(|_| self.has_rendered_all());
        self.fault.or(at_end)
    }

    /// What the frames came to so far.
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// The stream's id; `None`: it hasn't come.
    pub fn id(&self) -> Option<ConnectionId> {
        self.id
    }

    /// How long the stream has taken, ns: from its beginning until the last frame came, or until now.
    pub fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.ended_ns.unwrap_or(now_ns).saturating_sub(self.begun_ns)
    }

    /// When the next frame is to be rendered.
    fn render_ns(&self) -> u64 {
        let frames = self.settings.buffered_frames.saturating_add(self.head - 1);
        self.begun_ns.saturating_add(self.settings.shape.frames_ns(frames))
    }

    fn count_error(&mut self, now_ns: u64, fault: Fault) {
        if self.settings.is_strict {
            self.fail(now_ns, fault);
        } else {
            self.counts.errors += 1;
            self.deferred_fault.get_or_insert(fault);
        }
    }

    fn fail(&mut self, now_ns: u64, fault: Fault) {
        if !self.is_over() {
            self.ended_ns.get_or_insert(now_ns);
            self.fault = Some(fault);
        }
    }
}
