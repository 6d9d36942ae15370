//! How a comparison looks: text within 80 columns, and records.

use linerate_measure::comparison::{
    Compared, ComparedRun, Comparison, Difference, FigureRatio, Finding, Side, Trust,
};
use linerate_measure::metric::Unit;
use linerate_measure::units::{render_count, render_duration_ns, render_rate};
use linerate_wire::visible::visible_line;
use serde_json::json;

use super::{Style, Table};

/// The version of the records' format.
const VERSION: u32 = 1;
/// Columns of the text.
const COLUMNS: usize = 80;
/// The longest command that the text has whole.
const COMMAND_COLUMNS: usize = 76;
/// Differences of stored runs that the text has.
const MOST_DIFFERENCES: usize = 6;

/// The record of a run that has ended.
pub(crate) fn render_compared_run(run: &ComparedRun) -> String {
    format!("{}\n", json!({ "record": "run", "version": VERSION, "run": run }))
}

/// The last record, with the whole document; of stored runs those of the runs before it.
pub(crate) fn render_comparison_records(comparison: &Comparison) -> String {
    let stored = comparison.runs.iter().filter(|_| comparison.seed.is_none());
    let runs: String = stored.map(render_compared_run).collect();
    runs + &format!(
        "{}\n",
        json!({ "record": "finished", "version": VERSION, "comparison": comparison })
    )
}

/// The comparison for people.
pub(crate) fn render_comparison(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    for side in Side::BOTH {
        let command: String = visible_line(&comparison.commands[side.index()])
            .chars()
            .take(COMMAND_COLUMNS)
            .collect();
        text.push_str(&format!("{}  {command}\n", side.name()));
    }
    text.push_str(&format!("{}\n\n", render_origin(comparison)));
    let mut table = Table::with_head(&["", "A", "B", "B / A", "interval", ""]);
    for estimate in &comparison.metrics {
        table.push(render_estimate(estimate));
    }
    if !table.is_empty() {
        text.push_str(&table.render(style));
        text.push('\n');
    }
    text.push_str(&render_smallest(comparison));
    for difference in comparison.differences.iter().take(MOST_DIFFERENCES) {
        text.push_str(&render_difference(difference));
    }
    let more = comparison.differences.len().saturating_sub(MOST_DIFFERENCES);
    if more > 0 {
        text.push_str(&format!("{more} further differences: --json has them\n"));
    }
    if let Some(drift) = &comparison.drift
        && drift.p < 0.05
    {
        text.push_str(&format!(
            "{} drifted by {:+.2} % a run; both of a pair have the same drift\n",
            label_of(&drift.name),
            drift.per_run_percent
        ));
    }
    for one in &comparison.conditions {
        let told = match one.holds {
            Some(true) => {
                style.warning(&format!("FAILED: {} holds with its whole interval", one.condition))
            }
            Some(false) => format!("{} doesn't hold with its whole interval", one.condition),
            None => continue,
        };
        text.push_str(&format!("{told}\n"));
    }
    text + &render_trust(comparison.status.verdict, &comparison.status.reasons, style)
}

/// How many runs there are and how they were ordered.
pub(super) fn render_origin(comparison: &Comparison) -> String {
    let confidence = "95 % intervals";
    match comparison.seed {
        Some(seed) => {
            let (complete, asked) = (comparison.complete_pairs(), comparison.pairs_asked);
            format!(
                "{complete} of {asked} pairs, order drawn at random (seed {seed}); {confidence}"
            )
        }
        None => {
            let of_side =
                |side: Side| comparison.runs.iter().filter(|run| run.side == side).count();
            format!("{} and {} stored runs; {confidence}", of_side(Side::A), of_side(Side::B))
        }
    }
}

/// The row of a figure.
pub(super) fn render_estimate(estimate: &FigureRatio) -> Vec<String> {
    let change = |ratio: f64| render_percent((ratio - 1.0) * 100.0);
    let interval = match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{}..{} %", change(low), change(high)),
        _ => "-".to_owned(),
    };
    let unit = estimate.compared().map(|one| one.metric.unit);
    vec![
        label_of(&estimate.name),
        render_value(unit, estimate.a),
        render_value(unit, estimate.b),
        format!("{} %", change(estimate.ratio)),
        interval,
        verdict_of(estimate).to_owned(),
    ]
}

/// A signed number of percent, in full ones from 100 on.
fn render_percent(percent: f64) -> String {
    if percent.abs() < 99.95 { format!("{percent:+.1}") } else { format!("{percent:+.0}") }
}

fn verdict_of(estimate: &FigureRatio) -> &'static str {
    let more_is_better = estimate.compared().is_some_and(Compared::more_is_better);
    match (estimate.verdict, more_is_better) {
        (Finding::TooFew, _) => "too few",
        (Finding::NoDifferenceSeen, _) => "none seen",
        (Finding::BHigher, true) | (Finding::AHigher, false) => "B better",
        (Finding::AHigher, true) | (Finding::BHigher, false) => "B worse",
    }
}

/// What the text calls a figure: `goodput`, `CPU`, `p99`, `first byte p50`.
pub(super) fn label_of(name: &str) -> String {
    match Compared::of_name(name).map(|one| one.short_name) {
        Some("cpu" | "cpu-transaction") => "CPU".to_owned(),
        Some(short_name) => short_name.replace("establishment", "established").replace('-', " "),
        None => name.to_owned(),
    }
}

pub(super) fn render_value(unit: Option<Unit>, value: f64) -> String {
    match unit {
        Some(Unit::BitsPerSecond) => render_rate(value),
        Some(Unit::PerSecond) => format!("{}/s", render_count(value)),
        Some(Unit::SecondsPerGigabyte) => format!("{value:.3} s/GB"),
        Some(Unit::SecondsPerTransaction) => render_duration_ns((value * 1e9).max(0.0) as u64),
        Some(Unit::Nanoseconds) => render_duration_ns(value.max(0.0) as u64),
        _ => format!("{value:.3}"),
    }
}

/// The difference that would have been seen in 90 % of comparisons, of figures in which none was.
fn render_smallest(comparison: &Comparison) -> String {
    let unseen = comparison.metrics.iter().filter(|one| one.verdict == Finding::NoDifferenceSeen);
    let parts: Vec<String> = unseen
        .filter_map(|one| {
            Some(format!(
                "{} {} %",
                label_of(&one.name),
                render_percent(one.smallest_seen? * 100.0).trim_start_matches('+')
            ))
        })
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    wrap(&format!(
        "Differences that would have been seen with a probability of 90 %: {}",
        parts.join(", ")
    ))
}

fn render_difference(difference: &Difference) -> String {
    let shown =
        |value: &Option<String>| value.as_deref().map_or_else(|| "absent".to_owned(), visible_line);
    let (a, b) = (shown(&difference.a), shown(&difference.b));
    wrap(&format!("differs: {}: {a}, {b}", difference.field))
}

/// The last line: how far figures can be trusted, and why not further.
pub(super) fn render_trust(verdict: Trust, reasons: &[String], style: Style) -> String {
    if verdict == Trust::Valid {
        return format!("{}\n", verdict.word());
    }
    let reasons: Vec<String> = reasons.iter().map(|reason| visible_line(reason)).collect();
    let told = wrap(&format!("{}: {}", verdict.word(), reasons.join("; ")));
    format!("{}\n", style.warning(told.trim_end()))
}

/// Lines of at most 80 columns, if no word is longer.
pub(super) fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            word.clone_into(line);
        } else if line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use linerate_measure::comparison::{Asked, Condition, Figures};

    use super::*;

    fn runs(pairs: usize) -> Vec<ComparedRun> {
        let run = |side: Side, pair: usize, factor: f64| ComparedRun {
            side,
            pair,
            run_id: None,
            exit_code: 0,
            figures: Figures::from([
                ("goodput_bps".to_owned(), 95.4e6 * factor),
                (
                    "cpu_s_per_gb".to_owned(),
                    0.412 * (1.0 + (pair % 5) as f64 / 50.0 * (factor - 1.0).signum()),
                ),
                ("latency_p50_ns".to_owned(), 123_456_789.0 * factor),
                ("latency_p99.9_ns".to_owned(), 999_456_789.0 / factor),
            ]),
            message: None,
        };
        let pair =
            |number| [run(Side::A, number, 1.0), run(Side::B, number, 0.95 + number as f64 / 1e4)];
        (1..=pairs).flat_map(pair).collect()
    }

    #[test]
    fn text_fits_a_terminal_and_says_what_was_seen() {
        let conditions = vec![
            Condition::parse("goodput < -2%").unwrap(),
            Condition::parse("p50 > 20%").unwrap(),
        ];
        let commands =
            ["stream 192.0.2.1 --up".to_owned(), format!("stream 192.0.2.1 {}", "-".repeat(200))];
        let asked = Asked { commands, conditions };
        let comparison = Comparison::of_pairs(&asked, (16_777_215, 1_000), runs(15), false);
        let text = render_comparison(&comparison, Style::Plain);
        assert!(text.lines().count() <= 24, "{text}");
        let is_long = |line: &&str| line.chars().count() > COLUMNS;
        assert_eq!(text.lines().find(is_long), None, "{text}");
        for part in [
            "15 of 1000 pairs, order drawn at random (seed 16777215)",
            "B worse",
            "B better",
            "FAILED: goodput < -2% holds with its whole interval",
            "p50 > 20% doesn't hold",
            "DOUBTFUL: 15 of 1000 pairs are complete",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let records = render_comparison_records(&comparison);
        assert_eq!(records.lines().count(), 1);
        let record: serde_json::Value = serde_json::from_str(&records).unwrap();
        assert_eq!(
            (&record["record"], &record["comparison"]["schema"]),
            (&"finished".into(), &Comparison::SCHEMA.into())
        );
    }
}
