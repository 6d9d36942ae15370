//! Admission: which clients may measure, and when.

use std::collections::{HashSet, VecDeque};

use linerate_measure::plan::limits;
use linerate_measure::units::{render_duration_ns, render_rate};
use linerate_measure::{Direction, End, Kind, Rate, Transport, Workload};
use linerate_wire::native::message::RefusalCause;

use crate::load::{is_apart, most_quic_sockets};
use crate::probe::processors;

/// Descriptors that aren't flows': pending connections, control connections, shards. At most half of all.
const DESCRIPTORS_APART_FROM_FLOWS: u64 = 600;

/// Clients that may wait to be alone: each keeps a connection for as long as it likes.
const MOST_WAITING: usize = 64;

/// Tests that may run at once within a lease.
const MOST_TESTS_OF_A_LEASE: usize = 8;

/// Threads that one test may always ask for, as far as others leave them.
const THREADS_OF_A_TEST: u64 = 64;

/// What tests share, and the flag that asks for less of it.
type Shared = (&'static str, &'static str);
const FLOWS_IN_THE_TABLE: Shared = ("flows (open files)", "--flows");
const SOCKETS_OF_QUIC: Shared = ("sockets (open files)", "--threads");
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
    /// Processors that the threads of tests may run on.
    pub(super) processors: u32,
    /// Threads of all tests together that may poll without sleeping; `None`: the server doesn't allow it.
    pub(super) spinning_threads: Option<u32>,
}

impl Limits {
    /// Flows of all tests together that are in the shared file table: each takes a descriptor.
    fn most_flows(&self) -> u64 {
        let apart = DESCRIPTORS_APART_FROM_FLOWS.min(self.max_descriptors / 2);
        self.max_descriptors - apart
    }

    /// Threads that one test may ask for: its share of those that there may be, so that no test takes all; at
    /// least [`THREADS_OF_A_TEST`], and two for each processor.
    fn most_threads_of_a_test(&self) -> u64 {
        let share = limits::THREADS.end() / u64::from(self.max_tests).max(1);
        let processors = 2 * u64::from(self.processors);
        share.max(THREADS_OF_A_TEST).max(processors).min(*limits::THREADS.end())
    }

    /// Connections that come and go of which a test may have so many at once: as many again may be about to
    /// close, and a few may be somebody else's. All are in the shared file table. `None`: its flows stay, or
    /// share a socket.
    fn most_coming_and_going(&self, workload: &Workload) -> Option<u64> {
        let connects = matches!(workload.kind, Kind::Connect { .. });
        let flows = u64::from(workload.total_flows());
        let in_the_table = !is_apart(workload.total_flows(), self.max_descriptors);
        (connects && in_the_table && workload.transport != Transport::Quic)
            .then(|| (flows * 2 + 64).min(self.most_flows()))
    }

    /// What a test's flows take: open files in the table that all share, and flows that take none of it.
    fn flows(&self, workload: &Workload) -> (u64, u64) {
        let (flows, opened) = (workload.total_flows(), workload.opened_flows());
        if workload.transport == Transport::Quic {
            // Its flows share sockets, which are in the shared table; each flow takes memory all the same.
            return (most_quic_sockets(workload, self.max_descriptors).into(), flows.into());
        }
        match self.most_coming_and_going(workload) {
            // Pending connections are counted apart.
            Some(most) => (most.min(u64::from(flows) * 2), 0),
            // Two flows that share a connection share its file.
            None if is_apart(opened, self.max_descriptors) => (0, opened.into()),
            None => (opened.into(), 0),
        }
    }
}

/// What one test takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    client: usize,
    /// The client whose place it takes: the holder of the lease that the test belongs to, or the client itself.
    place: usize,
    /// Flows in the shared file table, or sockets that they share.
    flows: u64,
    /// What those are.
    in_the_table: Shared,
    /// Flows that take nothing of the shared file table: those in tables of their own, and those of QUIC.
    flows_apart: u64,
    /// Threads that carry them.
    threads: u64,
    rate_bps: u64,
    exclusive: bool,
    /// Whether its threads poll without sleeping.
    spins: bool,
}

/// A place that is kept for a client, whether a test of its lease runs or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    holder: usize,
    /// What the tests know it by that belong to it.
    token: [u8; 16],
    exclusive: bool,
}

/// The tests that run, the places that are kept between tests, and the clients that wait to be alone.
#[derive(Debug)]
pub(super) struct Admission {
    limits: Limits,
    running: Vec<Need>,
    held: Vec<Held>,
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
        Self { limits, running: Vec::new(), held: Vec::new(), waiting: VecDeque::new() }
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
        if exclusive && self.waiting.len() >= MOST_WAITING {
            let why = format!("{MOST_WAITING} clients wait to measure alone: try again later");
            return Verdict::Refused(RefusalCause::Busy, why);
        }
        let need = self.need((client, client), workload, exclusive);
        if exclusive && (self.is_in_use() || !self.waiting.is_empty()) {
            self.waiting.push_back(need);
            return Verdict::Queued(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX));
        }
        let refusal = self.others_in_the_way().or_else(|| self.lacks_room_for(&need));
        self.admit(need, refusal)
    }

    /// A client asks for a test that belongs to the lease of this holder: the place is taken already.
    pub(super) fn handle_request_within(
        &mut self,
        holder: usize,
        client: usize,
        workload: &Workload,
    ) -> Verdict {
        if let Some(why) = self.beyond_limits(workload) {
            return Verdict::Refused(RefusalCause::Limit, why);
        }
        let exclusive = self.held.iter().any(|held| held.holder == holder && held.exclusive);
        let need = self.need((holder, client), workload, exclusive);
        let running = self.running.iter().filter(|other| other.place == holder).count();
        let refusal = match running >= MOST_TESTS_OF_A_LEASE {
            true => Some(format!(
                "{running} tests of one measurement run beside each other, as many as a server allows"
            )),
            false => self.lacks_room_for(&need),
        };
        self.admit(need, refusal)
    }

    /// Keeps the place of a client whose test was admitted, until [`Self::release`].
    pub(super) fn hold(&mut self, holder: usize, token: [u8; 16]) {
        let exclusive = self.is_alone(holder);
        self.held.push(Held { holder, token, exclusive });
    }

    /// The client whose lease has this token.
    pub(super) fn holder(&self, token: &[u8; 16]) -> Option<usize> {
        self.held.iter().find(|held| held.token == *token).map(|held| held.holder)
    }

    /// Keeps a client's place no longer than tests run that take it.
    pub(super) fn release(&mut self, holder: usize) {
        self.held.retain(|held| held.holder != holder);
    }

    fn admit(&mut self, need: Need, refusal: Option<String>) -> Verdict {
        match refusal {
            Some(why) => Verdict::Refused(RefusalCause::Busy, why),
            None => {
                self.running.push(need);
                Verdict::Admitted
            }
        }
    }

    fn need(&self, (place, client): (usize, usize), workload: &Workload, exclusive: bool) -> Need {
        let (flows, flows_apart) = self.limits.flows(workload);
        Need {
            client,
            place,
            flows,
            in_the_table: match workload.transport {
                Transport::Quic => SOCKETS_OF_QUIC,
                _ => FLOWS_IN_THE_TABLE,
            },
            flows_apart,
            threads: workload
                .threading
                .threads
                .unwrap_or_else(|| processors(&[]))
                .min(workload.opened_flows())
                .into(),
            rate_bps: asked_bps(workload).unwrap_or(0),
            exclusive,
            spins: false,
        }
    }

    /// Whether a client's test runs alone.
    pub(super) fn is_alone(&self, client: usize) -> bool {
        self.running.iter().any(|need| need.client == client && need.exclusive)
    }

    /// Whether the threads of an admitted test may poll without sleeping, as its client wants.
    ///
    /// # Errors
    /// Why they may not, for the client's notes.
    pub(super) fn handle_busy_poll(&mut self, client: usize) -> Result<(), String> {
        let Some(most) = self.limits.spinning_threads.map(u64::from) else {
            return Err("this server allows no busy polling (serve --busy-poll): its end slept \
                        between packets, and its wake-ups are part of the figures"
                .to_owned());
        };
        let taken: u64 =
            self.running.iter().filter(|need| need.spins).map(|need| need.threads).sum();
        let Some(need) = self.running.iter_mut().find(|need| need.client == client) else {
            return Err("no test of this client's runs".to_owned());
        };
        if taken.saturating_add(need.threads) > most {
            return Err(format!(
                "the server did not poll without sleeping: {} threads of this test and {taken} of \
                 others are more than the {most} processors that it allows for that; ask for fewer \
                 --threads or --flows",
                need.threads
            ));
        }
        need.spins = true;
        Ok(())
    }

    /// The connections that a test may have at once which come and go.
    pub(super) fn most_coming_and_going(&self, workload: &Workload) -> usize {
        let most = self.limits.most_coming_and_going(workload).unwrap_or(0);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// A client is gone, or its test is over. The clients that wait have new places; the first is
    /// returned when its turn has come.
    pub(super) fn handle_departure(&mut self, client: usize) -> Option<usize> {
        self.running.retain(|need| need.client != client);
        self.waiting.retain(|need| need.client != client);
        if self.is_in_use() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.running.push(next);
        Some(next.client)
    }

    /// Whether a test runs or a place is kept.
    fn is_in_use(&self) -> bool {
        !self.running.is_empty() || !self.held.is_empty()
    }

    /// How many places are taken: the tests of a lease have one together, also while none of them runs.
    fn places(&self) -> usize {
        let running = self.running.iter().map(|need| need.place);
        running.chain(self.held.iter().map(|held| held.holder)).collect::<HashSet<_>>().len()
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
        let most_threads = self.limits.most_threads_of_a_test();
        if let Some(threads) =
            workload.threading.threads.map(u64::from).filter(|asked| *asked > most_threads)
        {
            return Some(format!(
                "{threads} threads are more than a test may have at this server ({most_threads}): ask \
                 for fewer --threads"
            ));
        }
        let most_coming_and_going = self.limits.most_coming_and_going(workload);
        // An eighth of them may be about to close.
        let held = flows + flows / 8 + 16;
        if most_coming_and_going.is_some_and(|_| held > self.limits.most_flows()) {
            return Some(format!(
                "{flows} connections at once, and those about to close, need more open files than this \
                 server has (enough for {}): ask for fewer --flows, or raise its limit (ulimit -n)",
                self.limits.most_flows()
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
        let most = render_rate(most_bps as f64);
        let per_second = most_per_second(workload, most_bps);
        match asked_bps(workload) {
            Some(asked_bps) if asked_bps <= most_bps => None,
            Some(asked_bps) => Some(format!(
                "{} is more than this server allows ({most}): ask for a lower --rate{}",
                render_rate(asked_bps as f64),
                per_second.unwrap_or_default()
            )),
            None => Some(format!(
                "this server allows at most {most}: ask for a --rate{}",
                per_second.unwrap_or_else(|| " up to that".to_owned())
            )),
        }
    }

    /// Why no other client may begin a test now.
    fn others_in_the_way(&self) -> Option<String> {
        let is_alone = self.running.iter().any(|other| other.exclusive);
        if is_alone || self.held.iter().any(|held| held.exclusive) {
            return Some("another client measures alone (--exclusive): try again later".to_owned());
        }
        if !self.waiting.is_empty() {
            return Some(
                "another client waits to measure alone (--exclusive): try again later, or wait \
                 with --exclusive too"
                    .to_owned(),
            );
        }
        let count = self.places();
        (count >= self.limits.max_tests as usize).then(|| {
            format!(
                "{count} tests run, as many as this server allows (--max-tests): try again later, \
                 or wait with --exclusive"
            )
        })
    }

    /// What the tests that run leave too little of.
    fn lacks_room_for(&self, need: &Need) -> Option<String> {
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
            (sum(|other| other.flows), need.flows, self.limits.most_flows(), need.in_the_table),
            (sum(|other| other.flows_apart), need.flows_apart, *limits::FLOWS.end(), FLOWS_APART),
            (sum(|other| other.threads), need.threads, *limits::THREADS.end(), THREADS),
        ];
        wanted.into_iter().find_map(|(taken, more, most, (what, way_out))| {
            (taken.saturating_add(more) > most).then(|| match taken {
                0 => format!("{more} {what} are more than this server has room for ({most}): ask for fewer {way_out}"),
                _ => format!(
                    "{taken} {what} of other tests leave no room for {more} more of at most {most}: \
                     try again later, or ask for fewer {way_out}"
                ),
            })
        })
    }
}

/// The rate of payload that a workload keeps to, both directions together; `None`: it goes as fast as
/// it can.
fn asked_bps(workload: &Workload) -> Option<u64> {
    if let Some(bits) = bits_per_transaction(workload) {
        // To the nearest: a decimal fraction is a little more or less in binary. Saturates.
        return Some((workload.schedule()?.per_s * bits).round() as u64);
    }
    let per_direction = match workload.rate? {
        Rate::AllFlows { bps } => bps,
        Rate::EachFlow { bps } => bps.saturating_mul(u64::from(workload.flows)),
    };
    let both = workload.direction() == Some(Direction::Both);
    Some(per_direction.saturating_mul(if both { 2 } else { 1 }))
}

/// Payload of a request and its response, or the most of a transfer; `None`: the load is a stream.
fn bits_per_transaction(workload: &Workload) -> Option<f64> {
    match workload.kind {
        Kind::Stream { .. } => None,
        Kind::Connect { transfer: Some(transfer), .. } => {
            Some(transfer.bytes.bounds().1 as f64 * 8.0)
        }
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => {
            Some((f64::from(request_bytes) + f64::from(response_bytes)) * 8.0)
        }
    }
}

/// How far the `--rate` of requests or connections may go, as the end of a sentence.
fn most_per_second(workload: &Workload, most_bps: u64) -> Option<String> {
    let per_s = most_bps as f64 / bits_per_transaction(workload)?;
    // Rounded down, so that what is named is allowed.
    let per_s = if per_s < 1.0 {
        format!("{:.3}", (per_s * 1e3).floor() / 1e3)
    } else {
        format!("{:.0}", per_s.floor())
    };
    if per_s == "0.000" {
        return Some(", and for smaller requests and responses".to_owned());
    }
    let what = if matches!(workload.kind, Kind::Rr { .. }) { "requests" } else { "connections" };
    Some(format!(", up to {per_s} {what} per second of this size"))
}

#[cfg(test)]
mod tests;
