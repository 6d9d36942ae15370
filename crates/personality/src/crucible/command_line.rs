//! The command line: `crucible multiplex`, `run`, `get result` and `get metric`.

use super::endpoint::{Endpoint, parse_endpoint};
pub use super::kept::Kept;
use super::numbers::parse_numbers;
use super::parameter::{EngineRole, Setting};
use super::quirk::{Reading, render_quirks};
use super::run_file::{RunParams, TestOrder};
use crate::getopt::{Flag, Takes, parse_words, render_flags};

/// The exit code of a command line that can't be read.
pub const EXIT_USAGE: u8 = 2;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Help.
    Help,
    /// The iterations of a matrix.
    Multiplex(MultiplexOptions),
    /// A run.
    Run(Box<RunOptions>),
    /// Results of runs.
    GetResult(ResultOptions),
    /// A metric in windows of time.
    GetMetric(Box<MetricOptions>),
    /// What `run` starts on each host.
    Engine(EngineOptions),
}

/// `crucible engine`: one client or server of the benchmark iperf, on its host.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineOptions {
    /// Whether it is the client or the server.
    pub role: EngineRole,
    /// Its number.
    pub id: u32,
    /// The number of the client's server.
    pub server_id: u32,
    /// The server's address.
    pub address: String,
    /// Its parameters.
    pub settings: Vec<Setting>,
    /// The original's program in place of linerate's own iperf3.
    pub iperf3: Option<String>,
    /// Whether quirks are wanted.
    pub reading: Reading,
}

/// `crucible multiplex`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MultiplexOptions {
    /// The matrix; empty: `mv-params.json`.
    pub input: String,
    /// The requirements.
    pub requirements: Option<String>,
    /// The file that the iterations go to.
    pub output: Option<String>,
    /// Whether quirks are wanted.
    pub reading: Reading,
}

/// `crucible run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOptions {
    /// The run file, or the benchmark of the first form.
    pub operand: Option<String>,
    /// The run file, by its option.
    pub from_file: Option<String>,
    /// Files with matrices.
    pub mv_params: Option<Vec<String>>,
    /// Files with iterations.
    pub bench_params: Option<Vec<String>>,
    /// Benchmarks with the numbers of their engines.
    pub bench_ids: Vec<(String, Vec<u32>)>,
    /// The file with tools.
    pub tool_params: Option<String>,
    /// Endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Marks.
    pub tags: Vec<(String, String)>,
    /// How often and in which order, as far as it was given.
    pub params: GivenParams,
    /// The run's name among all stores.
    pub run_id: Option<String>,
    /// Where results are.
    pub kept: Kept,
    /// The seed of a random order.
    pub seed: Option<u64>,
    /// The original's program on each host, in place of linerate's own iperf3.
    pub iperf3: Option<String>,
    /// The run that is taken up again.
    pub resume: Option<String>,
    /// Whether only the plan is printed.
    pub is_dry: bool,
    /// Sentences about what has no effect.
    pub notes: Vec<String>,
    /// Whether quirks are wanted.
    pub reading: Reading,
}

/// Parameters of a run that were given on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenParams {
    /// `--num-samples`.
    pub samples: Option<u32>,
    /// `--max-sample-failures`.
    pub max_failures: Option<u32>,
    /// `--test-order`.
    pub order: Option<TestOrder>,
    /// `--name`.
    pub name: Option<String>,
    /// `--email`.
    pub email: Option<String>,
}

impl GivenParams {
    /// Puts what was given in place of what a file says.
    pub fn override_in(&self, params: &mut RunParams) {
        params.samples = self.samples.unwrap_or(params.samples);
        params.max_failures = self.max_failures.unwrap_or(params.max_failures);
        params.order = self.order.unwrap_or(params.order);
        params.name = self.name.clone().or(params.name.take());
        params.email = self.email.clone().or(params.email.take());
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The original's text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Comma-separated values.
    Csv,
}

/// `crucible get result`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultOptions {
    /// The run.
    pub run: Option<String>,
    /// Runs of this user.
    pub user: Option<String>,
    /// Runs of this address.
    pub email: Option<String>,
    /// Runs of this harness.
    pub harness: Option<String>,
    /// How they are printed.
    pub format: Format,
    /// Where results are.
    pub kept: Kept,
    /// Whether quirks are wanted.
    pub reading: Reading,
}

/// `crucible get metric`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricOptions {
    /// The run.
    pub run: Option<String>,
    /// The period.
    pub period: Option<String>,
    /// Who measured.
    pub source: String,
    /// The metric.
    pub metric: String,
    /// When it begins, in milliseconds since 1970.
    pub begin_ms: Option<i64>,
    /// When it ends.
    pub end_ms: Option<i64>,
    /// Windows; 0: one.
    pub resolution: u32,
    /// Names that values are told apart by.
    pub breakouts: Vec<String>,
    /// `gt:NUMBER` and the like.
    pub filter: Option<String>,
    /// How series become one.
    pub aggregation: Option<String>,
    /// Digits behind the point; absent: 2.
    pub decimal_places: Option<usize>,
    /// How it is printed.
    pub format: Format,
    /// Where results are.
    pub kept: Kept,
    /// Whether quirks are wanted.
    pub reading: Reading,
}

type Take<T> = fn(&mut T, &str) -> Result<(), String>;

const fn row<T>(
    long: &'static str,
    value_name: &'static str,
    help: &'static str,
    meaning: Take<T>,
) -> Flag<Take<T>> {
    let takes = if value_name.is_empty() { Takes::Nothing } else { Takes::Value };
    Flag { short: None, long, takes, value_name, help, is_ours: false, meaning }
}

const fn own<T>(flag: Flag<Take<T>>) -> Flag<Take<T>> {
    Flag { is_ours: true, ..flag }
}

fn put<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    *place = Some(value);
    Ok(())
}

const COMPAT: &str = "do as the original where it does the unexpected (see below)";
const ORIGINAL: &str = "measure with the original iperf3 at this path of each host";
const INDEX: &str = "send results to this OpenSearch or Elasticsearch, too, while it measures";
const OPENSEARCH: &str = "answer from this OpenSearch or Elasticsearch, not from the store";
const CA: &str = "trust the certificates of FILE (PEM) at the index (default: the system's)";
const AUTH_FILE: &str = "a credential for the index (default: LINERATE_INDEX_AUTH)";
const STORE: &str = "the store of results (default: LINERATE_STORE, else the user's own)";

#[rustfmt::skip]
const MULTIPLEX: &[Flag<Take<MultiplexOptions>>] = &[
    row("input", "FILE", "the matrix (default mv-params.json)", |o, v| { o.input = v.to_owned(); Ok(()) }),
    row("requirements", "FILE", "rules, presets and units", |o, v| put(&mut o.requirements, v.to_owned())),
    row("output", "FILE", "write the iterations there", |o, v| put(&mut o.output, v.to_owned())),
    row("debug", "", "accepted without effect", |_, _| Ok(())),
    own(row("compat", "", COMPAT, |o, _| { o.reading = Reading::Compat; Ok(()) })),
];

#[rustfmt::skip]
const RUN: &[Flag<Take<RunOptions>>] = &[
    row("from-file", "FILE", "the run file", |o, v| put(&mut o.from_file, v.to_owned())),
    row("mv-params", "FILE[,FILE]", "a matrix for each benchmark", |o, v| put(&mut o.mv_params, split(v))),
    row("bench-params", "FILE[,FILE]", "iterations for each benchmark", |o, v| put(&mut o.bench_params, split(v))),
    row("bench-ids", "NAME:IDS,...", "the engines of each benchmark: iperf:1-4",
        |o, v| { o.bench_ids = parse_bench_ids(v)?; Ok(()) }),
    row("tool-params", "FILE", "the tools that count beside", |o, v| put(&mut o.tool_params, v.to_owned())),
    row("endpoint", "TYPE,KEY:VALUE,...", "where engines run; may be repeated",
        |o, v| { let endpoint = parse_endpoint(v, &mut o.notes)?; o.endpoints.push(endpoint); Ok(()) }),
    row("tags", "NAME:VALUE,...", "marks of the run", |o, v| { o.tags.extend(parse_tags(v)?); Ok(()) }),
    row("num-samples", "N", "samples of each iteration (default 1)", |o, v| put(&mut o.params.samples, count(v)?)),
    row("max-sample-failures", "N", "failures after which a sample is given up (default 1)",
        |o, v| put(&mut o.params.max_failures, count(v)?)),
    row("test-order", "ORDER", "sample, iteration or random", |o, v| put(&mut o.params.order, order(v)?)),
    row("name", "NAME", "the user", |o, v| put(&mut o.params.name, v.to_owned())),
    row("email", "ADDRESS", "the user's address", |o, v| put(&mut o.params.email, v.to_owned())),
    row("id", "UUID", "the run's name (default: a random UUID)", |o, v| put(&mut o.run_id, v.to_owned())),
    row("log-level", "LEVEL", "accepted without effect", |_, _| Ok(())),
    own(row("seed", "N", "the seed of a random order", |o, v| put(&mut o.seed, number(v)?))),
    own(row("store", "FILE", STORE, |o, v| put(&mut o.kept.store, v.to_owned()))),
    own(row("index", "URL", INDEX, |o, v| put(&mut o.kept.index, v.to_owned()))),
    own(row("ca", "FILE", CA, |o, v| put(&mut o.kept.ca, v.to_owned()))),
    own(row("auth-file", "FILE", AUTH_FILE, |o, v| put(&mut o.kept.auth_file, v.to_owned()))),
    own(row("iperf3", "PATH", ORIGINAL, |o, v| put(&mut o.iperf3, program(v)?))),
    own(row("resume", "RUN", "go on with a run that was cut off", |o, v| put(&mut o.resume, v.to_owned()))),
    own(row("dry-run", "", "print the plan, and touch nothing", |o, _| { o.is_dry = true; Ok(()) })),
    own(row("compat", "", COMPAT, |o, _| { o.reading = Reading::Compat; Ok(()) })),
];

#[rustfmt::skip]
const GET_RESULT: &[Flag<Take<ResultOptions>>] = &[
    row("run", "ID", "the run, or the beginning of its name", |o, v| put(&mut o.run, v.to_owned())),
    row("user", "NAME", "all runs of a user", |o, v| put(&mut o.user, v.to_owned())),
    row("email", "ADDRESS", "all runs of an address", |o, v| put(&mut o.email, v.to_owned())),
    row("harness", "NAME", "all runs of a harness", |o, v| put(&mut o.harness, v.to_owned())),
    row("output-format", "FORMAT", "txt or json", |o, v| { o.format = format(v, &["txt", "json"])?; Ok(()) }),
    own(row("store", "FILE", STORE, |o, v| put(&mut o.kept.store, v.to_owned()))),
    own(row("opensearch", "URL", OPENSEARCH, |o, v| put(&mut o.kept.index, v.to_owned()))),
    own(row("ca", "FILE", CA, |o, v| put(&mut o.kept.ca, v.to_owned()))),
    own(row("auth-file", "FILE", AUTH_FILE, |o, v| put(&mut o.kept.auth_file, v.to_owned()))),
    own(row("compat", "", COMPAT, |o, _| { o.reading = Reading::Compat; Ok(()) })),
];

#[rustfmt::skip]
const GET_METRIC: &[Flag<Take<MetricOptions>>] = &[
    row("source", "NAME", "who measured", |o, v| { o.source = v.to_owned(); Ok(()) }),
    row("type", "NAME", "the metric", |o, v| { o.metric = v.to_owned(); Ok(()) }),
    row("run", "ID", "the run", |o, v| put(&mut o.run, v.to_owned())),
    row("period", "ID", "the period of a sample", |o, v| put(&mut o.period, v.to_owned())),
    row("begin", "MS", "milliseconds since 1970 (default: the period's)", |o, v| put(&mut o.begin_ms, number(v)?)),
    row("end", "MS", "milliseconds since 1970 (default: the period's)", |o, v| put(&mut o.end_ms, number(v)?)),
    row("resolution", "N", "windows of time (default 1)", |o, v| { o.resolution = count(v)?; Ok(()) }),
    row("breakout", "NAMES", "tell values apart: cpu,type or name=a+b or name=r/REGEX/",
        |o, v| { o.breakouts.extend(split_breakouts(v)); Ok(()) }),
    row("filter", "OP:NUMBER", "series whose first window is gt, ge, lt or le",
        |o, v| put(&mut o.filter, v.to_owned())),
    row("aggregation", "HOW", "sum, avg, max or min", |o, v| put(&mut o.aggregation, v.to_owned())),
    row("decimal-places", "N", "digits behind the point (default 2)", |o, v| put(&mut o.decimal_places, places(v)?)),
    row("output-format", "FORMAT", "table, json or csv",
        |o, v| { o.format = format(v, &["table", "json", "csv"])?; Ok(()) }),
    own(row("store", "FILE", STORE, |o, v| put(&mut o.kept.store, v.to_owned()))),
    own(row("opensearch", "URL", OPENSEARCH, |o, v| put(&mut o.kept.index, v.to_owned()))),
    own(row("ca", "FILE", CA, |o, v| put(&mut o.kept.ca, v.to_owned()))),
    own(row("auth-file", "FILE", AUTH_FILE, |o, v| put(&mut o.kept.auth_file, v.to_owned()))),
    own(row("compat", "", COMPAT, |o, _| { o.reading = Reading::Compat; Ok(()) })),
];

#[rustfmt::skip]
const ENGINE: &[Flag<Take<EngineOptions>>] = &[
    row("id", "N", "the engine's number", |o, v| { o.id = engine(v)?; Ok(()) }),
    row("server-id", "N", "client: the number of its server", |o, v| { o.server_id = engine(v)?; Ok(()) }),
    row("address", "HOST", "client: the server's address", |o, v| { o.address = v.to_owned(); Ok(()) }),
    row("param", "ARG=VAL", "a parameter of the benchmark; may be repeated",
        |o, v| { let setting = setting(v)?; o.settings.push(setting); Ok(()) }),
    row("iperf3", "PATH", ORIGINAL, |o, v| put(&mut o.iperf3, program(v)?)),
    row("compat", "", COMPAT, |o, _| { o.reading = Reading::Compat; Ok(()) }),
];

fn program(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("it has to be the path of a program".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn engine(text: &str) -> Result<u32, String> {
    match parse_numbers(text, "the number")?.as_slice() {
        [only] => Ok(*only),
        _ => Err(format!("{text:?} isn't one number")),
    }
}

fn setting(text: &str) -> Result<Setting, String> {
    let (arg, val) = text.split_once('=').ok_or_else(|| format!("{text:?} isn't ARG=VAL"))?;
    Ok(Setting {
        arg: arg.to_owned(),
        val: val.to_owned(),
        role: EngineRole::All,
        id: None,
        ids: None,
    })
}

fn read_engine(role: &str, words: &[&str]) -> Result<Command, String> {
    let role = match role {
        "client" => EngineRole::Client,
        "server" => EngineRole::Server,
        other => return Err(format!("engine knows client and server, not {other:?}")),
    };
    let mut options = EngineOptions {
        role,
        id: 1,
        server_id: 0,
        address: String::new(),
        settings: Vec::new(),
        iperf3: None,
        reading: Reading::Strict,
    };
    refuse_operands(&read(ENGINE, words, &mut options)?)?;
    if options.server_id == 0 {
        options.server_id = options.id;
    }
    Ok(Command::Engine(options))
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// A sentence.
pub fn parse_command_line(words: &[String]) -> Result<Command, String> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(Command::Help);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help", ..] => Ok(Command::Help),
        ["multiplex", rest @ ..] => read_multiplex(rest),
        ["run", rest @ ..] => read_run(rest),
        ["get", "result", rest @ ..] => read_get_result(rest),
        ["get", "metric", rest @ ..] => read_get_metric(rest),
        ["engine", role, rest @ ..] => read_engine(role, rest),
        ["get", other, ..] => Err(format!("get knows result and metric, not {other:?}")),
        ["get"] => Err("get needs result or metric".to_owned()),
        [other, ..] => Err(format!(
            "there is no command {other:?}; known are multiplex, run, get result and get metric, \
             and for what lies beside them `linerate results --help`"
        )),
    }
}

/// Reads flags into options; what is no flag comes back.
fn read<T>(
    table: &[Flag<Take<T>>],
    words: &[&str],
    options: &mut T,
) -> Result<Vec<String>, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let lexed = parse_words(table, &words).map_err(|error| error.to_string())?;
    for (flag, value) in lexed.flags {
        (flag.meaning)(options, value.as_deref().unwrap_or_default())
            .map_err(|why| format!("--{}: {why}", flag.long))?;
    }
    Ok(lexed.operands)
}

fn refuse_operands(operands: &[String]) -> Result<(), String> {
    match operands.first() {
        Some(word) => Err(format!("{word:?} belongs to no option")),
        None => Ok(()),
    }
}

fn read_multiplex(words: &[&str]) -> Result<Command, String> {
    let mut options =
        MultiplexOptions { input: "mv-params.json".to_owned(), ..MultiplexOptions::default() };
    refuse_operands(&read(MULTIPLEX, words, &mut options)?)?;
    Ok(Command::Multiplex(options))
}

fn read_run(words: &[&str]) -> Result<Command, String> {
    let mut options = RunOptions::default();
    let mut operands = read(RUN, words, &mut options)?.into_iter();
    options.operand = operands.next();
    refuse_operands(operands.as_slice())?;
    if options.resume.is_some() && options.run_id.is_some() {
        return Err("--resume and --id exclude each other: the run has its name".to_owned());
    }
    let is_first_form = options.mv_params.is_some() || options.bench_params.is_some();
    match (&options.operand, &options.from_file, is_first_form) {
        (Some(_), Some(_), _) => Err("run has two run files: remove --from-file".to_owned()),
        (None, None, _) => Err("run needs a run file, or a benchmark with --mv-params".to_owned()),
        (_, None, false) | (_, Some(_), false) => {
            let first_form = ("--bench-ids", !options.bench_ids.is_empty());
            match [first_form, ("--endpoint", !options.endpoints.is_empty())]
                .iter()
                .find(|(_, is_given)| *is_given)
            {
                Some((name, _)) => Err(format!("{name} needs --mv-params: a run file has its own")),
                None => Ok(Command::Run(Box::new(options))),
            }
        }
        (_, Some(_), true) => Err("--from-file and --mv-params exclude each other".to_owned()),
        (_, None, true) if options.endpoints.is_empty() => {
            Err("--mv-params needs an --endpoint".to_owned())
        }
        (_, None, true) => Ok(Command::Run(Box::new(options))),
    }
}

fn read_get_result(words: &[&str]) -> Result<Command, String> {
    let mut options = ResultOptions::default();
    refuse_operands(&read(GET_RESULT, words, &mut options)?)?;
    let ResultOptions { run, user, email, harness, .. } = &options;
    if [run, user, email, harness].iter().all(|chosen| chosen.is_none()) {
        return Err("get result needs --run, --user, --email or --harness".to_owned());
    }
    Ok(Command::GetResult(options))
}

fn read_get_metric(words: &[&str]) -> Result<Command, String> {
    let mut options = MetricOptions { resolution: 1, ..MetricOptions::default() };
    refuse_operands(&read(GET_METRIC, words, &mut options)?)?;
    let MetricOptions { run, period, source, metric, .. } = &options;
    let missing = [("--source", source.is_empty()), ("--type", metric.is_empty())];
    if let Some((name, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
        return Err(format!("get metric needs {name}"));
    }
    if run.is_none() && period.is_none() {
        return Err("get metric needs --run or --period".to_owned());
    }
    Ok(Command::GetMetric(Box::new(options)))
}

/// The help of all commands.
pub fn render_help() -> String {
    let mut text = "Usage: linerate crucible COMMAND [OPTION...]\n".to_owned();
    let mut section = |usage: &str, about: &str, flags: String| {
        text.push_str(&format!("\n{usage}\n    {about}\n\n{flags}"));
    };
    section(
        "multiplex [OPTION...]",
        "Print the iterations of a matrix as JSON",
        render_flags(MULTIPLEX),
    );
    section(
        "run RUNFILE | run BENCHMARK --mv-params FILE --endpoint ... [OPTION...]",
        "Measure, and put the results into the store",
        render_flags(RUN),
    );
    section("get result [OPTION...]", "Print the results of runs", render_flags(GET_RESULT));
    section(
        "get metric [OPTION...]",
        "Print a metric in windows of time",
        render_flags(GET_METRIC),
    );
    section(
        "engine client|server [OPTION...]",
        "What run starts on each host: iperf3 with a benchmark's parameters",
        render_flags(ENGINE),
    );
    text.push('\n');
    text.push_str(&render_quirks());
    text
}

fn split(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Takes breakouts apart at commas, except within a regular expression.
fn split_breakouts(text: &str) -> Vec<String> {
    let mut breakouts: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match breakouts.last_mut() {
            Some(last) if is_open(last) => {
                last.push(',');
                last.push_str(piece);
            }
            _ if piece.is_empty() => {}
            _ => breakouts.push(piece.to_owned()),
        }
    }
    breakouts
}

/// Whether a breakout has a regular expression that isn't ended yet.
fn is_open(breakout: &str) -> bool {
    let Some((_, value)) = breakout.split_once('=') else { return false };
    let Some(rest) = value.strip_prefix(['r', 'R']) else { return false };
    let mut characters = rest.chars();
    match characters.next() {
        Some(delimiter) if !delimiter.is_alphanumeric() => {
            !characters.as_str().ends_with(delimiter)
        }
        _ => false,
    }
}

fn parse_bench_ids(text: &str) -> Result<Vec<(String, Vec<u32>)>, String> {
    split(text)
        .iter()
        .map(|entry| {
            let (name, ids) = entry
                .split_once(':')
                .ok_or_else(|| format!("{entry:?} lacks a colon and numbers, such as iperf:1-4"))?;
            Ok((name.to_owned(), parse_numbers(ids, name)?))
        })
        .collect()
}

fn parse_tags(text: &str) -> Result<Vec<(String, String)>, String> {
    split(text)
        .iter()
        .map(|entry| {
            let (name, value) = entry
                .split_once(':')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| format!("{entry:?} isn't NAME:VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} isn't a number that fits"))
}

fn count(text: &str) -> Result<u32, String> {
    number::<u32>(text)
        .ok()
        .filter(|count| (1..=262_144).contains(count))
        .ok_or_else(|| format!("{text:?} isn't a number from 1 to 262144"))
}

fn places(text: &str) -> Result<usize, String> {
    number::<usize>(text)
        .ok()
        .filter(|places| *places <= 15)
        .ok_or_else(|| format!("{text:?} isn't a number from 0 to 15"))
}

fn order(text: &str) -> Result<TestOrder, String> {
    super::run_file::ORDERS
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, order)| *order)
        .ok_or_else(|| format!("{text:?} isn't one of sample, iteration and random"))
}

fn format(text: &str, known: &[&str]) -> Result<Format, String> {
    match text {
        _ if !known.contains(&text) => Err(format!("{text:?} isn't one of {}", known.join(", "))),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        _ => Ok(Format::Text),
    }
}

#[cfg(test)]
mod tests;
