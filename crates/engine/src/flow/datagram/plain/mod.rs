//! A flow of datagrams that say nothing of themselves: any that comes counts, and an empty one says
//! that no more will.

mod exchange;
mod receive;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_wire::step::{Close, Step};
use rustix::net::SendFlags;
use socket2::Socket;

use super::heading::NoHeading;
use super::send::DatagramSender;
use crate::buffers::Buffers;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Drive, Ending, FlowError, FlowShared, Local, Stage, Turn, error_kind};
use crate::phase::Phase;
use crate::socket::{Addresses, granted, socket_drops};
use exchange::{PlainAnswerer, PlainAsker};
use receive::PlainReceiver;

/// Any of the empty datagrams that say the end may be lost, so there are as many.
const FAREWELLS: u32 = 3;

/// A flow of plain datagrams over a connected socket: its steps, one after the other. Closing is
/// saying with empty datagrams that no more will come.
pub(crate) struct PlainFlow {
    socket: Arc<Socket>,
    shared: Arc<FlowShared>,
    buffers: Buffers,
    steps: VecDeque<Step>,
    doing: Doing,
    ending: Ending,
    addresses: Option<Box<Addresses>>,
}

enum Doing {
    Opening,
    Sending(DatagramSender<NoHeading>),
    Receiving(PlainReceiver),
    Asking(PlainAsker),
    Answering(PlainAnswerer),
    Finishing,
    Nothing,
}

impl PlainFlow {
    pub(crate) fn new(
        socket: Arc<Socket>,
        shared: Arc<FlowShared>,
        buffers: Buffers,
        steps: Vec<Step>,
    ) -> Self {
        let addresses = shared.is_listed().then(|| Box::new(Addresses::of(&socket)));
        Self {
            socket,
            shared,
            buffers,
            steps: steps.into(),
            doing: Doing::Opening,
            ending: Ending::default(),
            addresses,
        }
    }

    fn begin_next_step(&mut self) {
        let (socket, buffers) = (&*self.socket, &self.buffers);
        self.doing = match self.steps.pop_front() {
            Some(Step::Send(transfer)) => {
                let sender = DatagramSender::new(socket, NoHeading, true, &transfer);
                Doing::Sending(sender.with_buffers(buffers))
            }
            Some(Step::Receive(transfer)) => {
                Doing::Receiving(PlainReceiver::new(&transfer, buffers.dirt))
            }
            Some(Step::Exchange(exchange)) => {
                Doing::Asking(PlainAsker::new(socket, &exchange, buffers))
            }
            Some(Step::Answer(exchange)) => {
                Doing::Answering(PlainAnswerer::new(&exchange, buffers))
            }
            Some(Step::Close(Close::Graceful)) => Doing::Finishing,
            Some(Step::Close(Close::AfterPeer) | Step::Connect(_) | Step::Accept(_)) | None => {
                Doing::Nothing
            }
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
            Doing::Answering(answerer) => answerer.turn(socket, tally, local),
            Doing::Finishing => {
                for _ in 0..FAREWELLS {
                    // The peer may be gone already, and one that misses them ends by its own time.
                    let _lost = rustix::net::send(socket.as_fd(), &[], SendFlags::empty());
                }
                Ok(Stage::Over)
            }
            Doing::Nothing => Ok(Stage::Goes(Turn::Ended)),
        }
    }

    fn collect(&mut self) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Sending(sender) => sender.leave(&mut self.ending.datagrams),
            Doing::Asking(asker) => self.ending.transactions_lost = Some(asker.lost()),
            _ => {}
        }
    }

    fn end(&mut self, error: Option<FlowError>, local: &Local) -> Turn {
        self.collect();
        let mut ending = std::mem::take(&mut self.ending);
        ending.error = error;
        let socket = &*self.socket;
        ending.socket = self.addresses.take().map(|addresses| granted(socket, *addresses, false));
        ending.drops = socket_drops(socket.as_fd());
        self.shared.set_ended(ending, local);
        Turn::Ended
    }
}

impl Drive for PlainFlow {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
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
                    // What a flow of datagrams outlives: the link is down for a moment, the peer's
                    // port is closed, the local stack is out of room.
                    _ => {
                        *self.ending.errors.entry(error_kind(&error)).or_insert(0) += 1;
                        return Turn::Pause { until_ns: monotonic_ns() + MILLISECOND_NS };
                    }
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        &self.socket
    }
}
