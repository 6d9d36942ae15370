//! `crucible get result` and `get metric`: queries of the store, printed as the original prints them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_engine::event::Cancel;
use linerate_personality::crucible::command_line::{Format, Kept, MetricOptions, ResultOptions};
use linerate_results::breakout::Breakout;
use linerate_results::export::client::IndexError;
use linerate_results::export::indexed::{Points, Wanted, read_runs};
use linerate_results::query::{Answer, Filter, SeriesQuery};
use linerate_results::read::RunRow;
use linerate_results::{Aggregation, RunId, Store, StoreError};
use linerate_wire::visible::{visible, visible_line};
use serde_json::json;

use super::super::stdout::say;
use super::Failure;
use super::summary::{RunResult, render_json, render_text};
use super::table::{render_csv, render_table};
use crate::args::ServerArgs;
use crate::commands::matrix::store_path;
use crate::index::{ATTENDED_TRIES, Target, exit_code};
use crate::output::push_shown;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(visible_line(&error.to_string()))
    }
}

/// Opens the store that was asked for, or the user's own; of an index a store with what it has of these runs.
fn open(kept: &Kept, wanted: impl FnOnce() -> Wanted, points: &Points) -> Result<Store, Failure> {
    if let Some(url) = &kept.index {
        let server = ServerArgs {
            ca: kept.ca.as_ref().map(PathBuf::from),
            auth_file: kept.auth_file.as_ref().map(PathBuf::from),
        };
        let target = Target::new("--opensearch", url, &server).map_err(Failure::usage)?;
        let mut index = target.open(None, ATTENDED_TRIES, &Cancel::default())?;
        return Ok(read_runs(&mut index, &wanted(), points)?);
    }
    let path = store_path(kept.store.as_deref().map(Path::new)).map_err(Failure::of_command)?;
    Ok(Store::open_to_read(&path)?)
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        Self { exit_code: exit_code(&error), ..Self::new(error) }
    }
}

/// Prints the results of runs.
pub(super) fn print_result(options: &ResultOptions) -> Result<u8, Failure> {
    let wanted = || match &options.run {
        Some(run) => Wanted::Run(run.clone()),
        None => {
            let words =
                [("harness", &options.harness), ("name", &options.user), ("email", &options.email)];
            let given = words.into_iter().filter_map(|(name, word)| Some((name, word.clone()?)));
            Wanted::With(given.collect())
        }
    };
    let store = open(&options.kept, wanted, &Points::Primary)?;
    let runs = match &options.run {
        Some(run) => vec![store.find(run)?.id],
        None => matching(&store, options)?,
    };
    let mut results = Vec::new();
    for run in runs {
        results.push(RunResult::read(&store, run, options.reading)?);
    }
    match options.format {
        Format::Json => say(&(shown_json(&render_json(&results)) + "\n")),
        Format::Text | Format::Csv => results.iter().for_each(|one| say(&render_text(one))),
    }
    match results.iter().find_map(RunResult::lack) {
        None => Ok(0),
        Some(lack) => Err(Failure::new(visible_line(&lack))),
    }
}

/// The runs that have all that was asked for.
fn matching(store: &Store, options: &ResultOptions) -> Result<Vec<RunId>, Failure> {
    let fits = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|one| one == own);
    let mut runs = Vec::new();
    for RunRow { id, origin, .. } in store.runs()? {
        if !fits(&options.harness, &origin.harness) {
            continue;
        }
        let details = store.details(id)?;
        if fits(&options.user, &details.person) && fits(&options.email, &details.email) {
            runs.push(id);
        }
    }
    match runs.is_empty() {
        true => Err(Failure::new("no run has this user, address and harness")),
        false => Ok(runs),
    }
}

/// Prints a metric.
pub(super) fn print_metric(options: &MetricOptions) -> Result<u8, Failure> {
    let wanted = || match (&options.run, &options.period) {
        (None, Some(period)) => Wanted::Period(period.clone()),
        (run, _) => Wanted::Run(run.clone().unwrap_or_default()),
    };
    let points = Points::Of(options.source.clone(), options.metric.clone());
    let store = open(&options.kept, wanted, &points)?;
    let run = match (&options.run, &options.period) {
        (Some(run), _) => store.find(run)?.id,
        (None, Some(period)) => store.run_of_period(period)?,
        (None, None) => return Err(Failure::new("get metric needs --run or --period")),
    };
    let aggregation = match &options.aggregation {
        Some(name) => Some(Aggregation::of_name(name).ok_or_else(|| {
            Failure::new(format!("--aggregation: {name:?} isn't one of sum, avg, max and min"))
        })?),
        None => None,
    };
    let breakouts = options.breakouts.iter().map(|entry| Breakout::parse(entry));
    let query = SeriesQuery {
        period: options.period.clone(),
        begin_ms: options.begin_ms,
        end_ms: options.end_ms,
        resolution: options.resolution,
        breakouts: breakouts.collect::<Result<_, _>>()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        aggregation,
        compat: options.reading.is_compat(),
        ..SeriesQuery::new(run, options.source.clone(), options.metric.clone())
    };
    let answer = store.query(&query)?;
    let mut windows = answer.groups.iter().flat_map(|group| &group.windows);
    if !answer.groups.is_empty() && windows.all(|window| window.coverage <= 0.0) {
        let (source, metric) = (&options.source, &options.metric);
        return Err(Failure::new(format!("{source}::{metric} has no data in that time")));
    }
    say(&render(&answer, &query.breakouts, options));
    Ok(0)
}

/// JSON whose texts no terminal takes for orders.
fn shown_json(text: &str) -> String {
    let mut shown = String::new();
    for (place, line) in text.split('\n').enumerate() {
        shown.push_str(if place > 0 { "\n" } else { "" });
        push_shown(&mut shown, line);
    }
    shown
}

fn render(answer: &Answer, breakouts: &[Breakout], options: &MetricOptions) -> String {
    let names: Vec<&str> = breakouts.iter().map(|breakout| breakout.name.as_str()).collect();
    match options.format {
        Format::Text => visible(&render_table(answer, &names, options)),
        Format::Csv => visible(&render_csv(answer, &names, options)),
        Format::Json => {
            let values: BTreeMap<String, _> = answer
                .groups
                .iter()
                .map(|group| {
                    let windows = group.windows.iter().map(|window| {
                        let value = match answer.compat {
                            true => Some(window.value.unwrap_or_default()),
                            false => window.value.filter(|_| window.coverage > 0.0),
                        };
                        let mut shown = json!({
                            "begin": window.begin_ms, "end": window.end_ms, "value": value});
                        if let (false, Some(members)) = (answer.compat, shown.as_object_mut()) {
                            members.insert("coverage".to_owned(), json!(window.coverage));
                        }
                        shown
                    });
                    (group.label(), windows.collect::<Vec<_>>())
                })
                .collect();
            let decoder: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
            let mut document = json!({
                "values": values,
                "usedBreakouts": options.breakouts,
                "valueSeriesLabelDecoder": decoder.join("-"),
                "remainingBreakouts": answer.remaining,
            });
            if let (false, Some(members)) = (answer.compat, document.as_object_mut()) {
                members.insert("unit".to_owned(), json!(answer.unit));
                members.insert("aggregation".to_owned(), json!(answer.aggregation));
            }
            shown_json(&serde_json::to_string_pretty(&document).unwrap_or_default()) + "\n"
        }
    }
}
