//! A flow over a connection.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::report::Verification;
use linerate_measure::step::{Close, Step};
use socket2::Socket;

use super::departures::Departures;
use super::exchange::{Answerer, Asker};
use super::pipeline::Pipeline;
use super::transfer::{Receiver, Sender};
use super::{Base, BulkRules, Drive, Ending, FlowError, FlowShared, Local, Stage, Turn};
use crate::clock::monotonic_ns;
use crate::pattern::Verifier;
use crate::phase::Phase;
use crate::socket::{Addresses, granted, tcp_status};
use crate::transport::ByteStream;

/// A flow over a connection: its steps, one after the other.
pub(crate) struct StreamFlow<S> {
    stream: S,
    shared: Arc<FlowShared>,
    next: VecDeque<Next>,
    doing: Doing,
    /// Both addresses of a flow that is listed: the kernel forgets them when the connection ends.
    addresses: Option<Box<Addresses>>,
    /// What its transfers do beside what the steps say; absent: what linerate's own do.
    rules: Option<Box<BulkRules>>,
    verification: Option<Box<Verification>>,
    departures: Option<Box<Departures>>,
    transactions_lost: Option<u64>,
    /// Whether its peer or the path has broken it off when the load's time was up.
    is_cut_off: bool,
}

/// A stage that is still to come. A flow holds few bytes of it: there may be many flows.
enum Next {
    Step(Box<Step>),
    Finish,
    Await,
}

/// The stage that a flow is in.
enum Doing {
    Opening,
    /// In a box: of a hundred thousand flows none sends in bulk, and each has room for the largest of these.
    Sending(Box<Sender>),
    Receiving(Receiver),
    Asking(Asker),
    Pipelining(Box<Pipeline>),
    Answering(Answerer),
    /// Says that nothing more will be sent.
    Finishing,
    /// Waits for the peer to say so.
    Awaiting,
    Nothing,
}

impl Doing {
    /// Whether it is of a transfer in bulk, or of its end.
    fn is_bulk(&self) -> bool {
        matches!(self, Doing::Sending(_) | Doing::Receiving(_) | Doing::Finishing | Doing::Awaiting)
    }

    fn of(step: &Step, rules: &BulkRules) -> Self {
        match step {
            Step::Send(transfer) => Doing::Sending(Box::new(Sender::new(transfer, rules))),
            Step::Receive(transfer) => Doing::Receiving(Receiver::new(transfer, rules)),
            Step::Exchange(exchange) if Pipeline::serves(exchange) => {
                Doing::Pipelining(Box::new(Pipeline::new(exchange)))
            }
            Step::Exchange(exchange) => Doing::Asking(Asker::new(exchange)),
            Step::Answer(exchange) => Doing::Answering(Answerer::new(exchange)),
            // Two flows that share a connection are a `DuplexFlow`; connections that come and go are no flow's.
            Step::Duplex { .. } | Step::Close(_) | Step::Connect(_) | Step::Accept(_) => {
                Doing::Nothing
            }
        }
    }
}

impl<S: ByteStream> StreamFlow<S> {
    pub(crate) fn new(stream: S, shared: Arc<FlowShared>, steps: Vec<Step>) -> Self {
        let next = steps.into_iter().flat_map(stages).collect();
        let addresses = shared.is_listed().then(|| Box::new(Addresses::of(stream.socket())));
        Self {
            stream,
            shared,
            next,
            doing: Doing::Opening,
            addresses,
            rules: None,
            verification: None,
            departures: None,
            transactions_lost: None,
            is_cut_off: false,
        }
    }

    /// The same with a dialect's rules.
    pub(crate) fn with_rules(self, rules: BulkRules) -> Self {
        Self { rules: Some(Box::new(rules)), ..self }
    }

    fn begin_next_step(&mut self) {
        let rules = self.rules.as_deref().unwrap_or(BulkRules::native());
        self.doing = match self.next.pop_front() {
            Some(Next::Step(step)) => Doing::of(&step, rules),
            Some(Next::Finish) => Doing::Finishing,
            Some(Next::Await) => Doing::Awaiting,
            None => Doing::Nothing,
        };
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Stage> {
        let (stream, tally) = (&mut self.stream, &self.shared.tally);
        match &mut self.doing {
            Doing::Opening => {
                stream.establish()?;
                self.shared.set_ready(local);
                Ok(Stage::Over)
            }
            Doing::Sending(sender) => sender.turn(stream, tally, local),
            Doing::Receiving(receiver) => receiver.turn(stream, tally, local),
            Doing::Asking(asker) => asker.turn(stream, tally, local),
            Doing::Pipelining(pipeline) => pipeline.turn(stream, tally, local),
            Doing::Answering(answerer) => answerer.turn(stream, tally, local),
            Doing::Finishing => stream.finish_sending().map(|()| Stage::Over),
            Doing::Awaiting => await_peer(stream, local),
            Doing::Nothing => Ok(Stage::Goes(Turn::Ended)),
        }
    }

    /// Notes what the flow had done when its measured part began. Counts and verification are
    /// noted at one moment, so that they are of the same bytes.
    #[cold]
    fn begin_measuring(&mut self) {
        let verified_bytes = self.verification().map_or(0, |found| found.verified_bytes);
        let (counts, at_ns) = (self.shared.tally.counts(), monotonic_ns());
        let tcp = tcp_status(self.stream.socket().as_fd());
        let retransmitted_segments = tcp.map_or(0, |tcp| tcp.retransmitted_segments);
        let quic = self.stream.quic().map(Box::new);
        let base = Base { counts, at_ns, verified_bytes, retransmitted_segments, quic };
        self.shared.note_base(base);
    }

    fn verification(&self) -> Option<Box<Verification>> {
        match &self.doing {
            Doing::Receiving(receiver) => receiver.verifier().map(Verifier::found).map(Box::new),
            _ => self.verification.clone(),
        }
    }

    /// Keeps what the step that ends has found out, and what it had of the shard goes to others.
    fn collect(&mut self, local: &mut Local) {
        self.verification = self.verification();
        match &mut self.doing {
            Doing::Asking(asker) => asker.leave(local),
            Doing::Pipelining(pipeline) => {
                self.departures = pipeline.left_behind();
                self.transactions_lost = pipeline.unanswered();
            }
            _ => {}
        }
    }

    /// Ends the time of a transfer that was cut off where it was.
    fn end_span(&self) {
        let last_ns = &self.shared.tally.last_ns;
        let is_told = matches!(&self.doing, Doing::Receiving(one) if one.ends_its_own_time());
        if last_ns.value() == 0 && !is_told {
            last_ns.set(monotonic_ns());
        }
    }

    fn end(&mut self, error: Option<FlowError>, local: &mut Local) -> Turn {
        self.collect(local);
        let lent = self.stream.lent().map(Box::new);
        let socket = self.stream.socket();
        let ending = Ending {
            error,
            is_cut_off: self.is_cut_off,
            tcp: tcp_status(socket.as_fd()),
            quic: self.stream.quic().map(Box::new),
            socket: self
                .addresses
                .take()
                .map(|addresses| Box::new(self.stream.complete(granted(socket, *addresses, true)))),
            verification: self.verification.take(),
            departures: self.departures.take(),
            transactions_lost: self.transactions_lost,
            lent,
            ..Ending::default()
        };
        self.doing = Doing::Nothing;
        self.shared.set_ended(ending, local);
        Turn::Ended
    }
}

impl<S: ByteStream> Drive for StreamFlow<S> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            if local.is_measuring() && self.shared.base().is_none() {
                self.begin_measuring();
            }
            match self.advance(local) {
                Ok(Stage::Goes(Turn::Ended)) => return self.end(None, local),
                Ok(Stage::Goes(turn)) => {
                    if local.phase() == Phase::Abort {
                        return self.end(Some(aborted()), local);
                    }
                    return turn;
                }
                Ok(Stage::Over) if local.phase() == Phase::Abort => {
                    return self.end(Some(aborted()), local);
                }
                Ok(Stage::Over) => {
                    self.collect(local);
                    self.begin_next_step();
                }
                Err(error) => match error.kind() {
                    _ if local.phase() == Phase::Abort => return self.end(Some(aborted()), local),
                    kind if self.doing.is_bulk() && is_cut_off(kind, local.phase()) => {
                        self.end_span();
                        // Where all ends it is this end that has cut it off.
                        self.is_cut_off = local.phase() == Phase::Stop;
                        return self.end(None, local);
                    }
                    io::ErrorKind::WouldBlock => return Turn::READY,
                    io::ErrorKind::Interrupted => {}
                    _ => return self.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.stream.socket()
    }
}

/// A graceful close is two stages. One after the peer has the same, the other way round, and one at once the first.
fn stages(step: Step) -> Vec<Next> {
    match step {
        Step::Close(Close::Graceful) => vec![Next::Finish, Next::Await],
        Step::Close(Close::AtOnce) => vec![Next::Finish],
        Step::Close(Close::AfterPeer) => vec![Next::Await, Next::Finish],
        other => vec![Next::Step(Box::new(other))],
    }
}

fn await_peer<S: ByteStream>(stream: &mut S, local: &mut Local) -> io::Result<Stage> {
    match stream.receive(&mut local.receive_buffer) {
        Ok(0) => Ok(Stage::Over),
        Ok(_) => Ok(Stage::Goes(Turn::Again)),
        Err(error) => Err(error),
    }
}

/// Whether a bulk transfer is over though its bytes are not: when the load's time is up, either end may cut off
/// what a slow path still holds. The word of that may get lost in the full queue: the peer's connection times out then.
pub(super) fn is_cut_off(kind: io::ErrorKind, phase: Phase) -> bool {
    let broken = matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::TimedOut
    );
    match phase {
        Phase::Stop => broken,
        Phase::Drained => broken || kind == io::ErrorKind::WouldBlock,
        _ => false,
    }
}

pub(super) fn aborted() -> FlowError {
    FlowError::new("given_up", "ended before the peer had finished")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_times_out_counts_as_cut_off_only_after_the_loads_time() {
        let timed_out = |phase| is_cut_off(io::ErrorKind::TimedOut, phase);
        assert!(timed_out(Phase::Stop) && timed_out(Phase::Drained));
        assert!(!timed_out(Phase::WarmUp) && !timed_out(Phase::Measure));
        assert!(!is_cut_off(io::ErrorKind::WouldBlock, Phase::Stop));
    }
}
