//! Cell after cell: the loop over a plan.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_measure::matrix::Cell;
use linerate_measure::order::Order;

use super::attempt::{Attempt, END_NS, OVERTIME_NS, SET_UP_NS};
use super::event::{CellEnd, CellStatus, Event, RunEnding, Sink, SinkError};
use super::fleet::Fleet;
use super::progress::Progress;
use crate::host::{HostClock, HostEvent, HostEventKind, HostId};
use crate::judge::Observed;
use crate::plan::{OnHostLoss, Plan, Via};

const SECOND_NS: u64 = 1_000_000_000;

/// How often a wait looks whether the user has stopped the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Collectors have so long to tell of a cell's end.
const COUNTERS_NS: u64 = 2_000_000_000;

/// When the first source of the last host has told, the others have so long.
const REST_NS: u64 = 100_000_000;

/// Carries a plan out. `fleet` has the hosts in the order of `names`; `stopped` says whether the user wants an end.
/// What is done is told to `sink` and kept in `progress`.
///
/// # Errors
///
/// [`SinkError`] where an event can't be kept.
pub fn run(
    plan: &Plan,
    progress: &mut Progress,
    names: &[String],
    fleet: &mut dyn Fleet,
    sink: &mut dyn Sink,
    stopped: &dyn Fn() -> bool,
) -> Result<RunEnding, SinkError> {
    let hosts = Hosts::new(names);
    let mut conductor = Conductor { plan, hosts, fleet, sink, stopped };
    let ending = conductor.carry_out(progress)?;
    let at_ns = conductor.fleet.now().utc_ns;
    conductor.sink.handle(&Event::RunEnded { ending: ending.clone(), at_ns })?;
    Ok(ending)
}

/// The longest that all cells of a plan may take, seconds: each attempt with its set-up, the longest wait for a load
/// balancer, twice its planned time and its end, as often as it may fail.
pub(crate) fn longest_s(plan: &Plan) -> u64 {
    let balanced =
        plan.pods().into_iter().filter(|(_, _, pod, _)| pod.via == Some(Via::LoadBalancer));
    let way = balanced.map(|(_, _, pod, _)| pod.start_timeout()).max().unwrap_or_default();
    let way_ns = u64::try_from(way.as_nanos()).unwrap_or(u64::MAX);
    let besides_ns = (2 * SET_UP_NS + OVERTIME_NS + END_NS + COUNTERS_NS).saturating_add(way_ns);
    let attempts = u64::from(plan.schedule.samples)
        .saturating_mul(u64::from(plan.schedule.max_failures.max(1)));
    let of_points = plan.points.iter().map(|point| {
        let attempt_ns = point.most_ns().saturating_mul(2).saturating_add(besides_ns);
        attempt_ns.div_ceil(SECOND_NS).saturating_mul(attempts)
    });
    of_points.fold(0, u64::saturating_add)
}

/// What is known of the hosts.
pub(super) struct Hosts {
    names: Vec<String>,
    clocks: BTreeMap<HostId, HostClock>,
    lost: BTreeMap<HostId, String>,
}

impl Hosts {
    fn new(names: &[String]) -> Self {
        Self { names: names.to_vec(), clocks: BTreeMap::new(), lost: BTreeMap::new() }
    }

    pub(super) fn id(&self, name: &str) -> Option<HostId> {
        self.names.iter().position(|one| one == name)
    }

    pub(super) fn name(&self, host: HostId) -> &str {
        self.names.get(host).map_or("", String::as_str)
    }

    pub(super) fn clock(&self, host: HostId) -> Option<HostClock> {
        self.clocks.get(&host).copied()
    }

    pub(super) fn is_lost(&self, host: HostId) -> bool {
        self.lost.contains_key(&host)
    }

    pub(super) fn offset_ns(&self, host: HostId) -> i64 {
        self.clock(host).map_or(0, |clock| clock.offset.offset_ns)
    }
}

/// The state of a run.
pub(super) struct Conductor<'a> {
    pub(super) plan: &'a Plan,
    pub(super) hosts: Hosts,
    pub(super) fleet: &'a mut dyn Fleet,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl Conductor<'_> {
    fn carry_out(&mut self, progress: &mut Progress) -> Result<RunEnding, SinkError> {
        if let Some(ending) = self.await_hosts()? {
            return Ok(ending);
        }
        for host in 0..self.hosts.names.len() {
            if let Some(request) = &self.plan.collect {
                self.fleet.collect(host, Some(request.clone()));
            }
        }
        let began_ns = self.fleet.now().monotonic_ns;
        for place in 0..progress.cells.len() {
            let Some(state) = progress.cells.get(place).copied() else { break };
            if state.is_over {
                continue;
            }
            if (self.stopped)() {
                return Ok(RunEnding::Interrupted);
            }
            if let Some(ending) = self.over_budget(place, progress, began_ns) {
                return Ok(ending);
            }
            if let Some(ending) = self.measure_cell(place, progress)? {
                return Ok(ending);
            }
        }
        Ok(RunEnding::Complete)
    }

    /// Waits until every host is ready or lost.
    fn await_hosts(&mut self) -> Result<Option<RunEnding>, SinkError> {
        let mut awaited: Vec<HostId> = (0..self.hosts.names.len()).collect();
        while !awaited.is_empty() {
            if (self.stopped)() {
                return Ok(Some(RunEnding::Interrupted));
            }
            let Some(event) = self.fleet.next_event(LOOK_EVERY) else { continue };
            if let HostEventKind::Opened { .. } | HostEventKind::Lost { .. } = event.kind {
                awaited.retain(|host| *host != event.host);
            }
            self.note_host(&event, None)?;
            if let Some(ending) = self.ends_by_loss() {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }

    /// Whether a host is lost that the run can't do without.
    fn ends_by_loss(&self) -> Option<RunEnding> {
        let (host, why) = self.hosts.lost.first_key_value()?;
        let is_left = |pair: &crate::plan::Pair| {
            [&pair.client, &pair.server]
                .iter()
                .all(|name| self.hosts.id(name).is_some_and(|id| !self.hosts.is_lost(id)))
        };
        let goes_on = self.plan.schedule.on_host_loss == OnHostLoss::Continue;
        if goes_on && self.plan.pairs.iter().any(is_left) {
            return None;
        }
        let why = format!("{}: {why}", self.hosts.name(*host));
        Some(RunEnding::HostLost { why })
    }

    /// Takes what an event tells of its host, and tells the sink.
    pub(super) fn note_host(
        &mut self,
        event: &HostEvent,
        position: Option<u32>,
    ) -> Result<(), SinkError> {
        let host = self.hosts.name(event.host).to_owned();
        match &event.kind {
            HostEventKind::Opened { hello, clock } => {
                self.hosts.clocks.insert(event.host, *clock);
                let facts = serde_json::to_string(hello).unwrap_or_default();
                let (offset_ns, bound_ns) = (clock.offset.offset_ns, clock.offset.bound_ns);
                self.sink.handle(&Event::HostReady { host, facts, offset_ns, bound_ns })
            }
            HostEventKind::Clock(clock) => {
                self.hosts.clocks.insert(event.host, *clock);
                Ok(())
            }
            HostEventKind::Lost { error, .. } => {
                let why = error.to_string();
                self.hosts.lost.insert(event.host, why.clone());
                self.sink.handle(&Event::HostLost { host, why })
            }
            HostEventKind::Delayed(said) => {
                self.sink.handle(&Event::Note { position, text: format!("{host}: {said}") })
            }
            HostEventKind::Silent => {
                let text = format!("{host} has been silent for three seconds");
                self.sink.handle(&Event::Note { position, text })
            }
            HostEventKind::Ticks(readings) => self.sink.handle(&Event::Ticks {
                position,
                host,
                collector: readings.collector.clone(),
                from_ns: readings.from_ns,
                offset_ns: self.hosts.offset_ns(event.host),
                data: readings.data.get().to_owned(),
            }),
            HostEventKind::Heard | HostEventKind::Closed | HostEventKind::Child(_) => Ok(()),
        }
    }

    /// Waits until the collectors of all hosts have told of the cell's end. They tell something each second.
    fn await_counters(&mut self, position: u32) -> Result<(), SinkError> {
        if self.plan.collect.is_none() {
            return Ok(());
        }
        let mut silent: Vec<HostId> = (0..self.hosts.names.len()).collect();
        let mut until_ns = self.fleet.now().monotonic_ns.saturating_add(COUNTERS_NS);
        while self.fleet.now().monotonic_ns < until_ns && !(self.stopped)() {
            silent.retain(|host| !self.hosts.is_lost(*host));
            let Some(event) = self.fleet.next_event(LOOK_EVERY) else {
                if silent.is_empty() {
                    break;
                }
                continue;
            };
            if let HostEventKind::Ticks(_) = event.kind {
                silent.retain(|host| *host != event.host);
                if silent.is_empty() {
                    // The sources of a host are told one after the other.
                    let soon_ns = self.fleet.now().monotonic_ns.saturating_add(REST_NS);
                    until_ns = until_ns.min(soon_ns);
                }
            }
            self.note_host(&event, Some(position))?;
        }
        Ok(())
    }

    /// The end of a run whose budget doesn't hold the next round, or the next cell where the order has no rounds.
    fn over_budget(&self, place: usize, progress: &Progress, began_ns: u64) -> Option<RunEnding> {
        let budget_ns = self.plan.schedule.budget_ns?;
        let points = self.plan.points.len().max(1);
        let has_rounds = matches!(self.plan.schedule.order, Order::Interleaved | Order::Iteration);
        let until = match has_rounds {
            true if !place.is_multiple_of(points) => return None,
            true => place + points,
            false => place + 1,
        };
        let coming = progress.cells.get(place..until.min(progress.cells.len()))?;
        let needed_ns = coming.iter().filter(|state| !state.is_over).fold(0_u64, |sum, state| {
            let point = usize::try_from(state.cell.iteration).ok();
            let point = point.and_then(|place| self.plan.points.get(place));
            sum.saturating_add(point.map_or(0, |point| point.expected_ns))
        });
        let used_ns = self.fleet.now().monotonic_ns.saturating_sub(began_ns);
        // The first round is always measured.
        if place == 0 || used_ns.saturating_add(needed_ns) <= budget_ns {
            return None;
        }
        let left = progress.cells.iter().filter(|state| !state.is_over).count();
        Some(RunEnding::OverBudget { dropped: u32::try_from(left).unwrap_or(u32::MAX) })
    }

    /// Tries a cell until it has its end. The run ends where something is returned.
    fn measure_cell(
        &mut self,
        place: usize,
        progress: &mut Progress,
    ) -> Result<Option<RunEnding>, SinkError> {
        loop {
            let Some(state) = progress.cells.get_mut(place) else { return Ok(None) };
            state.attempts += 1;
            let (cell, number) = (state.cell, state.attempts);
            let position = u32::try_from(place).unwrap_or(u32::MAX);
            let mut end = self.try_cell(position, cell, number)?;
            let lost = self.ends_by_loss();
            let is_stopped = (self.stopped)();
            if end.status == CellStatus::Failed {
                // What the user or a lost host ended is no failure of the cell: it waits.
                let is_own = lost.is_none() && !is_stopped;
                let failures = progress.cells.get_mut(place).map_or(0, |state| {
                    state.failures += u32::from(is_own);
                    state.failures
                });
                if !is_own || failures < self.plan.schedule.max_failures {
                    end.status = CellStatus::Again;
                }
            }
            let is_over = end.status != CellStatus::Again;
            let observed = match end.status {
                // What a failed cell has is at most a part of a figure.
                CellStatus::Failed | CellStatus::Again => Observed::default(),
                status => Observed::new(end.runs(), status == CellStatus::Done),
            };
            self.sink.handle(&Event::CellEnded(Box::new(end)))?;
            if is_over {
                if let Some(state) = progress.cells.get_mut(place) {
                    state.is_over = true;
                }
                progress.judge.observe(cell, observed);
            }
            if let Some(ending) = lost {
                return Ok(Some(ending));
            }
            if is_stopped {
                return Ok(Some(RunEnding::Interrupted));
            }
            if is_over {
                let why = progress.judge.aborts(self.plan, cell.iteration);
                return Ok(why.map(|why| RunEnding::Aborted { why }));
            }
        }
    }

    fn try_cell(&mut self, position: u32, cell: Cell, attempt: u32) -> Result<CellEnd, SinkError> {
        let at_ns = self.fleet.now().utc_ns;
        self.sink.handle(&Event::CellBegan { position, cell, attempt, at_ns })?;
        for host in 0..self.hosts.names.len() {
            if !self.hosts.is_lost(host) {
                self.fleet.measure_clock(host);
            }
        }
        let mut running = Attempt::begin(self, position, cell);
        while !running.is_over() {
            let event = self.fleet.next_event(LOOK_EVERY);
            if let Some(event) = event {
                self.note_host(&event, Some(position))?;
                running.handle_event(self, event)?;
            }
            running.handle_time(self)?;
        }
        let end = running.finish(self, attempt, at_ns);
        self.await_counters(position)?;
        Ok(end)
    }
}
