//! The server's end of one stream: which datagram is sent when.

use super::shape::{Split, StreamShape, Train, TrainLimits};

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// The stream's id ([`encode_id`](super::datagram::encode_id)).
    Id,
    /// Datagrams of a frame: each a header, then data from offset 0 on.
    Data {
        /// The frame's number.
        sequence: i64,
        /// Their lengths, headers included.
        train: Train,
        /// When the frame was due, ns.
        due_ns: u64,
    },
}

/// A stream as its server sends it. Frame `k` is due `k` frame times after the stream's beginning. Its
/// datagrams are sent one behind the other. Late frames are sent at once; none is left out.
#[derive(Clone, Copy, Debug)]
pub struct StreamSender {
    shape: StreamShape,
    begun_ns: u64,
    sent_id: bool,
    /// The number of the frame that is sent, or was sent last.
    sequence: u64,
    frame: Split,
}

impl StreamSender {
    /// A stream that begins now.
    pub fn new(shape: StreamShape, now_ns: u64) -> Self {
        let frame = Split::default();
        Self { shape, begun_ns: now_ns, sent_id: false, sequence: 0, frame }
    }

    /// What to send next, if it is due. It counts as sent.
    pub fn poll_send(&mut self, now_ns: u64, limits: TrainLimits) -> Option<Outgoing> {
        if !self.sent_id {
            self.sent_id = true;
            return Some(Outgoing::Id);
        }
        if self.frame.left_bytes() == 0 {
            if self.next_time()? > now_ns {
                return None;
            }
            self.sequence += 1;
            self.frame = self.shape.datagrams();
        }
        let train = self.frame.next_train(limits)?;
        let due_ns = self.due_ns(self.sequence);
        Some(Outgoing::Data { sequence: self.sequence as i64, train, due_ns })
    }

    /// When the next datagram is due, ns; `None`: all are sent.
    pub fn next_time(&self) -> Option<u64> {
        if !self.sent_id {
            return Some(self.begun_ns);
        }
        if self.frame.left_bytes() > 0 {
            return Some(self.due_ns(self.sequence));
        }
        (self.sequence < self.shape.frames).then(|| self.due_ns(self.sequence + 1))
    }

    /// Whether all is sent.
    pub fn is_over(&self) -> bool {
        self.next_time().is_none()
    }

    fn due_ns(&self, sequence: u64) -> u64 {
        self.begun_ns.saturating_add(self.shape.frames_ns(sequence))
    }
}
