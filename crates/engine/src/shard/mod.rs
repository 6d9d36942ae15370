//! A shard: one thread, its flows, its buffers, its histogram.
//!
//! Three shapes carry the same flows. One flow alone gets plain blocking calls, the fewest there
//! can be; many share an edge-triggered poll set; and where it is asked for, a shard polls without
//! ever sleeping.
//!
//! A shard of a load that the shared file table has no room for lives *apart*: its thread has a
//! file table of its own. What it owns is opened and closed in that table alone, so nothing that
//! holds a descriptor goes from one thread to another; sockets come as messages.

mod alone;
mod inlet;
mod polled;
mod slots;

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Thread};

use linerate_measure::report::{ThreadDemand, Waiting};
use linerate_measure::sample::CpuSeconds;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use socket2::Socket;

use crate::error::Error;
use crate::flow::{ActiveFlows, Fresh, Local};
use crate::latencies::{Latencies, LatencyTally};
use crate::pattern::Pattern;
use crate::phase::SharedPhase;
use crate::probe::ThreadTime;
use crate::ready_count::ReadyCount;
use crate::socket::{own_table, thread_usage};
use crate::waker::Waker;
pub(crate) use inlet::{Coming, Inlet};
use inlet::{Outlet, Parcel};
pub(crate) use slots::Slots;

/// How a shard waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One flow, in blocking calls.
    Alone,
    /// Any number of flows, in a poll set.
    Polled,
    /// Any number of flows, without ever sleeping.
    Spinning,
    /// Connections that come and go, or flows over QUIC, in a loop made for them.
    Own,
}

/// A loop that carries a load in the place of flows, until the load is over.
pub(crate) type OwnLoop = Box<dyn FnOnce(&Inlet, &mut Local) + Send>;

/// What a shard is to be.
pub(crate) struct ShardPlan {
    pub(crate) shape: Shape,
    /// Flows that it will get.
    pub(crate) flows: usize,
    /// How many of them have a request on its way at a time.
    pub(crate) active: ActiveFlows,
    /// Whether it has a file table of its own. Then its shape isn't [`Shape::Alone`].
    pub(crate) apart: bool,
    /// The processor that it is pinned to.
    pub(crate) cpu: Option<u32>,
    pub(crate) receive_bytes: usize,
    pub(crate) pattern: Arc<Pattern>,
    /// Empty, to be filled.
    pub(crate) latencies: Latencies,
    pub(crate) phase: Arc<SharedPhase>,
    pub(crate) ready_count: Arc<ReadyCount>,
    /// For [`Shape::Own`].
    pub(crate) own_loop: Option<OwnLoop>,
    /// Where it is apart: what it accepts from, of which its table gets a copy.
    pub(crate) listeners: Vec<Arc<Socket>>,
}

/// What a shard leaves when its flows have ended.
#[derive(Default)]
pub(crate) struct ShardEnd {
    pub(crate) latencies: Latencies,
    pub(crate) cpu: CpuSeconds,
    pub(crate) waits: Waiting,
    pub(crate) on_cpu: u32,
    /// Why the thread is not where it was asked to be.
    pub(crate) pinning_error: Option<String>,
}

/// What a shard's thread tells of itself while it runs.
#[derive(Default)]
struct Vitals {
    time: ThreadTime,
    failed: AtomicBool,
}

/// Tells that the thread has failed, whose flows will never say that they have ended.
struct PanicGuard<'a> {
    vitals: &'a Vitals,
    conductor: Arc<Waker>,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.vitals.failed.store(true, Ordering::Release);
            self.conductor.wake();
        }
    }
}

/// A running shard.
pub(crate) struct Shard {
    shape: Shape,
    outlet: Option<Outlet>,
    vitals: Arc<Vitals>,
    latencies: Option<Arc<LatencyTally>>,
    thread: Thread,
    /// Comes when the flows have ended, before their sockets are closed: many take a while, for which
    /// a conductor that has other clients must not wait.
    end: Receiver<ShardEnd>,
}

impl Shard {
    /// Starts a shard, which rings the conductor's waker when its flows have news.
    pub(crate) fn spawn(plan: ShardPlan, conductor: &Arc<Waker>) -> Result<Self, Error> {
        let (shape, apart) = (plan.shape, plan.apart);
        let latencies = plan.latencies.tally();
        let vitals = Arc::new(Vitals::default());
        let own_vitals = Arc::clone(&vitals);
        let (tell, end) = sync_channel(1);
        let (outlet, thread) = if apart {
            spawn_apart(plan, conductor, own_vitals, tell)?
        } else {
            let waker = Arc::new(Waker::new()?);
            let (inbox, receiver) = channel();
            let inlet = Inlet::Shared { inbox: receiver, waker: Arc::clone(&waker) };
            let conductor = Arc::clone(conductor);
            let thread = start(move || run(plan, &inlet, conductor, &own_vitals, &tell))?;
            (Outlet::Shared { inbox, waker }, thread)
        };
        Ok(Self { shape, outlet: Some(outlet), vitals, latencies, thread, end })
    }

    /// Hands a flow over. A shard apart has the only copy of its socket from then on.
    ///
    /// # Errors
    ///
    /// When the kernel doesn't pass the socket on. A shard that has ended takes nothing, and says why when
    /// it is joined.
    pub(crate) fn add(&self, flow: Fresh, socket: Arc<Socket>) -> io::Result<()> {
        self.send(Parcel::Flow(flow), socket)
    }

    /// Hands over one of the connections that come and go, with its number.
    ///
    /// # Errors
    ///
    /// Likewise.
    pub(crate) fn add_connection(&self, number: u32, socket: Socket) -> io::Result<()> {
        self.send(Parcel::Connection(number), Arc::new(socket))
    }

    fn send(&self, parcel: Parcel, socket: Arc<Socket>) -> io::Result<()> {
        let Some(outlet) = &self.outlet else { return Ok(()) };
        outlet.send(parcel, socket).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
            _ => Err(error),
        })
    }

    /// Processor time of its thread so far; `None` until it runs.
    pub(crate) fn cpu(&self) -> Option<CpuSeconds> {
        self.vitals.time.cpu()
    }

    /// For how long its thread has run and has waited for a processor so far; `None` where that isn't known.
    pub(crate) fn demand(&self) -> Option<ThreadDemand> {
        self.vitals.time.demand()
    }

    /// The latencies that it has recorded so far, where its end times transactions.
    pub(crate) fn latencies(&self) -> Option<&LatencyTally> {
        self.latencies.as_deref()
    }

    /// Whether its thread has failed: flows of it that had not ended never will.
    pub(crate) fn has_failed(&self) -> bool {
        self.vitals.failed.load(Ordering::Acquire)
    }

    /// Makes the shard look at the phase again.
    pub(crate) fn wake(&self) {
        match (&self.outlet, self.shape) {
            (_, Shape::Alone) => self.thread.unpark(),
            (Some(outlet), Shape::Polled | Shape::Spinning | Shape::Own) => outlet.wake(),
            (None, _) => {}
        }
    }

    /// Waits for the shard's flows to end; they must have, or be about to. `None`: its thread failed.
    pub(crate) fn join(mut self) -> Option<ShardEnd> {
        self.release();
        self.end.recv().ok()
    }

    /// Lets the shard end when it can.
    pub(crate) fn leave(mut self) {
        self.release();
    }

    /// No more flows will come: a shard that waits for some ends.
    fn release(&mut self) {
        self.wake();
        let Some(outlet) = self.outlet.take() else { return };
        // The link's end is the last event of a shard apart. A shard in the shared table is woken by its
        // waker, after the channel has ended.
        if let Outlet::Shared { inbox, waker } = outlet {
            drop(inbox);
            waker.wake();
        }
        self.thread.unpark();
    }
}

fn start(body: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
    let started = thread::Builder::new().name("shard".into()).spawn(body);
    started.map(|handle| handle.thread().clone()).map_err(|error| Error::no_thread(&error))
}

/// Starts a thread with a file table of its own, and sees it have one.
fn spawn_apart(
    plan: ShardPlan,
    conductor: &Waker,
    own_vitals: Arc<Vitals>,
    tell_end: SyncSender<ShardEnd>,
) -> Result<(Outlet, Thread), Error> {
    let no_descriptor = |error: io::Error| {
        Error::Host(format!(
            "can't open another file descriptor ({error}): raise the limit (ulimit -n)"
        ))
    };
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (near, far) = pair.map_err(|error| no_descriptor(error.into()))?;
    let mut plan = plan;
    let mut kept = vec![Arc::new(far), conductor.descriptor()];
    for listener in std::mem::take(&mut plan.listeners) {
        kept.push(Arc::new(listener.try_clone().map_err(no_descriptor)?.into()));
    }
    let keep = kept.clone();
    let (inbox, receiver) = channel();
    let (tell, told) = sync_channel(1);
    // Nothing that goes into the thread but these may hold a descriptor.
    let thread = start(move || {
        let mut own = own_table_of(keep, &tell).unwrap_or_default().into_iter();
        if let (Some(link), Some(waker)) = (own.next(), own.next()) {
            let listeners = own.map(|descriptor| Arc::new(Socket::from(descriptor))).collect();
            let inlet = Inlet::Apart { inbox: receiver, link, listeners };
            run(plan, &inlet, Arc::new(Waker::of(waker)), &own_vitals, &tell_end);
        }
    })?;
    let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
    // The thread has its own descriptors now, or never will: these are no longer needed here.
    told.recv().unwrap_or_else(|_| Err(ended())).map_err(|error| {
        Error::Host(format!(
            "so many flows need a file table for each thread, and this machine doesn't let a \
             thread have one (unshare: {error}): raise the limit of open files (ulimit -n) above \
             twice their number, ask for fewer --flows, or let the container call unshare"
        ))
    })?;
    drop(kept);
    Ok((Outlet::Apart { inbox, link: near }, thread))
}

/// [`own_table`], and the other thread told.
fn own_table_of(
    keep: Vec<Arc<OwnedFd>>,
    tell: &SyncSender<io::Result<()>>,
) -> io::Result<Vec<OwnedFd>> {
    let own = own_table(keep);
    let outcome = match &own {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::from(error.kind())),
    };
    // The thread that started this one waits for it.
    let _heard = tell.send(outcome);
    own
}

fn run(
    plan: ShardPlan,
    inlet: &Inlet,
    waker: Arc<Waker>,
    vitals: &Vitals,
    tell_end: &SyncSender<ShardEnd>,
) {
    let _panic_guard = PanicGuard { vitals, conductor: Arc::clone(&waker) };
    vitals.time.begin();
    let pinning_error = plan.cpu.and_then(|cpu| linerate_system::affinity::pin(cpu).err());
    // Paced flows sleep for fractions of a millisecond; the default slack of 50 us is too coarse.
    let _coarser_at_worst = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let spinning = plan.shape == Shape::Spinning;
    let spins_alone = spinning && plan.flows == 1;
    let mut local = Local::new(
        plan.receive_bytes,
        plan.pattern,
        plan.latencies,
        plan.phase,
        plan.ready_count,
        waker,
        spins_alone,
    );
    local.active = plan.active;
    let ended: Box<dyn Any> = match plan.shape {
        Shape::Alone => Box::new(alone::run(inlet, &mut local)),
        Shape::Polled | Shape::Spinning => {
            Box::new(polled::run(inlet, plan.flows, spinning, &mut local))
        }
        Shape::Own => {
            if let Some(own_loop) = plan.own_loop {
                own_loop(inlet, &mut local);
            }
            Box::new(())
        }
    };
    let end = ShardEnd {
        cpu: local.cpu_of_measured_part(),
        waits: local.waits_of_measured_part(),
        on_cpu: thread_usage().on_cpu,
        latencies: local.latencies,
        pinning_error,
    };
    vitals.time.end();
    // Fails only if the load was given up.
    let _given_up = tell_end.send(end);
    drop(ended);
}
