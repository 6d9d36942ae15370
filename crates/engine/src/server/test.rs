//! One client's test at the server.

use std::sync::Arc;

use linerate_measure::record::TestFigures;
use linerate_measure::sample::Sample;
use linerate_measure::units::render_duration_ns;
use linerate_measure::{End, Kind, Transport, Workload};
use linerate_wire::native::message::FlowCount;
use linerate_wire::native::server::Server as Machine;
use linerate_wire::{Machine as _, Sign};
use socket2::Socket;

use super::conclusion::Conclusion;
use crate::clock::{SECOND_NS, now, utc_ns};
use crate::load::Load;
use crate::waker::Waker;

/// In this time after admission some flow must come, and another in each such time after that, until all stand. The load
/// must then begin in this time, or so long after the time that the client named.
const SETUP_NS: u64 = 60 * SECOND_NS;
/// The longest that the flows may take to come, one after the other.
const LONGEST_SETUP_NS: u64 = 600 * SECOND_NS;
/// The longest wait for a start time that a client names.
const LONGEST_WAIT_NS: u64 = 3600 * SECOND_NS;
/// The same of a client that measures alone: no other client is served meanwhile.
const LONGEST_WAIT_ALONE_NS: u64 = 60 * SECOND_NS;
/// A load must have ended so long after its time is up.
const ENDING_NS: u64 = 60 * SECOND_NS;
/// A load whose end is a time may be so much longer than the longest.
const CUT_GRACE_NS: u64 = SECOND_NS;
/// The longest load whose end isn't a time.
const LONGEST_NS: u64 = 24 * 3600 * SECOND_NS;

/// One client's test.
pub(super) struct Test {
    pub(super) token: [u8; 16],
    pub(super) run_id: String,
    /// `None` once every flow has ended.
    load: Option<Load>,
    /// Why the test failed, where it has.
    failure: Option<String>,
    /// What the load carried, once it is over.
    figures: Option<TestFigures>,
    /// What the load comes to, while that is found out.
    conclusion: Option<Conclusion>,
    /// The acceptor's.
    waker: Arc<Waker>,
    workload: Workload,
    max_time_ns: Option<u64>,
    /// Whether no other client measures meanwhile.
    exclusive: bool,
    /// How its flows come; `None` once all stand and the client was told so.
    setup: Option<Setup>,
    /// When to open the load (monotonic), once the client has asked.
    opens_at_ns: Option<u64>,
    /// When the server ends the load itself (monotonic), as it allows no longer one.
    cut_at_ns: Option<u64>,
    finishing: bool,
    expires_ns: u64,
}

/// How the flows come.
struct Setup {
    /// When they might begin to.
    admitted_ns: u64,
    /// How many had come at the last look.
    come: usize,
}

impl Test {
    pub(super) fn new(
        token: [u8; 16],
        run_id: String,
        load: Load,
        (max_time_ns, exclusive): (Option<u64>, bool),
        waker: &Arc<Waker>,
        now_ns: u64,
    ) -> Self {
        Self {
            token,
            run_id,
            workload: load.workload().clone(),
            load: Some(load),
            failure: None,
            figures: None,
            conclusion: None,
            waker: Arc::clone(waker),
            max_time_ns,
            exclusive,
            setup: Some(Setup { admitted_ns: now_ns, come: 0 }),
            opens_at_ns: None,
            cut_at_ns: None,
            finishing: false,
            expires_ns: now_ns + SETUP_NS,
        }
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Whether its load takes connections that come and go.
    pub(super) fn takes_connections(&self) -> bool {
        let connects = matches!(self.workload.kind, Kind::Connect { .. });
        let over_tcp = connects && self.workload.transport != Transport::Quic;
        over_tcp && self.load.as_ref().is_some_and(|load| !load.any_ended())
    }

    /// Whether its load takes them from the listener itself.
    pub(super) fn accepts(&self) -> bool {
        self.takes_connections() && self.load.as_ref().is_some_and(|load| !load.is_apart())
    }

    /// Whether connections of its flows are still to come.
    pub(super) fn awaits_connections(&self) -> bool {
        let over_tcp = matches!(self.workload.transport, Transport::Tcp | Transport::Tls);
        over_tcp && self.load.is_some() && (self.setup.is_some() || self.takes_connections())
    }

    /// A connection that its load didn't take from the listener itself.
    pub(super) fn add_connection(&self, number: u32, socket: Socket) {
        if let Some(load) = &self.load {
            load.add_connection(number, socket);
        }
    }

    /// The load, while it lacks this flow.
    pub(super) fn load_lacking(&mut self, flow: u32) -> Option<&mut Load> {
        self.load.as_mut().filter(|load| load.lacks(flow) || load.lacks_quic_socket(flow))
    }

    /// The client wants the load to start. It is told at once when that will be.
    pub(super) fn handle_start(
        &mut self,
        at_utc_ns: Option<i64>,
        now_ns: u64,
        machine: &mut Machine,
    ) {
        let utc_ns = utc_ns();
        let wait_ns = at_utc_ns.map_or(0, |at| at.saturating_sub(utc_ns).max(0).unsigned_abs());
        let most_ns = if self.exclusive { LONGEST_WAIT_ALONE_NS } else { LONGEST_WAIT_NS };
        // A test that waits takes a place all the same.
        let most_ns = self.max_time_ns.map_or(most_ns, |max_ns| most_ns.min(max_ns));
        if wait_ns > most_ns {
            let why = format!(
                "a start {} ahead is more than this server waits for ({}): name a nearer --start-at",
                render_duration_ns(wait_ns),
                render_duration_ns(most_ns)
            );
            return self.fail(machine, why, now_ns);
        }
        machine.started(utc_ns.saturating_add_unsigned(wait_ns));
        self.opens_at_ns = Some(now_ns + wait_ns);
        self.expires_ns = now_ns + wait_ns + SETUP_NS;
    }

    pub(super) fn handle_peer_sent(&mut self, counts: &[FlowCount]) {
        if let Some(load) = &mut self.load {
            load.handle_peer_sent(counts);
        }
    }

    /// Whether its measured part goes on.
    pub(super) fn is_measuring(&self) -> bool {
        self.load.as_ref().is_some_and(Load::is_measuring)
    }

    /// So many other tests are being measured.
    pub(super) fn handle_other_tests(&mut self, others: u32) {
        if let Some(load) = self.load.as_mut().filter(|load| load.is_measuring()) {
            load.handle_other_tests(others);
        }
    }

    /// The client is done: what this end sends or answers ends too.
    pub(super) fn handle_finish(&mut self, now_ns: u64) {
        self.finishing = true;
        self.expires_ns = self.expires_ns.min(now_ns + ENDING_NS);
        if let Some(load) = &mut self.load {
            load.stop();
            load.end_answers();
            load.handle_peer_done();
        }
    }

    /// Does what is due; tells the client through its machine.
    pub(super) fn conduct(&mut self, machine: &mut Machine, now_ns: u64) {
        if let Some(told) = self.conclusion.as_ref().and_then(|conclusion| conclusion.tell(machine))
        {
            self.conclusion = None;
            if let Err(why) = told {
                self.fail(machine, why, now_ns);
            }
        }
        let longest_ns = self.longest_ns();
        // A load of that very length ends by its client's clock, which is told of the start later.
        let grace_ns = if matches!(self.workload.end, End::Time { .. }) { CUT_GRACE_NS } else { 0 };
        let Some(load) = &mut self.load else { return };
        if self.setup.is_some() && load.all_ready() {
            self.setup = None;
            self.expires_ns = now_ns + SETUP_NS;
            machine.ready();
        }
        if let Some(setup) = self.setup.as_mut().filter(|_| now_ns > self.expires_ns) {
            let come = load.flows_come();
            if come > setup.come {
                let latest_ns = setup.admitted_ns + LONGEST_SETUP_NS;
                self.expires_ns = latest_ns.min(now_ns + SETUP_NS);
            }
            setup.come = come;
        }
        if self.setup.is_none() && self.opens_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.opens_at_ns = None;
            self.expires_ns = now_ns.saturating_add(longest_ns);
            self.cut_at_ns =
                self.max_time_ns.map(|max_ns| now_ns.saturating_add(max_ns + grace_ns));
            load.open(now_ns);
        }
        if self.cut_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.cut_at_ns = None;
            // A client that has said it is done may send on all the same.
            self.finishing = true;
            if !load.all_ended() {
                load.note(format!(
                    "the server ended the load after {}, the longest that it allows (--max-time)",
                    render_duration_ns(self.max_time_ns.unwrap_or(0))
                ));
                load.stop();
                load.drain();
            }
            // What is left is for the report.
            self.expires_ns = now_ns.saturating_add(ENDING_NS);
        }
        if load.peer_progressed(now_ns) {
            machine.handle_sign(now(), Sign::Life);
        }
        if let Some(sample) = load.tick(now_ns) {
            say_sample(machine, &sample);
        }
        if let Some(counts) = load.take_datagrams_sent() {
            machine.sent(&counts);
        }
        if let Some(why) = self.why_it_ends(now_ns) {
            self.fail(machine, why, now_ns);
        } else if self.finishing && self.load.as_ref().is_some_and(Load::all_ended) {
            self.conclude(machine, now_ns);
        }
    }

    /// Why a test ends that hasn't come to its end: `None` for one that goes on.
    fn why_it_ends(&self, now_ns: u64) -> Option<String> {
        let load = self.load.as_ref()?;
        if !load.is_open() && load.has_failed() {
            return Some("a thread of the server's load failed before it began".to_owned());
        }
        if let Some(why) = load.undelivered() {
            return Some(format!("at the server, {why}"));
        }
        if now_ns <= self.expires_ns || self.finishing && load.all_ended() {
            return None;
        }
        Some(match &self.setup {
            None => "the test took longer than allowed, and the server ended it".to_owned(),
            Some(setup) => format!(
                "only {} of {} flows came within {} s: something on the path closes or drops \
                 connections, or one of the two machines has no room for so many; ask for fewer \
                 --flows, or raise the limits of open files (ulimit -n)",
                load.flows_come(),
                self.workload.total_flows(),
                now_ns.saturating_sub(setup.admitted_ns) / SECOND_NS
            ),
        })
    }

    /// Tells the client why its test is over, and ends the load.
    pub(super) fn fail(&mut self, machine: &mut Machine, why: String, now_ns: u64) {
        machine.error(&why);
        self.figures = self.figures(now_ns);
        self.load = None;
        self.failure = Some(why);
    }

    /// Why the test failed; `None` where it goes on, or has come to its end.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// What the load carried so far, or in all; `None` where it has not begun.
    pub(super) fn figures(&mut self, now_ns: u64) -> Option<TestFigures> {
        self.figures.or_else(|| self.load.as_mut()?.figures(now_ns))
    }

    /// Whether its load has ended and been reported.
    pub(super) fn is_over(&self) -> bool {
        self.load.is_none() && self.conclusion.is_none()
    }

    fn longest_ns(&self) -> u64 {
        let load_ns = match self.workload.end {
            End::Time { duration_ns } => duration_ns.saturating_add(self.workload.omit_ns),
            _ => self.max_time_ns.unwrap_or(LONGEST_NS),
        };
        load_ns.saturating_add(ENDING_NS)
    }

    fn conclude(&mut self, machine: &mut Machine, now_ns: u64) {
        self.figures = self.figures(now_ns);
        let Some(load) = self.load.take() else { return };
        match Conclusion::begin(load, now_ns, &self.waker) {
            Ok(conclusion) => self.conclusion = Some(conclusion),
            Err(why) => self.fail(machine, why, now_ns),
        }
    }

    /// When `conduct` is next of use.
    pub(super) fn next_time(&self, now_ns: u64) -> u64 {
        let load = self.load.as_ref().and_then(|load| load.next_tick(now_ns));
        let progress_ns = self.load.as_ref().map(|_| now_ns + SECOND_NS);
        [load, progress_ns, self.opens_at_ns, self.cut_at_ns]
            .into_iter()
            .flatten()
            .fold(self.expires_ns, u64::min)
    }
}

fn say_sample(machine: &mut Machine, sample: &Sample) {
    if let Ok(document) = serde_json::to_string(sample) {
        machine.sample(document);
    }
}
