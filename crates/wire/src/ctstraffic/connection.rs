//! One end of a TCP connection: id, data, `DONE`, and the end of the connection.
//!
//! A [`Connection`] moves no bytes. [`Connection::poll_send`] gives what to write next and
//! [`Connection::receivable`] how much may be read; the caller reports with
//! [`Connection::handle_sent`], [`Connection::handle_received`], [`Connection::handle_end`] and
//! [`Connection::handle_error`]. After each report [`Connection::poll_close`] gives what to do
//! with the socket: close it, or this end's direction of it.
//!
//! There are no timeouts here: the original has none. A caller that wants one gives the connection
//! up by itself.

mod fault;
mod progress;

pub use fault::Fault;

use super::data::{Mismatch, Reference};
use super::pace::Pace;
use super::transfer::{Pattern, Shutdown, TransferPlan, Turn};
use super::{CONNECTION_ID_BYTES, ConnectionId, DONE, Role};
use progress::Progress;

/// Something to write. The id and `DONE` each belong into one write: an original may not put the
/// pieces of a split one together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// These bytes.
    Id([u8; CONNECTION_ID_BYTES]),
    /// Data of this direction ([`Reference::part`]).
    Data {
        /// The offset of its first byte.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// When to write them, ns; now or earlier: at once.
        due_ns: u64,
    },
    /// These bytes.
    Done([u8; DONE.len()]),
}

/// What may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivable {
    /// Up to so many bytes of the id, or of `DONE`.
    Control(usize),
    /// Up to so many bytes of data, the first of which has this offset in its direction.
    Data {
        /// The offset.
        offset: u64,
        /// The bytes; where a read with `MSG_WAITALL` should wait for as many.
        bytes: u64,
    },
    /// The end of the other direction. A read of up to so many bytes must find none.
    End(usize),
}

/// What to do with the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Close this end's direction, and go on reading.
    Half,
    /// Close the connection in order.
    Orderly,
    /// Close it with a reset (zero linger).
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Id,
    Data,
    Status,
    AwaitEnd,
    Succeeded,
    Failed,
}

/// The id or `DONE`, as far as it is sent or received.
#[derive(Clone, Copy, Debug)]
struct Control {
    bytes: [u8; CONNECTION_ID_BYTES],
    filled: usize,
    /// Whether this end was given it to write.
    handed_out: bool,
}

/// One end of a connection. Times are nanoseconds on any monotonic clock.
#[derive(Clone, Debug)]
pub struct Connection {
    plan: TransferPlan,
    stage: Stage,
    control: Control,
    progress: Progress,
    pace: Pace,
    id: ConnectionId,
    fault: Option<Fault>,
    close: Option<Close>,
    started_ns: u64,
    ended_ns: Option<u64>,
}

impl Connection {
    /// A client's end of a connection that is established now. The plan's role is ignored.
    pub fn client(plan: TransferPlan, now_ns: u64) -> Self {
        Self::new(TransferPlan { role: Role::Client, ..plan }, ConnectionId::NONE, now_ns)
    }

    /// A server's end of a connection that is accepted now.
    pub fn server(plan: TransferPlan, id: ConnectionId, now_ns: u64) -> Self {
        Self::new(TransferPlan { role: Role::Server, ..plan }, id, now_ns)
    }

    fn new(plan: TransferPlan, id: ConnectionId, now_ns: u64) -> Self {
        Self {
            plan,
            stage: Stage::Id,
            control: Control { bytes: *id.wire(), filled: 0, handed_out: false },
            progress: Progress::new(&plan),
            pace: Pace::new(plan.pace, now_ns),
            id,
            fault: None,
            close: None,
            started_ns: now_ns,
            ended_ns: None,
        }
    }

    /// What to write next; `None`: nothing, or nothing before what is outstanding was sent. `word` is
    /// random: the size of a send is drawn with it. What was given out counts as outstanding until
    /// [`Connection::handle_sent`].
    pub fn poll_send(&mut self, now_ns: u64, word: u64) -> Option<Outgoing> {
        match (self.stage, self.plan.role) {
            (Stage::Data, _) => {
                let (offset, bytes) =
                    self.progress.begin_send(self.plan.buffer_bytes.draw(word))?;
                let due_ns = self.pace.due_ns(bytes, now_ns);
                Some(Outgoing::Data { offset, bytes, due_ns })
            }
            (Stage::Id, Role::Server) if !self.control.handed_out => {
                self.control.handed_out = true;
                Some(Outgoing::Id(*self.id.wire()))
            }
            (Stage::Status, Role::Server) if !self.control.handed_out => {
                self.control.handed_out = true;
                Some(Outgoing::Done(DONE))
            }
            _ => None,
        }
    }

    /// What may be read; `None`: don't read. A caller never reads more, so that no data is taken for
    /// `DONE` and no `DONE` for data. `word` is random, as above.
    pub fn receivable(&self, word: u64) -> Option<Receivable> {
        match (self.stage, self.plan.role) {
            (Stage::Data, _) => {
                let (offset, bytes) =
                    self.progress.receivable(self.plan.buffer_bytes.draw(word))?;
                Some(Receivable::Data { offset, bytes })
            }
            (Stage::Id | Stage::Status, Role::Client) => {
                Some(Receivable::Control(self.control_bytes() - self.control.filled))
            }
            (Stage::AwaitEnd, _) => Some(Receivable::End(DONE.len())),
            _ => None,
        }
    }

    /// So many bytes of what is outstanding were written.
    pub fn handle_sent(&mut self, now_ns: u64, bytes: u64) {
        match (self.stage, self.plan.role) {
            (Stage::Data, _) => {
                if self.progress.record_sent(bytes) {
                    self.advance(now_ns);
                } else {
                    self.fail(now_ns, Fault::TooMuchDataTransferred);
                }
            }
            (Stage::Id | Stage::Status, Role::Server) => {
                self.control.filled = self.control.filled.saturating_add(bytes as usize);
                self.finish_control(now_ns);
            }
            _ => {}
        }
    }

    /// These bytes were read, at least one. Data is compared with `reference`, if there is one.
    pub fn handle_received(&mut self, now_ns: u64, bytes: &[u8], reference: Option<&Reference>) {
        match (self.stage, self.plan.role) {
            (Stage::Data, _) => {
                let offset = self.progress.received_bytes();
                let wrong = reference.and_then(|reference| reference.compare(offset, bytes));
                self.handle_data(now_ns, bytes.len() as u64, wrong);
            }
            (Stage::Id | Stage::Status, Role::Client) => self.take_control(now_ns, bytes),
            (Stage::AwaitEnd, _) if !bytes.is_empty() => {
                self.fail(now_ns, Fault::TooMuchDataTransferred);
            }
            _ => {}
        }
    }

    /// So many bytes of data were read, and compared by the caller or not at all.
    pub fn handle_data(&mut self, now_ns: u64, bytes: u64, wrong: Option<Mismatch>) {
        if self.stage != Stage::Data {
            return;
        }
        if !self.progress.record_received(bytes) {
            self.fail(now_ns, Fault::TooMuchDataTransferred);
        } else if let Some(mismatch) = wrong {
            self.fail(now_ns, Fault::DataDidNotMatchBitPattern(mismatch));
        } else {
            self.advance(now_ns);
        }
    }

    /// A read found the end of the other direction. Where nothing may be read it changes nothing.
    pub fn handle_end(&mut self, now_ns: u64) {
        match self.receivable(0) {
            Some(Receivable::End(_)) => self.succeed(Close::Orderly),
            Some(_) => self.fail(now_ns, Fault::NotAllDataTransferred),
            None => {}
        }
    }

    /// The system reports an error of the connection, by its number. A server that awaits the end
    /// takes a reset, an abort or a time-out for it.
    pub fn handle_error(&mut self, now_ns: u64, number: i32) {
        let fault = Fault::Network(number);
        let is_end = self.stage == Stage::AwaitEnd && self.plan.role == Role::Server;
        if is_end && fault.breaks_connection() {
            self.succeed(Close::Orderly);
        } else {
            self.fail(now_ns, fault);
        }
    }

    /// What to do with the socket now; given once.
    pub fn poll_close(&mut self) -> Option<Close> {
        self.close.take()
    }

    /// Changes how many bytes may be outstanding, for a plan whose [`TransferPlan::outstanding_sends`]
    /// is 0. Less than a send still lets one be outstanding. [`Pattern::PushPull`] keeps to one.
    pub fn set_backlog(&mut self, bytes: u64) {
        if self.plan.outstanding_sends == 0 && self.plan.pattern != Pattern::PushPull {
            self.progress.set_backlog(bytes);
        }
    }

    /// Whether the connection is over, well or not.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Succeeded | Stage::Failed)
    }

    /// Why the connection failed: the first fault.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The connection's id; [`ConnectionId::NONE`] until a client has it.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Bytes of data so far, without the id and `DONE`.
    pub fn transferred(&self) -> Turn {
        Turn {
            send_bytes: self.progress.sent_bytes(),
            receive_bytes: self.progress.received_bytes(),
        }
    }

    /// How long the data has taken, ns: from the connection's beginning to the last byte of data, or to
    /// the failure, or to now. `DONE` and the end of the connection are not in it.
    pub fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.ended_ns.unwrap_or(now_ns).saturating_sub(self.started_ns)
    }

    /// Bytes of the id or of `DONE`, whichever is next.
    fn control_bytes(&self) -> usize {
        if self.stage == Stage::Id { CONNECTION_ID_BYTES } else { DONE.len() }
    }

    fn take_control(&mut self, now_ns: u64, bytes: &[u8]) {
        let length = self.control_bytes();
        let wanted = self.control.bytes.get_mut(self.control.filled..length).unwrap_or_default();
        if bytes.len() > wanted.len() {
            return self.fail(now_ns, Fault::TooMuchDataTransferred);
        }
        for (place, byte) in wanted.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.control.filled += bytes.len();
        self.finish_control(now_ns);
    }

    /// Goes on when all of the id or of `DONE` is there.
    fn finish_control(&mut self, now_ns: u64) {
        if self.control.filled < self.control_bytes() {
            return;
        }
        let is_client = self.plan.role == Role::Client;
        if self.stage == Stage::Id {
            if is_client {
                self.id = ConnectionId::of_wire(self.control.bytes);
            }
            self.stage = Stage::Data;
            self.advance(now_ns);
        } else if !is_client {
            self.stage = Stage::AwaitEnd;
        } else if !self.control.bytes.starts_with(&DONE) {
            self.fail(now_ns, Fault::NotAllDataTransferred);
        } else if self.plan.shutdown == Shutdown::Rude {
            self.succeed(Close::Reset);
        } else {
            self.stage = Stage::AwaitEnd;
            self.close = Some(Close::Half);
        }
    }

    /// Begins the next turn, or awaits or sends `DONE` after the last one.
    fn advance(&mut self, now_ns: u64) {
        if self.progress.is_complete() {
            self.ended_ns = Some(now_ns);
            self.stage = Stage::Status;
            self.control.filled = 0;
            self.control.handed_out = false;
        }
    }

    fn succeed(&mut self, close: Close) {
        self.stage = Stage::Succeeded;
        self.close = Some(close);
    }

    fn fail(&mut self, now_ns: u64, fault: Fault) {
        if self.is_over() {
            return;
        }
        self.stage = Stage::Failed;
        self.fault = Some(fault);
        self.ended_ns.get_or_insert(now_ns);
        self.close = Some(Close::Reset);
    }
}
