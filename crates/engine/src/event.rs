//! What happens during a run or while serving, as it happens.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use linerate_measure::record::TestFigures;
use linerate_measure::{Plan, Sample};

use crate::clock::SECOND_NS;

pub use linerate_system::cancel::Cancel;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server is ready for clients.
    Listening {
        /// The address it listens on, TCP and UDP.
        address: SocketAddr,
        /// The fingerprint of its key: SHA-256 of its certificate, in hexadecimal.
        fingerprint: String,
    },
    /// The client waits for its turn.
    Queued {
        /// 1: next.
        place: u32,
    },
    /// All flows stand, and the load waits for its start to be named.
    Armed {
        /// Names the run at both ends.
        run_id: String,
    },
    /// The load begins.
    Started {
        /// Names the run at both ends.
        run_id: String,
        /// What will be done.
        plan: Box<Plan>,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
    },
    /// An interval is over.
    Sample(Box<Sample>),
    /// A client's test began at this server.
    TestStarted {
        /// Names the run at both ends.
        run_id: String,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
        /// Where the client is.
        client: SocketAddr,
        /// What it asked for.
        workload: Box<linerate_measure::Workload>,
    },
    /// A client's test ended at this server.
    TestEnded {
        /// Names the run at both ends.
        run_id: String,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
        /// How: `complete`, or why it was cut short.
        how: String,
        /// What it came to at this end; `None` where its load never began.
        figures: Option<TestFigures>,
    },
    /// A client was turned away, or spoke wrongly.
    Refused {
        /// Where the client is.
        client: SocketAddr,
        /// Why.
        why: String,
    },
    /// Something the user should know.
    Note(String),
}

/// Samples of a server's observed tests are so long.
pub(crate) const OBSERVED_INTERVAL_NS: u64 = SECOND_NS;

/// Makes an observer for each test of a server. `A` is what a client asks for, `R` what a test comes to.
pub trait Observe<A, R>: Debug + Send + Sync {
    /// A client has asked for a test; it isn't known whether the server can make it.
    fn begin(&self, asked: &A) -> Box<dyn TestObserver<R>>;
}

/// Takes what happens in one test. The thread that serves the client calls it: a slow observer delays the
/// conversation, never the load.
pub trait TestObserver<R>: Send {
    /// Data has begun, at this time (UTC, nanoseconds since 1970).
    fn started(&mut self, utc_ns: i64);
    /// An interval of a second is over, or the rest of one.
    fn sampled(&mut self, sample: &Sample);
    /// The test is over. A test without data has no report.
    fn ended(self: Box<Self>, report: Option<R>, how: &TestEnding);
}

/// How a test of a server has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestEnding {
    /// The client has its results.
    Complete,
    /// The server has refused it, for this reason.
    Refused(String),
    /// The client has left, or the server was stopped.
    Interrupted(String),
    /// Otherwise, for this reason.
    Failed(String),
}

/// Where events go. A full sink drops the event and counts it; it never blocks.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    sender: Option<SyncSender<Event>>,
    dropped: Arc<AtomicU64>,
}

impl Sink {
    /// A sink for up to `capacity` unread events, and the end to read them from.
    pub fn bounded(capacity: usize) -> (Self, Receiver<Event>) {
        let (sender, receiver) = sync_channel(capacity);
        (Self { sender: Some(sender), dropped: Arc::default() }, receiver)
    }

    /// A sink that forgets everything.
    pub fn none() -> Self {
        Self::default()
    }

    /// Offers an event.
    pub fn offer(&self, event: Event) {
        if let Some(sender) = &self.sender
            && let Err(TrySendError::Full(_)) = sender.try_send(event)
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events dropped so far because they were not read in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
