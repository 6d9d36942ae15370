//! One attempt at a cell: servers, clients, a common start, results, the end of all programs.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_measure::matrix::Cell;
use linerate_measure::{Outcome, Role};

use super::event::{CellEnd, CellStatus, Document, Event, SinkError};
use super::lockstep::Told;
use super::program::Program;
use super::run::Conductor;
use super::start::Start;
use super::verdict::{Skewed, doubts, judge_skew};
use super::ways::Ways;
use crate::agent::{StartTask, TaskEnd};
use crate::barrier::{on_host, render_start, start_time};
use crate::host::{ChildEvent, ChildEventKind, HostClock, HostEvent, HostEventKind, HostId};
use crate::hunting::Hunting;
use crate::plan::{Pair, Point, Reached, Ready, TaskSpec, Work};

const SECOND_NS: u64 = 1_000_000_000;
/// Servers may take so long until they listen, and clients until they are armed.
pub(super) const SET_UP_NS: u64 = 60 * SECOND_NS;
/// Clients may take so much longer than planned, besides twice the planned time.
pub(super) const OVERTIME_NS: u64 = 60 * SECOND_NS;
/// Programs may take so long to end when they are told to.
pub(super) const END_NS: u64 = 20 * SECOND_NS;
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// What the attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The servers to be ready.
    Serving,
    /// The ways to the servers.
    Reaching,
    /// The clients to be ready.
    Arming,
    /// The clients to end.
    Measuring,
    /// The servers, and whatever else still runs, to end.
    Ending,
    /// Nothing.
    Over,
}

/// The state of an attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) position: u32,
    cell: Cell,
    pub(super) stage: Stage,
    /// When the stage is given up, by the controller's monotonic clock.
    until_ns: u64,
    pub(super) programs: Vec<Program>,
    /// Where the servers are reached.
    pub(super) ways: Ways,
    pub(super) start: Start,
    /// The search that the pairs make in lockstep.
    pub(super) hunting: Option<Hunting>,
    /// What the sink is to be told next.
    pub(super) untold: Vec<Event>,
    failure: Option<String>,
    pub(super) notes: Vec<String>,
    /// The pairs without a host, a sentence each.
    left_out: Vec<String>,
}

impl Attempt {
    pub(super) fn begin(conductor: &mut Conductor<'_>, position: u32, cell: Cell) -> Self {
        let until_ns = conductor.fleet.now().monotonic_ns.saturating_add(SET_UP_NS);
        let mut attempt = Self {
            position,
            cell,
            stage: Stage::Serving,
            until_ns,
            programs: Vec::new(),
            ways: Ways::default(),
            start: Start::default(),
            hunting: None,
            untold: Vec::new(),
            failure: None,
            notes: Vec::new(),
            left_out: Vec::new(),
        };
        let plan = conductor.plan;
        for (place, pair) in plan.pairs.iter().enumerate() {
            let reached = attempt.start_server(conductor, place, pair);
            if let Some(host) = reached.as_ref().and(conductor.hosts.id(&pair.client)) {
                attempt.start.await_clock(host);
            }
            attempt.ways.push(reached);
        }
        attempt.begin_hunt(conductor);
        if attempt.programs.is_empty() {
            attempt.fail("no pair of hosts is left");
        }
        attempt.advance(conductor);
        attempt
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(super) fn point<'a>(&self, conductor: &Conductor<'a>) -> Option<&'a Point> {
        conductor.plan.points.get(usize::try_from(self.cell.iteration).ok()?)
    }

    fn work<'a>(&self, conductor: &Conductor<'a>, place: usize) -> Option<&'a Work> {
        self.point(conductor)?.work_of(place)
    }

    /// Starts the server of a pair, unless one of its hosts is lost.
    fn start_server(
        &mut self,
        conductor: &mut Conductor<'_>,
        place: usize,
        pair: &Pair,
    ) -> Option<Reached> {
        let hosts = [&pair.server, &pair.client].map(|name| conductor.hosts.id(name));
        let lost = |host: &Option<HostId>| host.is_none_or(|id| conductor.hosts.is_lost(id));
        if hosts.iter().any(lost) {
            let why = format!("pair {} is left out: one of its hosts is lost", pair.number);
            self.left_out.push(why);
            return None;
        }
        let (address, port) = (pair.address.clone(), pair.port);
        let reached = Reached { address, port, ..Reached::default() };
        let work = self.work(conductor, place)?;
        let [server, _] = hosts;
        self.start(conductor, (place, pair.number), Role::Server, server?, &work.server, &reached);
        Some(reached)
    }

    fn start(
        &mut self,
        conductor: &mut Conductor<'_>,
        (place, pair): (usize, u32),
        role: Role,
        host: HostId,
        spec: &TaskSpec,
        reached: &Reached,
    ) {
        let start = StartTask {
            program: spec.program.clone(),
            argv: spec.argv(reached),
            environment: spec.environment.clone(),
            keep_stdin: spec.ready == Ready::Armed,
            ..StartTask::default()
        };
        let task = conductor.fleet.start(host, start);
        self.programs.push(Program::new((place, pair), role, (host, task), &spec.ready));
    }

    pub(super) fn handle_event(
        &mut self,
        conductor: &mut Conductor<'_>,
        event: HostEvent,
    ) -> Result<(), SinkError> {
        match event.kind {
            HostEventKind::Child(child) => self.handle_child(conductor, event.host, child)?,
            HostEventKind::Clock(clock) => {
                self.start.handle_clock(event.host, clock, conductor.fleet.now());
            }
            HostEventKind::Lost { error, .. } => {
                self.start.handle_lost(event.host);
                let name = conductor.hosts.name(event.host).to_owned();
                let mut is_used = false;
                for program in self.programs.iter_mut().filter(|one| one.host == event.host) {
                    is_used |= program.end.is_none();
                    program.end.get_or_insert_with(TaskEnd::default);
                }
                if is_used {
                    self.fail(&format!("the host {name} was lost: {error}"));
                }
            }
            _ => {}
        }
        self.advance(conductor);
        self.tell(conductor)
    }

    fn tell(&mut self, conductor: &mut Conductor<'_>) -> Result<(), SinkError> {
        self.untold.drain(..).try_for_each(|event| conductor.sink.handle(&event))
    }

    fn handle_child(
        &mut self,
        conductor: &mut Conductor<'_>,
        host: HostId,
        child: ChildEvent,
    ) -> Result<(), SinkError> {
        let is_hunt = self.hunting.is_some();
        let is_it = |one: &&mut Program| one.host == host && one.task == child.task;
        let Some(program) = self.programs.iter_mut().find(is_it) else { return Ok(()) };
        match child.kind {
            ChildEventKind::Started { .. } => {}
            ChildEventKind::Refused(why) => {
                program.end = Some(TaskEnd { task: child.task, ..TaskEnd::default() });
                let name = conductor.hosts.name(host);
                let text = format!("a program of pair {} can't run on {name}: {why}", program.pair);
                self.fail(&text);
            }
            ChildEventKind::Line { json, .. } => {
                let json = json.get();
                let (pair, role) = (program.pair, program.role);
                let (place, is_of_trial) = (program.place, role == Role::Client && is_hunt);
                match program.handle_record(json, &mut self.ways) {
                    Told::Document => {}
                    Told::Sample(sample) if is_of_trial => {
                        self.handle_sample(conductor, place, &sample);
                    }
                    // A hunt tells of its trials as wholes.
                    Told::Sample(_) | Told::Other if is_of_trial => {}
                    Told::Sample(_) | Told::Other => {
                        let (position, json) = (self.position, json.to_owned());
                        conductor.sink.handle(&Event::Record { position, pair, role, json })?;
                    }
                }
            }
            ChildEventKind::Text { text, .. } => program.handle_text(text),
            ChildEventKind::Ended(end) => program.end = Some(end),
        }
        Ok(())
    }

    /// Gives up what takes too long, and what the user doesn't want any more.
    pub(super) fn handle_time(&mut self, conductor: &mut Conductor<'_>) -> Result<(), SinkError> {
        if self.stage != Stage::Ending && self.stage != Stage::Over && (conductor.stopped)() {
            self.fail("interrupted");
            self.advance(conductor);
        }
        if self.stage == Stage::Reaching {
            self.look_for_ways(conductor);
            self.advance(conductor);
        }
        self.give_up(conductor);
        self.tell(conductor)
    }

    fn give_up(&mut self, conductor: &mut Conductor<'_>) {
        if conductor.fleet.now().monotonic_ns < self.until_ns {
            return;
        }
        let why = match self.stage {
            Stage::Serving => "a server was not ready after 60 s",
            // Hosts give their ways up themselves.
            Stage::Reaching => return,
            Stage::Arming if self.are_armed() => "a host's clock was not measured after 60 s",
            Stage::Arming => "a client was not ready after 60 s",
            Stage::Measuring => "a client took more than twice the planned time and 60 s",
            Stage::Ending => {
                self.notes.push("a program did not end when it was told to".to_owned());
                self.stage = Stage::Over;
                return;
            }
            Stage::Over => return,
        };
        self.fail(why);
        self.advance(conductor);
    }

    /// The first failure counts.
    pub(super) fn fail(&mut self, why: &str) {
        self.failure.get_or_insert_with(|| why.to_owned());
    }

    /// Goes on to the next stage where nothing is waited for any more.
    fn advance(&mut self, conductor: &mut Conductor<'_>) {
        if !matches!(self.stage, Stage::Ending | Stage::Over) {
            self.look_for_early_ends();
        }
        if self.failure.is_some() && !matches!(self.stage, Stage::Ending | Stage::Over) {
            self.end_programs(conductor);
        }
        let of = |role: Role| self.programs.iter().filter(move |one| one.role == role);
        match self.stage {
            Stage::Serving if of(Role::Server).all(|one| one.is_ready) => {
                self.stage = Stage::Reaching;
                self.look_for_ways(conductor);
                self.advance(conductor);
            }
            Stage::Reaching if !self.ways.are_awaited() => self.start_clients(conductor),
            Stage::Arming if self.are_armed() && self.knows_clocks() => {
                self.start_load(conductor);
            }
            Stage::Measuring if of(Role::Client).all(|one| one.end.is_some()) => {
                match self.hunting {
                    Some(_) => self.end_trial(conductor),
                    None => self.end_programs(conductor),
                }
            }
            Stage::Ending if self.programs.iter().all(|one| one.end.is_some()) => {
                self.stage = Stage::Over;
            }
            _ => {}
        }
    }

    /// Asks for the ways to servers that are not known yet.
    fn look_for_ways(&mut self, conductor: &mut Conductor<'_>) {
        match self.ways.look(conductor.plan, &conductor.hosts, conductor.fleet) {
            Ok(said) => {
                let position = Some(self.position);
                let notes = said.into_iter().map(|text| Event::Note { position, text });
                self.untold.extend(notes);
            }
            Err(why) => self.fail(&why),
        }
    }

    fn are_armed(&self) -> bool {
        self.programs.iter().filter(|one| one.role == Role::Client).all(|one| one.is_ready)
    }

    /// Whether a start can be named in the clocks of all hosts whose clients wait for one.
    fn knows_clocks(&self) -> bool {
        let mut waiting = self.programs.iter().filter(|one| one.ready == Ready::Armed);
        waiting.all(|one| self.start.knows(one.host))
    }

    /// A server that ends before its client, or a client that ends before the start, has failed.
    fn look_for_early_ends(&mut self) {
        let measuring = self.stage == Stage::Measuring;
        let client_ended = |pair: u32| {
            let is_client = |one: &&Program| one.role == Role::Client && one.pair == pair;
            self.programs.iter().find(is_client).is_some_and(|one| one.end.is_some())
        };
        let early = self.programs.iter().find(|one| {
            let expected = match one.role {
                // A server of another tool may serve one client and end.
                Role::Server => measuring && client_ended(one.pair),
                Role::Client => measuring,
            };
            one.end.is_some() && !expected
        });
        if let Some(why) = early.map(Program::describe_end) {
            self.fail(&why);
        }
    }

    /// Starts the client of each pair; in a hunt that of the next trial.
    pub(super) fn start_clients(&mut self, conductor: &mut Conductor<'_>) {
        let trial = self.hunting.as_mut().map(|hunting| {
            let trial = hunting.begin_trial()?;
            Some(hunting.words(&trial))
        });
        let trial = match trial {
            // The hunt is over.
            Some(None) => return self.end_programs(conductor),
            Some(Some(trial)) => Some(trial),
            None => None,
        };
        if trial.is_some() {
            self.programs.retain(|one| one.role == Role::Server);
        }
        self.enter(conductor, Stage::Arming, SET_UP_NS);
        let plan = conductor.plan;
        let of_trial = self.point(conductor).and_then(|point| Some(&point.search.as_ref()?.trial));
        for (place, pair) in plan.pairs.iter().enumerate() {
            let (Some(mut reached), Some(work), Some(host)) = (
                self.ways.to(place),
                self.work(conductor, place),
                conductor.hosts.id(&pair.client),
            ) else {
                continue;
            };
            if conductor.hosts.is_lost(host) {
                self.fail(&format!("{} was lost before its client began", pair.client));
                break;
            }
            if trial.is_some() {
                self.start.await_new_clock(conductor.fleet, host);
            }
            let mut client = &work.client;
            if let (Some(words), Some(of_trial)) = (&trial, of_trial) {
                (client, reached.trial) = (of_trial, words.clone());
            }
            self.start(conductor, (place, pair.number), Role::Client, host, client, &reached);
        }
        self.advance(conductor);
    }

    /// Names the start to all clients that wait for it.
    fn start_load(&mut self, conductor: &mut Conductor<'_>) {
        let planned_ns = match &self.hunting {
            Some(hunting) => hunting.longest_ns(),
            None => self.point(conductor).map_or(0, Point::most_ns),
        };
        let planned_ns = planned_ns.saturating_mul(2);
        self.enter(conductor, Stage::Measuring, planned_ns.saturating_add(OVERTIME_NS));
        let waiting = || self.programs.iter().filter(|one| one.ready == Ready::Armed);
        if waiting().next().is_none() {
            return;
        }
        let clocks: BTreeMap<HostId, HostClock> = waiting()
            .filter_map(|one| Some((one.host, conductor.hosts.clock(one.host)?)))
            .collect();
        let now = conductor.fleet.now();
        let start_ns = start_time(now.utc_ns, clocks.values().map(|clock| clock.round_trip_ns));
        for program in waiting() {
            let clock = clocks.get(&program.host);
            let at_ns = clock.map_or(start_ns, |clock| on_host(start_ns, clock.offset));
            let line = format!("{}\n", render_start(at_ns));
            conductor.fleet.write(program.host, program.task, &line, true);
        }
        self.start.name(start_ns, clocks, now);
    }

    pub(super) fn end_programs(&mut self, conductor: &mut Conductor<'_>) {
        self.enter(conductor, Stage::Ending, END_NS);
        for program in self.programs.iter().filter(|one| one.end.is_none()) {
            conductor.fleet.stop(program.host, program.task, GRACE);
        }
    }

    fn enter(&mut self, conductor: &Conductor<'_>, stage: Stage, limit_ns: u64) {
        self.stage = stage;
        self.until_ns = conductor.fleet.now().monotonic_ns.saturating_add(limit_ns);
    }

    /// What the attempt came to.
    pub(super) fn finish(
        mut self,
        conductor: &Conductor<'_>,
        attempt: u32,
        began_ns: i64,
    ) -> CellEnd {
        let is_known = |one: &&Program| one.role == Role::Client && !self.start.was_set(one.host);
        let started = self.programs.iter().filter(is_known).filter_map(|one| {
            let clock = self.start.clock(one.host).or_else(|| conductor.hosts.clock(one.host));
            Some(Skewed { started_ns: one.started_ns?, clock: clock? })
        });
        let started: Vec<Skewed> = started.collect();
        // A trial whose loads began too far apart has told so by its verdict.
        let is_hunt = self.hunting.is_some();
        self.conclude_hunt();
        let (mut exit_code, mut reasons, mut documents) = (0, Vec::new(), Vec::new());
        for program in self.programs.iter_mut().filter(|one| one.role == Role::Client) {
            let code = program.end.as_ref().and_then(|end| end.code).unwrap_or(1);
            exit_code = exit_code.max(u8::try_from(code).unwrap_or(u8::MAX));
            let host = conductor.hosts.name(program.host).to_owned();
            match program.run.take() {
                Some(run) => {
                    let doubts = doubts(&run).into_iter();
                    // Pairs of one hunt have the same.
                    let new: Vec<String> = doubts.filter(|one| !reasons.contains(one)).collect();
                    reasons.extend(new);
                    let is_failed =
                        matches!(run.status.outcome, Outcome::Failed | Outcome::Interrupted);
                    if is_failed && self.failure.is_none() {
                        let why = run.status.message.clone();
                        let why = why.unwrap_or_else(|| "its client was interrupted".to_owned());
                        self.failure = Some(format!("pair {} on {host}: {why}", program.pair));
                    }
                    let (pair, role) = (program.pair, program.role);
                    let ahead_ns = conductor.hosts.offset_ns(program.host);
                    documents.push(Document { pair, host, ahead_ns, role, run });
                }
                None if self.failure.is_none() => self.failure = Some(program.describe_end()),
                None => {}
            }
        }
        self.add_documents_of_servers(conductor, &mut documents);
        let interval_ns = documents.iter().map(|one| one.run.plan.workload.interval_ns);
        let interval_ns = interval_ns.min().filter(|_| !is_hunt);
        let (skew, doubt) = judge_skew(&started, self.start.at_ns, interval_ns, &mut self.notes);
        reasons.extend(doubt);
        reasons.extend(self.start.doubts(interval_ns, |host| conductor.hosts.name(host)));
        // Sums of fewer pairs are no samples of the same thing.
        reasons.extend(self.left_out);
        let status = match (&self.failure, reasons.is_empty()) {
            (Some(_), _) => CellStatus::Failed,
            (None, false) => CellStatus::Untrusted,
            (None, true) => CellStatus::Done,
        };
        CellEnd {
            position: self.position,
            cell: self.cell,
            attempt,
            status,
            reason: self.failure.unwrap_or_else(|| reasons.join("; ")),
            exit_code,
            span_ns: (began_ns, conductor.fleet.now().utc_ns),
            skew,
            documents,
            notes: self.notes,
        }
    }

    /// What a server wrote adds series; the client's document has the result.
    fn add_documents_of_servers(
        &mut self,
        conductor: &Conductor<'_>,
        documents: &mut Vec<Document>,
    ) {
        for program in self.programs.iter_mut().filter(|one| one.role == Role::Server) {
            let host = conductor.hosts.name(program.host).to_owned();
            let (pair, role) = (program.pair, program.role);
            let of_client = documents.iter().find(|document: &&Document| document.pair == pair);
            let run_id = of_client.map(|document| document.run.run_id.clone());
            let runs = program.earlier.drain(..).map(Box::new).chain(program.run.take());
            let same = runs.into_iter().find(|run| Some(&run.run_id) == run_id.as_ref());
            let ahead_ns = conductor.hosts.offset_ns(program.host);
            documents.extend(same.map(|run| Document { pair, host, ahead_ns, role, run }));
        }
    }
}
