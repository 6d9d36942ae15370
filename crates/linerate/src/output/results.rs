//! What a store has, as text and as rows.

use jiff::Timestamp;
use linerate_measure::Run;
use linerate_results::compare::{Comparison, Mean, params_text};
use linerate_results::points::SeriesHead;
use linerate_results::read::{RunDetails, RunRow, SampleRow};
use linerate_wire::visible::{is_visible, push_json, visible_line};

use super::csv::quoted;
use super::json::render_json;
use super::{Printer, Style, Table, TextPrinter};

/// Letters of a run's name in a list: enough to tell runs apart.
const SHORT_NAME: usize = 12;

/// A time of the store, by the minute, or by the second.
pub(super) fn time(ms: i64, seconds: bool) -> String {
    let format = if seconds { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    match Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime(format).to_string(),
        Err(_) => ms.to_string(),
    }
}

/// A run's name as far as it tells runs apart.
pub(super) fn short_name(run: &RunRow) -> String {
    let mut short: String = run.run.chars().take(SHORT_NAME).collect();
    if run.run.ends_with(".server") {
        short.push_str(".server");
    }
    short
}

/// A verdict of the store in a table.
pub(super) fn verdict_word(verdict: &str) -> &str {
    if verdict.is_empty() { "-" } else { verdict }
}

/// The runs as a table of this many columns.
pub(crate) fn render_run_list(runs: &[RunRow], columns: usize) -> String {
    if runs.is_empty() {
        return "no runs yet: `linerate stream HOST --store` keeps one\n".to_owned();
    }
    let mut table =
        Table::with_head(&["run", "began (UTC)", "cells", "status", "verdict", "command", "title"]);
    for run in runs {
        let status =
            if run.partial { format!("{}, partial", run.status) } else { run.status.clone() };
        let cells = format!("{}/{}", run.done, run.cells);
        let verdict = verdict_word(&run.verdict).to_owned();
        let began = time(run.began_ms, false);
        let words = [short_name(run), began, cells, status, verdict, run.command.clone()];
        let mut row: Vec<String> = words.iter().map(|word| visible_line(word)).collect();
        row.push(visible_line(&run.title));
        table.push(row);
    }
    let lines = table.render(Style::Plain);
    let cut = lines.lines().map(|line| line.chars().take(columns).collect::<String>());
    cut.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What a run was and came to, with the value of each sample.
pub(crate) fn render_details(details: &RunDetails, values: &[Vec<Option<f64>>]) -> String {
    let row = &details.row;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<9}{}\n", visible_line(&value)));
        }
    };
    line("run", row.run.clone());
    line("title", row.title.clone());
    let ended = row.ended_ms.map(|ms| format!(", ended {}", time(ms, true))).unwrap_or_default();
    line("began", format!("{}{ended} UTC", time(row.began_ms, true)));
    let partial = if row.partial { ", partial" } else { "" };
    line("status", format!("{}{partial}, {} of {} cells done", row.status, row.done, row.cells));
    line("verdict", verdict_line(details));
    line("command", format!("{} ({})", row.command, row.version));
    line("person", [details.person.as_str(), details.email.as_str()].join(" ").trim().to_owned());
    let tags = details.tags.iter().map(|(name, value)| format!("{name}={value}"));
    line("tags", tags.collect::<Vec<_>>().join(" "));
    let hosts = details.hosts.iter().map(|host| match host.transport.is_empty() {
        true => host.name.clone(),
        false => format!("{} ({})", host.name, host.transport),
    });
    line("hosts", hosts.collect::<Vec<_>>().join(", "));
    if row.cells > 1 {
        text.push_str(&render_iterations(details, values));
    }
    // The document of a lone cell has its notes itself.
    for (position, note) in details.notes.iter().filter(|_| row.cells > 1) {
        let of = position.map(|position| format!(" on cell {position}")).unwrap_or_default();
        text.push_str(&format!("note{of}: {}\n", visible_line(note)));
    }
    text
}

/// The verdict of a run, and how many of its samples are not valid.
fn verdict_line(details: &RunDetails) -> String {
    let samples = || details.iterations.iter().flat_map(|iteration| &iteration.samples);
    let ended = samples().filter(|sample| sample.counts() || sample.status == "failed").count();
    let count = |what: &str, is: &dyn Fn(&&SampleRow) -> bool| match samples().filter(is).count() {
        0 => None,
        count => Some(format!("{count} of {ended} samples {what}")),
    };
    let doubtful = count("doubtful", &|sample| sample.counts() && sample.verdict() == "doubtful");
    let invalid = count("invalid", &|sample| sample.counts() && sample.verdict() == "invalid");
    let failed = count("failed", &|sample| sample.status == "failed");
    let counts: Vec<String> = [doubtful, invalid, failed].into_iter().flatten().collect();
    match (details.row.verdict.as_str(), counts.is_empty() || details.row.cells == 1) {
        (verdict, true) => verdict.to_owned(),
        (verdict, false) => format!("{verdict}: {}", counts.join(", ")),
    }
}

/// The samples of an iteration that its mean is without, and those in it that are not valid.
pub(super) fn doubts_of(samples: &[SampleRow]) -> String {
    let names = |is: &dyn Fn(&&SampleRow) -> bool| {
        let numbers = samples.iter().filter(is).map(|sample| sample.num.to_string());
        numbers.collect::<Vec<_>>().join(", ")
    };
    let failed = names(&|sample| sample.status == "failed");
    let doubted = names(&|sample| sample.counts() && sample.is_doubted());
    let mut text = String::new();
    if !failed.is_empty() {
        text.push_str(&format!("; without failed sample {failed}"));
    }
    if !doubted.is_empty() {
        text.push_str(&format!("; not valid: sample {doubted}"));
    }
    text
}

fn render_iterations(details: &RunDetails, values: &[Vec<Option<f64>>]) -> String {
    let mut text = String::new();
    for (iteration, values) in details.iterations.iter().zip(values) {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let mean = Mean::of(&known)
            .map(|mean| format!("   {} {}", iteration.primary_metric, render_mean(&mean)));
        let doubts = doubts_of(&iteration.samples);
        let status = match iteration.status.as_str() {
            "" => String::new(),
            status => format!("   {status}"),
        };
        let line = format!(
            "iteration {}: {}{status}{}{doubts}",
            iteration.num,
            params_text(iteration),
            mean.unwrap_or_default()
        );
        text.push_str(&format!("{}\n", visible_line(&line)));
        for (sample, value) in iteration.samples.iter().zip(values) {
            let value = value.map(|value| format!("  {}", number(value))).unwrap_or_default();
            let verdict = match sample.counts() && sample.is_doubted() {
                true => format!(", {}", sample.verdict()),
                false => String::new(),
            };
            let why = sample.outcome.as_ref().map(|outcome| outcome.why.as_str());
            let reason = match (sample.reason.as_str(), why.unwrap_or_default()) {
                ("", "") => String::new(),
                ("", why) => format!("  {why}"),
                (reason, _) => format!("  {reason}"),
            };
            let line =
                format!("  sample {}: {}{verdict}{value}{reason}", sample.num, sample.status);
            text.push_str(&format!("{}\n", visible_line(&line)));
        }
    }
    text
}

/// A number with the digits that tell something.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e12).contains(&size) => format!("{value:.3e}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

pub(super) fn render_mean(mean: &Mean) -> String {
    match mean.deviation {
        Some(deviation) => {
            format!("{} ± {} (n {})", number(mean.mean), number(deviation), mean.samples)
        }
        None => number(mean.mean),
    }
}

/// A run document as the command printed it.
pub(crate) fn render_document(run: &Run) -> String {
    let mut printer = TextPrinter::new(Style::Plain, 1, false, true);
    printer.render_run(run, 0) + &printer.render_end()
}

/// What differs between two runs.
pub(crate) fn render_difference(first: &RunRow, second: &RunRow, compared: &Comparison) -> String {
    let name = |row: &RunRow| {
        let title = if row.title.is_empty() { String::new() } else { format!("  {}", row.title) };
        let verdict = match row.verdict.as_str() {
            "" | "valid" => String::new(),
            verdict => format!("  {}", verdict.to_uppercase()),
        };
        visible_line(&format!("{}  {}{title}{verdict}", row.run, time(row.began_ms, true)))
    };
    let mut text = format!("A  {}\nB  {}\n", name(first), name(second));
    if !compared.asked.is_empty() {
        let mut table = Table::with_head(&["asked", "A", "B"]);
        for (field, one, other) in &compared.asked {
            table.push([field, one, other].map(|word| visible_line(word)).to_vec());
        }
        text.push_str(&format!("\n{}", table.render(Style::Plain)));
    }
    for iteration in &compared.iterations {
        let mut table = Table::with_head(&["figure", "A", "B", "change"]);
        for figure in &iteration.figures {
            let change = figure.change.map(|share| format!("{:+.2} %", share * 100.0));
            table.push(vec![
                visible_line(&figure.name),
                render_mean(&figure.first),
                render_mean(&figure.second),
                change.unwrap_or_default(),
            ]);
        }
        let heading = match iteration.params.is_empty() {
            true => String::new(),
            false => format!("{}\n", visible_line(&iteration.params)),
        };
        text.push_str(&format!("\n{heading}{}", table.render(Style::Plain)));
    }
    for (which, only) in [("A", &compared.only_first), ("B", &compared.only_second)] {
        for params in only {
            text.push_str(&format!("only in {which}: {}\n", visible_line(params)));
        }
    }
    text
}

/// The names of the columns of exported points.
pub(crate) fn csv_head() -> &'static str {
    "run,iteration,sample,source,type,class,unit,labels,begin_ms,end_ms,value\n"
}

/// What the rows of all points of a series begin with.
pub(crate) fn csv_row_head(run: &str, series: &SeriesHead) -> String {
    let (iteration, sample) = match series.cell {
        Some((iteration, sample)) => (iteration.to_string(), sample.to_string()),
        None => Default::default(),
    };
    let labels = series.labels.iter().map(|(name, value)| format!("{name}={value}"));
    let labels = labels.collect::<Vec<_>>().join(";");
    let texts = [run, &series.source, &series.metric, &series.class, &series.unit, &labels];
    let [run, source, metric, class, unit, labels] = texts.map(|text| quoted(&visible_line(text)));
    format!("{run},{iteration},{sample},{source},{metric},{class},{unit},{labels}")
}

/// What a store has, as JSON that a terminal shows as it is: what is not visible is escaped.
pub(crate) fn render_stored(value: &impl serde::Serialize) -> String {
    let mut shown = String::new();
    for (place, line) in render_json(value).split('\n').enumerate() {
        if place > 0 {
            shown.push('\n');
        }
        push_shown(&mut shown, line);
    }
    shown
}

/// Adds a part of a line of JSON, likewise.
pub(crate) fn push_shown(text: &mut String, part: &str) {
    match part.chars().all(is_visible) {
        true => text.push_str(part),
        // White space between the parts of a document is no text.
        false => push_json(text, &part.replace('\t', " ")),
    }
}
