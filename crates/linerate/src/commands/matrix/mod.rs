//! `matrix`: many measurements over many hosts, by a plan.

mod collected;
mod dry_run;
mod native;
mod recorder;
mod result;
mod resume;
mod screen;
mod tools;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use linerate_engine::event::Cancel;
use linerate_engine::random_run_id;
use linerate_lab::host::{HostEventKind, NamedHost, OpenOptions, Session};
use linerate_lab::plan::{HostSpec, Plan, TEXT_BYTES_MAX, read_plan};
use linerate_lab::schedule::{Progress, RunEnding, SinkError, run};
use linerate_measure::matrix::Cell;
use linerate_measure::plan::Notation;
use linerate_measure::run::exit;
use linerate_results::{NewCell, NewHost, NewIteration, NewParam, NewRun, Origin, RunId, Writer};
use serde_json::json;

use super::{Failure, await_file, print, run as plans};
use crate::args::{IndexArgs, MatrixArgs};
use crate::executable::binaries;
use crate::index::{Live, Target, report_unserved};
use crate::output::{FootLine, Table, narrate, render_json};
use crate::start_time::utc_now_ns;
use crate::store;
use collected::Collected;
use dry_run::used_hosts;
use recorder::{Ended, Recorder, ms};
use result::Outcome;
use screen::{Eta, READER_GONE, Screen};
use workloads::Commands;

const SECOND_NS: u64 = 1_000_000_000;
/// What a run's pods may take besides twice the planned time.
const LEAST_DEADLINE_S: u64 = 600;

/// What a run is called in the store, besides what its plan says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    /// Names it among all stores; empty: a new random UUID.
    pub(crate) uuid: String,
    /// What began it, where it belongs to, and who ran it. Benchmarks and version are the plan's and ours.
    pub(crate) origin: Origin,
    /// The parameters of each point; absent: those of the plan.
    pub(crate) iterations: Option<Vec<NewIteration>>,
}

impl Labels {
    fn of_matrix() -> Self {
        let (command, harness) = ("linerate matrix".to_owned(), "linerate".to_owned());
        let origin = Origin { command, harness, ..Origin::default() };
        Self { origin, ..Self::default() }
    }
}

/// Does what a plan says; the exit code.
pub(super) fn measure_matrix(args: &MatrixArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let mut plan = read(&args.plan, cancel)?;
    plan.schedule.samples = args.samples.unwrap_or(plan.schedule.samples);
    plan.schedule.order = args.order.map_or(plan.schedule.order, Into::into);
    plan.check_size().map_err(|error| Failure::usage(error.to_string()))?;
    if args.dry_run {
        let cells = order_of(&plan, plan.schedule.seed.unwrap_or(0));
        let text = match args.json || args.ndjson {
            true => format!("{}\n", render_json(&dry_run::document(&plan, &cells))),
            false => dry_run::render_text(&plan, &cells),
        };
        print(&text)?;
        return Ok(exit::VALID);
    }
    if args.check {
        return check(&plan, cancel);
    }
    carry_out(&plan, &Labels::of_matrix(), args, cancel)
}

fn read(path: &Path, cancel: &Cancel) -> Result<Plan, Failure> {
    let path = path.to_owned();
    await_file(cancel, move || {
        let most_bytes = TEXT_BYTES_MAX as u64;
        let (text, name) = plans::read(&path, most_bytes).map_err(Failure::here)?;
        read_plan(&text, Notation::of_path(&path), &Commands)
            .map_err(|error| Failure::usage(format!("{name}: {error}")))
    })
}

fn order_of(plan: &Plan, seed: u64) -> Vec<Cell> {
    let points = u32::try_from(plan.points.len()).unwrap_or(u32::MAX);
    plan.schedule.order.cells(points, plan.schedule.samples, seed)
}

/// The hosts that the pairs use, with the way to each. What is made of them for a run carries its name.
fn hosts_of(plan: &Plan, run: &str, expected_ns: u64) -> Result<Vec<NamedHost>, Failure> {
    let binaries = Arc::new(binaries(&[]).map_err(Failure::here)?);
    let deadline_s = (expected_ns / SECOND_NS).saturating_mul(2).saturating_add(LEAST_DEADLINE_S);
    NamedHost::all_of_plan(plan, run, deadline_s, &binaries).map_err(Failure::usage)
}

/// How hosts are opened: pods may take as long as the plan lets them.
fn open_options(plan: &Plan) -> OpenOptions {
    let usual = OpenOptions::default();
    let of_pods = plan.pods().into_iter().map(|(_, _, pod, _)| pod.start_timeout());
    let hello = of_pods.map(|timeout| timeout + usual.hello).max().unwrap_or(usual.hello);
    OpenOptions { hello, ..usual }
}

fn open(plan: &Plan, hosts: &[NamedHost]) -> Result<Session, Failure> {
    let opened = Session::open(hosts, &open_options(plan));
    opened.map_err(|error| Failure::here(error.to_string()))
}

/// Opens every host and prints what it is.
fn check(plan: &Plan, cancel: &Cancel) -> Result<u8, Failure> {
    let hosts = hosts_of(plan, &random_run_id(), 0)?;
    let session = open(plan, &hosts)?;
    let mut rows: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut exit_code = exit::VALID;
    while rows.len() < hosts.len() && !cancel.requested() {
        let Some(event) = session.next_event(Duration::from_millis(50)) else { continue };
        let name = hosts.get(event.host).map(|host| host.name.clone()).unwrap_or_default();
        let row = match event.kind {
            HostEventKind::Opened { hello, clock } => vec![
                name,
                hello.version.clone(),
                format!("{} {}", hello.kernel, hello.arch),
                format!("{} us", clock.offset.offset_ns / 1000),
                format!("{} us", clock.offset.bound_ns.div_ceil(1000)),
                "ready".to_owned(),
            ],
            HostEventKind::Lost { error, .. } => {
                exit_code = exit::UNREACHABLE;
                let nothing = || "-".to_owned();
                vec![name, nothing(), nothing(), nothing(), nothing(), error.to_string()]
            }
            HostEventKind::Delayed(said) => {
                narrate(&format!("{name}: {said}\n"));
                continue;
            }
            _ => continue,
        };
        rows.insert(event.host, row);
    }
    if cancel.requested() {
        return Ok(exit::INTERRUPTED);
    }
    let mut table = Table::with_head(&["host", "version", "kernel", "clock", "within", "state"]);
    rows.into_values().for_each(|row| table.push(row));
    print(&table.render(crate::output::Style::Plain))?;
    Ok(exit_code)
}

/// Measures what a plan has, and keeps it in the store; the exit code.
pub(crate) fn carry_out(
    plan: &Plan,
    labels: &Labels,
    args: &MatrixArgs,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    // What can't be used is told before the run is in the store.
    hosts_of(plan, "", 0)?;
    let target = target_of(args)?;
    let path = store_path(args.store.as_deref())?;
    let hash = hash_of(plan);
    let writer = Writer::open(&path)?;
    let begun = match &args.resume {
        Some(word) => resume::resume(&path, &writer, word, &hash)?,
        None => begin(&writer, plan, labels, &hash)?,
    };
    let Begun { run: id, name, mut progress, ends } = begun;
    let cells: Vec<Cell> = progress.cells.iter().map(|state| state.cell).collect();
    let hosts = hosts_of(plan, &name, dry_run::expected_ns(plan, &cells))?;
    let mut screen = screen_of(args, plan, &progress);
    screen.say(&format!("run {name} in {}", path.display()));
    if let Some(text) = dry_run::over_budget(plan, &cells) {
        screen.say(&text);
    }
    if screen.ndjson {
        let record = json!({ "record": "run_began", "run": name, "cells": cells.len() });
        screen.put(&record).map_err(failure_of)?;
    }
    let live = go_live(target.as_ref(), args, &path, (&writer, id))?;
    let mut recorder = Recorder {
        plan,
        writer: &writer,
        run: id,
        live: live.as_ref(),
        screen,
        attempt: None,
        collected: Collected::default(),
        ends,
        has_lost_host: false,
    };
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut session = open(plan, &hosts)?;
    let stopped = || cancel.requested();
    let carried = run(plan, &mut progress, &names, &mut session, &mut recorder, &stopped);
    recorder.screen.close();
    let ending = match carried {
        Ok(ending) => ending,
        Err(SinkError(why)) => {
            // Where the store itself fails, it keeps the run as one that goes on.
            let _unkept = recorder.end(&RunEnding::Interrupted, Vec::new(), utc_now_ns());
            return Err(failure_of(why));
        }
    };
    // Ends all programs on all hosts.
    drop(session);
    let outcome = Outcome::new(plan, &name, &ending, &progress, recorder.ends.clone());
    recorder.end(&ending, outcome.verdicts(), utc_now_ns())?;
    let Recorder { screen, .. } = recorder;
    writer.close()?;
    report(args, &screen, &outcome)?;
    if let Some(live) = live {
        live.end(cancel);
    }
    report_unserved(&path, id, &name, target.as_ref().map(Target::url));
    Ok(outcome.exit_code())
}

/// The index that results go to.
fn target_of(args: &MatrixArgs) -> Result<Option<Target>, Failure> {
    let IndexArgs { url, server, cdm } = &args.index;
    match url {
        Some(url) => Target::new("--index", url, server).map(Some).map_err(Failure::usage),
        None if cdm.is_some() || server.ca.is_some() || server.auth_file.is_some() => {
            Err(Failure::usage("--ca, --auth-file and --cdm need --index URL"))
        }
        None => Ok(None),
    }
}

/// Has the run's results sent to the index while it is measured.
fn go_live(
    target: Option<&Target>,
    args: &MatrixArgs,
    path: &Path,
    (writer, run): (&Writer, RunId),
) -> Result<Option<Live>, Failure> {
    let Some(target) = target else { return Ok(None) };
    writer.index_to(run, target.url(), args.index.cdm)?;
    let live = Live::start(path, target, args.index.cdm).map_err(Failure::here)?;
    live.wake();
    Ok(Some(live))
}

fn report(args: &MatrixArgs, screen: &Screen, outcome: &Outcome<'_>) -> Result<(), Failure> {
    if args.ndjson {
        let mut record = outcome.document();
        if let Some(record) = record.as_object_mut() {
            record.insert("record".to_owned(), "finished".into());
        }
        return screen.put(&record).map_err(failure_of);
    }
    if args.json {
        return print(&format!("{}\n", render_json(&outcome.document())));
    }
    print(&outcome.render_text())
}

/// A failure to write records.
fn failure_of(why: String) -> Failure {
    match why.as_str() {
        READER_GONE => Failure { exit_code: exit::READER_GONE, text: None },
        _ => Failure::here(why),
    }
}

/// A run that the store has.
struct Begun {
    run: RunId,
    name: String,
    progress: Progress,
    /// How the cells stand that have their end already.
    ends: BTreeMap<u32, Ended>,
}

/// Freezes the plan: the run with all its cells waiting.
fn begin(writer: &Writer, plan: &Plan, labels: &Labels, hash: &str) -> Result<Begun, Failure> {
    // The store keeps the seed as a signed number.
    let drawn = || u64::from_str_radix(random_run_id().get(..15).unwrap_or("0"), 16).unwrap_or(0);
    let seed = plan.schedule.seed.unwrap_or_else(drawn);
    let cells = order_of(plan, seed);
    let mut benchmarks: Vec<&str> =
        plan.points.iter().map(|point| point.workload.as_str()).collect();
    benchmarks.sort_unstable();
    benchmarks.dedup();
    let new = NewRun {
        title: plan.title.clone().unwrap_or_default(),
        tags: plan.tags.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        uuid: labels.uuid.clone(),
        origin: Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            benchmarks: benchmarks.join(","),
            ..labels.origin.clone()
        },
        plan: serde_json::to_string(plan).map_err(|error| Failure::here(error.to_string()))?,
        plan_hash: hash.to_owned(),
        seed: Some(seed),
        began_ms: ms(utc_now_ns()),
        hosts: used_hosts(plan).into_iter().map(|(name, spec)| new_host(name, spec)).collect(),
        iterations: match &labels.iterations {
            Some(iterations) => iterations.clone(),
            None => plan.points.iter().map(new_iteration).collect(),
        },
        cells: cells
            .iter()
            .map(|cell| NewCell { iteration: cell.iteration, sample: cell.sample + 1 })
            .collect(),
    };
    let (run, name) = writer.begin_run(new)?;
    Ok(Begun { run, name, progress: Progress::new(cells), ends: BTreeMap::new() })
}

fn new_host(name: &str, spec: &HostSpec) -> NewHost {
    NewHost {
        name: name.to_owned(),
        transport: spec.transport().to_owned(),
        facts: serde_json::to_string(spec).unwrap_or_default(),
        offset_ns: None,
        bound_ns: None,
    }
}

fn new_iteration(point: &linerate_lab::plan::Point) -> NewIteration {
    let params = point.iteration.settings.iter().map(|setting| {
        let (arg, role) = match setting.name.strip_prefix("server.") {
            Some(arg) => (arg, "server"),
            None => (setting.name.as_str(), "client"),
        };
        NewParam {
            benchmark: point.workload.clone(),
            arg: arg.to_owned(),
            value: setting.value.clone(),
            role: role.to_owned(),
            engines: String::new(),
        }
    });
    NewIteration { params: params.collect(), primary_metric: String::new() }
}

fn hash_of(plan: &Plan) -> String {
    let text = serde_json::to_string(plan).unwrap_or_default();
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn screen_of(args: &MatrixArgs, plan: &Plan, progress: &Progress) -> Screen {
    let waiting: Vec<Cell> =
        progress.cells.iter().filter(|state| !state.is_over).map(|state| state.cell).collect();
    let eta = Eta {
        cells: progress.cells.len(),
        over: progress.over(),
        left_ns: dry_run::expected_ns(plan, &waiting),
        extra: (0, 0),
        began: None,
    };
    Screen { ndjson: args.ndjson, quiet: args.quiet, foot: FootLine::of_terminal(), eta }
}

/// The store's file.
pub(crate) fn store_path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    store::place(given).map_err(Failure::usage)
}
