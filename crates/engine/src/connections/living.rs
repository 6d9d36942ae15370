//! Lives of more than sends and receives of fixed sizes: turns, both ways at once, texts, sizes that are drawn, bytes
//! that are verified, pauses.

use std::io;
use std::net::SocketAddr;

use linerate_measure::step::{
    Close, Course, Difference, ID_BYTES, Life, LifeContent, LifeFault, Move,
};

use super::Interest;
use super::finished::Call;
use super::script::LifeStream;
use super::spin_wait::Awaited;
use crate::clock::monotonic_ns;
use crate::flow::Local;
use crate::tally::Tally;

/// One connection's place in such a life.
pub(super) struct Living {
    course: Course,
    interest: Interest,
    /// Whether it waits for an answer to what it has just sent.
    awaits: bool,
    /// When it goes on by itself, and the time for which that was queued last; 0: never.
    resumes_ns: u64,
    queued_ns: u64,
    /// When its life began, where connections are recorded.
    pub(super) began_ns: u64,
    /// When it had nothing to do but stay open; 0: never.
    pub(super) held_ns: u64,
    /// When all transfers were over; 0: they aren't.
    pub(super) transferred_ns: u64,
    /// The call that was made last.
    pub(super) call: Call,
    /// Where connections are recorded.
    pub(super) established: Option<Box<Established>>,
}

/// What is known of a connection from when it stands.
pub(super) struct Established {
    /// This end and the other.
    pub(super) addresses: (SocketAddr, SocketAddr),
    /// How often the first segment was sent again, where the kernel is asked.
    pub(super) syn_retransmissions: Option<u64>,
}

impl Living {
    /// The beginning of a connection's life. The numbers that this end draws for itself begin at `own`.
    pub(super) fn new(life: &Life, number: u32, own: u64) -> Self {
        let course = Course::new(life, number, own);
        Self {
            interest: Interest::Readable,
            // Of a client's connection that has just been made.
            awaits: course.only_receives(life),
            resumes_ns: 0,
            queued_ns: 0,
            began_ns: 0,
            held_ns: 0,
            transferred_ns: 0,
            call: Call::default(),
            established: None,
            course,
        }
    }

    /// Whether nothing of what it is to receive next can be here yet: then to ask for that is a call for nothing.
    pub(super) fn awaits(&self) -> bool {
        self.awaits
    }

    pub(super) fn is_over(&self, life: &Life) -> bool {
        self.course.is_over(life)
    }

    /// Whether nothing is left to send.
    pub(super) fn has_sent_all(&self, life: &Life) -> bool {
        self.course.has_sent_all(life)
    }

    pub(super) fn interest(&self) -> Interest {
        self.interest
    }

    /// Holds its connection no longer; says whether it did.
    pub(super) fn end_hold(&mut self, life: &Life) -> bool {
        self.held_ns > 0 && self.course.end_hold(life)
    }

    /// Whether it pauses by itself at this time.
    pub(super) fn is_paused(&self, now_ns: u64) -> bool {
        self.resumes_ns > now_ns
    }

    /// When it is to go on by itself, where that isn't queued yet.
    pub(super) fn take_resumption(&mut self) -> Option<u64> {
        if self.resumes_ns == self.queued_ns {
            return None;
        }
        self.queued_ns = self.resumes_ns;
        Some(self.resumes_ns).filter(|resumes_ns| *resumes_ns > 0)
    }

    /// It has had its turn, and goes on when the others have had theirs.
    pub(super) fn yield_turn(&mut self) {
        // A time that is always over, and never the one before.
        self.resumes_ns = if self.queued_ns == 1 { 2 } else { 1 };
    }

    /// The payload that was sent, and that was received.
    pub(super) fn moved(&self) -> (u64, u64) {
        self.course.moved()
    }

    /// How it closes.
    pub(super) fn close(&self, life: &Life) -> Close {
        self.course.close(life)
    }

    /// Whether anything has come.
    pub(super) fn has_received(&self) -> bool {
        self.course.has_received()
    }

    /// The connection's id, from when it is sent or has come.
    pub(super) fn id(&self) -> [u8; ID_BYTES] {
        *self.course.id()
    }

    /// One operation, or one each way.
    pub(super) fn advance<S: LifeStream>(
        &mut self,
        life: &Life,
        stream: &mut S,
        (tally, texts): (&Tally, &Tally),
        local: &mut Local,
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        let now_ns = if life.is_timed() { monotonic_ns() } else { 0 };
        (self.resumes_ns, self.awaits) = (0, false);
        let sent_before = self.course.moved().0;
        let next = self.course.poll_move(life, now_ns);
        let sends_text = next == Move::SendText;
        match next {
            Move::Over => Ok(()),
            Move::Hold(until_ns) => {
                if self.held_ns == 0 {
                    self.held_ns = now_ns;
                }
                (self.interest, self.resumes_ns) = (Interest::Readable, until_ns);
                self.call = Call::Receive;
                stream.see_silence(wait)
            }
            Move::SendText => {
                (self.interest, self.call) = (Interest::Writable, Call::Send);
                let sent = stream.send(self.course.text_to_send(life))?;
                texts.extra().texts.sent_bytes.add(sent as u64);
                self.course.record_text_sent(life, sent);
                Ok(())
            }
            Move::ReceiveText(most) => {
                (self.interest, self.call) = (Interest::Readable, Call::Receive);
                let into = local.receive_buffer.get_mut(..most).unwrap_or_default();
                let length = receive_some(stream, into, wait)?;
                texts.extra().texts.received_bytes.add(length as u64);
                let came = into.get(..length).unwrap_or_default();
                self.course.record_text_received(life, came).map_err(fault)
            }
            Move::Transfer { send_bytes, receive_bytes, resumes_ns } => {
                self.resumes_ns = resumes_ns.unwrap_or(0);
                self.interest = match (send_bytes > 0, receive_bytes > 0) {
                    (true, true) => Interest::Both,
                    (true, false) => Interest::Writable,
                    (false, true) => Interest::Readable,
                    (false, false) => Interest::Nothing,
                };
                self.transfer(life, (send_bytes, receive_bytes), stream, (tally, local), wait)
            }
        }?;
        if self.transferred_ns == 0 && self.course.has_transferred(life) {
            self.transferred_ns = monotonic_ns();
        }
        let has_sent = sends_text || self.course.moved().0 > sent_before;
        if has_sent && self.course.only_receives(life) {
            (self.interest, self.awaits) = (Interest::Readable, true);
        }
        Ok(())
    }

    /// Sends and receives once each, where that is to be.
    fn transfer<S: LifeStream>(
        &mut self,
        life: &Life,
        (send_bytes, receive_bytes): (u64, u64),
        stream: &mut S,
        (tally, local): (&Tally, &mut Local),
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        let sent = match send_bytes {
            0 => None,
            most => would_not_block(self.send(life, most, stream, tally, local))?,
        };
        let received = match receive_bytes {
            0 => None,
            most => would_not_block(self.receive(life, most, stream, (tally, local), wait))?,
        };
        match (sent, received) {
            (None, None) => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    fn send(
        &mut self,
        life: &Life,
        most: u64,
        stream: &mut impl LifeStream,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<()> {
        self.call = Call::Send;
        let length = as_length(most).min(local.receive_buffer.len());
        let position = match life.content {
            LifeContent::Filler => 0,
            LifeContent::Pattern { .. } => self.course.send_position(),
        };
        let sent = stream.send(local.pattern.slice(position, length))?;
        tally.record_sent(sent);
        self.course.record_sent(life, sent as u64);
        Ok(())
    }

    fn receive<S: LifeStream>(
        &mut self,
        life: &Life,
        most: u64,
        stream: &mut S,
        (tally, local): (&Tally, &mut Local),
        wait: &mut S::Wait,
    ) -> io::Result<()> {
        self.call = Call::Receive;
        let most = as_length(most).min(local.receive_buffer.len());
        let into = local.receive_buffer.get_mut(..most).unwrap_or_default();
        let length = receive_some(stream, into, wait)?;
        tally.record_received(length);
        if let LifeContent::Pattern { verify: true, .. } = life.content {
            let came = into.get(..length).unwrap_or_default();
            let position = self.course.receive_position();
            let expected = local.pattern.slice(position, length);
            if !local.pattern.matches(position, came)
                && let Some(wrong) = Difference::find(self.course.moved().1, came, expected)
            {
                return Err(fault(LifeFault::Corrupt(wrong)));
            }
        }
        self.course.record_received(life, length as u64);
        Ok(())
    }
}

/// An error for what a peer did against a connection's life.
pub(crate) fn fault(fault: LifeFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

/// `None` where it would block.
fn would_not_block(outcome: io::Result<()>) -> io::Result<Option<()>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        outcome => outcome.map(Some),
    }
}

fn receive_some<S: LifeStream>(
    stream: &mut S,
    into: &mut [u8],
    wait: &mut S::Wait,
) -> io::Result<usize> {
    match stream.receive(Awaited::Bytes, into, wait)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(length),
    }
}

fn as_length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
