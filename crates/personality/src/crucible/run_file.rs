//! Run files: what is measured, where, how often and in which order.
//!
//! The current form has `benchmarks`; the first form has one matrix at the top and endpoints of other types.

use serde_json::{Map, Value};

use super::document::{read_count, read_list, read_object, read_required, read_text, read_word};
use super::endpoint::{Endpoint, read_endpoint};
use super::mv_params::{MvParams, check_version, read_bench_params, read_mv_params};
use super::numbers::read_numbers;
use super::parameter::{Setting, read_enabled};
use super::quirk::{Name, Reading};

/// The version of the run file's schema.
const VERSION: &str = "2023.09.27";
/// The most samples of an iteration, and the most failures of a sample.
const MOST_SAMPLES: u64 = 10_000;

/// What a run file says.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFile {
    /// The benchmarks.
    pub benchmarks: Vec<Benchmark>,
    /// Where their engines run.
    pub endpoints: Vec<Endpoint>,
    /// Marks of the run.
    pub tags: Vec<(String, String)>,
    /// How often, in which order, and by whom.
    pub params: RunParams,
    /// The tools that count beside the benchmarks, by their names; absent: sysstat and procstat.
    pub tools: Option<Vec<String>>,
    /// Sentences about what has no effect.
    pub notes: Vec<String>,
}

/// A benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The numbers of its engines; absent in the first form: all that the endpoints have.
    pub ids: Option<Vec<u32>>,
    /// Its parameters.
    pub matrix: Matrix,
}

/// A benchmark's parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// A matrix, not multiplied out yet.
    Values(MvParams),
    /// Iterations: the original's `bench-params`.
    Iterations(Vec<Vec<Setting>>),
}

/// How often, in which order, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunParams {
    /// Samples of each iteration.
    pub samples: u32,
    /// A sample is given up after so many failures.
    pub max_failures: u32,
    /// The order of the samples.
    pub order: TestOrder,
    /// The user.
    pub name: Option<String>,
    /// The user's address.
    pub email: Option<String>,
}

impl Default for RunParams {
    fn default() -> Self {
        let order = TestOrder::default();
        Self { samples: 1, max_failures: 1, order, name: None, email: None }
    }
}

/// The order of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestOrder {
    /// All samples of an iteration, then those of the next.
    #[default]
    Sample,
    /// The first sample of every iteration, then the second.
    Iteration,
    /// A random iteration each time.
    Random,
}

pub(super) const ORDERS: &[(&str, TestOrder)] = &[
    ("sample", TestOrder::Sample),
    ("iteration", TestOrder::Iteration),
    ("random", TestOrder::Random),
    ("s", TestOrder::Sample),
    ("i", TestOrder::Iteration),
    ("r", TestOrder::Random),
];

/// Reads a run file of either form.
///
/// # Errors
/// A sentence that names the place.
pub fn parse_run_file(text: &str, reading: Reading) -> Result<RunFile, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("it isn't JSON: {error}"))?;
    let known = [
        "schema",
        "benchmarks",
        "benchmark",
        "mv-params",
        "bench-params",
        "endpoints",
        "tags",
        "tool-params",
        "run-params",
    ];
    let members = read_object(&value, "the run file", &known)?;
    check_version(members, VERSION)?;
    let mut notes = Vec::new();
    let benchmarks = match members.get("benchmarks") {
        Some(list) => {
            let first_form = ["benchmark", "mv-params", "bench-params"];
            if let Some(key) = first_form.iter().find(|key| members.contains_key(**key)) {
                return Err(format!(
                    "the run file has benchmarks and, as in its first form, {key:?}; remove one"
                ));
            }
            read_benchmarks(list, reading)?
        }
        None => vec![read_first_form(members, reading)?],
    };
    let endpoints =
        read_list(read_required(members, "endpoints", "the run file")?, "endpoints", 1)?
            .iter()
            .enumerate()
            .map(|(index, endpoint)| {
                read_endpoint(endpoint, &format!("endpoints[{index}]"), &mut notes)
            })
            .collect::<Result<_, _>>()?;
    let tools = match members.get("tool-params") {
        Some(tools) => Some(read_tools(tools, &mut notes)?),
        None => None,
    };
    Ok(RunFile {
        benchmarks,
        endpoints,
        tags: read_tags(members)?,
        params: read_run_params(members, &mut notes)?,
        tools,
        notes,
    })
}

fn read_benchmarks(list: &Value, reading: Reading) -> Result<Vec<Benchmark>, String> {
    let mut benchmarks = Vec::new();
    for (index, value) in read_list(list, "benchmarks", 1)?.iter().enumerate() {
        let place = format!("benchmarks[{index}]");
        let members = read_object(value, &place, &["name", "ids", "mv-params", "bench-params"])?;
        let name = read_text(read_required(members, "name", &place)?, &format!("{place}.name"))?;
        let ids = read_numbers(read_required(members, "ids", &place)?, &format!("{place}.ids"))?;
        let matrix = read_matrix(members, &place, reading)?;
        benchmarks.push(Benchmark { name: name.to_owned(), ids: Some(ids), matrix });
    }
    Ok(benchmarks)
}

fn read_first_form(members: &Map<String, Value>, reading: Reading) -> Result<Benchmark, String> {
    let name = match members.get("benchmark") {
        Some(name) => read_text(name, "benchmark")?.to_owned(),
        // In the first form a script names the benchmark.
        None => String::new(),
    };
    Ok(Benchmark { name, ids: None, matrix: read_matrix(members, "the run file", reading)? })
}

fn read_matrix(
    members: &Map<String, Value>,
    place: &str,
    reading: Reading,
) -> Result<Matrix, String> {
    let at = |why: String| format!("{place}: {why}");
    match (members.get("mv-params"), members.get("bench-params")) {
        (Some(_), Some(_)) => Err(at("mv-params and bench-params exclude each other".to_owned())),
        (None, Some(iterations)) => {
            read_bench_params(iterations).map(Matrix::Iterations).map_err(at)
        }
        (None, None) => Err(at("it lacks \"mv-params\"".to_owned())),
        (Some(Value::Array(list)), None) => match list.as_slice() {
            [only] => read_mv_params(only).map(Matrix::Values).map_err(at),
            [first, ..] if reading.is_compat() => {
                read_mv_params(first).map(Matrix::Values).map_err(at)
            }
            [] => Err(at("mv-params is empty".to_owned())),
            several => {
                let why = format!("mv-params has {} matrices", several.len());
                Err(at(Name::SeveralMatrices.refuse(&why)))
            }
        },
        (Some(matrix), None) => read_mv_params(matrix).map(Matrix::Values).map_err(at),
    }
}

fn read_tags(members: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let Some(tags) = members.get("tags") else { return Ok(Vec::new()) };
    let Value::Object(tags) = tags else { return Err("tags isn't an object".to_owned()) };
    tags.iter()
        .map(|(name, value)| match value {
            Value::String(value) => Ok((name.clone(), value.clone())),
            _ => Err(format!("tags.{name} isn't a text")),
        })
        .collect()
}

fn read_run_params(
    members: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<RunParams, String> {
    let mut params = RunParams::default();
    let Some(value) = members.get("run-params") else { return Ok(params) };
    let known = [
        "num-samples",
        "max-sample-failures",
        "test-order",
        "name",
        "email",
        "ssh-key-algorithm",
        "ssh-key-bits",
    ];
    let members = read_object(value, "run-params", &known)?;
    let count = |key: &str| match members.get(key) {
        Some(value) => read_samples(value, &format!("run-params.{key}")),
        None => Ok(1),
    };
    params.samples = count("num-samples")?;
    params.max_failures = count("max-sample-failures")?;
    if let Some(order) = members.get("test-order") {
        params.order = read_word(order, "run-params.test-order", ORDERS)?;
    }
    let text = |key: &str| match members.get(key) {
        Some(value) => {
            read_text(value, &format!("run-params.{key}")).map(|text| Some(text.to_owned()))
        }
        None => Ok(None),
    };
    params.name = text("name")?;
    params.email = text("email")?;
    if params.name.is_some() != params.email.is_some() {
        return Err("run-params has one of name and email, and needs both or none".to_owned());
    }
    if let Some(algorithm) = members.get("ssh-key-algorithm") {
        let known = [("ecdsa", ()), ("ed25519", ()), ("rsa", ())];
        read_word(algorithm, "run-params.ssh-key-algorithm", &known)?;
    }
    if let Some(bits) = members.get("ssh-key-bits") {
        read_count(bits, "run-params.ssh-key-bits", 256)?;
    }
    if members.contains_key("ssh-key-algorithm") || members.contains_key("ssh-key-bits") {
        notes.push(
            "run-params.ssh-key-algorithm and ssh-key-bits have no effect: ssh uses your own keys"
                .to_owned(),
        );
    }
    Ok(params)
}

fn read_samples(value: &Value, place: &str) -> Result<u32, String> {
    let count = read_count(value, place, 1)?;
    u32::try_from(count)
        .ok()
        .filter(|_| count <= MOST_SAMPLES)
        .ok_or_else(|| format!("{place} is {count}, and may be {MOST_SAMPLES} at most"))
}

/// Reads `tool-params`; the names of the tools that are enabled.
///
/// # Errors
/// A sentence that names the place.
pub fn read_tools(value: &Value, notes: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut tools = Vec::new();
    for (index, value) in read_list(value, "tool-params", 0)?.iter().enumerate() {
        let place = format!("tool-params[{index}]");
        let known = ["tool", "id", "params", "enabled", "userenv", "deployment", "opt-tag"];
        let members = read_object(value, &place, &known)?;
        let name = read_text(read_required(members, "tool", &place)?, &format!("{place}.tool"))?;
        let params_place = format!("{place}.params");
        if let Some(params) = members.get("params") {
            for (index, param) in read_list(params, &params_place, 0)?.iter().enumerate() {
                let place = format!("{params_place}[{index}]");
                let members = read_object(param, &place, &["arg", "val", "enabled"])?;
                for key in ["arg", "val"] {
                    read_text(read_required(members, key, &place)?, &format!("{place}.{key}"))?;
                }
                read_enabled(members, &place)?;
            }
            notes
                .push(format!("{params_place} have no effect: {name} is linerate's own collector"));
        }
        if read_enabled(members, &place)? {
            tools.push(name.to_owned());
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests;
