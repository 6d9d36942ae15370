//! Both ends of a connection with two pipes between them, under a virtual clock.

use std::collections::VecDeque;
use std::sync::LazyLock;

use linerate_wire::ctstraffic::connection::{Close, Connection, Outgoing, Receivable};
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::pace::PaceSettings;
use linerate_wire::ctstraffic::transfer::{Pattern, Shutdown, TransferPlan};
use linerate_wire::ctstraffic::{ConnectionId, Role, Span};

pub(crate) const RESET: i32 = 104;

pub(crate) fn plan(pattern: Pattern, total_bytes: u64, buffer_bytes: u64) -> TransferPlan {
    TransferPlan {
        role: Role::Client,
        pattern,
        total_bytes,
        push_bytes: 1000,
        pull_bytes: 3000,
        buffer_bytes: Span::of(buffer_bytes),
        outstanding_sends: 1,
        pace: PaceSettings::None,
        shutdown: Shutdown::Graceful,
    }
}

/// Data that all tests share: it takes a while to lay out.
pub(crate) fn reference() -> &'static Reference {
    static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(1 << 14));
    &REFERENCE
}

pub(crate) fn id() -> ConnectionId {
    ConnectionId::of_random([7; 16])
}

/// One direction of the path.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) bytes: VecDeque<u8>,
    pub(crate) ended: bool,
    pub(crate) reset: bool,
    /// All that was ever written.
    pub(crate) log: Vec<u8>,
}

impl Pipe {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.log.extend(bytes);
    }
}

/// One end with what it is about to write.
pub(crate) struct End {
    pub(crate) machine: Connection,
    outgoing: Option<(Outgoing, u64)>,
    /// The sizes of the data sends, as they were given out.
    pub(crate) sends: Vec<u64>,
    pub(crate) closed: Option<Close>,
    word: u64,
    now_ns: u64,
}

impl End {
    pub(crate) fn new(machine: Connection) -> Self {
        Self { machine, outgoing: None, sends: Vec::new(), closed: None, word: 1, now_ns: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.word =
            self.word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.word
    }

    /// Whether a part of something is still to be written.
    fn is_writing(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Writes up to `most` bytes, whatever is due; whether there were any.
    pub(crate) fn write(&mut self, to: &mut Pipe, most: u64, reference: &Reference) -> bool {
        let word = self.draw();
        if self.outgoing.is_none() {
            self.outgoing = self.machine.poll_send(self.now_ns, word).map(|outgoing| (outgoing, 0));
            if let Some((Outgoing::Data { bytes, .. }, _)) = self.outgoing {
                self.sends.push(bytes);
            }
        }
        let Some((outgoing, written)) = self.outgoing else { return false };
        let part =
            |all: &[u8]| all.iter().skip(written as usize).take(most as usize).copied().collect();
        let (all_bytes, bytes): (u64, Vec<u8>) = match &outgoing {
            Outgoing::Id(id) => (id.len() as u64, part(id)),
            Outgoing::Done(done) => (done.len() as u64, part(done)),
            Outgoing::Data { offset, bytes, due_ns } => {
                self.now_ns = self.now_ns.max(*due_ns);
                let piece = most.min(bytes - written);
                (*bytes, reference.part(offset + written, piece as usize).to_vec())
            }
        };
        to.write(&bytes);
        let written = written + bytes.len() as u64;
        self.outgoing = (written < all_bytes).then_some((outgoing, written));
        self.machine.handle_sent(self.now_ns, bytes.len() as u64);
        true
    }

    /// Reads up to `most` bytes; whether anything was found.
    pub(crate) fn read(
        &mut self,
        from: &mut Pipe,
        most: u64,
        reference: Option<&Reference>,
    ) -> bool {
        let word = self.draw();
        if from.reset && !self.machine.is_over() && from.bytes.is_empty() {
            self.machine.handle_error(self.now_ns, RESET);
            return true;
        }
        let wanted = match self.machine.receivable(word) {
            None => return false,
            Some(Receivable::Control(bytes) | Receivable::End(bytes)) => bytes as u64,
            Some(Receivable::Data { bytes, .. }) => bytes,
        };
        let count = wanted.min(most).min(from.bytes.len() as u64) as usize;
        if count == 0 {
            if from.ended {
                self.machine.handle_end(self.now_ns);
            }
            return from.ended;
        }
        let bytes: Vec<u8> = from.bytes.drain(..count).collect();
        self.machine.handle_received(self.now_ns, &bytes, reference);
        true
    }

    /// Does what is to be done with the socket.
    pub(crate) fn close(&mut self, own: &mut Pipe) {
        match self.machine.poll_close() {
            Some(Close::Half) => own.ended = true,
            Some(Close::Orderly) => {
                own.ended = true;
                self.closed = Some(Close::Orderly);
            }
            Some(Close::Reset) => {
                own.reset = true;
                own.bytes.clear();
                self.closed = Some(Close::Reset);
            }
            None => {}
        }
    }
}

/// A client, a server and the path between them.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    verify: bool,
}

impl Pair {
    pub(crate) fn new(client: TransferPlan, server: TransferPlan) -> Self {
        Self {
            client: End::new(Connection::client(client, 0)),
            server: End::new(Connection::server(server, id(), 0)),
            up: Pipe::default(),
            down: Pipe::default(),
            verify: true,
        }
    }

    pub(crate) fn without_verification(mut self) -> Self {
        self.verify = false;
        self
    }

    /// One step of each end with writes and reads of up to so many bytes; whether anything happened.
    pub(crate) fn step(&mut self, most: u64) -> bool {
        let Self { client, server, up, down, verify } = self;
        let reference = reference();
        let check = verify.then_some(reference);
        let act = |end: &mut End, own: &mut Pipe, other: &mut Pipe| {
            if end.closed.is_some() {
                return false;
            }
            if other.reset && end.is_writing() {
                end.machine.handle_error(0, RESET);
            }
            let wrote = end.write(own, most, reference);
            let read = end.read(other, most, check);
            end.close(own);
            wrote || read
        };
        let served = act(server, down, up);
        act(client, up, down) || served
    }

    /// Runs until nothing happens any more.
    pub(crate) fn run(&mut self, most: u64) {
        for _ in 0..20_000_000 {
            if !self.step(most) {
                return;
            }
        }
        panic!("the conversation never rests");
    }
}
