//! The channels to all hosts of a run: a thread each, with a heartbeat from the agent's first line.

use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_measure::run::ClockOffset;

use super::gate::Gate;
use super::thread::HostThread;
use super::{Host, HostError, HostErrorKind, NamedHost, Way};
use crate::agent::{AgentHello, ChildEvent, ChildEventKind, Moment, Readings, StartTask};
use crate::collect::Request;

/// A host of a session: its place in the list that the session was opened with.
pub type HostId = usize;

/// How channels are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The most handshakes at a time. sshd begins to refuse above ten, and more are no faster.
    pub handshakes: usize,
    /// How long an agent's hello is waited for.
    pub hello: Duration,
    /// The most that events of all hosts may take which nobody has taken yet, bytes. A host that has more than its
    /// share, and more than 16 MiB, is lost.
    pub untaken: usize,
}

/// A host may have so many bytes of events that nobody has taken yet, however many hosts there are.
const LEAST_UNTAKEN: usize = 16 << 20;

impl Default for OpenOptions {
    fn default() -> Self {
        Self { handshakes: 8, hello: Duration::from_secs(60), untaken: 256 << 20 }
    }
}

/// The channels to all hosts of a run. Dropped, it ends everything on all hosts.
#[derive(Debug)]
pub struct Session {
    hosts: Vec<Handle>,
    events: Receiver<HostEvent>,
    shared: Arc<Shared>,
    next_task: u32,
}

#[derive(Debug)]
struct Handle {
    host: Arc<dyn Host>,
    orders: Sender<Order>,
    waker: PipeWriter,
    untaken: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// What all threads of a session look at.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gate: Gate,
    /// Set when the session ends: nothing is opened any more.
    pub(super) ends: AtomicBool,
}

/// What a host's thread is to do.
#[derive(Debug)]
pub(super) enum Order {
    Start(StartTask),
    Write { task: u32, text: String, end: bool },
    Stop { task: u32, grace_ms: u32 },
    Collect { request: Option<Request> },
    MeasureClock,
    Bye,
}

/// What happened on a host.
#[derive(Debug)]
pub struct HostEvent {
    /// Which host.
    pub host: HostId,
    /// When it was noticed, on this machine's clocks.
    pub at: Moment,
    /// What.
    pub kind: HostEventKind,
}

/// What happened on a host.
#[derive(Debug)]
pub enum HostEventKind {
    /// The agent runs, and its clock was measured.
    Opened {
        /// Who the agent is.
        hello: Box<AgentHello>,
        /// Its clock.
        clock: HostClock,
    },
    /// The clock was measured again, after [`Session::measure_clock`].
    Clock(HostClock),
    /// Something happened to a child.
    Child(ChildEvent),
    /// A collector read something.
    Ticks(Readings),
    /// The host is not open yet: a sentence about what delays it.
    Delayed(String),
    /// Nothing was heard for three seconds.
    Silent,
    /// The host was heard again.
    Heard,
    /// The host could not be opened, or can't be used any more; nothing comes after this.
    Lost {
        /// Why.
        error: HostError,
        /// The children that ran or were asked for.
        tasks: Vec<u32>,
    },
    /// The agent has ended as it was told to; nothing comes after this.
    Closed,
}

/// What is known of a host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClock {
    /// The host's clock less this machine's, with its bound.
    pub offset: ClockOffset,
    /// The least round trip of the channel, nanoseconds.
    pub round_trip_ns: u64,
}

impl Session {
    /// Begins to open the channels to all hosts. An event for each tells of [`HostEventKind::Opened`] or
    /// [`HostEventKind::Lost`].
    ///
    /// # Errors
    /// A thread or a pipe of this machine could not be made.
    pub fn open(hosts: &[NamedHost], options: &OpenOptions) -> Result<Self, HostError> {
        let shared = Arc::new(Shared {
            gate: Gate::new(options.handshakes.max(1)),
            ends: AtomicBool::new(false),
        });
        let (sender, events) = channel();
        let mut session =
            Self { hosts: Vec::with_capacity(hosts.len()), events, shared, next_task: 1 };
        let share = options.untaken / hosts.len().max(1);
        let untaken = share.max(LEAST_UNTAKEN.min(options.untaken));
        let options = OpenOptions { untaken, ..*options };
        for (id, named) in hosts.iter().enumerate() {
            let handle = session
                .begin(id, named, &options, sender.clone())
                .map_err(|error| HostError::new(HostErrorKind::ThisMachine, &error.to_string()))?;
            session.hosts.push(handle);
        }
        Ok(session)
    }

    fn begin(
        &self,
        id: HostId,
        named: &NamedHost,
        options: &OpenOptions,
        events: Sender<HostEvent>,
    ) -> io::Result<Handle> {
        let (woken, waker) = io::pipe()?;
        rustix::io::ioctl_fionbio(&waker, true)?;
        let (orders, received) = channel();
        let untaken = Arc::new(AtomicUsize::new(0));
        let thread = HostThread {
            id,
            host: Arc::clone(&named.host),
            options: options.clone(),
            untaken: Arc::clone(&untaken),
            shared: Arc::clone(&self.shared),
            events,
            orders: received,
            woken,
        };
        let name = format!("host {}", named.name);
        let thread = thread::Builder::new().name(name).spawn(move || thread.run())?;
        let host = Arc::clone(&named.host);
        Ok(Handle { host, orders, waker, untaken, thread: Some(thread) })
    }

    /// How many hosts there are, lost ones too.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// What happened next on any host; none within this time.
    pub fn next_event(&self, timeout: Duration) -> Option<HostEvent> {
        match self.events.recv_timeout(timeout) {
            Ok(event) => {
                if let Some(handle) = self.hosts.get(event.host) {
                    handle.untaken.fetch_sub(event.weight(), Ordering::Relaxed);
                }
                Some(event)
            }
            Err(RecvTimeoutError::Timeout) => None,
            // All threads have ended: nothing will happen, and the caller's loop must not spin.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(timeout);
                None
            }
        }
    }

    /// Starts a child; its number in this session. The number in `start` is ignored.
    pub fn start(&mut self, host: HostId, start: StartTask) -> u32 {
        let task = self.next_task;
        self.next_task += 1;
        self.order(host, Order::Start(StartTask { task, ..start }));
        task
    }

    /// Writes to the standard input of a child that was started with `keep_stdin`.
    pub fn write(&self, host: HostId, task: u32, text: &str, end: bool) {
        self.order(host, Order::Write { task, text: text.to_owned(), end });
    }

    /// Ends a child: SIGTERM, and SIGKILL after the grace.
    pub fn stop(&self, host: HostId, task: u32, grace: Duration) {
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        self.order(host, Order::Stop { task, grace_ms });
    }

    /// Starts the host's collectors anew, or ends them.
    pub fn collect(&self, host: HostId, request: Option<Request>) {
        self.order(host, Order::Collect { request });
    }

    /// Measures the host's clock by a burst of round trips; [`HostEventKind::Clock`] answers.
    pub fn measure_clock(&self, host: HostId) {
        self.order(host, Order::MeasureClock);
    }

    /// Where a client on one host reaches a server on another that listens on this port. A way through a cluster may
    /// have to be made first: while it is awaited, this is to be asked again.
    ///
    /// # Errors
    /// The way could not be made.
    pub fn reach(&self, server: HostId, port: u16, client: HostId) -> Result<Way, HostError> {
        match (self.hosts.get(server), self.hosts.get(client)) {
            (Some(server), Some(client)) => server.host.reach(port, &client.host.describe()),
            _ => Ok(Way::AsPlanned),
        }
    }

    /// Ends everything on one host.
    pub fn close(&self, host: HostId) {
        self.order(host, Order::Bye);
    }

    fn order(&self, host: HostId, order: Order) {
        if let Some(handle) = self.hosts.get(host) {
            // A host that is lost has told so, and a full pipe wakes the thread as well.
            let _lost = handle.orders.send(order);
            let _awake = (&handle.waker).write(&[0]);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.gate.close();
        for host in 0..self.hosts.len() {
            self.order(host, Order::Bye);
        }
        for handle in &mut self.hosts {
            if let Some(thread) = handle.thread.take() {
                let _panicked = thread.join();
            }
        }
    }
}

impl HostEvent {
    /// What the event takes of the memory for events, bytes.
    pub(super) fn weight(&self) -> usize {
        let content = match &self.kind {
            HostEventKind::Child(child) => match &child.kind {
                ChildEventKind::Line { json, .. } => json.get().len(),
                ChildEventKind::Text { text, .. } | ChildEventKind::Refused(text) => text.len(),
                ChildEventKind::Started { .. } | ChildEventKind::Ended(_) => 0,
            },
            HostEventKind::Ticks(readings) => readings.data.get().len(),
            HostEventKind::Delayed(text) => text.len(),
            _ => 0,
        };
        content + size_of::<Self>()
    }
}
