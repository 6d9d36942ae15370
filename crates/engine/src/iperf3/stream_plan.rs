//! What the streams of a test do, and over what.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::step::{Close, Content, Framing, Movement, Pace, Step, StepEnd, Transfer};
use linerate_wire::iperf3::{Code, Parameters, Protocol};
use rustix::net::sockopt;
use socket2::Socket;

use super::datagrams::{Datagrams, Numbered};
use super::streams::Setup;
use super::{Failure, Role};
use crate::flow::{
    BulkRules, CALLS_PER_TURN, DatagramFlow, Drive, FlowShared, Goal, MakeFlow, ReceiverRules,
    SenderRules, StreamFlow,
};
use crate::pattern::Pattern;
use crate::phase::Phase;
use crate::transport::{
    Awake, ByteStream, Discarding, FromFile, FromPageCache, IntoFile, PageCache, Tcp, Udp,
};

/// A sender with a thread of its own yields after so many bytes. The original's receiver sleeps where ours would
/// yield, and loses rate with shorter turns.
const BYTES_PER_YIELD_ALONE: usize = 5 << 20;
/// The same where the kernel paces what it sends (bbr): the next turn then comes late, so turns are longer.
const BYTES_PER_YIELD_SPACED: usize = 10 << 20;

/// With more streams than this a turn has the fewer calls the more they are: turns of megabytes on
/// thousands of streams would leave others without theirs for seconds.
const FEW_STREAMS: usize = 256;

/// What the streams of a test read of a file at once, all together; and each of them, at least.
const MOST_READ_BYTES: usize = 256 << 20;
const LEAST_READ_BYTES: usize = 4 << 10;

/// The pause between two looks at the rate where `--pacing-timer` was left at its default; the
/// original's newer releases look after each block, so that larger bursts would be no service.
const USUAL_PAUSE_NS: u64 = 250_000;
/// The default of `--pacing-timer`.
const USUAL_TIMER_US: u32 = 1000;

/// What the streams of a test have in common.
pub(super) struct StreamPlan {
    /// What is sent without a copy, where that is asked for.
    page_cache: Option<PageCache>,
    /// Whether each has a thread for itself.
    is_alone: bool,
    streams: usize,
}

impl StreamPlan {
    pub(super) fn new(setup: &Setup, payload: &Pattern, is_alone: bool) -> Result<Self, Failure> {
        let parameters = &setup.parameters;
        let tcp = parameters.protocol != Protocol::Udp;
        let lends = parameters.zero_copy && tcp && setup.file.is_none();
        let page_cache = lends.then(|| PageCache::of(payload.all())).transpose();
        let page_cache =
            page_cache.map_err(|error| Failure::system(Code::CREATE_STREAM, &error))?;
        Ok(Self { page_cache, is_alone, streams: parameters.total_streams() })
    }

    /// What a stream does. A client's end ends the test; a server tells its client that it sends no more: up to 3.15
    /// a client that has a part of a block waits for the rest before it reads that its results are wanted.
    pub(super) fn steps(&self, setup: &Setup, sends: bool) -> Vec<Step> {
        let parameters = &setup.parameters;
        let udp = parameters.protocol == Protocol::Udp;
        let transfer = Transfer {
            end: StepEnd::Peer,
            unit_bytes: parameters.block_bytes,
            pace: pace(parameters).filter(|_| sends),
            content: Content::Filler,
            framing: if udp { Framing::DatagramHeader } else { Framing::None },
            movement: Movement::Copy,
            yields: true,
            frames: None,
        };
        match (sends, setup.role) {
            (false, _) => vec![Step::Receive(transfer)],
            (true, Role::Server) if !udp => {
                vec![Step::Send(transfer), Step::Close(Close::AtOnce)]
            }
            (true, _) => vec![Step::Send(transfer)],
        }
    }

    /// Makes the flow of a stream, which shares this goal with others.
    pub(super) fn make(
        &self,
        setup: &Setup,
        socket: &Socket,
        sends: bool,
        goal: &Arc<Goal>,
    ) -> Result<MakeFlow, Failure> {
        let parameters = &setup.parameters;
        let rules = self.rules(setup.role, socket, goal);
        if parameters.protocol == Protocol::Udp {
            let heading = Numbered { wide: parameters.wide_counters };
            return Ok(Box::new(move |socket, shared, steps| {
                let protocol = Datagrams { heading, rules };
                Box::new(DatagramFlow::over(Udp::new(socket, true), shared, protocol, steps))
            }));
        }
        let copies = self.copy_mode(setup, sends);
        let copies = copies.map_err(|error| Failure::system(Code::FILE, &error))?;
        Ok(Box::new(move |socket, shared, steps| match copies {
            CopyMode::Copied if sends => flow(Tcp(socket), shared, steps, rules),
            CopyMode::Copied => flow(Awake::new(socket), shared, steps, rules),
            CopyMode::Discarded => flow(Discarding(Tcp(socket)), shared, steps, rules),
            CopyMode::PageCache(file) => {
                flow(FromPageCache::new(Tcp(socket), file), shared, steps, rules)
            }
            CopyMode::FromFile(file, most_bytes) => {
                flow(FromFile::new(socket, file, most_bytes), shared, steps, rules)
            }
            CopyMode::IntoFile(file) => flow(IntoFile::new(socket, file), shared, steps, rules),
        }))
    }

    /// How the bytes of a stream over TCP are copied. Each stream has its file opened for itself; one that is written is
    /// emptied first.
    fn copy_mode(&self, setup: &Setup, sends: bool) -> io::Result<CopyMode> {
        Ok(match (&setup.file, &self.page_cache) {
            (Some(path), _) if sends => {
                let most_bytes = MOST_READ_BYTES / self.streams.max(1);
                CopyMode::FromFile(File::open(path)?, most_bytes.max(LEAST_READ_BYTES))
            }
            (Some(path), _) => CopyMode::IntoFile(File::create(path)?),
            (None, Some(file)) if sends => CopyMode::PageCache(file.clone()),
            (None, _) if !sends && setup.parameters.skip_rx_copy => CopyMode::Discarded,
            (None, _) => CopyMode::Copied,
        })
    }

    /// A server counts what the client had sent when it ended the test; a client's test ends when the client says so.
    fn rules(&self, role: Role, socket: &Socket, goal: &Arc<Goal>) -> BulkRules {
        let native = BulkRules::native();
        let congestion = sockopt::tcp_congestion(socket.as_fd());
        let is_spaced = congestion.is_ok_and(|name| name.starts_with("bbr"));
        let is_server = role == Role::Server;
        BulkRules {
            sender: SenderRules {
                bytes_per_yield: match self.is_alone {
                    true if is_spaced => BYTES_PER_YIELD_SPACED,
                    true => BYTES_PER_YIELD_ALONE,
                    false => native.sender.bytes_per_yield,
                },
                calls_per_turn: calls_per_turn(self.streams),
            },
            receiver: ReceiverRules {
                is_held: true,
                drains: is_server,
                // Waiting for more of what was on its way is no part of the test. The sender of a goal may stop by
                // itself, and a client sees that later.
                ends_with_bytes_since: match goal.is_set() {
                    _ if is_server => Some(Phase::Stop),
                    true => Some(Phase::Hold),
                    false => None,
                },
            },
            goal: Some(Arc::clone(goal)),
        }
    }
}

/// How the bytes of a stream over TCP are copied.
enum CopyMode {
    /// The plain socket.
    Copied,
    Discarded,
    PageCache(PageCache),
    /// A file of which so much is read at once.
    FromFile(File, usize),
    IntoFile(File),
}

fn flow<S: ByteStream + 'static>(
    stream: S,
    shared: Arc<FlowShared>,
    steps: Vec<Step>,
    rules: BulkRules,
) -> Box<dyn Drive> {
    Box::new(StreamFlow::new(stream, shared, steps).with_rules(rules))
}

/// The rate that is asked for.
fn pace(parameters: &Parameters) -> Option<Pace> {
    let pause_ns = match parameters.pacing_timer_us {
        USUAL_TIMER_US => USUAL_PAUSE_NS,
        other => u64::from(other) * 1000,
    };
    let (bps, burst_units) = (parameters.bandwidth_bps, parameters.burst_blocks);
    (bps > 0).then_some(Pace::Average { bps, burst_units, pause_ns })
}

fn calls_per_turn(streams: usize) -> u32 {
    let shares = u32::try_from(streams.div_ceil(FEW_STREAMS)).unwrap_or(u32::MAX);
    (CALLS_PER_TURN / shares.max(1)).max(1)
}

#[test]
fn turns_of_thousands_are_short() {
    assert_eq!([0, 1, 256].map(calls_per_turn), [CALLS_PER_TURN; 3]);
    assert_eq!([512, 5000, 20_000].map(calls_per_turn), [CALLS_PER_TURN / 2, 1, 1]);
}
