//! `crucible run`: a run file, or the first form's options, become a plan that the lab carries out.

use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_engine::event::Cancel;
use linerate_lab::plan::HostSpec;
use linerate_personality::crucible::command_line::RunOptions;
use linerate_personality::crucible::document::list;
use linerate_personality::crucible::iperf::{self, read_options};
use linerate_personality::crucible::mv_params::{parse_mv_params, read_bench_params};
use linerate_personality::crucible::parameter::{EngineRole, Setting};
use linerate_personality::crucible::run_file::{
    Benchmark, Matrix, RunFile, RunParams, parse_run_file, read_tools,
};
use linerate_results::{NewIteration, NewParam, Origin};

use super::super::stdout::say;
use super::multiplex::read_text;
use super::plan::{Making, Planned, client_line, plan};
use super::{Failure, NAME};
use crate::args::{IndexArgs, MatrixArgs, ServerArgs};
use crate::commands::matrix::{Labels, carry_out};
use crate::output::narrate;
use crate::signals::stop_on_signals;

/// The metric that samples are judged by.
const PRIMARY_METRIC: &str = "iperf::rx-Gbps";

/// Measures what the files say; the exit code of `linerate matrix`.
pub(super) fn perform(options: &RunOptions) -> Result<u8, Failure> {
    let mut file = read(options)?;
    file.tags.extend(options.tags.iter().cloned());
    options.params.override_in(&mut file.params);
    if file.params.name.is_some() != file.params.email.is_some() {
        return Err(Failure::usage("--name and --email need each other"));
    }
    let (seed, iperf3) = (options.seed, options.iperf3.as_deref());
    let making = Making { seed, iperf3, reading: options.reading };
    let planned = plan(&file, making).map_err(Failure::usage)?;
    for note in file.notes.iter().chain(&options.notes) {
        narrate(&format!("{NAME}: {note}\n"));
    }
    if options.is_dry {
        say(&render_plan(&planned, &file, options)?);
        return Ok(0);
    }
    let iterations = planned.iterations.iter().map(|own| new_iteration(own, &file.benchmarks));
    let labels = Labels {
        uuid: options.run_id.clone().unwrap_or_default(),
        origin: Origin {
            command: "linerate crucible run".to_owned(),
            harness: NAME.to_owned(),
            person: file.params.name.clone().unwrap_or_default(),
            email: file.params.email.clone().unwrap_or_default(),
            ..Origin::default()
        },
        iterations: Some(iterations.collect()),
    };
    let args = MatrixArgs {
        plan: PathBuf::new(),
        dry_run: false,
        check: false,
        resume: options.resume.clone(),
        samples: None,
        order: None,
        store: options.kept.store.as_ref().map(PathBuf::from),
        index: IndexArgs {
            url: options.kept.index.clone(),
            server: ServerArgs {
                ca: options.kept.ca.as_ref().map(PathBuf::from),
                auth_file: options.kept.auth_file.as_ref().map(PathBuf::from),
            },
            cdm: None,
        },
        json: false,
        ndjson: false,
        quiet: false,
    };
    let cancel = Cancel::default();
    if let Err(error) = stop_on_signals(&cancel) {
        narrate(&format!("{NAME}: can't catch signals: {error}\n"));
    }
    carry_out(&planned.plan, &labels, &args, &cancel).map_err(Failure::of_command)
}

/// Reads the run file, or makes one of the first form's options.
fn read(options: &RunOptions) -> Result<RunFile, Failure> {
    let RunOptions { operand, from_file, .. } = options;
    let file = from_file.as_ref().or(operand.as_ref().filter(|_| !is_first_form(options)));
    if let Some(path) = file {
        let text = read_text(path)?;
        let mut file = parse_run_file(&text, options.reading)
            .map_err(|why| Failure::usage(format!("{path}: {why}")))?;
        // In the first form a script names the benchmark.
        for benchmark in file.benchmarks.iter_mut().filter(|one| one.name.is_empty()) {
            iperf::NAME.clone_into(&mut benchmark.name);
        }
        return Ok(file);
    }
    let mut notes = Vec::new();
    let tools = match &options.tool_params {
        Some(path) => Some(read_tools(&read_json(path)?, &mut notes).map_err(Failure::usage)?),
        None => None,
    };
    Ok(RunFile {
        benchmarks: read_benchmarks(options)?,
        endpoints: options.endpoints.clone(),
        tags: Vec::new(),
        params: RunParams::default(),
        tools,
        notes,
    })
}

fn is_first_form(options: &RunOptions) -> bool {
    options.mv_params.is_some() || options.bench_params.is_some()
}

fn read_json(path: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(&read_text(path)?)
        .map_err(|error| Failure::usage(format!("{path}: it isn't JSON: {error}")))
}

/// The benchmarks of the first form: names from `--bench-ids` or the operand, matrices from files.
fn read_benchmarks(options: &RunOptions) -> Result<Vec<Benchmark>, Failure> {
    let names: Vec<(String, Option<Vec<u32>>)> = match options.bench_ids.as_slice() {
        [] => {
            let names = options.operand.as_deref().unwrap_or(iperf::NAME).split(',');
            names.map(|name| (name.to_owned(), None)).collect()
        }
        given => given.iter().map(|(name, ids)| (name.clone(), Some(ids.clone()))).collect(),
    };
    let at = |path: &str, why: String| Failure::usage(format!("{path}: {why}"));
    let matrices: Vec<Matrix> = match (&options.mv_params, &options.bench_params) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("--mv-params and --bench-params exclude each other"));
        }
        (Some(paths), None) => paths
            .iter()
            .map(|path| {
                let matrix = parse_mv_params(&read_text(path)?);
                matrix.map(Matrix::Values).map_err(|fault| at(path, fault.text))
            })
            .collect::<Result<_, Failure>>()?,
        (None, paths) => paths
            .iter()
            .flatten()
            .map(|path| {
                let iterations = read_bench_params(&read_json(path)?);
                iterations.map(Matrix::Iterations).map_err(|why| at(path, why))
            })
            .collect::<Result<_, Failure>>()?,
    };
    if matrices.len() != names.len() {
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Failure::usage(format!(
            "there are {} files of parameters for the benchmarks {}: give a file for each",
            matrices.len(),
            list(&names)
        )));
    }
    let benchmarks = names.into_iter().zip(matrices);
    Ok(benchmarks.map(|((name, ids), matrix)| Benchmark { name, ids, matrix }).collect())
}

/// The parameters of an iteration as the store has them.
fn new_iteration(settings: &[(usize, Setting)], benchmarks: &[Benchmark]) -> NewIteration {
    let name = |place: usize| benchmarks.get(place).map(|one| one.name.clone());
    let params = settings.iter().map(|(benchmark, setting)| NewParam {
        benchmark: name(*benchmark).unwrap_or_default(),
        arg: setting.arg.clone(),
        value: setting.val.clone(),
        role: setting.role.word().to_owned(),
        engines: match (&setting.id, &setting.ids) {
            (Some(id), _) => id.clone(),
            (None, Some(ids)) => ids.join("+"),
            (None, None) => String::new(),
        },
    });
    NewIteration { params: params.collect(), primary_metric: PRIMARY_METRIC.to_owned() }
}

/// What `--dry-run` prints: hosts, pairs, and the command lines of each iteration.
fn render_plan(planned: &Planned, file: &RunFile, options: &RunOptions) -> Result<String, Failure> {
    let Planned { plan, engines, iterations } = planned;
    let mut text = "hosts:\n".to_owned();
    // Writing to a text can't fail.
    let mut line = |shown: String| {
        let _written = writeln!(text, "{shown}");
    };
    for (name, spec) in &plan.hosts {
        let how = match spec {
            HostSpec::Ssh(ssh) => format!("ssh {}", ssh.address),
            other => other.transport().to_owned(),
        };
        line(format!("  {name}: {how}"));
    }
    line("pairs:".to_owned());
    for (pair, engines) in plan.pairs.iter().zip(engines) {
        let is_pod = matches!(plan.hosts.get(&pair.server), Some(HostSpec::Kubernetes(_)));
        let address = match pair.address.as_str() {
            "" if is_pod => "the address of its pod or Service",
            "" => "the address of its interface",
            address => address,
        };
        line(format!(
            "  client-{} on {} to server-{} on {} ({address}, port {})",
            engines.client, pair.client, engines.server, pair.server, pair.port
        ));
    }
    let program = options.iperf3.as_deref().unwrap_or("iperf3");
    for (number, (point, settings)) in plan.points.iter().zip(iterations).enumerate() {
        let shown = render_settings(settings, file.benchmarks.len() > 1);
        line(format!("iteration {}:{shown}", number + 1));
        for pair in engines {
            let own = |role: EngineRole, id: u32| {
                let own = settings.iter().filter(|(benchmark, _)| *benchmark == pair.benchmark);
                let own: Vec<Setting> = own.map(|(_, setting)| setting.clone()).collect();
                read_options(&own, role, id, options.reading)
            };
            let server = own(EngineRole::Server, pair.server)?;
            let client = own(EngineRole::Client, pair.client)?;
            let words = server.server_words(pair.server).join(" ");
            line(format!("  server-{}: {program} {words}", pair.server));
            let words = client_line(&client, pair).join(" ");
            let hunt = match client.range {
                Some(range) => format!(
                    " --bitrate RATE, a hunt of up to {} tests from {}{unit} to {}{unit}",
                    range.steps(),
                    range.low,
                    range.high,
                    unit = range.unit
                ),
                None => String::new(),
            };
            line(format!("  client-{}: {program} {words}{hunt}", pair.client));
        }
        line(format!("  expected: {} s", point.expected_ns / 1_000_000_000));
    }
    let samples = plan.schedule.samples;
    line(format!("samples of each iteration: {samples}, order: {}", plan.schedule.order.name()));
    Ok(text)
}

/// The parameters of an iteration; of several benchmarks with the place of each.
fn render_settings(settings: &[(usize, Setting)], with_place: bool) -> String {
    let shown = settings.iter().map(|(benchmark, setting)| {
        let place = if with_place { format!("benchmarks[{benchmark}].") } else { String::new() };
        format!(" {place}{}={}", setting.arg, setting.val)
    });
    shown.collect()
}
