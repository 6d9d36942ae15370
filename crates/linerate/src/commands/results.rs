//! `results`: what the store has.

mod index;
mod metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use linerate_engine::event::Cancel;
use linerate_measure::Run;
use linerate_measure::run::exit;
use linerate_results::breakout::Breakout;
use linerate_results::compare::Mean;
use linerate_results::plot::{Frame, Line, dots_across, render_svg, render_text};
use linerate_results::query::{Answer, Periods, SeriesQuery, Window};
use linerate_results::read::{IterationRow, RunDetails, RunRow, SampleRow};
use linerate_results::{Store, StoreError};
use rustix::stdio::stdout;
use serde_json::json;

use super::{Failure, await_file, open_destination, print};
use crate::args::{
    DiffArgs, ExportArgs, ListArgs, MergeArgs, PlotArgs, RemoveArgs, ResultsArgs, ResultsCommand,
    ShowArgs,
};
use crate::output::{
    columns_of, csv_head, csv_rows, narrate, render_details, render_difference, render_document,
    render_json, render_run_list,
};
use crate::store;

/// Points in time of an SVG picture.
const SVG_RESOLUTION: u32 = 500;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) | StoreError::Unfit(_) => Self::usage(error.to_string()),
            _ => Self::here(error.to_string()),
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
            None => print_all(&open(&path)?, export, cancel)?,
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
    let mut runs = if path.exists() { Store::open_to_read(path)?.runs()? } else { Vec::new() };
    if !args.tags.is_empty() {
        let store = open(path)?;
        let mut kept = Vec::new();
        for run in runs {
            let tags = store.details(run.id)?.tags;
            if args.tags.iter().all(|tag| tags.contains(tag)) {
                kept.push(run);
            }
        }
        runs = kept;
    }
    print(&match args.json {
        true => format!("{}\n", render_json(&runs)),
        false => render_run_list(&runs, columns_of(&stdout())),
    })
}

/// What the iterations of a run come to in their primary metrics.
pub(super) struct Values {
    /// Of each iteration the values of its samples. A sample that was not measured has none.
    samples: Vec<Vec<Option<f64>>>,
    /// Of each iteration the unit of its values; empty where none was measured.
    units: Vec<String>,
}

/// The values of all samples of a run.
pub(super) fn values_of(store: &Store, details: &RunDetails) -> Result<Values, StoreError> {
    let measured = Measured::of(store, details, 1)?;
    let of_iteration = |iteration: &IterationRow| {
        let values = iteration.samples.iter().map(|sample| {
            let (windows, _) = measured.windows(iteration, sample)?;
            windows.first()?.value
        });
        values.collect()
    };
    Ok(Values {
        samples: details.iterations.iter().map(of_iteration).collect(),
        units: details.iterations.iter().map(|one| measured.unit(one).to_owned()).collect(),
    })
}

/// The primary metrics of a run in all its periods. Each metric is looked up once.
pub(super) struct Measured<'a> {
    metrics: BTreeMap<&'a str, Periods>,
}

impl<'a> Measured<'a> {
    /// Looks them up, so many windows for each period.
    pub(super) fn of(
        store: &Store,
        details: &'a RunDetails,
        resolution: u32,
    ) -> Result<Self, StoreError> {
        let mut metrics = BTreeMap::new();
        let names: BTreeSet<&str> =
            details.iterations.iter().map(|one| one.primary_metric.as_str()).collect();
        for name in names {
            let Some(metric) = split_metric(name) else { continue };
            match store.query_periods(details.row.id, metric, resolution) {
                Ok(periods) => drop(metrics.insert(name, periods)),
                // All samples may have failed before they measured it.
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { metrics })
    }

    /// The unit of an iteration's primary metric; empty where nothing was measured.
    fn unit(&self, iteration: &IterationRow) -> &str {
        let periods = self.metrics.get(iteration.primary_metric.as_str());
        periods.map(|periods| periods.unit.as_str()).unwrap_or_default()
    }

    /// The windows of a sample in the primary metric of its iteration, and their unit; `None` where it was not measured.
    pub(super) fn windows(
        &self,
        iteration: &IterationRow,
        sample: &SampleRow,
    ) -> Option<(&[Window], &str)> {
        let periods = self.metrics.get(iteration.primary_metric.as_str())?;
        let windows = periods.windows.get(&sample.period.as_ref()?.uuid)?;
        Some((windows, &periods.unit))
    }
}

/// Source and type of the first metric of a list.
pub(super) fn split_metric(metrics: &str) -> Option<(&str, &str)> {
    metrics.split(',').next()?.split_once("::")
}

fn print_run(store: &Store, args: &ShowArgs) -> Result<(), Failure> {
    let details = store.details(store.find(&args.run)?.id)?;
    let values = values_of(store, &details)?;
    if args.json {
        return print(&format!("{}\n", render_json(&run_json(store, &details, &values)?)));
    }
    print(&render_details(&details, &values.samples))?;
    if details.row.cells == 1 {
        store.each_document(details.row.id, |document| {
            let run: Option<Run> = serde_json::from_str(&document.body).ok();
            match run {
                Some(run) => print(&render_document(&run)),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// All of a run but its documents and series, as JSON.
pub(super) fn run_json(
    store: &Store,
    details: &RunDetails,
    values: &Values,
) -> Result<serde_json::Value, StoreError> {
    let all = details.iterations.iter().zip(&values.samples).zip(&values.units);
    let iterations = all.map(|((iteration, values), unit)| {
        let samples = iteration.samples.iter().zip(values).map(|(sample, value)| {
            json!({
                "num": sample.num,
                "sample": sample.uuid,
                "status": sample.status,
                "position": sample.position,
                "reason": sample.reason,
                "exit_code": sample.exit_code,
                "period": sample.period.as_ref().map(|period| json!({
                    "period": period.uuid,
                    "begin_ms": period.span.begin_ms,
                    "end_ms": period.span.end_ms,
                })),
                "value": value,
            })
        });
        let params = iteration.params.iter().map(|param| {
            json!({ "arg": param.arg, "value": param.value, "role": param.role, "engines": param.engines })
        });
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        json!({
            "num": iteration.num,
            "iteration": iteration.uuid,
            "status": iteration.status,
            "params": params.collect::<Vec<_>>(),
            "primary_metric": iteration.primary_metric,
            "unit": unit,
            "mean": Mean::of(&known),
            "samples": samples.collect::<Vec<_>>(),
        })
    });
    let hosts = details.hosts.iter().map(|host| {
        json!({
            "name": host.name,
            "transport": host.transport,
            "facts": serde_json::from_str::<serde_json::Value>(&host.facts).unwrap_or_default(),
            "offset_ns": host.offset_ns,
            "bound_ns": host.bound_ns,
        })
    });
    let notes = details.notes.iter();
    let notes = notes.map(|(position, text)| json!({ "position": position, "text": text }));
    let tags = details.tags.iter().map(|(name, value)| (name.clone(), json!(value)));
    Ok(json!({
        "run": details.row,
        "tags": tags.collect::<serde_json::Map<_, _>>(),
        "plan": serde_json::from_str::<serde_json::Value>(&details.plan).unwrap_or_default(),
        "hosts": hosts.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
        "metrics": store.metrics(details.row.id)?,
        "iterations": iterations.collect::<Vec<_>>(),
    }))
}

fn print_comparison(store: &Store, args: &DiffArgs) -> Result<(), Failure> {
    let (first, second) = (store.find(&args.first)?, store.find(&args.second)?);
    let comparison = store.compare(first.id, second.id)?;
    print(&match args.json {
        true => {
            let document = json!({ "first": first, "second": second, "comparison": comparison });
            format!("{}\n", render_json(&document))
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
    let primary = details
        .iterations
        .iter()
        .find_map(|iteration| split_metric(&iteration.primary_metric).map(owned));
    let first = store.metrics(row.id)?.into_iter().next();
    let first = first.and_then(|(source, types)| Some((source, types.into_iter().next()?)));
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
        return print(&format!("{}\n", render_json(&answer)));
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
    let visible = linerate_wire::visible::visible_line;
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

fn print_all(store: &Store, args: &ExportArgs, cancel: &Cancel) -> Result<(), Failure> {
    let runs = args.runs.iter().map(|word| store.find(word)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.bundle {
        let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
        return Ok(store.bundle(&ids, path)?);
    }
    let mut destination = open_destination(args.output.as_deref(), cancel)?;
    if args.csv {
        destination.put(csv_head())?;
    }
    for row in &runs {
        if !args.csv {
            let details = store.details(row.id)?;
            let values = values_of(store, &details)?;
            let mut line = run_json(store, &details, &values)?;
            put_record(&mut line, "run");
            destination.put(&format!("{line}\n"))?;
            store.each_document(row.id, |document| {
                let body: serde_json::Value = serde_json::from_str(&document.body)
                    .unwrap_or_else(|_| document.body.clone().into());
                let line = json!({
                    "record": "document",
                    "run": row.run,
                    "position": document.position,
                    "attempt": document.attempt,
                    "host": document.host,
                    "kind": document.kind,
                    "document": body,
                });
                Ok::<_, Failure>(destination.put(&format!("{line}\n"))?)
            })?;
        }
        store.each_series(row.id, |series| {
            if args.csv {
                return Ok(destination.put(&csv_rows(&row.run, &series))?);
            }
            let points = series.points.iter();
            let points = points.map(|(span, value)| json!([span.begin_ms, span.end_ms, value]));
            let line = json!({
                "record": "series",
                "run": row.run,
                "iteration": series.cell.map(|(iteration, _)| iteration),
                "sample": series.cell.map(|(_, sample)| sample),
                "source": series.source,
                "type": series.metric,
                "class": series.class,
                "unit": series.unit,
                "labels": series.labels,
                "points": points.collect::<Vec<_>>(),
            });
            Ok::<_, Failure>(destination.put(&format!("{line}\n"))?)
        })?;
    }
    destination.commit().map_err(Failure::here)
}

fn put_record(line: &mut serde_json::Value, kind: &str) {
    if let Some(fields) = line.as_object_mut() {
        fields.insert("record".to_owned(), kind.into());
    }
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
