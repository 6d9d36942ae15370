//! A shard: one thread, its flows, its buffers, its histogram.
//!
//! Three shapes carry the same flows. One flow alone gets plain blocking calls, the fewest there
//! can be; many share an edge-triggered poll set; and where it is asked for, a shard polls without
//! ever sleeping.

mod alone;
mod polled;
mod slots;

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use linerate_measure::sample::CpuSeconds;

use crate::error::Error;
use crate::flow::{Drive, Local};
use crate::latencies::Latencies;
use crate::load::Bell;
use crate::pattern::Pattern;
use crate::phase::SharedPhase;
use crate::socket::thread_usage;

/// How a shard waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One flow, in blocking calls.
    Alone,
    /// Any number of flows, in a poll set.
    Polled,
    /// Any number of flows, without ever sleeping.
    Spinning,
    /// Connections that come and go, in a loop made for them.
    Own,
}

/// A loop that carries a load in the place of flows, until the load is over.
pub(crate) type OwnLoop = Box<dyn FnOnce(&Bell, &mut Local) + Send>;

/// What a shard is to be.
pub(crate) struct ShardPlan {
    pub(crate) shape: Shape,
    /// Flows that it will get.
    pub(crate) flows: usize,
    /// The processor that it is pinned to.
    pub(crate) cpu: Option<u32>,
    pub(crate) receive_bytes: usize,
    pub(crate) pattern: Arc<Pattern>,
    /// Empty, to be filled.
    pub(crate) latencies: Latencies,
    pub(crate) phase: Arc<SharedPhase>,
    /// For [`Shape::Own`].
    pub(crate) own_loop: Option<OwnLoop>,
}

/// What a shard leaves when its flows have ended.
pub(crate) struct ShardEnd {
    pub(crate) latencies: Latencies,
    pub(crate) cpu: CpuSeconds,
    pub(crate) on_cpu: u32,
    /// Why the thread is not where it was asked to be.
    pub(crate) pinning_error: Option<String>,
}

/// A running shard.
pub(crate) struct Shard {
    shape: Shape,
    inbox: Option<Sender<Box<dyn Drive>>>,
    waker: Arc<Bell>,
    thread_id: Arc<AtomicI32>,
    thread: JoinHandle<ShardEnd>,
}

impl Shard {
    pub(crate) fn spawn(plan: ShardPlan) -> Result<Self, Error> {
        let waker = Arc::new(Bell::new()?);
        let (inbox, receiver) = channel();
        let (shape, own_waker) = (plan.shape, Arc::clone(&waker));
        let thread_id = Arc::new(AtomicI32::new(0));
        let own_id = Arc::clone(&thread_id);
        let thread = std::thread::Builder::new()
            .name("shard".into())
            .spawn(move || {
                own_id.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
                run(plan, &receiver, &own_waker)
            })
            .map_err(|error| {
                Error::Host(format!("can't start a thread: {error}; ask for fewer --threads"))
            })?;
        Ok(Self { shape, inbox: Some(inbox), waker, thread_id, thread })
    }

    pub(crate) fn add(&self, flow: Box<dyn Drive>) {
        if let Some(inbox) = &self.inbox
            && inbox.send(flow).is_ok()
        {
            self.waker.ring();
        }
    }

    /// The thread's number in /proc; `None` until it runs.
    pub(crate) fn thread_id(&self) -> Option<i32> {
        Some(self.thread_id.load(Ordering::Relaxed)).filter(|id| *id > 0)
    }

    /// Makes the shard look at the phase again.
    pub(crate) fn wake(&self) {
        match self.shape {
            Shape::Alone => self.thread.thread().unpark(),
            Shape::Polled | Shape::Spinning | Shape::Own => self.waker.ring(),
        }
    }

    /// Waits for the shard to end; its flows must have, or be about to.
    pub(crate) fn join(mut self) -> Option<ShardEnd> {
        self.release();
        self.thread.join().ok()
    }

    /// Lets the shard end when it can.
    pub(crate) fn leave(mut self) {
        self.release();
    }

    /// No more flows will come: a shard that waits for some ends.
    fn release(&mut self) {
        self.inbox = None;
        self.wake();
        self.waker.ring();
    }
}

fn run(mut plan: ShardPlan, inbox: &Receiver<Box<dyn Drive>>, waker: &Bell) -> ShardEnd {
    let pinning_error = plan.cpu.and_then(|cpu| pin(cpu).err());
    // Paced flows sleep for fractions of a millisecond; the default slack of 50 us is too coarse.
    let _coarser_at_worst = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let spinning = plan.shape == Shape::Spinning;
    let (pattern, phase) = (Arc::clone(&plan.pattern), Arc::clone(&plan.phase));
    let latencies = plan.latencies;
    let spins_alone = spinning && plan.flows == 1;
    let mut local = Local::new(plan.receive_bytes, pattern, latencies, phase, spins_alone);
    match plan.shape {
        Shape::Alone => alone::run(inbox, &mut local),
        Shape::Polled | Shape::Spinning => {
            polled::run(inbox, waker, plan.flows, spinning, &mut local);
        }
        Shape::Own => {
            if let Some(own_loop) = plan.own_loop.take() {
                own_loop(waker, &mut local);
            }
        }
    }
    ShardEnd {
        cpu: local.cpu_of_measured_part(),
        on_cpu: thread_usage().on_cpu,
        latencies: local.latencies,
        pinning_error,
    }
}

/// Pins the calling thread to one processor.
fn pin(cpu: u32) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
        return Err(format!("CPU {cpu} is beyond what the kernel can name"));
    }
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
        format!("a thread could not be pinned to CPU {cpu} ({error}): it ran wherever it could")
    })
}
