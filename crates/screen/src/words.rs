//! What a run has come to so far, in words.

use linerate_measure::limits::{Cause, Limit};
use linerate_measure::so_far::SoFar;
use linerate_measure::units::{render_count, render_duration_ns, render_percent, render_rate};
use linerate_measure::{Direction, Kind};

/// `, 19.6 Gbit/s so far, limited by the path's rate`; empty: nothing is known yet.
pub fn render_so_far(so_far: &SoFar) -> String {
    let figure = match so_far.workload().kind {
        Kind::Stream { .. } => render_goodput(so_far),
        Kind::Rr { .. } => render_transactions(so_far, "transactions"),
        Kind::Connect { .. } => render_transactions(so_far, "connections"),
    };
    let Some(figure) = figure else { return String::new() };
    let figure = match so_far.is_warming_up() {
        true => format!("warming up, {figure}"),
        false => format!("{figure} so far"),
    };
    let mut parts = vec![figure];
    parts.extend(render_latency(so_far));
    parts.extend(render_frames(so_far));
    parts.extend(so_far.loss_ratio().map(|lost| format!("{} lost", render_percent(lost))));
    parts.extend(render_limits(so_far));
    parts.iter().map(|part| format!(", {part}")).collect()
}

fn render_goodput(so_far: &SoFar) -> Option<String> {
    let known = so_far.workload().directions().into_iter().filter_map(|way| {
        let rate = render_rate(so_far.goodput_bps(way)?);
        Some(match (so_far.workload().direction(), way) {
            (Some(Direction::Both), Direction::Down) => format!("down {rate}"),
            (Some(Direction::Both), _) => format!("up {rate}"),
            _ => rate,
        })
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn render_transactions(so_far: &SoFar, what: &str) -> Option<String> {
    so_far.transactions_per_s().map(|per_s| format!("{} {what}/s", render_count(per_s)))
}

/// The quantiles that the latencies so far support, or their mean.
fn render_latency(so_far: &SoFar) -> Option<String> {
    let told = |name: &str, ns: u64| format!("{name} {}", render_duration_ns(ns));
    let quantile = |(name, q)| Some(told(name, so_far.latencies().quantile_ns(q)?));
    let quantiles: Vec<String> =
        [("p50", 0.5), ("p99", 0.99)].into_iter().filter_map(quantile).collect();
    match quantiles.is_empty() {
        true => so_far.mean_latency_ns().map(|mean| told("mean", mean as u64)),
        false => Some(quantiles.join(", ")),
    }
}

/// Of a media stream.
fn render_frames(so_far: &SoFar) -> Option<String> {
    let frames = so_far.datagrams().frames?;
    let (late, dropped) = (frames.late.unwrap_or(0), frames.dropped.unwrap_or(0));
    Some(format!("frames: {late} late, {dropped} dropped"))
}

/// What limits the stream, or both directions of it.
fn render_limits(so_far: &SoFar) -> Option<String> {
    let limits = so_far.workload().directions().into_iter();
    let known: Vec<&Limit> = limits.filter_map(|way| so_far.limit(way)).collect();
    match known[..] {
        [] => None,
        [only] if so_far.workload().direction() != Some(Direction::Both) => {
            Some(format!("limited by {}", describe(only)))
        }
        [up, down] if describe(up) == describe(down) => {
            Some(format!("limited by {}", describe(up)))
        }
        _ => {
            let named = known.iter().map(|limit| match limit.direction {
                Direction::Down => format!("down limited by {}", describe(limit)),
                Direction::Up | Direction::Both => format!("up limited by {}", describe(limit)),
            });
            Some(named.collect::<Vec<_>>().join(", "))
        }
    }
}

/// What limits while the run goes on.
pub(crate) fn describe(limit: &Limit) -> String {
    match limit.cause {
        Cause::StartUp => "slow start".to_owned(),
        _ => limit.describe(),
    }
}
