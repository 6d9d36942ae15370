//! `loaded`: latency while the path is idle, and while it is filled in each direction and in both.
//!
//! The tests of a phase are sessions with the server beside each other. Each is set up and waits, armed, until all are;
//! then all begin. The first session of each phase is of one conversation, which goes on through all phases and holds a
//! place at the server: the other sessions run within its lease.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::{LaterStart, Lease, run_within};
use linerate_measure::loaded::{Ended, Loaded, LoadedPlan, Part, PartRun, Phase, Watch};
use linerate_measure::{Outcome, Plan, Run};

use super::measure::{Keys, access_of, read_keys};
use super::{Failure, dry_run, keep, open_destination, open_store};
use crate::args::{KeyArgs, LoadedArgs};
use crate::output::{Narration, Style, narrate, render_json, render_loaded, render_phase_begin};
use crate::planning::{PhasePlans, plans_from_loaded, tags_of};
use crate::start_time::utc_now_ns;

/// Events of a test that may wait; 10 intervals a second of both ends, and a few more.
const EVENTS_WAITING_MAX: usize = 4096;
/// How often the tests of a phase are looked at, and the place at the server is kept.
const LOOK: Duration = Duration::from_millis(20);
/// How often a phase is judged by its intervals: the judgement goes through all of them.
const JUDGE: Duration = Duration::from_secs(1);

/// Measures the phases one after the other, and prints what was measured, whatever happened.
pub(super) fn measure_under_load(args: &LoadedArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let (asked, phases) = plans_from_loaded(args)?;
    let output = &args.output;
    if output.dry_run {
        let parts = phases.into_iter().flat_map(|phase| phase.parts);
        let plans: Vec<Plan> = parts.map(|(_, plan)| plan).collect();
        return dry_run::print_steps(&plans, output.output.as_deref(), cancel);
    }
    let keys = read_keys(&args.connect.keys, cancel)?;
    let mut destination = open_destination(output.output.as_deref(), cancel)?;
    let keeper = open_store(output.store.as_deref(), cancel)?;
    let conductor = Conductor {
        given: &args.connect.keys,
        keys,
        quiet: output.quiet,
        user: cancel,
        lease: Mutex::new(Lease::shared()),
    };
    let server = phases.first().and_then(|phase| phase.parts.first());
    let server = server.map(|(_, plan)| (plan.host.clone(), plan.port)).unwrap_or_default();
    let (measured, failure) = conductor.measure_all(&phases, &asked);
    // Whoever waits for the place has it while the result is written.
    drop(conductor);
    let mut loaded = Loaded::of(server, asked, measured);
    if let Some(failure) = failure {
        let (exit_code, message) = failure.into_parts();
        loaded.status.fail(exit_code, message);
    }
    (loaded.title, loaded.tags) = (output.title.clone(), tags_of(output)?);
    if output.strict {
        loaded.status.be_strict();
    }
    let mut unkept = None;
    for one in loaded.phases.iter().flat_map(|phase| &phase.runs) {
        keep(keeper.as_ref(), &one.run, "linerate loaded", &mut unkept);
    }
    let style = match output.output {
        Some(_) => Style::Plain,
        None => Style::of(&std::io::stdout()),
    };
    let text = match output.json {
        true => render_json(&loaded) + "\n",
        false => render_loaded(&loaded, style),
    };
    destination.put(&text)?;
    destination.commit().map_err(Failure::here)?;
    let status = &loaded.status;
    if let Some(message) = status.message.as_ref().filter(|_| status.outcome == Outcome::Failed) {
        narrate(&format!("{} {message}\n", Style::of(&std::io::stderr()).warning("linerate:")));
    }
    unkept.map_or(Ok(status.exit_code), Err)
}

/// Makes the tests of phases.
struct Conductor<'a> {
    given: &'a KeyArgs,
    keys: Keys,
    quiet: bool,
    user: &'a Cancel,
    /// Holds the place at the server. The thread of a phase's first test has it as long as that test runs.
    lease: Mutex<Lease>,
}

/// A test that runs beside others.
struct Session<'scope, 'plan> {
    part: Part,
    plan: &'plan Plan,
    start: LaterStart,
    events: Receiver<Event>,
    running: ScopedJoinHandle<'scope, Run>,
}

impl Conductor<'_> {
    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the place while other tests of a phase go on than the first.
    fn keep_lease(&self) {
        if let Ok(mut lease) = self.lease.try_lock() {
            lease.keep();
        }
    }

    /// Measures the phases until one fails or the user wants to stop. An error of this end leaves the phases before it.
    fn measure_all(
        &self,
        phases: &[PhasePlans],
        asked: &LoadedPlan,
    ) -> (Vec<Phase>, Option<Failure>) {
        let mut measured = Vec::new();
        for phase in phases {
            if self.user.requested() {
                break;
            }
            if !self.quiet {
                narrate(&render_phase_begin(asked.longest_ns, asked.idle_ns, phase.name));
            }
            let one = match self.measure_phase(phase) {
                Ok(one) => one,
                Err(failure) => return (measured, Some(failure)),
            };
            let is_last = matches!(one.ended, Ended::Failed | Ended::Interrupted);
            measured.push(one);
            if is_last {
                break;
            }
        }
        (measured, None)
    }

    fn measure_phase(&self, phase: &PhasePlans) -> Result<Phase, Failure> {
        let stop = Cancel::default();
        thread::scope(|scope| {
            let mut narration = Narration::new(self.quiet, false);
            let mut sessions = Vec::new();
            let opened = self.open_all(phase, scope, &stop, (&mut sessions, &mut narration));
            let ended = match opened {
                Ok(true) => {
                    // A start that has passed is a start at once.
                    sessions.iter().for_each(|session| session.start.name(utc_now_ns()));
                    self.watch(&sessions, &stop, &mut narration)
                }
                // Those that stand end without having begun.
                Ok(false) | Err(_) => {
                    stop.request();
                    Ended::Interrupted
                }
            };
            let runs = sessions.into_iter().map(|session| {
                let run = session.running.join();
                let run = run.map_err(|_| Failure::here("a test's thread failed by a defect"))?;
                Ok(PartRun { part: session.part, run })
            });
            let runs = runs.collect::<Result<Vec<PartRun>, Failure>>();
            opened?;
            let runs = runs?;
            // A server that knows no leases told each test of the others.
            let siblings = match self.lease().token().is_known() {
                true => 0,
                false => u32::try_from(runs.len().saturating_sub(1)).unwrap_or(u32::MAX),
            };
            Ok(Phase::of(phase.name, ended, siblings, runs))
        })
    }

    /// Sets up all tests of a phase, one after the other. False: one can't be made, or the user wants to stop.
    fn open_all<'scope, 'env>(
        &'env self,
        phase: &'env PhasePlans,
        scope: &'scope Scope<'scope, 'env>,
        stop: &'env Cancel,
        (sessions, narration): (&mut Vec<Session<'scope, 'env>>, &mut Narration),
    ) -> Result<bool, Error> {
        let token = self.lease().token();
        for (index, (part, plan)) in phase.parts.iter().enumerate() {
            let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
            let start = LaterStart::new()?;
            let later = start.clone();
            // Known from the first test's admission on. Its thread has the lease meanwhile.
            let token = (index > 0).then(|| token.clone());
            let run = move || {
                let access = access_of(plan, self.given, &self.keys, &sink);
                match token {
                    None => self.lease().run_when_told(plan, &access, &later, &sink, stop),
                    Some(token) => run_within(&token, plan, &access, &later, &sink, stop),
                }
            };
            let running = thread::Builder::new()
                .spawn_scoped(scope, run)
                .map_err(|error| Error::no_thread(&error))?;
            let session = Session { part: *part, plan, start, events, running };
            let is_armed = self.await_armed(&session, narration);
            sessions.push(session);
            if !is_armed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until all flows of a test stand. False: it has ended, or the user wants to stop.
    fn await_armed(&self, session: &Session<'_, '_>, narration: &mut Narration) -> bool {
        loop {
            match session.events.recv_timeout(LOOK) {
                Ok(Event::Armed { .. }) => return true,
                Ok(event) => narrate(&narration.render_event(&event)),
                Err(RecvTimeoutError::Timeout) if self.user.requested() => return false,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Follows the tests to their end, which comes early where they have told what they can tell.
    fn watch(
        &self,
        sessions: &[Session<'_, '_>],
        stop: &Cancel,
        narration: &mut Narration,
    ) -> Ended {
        let (mut watch, mut ended) = (Watch::default(), Ended::TimeUp);
        let mut judged = Instant::now();
        loop {
            let is_over = sessions.iter().all(|session| session.running.is_finished());
            for session in sessions {
                for event in session.events.try_iter() {
                    match event {
                        Event::Sample(sample) => {
                            watch.handle_sample(session.part, &session.plan.workload, &sample);
                        }
                        event => narrate(&narration.render_event(&event)),
                    }
                }
            }
            if is_over {
                return ended;
            }
            if !stop.requested() {
                if self.user.requested() {
                    ended = Ended::Interrupted;
                    stop.request();
                } else if judged.elapsed() >= JUDGE {
                    judged = Instant::now();
                    if watch.is_done() {
                        ended = Ended::Steady;
                        stop.request();
                    }
                }
            }
            self.keep_lease();
            thread::sleep(LOOK);
        }
    }
}
