//! From what is asked for to what a load does, at either end.

use linerate_measure::step::{
    Churn, Close, Content, Exchange, FlowSchedule, Framing, Life, Movement, Pace, Step, StepEnd,
    Transfer,
};
use linerate_measure::{Arrivals, Direction, End, Kind, Schedule, Transport, Variant, Workload};
use linerate_wire::netperf::test::{Length, Part, Request, Transport as TestTransport};

use super::filling::dirt;
use super::lives::{CLIENT_SILENCE_NS, SERVER_SILENCE_NS, life_at_server};
use crate::buffers::Buffers;

/// Buffers are never larger, whatever a peer asks for; what is sent in one call neither.
const LARGEST_BYTES: u32 = 4 << 20;
/// Loads that end by something else than their time.
const FOR_EVER: End = End::Time { duration_ns: u64::MAX };
const SECOND_NS: u64 = 1_000_000_000;

/// The part of one end in a test.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) transport: TestTransport,
    pub(super) task: Task,
    pub(super) length: Length,
    pub(super) request_bytes: u32,
    pub(super) response_bytes: u32,
    /// Bytes of a send, or of a receive.
    pub(super) unit_bytes: u32,
    /// Sends of an interval, and its length in microseconds.
    pub(super) pacing: Option<(u32, u32)>,
    /// Requests on their way at once.
    pub(super) outstanding: u32,
    pub(super) timeout_ns: Option<u64>,
    pub(super) movement: Movement,
    pub(super) interval_ns: u64,
    pub(super) buffers: Buffers,
    /// Send buffers, where they are an end's own.
    pub(super) send_width: u32,
    /// Whether empty datagrams say that no more requests will come: servers of before 2.6 take them
    /// for a failure.
    pub(super) says_end: bool,
    /// Whether the calls of bulk are timed.
    pub(super) times_calls: bool,
    /// Whether it never sleeps.
    pub(super) busy_poll: bool,
    /// What happens on each connection, where they come and go.
    pub(super) life: Life,
}

/// What one end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Send,
    Receive,
    Ask,
    Answer,
    /// Connections that come and go, at either end.
    Connections,
}

impl Job {
    /// The server's, by a client's request. It sends and receives `unit_bytes` at a time.
    pub(super) fn of_server(request: &Request, unit_bytes: u32) -> Self {
        Self {
            transport: request.transport,
            task: match request.part {
                Part::Send => Task::Send,
                Part::Receive => Task::Receive,
                Part::Answer => Task::Answer,
                Part::AnswerOnce | Part::Accept => Task::Connections,
            },
            length: request.length,
            request_bytes: request.request_bytes,
            response_bytes: request.response_bytes,
            unit_bytes,
            pacing: request.pacing.filter(|_| request.part == Part::Send),
            // A client doesn't tell how many requests it has on their way.
            outstanding: 2,
            timeout_ns: None,
            movement: match request.part {
                Part::Receive if request.no_copy && request.transport == TestTransport::Tcp => {
                    Movement::Splice
                }
                _ => Movement::Copy,
            },
            interval_ns: u64::MAX,
            buffers: Buffers { content: None, dirt: dirt(request.dirt) },
            send_width: request.rings.send_width,
            says_end: true,
            times_calls: false,
            busy_poll: false,
            life: life_at_server(request),
        }
    }

    /// Bytes of its largest send; 1 where it sends nothing.
    pub(super) fn send_bytes(&self) -> u32 {
        let bytes = match self.task {
            Task::Send => self.unit_bytes,
            Task::Ask => self.request_bytes,
            Task::Answer => self.response_bytes,
            Task::Receive | Task::Connections => 1,
        };
        bytes.clamp(1, LARGEST_BYTES)
    }

    /// What the load needs to know beside the steps.
    pub(super) fn workload(&self) -> Workload {
        let transport = match self.transport {
            TestTransport::Tcp => Transport::Tcp,
            TestTransport::Udp => Transport::Udp,
        };
        let mut workload = match self.task {
            Task::Send => Workload::stream(Direction::Up, transport),
            Task::Receive => Workload::stream(Direction::Down, transport),
            Task::Ask | Task::Answer => Workload::rr(transport),
            Task::Connections => Workload::connect(transport),
        };
        let unit = self.unit_bytes.clamp(1, LARGEST_BYTES);
        let largest = self.request_bytes.max(self.response_bytes).clamp(1, LARGEST_BYTES);
        match &mut workload.kind {
            Kind::Stream { send_bytes, .. } => *send_bytes = unit,
            Kind::Rr { request_bytes, response_bytes, outstanding, schedule, .. } => {
                (*request_bytes, *response_bytes) = (largest, largest);
                // An asker alone with its socket blocks; an answerer always may.
                *outstanding = Some(if self.task == Task::Ask { self.outstanding } else { 1 });
                *schedule = self
                    .schedule()
                    .map(|FlowSchedule { per_s, arrivals, .. }| Schedule { per_s, arrivals });
            }
            Kind::Connect { request_bytes, response_bytes, .. } => {
                (*request_bytes, *response_bytes) = (largest, largest);
            }
        }
        workload.interval_ns = self.interval_ns;
        workload.threading.threads = Some(1);
        workload.threading.busy_poll = self.busy_poll;
        workload.payload.variant = Variant {
            splice: self.task == Task::Send && self.movement == Movement::Splice,
            ..Variant::default()
        };
        // Only the end that begins a test ends it by its own clock.
        workload.end = match (self.length, self.task) {
            (Length::Seconds(seconds), Task::Send | Task::Ask | Task::Connections) => {
                End::Time { duration_ns: u64::from(seconds) * SECOND_NS }
            }
            _ => FOR_EVER,
        };
        workload
    }

    /// The same for an end that something else stops.
    pub(super) fn endless_workload(&self) -> Workload {
        Workload { end: FOR_EVER, ..self.workload() }
    }

    /// What the flow does.
    pub(super) fn steps(&self) -> Vec<Step> {
        match self.task {
            Task::Send => vec![Step::Send(self.transfer()), Step::Close(Close::Graceful)],
            Task::Receive => vec![Step::Receive(self.transfer()), Step::Close(Close::AfterPeer)],
            Task::Ask if !self.says_end => vec![Step::Exchange(self.exchange())],
            Task::Ask => vec![Step::Exchange(self.exchange()), Step::Close(Close::Graceful)],
            Task::Answer => vec![Step::Answer(self.exchange()), Step::Close(Close::AfterPeer)],
            Task::Connections => vec![Step::Connect(Box::new(self.churn(CLIENT_SILENCE_NS)))],
        }
    }

    /// The same at a server, whose sender doesn't wait for its peer's end: its timer is all there is.
    pub(super) fn steps_at_server(&self) -> Vec<Step> {
        if self.task == Task::Connections {
            return vec![Step::Accept(Box::new(self.churn(SERVER_SILENCE_NS)))];
        }
        let mut steps = self.steps();
        if self.task == Task::Send && self.transport == TestTransport::Tcp {
            steps.truncate(1);
        }
        steps
    }

    /// Connections, each of which may be silent for so long.
    fn churn(&self, timeout_ns: u64) -> Churn {
        Churn {
            end: match self.length {
                Length::Units(units) => StepEnd::Count { count: units.into() },
                Length::Seconds(seconds) => {
                    StepEnd::Time { duration_ns: u64::from(seconds) * SECOND_NS }
                }
                Length::Open => StepEnd::Peer,
            },
            timeout_ns,
            schedule: self.schedule(),
            life: self.life.clone(),
        }
    }

    fn transfer(&self) -> Transfer {
        let unit_bytes = self.unit_bytes.clamp(1, LARGEST_BYTES);
        let whole = |units: u32| u64::from(units).next_multiple_of(unit_bytes.into());
        Transfer {
            end: match self.length {
                // As many whole sends as it takes.
                Length::Units(bytes) if self.task == Task::Send => {
                    StepEnd::Bytes { bytes: whole(bytes) }
                }
                Length::Seconds(seconds) if self.task == Task::Send => {
                    StepEnd::Time { duration_ns: u64::from(seconds) * SECOND_NS }
                }
                _ => StepEnd::Peer,
            },
            unit_bytes,
            pace: self.pacing.filter(|_| self.task == Task::Send).and_then(|p| pace(p, unit_bytes)),
            frames: None,
            content: Content::Filler,
            framing: Framing::None,
            movement: self.movement,
            // As the original: a peer that doesn't yield receives a tenth less from a sender that does.
            yields: false,
        }
    }

    fn exchange(&self) -> Exchange {
        Exchange {
            end: match self.length {
                Length::Units(units) if self.task == Task::Ask => {
                    StepEnd::Count { count: units.into() }
                }
                Length::Seconds(seconds) if self.task == Task::Ask => {
                    StepEnd::Time { duration_ns: u64::from(seconds) * SECOND_NS }
                }
                _ => StepEnd::Peer,
            },
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            outstanding: self.outstanding,
            schedule: self.schedule(),
            timeout_ns: self.timeout_ns,
            content: Content::Filler,
            framing: Framing::None,
        }
    }

    /// When requests, or connections, are due: spread evenly over each interval.
    fn schedule(&self) -> Option<FlowSchedule> {
        let is_paced = matches!(self.task, Task::Ask | Task::Connections);
        let (burst, interval_us) = self.pacing.filter(|_| is_paced)?;
        let per_s = f64::from(burst) * 1e6 / f64::from(interval_us.max(1));
        Some(FlowSchedule { per_s, arrivals: Arrivals::Even, seed: 0, first_ns: 0 })
    }
}

/// So many sends in each interval. They are spread over it, but each is whole.
fn pace((burst, interval_us): (u32, u32), unit_bytes: u32) -> Option<Pace> {
    let interval_ns = u64::from(interval_us) * 1_000;
    if burst == 0 || interval_ns == 0 {
        return None;
    }
    let bits = u128::from(unit_bytes) * 8 * u128::from(burst) * u128::from(SECOND_NS);
    let bps = u64::try_from(bits.div_ceil(interval_ns.into())).unwrap_or(u64::MAX);
    // A pacer sends a quarter of a burst at once at most, and a send is not to be cut.
    let send_ns = interval_ns.div_ceil(burst.into()) + 1;
    let burst_ns = interval_ns.max(send_ns.saturating_mul(4) + 64);
    Some(Pace::Even { bps, burst_ns, least_bytes: 1, first_ns: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Pacer;

    #[test]
    fn a_paced_send_is_never_cut() {
        for (burst, interval_us) in [(1, 1), (1, 1_000), (3, 1_000), (1000, 1_000), (7, 3_000_000)]
        {
            for unit_bytes in [1, 1448, 16_384, 65_507, LARGEST_BYTES] {
                let pacer = Pacer::new(pace((burst, interval_us), unit_bytes).unwrap(), 1);
                let most = pacer.most_bytes();
                assert!(most >= unit_bytes as usize, "{burst} in {interval_us} us: {most}");
            }
        }
    }
}
