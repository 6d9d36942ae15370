//! A flow in each direction over one connection, at the same time.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::sample::QuicStatus;
use linerate_measure::step::Transfer;
use socket2::Socket;

use super::stream::{aborted, is_cut_off};
use super::transfer::{Receiver, Sender};
use super::{Base, BulkRules, Drive, Ending, FlowError, FlowShared, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::socket::{Addresses, granted, tcp_status};
use crate::transport::ByteStream;

/// Two flows that share a connection: one of them sends, the other receives.
pub(crate) struct DuplexFlow<S> {
    stream: S,
    sends: Direction<Sender>,
    receives: Direction<Receiver>,
    /// Whether what comes before the first byte is done.
    is_open: bool,
    addresses: Option<Box<Addresses>>,
    is_cut_off: bool,
    has_ended: bool,
}

/// One of the two.
struct Direction<T> {
    shared: Arc<FlowShared>,
    transfer: T,
    stage: Part,
}

/// How far one of them has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Transfer,
    /// All is sent, and the peer is yet to be told so.
    Finishing,
    Over,
}

impl<T> Direction<T> {
    fn new(shared: Arc<FlowShared>, transfer: T) -> Self {
        Self { shared, transfer, stage: Part::Transfer }
    }

    /// Notes what it had done when its measured part began.
    fn begin_measuring(&self, base: Base) {
        let (counts, at_ns) = (self.shared.tally.counts(), monotonic_ns());
        self.shared.note_base(Base { counts, at_ns, ..base });
    }

    /// Ends the time of a transfer that was cut off where it was.
    fn end_span(&self) {
        if self.shared.tally.last_ns.value() == 0 {
            self.shared.tally.last_ns.set(monotonic_ns());
        }
    }
}

impl<S: ByteStream> DuplexFlow<S> {
    /// Of the flow that sends and the one that receives.
    pub(crate) fn new(
        stream: S,
        (sends, send): (Arc<FlowShared>, &Transfer),
        (receives, receive): (Arc<FlowShared>, &Transfer),
    ) -> Self {
        let rules = BulkRules::native();
        let is_listed = sends.is_listed() || receives.is_listed();
        let addresses = is_listed.then(|| Box::new(Addresses::of(stream.socket())));
        Self {
            stream,
            sends: Direction::new(sends, Sender::new(send, rules)),
            receives: Direction::new(receives, Receiver::new(receive, rules)),
            is_open: false,
            addresses,
            is_cut_off: false,
            has_ended: false,
        }
    }

    fn open(&mut self, local: &Local) -> io::Result<()> {
        self.stream.establish()?;
        self.is_open = true;
        self.sends.shared.set_ready(local);
        self.receives.shared.set_ready(local);
        Ok(())
    }

    #[cold]
    fn begin_measuring(&self) {
        let tcp = tcp_status(self.stream.socket().as_fd());
        let retransmitted_segments = tcp.map_or(0, |tcp| tcp.retransmitted_segments);
        let quic = self.stream.quic().map(Box::new);
        let quic_of_receiver = quic_of_receiver(quic.as_deref());
        self.sends.begin_measuring(Base { retransmitted_segments, quic, ..Base::default() });
        let verified = self.receives.transfer.verifier().map(Verifier::found);
        let verified_bytes = verified.map_or(0, |found| found.verified_bytes);
        let quic = quic_of_receiver;
        self.receives.begin_measuring(Base { verified_bytes, quic, ..Base::default() });
    }

    /// Sends as much as goes now; `None`: it is over.
    fn send(&mut self, local: &mut Local) -> io::Result<Option<Turn>> {
        let Direction { shared, transfer, stage, .. } = &mut self.sends;
        if *stage == Part::Transfer {
            match transfer.turn(&mut self.stream, &shared.tally, local)? {
                Stage::Goes(turn) => return Ok(Some(turn)),
                Stage::Over => *stage = Part::Finishing,
            }
        }
        if *stage == Part::Finishing {
            self.stream.finish_sending()?;
            *stage = Part::Over;
        }
        Ok(None)
    }

    /// Receives as much as there is now; `None`: it is over.
    fn receive(&mut self, local: &mut Local) -> io::Result<Option<Turn>> {
        let Direction { shared, transfer, stage, .. } = &mut self.receives;
        if *stage == Part::Transfer {
            match transfer.turn(&mut self.stream, &shared.tally, local)? {
                Stage::Goes(turn) => return Ok(Some(turn)),
                Stage::Over => *stage = Part::Over,
            }
        }
        Ok(None)
    }

    /// Goes on in both directions; `None`: both are over.
    fn advance(&mut self, local: &mut Local) -> io::Result<Option<Turn>> {
        if !self.is_open {
            self.open(local)?;
        }
        let sent = or_ready(self.send(local))?;
        let received = or_ready(self.receive(local))?;
        Ok(match (sent, received) {
            (sent, None) => sent,
            (None, received) => received,
            (Some(sent), Some(received)) => Some(soonest(sent, received)),
        })
    }

    /// Ends both: they have one connection. Where that fails in one direction the other ends at once too, with the same
    /// error, and what has arrived and wasn't received yet isn't counted. The load counts such an error once.
    fn end(&mut self, error: Option<&FlowError>, local: &Local) -> Turn {
        if self.has_ended {
            return Turn::Ended;
        }
        self.has_ended = true;
        let stream = &self.stream;
        let socket = self
            .addresses
            .take()
            .map(|addresses| Box::new(stream.complete(granted(stream.socket(), *addresses, true))));
        let quic = stream.quic().map(Box::new);
        let quic_of_receiver = quic_of_receiver(quic.as_deref());
        let (is_cut_off, socket_of_other) = (self.is_cut_off, socket.clone());
        let sending = Ending {
            error: error.cloned(),
            is_cut_off,
            tcp: tcp_status(stream.socket().as_fd()),
            quic,
            socket,
            ..Ending::default()
        };
        let receiving = Ending {
            error: error.cloned(),
            is_cut_off,
            quic: quic_of_receiver,
            socket: socket_of_other,
            verification: self.receives.transfer.verifier().map(Verifier::found).map(Box::new),
            ..Ending::default()
        };
        self.sends.shared.set_ended(sending, local);
        self.receives.shared.set_ended(receiving, local);
        Turn::Ended
    }
}

impl<S: ByteStream> Drive for DuplexFlow<S> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            if local.is_measuring() && self.sends.shared.base().is_none() {
                self.begin_measuring();
            }
            let outcome = self.advance(local);
            let phase = local.phase();
            if phase == Phase::Abort {
                return self.end(Some(&aborted()), local);
            }
            match outcome {
                Ok(None) => return self.end(None, local),
                // The peer's bytes that are still on their way are waited for no longer.
                Ok(Some(_)) if phase == Phase::Drained => {
                    self.sends.end_span();
                    self.receives.end_span();
                    return self.end(None, local);
                }
                Ok(Some(turn)) => return turn,
                Err(error) if is_cut_off(error.kind(), phase) => {
                    self.sends.end_span();
                    self.receives.end_span();
                    // Where all ends it is this end that has cut it off.
                    self.is_cut_off = phase == Phase::Stop;
                    return self.end(None, local);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Turn::READY,
                    io::ErrorKind::Interrupted => {}
                    _ => return self.end(Some(&error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.stream.socket()
    }
}

/// What the connection says, as the flow that receives has it: acknowledged are the other flow's bytes.
fn quic_of_receiver(quic: Option<&QuicStatus>) -> Option<Box<QuicStatus>> {
    quic.map(|status| Box::new(QuicStatus { acked_bytes: None, ..*status }))
}

/// What can't go on now waits for the socket, and holds up nothing else.
fn or_ready(outcome: io::Result<Option<Turn>>) -> io::Result<Option<Turn>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(Turn::READY)),
        other => other,
    }
}

/// The turn that serves two directions, of which each wants one. Data that comes while one is held waits until the
/// load begins.
fn soonest(a: Turn, b: Turn) -> Turn {
    match (a, b) {
        (Turn::Again, _) | (_, Turn::Again) => Turn::Again,
        (Turn::Held, _) | (_, Turn::Held) => Turn::Held,
        (Turn::Pause { until_ns }, _) | (_, Turn::Pause { until_ns }) => {
            Turn::Wait { until_ns: Some(until_ns) }
        }
        _ => Turn::READY,
    }
}
