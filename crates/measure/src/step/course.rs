//! How far one connection has come in its life: what it does next, and how many bytes of that are left.

use super::{Close, Draws, ID_BYTES, Life, LifeContent, LifeFault, LifePace, LifeStep, Text};
use crate::random::next_word;

/// Bytes of a paced send whose size isn't given.
const PACED_SEND_BYTES: u64 = 1 << 16;

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Send, receive, or both at the same time.
    Transfer {
        /// The most bytes of the next send; 0: none.
        send_bytes: u64,
        /// The most bytes of the next receive; 0: none. Never more than what is left, so that what follows isn't
        /// taken in with it.
        receive_bytes: u64,
        /// When sending goes on, where the pace has it wait.
        resumes_ns: Option<u64>,
    },
    /// Send [`Course::text_to_send`].
    SendText,
    /// Receive at most so many bytes of a text.
    ReceiveText(usize),
    /// Do nothing until this time.
    Hold(u64),
    /// Close.
    Over,
}

/// One connection's place in its life. A load may hold half a million of them, so what few lives have is boxed.
#[derive(Clone, Debug)]
pub struct Course {
    /// Steps that are over.
    done: u32,
    text: TextCourse,
    /// Whether anything has come, payload or text.
    has_received: bool,
    /// Whether it closes by a reset, where each connection draws that.
    resets: bool,
    /// Of a step in turns: the bytes behind the turn that runs, and whether this end sends in it.
    turns: (u64, bool),
    outgoing: Way,
    incoming: Way,
    /// The id, or as much of it as has come.
    id: Option<Box<[u8; ID_BYTES]>>,
    /// When the step that holds the connection is over; 0: it hasn't begun.
    held_until_ns: u64,
    /// Where the life has a pace.
    pacing: Option<Box<Pacing>>,
    /// The random numbers of both ends, and this end's.
    shared: u64,
    own: u64,
}

/// How far the text that runs has come.
#[derive(Clone, Copy, Debug, Default)]
struct TextCourse {
    /// Bytes of it that have moved.
    done: u8,
    /// Whether one of those that came is another than the text's.
    differs: bool,
    /// Whether the connection's id is known: it is sent, or has come.
    has_id: bool,
}

/// An id that isn't known.
const NO_ID: [u8; ID_BYTES] = [0; ID_BYTES];

/// One direction.
#[derive(Clone, Debug, Default)]
struct Way {
    /// Payload that is left of the step or turn.
    left: u64,
    /// Payload that has moved.
    moved: u64,
    /// What is left of one send.
    unit_left: u64,
    /// Position of the first byte in the pattern.
    first: u64,
}

#[derive(Clone, Debug, Default)]
struct Pacing {
    /// The rate, where there is one.
    bytes_per_s: u64,
    /// Where the slice of time begins that is used; 0: nowhere yet.
    from_ns: u64,
    /// Bytes taken from it and the next ones.
    used: u64,
    /// Sends of the group that are left; 0: nothing was sent.
    sends: u64,
    /// When the send that was begun may leave.
    due_ns: u64,
}

impl Course {
    /// The beginning of connection number `number`. The numbers that this end draws for itself begin at `own`.
    pub fn new(life: &Life, number: u32, own: u64) -> Self {
        let mut own = own;
        let number = u64::from(number);
        let shared = match life.draws {
            Draws::Seed { seed } => seed ^ next_word(&mut { number }),
            Draws::Each => next_word(&mut own),
        };
        let (send_first, receive_first) = match life.content {
            LifeContent::Pattern { send_offset, receive_offset, stride, .. } => {
                let further = number.wrapping_mul(stride);
                (send_offset.wrapping_add(further), receive_offset.wrapping_add(further))
            }
            LifeContent::Filler => (0, 0),
        };
        let resets = life.close == Close::Drawn && next_word(&mut own) >> 63 == 1;
        let bytes_per_s = match life.pace {
            Some(LifePace::Rate { bytes_per_s, .. }) => bytes_per_s.draw(&mut own),
            _ => 0,
        };
        let mut course = Self {
            done: 0,
            text: TextCourse::default(),
            has_received: false,
            resets,
            turns: (0, false),
            outgoing: Way { first: send_first, ..Way::default() },
            incoming: Way { first: receive_first, ..Way::default() },
            id: None,
            held_until_ns: 0,
            pacing: life.pace.map(|_| Box::new(Pacing { bytes_per_s, ..Pacing::default() })),
            shared,
            own,
        };
        course.begin_step(life);
        course
    }

    /// What comes next. The time counts only where the life [is timed](Life::is_timed).
    pub fn poll_move(&mut self, life: &Life, now_ns: u64) -> Move {
        let Some(step) = self.step(life) else { return Move::Over };
        match step {
            LifeStep::SendText { .. } => Move::SendText,
            LifeStep::ReceiveText { text } => {
                Move::ReceiveText(text.length().saturating_sub(self.text.done.into()))
            }
            LifeStep::Hold { time_ns } => {
                if self.held_until_ns == 0 {
                    self.held_until_ns = now_ns.saturating_add(*time_ns).max(1);
                }
                if now_ns < self.held_until_ns {
                    return Move::Hold(self.held_until_ns);
                }
                self.end_step(life);
                self.poll_move(life, now_ns)
            }
            _ => self.poll_transfer(life, now_ns),
        }
    }

    fn poll_transfer(&mut self, life: &Life, now_ns: u64) -> Move {
        let mut receive_bytes = self.incoming.left;
        if let Some(unit) = life.unit_bytes.filter(|_| receive_bytes > 0) {
            let unit = unit.draw(&mut self.own).max(1);
            receive_bytes = receive_bytes.min(unit.saturating_mul(life.receives_at_once.into()));
        }
        if self.outgoing.left > 0 && self.outgoing.unit_left == 0 {
            let unit = match (life.unit_bytes, life.pace) {
                (Some(unit), _) => unit.draw(&mut self.own).max(1),
                (None, Some(_)) => PACED_SEND_BYTES,
                (None, None) => u64::MAX,
            };
            let unit = unit.min(self.outgoing.left);
            self.outgoing.unit_left = unit;
            if let Some(pacing) = &mut self.pacing {
                pacing.begin_send(life.pace, unit, now_ns);
            }
        }
        let due_ns = self.pacing.as_ref().map_or(0, |pacing| pacing.due_ns);
        let waits = self.outgoing.unit_left > 0 && now_ns < due_ns;
        Move::Transfer {
            send_bytes: if waits { 0 } else { self.outgoing.unit_left },
            receive_bytes,
            resumes_ns: waits.then_some(due_ns),
        }
    }

    /// The step that runs; absent: all are over.
    fn step<'a>(&self, life: &'a Life) -> Option<&'a LifeStep> {
        life.steps.get(self.done as usize)
    }

    /// So much payload was sent.
    pub fn record_sent(&mut self, life: &Life, bytes: u64) {
        self.outgoing.record(bytes);
        self.go_on(life);
    }

    /// So much payload was received.
    pub fn record_received(&mut self, life: &Life, bytes: u64) {
        self.has_received = true;
        self.incoming.record(bytes);
        self.go_on(life);
    }

    /// The rest of the text that is to be sent.
    pub fn text_to_send(&self, life: &Life) -> &[u8] {
        let bytes: &[u8] = match self.step(life) {
            Some(LifeStep::SendText { text: Text::Fixed { bytes } }) => bytes.as_bytes(),
            Some(LifeStep::SendText { text: Text::Id }) => self.id(),
            _ => &[],
        };
        bytes.get(usize::from(self.text.done)..).unwrap_or_default()
    }

    /// So much of the text was sent.
    pub fn record_text_sent(&mut self, life: &Life, bytes: usize) {
        self.text.done = self.text.done.saturating_add(as_count(bytes));
        if self.text_to_send(life).is_empty() {
            self.end_step(life);
        }
    }

    /// These bytes of the text have come.
    ///
    /// # Errors
    ///
    /// [`LifeFault::WrongText`] where it is whole, and another.
    pub fn record_text_received(&mut self, life: &Life, came: &[u8]) -> Result<(), LifeFault> {
        let Some(LifeStep::ReceiveText { text }) = self.step(life) else { return Ok(()) };
        self.has_received = true;
        let done = usize::from(self.text.done);
        match text {
            Text::Fixed { bytes } => {
                let expected = bytes.as_bytes().get(done..).unwrap_or_default();
                self.text.differs |= came.iter().zip(expected).any(|(came, byte)| came != byte);
            }
            Text::Id => {
                let id = self.id.get_or_insert_with(|| Box::new(NO_ID));
                for (place, byte) in id.iter_mut().skip(done).zip(came) {
                    *place = *byte;
                }
            }
        }
        self.text.done = self.text.done.saturating_add(as_count(came.len()));
        if usize::from(self.text.done) < text.length() {
            return Ok(());
        }
        if self.text.differs {
            return Err(LifeFault::WrongText);
        }
        self.text.has_id |= *text == Text::Id;
        self.end_step(life);
        Ok(())
    }

    /// How it closes, where each connection draws that.
    pub fn close(&self, life: &Life) -> Close {
        match life.close {
            Close::Drawn if self.resets => Close::Reset,
            Close::Drawn => Close::Graceful,
            close => close,
        }
    }

    /// Whether nothing is left but the close.
    pub fn is_over(&self, life: &Life) -> bool {
        self.done as usize >= life.steps.len()
    }

    /// Holds the connection no longer, where nothing else is left.
    pub fn end_hold(&mut self, life: &Life) -> bool {
        let holds = matches!(self.step(life), Some(LifeStep::Hold { .. }));
        if holds {
            self.held_until_ns = 1;
        }
        holds
    }

    /// Whether the next thing is to receive, and nothing else.
    pub fn only_receives(&self, life: &Life) -> bool {
        match self.step(life) {
            Some(LifeStep::ReceiveText { .. }) => true,
            Some(LifeStep::SendText { .. } | LifeStep::Hold { .. }) | None => false,
            Some(_) => self.outgoing.left == 0 && self.incoming.left > 0,
        }
    }

    /// Whether nothing is left to send.
    pub fn has_sent_all(&self, life: &Life) -> bool {
        let sends_now = match self.step(life) {
            Some(LifeStep::Alternate { .. }) => self.outgoing.left > 0 || self.turns.0 > 0,
            Some(LifeStep::SendText { .. }) => true,
            _ => self.outgoing.left > 0,
        };
        let later = life.steps.get(self.done as usize + 1..).unwrap_or_default();
        !sends_now && !later.iter().any(LifeStep::sends)
    }

    /// Whether all transfers are over, whatever texts and pauses are left.
    pub fn has_transferred(&self, life: &Life) -> bool {
        let rest = life.steps.get(self.done as usize..).unwrap_or_default();
        rest.iter().all(|step| step.bytes().is_none())
    }

    /// Whether anything has come, payload or text.
    pub fn has_received(&self) -> bool {
        self.has_received
    }

    /// The connection's id, from when it is sent or has come; zeros before.
    pub fn id(&self) -> &[u8; ID_BYTES] {
        self.id.as_deref().filter(|_| self.text.has_id).unwrap_or(&NO_ID)
    }

    /// Payload that has been sent, and that has been received.
    pub fn moved(&self) -> (u64, u64) {
        (self.outgoing.moved, self.incoming.moved)
    }

    /// Position in the pattern of the next byte to send.
    pub fn send_position(&self) -> u64 {
        self.outgoing.first.wrapping_add(self.outgoing.moved)
    }

    /// Position in the pattern of the next byte to receive.
    pub fn receive_position(&self) -> u64 {
        self.incoming.first.wrapping_add(self.incoming.moved)
    }

    /// Ends turns and steps of which nothing is left.
    fn go_on(&mut self, life: &Life) {
        if self.outgoing.left > 0 || self.incoming.left > 0 {
            return;
        }
        match self.step(life) {
            Some(LifeStep::Alternate { .. }) if self.turns.0 > 0 => self.begin_turn(life),
            Some(_) => self.end_step(life),
            None => {}
        }
    }

    fn end_step(&mut self, life: &Life) {
        self.done += 1;
        self.begin_step(life);
    }

    /// Begins the step that comes next and has anything to do.
    fn begin_step(&mut self, life: &Life) {
        (self.held_until_ns, self.outgoing.unit_left) = (0, 0);
        (self.text.done, self.text.differs) = (0, false);
        while let Some(step) = self.step(life) {
            let drawn = step.bytes().map(|bytes| bytes.draw(&mut self.shared));
            match (step, drawn) {
                (LifeStep::SendText { text: Text::Id }, _) => return self.draw_id(),
                (
                    LifeStep::SendText { .. }
                    | LifeStep::ReceiveText { .. }
                    | LifeStep::Hold { .. },
                    _,
                ) => return,
                (LifeStep::Send { .. }, Some(bytes)) => self.outgoing.left = bytes,
                (LifeStep::Receive { .. }, Some(bytes)) => self.incoming.left = bytes,
                (LifeStep::Duplex { .. }, Some(bytes)) => {
                    (self.outgoing.left, self.incoming.left) =
                        (bytes.div_ceil(2), bytes.div_ceil(2));
                }
                (LifeStep::Alternate { sends_first, .. }, Some(bytes)) => {
                    // The turn before the first was the other end's.
                    self.turns = (bytes, !sends_first);
                    self.begin_turn(life);
                }
                _ => {}
            }
            if self.outgoing.left > 0 || self.incoming.left > 0 {
                return;
            }
            self.done += 1;
        }
    }

    fn begin_turn(&mut self, life: &Life) {
        let Some(LifeStep::Alternate { send_bytes, receive_bytes, .. }) = self.step(life) else {
            return;
        };
        let (rest, sent) = self.turns;
        // A turn of no bytes is the other's.
        let sends = (!sent && *send_bytes > 0) || *receive_bytes == 0;
        let turn = u64::from(if sends { *send_bytes } else { *receive_bytes }).min(rest);
        let way = if sends { &mut self.outgoing } else { &mut self.incoming };
        way.left = turn;
        // Where neither end has any bytes in its turns, nothing is left.
        self.turns = (if turn == 0 { 0 } else { rest - turn }, sends);
    }

    fn draw_id(&mut self) {
        let words = [next_word(&mut self.own), next_word(&mut self.own)];
        let id = self.id.get_or_insert_with(|| Box::new(NO_ID));
        write_uuid(id, words);
        self.text.has_id = true;
    }
}

/// Bytes of a text, which has few.
fn as_count(bytes: usize) -> u8 {
    u8::try_from(bytes).unwrap_or(u8::MAX)
}

impl Way {
    fn record(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.unit_left = self.unit_left.saturating_sub(bytes);
        self.moved = self.moved.saturating_add(bytes);
    }
}

impl Pacing {
    /// A send of so many bytes is about to leave: finds out when it may.
    fn begin_send(&mut self, pace: Option<LifePace>, bytes: u64, now_ns: u64) {
        match pace {
            None => {}
            Some(LifePace::Rate { slice_ns, .. }) => {
                let of_slice = u128::from(self.bytes_per_s) * u128::from(slice_ns) / 1_000_000_000;
                let of_slice = u64::try_from(of_slice).unwrap_or(u64::MAX).max(1);
                let slice_ns = slice_ns.max(1);
                if self.from_ns == 0 {
                    self.from_ns = now_ns;
                }
                self.pass_slices(
                    now_ns.saturating_sub(self.from_ns) / slice_ns,
                    of_slice,
                    slice_ns,
                );
                // A slice that is used up has the send wait for the first that isn't.
                let ahead = self.used / of_slice;
                self.pass_slices(ahead, of_slice, slice_ns);
                self.due_ns = if ahead > 0 { self.from_ns } else { now_ns };
                self.used = self.used.saturating_add(bytes);
            }
            Some(LifePace::Bursts { sends, delay_ns }) => {
                if self.sends == 0 {
                    self.sends = sends.max(1);
                }
                self.sends -= 1;
                let delay_ns = if self.sends == 0 { delay_ns } else { 0 };
                self.due_ns = now_ns.saturating_add(delay_ns);
            }
        }
    }

    fn pass_slices(&mut self, slices: u64, of_slice: u64, slice_ns: u64) {
        self.from_ns = self.from_ns.saturating_add(slices.saturating_mul(slice_ns));
        self.used = self.used.saturating_sub(slices.saturating_mul(of_slice));
    }
}

/// Writes a UUID of version 4 (RFC 9562, section 5.4) from 128 random bits, of which six give way.
fn write_uuid(into: &mut [u8; ID_BYTES], words: [u64; 2]) {
    let high = words[0] & !0xf000 | 0x4000;
    let low = words[1] & !(0b11 << 62) | (0b10 << 62);
    let digits =
        (0..16).rev().map(|n| high >> (4 * n)).chain((0..16).rev().map(|n| low >> (4 * n)));
    let places = (0..ID_BYTES - 1).filter(|place| ![8, 13, 18, 23].contains(place));
    into.fill(b'-');
    for (place, digit) in places.zip(digits) {
        if let Some(byte) = into.get_mut(place) {
            *byte = b"0123456789abcdef".get((digit & 0xf) as usize).copied().unwrap_or(b'0');
        }
    }
    if let Some(last) = into.last_mut() {
        *last = 0;
    }
}

#[cfg(test)]
mod tests;
