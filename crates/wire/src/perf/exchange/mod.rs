//! One stream as its client sees it: what to send next, when to stop, what came of it.

use super::{HEADER_BYTES, UNLIMITED};

/// Before so much was sent nothing is known of how fast a stream is: buffers take the first at once.
const SETTLED_BYTES: u64 = 16 << 20;

/// What a client does on each stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the request, its header counted; in a timed exchange how long to send, µs. 0 is the
    /// header alone.
    pub upload: u64,
    /// Bytes of the response that is asked for; in a timed exchange how long to receive, µs from
    /// the first byte.
    pub download: u64,
    /// Whether the two are times.
    pub timed: bool,
    /// Bytes of a block: the clock is looked at once a block. At least [`HEADER_BYTES`].
    pub block_bytes: u32,
}

impl Shape {
    /// The length of what a stream repeats: a block that has room for the header.
    pub fn repeated_bytes(&self) -> usize {
        (self.block_bytes as usize).max(HEADER_BYTES)
    }

    /// What the header of each request says. Timed ones want no end, as the original's do: it asks for
    /// bytes even when it only sends, and stops the answer at its first byte.
    pub fn header(&self) -> u64 {
        if self.timed { UNLIMITED } else { self.download }
    }
}

/// Something to send: a part of the block, from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the block it starts.
    pub offset: usize,
    /// How long it is.
    pub length: usize,
    /// Whether it is the stream's first.
    pub opens: bool,
    /// Whether the stream ends with it.
    pub finishes: bool,
}

/// Bytes one way, and how long they took from the opening of the stream on, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Time, at least 1 µs.
    pub elapsed_us: u64,
}

impl Transfer {
    /// Kilobits per second as the original counts them: rounded down, kept in 32 bits.
    pub fn rate_kbps(&self) -> u32 {
        let bits = u128::from(self.bytes) * 8_000_000;
        (bits / (1000 * u128::from(self.elapsed_us.max(1)))) as u32
    }
}

/// What came of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was sent; absent when nothing was to be sent, or not all of it arrived.
    pub upload: Option<Transfer>,
    /// What was received; absent when nothing was to be received, or not all of it came.
    pub download: Option<Transfer>,
    /// From the opening to the end of the response, µs; absent when the exchange wasn't completed.
    pub latency_us: Option<u64>,
}

/// A stream of a client. Times are µs on any monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    shape: Shape,
    opened_us: u64,
    sent_bytes: u64,
    /// The last block has begun: the stream ends with it.
    last_block: bool,
    finished_sending: bool,
    delivered_bytes: u64,
    send_end_us: Option<u64>,
    received_bytes: u64,
    first_response_us: Option<u64>,
    receive_end_us: Option<u64>,
    motion: Motion,
    cuts: Cuts,
}

/// What moved last, µs.
#[derive(Clone, Copy, Debug)]
struct Motion {
    /// When something last reached either end.
    any_us: u64,
    /// When bytes of the request last reached the other end.
    delivered_us: Option<u64>,
}

/// What ended before its end.
#[derive(Clone, Copy, Debug, Default)]
struct Cuts {
    /// The run's end, or the loss of the other end, cut the sending off: its time ends with the last delivery.
    sending: bool,
    /// The other end, or the path to it, broke the exchange off.
    by_peer: bool,
}

impl Exchange {
    /// A stream that is opened now.
    pub fn new(shape: Shape, now_us: u64) -> Self {
        Self {
            shape,
            opened_us: now_us,
            sent_bytes: 0,
            last_block: false,
            finished_sending: false,
            delivered_bytes: 0,
            send_end_us: None,
            received_bytes: 0,
            first_response_us: None,
            receive_end_us: None,
            motion: Motion { any_us: now_us, delivered_us: None },
            cuts: Cuts::default(),
        }
    }

    /// What to send next; `None` when all is sent.
    pub fn poll_send(&mut self, now_us: u64) -> Option<Piece> {
        self.poll_run(now_us, 1)
    }

    /// The same where up to so many blocks stand one behind another and can be sent as one piece. A
    /// timed exchange takes no more of them at once than it has sent in a millisecond so far: it looks
    /// at the clock once a piece.
    pub fn poll_run(&mut self, now_us: u64, blocks: u64) -> Option<Piece> {
        if self.finished_sending || self.send_end_us.is_some() {
            return None;
        }
        let block_bytes = self.shape.repeated_bytes() as u64;
        let offset = self.sent_bytes % block_bytes;
        let mut run_bytes = block_bytes * blocks.max(1) - offset;
        let (left_bytes, finishes) = if self.shape.timed {
            if offset == 0 && !self.last_block {
                self.last_block = now_us.saturating_sub(self.opened_us) >= self.shape.upload;
            }
            let paced_bytes =
                self.sent_bytes / (now_us.saturating_sub(self.opened_us) / 1000).max(1);
            let is_alone = self.last_block || offset > 0 || paced_bytes < block_bytes;
            if is_alone || self.sent_bytes < SETTLED_BYTES {
                run_bytes = block_bytes - offset;
            } else {
                run_bytes = run_bytes.min(paced_bytes / block_bytes * block_bytes);
            }
            (run_bytes, self.last_block)
        } else {
            let all_bytes = match self.shape.upload {
                0 => HEADER_BYTES as u64,
                bytes => bytes,
            };
            let left_bytes = all_bytes.saturating_sub(self.sent_bytes);
            (left_bytes, left_bytes <= run_bytes)
        };
        let length = left_bytes.min(run_bytes);
        let (offset, length) = (offset as usize, length as usize);
        Some(Piece { offset, length, opens: self.sent_bytes == 0, finishes })
    }

    /// So many bytes of that piece were taken; the end goes with the last one.
    pub fn record_sent(&mut self, piece: &Piece, taken_bytes: usize) {
        self.sent_bytes += taken_bytes as u64;
        self.finished_sending = piece.finishes && taken_bytes == piece.length;
    }

    /// So many bytes more have reached the other end; more than were sent is all of them.
    pub fn handle_delivered(&mut self, bytes: u64, now_us: u64) {
        if bytes > 0 {
            self.motion.any_us = now_us;
            self.motion.delivered_us = Some(now_us);
        }
        self.delivered_bytes = self.delivered_bytes.saturating_add(bytes).min(self.sent_bytes);
        if self.finished_sending && self.delivered_bytes == self.sent_bytes {
            self.send_end_us.get_or_insert(now_us);
        }
    }

    /// So many bytes have reached the other end by now, all told.
    pub fn record_delivered(&mut self, bytes: u64, now_us: u64) {
        self.handle_delivered(bytes.saturating_sub(self.delivered_bytes), now_us);
    }

    /// Bytes of the response have come, or its end. Says whether to stop it: a timed download has had
    /// its time.
    pub fn handle_received(&mut self, bytes: u64, finished: bool, now_us: u64) -> bool {
        if self.receive_end_us.is_some() {
            return false;
        }
        self.received_bytes += bytes;
        self.motion.any_us = now_us;
        let first_us = *self.first_response_us.get_or_insert(now_us);
        let expired = self.shape.timed && now_us.saturating_sub(first_us) >= self.shape.download;
        if finished || expired {
            self.receive_end_us = Some(now_us);
        }
        expired && !finished
    }

    /// So many bytes at most that were taken for delivered are still on their way; the others were at the other end by
    /// `at_us`, or when the last ones were taken for delivered. Says how many those of this stream are.
    pub fn take_back_delivered(&mut self, most_bytes: u64, at_us: Option<u64>) -> u64 {
        if self.send_end_us.is_some() {
            return 0;
        }
        let bytes = most_bytes.min(self.delivered_bytes);
        self.delivered_bytes -= bytes;
        self.motion.delivered_us =
            at_us.or(self.motion.delivered_us).filter(|_| self.delivered_bytes > 0);
        bytes
    }

    /// Nothing more will be sent: the other end stopped it, or the connection is gone.
    pub fn handle_send_aborted(&mut self, now_us: u64) {
        self.send_end_us.get_or_insert(now_us);
    }

    /// Nothing more will come.
    pub fn handle_receive_aborted(&mut self, now_us: u64) {
        self.receive_end_us.get_or_insert(now_us);
    }

    /// The other end resets the stream. Without the end of its response that breaks the exchange off.
    pub fn handle_reset(&mut self, now_us: u64) {
        self.cuts.by_peer |= self.receive_end_us.is_none();
        self.handle_send_aborted(now_us);
        self.handle_receive_aborted(now_us);
    }

    /// The run is over. Sending that is cut off ended with the last delivery, receiving ends now.
    pub fn handle_cut(&mut self, now_us: u64) {
        self.cut_sending();
        self.handle_receive_aborted(now_us);
    }

    /// The other end is gone. What was not over by then ended when something last reached either end.
    pub fn handle_vanished(&mut self) {
        self.cuts.by_peer |= !self.is_over();
        self.cut_sending();
        self.handle_receive_aborted(self.motion.any_us);
    }

    fn cut_sending(&mut self) {
        self.cuts.sending |= self.send_end_us.is_none();
        self.handle_send_aborted(self.motion.delivered_us.unwrap_or(self.motion.any_us));
    }

    /// Whether both directions have ended.
    pub fn is_over(&self) -> bool {
        self.send_end_us.is_some() && self.receive_end_us.is_some()
    }

    /// What came of it, when both directions have ended. The original's rules of success: an upload
    /// counts when its header and, if it had a length, all of it has arrived; a download when it
    /// began and, if it had a length, all of it came.
    pub fn outcome(&self) -> Outcome {
        let (Some(send_end_us), Some(receive_end_us)) = (self.send_end_us, self.receive_end_us)
        else {
            return Outcome::default();
        };
        let Shape { upload, download, timed, .. } = self.shape;
        let since_opening = |at_us: u64| at_us.saturating_sub(self.opened_us).max(1);
        let (sent, received) = (self.delivered_bytes, self.received_bytes);
        let sent_well = upload == 0 || sent >= HEADER_BYTES as u64 && (timed || sent >= upload);
        let begun = self.first_response_us.is_some();
        let received_well =
            begun && (download == 0 || received > 0 && (timed || received >= download));
        Outcome {
            upload: (upload > 0 && sent_well).then(|| Transfer {
                bytes: sent,
                elapsed_us: since_opening(match self.cuts.sending {
                    true => send_end_us,
                    false => send_end_us.max(receive_end_us),
                }),
            }),
            download: (download > 0 && received_well)
                .then(|| Transfer { bytes: received, elapsed_us: since_opening(receive_end_us) }),
            latency_us: (sent_well && received_well && !self.cuts.by_peer)
                .then(|| receive_end_us.saturating_sub(self.opened_us)),
        }
    }

    /// Bytes that have reached the other end, whatever became of the rest.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Bytes of the response that came, whatever became of the rest.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
}

#[cfg(test)]
mod tests;
