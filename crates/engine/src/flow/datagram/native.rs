//! linerate's own protocol: every datagram has a heading.

use std::io;

use linerate_measure::step::Step;

use super::ask::{DatagramAnswerer, DatagramAsker};
use super::pipeline::DatagramPipeline;
use super::{DatagramProtocol, DatagramReceiver, DatagramSender, NativeHeading, Pipeline};
use crate::flow::{Ending, Local, Stage};
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// Datagrams of one flow, which show its tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    heading: NativeHeading,
}

impl Native {
    pub(crate) fn new(tag: u32) -> Self {
        Self { heading: NativeHeading { tag } }
    }
}

/// A step that has begun.
pub(crate) enum NativeStep {
    Sending(DatagramSender<NativeHeading>),
    Receiving(DatagramReceiver<NativeHeading>),
    Asking(DatagramAsker<NativeHeading>),
    Pipelining(DatagramPipeline<NativeHeading>),
    Answering(DatagramAnswerer<NativeHeading>),
}

impl<P: DatagramPath> DatagramProtocol<P> for Native {
    type Doing = NativeStep;

    fn begin(&self, path: &mut P, step: Step) -> Option<NativeStep> {
        Some(match step {
            Step::Send(transfer) => {
                NativeStep::Sending(DatagramSender::new(path, self.heading, &transfer))
            }
            Step::Receive(transfer) => {
                NativeStep::Receiving(DatagramReceiver::new(path, self.heading, &transfer))
            }
            Step::Exchange(exchange) if Pipeline::serves(&exchange) => {
                NativeStep::Pipelining(DatagramPipeline::new(self.heading, &exchange))
            }
            Step::Exchange(exchange) => {
                NativeStep::Asking(DatagramAsker::new(path.socket(), self.heading, &exchange))
            }
            Step::Answer(exchange) => {
                NativeStep::Answering(DatagramAnswerer::new(self.heading, &exchange))
            }
            // Nothing marks the end of a UDP flow on the wire.
            Step::Duplex { .. } | Step::Close(_) | Step::Connect(_) | Step::Accept(_) => {
                return None;
            }
        })
    }

    #[inline]
    fn turn(
        doing: &mut NativeStep,
        path: &mut P,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        match doing {
            NativeStep::Sending(sender) => sender.turn(path, tally, local),
            NativeStep::Receiving(receiver) => receiver.turn(path, tally, local),
            NativeStep::Asking(asker) => asker.turn(path, tally, local),
            NativeStep::Pipelining(pipeline) => pipeline.turn(path, tally, local),
            NativeStep::Answering(answerer) => answerer.turn(path, tally, local),
        }
    }

    fn leave(doing: NativeStep, path: &P, ending: &mut Ending) {
        match doing {
            NativeStep::Sending(sender) => sender.leave(path, &mut ending.datagrams),
            NativeStep::Receiving(receiver) => receiver.leave(path, ending),
            NativeStep::Asking(asker) => asker.leave(ending),
            NativeStep::Pipelining(pipeline) => pipeline.leave(ending),
            NativeStep::Answering(_) => {}
        }
    }
}
