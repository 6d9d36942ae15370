//! `results metrics`: what monitoring systems are told of finished runs, as text or pushed to a collector.

use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_results::Store;
use linerate_results::exposition::{Exposition, is_finished, last_finished};
use linerate_results::otlp::{MOST_POINTS, PATH, PushError, points, push};
use linerate_results::read::RunRow;
use linerate_wire::visible::visible_line;

use super::{Failure, open};
use crate::args::{PushArgs, ServerArgs};
use crate::commands::print;
use crate::http_client::{Remote, Service};
use crate::output::narrate;
use crate::start_time::utc_now_ns;

const COLLECTOR: Service =
    Service { variable: "LINERATE_OTLP_AUTH", example: "http://collector.example:4318" };

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        let exit_code = match &error {
            PushError::Away(_) => exit::UNREACHABLE,
            PushError::Untrusted(_) => exit::REFUSED,
            PushError::Interrupted => exit::INTERRUPTED,
            PushError::Refused(_) | PushError::Strange(_) => exit::FAILED,
        };
        Self { exit_code, text: Some(visible_line(&error.to_string())) }
    }
}

/// Prints the metrics, or pushes them; the exit code.
pub(super) fn perform(path: &Path, args: &PushArgs, cancel: &Cancel) -> Result<u8, Failure> {
    match &args.otlp {
        Some(url) => push_runs(path, args, url, cancel),
        None => print_text(path).map(|()| exit::VALID),
    }
}

fn print_text(path: &Path) -> Result<(), Failure> {
    let (mut exposition, now_ms) = (Exposition::new(), utc_now_ns() / 1_000_000);
    // Nothing kept yet is no failure.
    print(&match path.exists() {
        true => exposition.render(&Store::open_to_read(path)?, now_ms)?,
        false => exposition.render_known(now_ms),
    })
}

fn push_runs(path: &Path, args: &PushArgs, url: &str, cancel: &Cancel) -> Result<u8, Failure> {
    let server = ServerArgs { ca: args.ca.clone(), auth_file: args.auth_file.clone() };
    let remote = Remote::new(&COLLECTOR, "--otlp", url, &server).map_err(Failure::usage)?;
    // Nothing kept yet is no failure, unless a run is named.
    let (runs, points) = match args.runs.is_empty() && !path.exists() {
        true => (0, Vec::new()),
        false => {
            let store = open(path)?;
            let runs = runs_of(&store, &args.runs)?;
            (runs.len(), points(&store, runs)?)
        }
    };
    if points.is_empty() {
        print("no finished run to push\n")?;
        return Ok(exit::VALID);
    }
    let mut http = remote.client(cancel).map_err(Failure::here)?;
    let path = if remote.has_path() { "" } else { PATH };
    let (mut sent, mut rejected) = (0, 0_u64);
    let mut last_message = String::new();
    for some in points.chunks(MOST_POINTS) {
        let taken = push(&mut http, path, some).inspect_err(|_| {
            if sent > 0 {
                narrate(&format!("linerate: {sent} of {} data points were pushed\n", points.len()));
            }
        })?;
        sent += some.len();
        rejected = rejected.saturating_add(taken.rejected);
        if !taken.message.is_empty() && taken.message != last_message {
            narrate(&format!("linerate: the collector says: {}\n", visible_line(&taken.message)));
            last_message = taken.message;
        }
    }
    print(&format!("{runs} runs: {sent} data points pushed, {rejected} rejected\n"))?;
    match rejected {
        0 => Ok(exit::VALID),
        rejected => {
            Err(Failure::here(format!("the collector rejected {rejected} of {sent} data points")))
        }
    }
}

/// The runs of these names, each once; without a name the last finished run of each title.
fn runs_of(store: &Store, words: &[String]) -> Result<Vec<RunRow>, Failure> {
    if words.is_empty() {
        return Ok(last_finished(store.runs()?).into_values().collect());
    }
    let mut runs: Vec<RunRow> = Vec::new();
    for word in words {
        let run = store.find(word)?;
        if !is_finished(&run) {
            return Err(Failure::usage(format!(
                "the run {} has not finished: only finished runs have metrics",
                run.run
            )));
        }
        if runs.iter().all(|other| other.id != run.id) {
            runs.push(run);
        }
    }
    Ok(runs)
}
