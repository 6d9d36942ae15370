//! `hunt`: the highest rate that keeps limits, trial by trial.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::{Lease, random_run_id};
use linerate_measure::hunt::{
    Goal, Hunt, HuntRecord, Judge, Outcome as Found, Step, Trial, TrialRecord, TrialVerdict,
    estimate, observe, observe_answers, totals,
};
use linerate_measure::record::Record;
use linerate_measure::run::{Draft, Status, exit};
use linerate_measure::trust::Trust;
use linerate_measure::{Outcome, Plan, Run};

use super::measure::{Keys, access_of, read_keys};
use super::report::PageFile;
use super::{Failure, dry_run, keep, open_destination, open_store};
use crate::args::HuntArgs;
use crate::output::{
    Destination, Narration, NdjsonPrinter, Printer, Style, narrate, render_error_record,
    render_hunt_begin, render_json, render_outcome, render_trial, render_trial_head,
};
use crate::planning::{goal_from_args, trial_plan};

/// Events of a trial that may wait; 20 intervals a second of both ends, and a few more.
const EVENTS_WAITING_MAX: usize = 4096;
/// How long a wait lasts before it is seen whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Searches, prints trials as they end, then the result.
pub(super) fn hunt(args: &HuntArgs, cancel: &Cancel) -> Result<u8, Failure> {
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
    let mut searched =
        Search { args, keys, cancel, lease: Lease::new() }.run(hunt, &plan, &mut report);
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
}

impl Search<'_> {
    /// Runs trials until the hunt is over, and returns the document.
    fn run(mut self, mut hunt: Hunt, plan: &Plan, report: &mut HuntReport) -> Run {
        let (mut trials, mut best) = (Vec::new(), Best::default());
        loop {
            let trial = match hunt.poll_step() {
                Step::Done(outcome) => {
                    return concluded(&hunt, trials, best, (outcome, None), plan);
                }
                Step::Run(trial) => trial,
            };
            let (run, record) = self.try_rate(hunt.goal(), &trial_plan(plan, &trial), &trial);
            if run.status.outcome == Outcome::Failed {
                let status = run.status.clone();
                best.keep_failed(run);
                let outcome = hunt.interrupted();
                return concluded(&hunt, trials, best, (outcome, Some(status)), plan);
            }
            if self.cancel.requested() {
                best.keep(run, None);
                let outcome = hunt.interrupted();
                return concluded(&hunt, trials, best, (outcome, None), plan);
            }
            report.tell(hunt.goal(), &record);
            best.keep(run, Some(&record));
            hunt.handle_verdict(record.verdict, record.offered, record.arrived);
            trials.push(record);
        }
    }

    /// One trial: it ends as soon as its verdict is certain.
    fn try_rate(&mut self, goal: &Goal, plan: &Plan, trial: &Trial) -> (Run, TrialRecord) {
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
        let mut record = TrialRecord::new(goal, trial, judge.finish(), &judge.seen());
        record.started_utc_ns = run.environment.started_utc_ns;
        let datagrams = run.summary.datagrams.unwrap_or_default();
        record.items.dropped_by_socket = datagrams.dropped_by_socket;
        (run, record)
    }
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
                let seen =
                    [observe(&plan.workload, &sample), observe_answers(&plan.workload, &sample)];
                seen.iter().flatten().for_each(|observation| judge.handle(observation));
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

/// The run whose samples and reports the result has.
#[derive(Default)]
struct Best {
    run: Option<Run>,
    trial: Option<u32>,
    passed_rate: Option<u64>,
}

impl Best {
    fn keep(&mut self, run: Run, record: Option<&TrialRecord>) {
        let passed = record.filter(|record| record.verdict == TrialVerdict::Pass);
        let is_better = match (passed, self.passed_rate) {
            (Some(record), Some(rate)) => record.rate >= rate,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => true,
        };
        if is_better {
            self.run = Some(run);
            self.trial = record.map(|record| record.number);
            self.passed_rate = passed.map(|record| record.rate);
        }
    }

    fn keep_failed(&mut self, run: Run) {
        if self.run.is_none() {
            self.run = Some(run);
        }
    }
}

/// The document of a hunt. `failed`: how a trial failed that could not be measured.
fn concluded(
    hunt: &Hunt,
    trials: Vec<TrialRecord>,
    best: Best,
    (outcome, failed): (Found, Option<Status>),
    plan: &Plan,
) -> Run {
    let mut run = best.run.unwrap_or_else(|| {
        let draft = Draft::new(random_run_id(), plan.clone());
        draft.into_run(Outcome::Interrupted, exit::INTERRUPTED, None)
    });
    let record =
        HuntRecord { goal: hunt.goal().clone(), trials, outcome, reported_trial: best.trial };
    let notes = std::mem::take(&mut run.status.notes);
    let reasons = std::mem::take(&mut run.status.reasons);
    let (end, exit_code, verdict) = match (outcome, Trust::of(&reasons)) {
        (Found::Interrupted { .. }, verdict) => (Outcome::Interrupted, exit::INTERRUPTED, verdict),
        (Found::Unsteady { .. } | Found::SenderLimited { .. } | Found::SenderStalls { .. }, _)
        | (_, Trust::Invalid) => (Outcome::Untrustworthy, exit::UNTRUSTWORTHY, Trust::Invalid),
        (_, verdict) => (Outcome::Complete, exit::VALID, verdict),
    };
    run.status = failed.unwrap_or_else(|| Status {
        outcome: end,
        exit_code,
        verdict: Some(verdict),
        reasons,
        message: (exit_code != exit::VALID).then(|| render_outcome(&record)),
        unmet: Vec::new(),
        notes,
    });
    run.hunt = Some(Box::new(record));
    run
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
                    let sentence = render_outcome(record);
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
