//! `stream`, `rr` and `connect`: plans in, runs out.

use std::thread;

use linerate_engine::LaterStart;
use linerate_engine::access::{Access, Authority, SharedKey};
use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Sink};
use linerate_measure::limits::Inquiry;
use linerate_measure::repeats::{Asked, RepeatedRun, Repeats};
use linerate_measure::run::exit;
use linerate_measure::{Outcome, Plan, Run};

use super::report::PageFile;
use super::{Failure, await_file, dry_run, keep, open_destination, open_store, print};
use crate::args::{ConnectArgs, KeyArgs, OutputArgs, RepeatArgs};
use crate::certificates::read_authority;
use crate::known_servers::{Trust, trust_on_first_use, trust_only};
use crate::output::{
    Expected, FullScreen, Reporter, Turn, narrate, render_error_record, render_inquiry,
};
use crate::shared_key::read_shared_key;
use crate::start_time::{StartAt, read_start};
use crate::store::{Keeper, command_of};

/// Events that may wait for a slow terminal; more are dropped and counted.
const EVENTS_WAITING_MAX: usize = 4096;

/// Said on standard error, and of every result.
const INSECURE: &str = "INSECURE (--insecure): the server's key was not checked, and another machine \
     may have answered";

/// What a client was given beside its plan.
#[derive(Clone)]
pub(super) struct Keys {
    shared: Option<SharedKey>,
    authority: Option<Authority>,
}

/// What a command was given beside its plans.
pub(super) struct Given<'a> {
    keys: &'a KeyArgs,
    start: Option<StartAt>,
    repeats: Option<Asked>,
    /// Whether further runs explain the losses that limited one.
    explains: bool,
    output: &'a OutputArgs,
}

impl<'a> Given<'a> {
    /// What the flags of a command that measures say.
    pub(super) fn of(connect: &'a ConnectArgs, repeat: RepeatArgs, output: &'a OutputArgs) -> Self {
        let repeats = repeat.asked();
        Self { keys: &connect.keys, start: connect.start_at, repeats, explains: false, output }
    }

    /// Likewise, with further runs that explain losses, if asked for.
    pub(super) fn explaining(self, explains: bool) -> Self {
        Self { explains, ..self }
    }

    /// What a command with plans of its own says.
    pub(super) fn of_plans(keys: &'a KeyArgs, output: &'a OutputArgs) -> Self {
        Self { keys, start: None, repeats: None, explains: false, output }
    }
}

/// Makes the runs of these plans one after the other and reports them. The exit code is the worst
/// of theirs.
pub(super) fn measure(
    plans: Result<Vec<Plan>, Failure>,
    given: &Given<'_>,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let output = given.output;
    let measured = plans.and_then(|plans| {
        if given.repeats.is_some() && plans.len() > 1 {
            return Err(Failure::usage(
                "--repeat and --precision make runs of one plan, and each --size is another: give one --size",
            ));
        }
        if output.dry_run {
            return dry_run::print_steps(&plans, output.output.as_deref(), cancel);
        }
        let start = match given.start {
            Some(StartAt::Named) => Some(start_from_stdin(&plans)?),
            Some(StartAt::Time(_)) | None => None,
        };
        measure_all(&plans, given, start.as_ref(), cancel)
    });
    if let Err(failure) = &measured
        && let Some(text) = &failure.text
        && output.ndjson
        && output.output.is_none()
    {
        print(&render_error_record(failure.exit_code, text))?;
    }
    measured
}

/// The start that a line of standard input will name.
fn start_from_stdin(plans: &[Plan]) -> Result<LaterStart, Failure> {
    if plans.len() > 1 {
        return Err(Failure::usage(
            "--start-at - names one start, and each --size is a run of its own: give one --size",
        ));
    }
    let start = LaterStart::new()?;
    let named = start.clone();
    thread::Builder::new()
        .spawn(move || match read_start(std::io::stdin()) {
            Ok(utc_ns) => named.name(utc_ns),
            Err(why) => named.fail(format!("--start-at -: {why}")),
        })
        .map_err(|error| Error::no_thread(&error))?;
    Ok(start)
}

fn measure_all(
    plans: &[Plan],
    given: &Given<'_>,
    start: Option<&LaterStart>,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let output = given.output;
    let expected = match given.repeats {
        Some(_) => Expected::Repeats,
        None => Expected::Runs(plans.len()),
    };
    let keys = read_keys(given.keys, cancel)?;
    let destination = open_destination(output.output.as_deref(), cancel)?;
    let mut reporter = Reporter::for_flags(output, expected, destination, cancel);
    if output.live {
        reporter.take_screen(FullScreen::of_terminal().map_err(Failure::usage)?);
    }
    let keeper = open_store(output.store.as_deref(), cancel)?;
    let page = PageFile::open(output.report.as_deref(), cancel)?;
    let mut client = Client { given, keys, start, reporter, keeper, page, unkept: None, cancel };
    let exit_code = match (given.repeats, plans) {
        (Some(asked), [plan]) => client.repeat(plan, &asked),
        _ => client.run_each(plans),
    };
    client.reporter.close()?;
    client.page.write()?;
    tell_kept(client.keeper.as_ref(), output.store.is_some() && !output.quiet);
    client.unkept.map_or(Ok(exit_code), Err)
}

/// Makes runs, reports and keeps them.
struct Client<'a> {
    given: &'a Given<'a>,
    keys: Keys,
    start: Option<&'a LaterStart>,
    reporter: Reporter,
    keeper: Option<Keeper>,
    page: PageFile,
    /// Why a run was not kept.
    unkept: Option<Failure>,
    cancel: &'a Cancel,
}

impl Client<'_> {
    /// Makes a run of each plan. The exit code is the worst of theirs.
    fn run_each(&mut self, plans: &[Plan]) -> u8 {
        let mut exit_code = exit::VALID;
        let mut rest = plans;
        while let [plan, further @ ..] = rest {
            let number = plans.len() - further.len();
            let run = self.run(plan, Turn { number, of: plans.len(), at_most: false });
            exit_code = exit_code.max(run.status.exit_code);
            rest = match run.status.outcome {
                Outcome::Interrupted => &[],
                // Where one can't be measured, the next can't either, unless another server is asked.
                Outcome::Failed if further.iter().all(|next| has_same_server(next, plan)) => &[],
                _ => further,
            };
        }
        exit_code
    }

    /// Makes runs of one plan until there are enough, or one can't be measured, and reports what they come to.
    fn repeat(&mut self, plan: &Plan, asked: &Asked) -> u8 {
        let (mut runs, mut figures) = (Vec::new(), Vec::new());
        while asked.wants_another(&figures) {
            let (number, at_most) = (runs.len() + 1, asked.precision.is_some());
            let run = self.run(plan, Turn { number, of: asked.most_runs, at_most });
            let repeated = RepeatedRun::of(&run);
            figures.push(repeated.figures.clone());
            runs.push(repeated);
            let is_last = matches!(run.status.outcome, Outcome::Failed | Outcome::Interrupted);
            if is_last || self.cancel.requested() {
                break;
            }
        }
        let mut repeats = Repeats::of(asked, runs);
        if self.given.output.strict {
            repeats.status.be_strict();
        }
        self.reporter.handle_repeats(&repeats);
        repeats.status.exit_code
    }

    fn run(&mut self, plan: &Plan, turn: Turn) -> Run {
        self.reporter.begin(plan, turn);
        let (given, keys) = (self.given.keys, &self.keys);
        let (mut run, dropped) =
            measure_one(plan, given, keys, self.start, &mut self.reporter, self.cancel);
        if self.given.output.strict {
            run.status.be_strict();
        }
        run.status.notes.extend(self.reporter.cost_note());
        if self.given.explains && run.status.outcome != Outcome::Failed {
            self.explain(&mut run);
        }
        self.reporter.handle_run(&run, dropped);
        keep(self.keeper.as_ref(), &run, command_of(plan), &mut self.unkept);
        self.page.push(&run);
        run
    }

    /// Makes the runs that tell what the losses of a run were. They are neither shown nor kept: what they sent and lost
    /// stands in the explanation.
    fn explain(&mut self, run: &mut Run) {
        let mut inquiry = Inquiry::of(run);
        while let Some(plan) = inquiry.next_plan() {
            if !self.given.output.quiet {
                self.reporter.narrate(&render_inquiry(&plan));
            }
            let access = access_of(&plan, self.given.keys, &self.keys, &Sink::none());
            inquiry.handle_run(&linerate_engine::run(&plan, &access, &Sink::none(), self.cancel));
        }
        run.summary.explanation = Some(Box::new(inquiry.explanation()));
    }
}

/// Tells who asked where the runs are.
fn tell_kept(keeper: Option<&Keeper>, asked: bool) {
    if let Some(keeper) = keeper.filter(|_| asked) {
        narrate(&format!("linerate: kept in {}\n", keeper.path().display()));
    }
}

/// Reads the files of keys that the flags name, and says where none is checked.
pub(super) fn read_keys(given: &KeyArgs, cancel: &Cancel) -> Result<Keys, Failure> {
    let (key, ca) = (given.key.clone(), given.ca.clone());
    let keys = await_file(cancel, move || {
        let shared = key.as_deref().map(read_shared_key).transpose().map_err(Failure::here)?;
        let authority = ca.as_deref().map(read_authority).transpose().map_err(Failure::here)?;
        Ok(Keys { shared, authority })
    })?;
    if given.insecure {
        narrate(&format!("linerate: {INSECURE}\n"));
    }
    Ok(keys)
}

/// Whom the client of a plan trusts, and what it shows.
pub(super) fn access_of(plan: &Plan, given: &KeyArgs, keys: &Keys, sink: &Sink) -> Access {
    let trust: Trust = match &given.server_key {
        Some(pinned) => trust_only(pinned.clone()),
        // Whose it is was asked before, or not at all.
        None if keys.authority.is_some() || given.insecure => Box::new(|_| Ok(())),
        None => trust_on_first_use(&plan.host, plan.port, sink.clone()),
    };
    let doubt = given.insecure.then(|| INSECURE.to_owned());
    let Keys { shared, authority } = keys.clone();
    Access { trust, authority, doubt, shared_key: shared }
}

fn has_same_server(one: &Plan, other: &Plan) -> bool {
    (&one.host, one.port) == (&other.host, other.port)
}

/// A run, and the events that its listener missed.
fn measure_one(
    plan: &Plan,
    given: &KeyArgs,
    keys: &Keys,
    start: Option<&LaterStart>,
    listener: &mut Reporter,
    cancel: &Cancel,
) -> (Run, u64) {
    let (sink, events) = Sink::bounded(EVENTS_WAITING_MAX);
    let access = access_of(plan, given, keys, &sink);
    thread::scope(|scope| {
        let print = move || listener.follow(&events);
        // Where the machine has no thread left, the run has none either, and says so.
        let printing = thread::Builder::new().spawn_scoped(scope, print);
        let run = match start {
            Some(start) => linerate_engine::run_when_told(plan, &access, start, &sink, cancel),
            None => linerate_engine::run(plan, &access, &sink, cancel),
        };
        let dropped = sink.dropped();
        // Closes the channel, and the printing ends with what is still in it.
        drop((sink, access));
        // It ends by a panic only where a printer has a defect; the run is shown all the same.
        let _ = printing.map(|printing| printing.join());
        (run, dropped)
    })
}
