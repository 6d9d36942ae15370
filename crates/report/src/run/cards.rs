//! The figures that a reader looks for first.

use linerate_measure::hunt::RateUnit;
use linerate_measure::summary::Latency;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};
use linerate_measure::{Run, Sample, Summary, metric};

use crate::html::Html;

/// A figure: its name, its value, and a remark.
type Card = (&'static str, String, String);

/// The first figures of a run; empty where nothing was measured.
pub(super) fn render_cards(run: &Run) -> Html {
    let summary = &run.summary;
    let all = [
        found(run),
        rate(run),
        summary.latency_ns.as_ref().and_then(|latency| quantiles(metric::LATENCY.label, latency)),
        loss(summary),
        round_trip(run),
        cost(summary),
    ];
    let mut html = Html::new();
    let cards: Vec<Card> = all.into_iter().flatten().collect();
    if cards.is_empty() {
        return html;
    }
    html.markup("<div class=\"cards\">\n");
    for (name, value, remark) in cards {
        html.markup("<div><span>").markup(name).markup("</span><b>").text(&value);
        html.markup("</b><span>").text(&remark).markup("</span></div>\n");
    }
    html.markup("</div>\n");
    html
}

/// What a search has found.
fn found(run: &Run) -> Option<Card> {
    let hunt = run.hunt.as_deref()?;
    let rate = hunt.outcome.rate()? as f64;
    let (metric, value) = match hunt.goal.unit {
        RateUnit::BitsPerSecond => (metric::HUNT_RATE_BPS, render_rate(rate)),
        RateUnit::RequestsPerSecond => {
            (metric::HUNT_RATE_PER_S, format!("{}/s", render_count(rate)))
        }
    };
    Some((metric.label, value, format!("{} trials", hunt.trials.len())))
}

fn rate(run: &Run) -> Option<Card> {
    let summary = &run.summary;
    let per_s = |value: f64| format!("{}/s", render_count(value));
    if let Some(rate) = summary.connections_per_s {
        return Some((metric::CONNECTIONS_PER_S.label, per_s(rate), count_of(summary)));
    }
    if let Some(rate) = summary.transactions_per_s {
        return Some((metric::TRANSACTIONS_PER_S.label, per_s(rate), count_of(summary)));
    }
    let bps = summary.goodput_bps?;
    let remark = match spread_bps(run) {
        Some((low, high, count)) => {
            format!("{} to {} in {count} intervals", render_rate(low), render_rate(high))
        }
        None => summary.received_bytes.map(render_bytes).unwrap_or_default(),
    };
    Some((metric::GOODPUT.label, render_rate(bps), remark))
}

fn count_of(summary: &Summary) -> String {
    summary
        .transactions
        .map(|count| format!("{} in all", render_count(count as f64)))
        .unwrap_or_default()
}

/// Least and greatest goodput of the measured intervals of a stream in one direction, and how many there are.
fn spread_bps(run: &Run) -> Option<(f64, f64, usize)> {
    let directions = run.plan.workload.directions();
    let [direction] = directions[..] else { return None };
    let measured = |sample: &&Sample| sample.role == direction.receiver() && !sample.warm_up;
    let rates: Vec<f64> = run.samples.iter().filter(measured).filter_map(rate_bps).collect();
    let low = rates.iter().copied().reduce(f64::min)?;
    let high = rates.iter().copied().reduce(f64::max)?;
    (rates.len() > 1).then_some((low, high, rates.len()))
}

fn rate_bps(sample: &Sample) -> Option<f64> {
    let length_ns = sample.to_ns.checked_sub(sample.from_ns).filter(|length| *length > 0)?;
    Some(sample.received?.bytes as f64 * 8e9 / length_ns as f64)
}

fn quantiles(name: &'static str, latency: &Latency) -> Option<Card> {
    let p50 = latency.p50.map(|p50| format!("{} median", render_duration_ns(p50)));
    let value = p50.unwrap_or_else(|| format!("{} mean", render_duration_ns(latency.mean as u64)));
    let tail = [("p99", latency.p99), ("p99.9", latency.p99_9), ("max", Some(latency.max))];
    let tail = tail.iter().filter_map(|(name, value)| {
        value.map(|value| format!("{name} {}", render_duration_ns(value)))
    });
    Some((name, value, tail.collect::<Vec<_>>().join(", ")))
}

fn loss(summary: &Summary) -> Option<Card> {
    if let Some(ratio) = summary.loss_ratio {
        let counts = summary.datagrams.unwrap_or_default();
        let parts = [("lost", counts.lost), ("of them at the socket", counts.dropped_by_socket)];
        let parts = parts.iter().filter_map(|(name, count)| {
            count.map(|count| format!("{} {name}", render_count(count as f64)))
        });
        let remark = parts.collect::<Vec<_>>().join(", ");
        return Some((metric::LOSS_RATIO.label, format!("{:.3} %", ratio * 100.0), remark));
    }
    let segments = summary.retransmitted_segments?;
    Some(("sent again", render_count(segments as f64), "segments of TCP".to_owned()))
}

/// Round trips of the connections that were sent on: under load, and the least.
fn round_trip(run: &Run) -> Option<Card> {
    let flows = || {
        let reports = run.reports.iter().flat_map(|report| &report.flows);
        reports.filter(|flow| flow.sent.is_some())
    };
    let of = |flow: &linerate_measure::FlowReport| match (flow.tcp, flow.quic) {
        (Some(tcp), _) => Some((tcp.rtt_us, tcp.min_rtt_us)),
        (None, Some(quic)) => Some((quic.rtt_us, Some(quic.min_rtt_us))),
        (None, None) => None,
    };
    if run.summary.latency_ns.is_some() {
        return None;
    }
    let all: Vec<(u32, Option<u32>)> = flows().filter_map(of).collect();
    let sum_us: u64 = all.iter().map(|(rtt_us, _)| u64::from(*rtt_us)).sum();
    let mean_us = sum_us.checked_div(all.len() as u64)?;
    let least_us = all.iter().filter_map(|(_, least_us)| *least_us).min();
    let remark = least_us
        .map(|us| format!("{} at least", render_duration_ns(u64::from(us) * 1000)))
        .unwrap_or_default();
    Some(("round trip under load", render_duration_ns(mean_us.saturating_mul(1000)), remark))
}

fn cost(summary: &Summary) -> Option<Card> {
    if let Some(seconds) = summary.cpu_s_per_transaction {
        let each = render_duration_ns((seconds * 1e9).max(0.0) as u64);
        return Some((metric::CPU.label, each, "each transaction, both ends".to_owned()));
    }
    let seconds = summary.cpu_s_per_gb?;
    Some((metric::CPU.label, format!("{seconds:.3} s/GB"), "both ends".to_owned()))
}
