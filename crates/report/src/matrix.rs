//! The page of a matrix: a row for each point, with its value, verdict and course.

use std::collections::BTreeMap;

use linerate_measure::comparison::median;

use crate::chart::render_spark;
use crate::grid::{PairValue, render_grids};
use crate::html::{Html, facts};
use crate::page::Page;

/// The most points that a page shows.
pub const MOST_POINTS: usize = 2000;

/// How something stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Good,
    /// With a doubt, or not over yet.
    Doubt,
    /// Not.
    Bad,
    /// Nothing is known.
    #[default]
    None,
}

/// A stored run of several cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatrixPage {
    /// Its title or name.
    pub title: String,
    /// What is known of it: names and values.
    pub facts: Vec<(String, String)>,
    /// The parameters that its points have.
    pub parameters: Vec<String>,
    /// Its points.
    pub rows: Vec<MatrixRow>,
    /// Sentences about it.
    pub notes: Vec<String>,
    /// The command lines that measure the same again.
    pub repeat: Vec<String>,
    /// Of a page that is served: the path below which each pair of a cell has a page of its own, as
    /// `POSITION/NUMBER`. Absent: values lead to their points.
    pub served_at: Option<String>,
}

/// A point of a matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatrixRow {
    /// Its parameters' values, in the page's order.
    pub parameters: Vec<String>,
    /// What is measured.
    pub metric: String,
    /// The mean of its samples.
    pub value: Option<f64>,
    /// The mean and its interval in words.
    pub value_text: String,
    /// Whether more is better; absent: no colour.
    pub more_is_better: Option<bool>,
    /// How it stands, and in a word.
    pub mark: Mark,
    /// Its verdict, or how many of its samples are done.
    pub status: String,
    /// Its values over time.
    pub course: Vec<Option<f64>>,
    /// The unit of its values; empty: not known.
    pub unit: String,
    /// The place of its first measured sample in the run's order.
    pub position: Option<u32>,
    /// What each pair of hosts came to.
    pub pairs: Vec<PairValue>,
}

impl Mark {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubt => "doubt",
            Self::Bad => "bad",
            Self::None => "none",
        }
    }
}

/// A page of a matrix.
pub fn render_matrix(matrix: &MatrixPage) -> Page {
    let mut body = Html::new();
    body.html(&facts(&matrix.facts));
    let shown = || (1..).zip(matrix.rows.iter().take(MOST_POINTS));
    body.html(&render_grids(matrix, shown()));
    body.markup("<h2>Points</h2>\n<p class=\"soft\">Coloured by the ratio to the median of the points with the same ")
        .markup("metric: from 5 % on, and stronger from 20 % on.</p>\n")
        .markup("<div class=\"wide\"><table class=\"grid\"><thead><tr>");
    for name in &matrix.parameters {
        body.markup("<th>").text(name).markup("</th>");
    }
    body.markup(
        "<th>metric</th><th>mean</th><th>over time</th><th>status</th></tr></thead><tbody>\n",
    );
    let scales = scales_of(&matrix.rows);
    for (number, row) in shown() {
        let (median, high) = scales.get(row.metric.as_str()).copied().unwrap_or_default();
        body.html(&render_row(row, number, median, high));
    }
    body.markup("</tbody></table></div>\n");
    if matrix.rows.len() > MOST_POINTS {
        let left_out = format!(
            "The first {MOST_POINTS} of {} points are shown; the document has all of them.",
            matrix.rows.len()
        );
        body.markup("<p class=\"soft\">").text(&left_out).markup("</p>\n");
    }
    if !matrix.notes.is_empty() {
        body.markup("<h2>Notes</h2>\n<ul class=\"notes\">");
        for note in &matrix.notes {
            body.markup("<li>").text(note).markup("</li>");
        }
        body.markup("</ul>\n");
    }
    if !matrix.repeat.is_empty() {
        body.markup("<h2>Again</h2>\n<pre>");
        for line in &matrix.repeat {
            body.text(line).markup("\n");
        }
        body.markup("</pre>\n");
    }
    Page { title: matrix.title.clone(), body, live: None }
}

/// Of each metric the median of its points' values, and the greatest value over time.
fn scales_of(rows: &[MatrixRow]) -> BTreeMap<&str, (Option<f64>, f64)> {
    let mut values: BTreeMap<&str, (Vec<f64>, f64)> = BTreeMap::new();
    for row in rows {
        let (of_metric, high) = values.entry(&row.metric).or_default();
        of_metric.extend(row.value);
        *high = row.course.iter().copied().flatten().fold(*high, f64::max);
    }
    values.into_iter().map(|(metric, (values, high))| (metric, (median(&values), high))).collect()
}

fn render_row(row: &MatrixRow, number: usize, median: Option<f64>, high: f64) -> Html {
    let mut html = Html::new();
    // Values between hosts lead there.
    match row.pairs.is_empty() {
        true => html.markup("<tr>"),
        false => html.markup("<tr id=\"p").number(number as f64).markup("\">"),
    };
    for value in &row.parameters {
        html.markup("<td>").text(value).markup("</td>");
    }
    html.markup("<td>").text(&row.metric).markup("</td><td><span class=\"heat ");
    html.markup(heat_of(row.value, median, row.more_is_better))
        .markup("\">")
        .text(&row.value_text)
        .markup("</span></td><td>");
    if row.course.iter().any(Option::is_some) {
        html.markup("<span class=\"spark\">")
            .html(&render_spark(&row.course, high, "Values over time"))
            .markup("</span>");
    }
    html.markup("</td><td><span class=\"tint ").markup(row.mark.class()).markup("\"></span>");
    html.text(&row.status).markup("</td></tr>\n");
    html
}

/// The class of a value's colour.
pub(crate) fn heat_of(
    value: Option<f64>,
    median: Option<f64>,
    more_is_better: Option<bool>,
) -> &'static str {
    let (Some(value), Some(median), Some(more_is_better)) = (value, median, more_is_better) else {
        return "";
    };
    if median <= 0.0 || value <= 0.0 {
        return "";
    }
    let ratio = if more_is_better { value / median } else { median / value };
    match ratio {
        ratio if ratio >= 1.2 => "up2",
        ratio if ratio >= 1.05 => "up1",
        ratio if ratio <= 1.0 / 1.2 => "down2",
        ratio if ratio <= 1.0 / 1.05 => "down1",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_what_is_better() {
        for (value, more, class) in [
            (100.0, Some(true), ""),
            (110.0, Some(true), "up1"),
            (150.0, Some(true), "up2"),
            (150.0, Some(false), "down2"),
            (94.0, Some(true), "down1"),
            (50.0, None, ""),
            (0.0, Some(true), ""),
        ] {
            assert_eq!(heat_of(Some(value), Some(100.0), more), class, "{value}");
        }
        assert_eq!(heat_of(Some(1.0), None, Some(true)), "");
    }

    #[test]
    fn each_metric_has_its_own_scale() {
        let row = |metric: &str, value: Option<f64>, high: f64| MatrixRow {
            metric: metric.to_owned(),
            value,
            course: vec![None, Some(high)],
            ..MatrixRow::default()
        };
        let rows = [
            row("a", Some(1.0), 5.0),
            row("b", None, 9.0),
            row("a", Some(3.0), 4.0),
            row("a", Some(2.0), 0.0),
        ];
        let scales = scales_of(&rows);
        assert_eq!(scales["a"], (Some(2.0), 5.0));
        assert_eq!(scales["b"], (None, 9.0));
    }

    #[test]
    fn a_page_has_so_many_points_and_tells_of_more() {
        let page = |count: usize| {
            let rows = vec![MatrixRow::default(); count];
            let matrix = MatrixPage { rows, ..MatrixPage::default() };
            render_matrix(&matrix).body.into_string()
        };
        let whole = page(MOST_POINTS);
        assert_eq!(whole.matches("<tr><td>").count(), MOST_POINTS);
        assert!(!whole.contains("are shown"));
        let cut = page(MOST_POINTS + 1);
        assert_eq!(cut.matches("<tr><td>").count(), MOST_POINTS);
        assert!(cut.contains("The first 2000 of 2001 points are shown"));
    }
}
