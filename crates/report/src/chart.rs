//! Panels below each other over one time axis.
//!
//! Lines are drawn in a field of 1000 by 100 that the page stretches; labels are text of the page beside it. So labels
//! keep their size on a narrow screen. A panel of many points has the least and greatest value of each column.

use std::collections::BTreeMap;

use crate::html::Html;
use crate::quantity::{Quantity, axis, step};

/// A value that holds for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) value: f64,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Solid,
    Dashed,
    Bars,
    /// A layer of a stack: bars that hide what is behind them. The layers of a panel are given from the highest one on.
    Stack,
}

/// A line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// Its colour, 0 to 3.
    pub(crate) colour: usize,
    pub(crate) look: Look,
    pub(crate) points: Vec<Point>,
}

/// A panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) lines: Vec<Line>,
    /// Words below it, each for a time.
    pub(crate) strip: Vec<Span>,
}

/// A word that holds for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) word: &'static str,
}

impl Panel {
    /// A panel without lines.
    pub(crate) fn new(title: &'static str, quantity: Quantity) -> Self {
        Self { title, quantity, lines: Vec::new(), strip: Vec::new() }
    }

    /// Whether its lines are the layers of a stack, which fills the field.
    fn is_stack(&self) -> bool {
        self.lines.iter().any(|line| line.look == Look::Stack)
    }
}

/// The axis that panels share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeAxis {
    /// Where it ends.
    pub(crate) end_ns: u64,
    /// Where the warm-up ends, where there is one.
    pub(crate) warm_up_ns: u64,
    /// Moments at which something is to be seen.
    pub(crate) marks_ns: Vec<u64>,
}

/// Columns of a field: what a screen has for it, about.
const COLUMNS: f64 = 1000.0;
/// Up to so many points are drawn as steps, as long as each held.
const MOST_STEPS: usize = 150;
/// From so many points on a column has its least and greatest value.
const MOST_POINTS: usize = 2000;

/// Columns of a small picture. From more values on a column has its least and greatest value.
const SPARK_COLUMNS: usize = 250;

/// The most words below a panel.
const MOST_SPANS: usize = 100;

const COLOURS: [&str; 4] = ["c0", "c1", "c2", "c3"];

impl Look {
    fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => "dash ",
            Self::Bars => "bars ",
            Self::Stack => "stack ",
        }
    }
}

impl Line {
    fn push_class(&self, html: &mut Html) {
        html.markup(self.look.class()).markup(colour(self.colour));
    }
}

/// The class of a colour.
pub(crate) fn colour(place: usize) -> &'static str {
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or("c0")
}

impl TimeAxis {
    fn x(&self, at_ns: u64) -> f64 {
        at_ns.min(self.end_ns) as f64 / self.end_ns.max(1) as f64 * COLUMNS
    }
}

/// All panels and the axis below them. Panels without a value are left out.
pub(crate) fn render_panels(time: &TimeAxis, panels: &[Panel]) -> Html {
    let mut html = Html::new();
    let has_values = |panel: &&Panel| panel.lines.iter().any(|line| !line.points.is_empty());
    let shown: Vec<&Panel> = panels.iter().filter(has_values).collect();
    if shown.is_empty() {
        return html;
    }
    html.markup("<div class=\"time\">\n");
    for panel in shown {
        html.html(&render_panel(time, panel));
    }
    html.markup("<div class=\"axis\">");
    let end_s = time.end_ns as f64 / 1e9;
    let step_s = step(end_s, 8.0);
    let mut number = 0.0;
    while number * step_s <= end_s && number < 20.0 {
        let at_s = number * step_s;
        html.markup("<i style=\"left:")
            .number(at_s / end_s * 100.0)
            .markup("%\">")
            .text(&Quantity::Duration.render(at_s * 1e9))
            .markup("</i>");
        number += 1.0;
    }
    html.markup("</div>\n</div>\n");
    html
}

fn render_panel(time: &TimeAxis, panel: &Panel) -> Html {
    let values = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.value);
    let (high, marks) = match panel.is_stack() {
        true => (100.0, vec![0.0, 25.0, 50.0, 75.0, 100.0]),
        false => axis(values.fold(0.0, f64::max)),
    };
    let mut html = Html::new();
    html.markup("<section class=\"panel\" data-high=\"")
        .text(&high.to_string())
        .markup("\" data-unit=\"")
        .markup(panel.quantity.name())
        .markup(if panel.is_stack() { "\" data-stack=\"" } else { "" })
        .markup("\"><header><h3>")
        .markup(panel.title)
        .markup("</h3><ul class=\"key\">");
    for line in &panel.lines {
        html.markup("<li class=\"");
        line.push_class(&mut html);
        html.markup("\">").markup(line.name).markup("</li>");
    }
    html.markup("</ul></header><div class=\"plot\">");
    open_field(&mut html, panel.title);
    let mut lines = Html::new();
    for line in &panel.lines {
        lines.markup("<g class=\"");
        line.push_class(&mut lines);
        lines.markup("\">").html(&render_line(time, line, high)).markup("</g>");
    }
    // A stack hides what is behind it.
    if panel.is_stack() {
        html.html(&lines);
    }
    if time.warm_up_ns > 0 {
        html.markup("<rect class=\"warm\" width=\"")
            .number(time.x(time.warm_up_ns))
            .markup("\" height=\"100\"/>");
    }
    push_marks(&mut html, &marks, high);
    if !time.marks_ns.is_empty() {
        html.markup("<path class=\"alert\" d=\"");
        for mark_ns in &time.marks_ns {
            html.markup("M").number(time.x(*mark_ns)).markup(" 0v100");
        }
        html.markup("\"/>");
    }
    if !panel.is_stack() {
        html.html(&lines);
    }
    html.markup("</svg>");
    push_labels(&mut html, &marks, high, panel.quantity);
    html.markup("</div>").html(&render_strip(time, &panel.strip)).markup("</section>\n");
    html
}

/// Words below a panel, each as wide as its time. Where there are too many for that, how often each stands there.
fn render_strip(time: &TimeAxis, strip: &[Span]) -> Html {
    let mut html = Html::new();
    if strip.is_empty() {
        return html;
    }
    if strip.len() > MOST_SPANS {
        return render_shares(strip);
    }
    html.markup("<div class=\"strip\">");
    for span in strip {
        let (from, to) = (time.x(span.from_ns), time.x(span.to_ns));
        html.markup("<i style=\"left:").number(from / COLUMNS * 100.0).markup("%;width:");
        html.number((to - from).max(0.0) / COLUMNS * 100.0).markup("%\" title=\"");
        html.markup(span.word).markup("\">").markup(span.word).markup("</i>");
    }
    html.markup("</div>");
    html
}

/// The share of the time that each word has, the greatest first.
fn render_shares(strip: &[Span]) -> Html {
    let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
    for span in strip {
        let length = span.to_ns.saturating_sub(span.from_ns);
        *shares.entry(span.word).or_default() += length as f64;
    }
    let all: f64 = shares.values().sum();
    let mut shares: Vec<_> = shares.into_iter().collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut html = Html::new();
    html.markup("<p class=\"soft\">");
    for (place, (word, length)) in shares.into_iter().enumerate() {
        html.markup(if place == 0 { "" } else { ", " }).markup(word);
        html.text(&format!(" {:.0} %", length / all.max(1.0) * 100.0));
    }
    html.markup(" of the time</p>");
    html
}

/// The beginning of a field of 1000 by 100 that is stretched to its place.
pub(crate) fn open_field(html: &mut Html, title: &'static str) {
    html.markup(
        "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
    )
    .markup(title)
    .markup("\">");
}

/// Lines across the field.
fn push_marks(html: &mut Html, marks: &[f64], high: f64) {
    html.markup("<path class=\"mark\" d=\"");
    for mark in marks {
        html.markup("M0 ").number(100.0 - mark / high * 100.0).markup("h1000");
    }
    html.markup("\"/>");
}

/// What stands beside these lines.
fn push_labels(html: &mut Html, marks: &[f64], high: f64, quantity: Quantity) {
    for mark in marks {
        html.markup("<i style=\"bottom:")
            .number(mark / high * 100.0)
            .markup("%\">")
            .text(&quantity.render(*mark))
            .markup("</i>");
    }
}

/// A line in pieces: a gap in the data is one in the picture.
fn render_line(time: &TimeAxis, line: &Line, high: f64) -> Html {
    let mut html = Html::new();
    let y = |value: f64| 100.0 - (value / high).clamp(0.0, 1.0) * 100.0;
    let has_gap = |before: &Point, next: &Point| {
        let length = before.to_ns.saturating_sub(before.from_ns);
        next.from_ns > before.to_ns.saturating_add(length / 2)
    };
    let is_dense = line.points.len() > MOST_POINTS;
    for piece in line.points.chunk_by(|before, next| !has_gap(before, next)) {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for point in piece {
            let (from, to) = (time.x(point.from_ns), time.x(point.to_ns));
            match line.look {
                Look::Solid | Look::Dashed if line.points.len() > MOST_STEPS => {
                    corners.push(((from + to) / 2.0, y(point.value)));
                }
                _ => corners.extend([(from, y(point.value)), (to, y(point.value))]),
            }
        }
        if is_dense {
            corners = thinned(&corners);
        }
        if let (Look::Bars | Look::Stack, Some(first), Some(last)) =
            (line.look, corners.first().copied(), corners.last().copied())
        {
            corners.insert(0, (first.0, 100.0));
            corners.push((last.0, 100.0));
        }
        push_polyline(&mut html, &corners);
    }
    html
}

/// Corners of which each column has its least and its greatest one, in that order or the other.
fn thinned(corners: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for column in corners.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = (column.iter().min_by(by_height), column.iter().max_by(by_height));
        if let (Some(least), Some(greatest)) = ends {
            let x = least.0.floor();
            kept.push((x, least.1));
            if greatest.1 > least.1 {
                kept.push((x, greatest.1));
            }
        }
    }
    kept
}

/// A polyline of these corners.
pub(crate) fn push_polyline(html: &mut Html, corners: &[(f64, f64)]) {
    if corners.is_empty() {
        return;
    }
    html.markup("<polyline points=\"");
    for (place, (x, y)) in corners.iter().enumerate() {
        // The script reads values from here: small ones need more decimals to be exact by a thousandth.
        let decimals = if *y > 99.0 { 5 } else { 2 };
        html.markup(if place == 0 { "" } else { " " }).number(*x).markup(",");
        html.push_number(*y, decimals);
    }
    html.markup("\"/>");
}

/// A panel of dots at equal distances, each of a group that the legend names and colours.
pub(crate) fn render_dots(
    title: &str,
    quantity: Quantity,
    groups: &[&'static str],
    values: &[(usize, Option<f64>)],
) -> Html {
    let (high, marks) = axis(values.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max));
    let mut html = Html::new();
    html.markup("<section class=\"panel\"><header><h3>")
        .text(title)
        .markup("</h3><ul class=\"key\">");
    for (place, name) in groups.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        html.markup("<li class=\"bars ")
            .markup(colour(place))
            .markup("\">")
            .markup(name)
            .markup("</li>");
    }
    html.markup("</ul></header><div class=\"plot\">");
    open_field(&mut html, "Values in their order");
    push_marks(&mut html, &marks, high);
    let step = COLUMNS / values.len().max(1) as f64;
    for group in 0..groups.len() {
        html.markup("<g class=\"dots ").markup(colour(group)).markup("\"><path d=\"");
        for (place, (of, value)) in values.iter().enumerate() {
            if let Some(value) = value.filter(|_| *of == group) {
                let y = 100.0 - (value / high).clamp(0.0, 1.0) * 100.0;
                html.markup("M")
                    .number((place as f64 + 0.5) * step)
                    .markup(" ")
                    .number(y)
                    .markup("h0");
            }
        }
        html.markup("\"/></g>");
    }
    html.markup("</svg>");
    push_labels(&mut html, &marks, high, quantity);
    html.markup("</div></section>\n");
    html
}

/// A small picture of values at equal distances, without labels. `high` is the scale that it shares with others.
/// A column of several values has a stroke from its least to its greatest one.
pub(crate) fn render_spark(values: &[Option<f64>], high: f64, title: &'static str) -> Html {
    let mut html = Html::new();
    open_field(&mut html, title);
    html.markup("<g class=\"c0\">");
    let in_column = values.len().div_ceil(SPARK_COLUMNS).max(1);
    let width = in_column as f64 / values.len().max(1) as f64 * COLUMNS;
    let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
    let mut corners = Vec::new();
    let y = |value: f64| 100.0 - (value / high).clamp(0.0, 1.0) * 100.0;
    for (place, column) in values.chunks(in_column).enumerate() {
        let x = place as f64 * width;
        let known = || column.iter().copied().flatten();
        match known().reduce(f64::min).zip(known().reduce(f64::max)) {
            Some((least, greatest)) => {
                corners.extend([(x, y(least)), ((x + width).min(COLUMNS), y(greatest))]);
            }
            None => {
                push_polyline(&mut html, &corners);
                corners.clear();
            }
        }
    }
    push_polyline(&mut html, &corners);
    html.markup("</g></svg>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[(u64, f64)], look: Look) -> Line {
        let points = values.iter().map(|(second, value)| Point {
            from_ns: second * 1_000_000_000,
            to_ns: (second + 1) * 1_000_000_000,
            value: *value,
        });
        Line { name: "x", colour: 0, look, points: points.collect() }
    }

    fn panel(lines: Vec<Line>) -> Panel {
        Panel { lines, ..Panel::new("Rate", Quantity::Rate) }
    }

    #[test]
    fn gaps_are_gaps_and_bars_stand_on_the_ground() {
        let time = TimeAxis { end_ns: 10_000_000_000, ..TimeAxis::default() };
        let values = [(0, 1.0), (1, 2.0), (4, 2.0)];
        let solid = render_line(&time, &line(&values, Look::Solid), 2.0).into_string();
        assert_eq!(
            solid,
            "<polyline points=\"0,50 100,50 100,0 200,0\"/><polyline points=\"400,0 500,0\"/>"
        );
        let bars = render_line(&time, &line(&values[..1], Look::Bars), 2.0).into_string();
        assert_eq!(bars, "<polyline points=\"0,100 0,50 100,50 100,100\"/>");
    }

    #[test]
    fn many_points_keep_their_extremes() {
        let mut values: Vec<(u64, f64)> = (0..100_000).map(|second| (second, 5.0)).collect();
        values[54_321].1 = 10.0;
        values[76_543].1 = 0.0;
        let time = TimeAxis { end_ns: 100_000_000_000_000, ..TimeAxis::default() };
        let html = render_line(&time, &line(&values, Look::Solid), 10.0).into_string();
        assert!(html.len() < 20_000, "{}", html.len());
        assert!(html.contains(" 543,0 543,50 ") && html.contains(" 765,50 765,100 "), "{html}");
    }

    #[test]
    fn a_small_picture_of_many_values_keeps_its_extremes_and_gaps() {
        let few = render_spark(&[Some(1.0), None, Some(2.0), Some(4.0)], 4.0, "x").into_string();
        assert!(few.contains("\"0,75 250,75\"") && few.contains("\"500,50 750,50 750,0 1000,0\""));
        let mut values = vec![Some(5.0); 100_000];
        values[54_321] = Some(10.0);
        values[76_543] = Some(0.0);
        values[20_000..30_000].fill(None);
        let html = render_spark(&values, 10.0, "x").into_string();
        assert!(html.len() < 8_000, "{}", html.len());
        assert_eq!(html.matches("<polyline").count(), 2, "{html}");
        assert!(html.contains(" 540,50 544,0 ") && html.contains(" 764,100 768,50 "), "{html}");
    }

    #[test]
    fn panels_without_values_and_axes_without_time_are_no_panic() {
        let time = TimeAxis::default();
        assert!(render_panels(&time, &[panel(vec![line(&[], Look::Solid)])]).is_empty());
        let html = render_panels(&time, &[panel(vec![line(&[(0, f64::NAN)], Look::Solid)])]);
        assert!(html.into_string().contains("<svg"));
        assert!(render_spark(&[None, Some(f64::INFINITY)], f64::NAN, "x").len() > 10);
    }
}
