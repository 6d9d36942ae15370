//! A flow of datagrams over a connected UDP socket.

mod ask;
mod heading;
mod pipeline;
mod plain;
mod receive;
mod send;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_wire::step::Step;
use socket2::Socket;

use super::pipeline::Pipeline;
use super::{DatagramEnding, Drive, Ending, FlowError, FlowShared, Local, Stage, Turn, error_kind};
use crate::clock::MILLISECOND_NS;
use crate::phase::Phase;
use crate::socket::{Addresses, granted, socket_drops};
use ask::{DatagramAnswerer, DatagramAsker};
pub(crate) use heading::{Heading, Mark, NativeHeading};
use pipeline::DatagramPipeline;
pub(crate) use plain::PlainFlow;
use receive::DatagramReceiver;
use send::DatagramSender;

/// What a flow of datagrams needs beside its steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramSettings {
    /// Stands in every datagram of the flow.
    pub(crate) tag: u32,
    /// Whether to use segmentation offload where the kernel has it.
    pub(crate) offload: bool,
}

/// A flow of datagrams, each with a heading of its dialect: its steps, one after the other.
/// Requests and responses are the native dialect's.
pub(crate) struct DatagramFlow<H> {
    socket: Arc<Socket>,
    shared: Arc<FlowShared>,
    settings: DatagramSettings,
    heading: H,
    steps: VecDeque<Step>,
    doing: Doing<H>,
    ending: Ending,
    /// Both addresses of a flow that is listed.
    addresses: Option<Box<Addresses>>,
    /// Whether the warm-up has been seen, and its end has not.
    warms_up: bool,
    /// What the socket dropped in the warm-up.
    drops_in_warm_up: u64,
}

enum Doing<H> {
    Opening,
    Sending(DatagramSender<H>),
    Receiving(DatagramReceiver<H>),
    Asking(DatagramAsker),
    Pipelining(DatagramPipeline),
    Answering(DatagramAnswerer),
    Nothing,
}

impl<H: Heading> DatagramFlow<H> {
    pub(crate) fn new(
        socket: Arc<Socket>,
        shared: Arc<FlowShared>,
        settings: DatagramSettings,
        heading: H,
        steps: Vec<Step>,
    ) -> Self {
        let addresses = shared.is_listed().then(|| Box::new(Addresses::of(&socket)));
        Self {
            socket,
            shared,
            settings,
            heading,
            steps: steps.into(),
            doing: Doing::Opening,
            ending: Ending::default(),
            addresses,
            warms_up: false,
            drops_in_warm_up: 0,
        }
    }

    fn begin_next_step(&mut self) {
        let (socket, settings, heading) = (&*self.socket, self.settings, self.heading);
        self.doing = match self.steps.pop_front() {
            Some(Step::Send(transfer)) => {
                Doing::Sending(DatagramSender::new(socket, heading, settings.offload, &transfer))
            }
            Some(Step::Receive(transfer)) => Doing::Receiving(DatagramReceiver::new(
                socket,
                heading,
                settings.offload,
                &transfer,
            )),
            Some(Step::Exchange(exchange)) if Pipeline::serves(&exchange) => {
                Doing::Pipelining(DatagramPipeline::new(settings, &exchange))
            }
            Some(Step::Exchange(exchange)) => {
                Doing::Asking(DatagramAsker::new(socket, settings, &exchange))
            }
            Some(Step::Answer(exchange)) => {
                Doing::Answering(DatagramAnswerer::new(settings, &exchange))
            }
            // Nothing marks the end of an association on the wire.
            Some(Step::Close(_) | Step::Connect(_) | Step::Accept(_)) | None => Doing::Nothing,
        };
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Stage> {
        let (socket, tally) = (&*self.socket, &self.shared.tally);
        match &mut self.doing {
            Doing::Opening => {
                self.shared.set_ready(local);
                Ok(Stage::Over)
            }
            Doing::Sending(sender) => sender.turn(socket, tally, local),
            Doing::Receiving(receiver) => receiver.turn(socket, tally, local),
            Doing::Asking(asker) => asker.turn(socket, tally, local),
            Doing::Pipelining(pipeline) => pipeline.turn(socket, tally, local),
            Doing::Answering(answerer) => answerer.turn(socket, tally, local),
            Doing::Nothing => Ok(Stage::Goes(Turn::Ended)),
        }
    }

    /// Notes what the socket dropped in the warm-up, once that is over. Without a warm-up all drops
    /// count: the peer may have begun before this flow's first turn.
    fn part_warm_up_drops(&mut self, local: &mut Local) {
        match local.phase() {
            Phase::WarmUp => self.warms_up = true,
            phase if phase >= Phase::Measure && self.warms_up => {
                self.warms_up = false;
                self.drops_in_warm_up = socket_drops(self.socket.as_fd()).unwrap_or(0);
            }
            _ => {}
        }
    }

    fn collect(&mut self) {
        let ending = &mut self.ending;
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Sending(sender) => sender.leave(&mut ending.datagrams),
            Doing::Receiving(receiver) => receiver.leave(ending),
            Doing::Asking(asker) => asker.leave(ending),
            Doing::Pipelining(pipeline) => pipeline.leave(ending),
            Doing::Answering(_) | Doing::Opening | Doing::Nothing => {}
        }
    }

    fn end(&mut self, error: Option<FlowError>, local: &Local) -> Turn {
        self.collect();
        let mut ending = std::mem::take(&mut self.ending);
        ending.error = error;
        let socket = &*self.socket;
        ending.socket = self.addresses.take().map(|addresses| granted(socket, *addresses, false));
        let before = self.drops_in_warm_up;
        ending.drops = socket_drops(socket.as_fd()).map(|drops| drops.saturating_sub(before));
        self.shared.set_ended(ending, local);
        Turn::Ended
    }

    /// A failure that a datagram flow outlives: the peer's port was closed for a moment, the link
    /// is down, the local stack is out of room.
    fn record_soft_error(&mut self, error: &io::Error) -> Turn {
        *self.ending.errors.entry(error_kind(error)).or_insert(0) += 1;
        Turn::Pause { until_ns: crate::clock::monotonic_ns() + MILLISECOND_NS }
    }
}

impl<H: Heading> Drive for DatagramFlow<H> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            self.part_warm_up_drops(local);
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
                    _ => return self.record_soft_error(&error),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        &self.socket
    }
}

impl DatagramEnding {
    fn record_sent(&mut self, datagrams: u64, unit_bytes: usize) {
        *self.sent.get_or_insert(0) += datagrams;
        self.sent_bytes += datagrams * unit_bytes as u64;
    }
}
