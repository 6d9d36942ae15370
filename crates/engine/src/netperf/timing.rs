//! Flows whose calls are timed.
//!
//! How long each send or receive of bulk took is the load's latency, as that of transactions is
//! elsewhere. Reading the clock at each call costs a little, so it happens only on request.

use std::rc::Rc;
use std::sync::Arc;

use linerate_measure::step::{Movement, Step};
use linerate_wire::netperf::test::Transport;
use socket2::Socket;

use super::job::{Job, Task};
use crate::error::Error;
use crate::flow::{Drive, FlowShared, Local, MakeFlow, StreamFlow, Turn};
use crate::pattern::Pattern;
use crate::transport::{
    Awake, ByteStream, CallTimes, FromPageCache, IntoNowhere, PageCache, Tcp, Timed,
};

/// A flow over a way that times its calls. When it ends they are its shard's latencies.
pub(super) struct TimedFlow {
    flow: Box<dyn Drive>,
    times: CallTimes,
}

impl TimedFlow {
    /// The flow that `make` makes, whose way records into what it is given.
    pub(super) fn over(make: impl FnOnce(CallTimes) -> Box<dyn Drive>) -> Box<dyn Drive> {
        let times = CallTimes::default();
        Box::new(Self { flow: make(Rc::clone(&times)), times })
    }
}

impl Drive for TimedFlow {
    fn turn(&mut self, local: &mut Local) -> Turn {
        let turn = self.flow.turn(local);
        if turn == Turn::Ended {
            local.latencies.total.merge(&self.times.take());
        }
        turn
    }

    fn socket(&self) -> &Socket {
        self.flow.socket()
    }
}

/// A flow over a connection, whose calls are timed where a job says so.
pub(super) fn stream_flow<S: ByteStream + 'static>(
    stream: S,
    shared: Arc<FlowShared>,
    steps: Vec<Step>,
    times_calls: bool,
) -> Box<dyn Drive> {
    if !times_calls {
        return Box::new(StreamFlow::new(stream, shared, steps));
    }
    TimedFlow::over(|times| Box::new(StreamFlow::new(Timed::new(stream, times), shared, steps)))
}

/// Makes the flow of a job over TCP whose calls are timed, and whose buffers are as they always are;
/// `None` where they aren't timed.
///
/// # Errors
///
/// When a file to send can't be made in memory.
pub(super) fn timed_flow(job: &Job) -> Result<Option<MakeFlow>, Error> {
    if !job.times_calls || job.transport != Transport::Tcp {
        return Ok(None);
    }
    Ok(Some(match (job.task, job.movement) {
        (Task::Send, Movement::Splice) => {
            let length = job.send_bytes() as usize;
            let file = PageCache::of(Pattern::beginning(length).slice(0, length));
            let file = file.map_err(|error| {
                Error::Host(format!("can't make a file in memory (memfd): {error}; name one (-F)"))
            })?;
            Box::new(move |socket, shared, steps| {
                stream_flow(FromPageCache::new(Tcp(socket), file), shared, steps, true)
            })
        }
        (Task::Receive, Movement::Splice) => Box::new(|socket, shared, steps| {
            stream_flow(IntoNowhere(Tcp(socket)), shared, steps, true)
        }),
        (Task::Receive, _) => Box::new(|socket, shared, steps| {
            stream_flow(Awake::without_rests(socket), shared, steps, true)
        }),
        _ => Box::new(|socket, shared, steps| stream_flow(Tcp(socket), shared, steps, true)),
    }))
}
