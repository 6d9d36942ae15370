//! `results`: what the store has.

mod export;
mod index;
mod metrics;
mod record;

use std::path::{Path, PathBuf};

use linerate_engine::event::Cancel;
use linerate_measure::Run;
use linerate_measure::run::exit;
use linerate_results::breakout::Breakout;
use linerate_results::plot::{Frame, Line, dots_across, render_svg, render_text};
use linerate_results::query::{Answer, SeriesQuery};
use linerate_results::read::RunRow;
use linerate_results::values::{Values, split_metric};
use linerate_results::{Store, StoreError};
use rustix::stdio::stdout;
use serde_json::json;

pub(super) use record::run_json;

use super::{Failure, await_file, open_destination, print};
use crate::args::{
    DiffArgs, ListArgs, MergeArgs, PlotArgs, RemoveArgs, ResultsArgs, ResultsCommand, ShowArgs,
};
use crate::output::{
    columns_of, narrate, render_details, render_difference, render_document, render_run_list,
    render_stored,
};
use crate::store;
use linerate_wire::visible::{visible, visible_line};

/// Points in time of an SVG picture.
const SVG_RESOLUTION: u32 = 500;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        // Names of a store are anybody's.
        let text = visible_line(&error.to_string());
        match error {
            StoreError::NotFound(_) | StoreError::Unfit(_) => Self::usage(text),
            _ => Self::here(text),
        }
    }
}

/// Does what the command says.
pub(super) fn perform(args: &ResultsArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let path = store::place(args.store.as_deref()).map_err(Failure::here)?;
    match &args.command {
        ResultsCommand::List(list) => print_list(&path, list)?,
        ResultsCommand::Show(show) => print_run(&open(&path)?, show)?,
        ResultsCommand::Diff(diff) => print_comparison(&open(&path)?, diff)?,
        ResultsCommand::Plot(plot) => draw(&open(&path)?, plot, cancel)?,
        ResultsCommand::Export(export) => match &export.opensearch {
            Some(url) => return index::send_runs(&open(&path)?, export, url, cancel),
            None => export::write_runs(&open(&path)?, export, cancel)?,
        },
        ResultsCommand::Merge(merge) => take_in(path, merge, cancel)?,
        ResultsCommand::Outbox(outbox) => return index::outbox(&path, outbox, cancel),
        ResultsCommand::Metrics(metrics) => return metrics::perform(&path, metrics, cancel),
        ResultsCommand::Rm(remove) => remove_runs(&path, remove)?,
    }
    Ok(exit::VALID)
}

/// The store, where there is one.
fn open(path: &Path) -> Result<Store, Failure> {
    if !path.exists() {
        return Err(Failure::usage(format!(
            "there is no store {}: runs are kept with --store or {}, or name another file with --store",
            path.display(),
            store::VARIABLE
        )));
    }
    Ok(Store::open_to_read(path)?)
}

fn print_list(path: &Path, args: &ListArgs) -> Result<(), Failure> {
    // Nothing kept yet is no failure.
    let runs = match path.exists() {
        true => Store::open_to_read(path)?.runs_with(&args.tags)?,
        false => Vec::new(),
    };
    print(&match args.json {
        true => format!("{}\n", render_stored(&runs)),
        false => render_run_list(&runs, columns_of(&stdout())),
    })
}

fn print_run(store: &Store, args: &ShowArgs) -> Result<(), Failure> {
    let details = store.details(store.find(&args.run)?.id)?;
    let values = Values::read(store, &details)?;
    if args.json {
        return print(&format!("{}\n", render_stored(&run_json(store, &details, &values)?)));
    }
    print(&render_details(&details, &values.samples))?;
    if details.row.cells == 1 {
        store.each_document(details.row.id, |document| {
            let run: Option<Run> = serde_json::from_str(&document.body).ok();
            match run {
                // A stored document is anybody's.
                Some(run) => print(&visible(&render_document(&run))),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

fn print_comparison(store: &Store, args: &DiffArgs) -> Result<(), Failure> {
    let (first, second) = (store.find(&args.first)?, store.find(&args.second)?);
    let comparison = store.compare(first.id, second.id)?;
    print(&match args.json {
        true => {
            let document = json!({ "first": first, "second": second, "comparison": comparison });
            format!("{}\n", render_stored(&document))
        }
        false => render_difference(&first, &second, &comparison),
    })
}

/// The metric that is drawn: the one that is asked for, what the run is judged by, or the first that it has.
fn metric_of(
    store: &Store,
    row: &RunRow,
    asked: Option<&str>,
) -> Result<(String, String), Failure> {
    let owned = |(source, metric): (&str, &str)| (source.to_owned(), metric.to_owned());
    if let Some(asked) = asked {
        return split_metric(asked).map(owned).ok_or_else(|| {
            Failure::usage(format!(
                "--metric {asked}: give SOURCE::TYPE, such as linerate::rx-Gbps"
            ))
        });
    }
    let details = store.details(row.id)?;
    let metrics = store.metrics(row.id)?;
    let has = |(source, metric): &(&str, &str)| {
        metrics.get(*source).is_some_and(|types| types.iter().any(|one| one == metric))
    };
    let primary = details
        .iterations
        .iter()
        .find_map(|iteration| split_metric(&iteration.primary_metric).filter(has).map(owned));
    let first = metrics.iter().next();
    let first = first.and_then(|(source, types)| Some((source.clone(), types.first()?.clone())));
    primary
        .or(first)
        .ok_or_else(|| Failure::usage(format!("the run {} has no series to draw", row.run)))
}

fn draw(store: &Store, args: &PlotArgs, cancel: &Cancel) -> Result<(), Failure> {
    let row = store.find(&args.run)?;
    let (source, metric) = metric_of(store, &row, args.metric.as_deref())?;
    let columns = columns_of(&stdout());
    let usual = match args.svg {
        Some(_) => SVG_RESOLUTION,
        None => u32::try_from(dots_across(columns)).unwrap_or(SVG_RESOLUTION),
    };
    let mut query = SeriesQuery::new(row.id, source, metric);
    query.resolution = args.resolution.unwrap_or(usual);
    let breakouts = args.breakout.iter().map(|entry| Breakout::parse(entry));
    query.breakouts = breakouts.collect::<Result<_, _>>()?;
    let answer = store.query(&query)?;
    if args.json {
        return print(&format!("{}\n", render_stored(&answer)));
    }
    let (frame, lines) = picture_of(&row, &query, &answer);
    match &args.svg {
        None => print(&render_text(&frame, &lines, columns)),
        Some(path) => {
            let path = Some(path.as_path()).filter(|path| *path != Path::new("-"));
            let mut destination = open_destination(path, cancel)?;
            destination.put(&render_svg(&frame, &lines))?;
            destination.commit().map_err(Failure::here)
        }
    }
}

fn picture_of(row: &RunRow, query: &SeriesQuery, answer: &Answer) -> (Frame, Vec<Line>) {
    let windows = answer.groups.first().map(|group| group.windows.as_slice()).unwrap_or_default();
    let ends = windows.first().zip(windows.last());
    let length_ms = ends.map_or(0, |(first, last)| last.end_ms - first.begin_ms + 1);
    let short: String = row.run.chars().take(12).collect();
    let title = format!("{}::{}, run {short}", query.source, query.metric);
    let visible = visible_line;
    let lines = answer.groups.iter().map(|group| Line {
        label: visible(&group.label()),
        // A sum over time without data is no zero in a picture.
        values: group
            .windows
            .iter()
            .map(|window| window.value.filter(|_| window.coverage > 0.0))
            .collect(),
    });
    let frame = Frame { title: visible(&title), unit: visible(&answer.unit), length_ms };
    (frame, lines.collect())
}

fn take_in(path: PathBuf, args: &MergeArgs, cancel: &Cancel) -> Result<(), Failure> {
    let files = args.files.clone();
    let told = await_file(cancel, move || {
        // All are opened before this store is made or changed.
        let others = files.iter().map(|file| Store::open_to_read(file));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let mut store = Store::open(&path)?;
        let mut told = String::new();
        for (file, other) in files.iter().zip(&others) {
            let merged = store.merge(other)?;
            told += &format!(
                "{}: {} runs copied, {} were there\n",
                file.display(),
                merged.copied.len(),
                merged.present.len()
            );
        }
        Ok(told)
    })?;
    print(&told)
}

fn remove_runs(path: &Path, args: &RemoveArgs) -> Result<(), Failure> {
    // All are looked for before one is removed.
    let reader = open(path)?;
    let mut runs = Vec::new();
    for name in &args.runs {
        runs.push(reader.find_exactly(name)?);
    }
    drop(reader);
    let mut store = Store::open(path)?;
    for run in runs {
        store.remove(run.id)?;
        narrate(&format!("linerate: removed the run {}\n", run.run));
    }
    Ok(())
}
