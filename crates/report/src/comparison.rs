//! The page of a comparison.

use linerate_measure::comparison::{Comparison, FigureRatio, Trust};
use linerate_measure::metric;

use crate::chart::{open_field, render_dots};
use crate::curve::{Curve, render_curves};
use crate::html::{Html, table};
use crate::page::Page;
use crate::quantity::Quantity;

/// What a page says of a comparison in words: what the terminal has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonText {
    /// How many runs there are and how they were ordered.
    pub origin: String,
    /// For each figure its name, A's value, B's, B over A, the interval, and what can be said.
    pub figures: Vec<Vec<String>>,
    /// The command lines that compare the same again.
    pub repeat: Vec<String>,
}

/// How far the axis of ratios goes at most: a factor of 4.
const WIDEST: f64 = 4.0;

/// A page of a comparison.
pub fn render_comparison(comparison: &Comparison, text: &ComparisonText) -> Page {
    let mut body = Html::new();
    body.markup("<p class=\"soft\">").text(&text.origin).markup("</p>\n<table class=\"facts\">");
    for (side, command) in ["A", "B"].iter().zip(&comparison.commands) {
        body.markup("<tr><th>")
            .markup(side)
            .markup("</th><td>")
            .text(command)
            .markup("</td></tr>\n");
    }
    body.markup("</table>\n").html(&verdict_of(comparison));
    if !comparison.metrics.is_empty() {
        body.markup("<h2>B over A</h2>\n<p class=\"soft\">Each bar is an interval; the grey field is what would not ")
            .markup("have been seen. A bar that leaves the middle line aside is a difference.</p>\n")
            .html(&render_forest(&comparison.metrics, &text.figures));
    }
    body.html(&render_runs_in_order(comparison));
    let curves = render_curves(&curves_of(&comparison.metrics));
    if !curves.is_empty() {
        body.markup("<h2>Latency</h2>\n<p class=\"soft\">Medians of the runs' percentiles.</p>\n")
            .html(&curves);
    }
    if !comparison.differences.is_empty() {
        let head = ["what else differs", "A", "B"].map(str::to_owned);
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        let rows: Vec<Vec<String>> = comparison
            .differences
            .iter()
            .map(|one| vec![one.field.clone(), shown(&one.a), shown(&one.b)])
            .collect();
        body.markup("<h2>Differences beside the figures</h2>\n").html(&table(&head, &rows));
    }
    if !text.repeat.is_empty() {
        body.markup("<h2>Again</h2>\n<pre>");
        for line in &text.repeat {
            body.text(line).markup("\n");
        }
        body.markup("</pre>\n");
    }
    Page { title: "Comparison of A and B".to_owned(), body, live: None }
}

fn verdict_of(comparison: &Comparison) -> Html {
    let (class, word) = match comparison.status.verdict {
        Trust::Valid => ("good", "valid"),
        Trust::Doubtful => ("doubt", "doubtful"),
        Trust::Invalid => ("bad", "invalid"),
    };
    let mut html = Html::new();
    html.markup("<div class=\"verdict ")
        .markup(class)
        .markup("\"><b>")
        .markup(word)
        .markup("</b><ul>");
    for reason in &comparison.status.reasons {
        html.markup("<li>").text(reason).markup("</li>");
    }
    if let Some(drift) = comparison.drift.as_ref().filter(|drift| drift.p < 0.05) {
        let change = format!("{:+.2} % a run", drift.per_run_percent);
        html.markup("<li>").text(&drift.name).markup(" drifted by ").text(&change).markup("</li>");
    }
    for one in &comparison.conditions {
        let told = match one.holds {
            Some(true) => " holds with its whole interval: failed",
            Some(false) => " doesn't hold with its whole interval",
            None => " can't be judged",
        };
        html.markup("<li>").text(&one.condition).markup(told).markup("</li>");
    }
    html.markup("</ul></div>\n");
    html
}

/// The figures with their intervals on one logarithmic axis of ratios.
fn render_forest(metrics: &[FigureRatio], words: &[Vec<String>]) -> Html {
    let ends = metrics.iter().flat_map(|one| [Some(one.ratio), one.low, one.high]).flatten();
    let widest = ends
        .map(|ratio| ratio.ln().abs())
        .filter(|distance| distance.is_finite())
        .fold(0.02, f64::max)
        .min(WIDEST.ln())
        * 1.1;
    let x = |ratio: f64| {
        let log = if ratio > 0.0 { ratio.ln() } else { -widest };
        (500.0 + log / widest * 500.0).clamp(0.0, 1000.0)
    };
    let mut html = Html::new();
    html.markup("<div class=\"wide\"><table class=\"grid\"><thead><tr><th></th><th>A</th><th>B</th><th>B / A</th><th>")
        .text(&percent(-widest))
        .markup(" … 0 … ")
        .text(&percent(widest))
        .markup("</th><th>interval</th><th></th></tr></thead><tbody>\n");
    for (one, cells) in metrics.iter().zip(words) {
        let cell = |place: usize| cells.get(place).map(String::as_str).unwrap_or_default().trim();
        html.markup("<tr><th>").text(cell(0));
        for place in 1..4 {
            html.markup(if place == 1 { "</th><td>" } else { "</td><td>" }).text(cell(place));
        }
        html.markup("</td><td><span class=\"range\">").html(&render_interval(one, x));
        html.markup("</span></td><td>").text(cell(4)).markup("</td><td>").text(cell(5));
        html.markup("</td></tr>\n");
    }
    html.markup("</tbody></table></div>\n");
    html
}

/// A factor, given as its logarithm, in percent.
fn percent(log: f64) -> String {
    format!("{:+.1} %", log.exp_m1() * 100.0)
}

fn render_interval(one: &FigureRatio, x: impl Fn(f64) -> f64) -> Html {
    let mut html = Html::new();
    open_field(&mut html, "Interval of the ratio");
    if let Some(seen) = one.smallest_seen {
        let (low, high) = (x(1.0 / (1.0 + seen)), x(1.0 + seen));
        html.markup("<rect class=\"warm\" x=\"")
            .number(low)
            .markup("\" width=\"")
            .number(high - low);
        html.markup("\" height=\"100\"/>");
    }
    html.markup("<path class=\"middle\" d=\"M500 0v100\"/>");
    if let (Some(low), Some(high)) = (one.low, one.high) {
        html.markup("<path class=\"thick c0\" d=\"M").number(x(low)).markup(" 50H").number(x(high));
        html.markup("\"/>");
    }
    html.markup("<g class=\"dots c1\"><path d=\"M")
        .number(x(one.ratio))
        .markup(" 50h0\"/></g></svg>");
    html
}

/// The first figure of each run in the order in which the runs were made: a drift shows.
fn render_runs_in_order(comparison: &Comparison) -> Html {
    let mut html = Html::new();
    let Some(first) = comparison.metrics.first() else { return html };
    let quantity = match first.compared().map(|one| one.metric) {
        Some(metric::GOODPUT) => Quantity::Rate,
        Some(metric::TRANSACTIONS_PER_S | metric::CONNECTIONS_PER_S) => Quantity::PerSecond,
        Some(metric::LATENCY | metric::ESTABLISHMENT | metric::FIRST_BYTE) => Quantity::Duration,
        _ => Quantity::Count,
    };
    let title = first.compared().map_or(first.name.as_str(), |one| one.metric.label);
    let values: Vec<(usize, Option<f64>)> = comparison
        .runs
        .iter()
        .map(|run| (run.side.index(), run.figures.get(&first.name).copied()))
        .collect();
    html.markup("<h2>Runs in their order</h2>\n");
    html.html(&render_dots(title, quantity, &["A", "B"], &values));
    html
}

/// Both sides' percentiles of the latency.
fn curves_of(metrics: &[FigureRatio]) -> Vec<Curve> {
    let quantiles: Vec<(f64, &FigureRatio)> = metrics
        .iter()
        .filter_map(|one| {
            let compared = one.compared().filter(|compared| compared.metric == metric::LATENCY)?;
            let percent: f64 = compared.quantile?.strip_prefix('p')?.parse().ok()?;
            Some((percent / 100.0, one))
        })
        .collect();
    let of = |value: fn(&FigureRatio) -> f64| {
        quantiles.iter().map(|(q, one)| (*q, value(one))).collect::<Vec<_>>()
    };
    if quantiles.len() < 2 {
        return Vec::new();
    }
    vec![Curve { name: "A", points: of(|one| one.a) }, Curve { name: "B", points: of(|one| one.b) }]
}
