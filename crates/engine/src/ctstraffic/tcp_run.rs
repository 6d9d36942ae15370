//! Runs a client or a server over TCP: conducts the load, and tells what happens.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use linerate_measure::dialect::{SampleExtension, ctstraffic};
use linerate_measure::{EndReport, Sample};
use socket2::Type;

use super::sockets::listen_at_each;
use super::tcp_event::{TcpEvent, TcpStatus, TcpTotals};
use super::tcp_notices::Notices;
use super::tcp_plan::{TcpEnd, TcpPlan};
use super::{LAST_LINES_NS, LOOK_NS, PORT_RETRIES};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::connections::{Accept, AcceptLimits, Dial, Routes, Rules, TellConnections, Tells};
use crate::error::Error;
use crate::event::Cancel;
use crate::load::{Connections, Load};
use crate::waker::Waker;

/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: u32 = 16;

/// Shards that are stopped end within this: they read what still comes for half a second.
const STOP_NS: u64 = 2_000 * MILLISECOND_NS;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct TcpRun {
    /// Its connections.
    pub totals: TcpTotals,
    /// Bytes sent, ids and `DONE` included.
    pub sent_bytes: u64,
    /// Bytes received, likewise.
    pub received_bytes: u64,
    /// Bytes of data sent that the other ends have acknowledged.
    pub acknowledged_bytes: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// What this end counted.
    pub report: EndReport,
    /// Events of connections that were counted and not told, because too many waited for the caller.
    pub lost_events: u64,
}

/// Conducts a run.
struct Conductor<'a> {
    load: Load,
    notices: Notices,
    tell: &'a mut dyn FnMut(TcpEvent),
    began_ns: u64,
    /// The last row of status: when, and the bytes that had been sent and received.
    last: (u64, (u64, u64)),
}

/// Runs a client until its connections were made, or a server until as many came as it takes; or until the time is up
/// or the run is cancelled. A slow receiver of events delays no connection.
///
/// # Errors
/// This machine can't: an address that is taken, no thread, no descriptor.
pub fn run_tcp(
    plan: &TcpPlan,
    tell: &mut dyn FnMut(TcpEvent),
    cancel: &Cancel,
) -> Result<TcpRun, Error> {
    let began_ns = monotonic_ns();
    let waker = Arc::new(Waker::new()?);
    let (notices, teller) = Notices::new(began_ns, plan.asks_kernel);
    let (mut load, shortcoming) = prepare(plan, teller, &waker)?;
    for note in shortcoming.into_iter().chain(plan.sockets.shortfalls(Type::STREAM)) {
        load.note(note.clone());
        tell(TcpEvent::Note(note));
    }
    let mut conductor = Conductor { load, notices, tell, began_ns, last: (began_ns, (0, 0)) };
    conductor.load.open(monotonic_ns());
    conductor.tell_status(monotonic_ns());
    let is_stopped = conductor.conduct(plan, &waker, cancel);
    conductor.pause(plan.pause_at_end, cancel);
    Ok(conductor.conclude(is_stopped))
}

/// The load; and why a server holds no more connections than a process has open files, where that is so.
fn prepare(
    plan: &TcpPlan,
    tell: TellConnections,
    waker: &Arc<Waker>,
) -> Result<(Load, Option<String>), Error> {
    let workload = plan.load();
    let prepared = |connections| {
        let (role, steps) = (plan.role(), plan.steps());
        Load::prepare_given(role, &workload, steps, &plan.cpus, waker, Some(connections))
    };
    match connections(plan, tell)? {
        Connections::Accept(accept) => {
            let limits =
                AcceptLimits { full_tables: Some(Arc::default()), ..accept.limits.clone() };
            let own_tables = Connections::Accept(Accept { limits, ..accept.clone() });
            prepared(own_tables).map(|load| (load, None)).or_else(|_refused| {
                let load = prepared(Connections::Accept(accept))?;
                let shortcoming =
                    "this server holds no more connections than it may have open files \
                                   (ulimit -n): the system gives no thread a file table of its own"
                        .to_owned();
                Ok((load, Some(shortcoming)))
            })
        }
        dial => Ok((prepared(dial)?, None)),
    }
}

/// What makes the connections, or accepts them.
fn connections(plan: &TcpPlan, tell: TellConnections) -> Result<Connections, Error> {
    match &plan.end {
        TcpEnd::Client { routes, most_pending, .. } => {
            let sockets = plan.sockets.clone();
            let first = (routes.find)(0).server;
            Ok(Connections::Dial(Dial {
                routes: Some(Routes {
                    find: Arc::clone(&routes.find),
                    next: Arc::default(),
                    count: routes.count,
                    retries: PORT_RETRIES,
                }),
                device: plan.sockets.device.clone(),
                rules: Rules {
                    most_pending: Some(most_pending.map_or(usize::MAX, |most| most as usize)),
                    parts_in_order: true,
                    ..Rules::default()
                },
                tell: Some(tell),
                ..Dial::new(first, Arc::new(move |server, _| sockets.open_stream(server)))
            }))
        }
        TcpEnd::Server { listen, limit } => {
            let listeners = listen_at_each(listen, |address| plan.sockets.listen(address))?;
            let mut listeners = listeners.into_iter().map(Arc::new);
            let first = listeners
                .next()
                .ok_or_else(|| Error::Plan("there is no address to listen on".to_owned()))?;
            Ok(Connections::Accept(Accept {
                more_listeners: listeners.collect(),
                limits: AcceptLimits {
                    left: limit.map(|limit| Arc::new(AtomicU64::new(limit))),
                    ..AcceptLimits::default()
                },
                at_once: ACCEPTED_AT_ONCE,
                chooses_wake_ups: false,
                tells: Tells { each: Some(tell), ..Tells::default() },
                ..Accept::new(first)
            }))
        }
    }
}

impl Conductor<'_> {
    /// Until all is done; says whether it was stopped before that.
    fn conduct(&mut self, plan: &TcpPlan, waker: &Waker, cancel: &Cancel) -> bool {
        let ends_ns = plan.time_limit.map_or(u64::MAX, |limit| {
            self.began_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
        });
        loop {
            let now_ns = monotonic_ns();
            let is_more = self.notices.take(self.tell);
            if let Some(sample) = self.load.tick(now_ns) {
                self.tell_status(now_ns);
                self.tell_sample(sample);
            }
            if self.load.all_ended() {
                return false;
            }
            if cancel.requested() {
                return true;
            }
            if now_ns >= ends_ns {
                (self.tell)(TcpEvent::TimeIsUp);
                return true;
            }
            if is_more {
                continue;
            }
            let next_ns = self.load.next_tick(now_ns).unwrap_or(u64::MAX);
            waker.wait(next_ns.min(ends_ns).min(now_ns.saturating_add(LOOK_NS)));
        }
    }

    /// Leaves what stands open for so long.
    fn pause(&mut self, time: Option<Duration>, cancel: &Cancel) {
        let Some(time) = time.filter(|_| !cancel.requested()) else { return };
        self.notices.take_all(monotonic_ns().saturating_add(LAST_LINES_NS), self.tell);
        (self.tell)(TcpEvent::Pausing);
        let began = Instant::now();
        while let Some(left) = time.checked_sub(began.elapsed()).filter(|_| !cancel.requested()) {
            std::thread::sleep(left.min(Duration::from_nanos(LOOK_NS)));
        }
    }

    /// The last row, and what came of all. What is under way when a run is stopped counts as neither completed nor
    /// failed. Shards that are stopped send until they see it: the totals and the last row are those of when they have
    /// ended, so that no peer receives more than this end says it sent.
    fn conclude(mut self, is_stopped: bool) -> TcpRun {
        let mut ended_ns = monotonic_ns();
        // The lines of a run that is stopped take no longer than this.
        let until_ns = match is_stopped {
            true => ended_ns.saturating_add(LAST_LINES_NS),
            false => u64::MAX,
        };
        if is_stopped {
            ended_ns = self.stop(ended_ns);
        }
        self.notices.take_all(until_ns, self.tell);
        self.tell_status(ended_ns);
        let Self { load, mut notices, tell, began_ns, last } = self;
        let (_, (sent_bytes, received_bytes)) = last;
        let acknowledged_bytes = load.payload().0.saturating_sub(load.unacknowledged_bytes());
        let (sample, report) = load.finish(ended_ns);
        // The shards have ended, and with them what they tell.
        notices.take_all(until_ns, tell);
        let totals = notices.totals();
        if let Some(sample) = sample {
            tell(TcpEvent::Sample(Box::new(extended(sample, totals))));
        }
        TcpRun {
            totals,
            sent_bytes,
            received_bytes,
            acknowledged_bytes,
            elapsed_ns: ended_ns.saturating_sub(began_ns),
            report,
            lost_events: notices.lost(),
        }
    }

    /// Ends all connections, and waits until the shards have; returns when bytes were last seen to move, not before
    /// `now_ns`.
    fn stop(&mut self, now_ns: u64) -> u64 {
        self.load.abort();
        let (mut moved_ns, mut moved) = (now_ns, self.load.bytes_with_texts());
        let until_ns = now_ns.saturating_add(STOP_NS);
        while !self.load.all_ended() && monotonic_ns() < until_ns {
            std::thread::sleep(Duration::from_nanos(MILLISECOND_NS));
            self.notices.take(self.tell);
            let bytes = self.load.bytes_with_texts();
            if bytes != moved {
                (moved_ns, moved) = (monotonic_ns(), bytes);
            }
        }
        moved_ns
    }

    fn tell_status(&mut self, now_ns: u64) {
        let (last_ns, (sent_before, received_before)) = self.last;
        let (sent, received) = self.load.bytes_with_texts();
        let status = TcpStatus {
            at_ns: now_ns.saturating_sub(self.began_ns),
            slice_ns: now_ns.saturating_sub(last_ns),
            sent_bytes: sent.saturating_sub(sent_before),
            received_bytes: received.saturating_sub(received_before),
            totals: self.notices.totals(),
        };
        self.last = (now_ns, (sent, received));
        (self.tell)(TcpEvent::Status(status));
    }

    fn tell_sample(&mut self, sample: Sample) {
        (self.tell)(TcpEvent::Sample(Box::new(extended(sample, self.notices.totals()))));
    }
}

/// A sample with what came of connections until its end.
fn extended(sample: Sample, totals: TcpTotals) -> Sample {
    let extension = SampleExtension::Ctstraffic(ctstraffic::Interval {
        open: totals.open,
        completed: totals.completed,
        network_errors: totals.network_errors,
        data_errors: totals.data_errors,
        frames: None,
    });
    Sample { extension: Some(extension), ..sample }
}
