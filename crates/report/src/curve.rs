//! Latency by percentile: each step to the right is a tenth of the rest.

use linerate_measure::histogram::{Histogram, supports_quantile};

use crate::chart::{colour, open_field, push_polyline};
use crate::html::Html;
use crate::quantity::Quantity;

/// A curve: shares of observations, 0 to 1, with the latency that so many don't exceed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Steps of a curve for each tenth of the rest.
const STEPS: u32 = 40;
/// The most nines that a curve goes to.
const MOST_NINES: u32 = 9;

impl Curve {
    /// The curve of a histogram, as far as its observations support quantiles.
    pub(crate) fn of(name: &'static str, histogram: &Histogram) -> Self {
        let count = histogram.len();
        let mut wanted = (1..=STEPS * MOST_NINES)
            .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(STEPS)))
            .take_while(|q| *q < 0.5 || supports_quantile(count, *q))
            .peekable();
        let (mut points, mut seen) = (Vec::new(), 0_u64);
        for (value_ns, times) in histogram.counts() {
            seen = seen.saturating_add(times);
            while let Some(q) = wanted.next_if(|q| seen as f64 >= q * count as f64) {
                points.push((q, value_ns as f64));
            }
        }
        Self { name, points }
    }
}

/// Where a share stands from the left: 0 for none, 1 for 90 %, 2 for 99 %.
fn nines(q: f64) -> f64 {
    -(1.0 - q.clamp(0.0, 1.0 - 1e-12)).log10()
}

/// The curves, on a logarithmic axis of time. Empty where there is no point.
pub(crate) fn render_curves(curves: &[Curve]) -> Html {
    let mut html = Html::new();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most_nines = points().map(|(q, _)| nines(*q)).fold(0.0, f64::max);
    let values = || points().map(|(_, value)| *value).filter(|value| *value > 0.0);
    let (low, high) = values()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if most_nines <= 0.0 || high <= 0.0 {
        return html;
    }
    let (low, high, marks) = log_axis(low, high);
    let y = |value: f64| {
        100.0 - ((value.max(low) / low).ln() / (high / low).ln()).clamp(0.0, 1.0) * 100.0
    };
    html.markup(
        "<section class=\"panel\"><header><h3>Latency by percentile</h3><ul class=\"key\">",
    );
    for (place, curve) in curves.iter().enumerate() {
        html.markup("<li class=\"")
            .markup(colour(place))
            .markup("\">")
            .markup(curve.name)
            .markup("</li>");
    }
    html.markup("</ul></header><div class=\"plot tall\">");
    open_field(&mut html, "Latency by percentile");
    html.markup("<path class=\"mark\" d=\"");
    let shares = shares_up_to(most_nines);
    for (q, _) in &shares {
        html.markup("M").number(nines(*q) / most_nines * 1000.0).markup(" 0v100");
    }
    for mark in &marks {
        html.markup("M0 ").number(y(*mark)).markup("h1000");
    }
    html.markup("\"/>");
    for (place, curve) in curves.iter().enumerate() {
        let corners: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(q, value)| (nines(*q) / most_nines * 1000.0, y(*value)))
            .collect();
        html.markup("<g class=\"").markup(colour(place)).markup("\">");
        push_polyline(&mut html, &corners);
        html.markup("</g>");
    }
    html.markup("</svg>");
    for mark in &marks {
        html.markup("<i style=\"bottom:")
            .number(100.0 - y(*mark))
            .markup("%\">")
            .text(&Quantity::Duration.render(*mark))
            .markup("</i>");
    }
    html.markup("</div></section>\n<div class=\"axis\">");
    for (q, name) in &shares {
        html.markup("<i style=\"left:")
            .number(nines(*q) / most_nines * 100.0)
            .markup("%\">")
            .markup(name)
            .markup("</i>");
    }
    html.markup("</div>\n");
    html
}

/// The percentiles that the axis names.
fn shares_up_to(most_nines: f64) -> Vec<(f64, &'static str)> {
    const NAMED: [(f64, &str); 8] = [
        (0.0, "0 %"),
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
        (0.99999, "99.999 %"),
        (0.999_999, "99.9999 %"),
    ];
    NAMED.into_iter().filter(|(q, _)| nines(*q) <= most_nines + 0.01).collect()
}

/// The ends of a logarithmic axis that holds two values, and its marks: 1, 2 and 5 of each power, or powers alone.
fn log_axis(low: f64, high: f64) -> (f64, f64, Vec<f64>) {
    let (low, high) = (low / 1.15, high * 1.15);
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let decades = (high / low).log10();
    let factors: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let marks =
        powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
    let mut marks: Vec<f64> = marks.filter(|mark| (low..=high).contains(mark)).collect();
    if marks.len() < 2 {
        // All within a small range: its ends say more than one mark.
        marks = vec![low * 1.15, high / 1.15];
        marks.dedup();
    }
    (low, high, marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_where_its_observations_do() {
        let mut histogram = Histogram::new();
        for value in 1..=1000_u64 {
            histogram.record_ns(value * 1000);
        }
        let curve = Curve::of("latency", &histogram);
        let (last, value) = *curve.points.last().unwrap();
        assert!((0.98..0.9965).contains(&last), "{last}");
        assert!((value / 1000.0 / 1000.0 - last).abs() < 0.01, "{value}");
        assert!(curve.points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        let html = render_curves(&[curve]).into_string();
        assert!(html.contains("99 %") && !html.contains("99.9 %"));
        assert!(render_curves(&[Curve::of("latency", &Histogram::new())]).is_empty());
        assert!(render_curves(&[]).is_empty());
    }

    #[test]
    fn one_value_has_an_axis_too() {
        let mut histogram = Histogram::new();
        for _ in 0..100 {
            histogram.record_ns(50_000);
        }
        let html = render_curves(&[Curve::of("latency", &histogram)]).into_string();
        assert!(html.contains("50 µs") || html.contains("µs"), "{html}");
        let (low, high, marks) = log_axis(50_000.0, 50_000.0);
        assert!(low < high && !marks.is_empty());
    }
}
