//! What each command does.

mod agent;
mod compare;
mod dry_run;
mod generate;
mod help;
mod hosts;
mod hunt;
mod kubernetes;
mod link;
mod loaded;
mod man_pages;
pub(crate) mod matrix;
mod measure;
mod own_machine;
mod proxy;
mod report;
mod results;
mod run;
mod serve;
mod web;

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

use clap::Parser;
use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_measure::Run;
use linerate_measure::run::exit;

use crate::args::{Cli, Command};
use crate::completions::complete;
use crate::habits;
use crate::output::{Destination, Unwritten, narrate};
use crate::personality;
use crate::planning::{plans_from_connect, plans_from_media, plans_from_rr, plans_from_stream};
use crate::signals::{stop_on_signals, unless_stopped};
use crate::store::{self, Keeper};

/// Does what the command line says; the exit code.
pub(crate) fn perform(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(exit_code) = agent::become_child_of_agent(&arguments) {
        return exit_code;
    }
    match complete(&arguments) {
        Ok(false) => {}
        Ok(true) => return exit::VALID,
        Err(error) => {
            narrate(&format!("linerate: {error}\n"));
            return exit::FAILED;
        }
    }
    if let Some(exit_code) = personality::perform(&arguments) {
        return exit_code;
    }
    if let Some(text) = personality::help(&arguments) {
        return exit_code_of(print(&text));
    }
    // First of all: a program that is stopped right after its start still prints a document.
    let cancel = Cancel::default();
    let listens = stop_on_signals(&cancel);
    let arguments = habits::as_ours(arguments);
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return answer(error, &arguments),
    };
    let listens = listens.map_err(|e| Failure::here(format!("can't listen for signals: {e}")));
    listens.and_then(|()| dispatch(&cli.command, &cancel)).unwrap_or_else(|failure| {
        if let Some(text) = &failure.text {
            let text = habits::as_typed(text.clone(), &arguments);
            narrate(&format!("linerate: {text}\n"));
        }
        failure.exit_code
    })
}

/// The exit code of what was printed; a failure is told.
fn exit_code_of(printed: Result<(), Failure>) -> u8 {
    let Err(failure) = printed else { return exit::VALID };
    if let Some(text) = &failure.text {
        narrate(&format!("linerate: {text}\n"));
    }
    failure.exit_code
}

/// Says what a command line that can't be followed lacks; help and the version come this way too.
fn answer(error: clap::Error, arguments: &[OsString]) -> u8 {
    if let Some(sentence) = habits::explain(&error, arguments) {
        narrate(&format!("linerate: {sentence}\n"));
        return exit::USAGE;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelp {
        return exit_code_of(print(&help::render_help(arguments)));
    }
    let error = habits::without_far_tips(error);
    let plain = error.render().to_string();
    let typed = habits::as_typed(plain.clone(), arguments);
    if error.use_stderr() && typed != plain {
        narrate(&typed);
        return exit::USAGE;
    }
    if !error.use_stderr() {
        return exit_code_of(print(&plain));
    }
    // Styled where a terminal reads it. If standard error is closed, the message is dropped.
    let _told = error.print();
    exit::USAGE
}

fn dispatch(command: &Command, cancel: &Cancel) -> Result<u8, Failure> {
    match command {
        Command::OwnMachine(args) => own_machine::measure_own_machine(args, cancel),
        Command::Serve(args) => serve::serve(args, cancel),
        Command::Stream(args) => {
            let plans = plans_from_stream(args).map_err(Failure::from);
            let given = measure::Given::of(&args.connect, args.load.repeat, &args.output);
            measure::measure(plans, &given.explaining(args.explain), cancel)
        }
        Command::Media(args) => {
            let plans = plans_from_media(args).map_err(Failure::from);
            measure::measure(
                plans,
                &measure::Given::of(&args.connect, args.load.repeat, &args.output),
                cancel,
            )
        }
        Command::Rr(args) => {
            let plans = plans_from_rr(args).map_err(Failure::from);
            measure::measure(
                plans,
                &measure::Given::of(&args.connect, args.load.repeat, &args.output),
                cancel,
            )
        }
        Command::Connect(args) => {
            let plans = plans_from_connect(args).map_err(Failure::from);
            measure::measure(
                plans,
                &measure::Given::of(&args.connect, args.load.repeat, &args.output),
                cancel,
            )
        }
        Command::Hunt(args) => hunt::hunt(args, cancel),
        Command::Loaded(args) => loaded::measure_under_load(args, cancel),
        Command::Run(args) => run::measure_plans(args, cancel),
        Command::Compare(args) => compare::compare(args, cancel),
        Command::Matrix(args) => matrix::measure_matrix(args, cancel),
        Command::Results(args) => results::perform(args, cancel),
        Command::Report(args) => report::write_page(args, cancel),
        Command::Web(args) => web::serve_store(args, cancel),
        Command::Link(args) => link::emulate(args, cancel),
        Command::Proxy(args) => proxy::carry(args, cancel),
        Command::Hosts(args) => hosts::attend_hosts(args, cancel),
        Command::Agent => agent::serve_controller(cancel),
        Command::Kubernetes(args) => kubernetes::attend_cluster(args),
        Command::Image(args) => kubernetes::write_own_image(args),
        Command::Schema(args) => generate::print_schema(args),
        Command::Man(args) => generate::write_man_pages(args),
        Command::Completions(args) => generate::print_completions(args),
    }
}

/// Why a command ended without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    exit_code: u8,
    /// None if the reader has closed the pipe.
    text: Option<String>,
}

impl Failure {
    /// The exit code, and a sentence for the user; the sentence is empty if the reader has closed the pipe.
    pub(crate) fn into_parts(self) -> (u8, String) {
        (self.exit_code, self.text.unwrap_or_default())
    }

    /// Something on this machine is in the way.
    fn here(text: impl Into<String>) -> Self {
        Self { exit_code: exit::FAILED, text: Some(text.into()) }
    }

    /// What was asked makes no sense.
    fn usage(text: impl Into<String>) -> Self {
        Self { exit_code: exit::USAGE, text: Some(text.into()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { exit_code: error.exit_code(), text: Some(error.to_string()) }
    }
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            Unwritten::ReaderGone => Self { exit_code: exit::READER_GONE, text: None },
            Unwritten::Failed(text) => Self::here(text),
        }
    }
}

/// Does what may wait for others: reading a file that may be a FIFO. A signal ends it.
fn await_file<T: Send + 'static>(
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = unless_stopped(cancel, work).map_err(|error| Error::no_thread(&error))?;
    done.unwrap_or_else(|| {
        let text = Some("interrupted before anything was measured".to_owned());
        Err(Failure { exit_code: exit::INTERRUPTED, text })
    })
}

/// The text that `source` gives, called `name` where it can't be read; longer than `most_bytes` it may not be.
fn read_text(source: io::Result<impl Read>, name: &str, most_bytes: u64) -> Result<String, String> {
    let mut text = String::new();
    match source.and_then(|source| source.take(most_bytes + 1).read_to_string(&mut text)) {
        Ok(length) if length as u64 > most_bytes => {
            Err(format!("{name} is longer than {most_bytes} bytes"))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(format!("can't read {name}: {error}")),
    }
}

/// Where a command's result goes.
fn open_destination(output: Option<&Path>, cancel: &Cancel) -> Result<Destination, Failure> {
    let output = output.map(Path::to_owned);
    await_file(cancel, move || Destination::open(output.as_deref()).map_err(Failure::here))
}

/// The store that runs are kept in, where the flag or the environment asks for one. It is opened before anything is
/// measured.
fn open_store(flag: Option<&Path>, cancel: &Cancel) -> Result<Option<Keeper>, Failure> {
    let Some(path) = store::asked(flag).map_err(Failure::here)? else { return Ok(None) };
    await_file(cancel, move || Ok(Some(Keeper::open(&path)?)))
}

/// Keeps a run of a command. Where that fails, the first reason is left in `unkept`.
fn keep(keeper: Option<&Keeper>, run: &Run, command: &str, unkept: &mut Option<Failure>) {
    let kept = keeper.map(|keeper| keeper.keep(run, command));
    if let Some(Err(error)) = kept {
        unkept.get_or_insert_with(|| Failure::here(format!("the run was not kept: {error}")));
    }
}

/// Writes data to standard output.
fn print(text: &str) -> Result<(), Failure> {
    Ok(Destination::Stdout.put(text)?)
}
