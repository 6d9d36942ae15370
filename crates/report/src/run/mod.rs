//! The page of a run, or of several.

mod cards;
mod held;
mod limits;
mod series;

use linerate_measure::histogram::Histogram;
use linerate_measure::hunt::{HuntRecord, RateUnit, TrialVerdict};
use linerate_measure::limits::Limit;
use linerate_measure::trust::Trust;
use linerate_measure::{Direction, EndReport, Outcome, Role, Run};

use crate::chart::{render_dots, render_panels, render_spark};
use crate::curve::{Curve, render_curves};
use crate::html::{Html, facts, table};
use crate::page::Page;
use crate::quantity::Quantity;
use series::FlowSeries;

/// What a page says of a run in words: what the terminal has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunText {
    /// What was done, in a line.
    pub title: String,
    /// When it began, and whose clock says so.
    pub began: String,
    /// Names and values of figures; a name that begins with blanks is a part of the figure above it.
    pub figures: Vec<(String, String)>,
    /// A table of latencies, its head first; or empty.
    pub latencies: Vec<Vec<String>>,
    /// What both ends counted and ran on: a name, the client's value, the server's.
    pub ends: Vec<Vec<String>>,
    /// The command lines that measure the same again.
    pub repeat: Vec<String>,
    /// Of a run that goes on how far it is; there is no verdict yet.
    pub ongoing: Option<String>,
}

/// A page of one run.
pub fn render_run(run: &Run, text: &RunText) -> Page {
    let mut body = Html::new();
    push_run(&mut body, run, text);
    Page { title: text.title.clone(), body, live: None }
}

/// A page of several runs below each other.
pub fn render_runs(title: &str, runs: &[(&Run, RunText)]) -> Page {
    let mut body = Html::new();
    for (run, text) in runs {
        body.markup("<h1>").text(&text.title).markup("</h1>\n");
        push_run(&mut body, run, text);
    }
    Page { title: title.to_owned(), body, live: None }
}

fn push_run(body: &mut Html, run: &Run, text: &RunText) {
    body.markup("<p class=\"soft\">").text(&text.began);
    for (name, value) in &run.plan.tags {
        body.markup(" · ").text(name).markup("=").text(value);
    }
    body.markup(" · run ").text(&run.run_id).markup("</p>\n");
    match &text.ongoing {
        Some(how_far) => {
            body.markup("<div class=\"verdict\"><b>measuring</b> ").text(how_far).markup("</div>\n")
        }
        None => body.html(&verdict_of(run)),
    };
    body.html(&cards::render_cards(run)).html(&render_limits(&run.summary.limits));
    if let Some(hunt) = &run.hunt {
        body.html(&render_trials(hunt));
    }
    let (time, panels) = series::panels_of(run);
    let panels = render_panels(&time, &panels);
    if !panels.is_empty() {
        body.markup("<h2>Over time</h2>\n");
        if time.warm_up_ns > 0 {
            body.markup(
                "<p class=\"soft\">The grey part is the warm-up, which no figure counts.</p>\n",
            );
        }
        if !time.marks_ns.is_empty() {
            body.markup(
                "<p class=\"soft\">Red lines stand where a reason of the verdict does.</p>\n",
            );
        }
        body.html(&panels);
    }
    let curves = render_curves(&curves_of(run));
    if !curves.is_empty() || !text.latencies.is_empty() {
        body.markup("<h2>Latency</h2>\n").html(&curves);
        if let Some((head, rows)) = text.latencies.split_first() {
            body.html(&table(head, rows));
        }
    }
    if !text.figures.is_empty() {
        body.markup("<h2>Figures</h2>\n").html(&facts(&text.figures));
    }
    if let Some(flows) = series::flows_of(run) {
        body.html(&render_flows(&flows));
    }
    if !text.ends.is_empty() {
        let head = ["", "client", "server"].map(str::to_owned);
        body.markup("<h2>Both ends</h2>\n").html(&table(&head, &text.ends));
    }
    if !text.repeat.is_empty() {
        body.markup("<h2>Again</h2>\n<pre>");
        for line in &text.repeat {
            body.text(line).markup("\n");
        }
        body.markup("</pre>\n");
    }
}

/// The trials of a search in their order. The samples of the page are those of one of them.
fn render_trials(hunt: &HuntRecord) -> Html {
    let quantity = match hunt.goal.unit {
        RateUnit::BitsPerSecond => Quantity::Rate,
        RateUnit::RequestsPerSecond => Quantity::PerSecond,
    };
    let trials: Vec<(usize, Option<f64>)> = hunt
        .trials
        .iter()
        .map(|trial| {
            let group = match trial.verdict {
                TrialVerdict::Pass => 2,
                TrialVerdict::Fail { .. } => 1,
                TrialVerdict::Invalid { .. } => 3,
                TrialVerdict::Open => 4,
            };
            (group, Some(trial.rate as f64))
        })
        .collect();
    let mut html = Html::new();
    html.markup("<h2>Trials</h2>\n");
    if let Some(number) = hunt.reported_trial {
        html.markup("<p class=\"soft\">The panels below are those of trial ")
            .text(&number.to_string())
            .markup(".</p>\n");
    }
    let groups = ["", "breaks a limit", "keeps the limits", "not offered", "not certain"];
    html.html(&render_dots("rate of each trial", quantity, &groups, &trials));
    html
}

/// How the run ended, whether its figures can be believed, why not, and what the reader must know.
fn verdict_of(run: &Run) -> Html {
    let status = &run.status;
    let trust = status.trust();
    let class = match trust {
        Trust::Valid => "good",
        Trust::Doubtful => "doubt",
        Trust::Invalid => "bad",
    };
    let ending = match status.outcome {
        Outcome::Complete | Outcome::Untrustworthy => "",
        Outcome::Interrupted => "interrupted: ",
        Outcome::Failed => "failed: ",
    };
    let mut html = Html::new();
    html.markup("<div class=\"verdict ").markup(class).markup("\"><b>").markup(trust.word());
    html.markup("</b> ").markup(ending);
    if let Some(message) = status.message.as_ref().filter(|_| status.reasons.is_empty()) {
        html.text(message);
    }
    html.markup("<ul>");
    for reason in &status.reasons {
        html.markup("<li>").text(&reason.text);
        if let Some(way_out) = &reason.way_out {
            html.markup(" <span class=\"soft\">").text(way_out).markup("</span>");
        }
        html.markup("</li>");
    }
    for note in &status.notes {
        html.markup("<li class=\"soft\">").text(note).markup("</li>");
    }
    html.markup("</ul></div>\n");
    html
}

/// What limited each direction, and what to change.
fn render_limits(limits: &[Limit]) -> Html {
    let mut html = Html::new();
    if limits.is_empty() {
        return html;
    }
    html.markup("<h2>Limited by</h2>\n<table class=\"facts\">");
    for limit in limits {
        let direction = match limit.direction {
            Direction::Up => "up",
            Direction::Down => "down",
            Direction::Both => "both directions",
        };
        html.markup("<tr><th>").markup(direction);
        if let Some(flow) = limit.flow {
            html.text(&format!(", flow {flow}"));
        }
        html.markup("</th><td>").markup(limits::cause(limit.cause)).markup(", ");
        html.markup(limits::place(limit.place));
        if let Some(share) = limit.share.filter(|share| share.is_finite()) {
            html.text(&format!(", {:.0} % of the time", share * 100.0));
        }
        html.markup(if limit.sure { "" } else { ", not for sure" });
        if let Some(advice) = &limit.advice {
            html.markup(" <span class=\"soft\">").text(advice).markup("</span>");
        }
        html.markup("</td></tr>\n");
    }
    html.markup("</table>\n");
    html
}

/// The curves of all latencies that the run has.
fn curves_of(run: &Run) -> Vec<Curve> {
    type Part = fn(&EndReport) -> Option<&String>;
    const PARTS: [(&str, Part); 6] = [
        ("latency", |report| report.latency_hdr.as_ref()),
        ("from the real start", |report| report.service_hdr.as_ref()),
        ("established", |report| report.establishment_hdr.as_ref()),
        ("first byte", |report| report.first_byte_hdr.as_ref()),
        ("delay variation", |report| report.delay_variation_hdr.as_ref()),
        ("frames sent late by", |report| report.send_delay_hdr.as_ref()),
    ];
    let client_first = || {
        let of = |role: Role| run.reports.iter().filter(move |report| report.role == role);
        of(Role::Client).chain(of(Role::Server))
    };
    let curves = PARTS.iter().filter_map(|(name, part)| {
        let read = |report| Histogram::from_base64(part(report)?).ok();
        let histogram = client_first().find_map(read)?;
        Some(Curve::of(name, &histogram))
    });
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

/// The flows one by one, on one scale.
fn render_flows(flows: &FlowSeries) -> Html {
    let mut html = Html::new();
    html.markup("<h2>Flows</h2>\n<p class=\"soft\">Goodput of each flow over time, all on one scale, and its mean.")
        .text(&flows.left_out)
        .markup("</p>\n<div class=\"flows\">\n");
    for (number, values) in &flows.flows {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        html.markup("<div><div class=\"plot low\">")
            .html(&render_spark(values, flows.high_bps, "Goodput of a flow"))
            .markup("</div><span>")
            .text(&format!("flow {number}: {}", Quantity::Rate.render(mean)))
            .markup("</span></div>\n");
    }
    html.markup("</div>\n");
    html
}
