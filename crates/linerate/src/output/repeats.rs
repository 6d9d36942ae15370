//! How the summary of several runs of one plan looks.

use linerate_measure::comparison::Compared;
use linerate_measure::repeats::{Ending, FigureSpread, Repeats};
use linerate_measure::units::render_percent;

use super::comparison::{label_of, render_trust, render_value, wrap};
use super::{Style, Table};

/// Each figure over the runs, and how far it can be trusted, for people.
pub(crate) fn render_repeats(repeats: &Repeats, style: Style) -> String {
    let mut text = format!("{}\n", wrap(&render_origin(repeats)));
    let mut table = Table::with_head(&["", "median", "mean", "+-", "least", "greatest"]);
    repeats.metrics.iter().for_each(|spread| table.push(render_spread(spread)));
    if !table.is_empty() {
        text.push_str(&format!("{}\n", table.render(style)));
    }
    if let Some(drift) = repeats.drift.as_ref().filter(|drift| drift.p < 0.05) {
        let (name, percent) = (label_of(&drift.name), drift.per_run_percent);
        text.push_str(&format!("{name} drifted by {percent:+.2} % a run\n"));
    }
    let reasons: Vec<String> =
        repeats.status.reasons.iter().map(|reason| reason.text.clone()).collect();
    text + &render_trust(repeats.status.verdict, &reasons, style)
}

fn render_origin(repeats: &Repeats) -> String {
    let made = repeats.runs.len();
    let runs = if made == 1 { "1 run".to_owned() } else { format!("{made} runs") };
    let precision =
        repeats.precision.as_ref().filter(|_| repeats.status.outcome == Ending::Converged);
    let why = match precision {
        Some(precision) => format!(
            "{runs} until {} was known to {}",
            label_of(precision.name.as_deref().unwrap_or_default()),
            render_percent(precision.asked)
        ),
        None => format!("{runs} of {}", repeats.most_runs),
    };
    format!("{why}; +- is the 95 % interval of the mean")
}

fn render_spread(spread: &FigureSpread) -> Vec<String> {
    let value =
        |value: f64| render_value(spread.compared().map(|one: &Compared| one.metric.unit), value);
    let width = spread.relative_half_width().map(|share| share * 100.0);
    vec![
        label_of(&spread.name),
        value(spread.median),
        value(spread.mean),
        width.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %")),
        value(spread.least),
        value(spread.greatest),
    ]
}
