//! Who may measure, and when.

use std::collections::VecDeque;

use linerate_measure::plan::limits;
use linerate_measure::units::{render_duration_ns, render_rate};
use linerate_measure::{Direction, End, Rate, Workload};
use linerate_wire::native::message::RefusalCause;

use crate::load::is_apart;
use crate::probe::cpus_online;

/// Descriptors that aren't flows': strangers, control connections, shards. At most half of all.
const DESCRIPTORS_APART_FROM_FLOWS: u64 = 600;

/// Clients that may wait to be alone: each keeps a connection for as long as it likes.
const MOST_WAITING: usize = 64;

/// What tests share, and the flag that asks for less of it.
type Shared = (&'static str, &'static str);
const FLOWS_IN_THE_TABLE: Shared = ("flows (open files)", "--flows");
const FLOWS_APART: Shared = ("flows", "--flows");
const THREADS: Shared = ("threads", "--threads");

/// What all tests together may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_tests: u32,
    pub(super) max_rate_bps: Option<u64>,
    pub(super) max_time_ns: Option<u64>,
    /// Open files that this process may have.
    pub(super) max_descriptors: u64,
}

impl Limits {
    /// Flows of all tests together that are in the shared file table: each takes a descriptor.
    fn most_flows(&self) -> u64 {
        let apart = DESCRIPTORS_APART_FROM_FLOWS.min(self.max_descriptors / 2);
        self.max_descriptors - apart
    }
}

/// What one test takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    client: usize,
    /// Flows in the shared file table.
    flows: u64,
    /// Flows in file tables of their own.
    flows_apart: u64,
    /// Threads that carry them.
    threads: u64,
    rate_bps: u64,
    exclusive: bool,
}

/// The tests that run, and the clients that wait to be alone.
#[derive(Debug)]
pub(super) struct Admission {
    limits: Limits,
    running: Vec<Need>,
    waiting: VecDeque<Need>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may begin.
    Admitted,
    /// It waits; 1: next.
    Queued(u32),
    /// It is turned away.
    Refused(RefusalCause, String),
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, running: Vec::new(), waiting: VecDeque::new() }
    }

    /// A client asks for a test.
    pub(super) fn handle_request(
        &mut self,
        client: usize,
        workload: &Workload,
        exclusive: bool,
    ) -> Verdict {
        if let Some(why) = self.beyond_limits(workload) {
            return Verdict::Refused(RefusalCause::Limit, why);
        }
        let flows = workload.total_flows();
        let apart = is_apart(flows, self.limits.max_descriptors);
        let flows = u64::from(flows);
        let need = Need {
            client,
            flows: if apart { 0 } else { flows },
            flows_apart: if apart { flows } else { 0 },
            threads: workload
                .threads
                .unwrap_or_else(cpus_online)
                .min(workload.total_flows())
                .into(),
            rate_bps: asked_bps(workload).unwrap_or(0),
            exclusive,
        };
        if exclusive && self.waiting.len() >= MOST_WAITING {
            let why = format!("{MOST_WAITING} clients wait to measure alone: try again later");
            return Verdict::Refused(RefusalCause::Busy, why);
        }
        if exclusive && (!self.running.is_empty() || !self.waiting.is_empty()) {
            self.waiting.push_back(need);
            return Verdict::Queued(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX));
        }
        match self.in_the_way(&need) {
            Some(why) => Verdict::Refused(RefusalCause::Busy, why),
            None => {
                self.running.push(need);
                Verdict::Admitted
            }
        }
    }

    /// A client is gone, or its test is over. The clients that wait have new places; the first is
    /// returned when its turn has come.
    pub(super) fn handle_departure(&mut self, client: usize) -> Option<usize> {
        self.running.retain(|need| need.client != client);
        self.waiting.retain(|need| need.client != client);
        if !self.running.is_empty() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.running.push(next);
        Some(next.client)
    }

    /// The clients that wait, the next one first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().map(|need| need.client)
    }

    fn beyond_limits(&self, workload: &Workload) -> Option<String> {
        let flows = u64::from(workload.total_flows());
        let most_flows = *limits::FLOWS.end();
        if flows > most_flows {
            return Some(format!(
                "{flows} flows are more than a server carries ({most_flows}): ask for fewer --flows"
            ));
        }
        if let (Some(most_ns), End::Time { duration_ns }) = (self.limits.max_time_ns, workload.end)
        {
            let asked_ns = duration_ns.saturating_add(workload.omit_ns);
            if asked_ns > most_ns {
                return Some(format!(
                    "a test of {} is longer than this server allows ({}): ask for less --time",
                    render_duration_ns(asked_ns),
                    render_duration_ns(most_ns)
                ));
            }
        }
        let most_bps = self.limits.max_rate_bps?;
        match asked_bps(workload) {
            Some(asked_bps) if asked_bps <= most_bps => None,
            Some(asked_bps) => Some(format!(
                "{} is more than this server allows ({}): ask for a lower --rate",
                render_rate(asked_bps as f64),
                render_rate(most_bps as f64)
            )),
            None if workload.has_transactions() => None,
            None => Some(format!(
                "this server allows at most {}: ask for a --rate up to that",
                render_rate(most_bps as f64)
            )),
        }
    }

    fn in_the_way(&self, need: &Need) -> Option<String> {
        if self.running.iter().any(|other| other.exclusive) {
            return Some("another client measures alone (--exclusive): try again later".to_owned());
        }
        if !self.waiting.is_empty() {
            return Some(
                "another client waits to measure alone (--exclusive): try again later, or wait \
                 with --exclusive too"
                    .to_owned(),
            );
        }
        let count = self.running.len();
        if count >= self.limits.max_tests as usize {
            return Some(format!(
                "{count} tests run, as many as this server allows (--max-tests): try again later, \
                 or wait with --exclusive"
            ));
        }
        if let Some(why) = self.no_room_for(need) {
            return Some(why);
        }
        let most_bps = self.limits.max_rate_bps?;
        let taken_bps: u64 = self.running.iter().map(|other| other.rate_bps).sum();
        (taken_bps.saturating_add(need.rate_bps) > most_bps).then(|| {
            format!(
                "{} of the {} that this server allows are taken by other tests: try again later, \
                 or ask for a lower --rate",
                render_rate(taken_bps as f64),
                render_rate(most_bps as f64)
            )
        })
    }

    fn no_room_for(&self, need: &Need) -> Option<String> {
        let sum = |of: fn(&Need) -> u64| self.running.iter().map(of).fold(0, u64::saturating_add);
        let wanted = [
            (sum(|other| other.flows), need.flows, self.limits.most_flows(), FLOWS_IN_THE_TABLE),
            (sum(|other| other.flows_apart), need.flows_apart, *limits::FLOWS.end(), FLOWS_APART),
            (sum(|other| other.threads), need.threads, *limits::THREADS.end(), THREADS),
        ];
        wanted.into_iter().find_map(|(taken, more, most, (what, way_out))| {
            (taken.saturating_add(more) > most).then(|| {
                format!(
                    "{taken} {what} of other tests leave no room for {more} more of at most {most}: \
                     try again later, or ask for fewer {way_out}"
                )
            })
        })
    }
}

/// The rate that a workload keeps to, both directions together.
fn asked_bps(workload: &Workload) -> Option<u64> {
    let per_direction = match workload.rate? {
        Rate::AllFlows { bps } => bps,
        Rate::EachFlow { bps } => bps.saturating_mul(u64::from(workload.flows)),
    };
    let both = workload.direction() == Some(Direction::Both);
    Some(per_direction.saturating_mul(if both { 2 } else { 1 }))
}

#[cfg(test)]
mod tests {
    use linerate_measure::Transport;

    use super::*;

    fn admission(max_tests: u32) -> Admission {
        Admission::new(Limits {
            max_tests,
            max_rate_bps: None,
            max_time_ns: None,
            max_descriptors: 20_000,
        })
    }

    fn workload() -> Workload {
        Workload::stream(Direction::Up, Transport::Tcp)
    }

    #[test]
    fn as_many_run_as_the_limit_says() {
        let mut admission = admission(2);
        assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
        assert_eq!(admission.handle_request(2, &workload(), false), Verdict::Admitted);
        let third = admission.handle_request(3, &workload(), false);
        assert!(
            matches!(third, Verdict::Refused(RefusalCause::Busy, why) if why.contains("2 tests"))
        );
        assert_eq!(admission.handle_departure(1), None);
        assert_eq!(admission.handle_request(3, &workload(), false), Verdict::Admitted);
    }

    #[test]
    fn no_more_wait_than_the_limit_says() {
        let mut admission = admission(2);
        assert_eq!(admission.handle_request(0, &workload(), false), Verdict::Admitted);
        for client in 1..=MOST_WAITING {
            let verdict = admission.handle_request(client, &workload(), true);
            assert!(matches!(verdict, Verdict::Queued(_)));
        }
        let next = admission.handle_request(MOST_WAITING + 1, &workload(), true);
        assert!(matches!(next, Verdict::Refused(RefusalCause::Busy, _)));
        assert_eq!(admission.handle_departure(MOST_WAITING), None);
        let next = admission.handle_request(MOST_WAITING + 1, &workload(), true);
        assert_eq!(next, Verdict::Queued(64));
    }

    #[test]
    fn an_exclusive_client_waits_its_turn_and_runs_alone() {
        let mut admission = admission(8);
        assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
        assert_eq!(admission.handle_request(2, &workload(), true), Verdict::Queued(1));
        assert_eq!(admission.handle_request(3, &workload(), true), Verdict::Queued(2));
        assert!(matches!(admission.handle_request(4, &workload(), false), Verdict::Refused(..)));
        assert_eq!(admission.handle_departure(1), Some(2));
        assert_eq!(admission.waiting().collect::<Vec<_>>(), [3]);
        assert!(matches!(admission.handle_request(4, &workload(), false), Verdict::Refused(..)));
        assert_eq!(admission.handle_departure(2), Some(3));
        assert_eq!(admission.handle_departure(3), None);
        assert_eq!(admission.handle_request(4, &workload(), false), Verdict::Admitted);
    }

    #[test]
    fn a_client_that_gives_up_waiting_leaves_the_queue() {
        let mut admission = admission(8);
        assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
        assert_eq!(admission.handle_request(2, &workload(), true), Verdict::Queued(1));
        assert_eq!(admission.handle_departure(2), None);
        assert_eq!(admission.handle_request(3, &workload(), false), Verdict::Admitted);
    }

    #[test]
    fn flows_apart_take_nothing_of_the_shared_table() {
        let mut admission = admission(8);
        let flows = |flows| Workload { flows, ..workload() };
        assert_eq!(admission.handle_request(1, &flows(900_000), false), Verdict::Admitted);
        assert_eq!(admission.handle_request(2, &flows(10_000), false), Verdict::Admitted);
        assert_eq!(admission.handle_request(3, &flows(9_000), false), Verdict::Admitted);
        for (more, why) in [(1_000, "open files"), (100_001, "at most 1000000")] {
            let refused = admission.handle_request(4, &flows(more), false);
            assert!(
                matches!(&refused, Verdict::Refused(RefusalCause::Busy, text) if text.contains(why))
            );
        }
        assert_eq!(admission.handle_departure(1), None);
        assert_eq!(admission.handle_request(4, &flows(100_001), false), Verdict::Admitted);
    }

    #[test]
    fn threads_are_shared_by_all_tests() {
        let mut admission = admission(8);
        let threads = |threads| Workload { flows: 1024, threads: Some(threads), ..workload() };
        assert_eq!(admission.handle_request(1, &threads(1000), false), Verdict::Admitted);
        let refused = admission.handle_request(2, &threads(25), false);
        assert!(matches!(refused, Verdict::Refused(_, why) if why.contains("--threads")));
        assert_eq!(admission.handle_request(2, &threads(24), false), Verdict::Admitted);
    }

    #[test]
    fn limits_are_named() {
        let mut admission = Admission::new(Limits {
            max_tests: 4,
            max_rate_bps: Some(1_000_000_000),
            max_time_ns: Some(5_000_000_000),
            max_descriptors: 1_000,
        });
        let refusal = |admission: &mut Admission, workload: &Workload| match admission
            .handle_request(1, workload, false)
        {
            Verdict::Refused(_, why) => why,
            other => panic!("{other:?}"),
        };
        assert!(refusal(&mut admission, &workload()).contains("--time"));
        let short = Workload { end: End::Time { duration_ns: 1_000_000_000 }, ..workload() };
        assert!(refusal(&mut admission, &short).contains("--rate"));
        let flows = 500_001;
        let both = linerate_measure::Kind::Stream { direction: Direction::Both, send_bytes: 1 };
        let many = Workload { flows, kind: both, ..short.clone() };
        assert!(refusal(&mut admission, &many).contains("--flows"));
        let paced = Workload { rate: Some(Rate::AllFlows { bps: 600_000_000 }), ..short };
        assert_eq!(admission.handle_request(1, &paced, false), Verdict::Admitted);
        assert!(refusal(&mut admission, &paced).contains("taken"));
    }
}
