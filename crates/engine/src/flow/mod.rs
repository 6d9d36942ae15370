//! What a flow does when its shard gives it a turn.
//!
//! A flow runs its steps one after the other. A step is looked at once, when it begins; then a loop
//! made for it runs until the socket has no more, the step is over, or the flow's share of the
//! shard's time is used up.

mod active;
mod datagram;
mod departures;
mod duplex;
mod exchange;
mod failure;
mod goal;
mod pipeline;
mod rules;
mod stream;
mod transfer;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linerate_measure::datagram::SequenceTracker;
use linerate_measure::media::FrameCounts;
use linerate_measure::report::{EndReport, Handshakes, SocketFacts, Verification, Waiting};
use linerate_measure::sample::{CpuSeconds, QuicStatus, TcpStatus};
use linerate_measure::step::Step;
use socket2::Socket;

use crate::latencies::Latencies;
use crate::page_aligned::PageAligned;
use crate::pattern::Pattern;
use crate::phase::{Phase, Reached, SharedPhase};
use crate::ready_count::ReadyCount;
use crate::tally::{Counts, PathGauge, Progress, TallyPlace};
use crate::transport::{
    Awake, ByteStream, Discarding, FromPageCache, IntoNowhere, Lent, Negotiation, PageCache, Tcp,
    TlsStream, ZeroCopy,
};
use crate::waiting::CostMark;
use crate::waker::Waker;

pub(crate) use active::ActiveFlows;
pub(crate) use datagram::{
    Arrivals, DatagramFlow, DatagramProtocol, DatagramReceiver, DatagramSender, DatagramSettings,
    Heading, Mark, Native, PlainFlow, say_end, udp_flow,
};
pub(crate) use departures::Departures;
use duplex::DuplexFlow;
pub(crate) use failure::{FlowError, GivenUp, error_kind};
pub(crate) use goal::Goal;
pub(crate) use rules::{BulkRules, ReceiverRules, SenderRules};
pub(crate) use stream::StreamFlow;

/// What a flow wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another turn when the others have had theirs.
    Again,
    /// Another turn, to send, when those beside it have received.
    ThenSend,
    /// A turn when its socket is ready, or at this time if that comes first.
    Wait { until_ns: Option<u64> },
    /// A turn at this time.
    Pause { until_ns: u64 },
    /// A turn when the load begins.
    Held,
    /// A turn when there is a place among the shard's active flows.
    Rest,
    /// Nothing more.
    Ended,
}

impl Turn {
    /// A turn when the socket is ready.
    pub(crate) const READY: Turn = Turn::Wait { until_ns: None };
}

/// How one stage of a flow ended its turn.
pub(crate) enum Stage {
    /// It goes on after this.
    Goes(Turn),
    /// It is over; the next one begins.
    Over,
}

/// How far the sending of requests that are due has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// All have left, or have no room.
    Done,
    /// The socket takes no more now.
    Blocked,
    /// There are more, and responses may have come meanwhile.
    More,
}

/// System calls that a flow makes in one turn before others have theirs.
pub(crate) const CALLS_PER_TURN: u32 = 32;

/// The calls of one turn. The one during which the measured part began is the last: a flow notes where
/// it stood between its turns, and calls of a socket that blocks may be far apart.
pub(crate) struct Calls {
    left: u32,
    measuring: bool,
}

impl Calls {
    pub(crate) fn of_turn(local: &Local) -> Self {
        Self::up_to(CALLS_PER_TURN, local)
    }

    /// So many at most.
    pub(crate) fn up_to(most: u32, local: &Local) -> Self {
        Self { left: most, measuring: local.is_measuring() }
    }

    /// Whether the measured part has begun during the turn.
    #[inline]
    pub(crate) fn have_crossed(&self, local: &Local) -> bool {
        local.is_measuring() != self.measuring
    }

    /// Whether there is another.
    #[inline]
    pub(crate) fn take(&mut self, local: &mut Local) -> bool {
        // A flow that reads the phase notes that the measured part has begun.
        local.phase();
        if self.left == 0 || self.have_crossed(local) {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// Something that a shard gives turns to.
pub(crate) trait Drive {
    /// Goes on as far as it can.
    fn turn(&mut self, local: &mut Local) -> Turn;
    /// What it waits for.
    fn socket(&self) -> &Socket;
}

/// A flow on its way to its shard, which has its socket from elsewhere.
pub(crate) struct Fresh {
    pub(crate) shared: Arc<FlowShared>,
    pub(crate) steps: Vec<Step>,
    pub(crate) over: Over,
}

/// What a flow goes over.
pub(crate) enum Over {
    Tcp,
    /// TCP, received from in bulk.
    Awake,
    Tls(Box<Negotiation>),
    /// TCP, with memory lent for sending.
    ZeroCopy,
    /// TCP, sending from a file.
    FromPageCache(PageCache),
    /// TCP, receiving into nowhere.
    IntoNowhere,
    /// TCP, receiving nothing of what comes.
    Discarding,
    Datagrams(DatagramSettings),
    /// Whatever a dialect makes of its socket.
    Made(MakeFlow),
}

/// Makes a flow of its socket, of what the conductor shares with it, and of its steps.
pub(crate) type MakeFlow =
    Box<dyn FnOnce(Arc<Socket>, Arc<FlowShared>, Vec<Step>) -> Box<dyn Drive> + Send>;

impl Fresh {
    pub(crate) fn begin(self, socket: Arc<Socket>) -> Box<dyn Drive> {
        let Self { shared, steps, over } = self;
        match over {
            Over::Tcp => flow_over(Tcp(socket), shared, steps),
            Over::Awake => Box::new(StreamFlow::new(Awake::new(socket), shared, steps)),
            Over::Tls(negotiation) => {
                flow_over(TlsStream::new(socket, *negotiation), shared, steps)
            }
            Over::ZeroCopy => Box::new(StreamFlow::new(ZeroCopy::new(socket), shared, steps)),
            Over::FromPageCache(file) => {
                let stream = FromPageCache::new(Tcp(socket), file);
                Box::new(StreamFlow::new(stream, shared, steps))
            }
            Over::IntoNowhere => Box::new(StreamFlow::new(IntoNowhere(Tcp(socket)), shared, steps)),
            Over::Discarding => Box::new(StreamFlow::new(Discarding(Tcp(socket)), shared, steps)),
            Over::Datagrams(settings) => udp_flow(socket, shared, settings, steps),
            Over::Made(make) => make(socket, shared, steps),
        }
    }
}

/// A flow over a connection; or two, where another goes over the same.
pub(crate) fn flow_over<S: ByteStream + 'static>(
    stream: S,
    shared: Arc<FlowShared>,
    steps: Vec<Step>,
) -> Box<dyn Drive> {
    match (&shared.other, steps.first()) {
        (Some(other), Some(Step::Duplex { send, receive })) => {
            let other_flow = Arc::clone(&other.flow);
            let (sends, receives) = match other.sends {
                true => (other_flow, Arc::clone(&shared)),
                false => (Arc::clone(&shared), other_flow),
            };
            Box::new(DuplexFlow::new(stream, (sends, send), (receives, receive)))
        }
        _ => Box::new(StreamFlow::new(stream, shared, steps)),
    }
}

/// What the flows of one shard share among themselves.
pub(crate) struct Local {
    pub(crate) receive_buffer: PageAligned,
    /// Datagrams one behind the other, which bulk flows send from, one flow after the other.
    pub(crate) send_buffer: Vec<u8>,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) latencies: Latencies,
    /// Whether the shard has one flow and never sleeps: an empty socket is asked again at once.
    pub(crate) spins_alone: bool,
    /// Whether flows beside the one that has its turn are about to receive too: then it leaves its sending to
    /// a turn of its own ([`Turn::ThenSend`]).
    pub(crate) receives_together: bool,
    /// Which flows have a request on its way: all, unless the shard is told otherwise.
    pub(crate) active: ActiveFlows,
    phase: Arc<SharedPhase>,
    ready_count: Arc<ReadyCount>,
    /// The conductor's.
    waker: Arc<Waker>,
    measuring: bool,
    /// What the thread had used and counted when the measured part began.
    before: CostMark,
}

impl Local {
    pub(crate) fn new(
        receive_bytes: usize,
        pattern: Arc<Pattern>,
        latencies: Latencies,
        phase: Arc<SharedPhase>,
        ready_count: Arc<ReadyCount>,
        waker: Arc<Waker>,
        spins_alone: bool,
    ) -> Self {
        Self {
            receive_buffer: PageAligned::new(receive_bytes),
            send_buffer: Vec::new(),
            pattern,
            latencies,
            spins_alone,
            receives_together: false,
            active: ActiveFlows::ALL,
            phase,
            ready_count,
            waker,
            measuring: false,
            before: CostMark::default(),
        }
    }

    /// The load's phase. The measured part of the thread's CPU time begins when this first sees
    /// the load's.
    #[inline]
    pub(crate) fn phase(&mut self) -> Phase {
        let phase = self.phase.current();
        if phase >= Phase::Measure && !self.measuring {
            self.begin_measuring();
        }
        phase
    }

    /// The load's phase, and when it came there.
    #[inline]
    pub(crate) fn reached(&mut self) -> Reached {
        let reached = self.phase.reached();
        if reached.phase >= Phase::Measure && !self.measuring {
            self.begin_measuring();
        }
        reached
    }

    /// Whether the measured part has begun for this thread.
    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Makes the conductor look at what its flows have come to.
    pub(crate) fn ring_conductor(&self) {
        self.waker.wake();
    }

    #[cold]
    fn begin_measuring(&mut self) {
        self.measuring = true;
        self.before = CostMark::now();
    }

    /// CPU time of this thread since the measured part began.
    pub(crate) fn cpu_of_measured_part(&self) -> CpuSeconds {
        self.before.cpu()
    }

    /// How this thread waited since the measured part began.
    pub(crate) fn waits_of_measured_part(&self) -> Waiting {
        self.before.waits()
    }
}

/// A flow as the conducting thread sees it.
pub(crate) struct FlowShared {
    pub(crate) number: u32,
    /// The flow's socket, where it is in the conductor's file table too.
    pub(crate) socket: Option<Arc<Socket>>,
    pub(crate) tally: TallyPlace,
    /// What the flow had done when its measured part began, once it has.
    base: OnceLock<Box<Base>>,
    /// Set once, when the flow ends; never touched while it carries load.
    ending: Mutex<Option<Box<Ending>>>,
    /// What a QUIC connection says of its path, where the flow goes over one.
    path: OnceLock<Box<PathGauge>>,
    /// The flow in the other direction, where it goes over the same connection.
    other: Option<OtherDirection>,
}

/// A flow that goes over the connection of another.
struct OtherDirection {
    flow: Arc<FlowShared>,
    /// Whether this end sends it.
    sends: bool,
}

impl FlowShared {
    pub(crate) fn new(number: u32, socket: Option<Arc<Socket>>) -> Self {
        Self::with_tally(number, socket, TallyPlace::alone())
    }

    /// The same, with a tally among those of other flows.
    pub(crate) fn with_tally(number: u32, socket: Option<Arc<Socket>>, tally: TallyPlace) -> Self {
        Self {
            number,
            socket,
            tally,
            base: OnceLock::new(),
            ending: Mutex::new(None),
            path: OnceLock::new(),
            other: None,
        }
    }

    /// Flow number `number` over a connection that carries number `other` too, which this end sends or receives;
    /// and that one.
    pub(crate) fn duplex(
        number: u32,
        other: u32,
        sends_other: bool,
        socket: Option<Arc<Socket>>,
    ) -> (Self, Arc<Self>) {
        // The kernel's figures are the sender's.
        let (own, others) = if sends_other { (None, socket) } else { (socket, None) };
        let flow = Arc::new(Self::new(other, others));
        let other = OtherDirection { flow: Arc::clone(&flow), sends: sends_other };
        (Self { other: Some(other), ..Self::new(number, own) }, flow)
    }

    /// It ends before it has begun, and with it the one that would go over its connection.
    pub(crate) fn end_unbegun(&self, error: &FlowError, local: &Local) {
        let other = self.other.as_ref().map(|other| &*other.flow);
        for flow in std::iter::once(self).chain(other) {
            flow.set_ended(Ending { error: Some(error.clone()), ..Ending::default() }, local);
        }
    }

    /// The flow that this end sends, of those that go over one connection.
    pub(crate) fn sender(&self) -> &Self {
        self.other.as_ref().filter(|other| other.sends).map_or(self, |other| &other.flow)
    }

    /// Publishes what a QUIC connection says of its path.
    pub(crate) fn set_path(&self, status: &QuicStatus) {
        self.path.get_or_init(Box::default).set(status);
    }

    /// What was last published of the path.
    pub(crate) fn path(&self) -> Option<QuicStatus> {
        self.path.get().map(|gauge| gauge.status())
    }

    /// Whether the flow stands in its end's report by itself.
    pub(crate) fn is_listed(&self) -> bool {
        (self.number as usize) < EndReport::MAX_FLOWS
    }

    pub(crate) fn set_ready(&self, local: &Local) {
        self.tally.set_progress(Progress::Ready);
        if local.ready_count.record_ready() {
            local.waker.wake();
        }
    }

    pub(crate) fn set_ended(&self, ending: Ending, local: &Local) {
        let was_opening = self.tally.progress() == Progress::Opening;
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(ending));
        self.tally.set_progress(Progress::Ended);
        let never_ready = was_opening && local.ready_count.record_ready();
        if local.ready_count.record_ended() || never_ready {
            local.waker.wake();
        }
    }

    /// The measured part begins for the flow, which has done so much.
    pub(crate) fn note_base(&self, base: Base) {
        // One that is noted stays.
        let _noted_before = self.base.set(Box::new(base));
    }

    /// What the flow had done when its measured part began; `None`: it hasn't seen that yet.
    pub(crate) fn base(&self) -> Option<&Base> {
        self.base.get().map(|base| &**base)
    }

    /// What the kernel said of the connection when the flow ended; `None` where it hasn't.
    pub(crate) fn tcp_at_end(&self) -> Option<TcpStatus> {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.as_ref()?.tcp
    }

    /// Why it ended early, where it did.
    pub(crate) fn error(&self) -> Option<String> {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.as_ref()?.error.as_ref().map(|error| error.text.clone())
    }

    /// What the flow left when it ended; `None` where it hasn't.
    pub(crate) fn take_ending(&self) -> Option<Box<Ending>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a flow leaves when it ends.
#[derive(Default)]
pub(crate) struct Ending {
    /// Why, where not as planned.
    pub(crate) error: Option<FlowError>,
    /// Whether a transfer was broken off by its peer, or on the path, when the load's time was up.
    pub(crate) is_cut_off: bool,
    pub(crate) tcp: Option<TcpStatus>,
    pub(crate) quic: Option<Box<QuicStatus>>,
    /// The same when the measured part of a flow of datagrams began after a warm-up.
    pub(crate) quic_before: Option<Box<QuicStatus>>,
    /// The socket as the kernel granted it, of a flow that is listed.
    pub(crate) socket: Option<Box<SocketFacts>>,
    /// Datagrams that the socket dropped since its measured part began.
    pub(crate) drops: Option<u64>,
    pub(crate) verification: Option<Box<Verification>>,
    pub(crate) datagrams: DatagramEnding,
    /// What became of memory that was lent for sending.
    pub(crate) lent: Option<Box<Lent>>,
    /// Transactions whose response never came.
    pub(crate) transactions_lost: Option<u64>,
    /// Connections that were due by the schedule and never begun.
    pub(crate) transactions_unsent: Option<u64>,
    /// What tells the requests that were due by the schedule and never sent.
    pub(crate) departures: Option<Box<Departures>>,
    /// How its connections agreed on their keys, where they come and go.
    pub(crate) handshakes: Option<Handshakes>,
    /// Failures by kind that the flow outlived.
    pub(crate) errors: std::collections::BTreeMap<&'static str, u64>,
}

/// What a flow had done when its measured part began, and when that was.
#[derive(Clone, Default)]
pub(crate) struct Base {
    pub(crate) counts: Counts,
    pub(crate) at_ns: u64,
    pub(crate) verified_bytes: u64,
    pub(crate) retransmitted_segments: u32,
    pub(crate) quic: Option<Box<QuicStatus>>,
}

/// What a flow of datagrams leaves when it ends; warm-up left out.
#[derive(Default)]
pub(crate) struct DatagramEnding {
    pub(crate) sent: Option<u64>,
    pub(crate) sent_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) arrivals: Option<Box<SequenceTracker>>,
    pub(crate) gso: Option<bool>,
    pub(crate) gro: Option<bool>,
    pub(crate) media: Option<Box<MediaEnding>>,
}

/// What a flow of a media stream leaves when it ends; warm-up left out.
pub(crate) struct MediaEnding {
    /// The frames that this end knows of.
    pub(crate) frames: FrameCounts,
    /// Receiver: runs of lost datagrams, and the datagrams of the longest.
    pub(crate) loss_bursts: Option<(u64, u64)>,
}
