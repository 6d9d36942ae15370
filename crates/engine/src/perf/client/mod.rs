//! The client: connections that open streams, for as long as the plan says.

mod counts;
mod report;
mod worker;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use linerate_measure::Sample;
use linerate_wire::perf::exchange::{Outcome, Shape};
use rustls::ClientConfig;

use super::quic;
use super::trust;
use super::{Addresses, Carriage, Ending, Placement, StreamWaits};
use crate::clock::monotonic_ns;
use crate::error::Error;
use crate::event::Cancel;
use crate::probe::raise_open_files_limit;
use crate::transport::framed::FramedEndpoint;
use crate::waiting::Cost;
use counts::{Meter, ThreadCounts};
pub use report::Report;
use report::Totals;
use worker::Worker;

/// Events that may wait to be told. A thread that has more waits for the teller.
const EVENTS_WAITING: usize = 16_384;
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// What a client does.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Where to.
    pub addresses: Addresses,
    /// Over what.
    pub carriage: Carriage,
    /// How the threads run.
    pub placement: Placement,
    /// How many threads.
    pub threads: u32,
    /// Whether what is sent is copied first, where the transport can do without.
    pub copies: bool,
    /// Whether each QUIC connection has a UDP port of its own; else those of a thread share one.
    pub own_ports: bool,
    /// How many connections at a time, over all threads.
    pub connections: u32,
    /// How many streams at a time on each; 0: each connection ends as soon as it stands.
    pub streams: u32,
    /// What happens on each stream.
    pub shape: Shape,
    /// Whether a connection that has ended is followed by another.
    pub repeats_connections: bool,
    /// Whether a stream that has ended is followed by another.
    pub repeats_streams: bool,
    /// When everything is ended, at the latest.
    pub runs_for: Option<Duration>,
    /// Whether the run ends when a connection fails before any stood: there is another address to try.
    pub gives_up_unreached: bool,
    /// How many latencies are kept in all.
    pub latency_limit: usize,
    /// What is told as it happens.
    pub tells: Tells,
    /// The directory that the log of each QUIC connection goes to (qlog).
    pub logs: Option<PathBuf>,
    /// The file that the secrets of QUIC connections are appended to (SSLKEYLOGFILE).
    pub key_log: Option<PathBuf>,
}

/// What a client tells as it happens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tells {
    /// Whether each stream's end is told.
    pub streams: bool,
    /// Whether what each stream waited for is told.
    pub waits: bool,
    /// Whether each connection's end is told.
    pub connections: bool,
    /// How long the interval of a sample is, ns; `None`: there are no samples, and the report has no histogram.
    pub interval_ns: Option<u64>,
}

/// Something that a client tells as it happens.
#[derive(Debug)]
pub enum ClientEvent {
    /// A stream has ended.
    StreamEnded(Outcome),
    /// The sending of a stream is over, and this is what it waited for; over QUIC alone.
    StreamWaited(StreamWaits),
    /// A connection has ended.
    ConnectionEnded(Box<Ending>),
    /// An interval is over: all bytes both ways.
    Sample(Box<Sample>),
    /// What this machine refuses to its threads, which run all the same.
    Refused(String),
}

/// Does what the plan says, tells what happens, and returns what came out. A request to stop ends it
/// as the plan's own end does.
///
/// # Errors
///
/// When this machine refuses threads, keys or sockets before any connection stands. Connections that fail
/// are counted.
pub fn run_client(
    plan: &ClientPlan,
    tell: &mut dyn FnMut(ClientEvent),
    cancel: &Cancel,
) -> Result<Report, Error> {
    let (sender, receiver) = sync_channel(EVENTS_WAITING);
    let (stop, stood) = (AtomicBool::new(false), AtomicBool::new(false));
    let began_ns = monotonic_ns();
    let ends_ns = plan.runs_for.map(|length| {
        began_ns.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
    });
    let config = trust::client_config(plan.key_log.as_deref())?;
    raise_open_files_limit();
    let threads = threads(plan);
    let counts: Vec<ThreadCounts> = (0..threads).map(|_| ThreadCounts::default()).collect();
    let mut meter = Meter::begin(&counts, plan.tells.interval_ns, began_ns);
    thread::scope(|scope| {
        let (mut workers, mut broken) = (Vec::new(), None);
        for (number, counts) in (0..threads).zip(&counts) {
            let (stop, stood, sender) = (&stop, &stood, sender.clone());
            let context =
                ThreadContext { number, threads, began_ns, ends_ns, stop, stood, counts, sender };
            let config = config.clone();
            let spawned = thread::Builder::new().name(format!("perf {number}")).spawn_scoped(
                scope,
                move || {
                    let totals =
                        guarded(context.stop, |totals| work(plan, context, config, totals));
                    counts.time.end();
                    totals
                },
            );
            match spawned {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    // Those that have begun end, and tell what they did.
                    stop.store(true, Ordering::Relaxed);
                    broken = Some(Error::no_thread(&error).to_string());
                    break;
                }
            }
        }
        drop(sender);
        pass_on_events(&receiver, &mut meter, &stop, tell, cancel);
        let mut totals = Totals { broken, ..Totals::default() };
        for worker in workers {
            totals.add(worker.join().unwrap_or_else(|_| Totals {
                broken: Some("a thread failed, and its figures are missing".to_owned()),
                ..Totals::default()
            }));
        }
        let ended_ns = began_ns.saturating_add(totals.elapsed_ns);
        meter.end(ended_ns).into_iter().for_each(|last| tell(ClientEvent::Sample(Box::new(last))));
        match &totals.broken {
            Some(why) if totals.counted.connections == 0 => Err(cannot_go_on(why)),
            _ => Ok(totals.into_report(meter.machine_cpu(), plan.tells.interval_ns.is_some())),
        }
    })
}

/// Passes on the threads' events until all have ended, and takes samples.
fn pass_on_events(
    receiver: &Receiver<ClientEvent>,
    meter: &mut Meter<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ClientEvent),
    cancel: &Cancel,
) {
    loop {
        let left = Duration::from_nanos(meter.left_ns(monotonic_ns()));
        match receiver.recv_timeout(LOOK.min(left)) {
            Ok(event) => tell(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(sample) = meter.tick(monotonic_ns()) {
            tell(ClientEvent::Sample(Box::new(sample)));
        }
        if cancel.requested() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The error of a client of which a thread couldn't go on.
pub fn cannot_go_on(why: &str) -> Error {
    Error::Host(format!("can't go on: {why}"))
}

/// What one thread's work comes to. Where it can't go on, the others end.
fn guarded(stop: &AtomicBool, work: impl FnOnce(&mut Totals) -> io::Result<()>) -> Totals {
    let mut alarm = Alarm { stop, armed: true };
    let mut totals = Totals::default();
    match work(&mut totals) {
        Ok(()) => alarm.armed = false,
        Err(error) => totals.broken = Some(error.to_string()),
    }
    totals.cost = Cost::of_thread();
    totals
}

/// Ends the other threads unless it is disarmed: by one that panics it never is.
struct Alarm<'a> {
    stop: &'a AtomicBool,
    armed: bool,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn work(
    plan: &ClientPlan,
    context: ThreadContext<'_>,
    config: Arc<ClientConfig>,
    totals: &mut Totals,
) -> io::Result<()> {
    context.counts.time.begin();
    match plan.carriage {
        Carriage::Quic(options) => {
            let endpoint = quic::client(&config, plan, context.number, &options)?;
            Worker::new(plan, context, endpoint).run(totals)
        }
        Carriage::Tcp => {
            let endpoint = FramedEndpoint::client(config, plan.placement.busy)?;
            Worker::new(plan, context, endpoint).run(totals)
        }
    }
}

/// A thread without a connection would have nothing to do, and one that would share a port of the user's with
/// another could not have it.
fn threads(plan: &ClientPlan) -> u32 {
    let threads = plan.threads.min(plan.connections).max(1);
    let local = &plan.addresses.local;
    let has_ports = matches!(plan.carriage, Carriage::Quic(_))
        && local.iter().any(|address| address.port() != 0);
    let places = u32::try_from(local.len()).unwrap_or(u32::MAX);
    if has_ports { threads.min(places) } else { threads }
}

/// What one thread knows of the others.
struct ThreadContext<'a> {
    number: u32,
    threads: u32,
    began_ns: u64,
    ends_ns: Option<u64>,
    stop: &'a AtomicBool,
    /// Whether any connection has stood.
    stood: &'a AtomicBool,
    counts: &'a ThreadCounts,
    sender: SyncSender<ClientEvent>,
}

impl ThreadContext<'_> {
    /// Whether the run is to end.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.ends_ns.is_some_and(|ends_ns| monotonic_ns() >= ends_ns)
    }

    /// How long to wait at most before looking again.
    fn look_after(&self) -> Duration {
        let left = self.ends_ns.map(|ends_ns| ends_ns.saturating_sub(monotonic_ns()));
        left.map_or(LOOK, |left_ns| LOOK.min(Duration::from_nanos(left_ns)))
    }

    /// This thread's share of a number of things.
    fn share(&self, all: u64) -> u64 {
        let (threads, number) = (u64::from(self.threads), u64::from(self.number));
        all / threads + u64::from(all % threads > number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_the_others() {
        for panics in [false, true] {
            let stop = AtomicBool::new(false);
            let outcome = thread::scope(|scope| {
                let stop = &stop;
                let worker = scope.spawn(move || {
                    guarded(stop, |_| {
                        assert!(!panics, "as planned");
                        Ok(())
                    })
                });
                worker.join()
            });
            assert_eq!((outcome.is_err(), stop.load(Ordering::Relaxed)), (panics, panics));
        }
    }
}
