//! The controller's end of one channel.

use std::collections::{BTreeMap, VecDeque};

use linerate_measure::clock_offset::{OffsetEstimator, RoundTrip};
use linerate_measure::run::ClockOffset;

use crate::collect::Request;

use super::event::{ChildEvent, ChildEventKind, ControllerEvent, Failure, shorten};
use super::message::{FromAgent, StartTask, ToAgent, pieces};
use super::{
    LEASE_NS, Lease, MAX_LINE_FROM_AGENT, MAX_LINE_TO_AGENT, MAX_TASKS, MILLISECOND_NS, Moment,
    PING_EVERY_NS, SILENT_NS, VERSIONS,
};

/// Round trips without a pause between them, after the hello and before a start.
const BURST: u32 = 24;

/// Round trips after which the estimate of the offset begins anew, since its bound grows with the
/// time that it has to hold for.
const TRIPS_OF_AN_ESTIMATE: u32 = 60;

/// The most text that a line to an agent carries, bytes: JSON makes at most six of each.
const MAX_TEXT_TO_AGENT: usize = MAX_LINE_TO_AGENT / 8;

/// What is kept of the lines before the hello, bytes.
const MAX_NOISE: usize = 4096;

/// After a bye the agent has so long to end its children and itself.
const BYE_NS: u64 = LEASE_NS + super::GRACE_NS;

/// The controller's end of a channel to an agent.
#[derive(Debug)]
pub struct Controller {
    stage: Stage,
    lease: Lease,
    hello_due_ns: u64,
    noise: String,
    output: VecDeque<String>,
    events: VecDeque<ControllerEvent>,
    tasks: BTreeMap<u32, TaskState>,
    clock: Clock,
    lines_sent: u64,
    lines_heard: u64,
    is_silent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The agent's hello is awaited.
    Opening,
    Open,
    /// The controller has said its last line.
    Closing {
        until_ns: u64,
    },
    /// Nothing is sent or heard any more.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Asked,
    Runs { next_line: u64 },
}

/// What the controller knows of the agent's clock, and when it asks again.
#[derive(Debug)]
struct Clock {
    estimator: OffsetEstimator,
    trips: u32,
    /// The estimate before the present one began.
    settled: Option<Settled>,
    /// The last pong, on the clock that never goes back.
    newest_ns: u64,
    burst_left: u32,
    next_ping_ns: u64,
    /// Pings that no pong has answered.
    pongs_due: u32,
}

/// An estimate of the agent's clock to which nothing is added any more.
#[derive(Clone, Copy, Debug)]
struct Settled {
    offset: ClockOffset,
    rtt_ns: u64,
    /// Its last pong, on the clock that never goes back.
    until_ns: u64,
}

impl Controller {
    /// A controller that says its hello first, and waits for the agent's until `hello_due_ns` of the
    /// clock that never goes back.
    pub fn new(hello_due_ns: u64, now: Moment) -> Self {
        let mut controller = Self {
            stage: Stage::Opening,
            lease: Lease::new(LEASE_NS, now.monotonic_ns),
            hello_due_ns,
            noise: String::new(),
            output: VecDeque::new(),
            events: VecDeque::new(),
            tasks: BTreeMap::new(),
            clock: Clock {
                estimator: OffsetEstimator::new(),
                trips: 0,
                settled: None,
                newest_ns: now.monotonic_ns,
                burst_left: BURST,
                next_ping_ns: u64::MAX,
                pongs_due: 0,
            },
            lines_sent: 0,
            lines_heard: 0,
            is_silent: false,
        };
        let lease_ms = u32::try_from(LEASE_NS / MILLISECOND_NS).unwrap_or(u32::MAX);
        controller.send(&ToAgent::Hello { versions: VERSIONS.to_vec(), lease_ms });
        controller
    }

    /// A line arrived, without its end.
    pub fn handle_line(&mut self, line: &[u8], now: Moment) {
        match self.stage {
            Stage::Over => {}
            Stage::Opening => self.handle_first(line, now),
            Stage::Open | Stage::Closing { .. } if line.is_empty() => {}
            Stage::Open | Stage::Closing { .. } => {
                self.lease.renew(now.monotonic_ns);
                if self.is_silent {
                    self.is_silent = false;
                    self.events.push_back(ControllerEvent::Heard);
                }
                let before = self.lines_heard;
                self.lines_heard += 1;
                match serde_json::from_slice(line) {
                    Ok(message) => self.handle_message(message, before, now),
                    Err(_) => self.nonsense(format!(
                        "a line that is no message: {}",
                        shorten(&String::from_utf8_lossy(line))
                    )),
                }
            }
        }
    }

    /// A line that is longer than [`MAX_LINE_FROM_AGENT`] arrived.
    pub fn handle_too_long(&mut self) {
        if self.stage == Stage::Opening {
            return;
        }
        self.nonsense(format!("a line of more than {} MiB", MAX_LINE_FROM_AGENT >> 20));
    }

    /// The channel ended: nothing more arrives.
    pub fn handle_end(&mut self) {
        match self.stage {
            Stage::Opening => {
                let noise = std::mem::take(&mut self.noise);
                self.fail(Failure::NoHello { ended: true, noise });
            }
            Stage::Open => self.fail(Failure::Ended),
            Stage::Closing { .. } => self.close(),
            Stage::Over => {}
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Moment) {
        let now_ns = now.monotonic_ns;
        match self.stage {
            Stage::Opening if now_ns >= self.hello_due_ns => {
                let noise = std::mem::take(&mut self.noise);
                self.fail(Failure::NoHello { ended: false, noise });
            }
            Stage::Open => {
                if self.lease.is_over(now_ns) {
                    return self.fail(Failure::Silence);
                }
                if !self.is_silent && self.lease.silent_ns(now_ns) >= SILENT_NS {
                    self.is_silent = true;
                    self.events.push_back(ControllerEvent::Silent);
                }
                if now_ns >= self.clock.next_ping_ns {
                    self.ping(now);
                }
            }
            Stage::Closing { until_ns } if now_ns >= until_ns => self.close(),
            _ => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, on the clock that never goes
    /// back.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.stage {
            Stage::Opening => Some(self.hello_due_ns),
            Stage::Open => {
                let silent_ns = if self.is_silent {
                    u64::MAX
                } else {
                    let heard_ns = self.lease.ends_ns().saturating_sub(self.lease.length_ns());
                    heard_ns.saturating_add(SILENT_NS)
                };
                Some(self.clock.next_ping_ns.min(self.lease.ends_ns()).min(silent_ns))
            }
            Stage::Closing { until_ns } => Some(until_ns),
            Stage::Over => None,
        }
    }

    /// The next line to send, without its end.
    pub fn poll_output(&mut self) -> Option<String> {
        self.output.pop_front()
    }

    /// What was found out next.
    pub fn poll_event(&mut self) -> Option<ControllerEvent> {
        self.events.pop_front()
    }

    /// Asks for a child. [`ChildEventKind::Started`] or [`ChildEventKind::Refused`] answers.
    pub fn start(&mut self, start: StartTask) {
        let task = start.task;
        if self.stage != Stage::Open {
            return self.refuse(task, "the host is not open");
        }
        if self.tasks.contains_key(&task) {
            return self.refuse(task, "a child of this number runs already");
        }
        if self.tasks.len() >= MAX_TASKS {
            return self.refuse(task, "the host runs as many children as an agent may have (256)");
        }
        let Some(line) = render(&ToAgent::Start(start)) else {
            let why = "its words, environment and input take more than 1 MiB, which is the most";
            return self.refuse(task, why);
        };
        self.tasks.insert(task, TaskState::Asked);
        self.send_line(line);
    }

    /// Writes to a child's standard input, as long as the child runs.
    pub fn write(&mut self, task: u32, text: &str, end: bool) {
        if self.stage == Stage::Open && self.tasks.contains_key(&task) {
            let mut rest = pieces(text, MAX_TEXT_TO_AGENT).peekable();
            while let Some(piece) = rest.next() {
                let end = end && rest.peek().is_none();
                self.send(&ToAgent::Write { task, text: piece.to_owned(), end });
            }
        }
    }

    /// Ends a child, if it runs.
    pub fn stop(&mut self, task: u32, grace_ms: u32) {
        if self.stage == Stage::Open && self.tasks.contains_key(&task) {
            self.send(&ToAgent::Stop { task, grace_ms });
        }
    }

    /// Starts the host's collectors anew, or ends them.
    pub fn collect(&mut self, request: Option<Request>) {
        if self.stage == Stage::Open {
            self.send(&ToAgent::Collect { request });
        }
    }

    /// Measures the agent's clock again, by a burst of round trips: [`ControllerEvent::ClockMeasured`] says when that
    /// was done.
    pub fn measure_clock(&mut self, now: Moment) {
        if self.stage == Stage::Open {
            self.begin_estimate();
            self.clock.burst_left = BURST;
            if self.clock.pongs_due == 0 {
                self.ping(now);
            }
        }
    }

    /// Says the last line: the agent ends everything and exits.
    pub fn bye(&mut self, now: Moment) {
        match self.stage {
            Stage::Open => {
                self.send(&ToAgent::Bye {});
                self.stage = Stage::Closing { until_ns: now.monotonic_ns.saturating_add(BYE_NS) };
            }
            Stage::Opening => self.close(),
            Stage::Closing { .. } | Stage::Over => {}
        }
    }

    /// The agent's clock less the controller's, with its bound.
    pub fn clock_offset(&self) -> Option<ClockOffset> {
        let settled = self
            .clock
            .settled
            .map(|one| one.offset.after_ns(self.clock.newest_ns.saturating_sub(one.until_ns)));
        let present = self.clock.estimator.estimate();
        // The present estimate rests on few round trips at first.
        match (present, settled) {
            (Some(present), Some(settled)) if settled.bound_ns < present.bound_ns => Some(settled),
            (present, settled) => present.or(settled),
        }
    }

    /// The least round trip of the channel, nanoseconds.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let settled = self.clock.settled.map(|one| one.rtt_ns);
        self.clock.estimator.rtt_ns().into_iter().chain(settled).min()
    }

    /// The children that were asked for and have not ended.
    pub fn tasks(&self) -> impl Iterator<Item = u32> + '_ {
        self.tasks.keys().copied()
    }

    /// Whether the channel is of no more use.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    fn handle_first(&mut self, line: &[u8], now: Moment) {
        let hello = match serde_json::from_slice(line) {
            Ok(FromAgent::Hello(hello)) => hello,
            Ok(FromAgent::Failed { text }) => return self.fail(Failure::Agent { text }),
            Ok(_) | Err(_) => return self.keep_noise(line),
        };
        if !VERSIONS.contains(&hello.protocol) {
            return self.fail(Failure::Version { agent: hello.protocol });
        }
        self.lines_heard = 1;
        self.stage = Stage::Open;
        self.lease = Lease::new(LEASE_NS, now.monotonic_ns);
        self.events.push_back(ControllerEvent::Opened(hello));
        self.ping(now);
    }

    /// Keeps what was printed last: the reason stands there.
    fn keep_noise(&mut self, line: &[u8]) {
        let room = MAX_NOISE / 2;
        let text = String::from_utf8_lossy(line.get(..room).unwrap_or(line)).into_owned();
        self.noise.push_str(&text);
        self.noise.push('\n');
        while self.noise.len() > MAX_NOISE {
            match self.noise.split_once('\n') {
                Some((_, rest)) if !rest.is_empty() => self.noise = rest.to_owned(),
                _ => break,
            }
        }
    }

    fn handle_message(&mut self, message: FromAgent, before: u64, now: Moment) {
        match message {
            FromAgent::Hello(_) => self.nonsense("a second hello".to_owned()),
            FromAgent::Pong { sent_ns, received_ns, replied_ns, lines } => {
                if lines != before {
                    return self.nonsense(format!("{lines} lines, of which {before} arrived"));
                }
                let trip = RoundTrip {
                    client_sent_ns: sent_ns,
                    server_received_ns: received_ns,
                    server_sent_ns: replied_ns,
                    client_received_ns: now.utc_ns,
                };
                self.handle_pong(trip, now);
            }
            FromAgent::Started { task, pid } => match self.tasks.get_mut(&task) {
                Some(state @ TaskState::Asked) => {
                    *state = TaskState::Runs { next_line: 0 };
                    self.tell(task, ChildEventKind::Started { pid });
                }
                _ => self.nonsense(format!("the start of child {task}, which was not asked for")),
            },
            FromAgent::Refused { task, text } => {
                if self.tasks.get(&task) == Some(&TaskState::Asked) {
                    self.tasks.remove(&task);
                }
                self.tell(task, ChildEventKind::Refused(text));
            }
            FromAgent::Line { task, seq, json } => match self.tasks.get_mut(&task) {
                Some(TaskState::Runs { next_line }) if *next_line == seq => {
                    *next_line += 1;
                    self.tell(task, ChildEventKind::Line { seq, json });
                }
                _ => self.nonsense(format!("line {seq} of child {task}, which is not its next")),
            },
            FromAgent::Text { task, stream, text } => match self.tasks.get(&task) {
                Some(TaskState::Runs { .. }) => {
                    self.tell(task, ChildEventKind::Text { stream, text });
                }
                _ => self.nonsense(format!("text of child {task}, which does not run")),
            },
            FromAgent::Ended(end) => match self.tasks.remove(&end.task) {
                Some(TaskState::Runs { .. }) => self.tell(end.task, ChildEventKind::Ended(end)),
                _ => self.nonsense(format!("the end of child {}, which does not run", end.task)),
            },
            FromAgent::Ticks(readings) => self.events.push_back(ControllerEvent::Ticks(readings)),
            FromAgent::Failed { text } => self.fail(Failure::Agent { text }),
        }
    }

    fn handle_pong(&mut self, trip: RoundTrip, now: Moment) {
        if self.clock.pongs_due == 0 {
            return self.nonsense("a pong that was not asked for".to_owned());
        }
        self.clock.pongs_due -= 1;
        let gap_ns = now.monotonic_ns.saturating_sub(self.clock.newest_ns);
        let was_set = self.was_set(trip, gap_ns);
        self.clock.newest_ns = now.monotonic_ns;
        if was_set {
            // What was measured before says nothing about the clock as it is now.
            self.clock.estimator = OffsetEstimator::new();
            self.clock.settled = None;
            self.clock.trips = 0;
            self.clock.burst_left = BURST;
        } else if self.clock.trips >= TRIPS_OF_AN_ESTIMATE {
            self.begin_estimate();
        }
        self.clock.estimator.record(trip);
        self.clock.trips += 1;
        if self.clock.burst_left > 0 {
            self.clock.burst_left -= 1;
            if self.clock.burst_left == 0 {
                self.events.push_back(ControllerEvent::ClockMeasured);
            } else if self.stage == Stage::Open && self.clock.pongs_due == 0 {
                self.ping(now);
            }
        }
    }

    /// Whether a round trip contradicts what was known of the clock so many nanoseconds before.
    fn was_set(&self, trip: RoundTrip, gap_ns: u64) -> bool {
        let mut alone = OffsetEstimator::new();
        alone.record(trip);
        match (alone.estimate(), self.clock_offset()) {
            (Some(now), Some(known)) => known.after_ns(gap_ns).contradicts(now),
            _ => false,
        }
    }

    fn begin_estimate(&mut self) {
        if let (Some(offset), Some(rtt_ns)) =
            (self.clock.estimator.estimate(), self.clock.estimator.rtt_ns())
        {
            self.clock.settled = Some(Settled { offset, rtt_ns, until_ns: self.clock.newest_ns });
        }
        self.clock.estimator = OffsetEstimator::new();
        self.clock.trips = 0;
    }

    /// A ping keeps the lease even where the last pong has not come: the pong may be on its way.
    fn ping(&mut self, now: Moment) {
        self.clock.next_ping_ns = now.monotonic_ns.saturating_add(PING_EVERY_NS);
        self.clock.pongs_due += 1;
        self.send(&ToAgent::Ping { sent_ns: now.utc_ns, lines: self.lines_sent });
    }

    fn send(&mut self, message: &ToAgent) {
        // Only a start can be too long.
        if let Some(line) = render(message) {
            self.send_line(line);
        }
    }

    fn send_line(&mut self, line: String) {
        self.output.push_back(line);
        self.lines_sent += 1;
    }

    fn refuse(&mut self, task: u32, why: &str) {
        self.tell(task, ChildEventKind::Refused(why.to_owned()));
    }

    fn tell(&mut self, task: u32, kind: ChildEventKind) {
        self.events.push_back(ControllerEvent::Child(ChildEvent { task, kind }));
    }

    fn nonsense(&mut self, text: String) {
        self.fail(Failure::Nonsense { text });
    }

    fn fail(&mut self, failure: Failure) {
        if self.stage != Stage::Over {
            self.stage = Stage::Over;
            self.output.clear();
            self.events.push_back(ControllerEvent::Failed(failure));
        }
    }

    fn close(&mut self) {
        if self.stage != Stage::Over {
            self.stage = Stage::Over;
            self.events.push_back(ControllerEvent::Closed);
        }
    }
}

/// A message as a line, unless it is longer than an agent takes.
fn render(message: &ToAgent) -> Option<String> {
    // Nothing in a message fails to become JSON.
    serde_json::to_string(message).ok().filter(|line| line.len() <= MAX_LINE_TO_AGENT)
}
