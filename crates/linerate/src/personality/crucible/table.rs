//! The answer of `get metric` as a table, or as comma-separated values.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_personality::crucible::command_line::MetricOptions;
use linerate_results::query::{Answer, Window};

/// Digits behind the point where none were asked for.
const PLACES: usize = 2;

/// A table: source, type, breakouts, then a column for each window, headed by its end (UTC).
pub(super) fn render_table(answer: &Answer, names: &[&str], options: &MetricOptions) -> String {
    let rows = rows(answer, names, options);
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let remaining = answer.remaining.join(",");
    let mut text = format!("Available breakouts:  {remaining}\n\n");
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        text.push_str(&cells.collect::<Vec<_>>().join("  "));
        text.push('\n');
    }
    if !answer.compat {
        // An index has no units.
        let unit = match answer.unit.as_str() {
            "" => String::new(),
            unit => format!("Values are in {unit}. "),
        };
        match answer.groups.is_empty() {
            true => text.push_str("\nNo series passes the filter.\n"),
            false => {
                let covered = coverage(answer) * 100.0;
                text.push_str(&format!("\n{unit}Data cover {covered:.1} % of the time.\n"));
            }
        }
    }
    text
}

/// The same rows as comma-separated values, with the windows' ends in milliseconds since 1970.
pub(super) fn render_csv(answer: &Answer, names: &[&str], options: &MetricOptions) -> String {
    let mut text = String::new();
    let ends = first_windows(answer).iter().map(|window| window.end_ms.to_string());
    let header = header(names).into_iter().chain(ends);
    let quote = |cell: String| match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    let mut line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.into_iter().map(quote).collect();
        text.push_str(&(cells.join(",") + "\n"));
    };
    line(header.collect());
    body(answer, options).into_iter().for_each(&mut line);
    text
}

fn rows(answer: &Answer, names: &[&str], options: &MetricOptions) -> Vec<Vec<String>> {
    let time = |format: &'static str| {
        first_windows(answer).iter().map(move |window| render_time(window.end_ms, format))
    };
    let blank = || header(names).into_iter().map(|_| String::new());
    let mut rows = vec![
        blank().chain(time("%d-%m-%Y")).collect(),
        header(names).into_iter().chain(time("%H:%M:%S")).collect(),
    ];
    rows.extend(body(answer, options));
    rows
}

fn header(names: &[&str]) -> Vec<String> {
    ["source", "type"].iter().chain(names).map(|name| (*name).to_owned()).collect()
}

fn body(answer: &Answer, options: &MetricOptions) -> Vec<Vec<String>> {
    let places = options.decimal_places.unwrap_or(PLACES);
    let mut rows: Vec<Vec<String>> = answer
        .groups
        .iter()
        .map(|group| {
            let labels = group.labels.iter().cloned();
            let values = group.windows.iter().map(|window| match window.value {
                Some(value) if answer.compat || window.coverage > 0.0 => {
                    format!("{value:.places$}")
                }
                _ => "-".to_owned(),
            });
            let own = [options.source.clone(), options.metric.clone()];
            own.into_iter().chain(labels).chain(values).collect()
        })
        .collect();
    rows.sort_by_key(|row: &Vec<String>| row.iter().map(|cell| natural(cell)).collect::<Vec<_>>());
    rows
}

/// A cell so that numbers in texts are ordered by their value.
fn natural(cell: &str) -> Vec<(u64, String)> {
    let mut pieces = Vec::new();
    let mut rest = cell;
    while !rest.is_empty() {
        let text_length = rest.find(|character: char| character.is_ascii_digit());
        let (text, tail) = rest.split_at(text_length.unwrap_or(rest.len()));
        let digits = tail.find(|character: char| !character.is_ascii_digit());
        let (number, tail) = tail.split_at(digits.unwrap_or(tail.len()));
        pieces.push((number.parse().unwrap_or(u64::MAX), text.to_owned()));
        rest = tail;
    }
    pieces.iter_mut().for_each(|(_, text)| text.make_ascii_lowercase());
    pieces
}

/// The windows, which all groups share.
fn first_windows(answer: &Answer) -> &[Window] {
    answer.groups.first().map_or(&[], |group| &group.windows)
}

/// The least coverage of all windows.
fn coverage(answer: &Answer) -> f64 {
    let windows = answer.groups.iter().flat_map(|group| &group.windows);
    windows.map(|window| window.coverage).fold(1.0, f64::min)
}

fn render_time(ms: i64, format: &str) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned(TimeZone::UTC).strftime(format).to_string(),
        Err(_) => ms.to_string(),
    }
}
