//! `hunt`: the highest rate that keeps limits, trial by trial.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::{Lease, random_run_id};
use linerate_measure::hunt::{
    Goal, Hunt, Judge, Outcome as Found, Reported, Seen, Step, Trial, TrialRecord, TrialVerdict,
    estimate, observations, totals,
};
use linerate_measure::record::Record;
use linerate_measure::run::{Draft, Status, exit};
use linerate_measure::{Outcome, Plan, Run};

use super::measure::{Given, Keys, access_of, measure, read_keys};
use super::report::PageFile;
use super::{Failure, dry_run, keep, open_destination, open_store};
use crate::args::{HuntArgs, RepeatArgs};
use crate::output::{
    Destination, Narration, NdjsonPrinter, Printer, Style, narrate, render_error_record,
    render_hunt_begin, render_json, render_trial, render_trial_head,
};
use crate::planning::{goal_from_args, plan_of_one_trial, trial_plan};

/// Events of a trial that may wait; 20 intervals a second of both ends, and a few more.
const EVENTS_WAITING_MAX: usize = 4096;
/// How long a wait lasts before it is seen whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Between two requests to a busy server: so many looks, and so many times.
const LOOKS_OF_WAIT: u32 = 10;
const BUSY_WAITS_MAX: u32 = 60;

/// Searches, prints trials as they end, then the result.
pub(super) fn hunt(args: &HuntArgs, cancel: &Cancel) -> Result<u8, Failure> {
    if args.trial.is_some() {
        let plans = plan_of_one_trial(args).map(|plan| vec![plan]).map_err(Failure::from);
        return measure(
            plans,
            &Given::of(&args.connect, RepeatArgs::default(), &args.output),
            cancel,
        );
    }
    let hunted = hunt_and_print(args, cancel);
    if let Err(failure) = &hunted
        && let Some(text) = &failure.text
        && args.output.ndjson
        && args.output.output.is_none()
    {
        super::print(&render_error_record(failure.exit_code, text))?;
    }
    hunted
}

fn hunt_and_print(args: &HuntArgs, cancel: &Cancel) -> Result<u8, Failure> {
    if args.output.live {
        return Err(Failure::usage(
            "--live shows one run, and a hunt makes many: leave --live out",
        ));
    }
    let (goal, plan) = goal_from_args(args)?;
    let hunt = Hunt::new(goal);
    if args.output.dry_run {
        let Step::Run(trial) = hunt.poll_step() else { return Ok(exit::VALID) };
        let output = args.output.output.as_deref();
        return dry_run::print_steps(&[trial_plan(&plan, &trial)], output, cancel);
    }
    let keys = read_keys(&args.connect.keys, cancel)?;
    let destination = open_destination(args.output.output.as_deref(), cancel)?;
    let keeper = open_store(args.output.store.as_deref(), cancel)?;
    let mut page = PageFile::open(args.output.report.as_deref(), cancel)?;
    let mut report = HuntReport::new(args, destination, cancel);
    report.begin(hunt.goal());
    let mut searched = {
        let lease = Lease::new();
        Search { args, keys, cancel, lease, is_limited: false }.run(hunt, &plan, &mut report)
    };
    let mut unkept = None;
    if args.output.strict {
        searched.status.be_strict();
    }
    keep(keeper.as_ref(), &searched, "linerate hunt", &mut unkept);
    page.push(&searched);
    let exit_code = report.end(&searched)?;
    page.write()?;
    unkept.map_or(Ok(exit_code), Err)
}

/// Trials on one lease, one after the other.
struct Search<'a> {
    args: &'a HuntArgs,
    keys: Keys,
    cancel: &'a Cancel,
    lease: Lease,
    /// The server allows no test that is longer than the plan's time.
    is_limited: bool,
}

impl Search<'_> {
    /// Runs trials until the hunt is over, and returns the document.
    fn run(mut self, mut hunt: Hunt, plan: &Plan, report: &mut HuntReport) -> Run {
        let (mut trials, mut reported) = (Vec::new(), Reported::default());
        loop {
            let trial = match hunt.poll_step() {
                Step::Done(outcome) => {
                    return concluded(&hunt, trials, reported, (outcome, None), plan);
                }
                Step::Run(trial) => trial,
            };
            let (run, judge) =
                self.try_until_admitted(hunt.goal(), plan, trial, !trials.is_empty());
            if run.status.outcome == Outcome::Failed {
                let status = run.status.clone();
                reported.keep_failed(run);
                let outcome = hunt.interrupted();
                return concluded(&hunt, trials, reported, (outcome, Some(status)), plan);
            }
            if self.cancel.requested() {
                reported.keep_cut_off(run);
                let outcome = hunt.interrupted();
                return concluded(&hunt, trials, reported, (outcome, None), plan);
            }
            let seen = judge.seen();
            let verdict = hunt.weigh(judge.finish(), &seen);
            let record = record_of(hunt.goal(), &trial, verdict, &seen, &run);
            report.tell(hunt.goal(), &record);
            reported.keep(run, &record);
            hunt.handle_verdict(record.verdict, record.offered, record.arrived);
            trials.push(record);
        }
    }

    /// One trial. Between two trials another client may take the place at the server: a hunt that has begun waits for
    /// it to be free again. A server that allows no test so long as the verdict may need gets shorter ones.
    fn try_until_admitted(
        &mut self,
        goal: &Goal,
        plan: &Plan,
        mut trial: Trial,
        has_begun: bool,
    ) -> (Box<Run>, Judge) {
        let (mut waits, mut is_shortened) = (0, self.is_limited);
        loop {
            if is_shortened {
                trial.longest_ns = trial.longest_ns.min(goal.trial_ns);
            }
            let (run, judge) = self.try_rate(goal, &trial_plan(plan, &trial), &trial);
            let is_refused =
                run.status.outcome == Outcome::Failed && run.status.exit_code == exit::BUSY;
            if !is_refused || self.cancel.requested() {
                // What is admitted only when it is shorter is too long by the server's rule.
                self.is_limited |= is_shortened && waits == 0;
                return (run, judge);
            }
            if !is_shortened && trial.longest_ns > goal.trial_ns {
                is_shortened = true;
                continue;
            }
            if !has_begun || waits >= BUSY_WAITS_MAX {
                return (run, judge);
            }
            if waits == 0 && !self.args.output.quiet {
                let why = run.status.message.as_deref().unwrap_or("the server is busy");
                narrate(&format!("linerate: the hunt waits up to a minute: {why}\n"));
            }
            waits += 1;
            self.pause();
        }
    }

    /// Waits a while, and no longer than the user wants.
    fn pause(&self) {
        for _ in 0..LOOKS_OF_WAIT {
            if self.cancel.requested() {
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// One trial: it ends as soon as its verdict is certain.
    fn try_rate(&mut self, goal: &Goal, plan: &Plan, trial: &Trial) -> (Box<Run>, Judge) {
        let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
        let access = access_of(plan, &self.args.connect.keys, &self.keys, &sink);
        let (stop, user) = (Cancel::default(), self.cancel);
        let mut judge = Judge::new(goal, trial);
        let run = thread::scope(|scope| {
            let (stop, judge) = (&stop, &mut judge);
            let narration = Narration::new(self.args.output.quiet, false);
            let watch = move || watch(&events, plan, judge, narration, (stop, user));
            // Without a thread that watches, the trial takes its full time.
            let watching = thread::Builder::new().spawn_scoped(scope, watch);
            let run = self.lease.run(plan, &access, &sink, stop);
            drop((sink, access));
            let _ended = watching.map(|watching| watching.join());
            run
        });
        if !stop.requested()
            && let Some(totals) = totals(goal, &run)
        {
            judge.handle(&totals);
        }
        (Box::new(run), judge)
    }
}

/// What stands in the result of a trial.
fn record_of(
    goal: &Goal,
    trial: &Trial,
    verdict: TrialVerdict,
    seen: &Seen,
    run: &Run,
) -> TrialRecord {
    let mut record = TrialRecord::new(goal, trial, verdict, seen);
    record.started_utc_ns = run.environment.started_utc_ns;
    let datagrams = run.summary.datagrams.unwrap_or_default();
    record.items.dropped_by_socket = datagrams.dropped_by_socket;
    record.items.refused = datagrams.refused.filter(|refused| *refused > 0);
    record
}

/// Gives the judge what both ends count, and stops the trial when the verdict is certain or the user wants to stop.
fn watch(
    events: &Receiver<Event>,
    plan: &Plan,
    judge: &mut Judge,
    mut narration: Narration,
    (stop, user): (&Cancel, &Cancel),
) {
    loop {
        match events.recv_timeout(LOOK) {
            Ok(Event::Sample(sample)) => {
                let seen = observations(&plan.workload, &sample);
                seen.for_each(|observation| judge.handle(&observation));
                if judge.verdict().is_some() {
                    stop.request();
                }
            }
            Ok(event) => narrate(&narration.render_event(&event)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if user.requested() {
            stop.request();
        }
    }
}

/// The document of a hunt. `failed`: how a trial failed that could not be measured.
fn concluded(
    hunt: &Hunt,
    trials: Vec<TrialRecord>,
    reported: Reported,
    (outcome, failed): (Found, Option<Status>),
    plan: &Plan,
) -> Run {
    let run = reported.into_run(hunt.goal(), trials, outcome, None);
    let mut run = run.map_or_else(|| unbegun(plan), |run| *run);
    if let Some(failed) = failed {
        run.status = failed;
    }
    run
}

/// The document of a hunt without a trial.
fn unbegun(plan: &Plan) -> Run {
    let draft = Draft::new(random_run_id(), plan.clone());
    draft.into_run(Outcome::Interrupted, exit::INTERRUPTED, None)
}

/// Brings trials and the result to the user.
struct HuntReport {
    destination: Destination,
    cancel: Cancel,
    style: Style,
    format: Format,
    quiet: bool,
    trouble: Option<Failure>,
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Ndjson,
}

impl HuntReport {
    fn new(args: &HuntArgs, destination: Destination, cancel: &Cancel) -> Self {
        let to_file = args.output.output.is_some();
        let format = match (args.output.json, args.output.ndjson) {
            (true, _) => Format::Json,
            (_, true) => Format::Ndjson,
            _ => Format::Text,
        };
        Self {
            destination,
            cancel: cancel.clone(),
            style: if to_file { Style::Plain } else { Style::of(&std::io::stdout()) },
            format,
            quiet: args.output.quiet,
            trouble: None,
        }
    }

    fn begin(&mut self, goal: &Goal) {
        if !self.quiet {
            narrate(&render_hunt_begin(goal, estimate(goal)));
        }
        match self.format {
            _ if self.quiet => {}
            Format::Text => self.write(&render_trial_head(self.style)),
            Format::Json => narrate(&render_trial_head(Style::Plain)),
            Format::Ndjson => {}
        }
    }

    fn tell(&mut self, goal: &Goal, trial: &TrialRecord) {
        match self.format {
            Format::Text if !self.quiet => self.write(&render_trial(goal, trial, self.style)),
            Format::Ndjson => {
                let (version, trial) = (Record::VERSION, Box::new(trial.clone()));
                self.write(&Record::Trial { version, trial }.render());
            }
            Format::Text => {}
            Format::Json if !self.quiet => narrate(&render_trial(goal, trial, Style::Plain)),
            Format::Json => {}
        }
    }

    fn end(mut self, run: &Run) -> Result<u8, Failure> {
        let exit_code = run.status.exit_code;
        match self.format {
            Format::Json => self.write(&(render_json(run) + "\n")),
            Format::Ndjson => {
                let text = NdjsonPrinter::default().render_run(run, 0);
                self.write(&text);
            }
            Format::Text => {
                if let Some(record) =
                    run.hunt.as_deref().filter(|_| run.status.outcome != Outcome::Failed)
                {
                    let sentence = record.describe();
                    self.write(&format!("{}\n", self.style.bold(&sentence)));
                }
                let notes = run.status.notes.iter().filter(|_| !self.quiet);
                notes.for_each(|note| narrate(&format!("linerate: note: {note}\n")));
            }
        }
        narrate(&Narration::new(self.quiet, false).render_run(run, 0));
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        self.destination.commit().map_err(Failure::here)?;
        Ok(exit_code)
    }

    fn write(&mut self, text: &str) {
        if self.trouble.is_none()
            && let Err(trouble) = self.destination.put(text)
        {
            self.trouble = Some(trouble.into());
            self.cancel.request();
        }
    }
}
