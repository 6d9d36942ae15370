//! A flow of datagrams: its steps, one after the other.
//!
//! What it does in them is its [`DatagramProtocol`]: linerate's own, with a heading in each datagram
//! ([`Native`]), or one whose datagrams say nothing of themselves ([`plain`]). What carries them is a
//! [`DatagramPath`].

mod ask;
mod frames;
mod heading;
mod native;
mod pipeline;
mod plain;
mod receive;
mod requests;
mod send;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use linerate_measure::sample::QuicStatus;
use linerate_measure::step::Step;
use socket2::Socket;

use super::pipeline::Pipeline;
use super::{
    Base, DatagramEnding, Drive, Ending, FlowError, FlowShared, Local, Stage, Turn, error_kind,
};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::phase::Phase;
use crate::socket::{Addresses, granted};
use crate::tally::Tally;
use crate::transport::{DatagramPath, Udp};
pub(crate) use heading::{Arrivals, Heading, Mark, NativeHeading};
pub(crate) use native::Native;
pub(crate) use plain::{PlainFlow, say_end};
pub(crate) use receive::DatagramReceiver;
pub(crate) use send::DatagramSender;

/// How often a flow that is over looks whether all that its path has taken has left.
const FLUSH_NS: u64 = MILLISECOND_NS;

/// The end of a step that sends: over once all that the path has taken has left. A queue may drop it on its way, and
/// a packet behind the flow's end would not be counted.
fn flush(path: &mut impl DatagramPath) -> Stage {
    if path.is_flushed() {
        Stage::Over
    } else {
        Stage::Goes(Turn::Pause { until_ns: monotonic_ns() + FLUSH_NS })
    }
}

/// What a flow of datagrams needs beside its steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramSettings {
    /// Stands in every datagram of the flow.
    pub(crate) tag: u32,
    /// Whether to use segmentation offload where the kernel has it.
    pub(crate) offload: bool,
}

/// What a flow does in its steps.
pub(crate) trait DatagramProtocol<P> {
    /// Whether this end's clock tells what is of the measured part. Otherwise marks in the datagrams do.
    const COUNTS_BY_CLOCK: bool = false;
    /// A step that has begun.
    type Doing;

    /// Begins a step; `None`: there is nothing to do in it, and the flow ends.
    fn begin(&self, path: &mut P, step: Step) -> Option<Self::Doing>;
    /// Goes on as far as it can.
    fn turn(
        doing: &mut Self::Doing,
        path: &mut P,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage>;
    /// Leaves what a step has come to.
    fn leave(doing: Self::Doing, path: &P, ending: &mut Ending);
    /// Whether a flow goes on after such a failure, which its path outlives.
    fn outlives(&self, _error: &io::Error) -> bool {
        true
    }
}

/// A flow of datagrams over a path.
pub(crate) struct DatagramFlow<P, M: DatagramProtocol<P>> {
    path: P,
    shared: Arc<FlowShared>,
    protocol: M,
    steps: VecDeque<Step>,
    doing: Doing<M::Doing>,
    ending: Ending,
    /// Both addresses of a flow that is listed.
    addresses: Option<Box<Addresses>>,
    /// Whether the warm-up has been seen, and its end has not.
    warms_up: bool,
    /// What a QUIC connection said of its path when the warm-up ended.
    quic_before: Option<Box<QuicStatus>>,
}

enum Doing<D> {
    Opening,
    Step(D),
    Nothing,
}

/// A flow with linerate's own headings over a UDP socket.
pub(crate) fn udp_flow(
    socket: Arc<Socket>,
    shared: Arc<FlowShared>,
    settings: DatagramSettings,
    steps: Vec<Step>,
) -> Box<dyn Drive> {
    let path = Udp::new(socket, settings.offload);
    let sends = steps.iter().any(|step| longest_sent(step) > 0);
    let path = if sends { path.telling_refusals() } else { path };
    Box::new(DatagramFlow::over(path, shared, Native::new(settings.tag), steps))
}

impl<P: DatagramPath, M: DatagramProtocol<P>> DatagramFlow<P, M> {
    pub(crate) fn over(path: P, shared: Arc<FlowShared>, protocol: M, steps: Vec<Step>) -> Self {
        let addresses = shared.is_listed().then(|| Box::new(Addresses::of(path.socket())));
        Self {
            path,
            shared,
            protocol,
            steps: steps.into(),
            doing: Doing::Opening,
            ending: Ending::default(),
            addresses,
            warms_up: false,
            quic_before: None,
        }
    }

    fn begin_next_step(&mut self) {
        let (step, protocol, path) = (self.steps.pop_front(), &self.protocol, &mut self.path);
        let doing = step.and_then(|step| protocol.begin(path, step));
        self.doing = doing.map_or(Doing::Nothing, Doing::Step);
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Stage> {
        match &mut self.doing {
            Doing::Opening => self.open(local),
            Doing::Step(doing) => M::turn(doing, &mut self.path, &self.shared.tally, local),
            Doing::Nothing => Ok(Stage::Goes(Turn::Ended)),
        }
    }

    fn open(&mut self, local: &Local) -> io::Result<Stage> {
        let longest = self.steps.iter().map(longest_sent).max().unwrap_or(0);
        if !self.path.carries(longest)? {
            let until_ns = monotonic_ns() + MILLISECOND_NS;
            return Ok(Stage::Goes(Turn::Pause { until_ns }));
        }
        self.shared.set_ready(local);
        Ok(Stage::Over)
    }

    /// Has the path begin to count once the warm-up is over. Without a warm-up all counts: the peer
    /// may have begun before this flow's first turn.
    fn part_warm_up(&mut self, local: &mut Local) {
        match local.phase() {
            Phase::WarmUp => self.warms_up = true,
            phase if phase >= Phase::Measure && self.warms_up => {
                self.warms_up = false;
                self.path.end_warm_up();
                self.quic_before = self.path.quic().map(Box::new);
            }
            _ => {}
        }
    }

    fn collect(&mut self) {
        if let Doing::Step(doing) = std::mem::replace(&mut self.doing, Doing::Nothing) {
            M::leave(doing, &self.path, &mut self.ending);
        }
    }

    fn end(&mut self, error: Option<FlowError>, local: &Local) -> Turn {
        self.collect();
        let mut ending = std::mem::take(&mut self.ending);
        ending.error = error;
        let refused = self.path.take_refused();
        if refused > 0 && ending.datagrams.sent.is_none() {
            // Of requests and responses: nobody sends one again that its path had taken.
            *ending.errors.entry("queue_full").or_insert(0) += refused;
        }
        let path = &self.path;
        ending.socket = self
            .addresses
            .take()
            .map(|addresses| Box::new(path.complete(granted(path.socket(), *addresses, false))));
        ending.drops = path.drops();
        ending.quic = path.quic().map(Box::new);
        ending.quic_before = self.quic_before.take();
        self.shared.set_ended(ending, local);
        Turn::Ended
    }

    /// A failure that a flow of datagrams outlives: the peer's port was closed for a moment, the
    /// link is down, the local stack is out of room.
    fn record_soft_error(&mut self, error: &io::Error) -> Turn {
        *self.ending.errors.entry(error_kind(error)).or_insert(0) += 1;
        Turn::Pause { until_ns: monotonic_ns() + MILLISECOND_NS }
    }
}

impl<P: DatagramPath, M: DatagramProtocol<P>> Drive for DatagramFlow<P, M> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            self.part_warm_up(local);
            if M::COUNTS_BY_CLOCK && local.is_measuring() && self.shared.base().is_none() {
                let (counts, at_ns) = (self.shared.tally.counts(), monotonic_ns());
                self.shared.note_base(Base { counts, at_ns, ..Base::default() });
            }
            let advanced = self.advance(local);
            if local.phase() == Phase::Abort {
                return self.end(None, local);
            }
            match advanced {
                Ok(Stage::Goes(Turn::Ended)) => return self.end(None, local),
                Ok(Stage::Goes(turn)) => return turn,
                Ok(Stage::Over) => {
                    self.collect();
                    self.begin_next_step();
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Turn::READY,
                    io::ErrorKind::Interrupted => {}
                    _ if self.path.outlives(&error) && self.protocol.outlives(&error) => {
                        return self.record_soft_error(&error);
                    }
                    _ => return self.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.path.socket()
    }
}

/// Bytes of the datagrams that a step sends.
fn longest_sent(step: &Step) -> usize {
    match step {
        Step::Send(transfer) => transfer.unit_bytes as usize,
        Step::Exchange(exchange) => exchange.request_bytes as usize,
        Step::Answer(exchange) => exchange.response_bytes as usize,
        Step::Receive(_)
        | Step::Duplex { .. }
        | Step::Close(_)
        | Step::Connect(_)
        | Step::Accept(_) => 0,
    }
}

impl DatagramEnding {
    fn record_sent(&mut self, datagrams: u64, unit_bytes: usize) {
        *self.sent.get_or_insert(0) += datagrams;
        self.sent_bytes += datagrams * unit_bytes as u64;
    }

    /// So many of them were refused before they left.
    fn take_back(&mut self, datagrams: u64, unit_bytes: usize) {
        let sent = self.sent.get_or_insert(0);
        let refused = datagrams.min(*sent);
        *sent -= refused;
        self.sent_bytes -= refused * unit_bytes as u64;
        self.refused += refused;
    }
}
