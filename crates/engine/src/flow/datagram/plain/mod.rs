//! Datagrams that say nothing of themselves: any that comes counts, and an empty one says that no
//! more will.

mod receive;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::step::{Close, Step};
use rustix::net::SendFlags;
use socket2::Socket;

use super::ask::{DatagramAnswerer, DatagramAsker};
use super::heading::NoHeading;
use super::pipeline::DatagramPipeline;
use super::{DatagramFlow, DatagramProtocol, DatagramSender, Pipeline};
use crate::buffers::Buffers;
use crate::flow::{Ending, FlowShared, Local, Stage};
use crate::tally::Tally;
use crate::transport::DatagramPath;
use receive::PlainReceiver;

/// Any of the empty datagrams that say the end may be lost, so there are as many.
const END_DATAGRAMS: u32 = 3;

/// Says once to the peer of a connected socket that no more will come.
pub(crate) fn say_end(socket: &Socket, flags: SendFlags) {
    // The peer may be gone already, and one that misses it ends by its own time.
    let _lost = rustix::net::send(socket.as_fd(), &[], flags);
}

/// The protocol of plain datagrams over a connected socket. Closing is saying with empty datagrams that
/// no more will come.
pub(crate) struct Plain {
    buffers: Buffers,
}

/// A flow of plain datagrams.
pub(crate) type PlainFlow<P> = DatagramFlow<P, Plain>;

impl<P: DatagramPath> PlainFlow<P> {
    pub(crate) fn new(
        path: P,
        shared: Arc<FlowShared>,
        buffers: Buffers,
        steps: Vec<Step>,
    ) -> Self {
        Self::over(path, shared, Plain { buffers }, steps)
    }
}

/// A step that has begun.
pub(crate) enum PlainStep {
    Sending(DatagramSender<NoHeading>),
    Receiving(PlainReceiver),
    Asking(DatagramAsker<Buffers>),
    Pipelining(DatagramPipeline<Buffers>),
    Answering(DatagramAnswerer<Buffers>),
    Finishing,
}

impl<P: DatagramPath> DatagramProtocol<P> for Plain {
    type Doing = PlainStep;

    fn begin(&self, path: &mut P, step: Step) -> Option<PlainStep> {
        Some(match step {
            Step::Send(transfer) => {
                let sender = DatagramSender::new(path, NoHeading, &transfer);
                PlainStep::Sending(sender.with_buffers(&self.buffers))
            }
            Step::Receive(transfer) => {
                PlainStep::Receiving(PlainReceiver::new(&transfer, self.buffers.dirt))
            }
            Step::Exchange(exchange) if Pipeline::serves(&exchange) => {
                PlainStep::Pipelining(DatagramPipeline::new(self.buffers.clone(), &exchange))
            }
            Step::Exchange(exchange) => {
                let buffers = self.buffers.clone();
                PlainStep::Asking(DatagramAsker::new(path.socket(), buffers, &exchange))
            }
            Step::Answer(exchange) => {
                PlainStep::Answering(DatagramAnswerer::new(self.buffers.clone(), &exchange))
            }
            Step::Close(Close::Graceful) => PlainStep::Finishing,
            Step::Duplex { .. } | Step::Close(_) | Step::Connect(_) | Step::Accept(_) => {
                return None;
            }
        })
    }

    #[inline]
    fn turn(
        doing: &mut PlainStep,
        path: &mut P,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        match doing {
            PlainStep::Sending(sender) => sender.turn(path, tally, local),
            PlainStep::Receiving(receiver) => receiver.turn(path.socket(), tally, local),
            PlainStep::Asking(asker) => asker.turn(path, tally, local),
            PlainStep::Pipelining(pipeline) => pipeline.turn(path, tally, local),
            PlainStep::Answering(answerer) => answerer.turn(path, tally, local),
            PlainStep::Finishing => {
                for _ in 0..END_DATAGRAMS {
                    say_end(path.socket(), SendFlags::empty());
                }
                Ok(Stage::Over)
            }
        }
    }

    fn leave(doing: PlainStep, path: &P, ending: &mut Ending) {
        match doing {
            PlainStep::Sending(sender) => sender.leave(path, &mut ending.datagrams),
            PlainStep::Asking(asker) => asker.leave(ending),
            PlainStep::Pipelining(pipeline) => pipeline.leave(ending),
            PlainStep::Receiving(_) | PlainStep::Answering(_) | PlainStep::Finishing => {}
        }
    }
}
