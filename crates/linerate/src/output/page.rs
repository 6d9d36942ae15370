//! Pages of documents. What they say is what the text printers have.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_measure::comparison::Comparison;
use linerate_measure::run::{Draft, exit};
use linerate_measure::{Dialect, Outcome, Run};
use linerate_report::{
    ComparisonText, Html, ListedRun, Mark, MatrixPage, MatrixRow, Page, PairValue, RunText, Source,
    render_comparison, render_run, render_runs,
};
use linerate_results::compare::Mean;
use linerate_results::read::RunRow;
use serde::{Deserialize, Serialize};

use super::comparison::{render_estimate, render_origin};
use super::ends::rows_of_ends;
use super::json::render_json;
use super::results::{render_mean, short_name, time};
use super::text::{figures_of, latency_cells, name_of, render_title};

/// The most runs that a page shows. Its document has all of them.
const MOST_RUNS: usize = 256;

/// A document that has a page.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Document {
    /// A run.
    Run(Box<Run>),
    /// A comparison.
    Comparison(Box<Comparison>),
    /// Several runs.
    Runs(Vec<Run>),
}

impl Document {
    /// Its whole page with itself in it, for a file at this path.
    pub(crate) fn render(&self, path: &Path) -> String {
        let text = match self {
            Self::Run(run) => render_json(run),
            Self::Comparison(comparison) => render_json(comparison),
            Self::Runs(runs) => render_json(runs),
        };
        let file = file_name(path);
        let name = Path::new(&file).with_extension("json");
        let source = Source { name: &name.to_string_lossy(), text: &format!("{text}\n") };
        self.page(&file).render(Some(source), &[])
    }

    /// Its page, which goes to a file of this name.
    pub(crate) fn page(&self, file: &str) -> Page {
        match self {
            Self::Run(run) => render_run(run, &run_text(run, file)),
            Self::Comparison(comparison) => {
                render_comparison(comparison, &comparison_text(comparison))
            }
            Self::Runs(runs) => {
                let shown = runs.iter().take(MOST_RUNS);
                let texts: Vec<_> = shown.map(|run| (run, run_text(run, file))).collect();
                let title = match runs.len() {
                    all if all > MOST_RUNS => format!("The first {MOST_RUNS} of {all} runs"),
                    all => format!("{all} runs"),
                };
                render_runs(&title, &texts)
            }
        }
    }
}

/// The whole page of runs that have just been made, with their documents in it, for a file at this path.
pub(crate) fn render_page(mut runs: Vec<Run>, path: &Path) -> String {
    match runs.pop() {
        Some(run) if runs.is_empty() => Document::Run(Box::new(run)).render(path),
        last => {
            runs.extend(last);
            Document::Runs(runs).render(path)
        }
    }
}

/// The name of a page's file, without folders that only one machine has.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "PAGE.html".to_owned())
}

/// A run in words. `page` is the name of the file that the page goes to.
fn run_text(run: &Run, page: &str) -> RunText {
    let began = run.environment.started_utc_ns.map(|utc_ns| {
        let began = time(utc_ns / 1_000_000, true);
        format!("began {began} UTC by the {}'s clock", name_of(run.written_by))
    });
    RunText {
        title: render_title(&run.plan).replace('\n', ": "),
        began: began.unwrap_or_else(|| "began at an unknown time".to_owned()),
        figures: figures_of(run),
        latencies: latency_cells(&run.summary),
        ends: rows_of_ends(run, true),
        repeat: vec![repeat_of(run, page)],
        ongoing: None,
    }
}

/// The page of a run that goes on.
pub(crate) fn ongoing_page(draft: &Draft) -> Page {
    let samples = draft.samples.len();
    let run = draft.clone().into_run(Outcome::Interrupted, exit::INTERRUPTED, None);
    let ongoing =
        Some(format!("{samples} samples have come from the ends; there is no verdict yet"));
    let text = RunText { ongoing, repeat: Vec::new(), ..run_text(&run, "PAGE.html") };
    render_run(&run, &text)
}

/// A page that says one thing.
pub(crate) fn page_saying(title: &str, text: &str) -> Page {
    let mut body = Html::new();
    body.markup("<p>").text(text).markup("</p>\n");
    Page { title: title.to_owned(), body, live: None }
}

/// The command line that measures the same again.
fn repeat_of(run: &Run, page: &str) -> String {
    let asked = run.options.as_ref().map(|options| options.command_line.as_slice());
    match asked {
        Some(words @ [_, ..]) if run.dialect != Dialect::Native => {
            let quoted = shlex::try_join(words.iter().map(String::as_str));
            quoted.unwrap_or_else(|_| words.join(" "))
        }
        _ => format!("linerate report {} --plan | linerate run -", quoted(page)),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// A comparison in words.
fn comparison_text(comparison: &Comparison) -> ComparisonText {
    let [a, b] = comparison.commands.each_ref().map(|command| quoted(command));
    let seed =
        comparison.seed.map(|seed| format!(" --pairs {} --seed {seed}", comparison.pairs_asked));
    ComparisonText {
        origin: render_origin(comparison),
        figures: comparison.metrics.iter().map(render_estimate).collect(),
        repeat: vec![format!("linerate compare {a} {b}{}", seed.unwrap_or_default())],
    }
}

/// A run of a list, and an earlier one that it can be compared with.
pub(crate) fn listed_run(run: &RunRow, earlier: Option<&RunRow>) -> ListedRun {
    let partial = if run.partial { ", partial" } else { "" };
    ListedRun {
        name: short_name(run),
        link: format!("/run/{}", run.run),
        began: time(run.began_ms, false),
        command: run.command.clone(),
        title: run.title.clone(),
        cells: format!("{}/{}", run.done, run.cells),
        mark: match (run.status.as_str(), run.verdict.as_str()) {
            ("failed", _) | (_, "invalid") => Mark::Bad,
            ("complete", "" | "valid") if !run.partial => Mark::Good,
            _ => Mark::Doubt,
        },
        status: match run.verdict.as_str() {
            "" | "valid" => format!("{}{partial}", run.status),
            verdict => format!("{}{partial}, {verdict}", run.status),
        },
        compare: earlier.map(|earlier| format!("/compare?a={}&b={}", earlier.run, run.run)),
    }
}

/// The course of an iteration's first sample, and the unit of its values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Course {
    /// A value for each window of time.
    pub(crate) values: Vec<Option<f64>>,
    /// The unit.
    pub(crate) unit: String,
}

/// What a page reads of the document of a stored run of several cells.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MatrixDocument {
    run: KeptRun,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    hosts: Vec<KeptHost>,
    #[serde(default)]
    notes: Vec<KeptNote>,
    iterations: Vec<KeptIteration>,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptRun {
    run: String,
    title: String,
    status: String,
    partial: bool,
    began_ms: i64,
    command: String,
    version: String,
    done: u32,
    cells: u32,
    /// Absent in documents of earlier versions.
    #[serde(default)]
    verdict: String,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptHost {
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptNote {
    position: Option<u32>,
    text: String,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptIteration {
    status: String,
    params: Vec<KeptParam>,
    primary_metric: String,
    /// Absent in documents of earlier versions; there the course has it.
    #[serde(default)]
    unit: String,
    samples: Vec<KeptSample>,
    /// Absent in what `linerate results show --json` prints.
    #[serde(default)]
    course: Course,
    /// Likewise, and where there is one pair.
    #[serde(default)]
    pairs: Vec<KeptPair>,
}

/// A pair of hosts, and what it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptPair {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// The client's host.
    pub(crate) client: String,
    /// The server's host.
    pub(crate) server: String,
    /// The mean of its samples in the primary metric.
    #[serde(default)]
    pub(crate) value: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptParam {
    arg: String,
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
struct KeptSample {
    status: String,
    /// Absent in documents of earlier versions.
    #[serde(default)]
    verdict: String,
    #[serde(default)]
    position: Option<u32>,
    value: Option<f64>,
}

/// A stored run of several cells in words.
pub(crate) fn matrix_page(matrix: &MatrixDocument) -> MatrixPage {
    let row = &matrix.run;
    let mut parameters: Vec<String> = Vec::new();
    for param in matrix.iterations.iter().flat_map(|iteration| &iteration.params) {
        if !parameters.contains(&param.arg) {
            parameters.push(param.arg.clone());
        }
    }
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let partial = if row.partial { ", partial" } else { "" };
    let mut facts = vec![
        fact("run", row.run.clone()),
        fact("began", format!("{} UTC", time(row.began_ms, true))),
        fact(
            "status",
            format!("{}{partial}, {} of {} cells done", row.status, row.done, row.cells),
        ),
        fact("command", format!("{} ({})", row.command, row.version)),
    ];
    if !row.verdict.is_empty() {
        facts.push(fact("verdict", row.verdict.clone()));
    }
    facts.extend(matrix.tags.iter().map(|(name, value)| fact(name, value.clone())));
    let hosts: Vec<&str> = matrix.hosts.iter().map(|host| host.name.as_str()).collect();
    facts.push(fact("hosts", hosts.join(", ")));
    let rows = matrix.iterations.iter().map(|iteration| row_of(iteration, &parameters));
    let on_cell = |position: Option<u32>| {
        position.map(|position| format!("cell {position}: ")).unwrap_or_default()
    };
    MatrixPage {
        title: if row.title.is_empty() { format!("run {}", row.run) } else { row.title.clone() },
        facts,
        rows: rows.collect(),
        parameters,
        notes: matrix
            .notes
            .iter()
            .map(|note| format!("{}{}", on_cell(note.position), note.text))
            .collect(),
        repeat: Vec::new(),
        served_at: None,
    }
}

fn row_of(iteration: &KeptIteration, parameters: &[String]) -> MatrixRow {
    let course = &iteration.course;
    let unit = if iteration.unit.is_empty() { &course.unit } else { &iteration.unit };
    let samples = || iteration.samples.iter().filter(|sample| sample.status == "done");
    let known: Vec<f64> = samples().filter_map(|sample| sample.value).collect();
    let count = |status: &str| iteration.samples.iter().filter(|one| one.status == status).count();
    let (done, failed, all) = (count("done"), count("failed"), iteration.samples.len());
    let doubted = |verdict: &str| samples().filter(|sample| sample.verdict == verdict).count();
    let (doubtful, invalid) = (doubted("doubtful"), doubted("invalid"));
    let mark = match iteration.status.as_str() {
        "fail" => Mark::Bad,
        _ if failed + invalid > 0 => Mark::Bad,
        _ if doubtful > 0 => Mark::Doubt,
        "pass" => Mark::Good,
        "" if done == all => Mark::Good,
        _ => Mark::Doubt,
    };
    let mut doubts = String::new();
    for (count, what) in [(failed, "failed"), (doubtful, "doubtful"), (invalid, "invalid")] {
        if count > 0 {
            doubts.push_str(&format!(", {count} {what}"));
        }
    }
    let verdict = match iteration.status.as_str() {
        "" => String::new(),
        status => format!("{status}, "),
    };
    let value_of = |name: &String| {
        let of_name = iteration.params.iter().filter(|param| param.arg == *name);
        of_name.map(|param| param.value.as_str()).collect::<Vec<_>>().join(", ")
    };
    let measured = samples().find(|sample| sample.value.is_some());
    let pair = |kept: &KeptPair| PairValue {
        number: kept.number,
        client: kept.client.clone(),
        server: kept.server.clone(),
        value: kept.value,
    };
    let mean = Mean::of(&known);
    let mean_text = mean.map(|mean| format!("{} {}", render_mean(&mean), unit));
    MatrixRow {
        parameters: parameters.iter().map(value_of).collect(),
        metric: iteration.primary_metric.clone(),
        value: mean.map(|mean| mean.mean),
        value_text: mean_text.unwrap_or_else(|| "-".to_owned()),
        more_is_better: match unit.as_str() {
            "ns" | "us" | "ms" | "s" => Some(false),
            unit if unit.ends_with("/s") => Some(true),
            _ => None,
        },
        mark,
        status: format!("{verdict}{done} of {all} done{doubts}"),
        course: course.values.clone(),
        unit: unit.clone(),
        position: measured.and_then(|sample| sample.position),
        pairs: iteration.pairs.iter().map(pair).collect(),
    }
}

/// A run in which nothing was measured.
#[cfg(test)]
pub(crate) fn run_of_nothing() -> Run {
    use linerate_measure::{Direction, Plan, Transport, Workload};

    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    Draft::new("id".to_owned(), Plan::new("h", 1, workload)).into_run(Outcome::Complete, 0, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_so_many_runs_and_tells_of_more() {
        for (count, title) in [(MOST_RUNS, "256 runs"), (300, "The first 256 of 300 runs")] {
            let runs = vec![run_of_nothing(); count];
            let page = Document::Runs(runs.clone()).page("x.html");
            assert_eq!(page.title, title);
            let own = page.body.into_string().matches("--plan").count();
            assert_eq!(own, MOST_RUNS);
            let html = render_page(runs.clone(), Path::new("x.html"));
            let document = linerate_report::extract(&html).unwrap();
            assert_eq!(serde_json::from_str::<Vec<Run>>(&document).unwrap(), runs);
        }
    }
}
