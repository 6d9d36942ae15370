//! The client: one connection, one stream, until the run time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use linerate_measure::report::HostFacts;
use linerate_measure::sample::Traffic;
use linerate_measure::{EndReport, FlowReport, Role};
use linerate_wire::qperf::download::Download;
use linerate_wire::qperf::{CLOSE_REASON, REQUEST};

use super::counts::{Counts, Interval, Meter, received};
use super::plan::ClientEnd;
use super::{ClientPlan, EVENTS_WAITING, LOOK, Teller};
use crate::clock::monotonic_ns;
use crate::control::SessionFile;
use crate::error::Error;
use crate::event::Cancel;
use crate::probe::MachineTimes;
use crate::transport::quic::{
    Dir, Endpoint, Event, EventLog, Link, SharedConnection, StreamId, StreamRead,
};
use crate::waiting::CostMark;

/// What a connection that ends before its time closes with, as the transport.
const INTERRUPTED: &[u8] = b"interrupted";
/// How long the last words may take to leave, and how long the peer's are listened to.
const LAST_WORDS: Duration = Duration::from_millis(200);
const QUIET: Duration = Duration::from_millis(20);

/// Something that a client tells as it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server's port is closed, by an ICMP message that may be forged; the client goes on trying.
    Refused,
    /// The connection stands, so long after it began.
    Established {
        /// In ns.
        elapsed_ns: u64,
    },
    /// The first byte came, so long after the connection began.
    FirstByte {
        /// In ns.
        elapsed_ns: u64,
    },
    /// An interval is over.
    Interval(Interval),
    /// The server has given the stream up.
    Reset {
        /// With this code.
        code: u64,
    },
}

/// Why a client has less than it wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The connection ended, for this reason.
    Connection(String),
    /// The server ended its stream, in this way.
    Stream(String),
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Report {
    /// All that was received.
    pub total: Counts,
    /// When the first byte came, so long after the connection began; `None`: none came.
    pub first_byte_ns: Option<u64>,
    /// What ended before the client ended it.
    pub lost: Option<Lost>,
    /// Events that were dropped because they were not taken in time.
    pub dropped_events: u64,
    /// Why a file that was to be written is not whole.
    pub file_faults: Vec<String>,
    /// What this end counted, from the first byte on.
    pub own: EndReport,
}

/// Does what the plan says, tells what happens, and returns what came out. A request to stop ends it.
///
/// # Errors
///
/// When this machine refuses a thread, a socket or a log. A connection that fails is no error: the report says why.
pub fn run_client(
    plan: &ClientPlan,
    tell: &mut dyn FnMut(ClientEvent),
    cancel: &Cancel,
) -> Result<Report, Error> {
    let (sender, receiver) = sync_channel(EVENTS_WAITING);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let work = move || Client::new(plan, Teller::new(sender))?.run(stop);
        let spawned = thread::Builder::new().name("qperf".to_owned()).spawn_scoped(scope, work);
        let worker = spawned.map_err(|error| Error::no_thread(&error))?;
        pass_on_events(&receiver, tell, || stop.store(cancel.requested(), Ordering::Relaxed));
        worker.join().unwrap_or_else(|_| Err(Error::Host("the client's thread failed".to_owned())))
    })
}

/// Passes on a thread's events until it has ended, and calls `look` now and then.
fn pass_on_events<T>(receiver: &Receiver<T>, tell: &mut dyn FnMut(T), look: impl Fn()) {
    loop {
        look();
        match receiver.recv_timeout(LOOK) {
            Ok(event) => tell(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Client<'a> {
    plan: &'a ClientPlan,
    teller: Teller<ClientEvent>,
    endpoint: Endpoint,
    link: Link,
    connection: SharedConnection,
    stream: Option<StreamId>,
    download: Download,
    meter: Option<Meter>,
    /// What the thread and the machine had used when the first byte came.
    before: Option<(CostMark, MachineTimes)>,
    was_refused: bool,
    lost: Option<Lost>,
    kept: Kept,
}

/// What a client writes to files.
struct Kept {
    events: Option<Arc<EventLog>>,
    session: Option<SessionFile>,
}

impl Kept {
    /// Writes what is there to be written; why a file is not whole.
    fn finish(self) -> Vec<String> {
        let events = self.events.and_then(|events| events.finish().err());
        let session = self.session.and_then(|session| session.save().err());
        events.into_iter().chain(session).collect()
    }
}

impl<'a> Client<'a> {
    fn new(plan: &'a ClientPlan, teller: Teller<ClientEvent>) -> Result<Self, Error> {
        let ClientEnd { mut endpoint, client, events, session } = plan.end()?;
        let failed = |source| Error::Io {
            operation: "connect to",
            address: plan.remote.to_string(),
            source,
        };
        let began_ns = monotonic_ns();
        let address = plan.remote.ip().to_string();
        let name = if plan.server_name.is_empty() { &address } else { &plan.server_name };
        let link = endpoint.connect(0, plan.remote, name, &client).map_err(failed)?;
        let gone = || failed(std::io::ErrorKind::NotConnected.into());
        let connection = endpoint.connection(link).cloned().ok_or_else(gone)?;
        let runtime_ns = plan.runtime.map(|time| time.as_nanos() as u64);
        Ok(Self {
            plan,
            teller,
            endpoint,
            link,
            connection,
            stream: None,
            download: Download::new(began_ns, runtime_ns),
            meter: None,
            before: None,
            was_refused: false,
            lost: None,
            kept: Kept { events, session },
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Report, Error> {
        if self.connection.borrow().can_send_early() {
            self.request();
        }
        let broken = |error| Error::Host(format!("can't go on: {error}"));
        while self.lost.is_none() && !self.download.is_over(monotonic_ns()) {
            if stop.load(Ordering::Relaxed) {
                return Ok(self.end(INTERRUPTED));
            }
            self.endpoint.send_out().map_err(broken)?;
            self.endpoint.wait(self.wait_at_most(), None).map_err(broken)?;
            self.endpoint.take_in().map_err(broken)?;
            while let Some((link, event)) = self.endpoint.poll_event() {
                if link == self.link {
                    self.handle(event);
                }
            }
            self.tick();
        }
        self.tick();
        let reason = if self.lost.is_none() { CLOSE_REASON.as_bytes() } else { INTERRUPTED };
        Ok(self.end(reason))
    }

    /// There is no more to come. A client that has enough doesn't care.
    fn lose(&mut self, lost: Lost) {
        if self.lost.is_none() && !self.download.is_over(monotonic_ns()) {
            self.lost = Some(lost);
        }
    }

    fn wait_at_most(&self) -> Duration {
        let due_ns = [self.meter.as_ref().map(Meter::next_ns), self.download.ends_ns()];
        let next_ns = due_ns.into_iter().flatten().min().unwrap_or(u64::MAX);
        LOOK.min(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())))
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Established => {
                if let Some(elapsed_ns) = self.download.handle_established(monotonic_ns()) {
                    self.teller.tell(ClientEvent::Established { elapsed_ns });
                }
                if self.stream.is_some() && !self.connection.borrow().early_was_taken() {
                    // Nothing of what was sent before counts.
                    self.stream = None;
                }
                self.request();
            }
            Event::Refused if !std::mem::replace(&mut self.was_refused, true) => {
                self.teller.tell(ClientEvent::Refused);
            }
            Event::Readable(id) if Some(id) == self.stream => self.read(id),
            Event::StreamsAvailable(Dir::Bi) => self.request(),
            Event::Closed(cause) => self.lose(Lost::Connection(cause.text)),
            _ => {}
        }
    }

    /// Asks for data, once.
    fn request(&mut self) {
        if self.stream.is_some() {
            return;
        }
        let mut connection = self.connection.borrow_mut();
        let Some(id) = connection.open_stream(Dir::Bi) else { return };
        // A stream that was just opened has room for so little, and what ends a connection is told by itself.
        let _told = connection.send(id, REQUEST).and_then(|_| connection.finish(id));
        self.stream = Some(id);
    }

    fn read(&mut self, id: StreamId) {
        // The receive window bounds what is there.
        let read = self.connection.borrow_mut().read(id, usize::MAX, &mut |_| ());
        match read {
            StreamRead::Bytes(bytes) => self.record_received(bytes as u64),
            StreamRead::Finished(bytes) => {
                self.record_received(bytes as u64);
                self.lose(Lost::Stream("the server ended its stream".to_owned()));
            }
            StreamRead::Reset(code) => {
                self.teller.tell(ClientEvent::Reset { code });
                self.lose(Lost::Stream(format!("the server reset its stream with code {code}")));
            }
            StreamRead::Blocked | StreamRead::Closed => {}
        }
    }

    fn record_received(&mut self, bytes: u64) {
        let now_ns = monotonic_ns();
        let Some(elapsed_ns) = self.download.handle_received(bytes, now_ns) else { return };
        self.before = Some((CostMark::now(), MachineTimes::now()));
        self.teller.tell(ClientEvent::FirstByte { elapsed_ns });
        if self.plan.runtime.is_some() {
            let interval_ns = self.plan.interval_ns;
            self.meter = Some(Meter::begin(interval_ns, now_ns, Counts::default()));
        }
    }

    fn counts(&self) -> Counts {
        received(self.download.received_bytes(), &self.connection)
    }

    fn tick(&mut self) {
        let now_ns = monotonic_ns();
        let Some(mut meter) = self.meter.take() else { return };
        if let Some(interval) = meter.tick(now_ns, || self.counts()) {
            self.teller.tell(ClientEvent::Interval(interval));
        }
        self.meter = Some(meter);
    }

    fn end(mut self, reason: &'static [u8]) -> Report {
        let (total, ended_ns) = (self.counts(), monotonic_ns());
        let report = self.report(total, ended_ns);
        self.connection.borrow_mut().close_as(true, 0, reason);
        self.endpoint.flush(LAST_WORDS);
        self.endpoint.linger(QUIET, LAST_WORDS);
        let dropped_events = self.teller.dropped;
        Report { dropped_events, file_faults: self.kept.finish(), ..report }
    }

    fn report(&self, total: Counts, ended_ns: u64) -> Report {
        let first_ns = self.download.first_ns();
        let elapsed_ns = ended_ns.saturating_sub(first_ns.unwrap_or(ended_ns));
        let flow = FlowReport {
            received: Some(Traffic { bytes: total.bytes, calls: None }),
            from_ns: Some(0),
            to_ns: Some(elapsed_ns),
            quic: Some(self.connection.borrow().status()),
            ..FlowReport::default()
        };
        let nothing =
            EndReport { flows: vec![flow], elapsed_ns, ..EndReport::nothing(Role::Client) };
        let own = match &self.before {
            None => nothing,
            Some((mark, machine)) => {
                let cost = mark.cost();
                EndReport {
                    host: HostFacts { ran_on_cpus: cost.ran_on_cpus, ..HostFacts::default() },
                    cpu: Some(cost.cpu),
                    waiting: Some(cost.waiting),
                    machine_cpu: MachineTimes::now().cpus_since(machine),
                    ..nothing
                }
            }
        };
        Report {
            total,
            first_byte_ns: self.download.first_byte_ns(),
            lost: self.lost.clone(),
            dropped_events: 0,
            file_faults: Vec::new(),
            own,
        }
    }
}
