//! The figures of a summary, as people read them.

use linerate_measure::metric::{self, Metric};
use linerate_measure::summary::Latency;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};
use linerate_measure::{Direction, End, Run, Summary};

use super::delays::delay_lines;
use super::latencies::render_latencies;
use super::limits::limit_lines;
use super::{Style, render_number};

/// Names and values of the figures that were measured, but for latencies.
pub(crate) fn figures_of(run: &Run) -> Vec<(String, String)> {
    let summary = &run.summary;
    let mut lines = Lines::default();
    lines.push_transactions(summary);
    lines.push_throughput(run);
    lines.push_datagrams(summary);
    lines.push_frames(summary);
    lines.push_cost(summary);
    lines.lines
}

/// A line for each figure that was measured.
pub(crate) fn render_figures(run: &Run, style: Style, columns: usize) -> String {
    let summary = &run.summary;
    let mut lines = Lines { lines: figures_of(run) };
    lines.lines.extend(delay_lines(run));
    lines.lines.extend(limit_lines(run));
    let mut text = lines.render(style);
    if summary.latency_ns.is_some() {
        text.push('\n');
        text.push_str(&render_latencies(summary, style, columns));
    }
    text
}

/// What the columns of [`render_main_figure`], two quantiles, [`render_loss`] and [`render_cpu_per_unit`] are called.
pub(crate) const FIGURE_HEADS: [&str; 5] =
    ["result", "p50", "p99", metric::LOSS_RATIO.label, metric::CPU_PER_GB.label];

/// What the test is about: goodput, or transactions per second.
pub(crate) fn render_main_figure(summary: &Summary) -> String {
    let rate = summary.transactions_per_s.or(summary.connections_per_s);
    match (rate, summary.goodput_bps) {
        (Some(rate), _) => format!("{}/s", render_count(rate)),
        (None, Some(bps)) => render_rate(bps),
        (None, None) => "-".to_owned(),
    }
}

/// One quantile of the latency, where the sample supports it.
pub(crate) fn render_quantile(
    summary: &Summary,
    quantile: impl Fn(&Latency) -> Option<u64>,
) -> String {
    summary.latency_ns.as_ref().and_then(quantile).map_or("-".to_owned(), render_duration_ns)
}

/// What was lost, in percent of what was sent.
pub(crate) fn render_loss(summary: &Summary) -> String {
    if let Some(ratio) = summary.loss_ratio {
        return render_percent(ratio);
    }
    match (summary.transactions_lost, summary.transactions) {
        (Some(lost), Some(done)) if lost + done > 0 => {
            render_percent(lost as f64 / (lost + done) as f64)
        }
        _ => "-".to_owned(),
    }
}

/// What was due and never sent, and what failed, a line each; empty where there was nothing of it.
pub(crate) fn render_left_out(summary: &Summary) -> Vec<String> {
    let refused = summary.datagrams.and_then(|counts| counts.refused);
    let unsent = [
        (metric::TRANSACTIONS_UNSENT.label.to_owned(), summary.transactions_unsent),
        ("datagrams refused by own stack".to_owned(), refused),
    ];
    let failed = summary.errors.iter().map(|(kind, n)| (format!("errors: {kind}"), Some(*n)));
    unsent
        .into_iter()
        .chain(failed)
        .filter_map(|(name, number)| Some((name, number.filter(|n| *n > 0)?)))
        .map(|(name, number)| format!("{name}: {}\n", render_number(number)))
        .collect()
}

/// CPU time of both ends for each 10^9 bytes, or for each transaction.
pub(crate) fn render_cpu_per_unit(summary: &Summary) -> String {
    match (summary.cpu_s_per_transaction, summary.cpu_s_per_gb) {
        (Some(seconds), _) => format!("{} each", render_seconds(seconds)),
        (None, Some(seconds)) => format!("{seconds:.3} s/GB"),
        (None, None) => "-".to_owned(),
    }
}

/// Names and values, one to a line.
#[derive(Default)]
struct Lines {
    lines: Vec<(String, String)>,
}

impl Lines {
    fn push(&mut self, name: &str, value: Option<String>) {
        self.lines.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// A part of the figure above it.
    fn push_part(&mut self, metric: &Metric, value: Option<String>) {
        self.push(&format!("  {}", metric.label), value);
    }

    fn push_throughput(&mut self, run: &Run) {
        let summary = &run.summary;
        let amount = match (summary.received_bytes, summary.elapsed_s) {
            (Some(bytes), Some(seconds)) => {
                let is_by_time = matches!(run.plan.workload.end, End::Time { .. });
                let drained = summary.drained_bytes.filter(|_| is_by_time).unwrap_or(0);
                let in_time = bytes.saturating_sub(drained);
                format!("   {} in {}", render_bytes(in_time), render_seconds(seconds))
            }
            _ => String::new(),
        };
        let goodput = summary.goodput_bps.map(|bps| format!("{}{amount}", render_rate(bps)));
        self.push(metric::GOODPUT.label, goodput);
        self.push_part(&metric::GOODPUT_UP, summary.goodput_up_bps.map(render_rate));
        self.push_part(&metric::GOODPUT_DOWN, summary.goodput_down_bps.map(render_rate));
        let drained = summary.drained_bytes.filter(|bytes| *bytes > 0);
        self.push_part(&metric::DRAINED_BYTES, drained.map(render_bytes));
        self.push_steadiness(run);
        self.push(metric::SENT_RATE.label, summary.sent_bps.map(render_rate));
        self.push("retransmitted", summary.retransmitted_segments.map(|n| plural(n, "segment")));
        self.push(
            metric::FAIRNESS.label,
            summary.fairness.map(|index| format!("{index:.4} (Jain)")),
        );
        self.push(metric::VERIFIED_BYTES.label, summary.verified_bytes.map(render_bytes));
        self.push(
            metric::WRONG_BYTES.label,
            summary.wrong_bytes.filter(|bytes| *bytes > 0).map(render_bytes),
        );
    }

    /// How much the rate varied in this run; where a warm-up was looked for, what was found.
    fn push_steadiness(&mut self, run: &Run) {
        for one in &run.steadiness {
            let way = match one.direction {
                Some(Direction::Up) if run.steadiness.len() > 1 => " up",
                Some(Direction::Down) if run.steadiness.len() > 1 => " down",
                _ => "",
            };
            let rate = match one.direction {
                Some(_) => render_rate(one.rate),
                None => format!("{}/s", render_count(one.rate)),
            };
            let found = one.warm_up_ns.map(|ns| match ns {
                0 => "no warm-up found".to_owned(),
                ns => format!("{rate} from {} on", render_duration_ns(ns)),
            });
            let found = found.filter(|_| run.plan.local.finds_warm_up);
            self.push(&format!("  without warm-up{way}"), found);
            let varied = one.varied_by.map(|share| format!("+- {:.1} %", share * 100.0));
            self.push(&format!("  this run varied by{way}"), varied);
        }
    }

    fn push_transactions(&mut self, summary: &Summary) {
        let done = match (summary.transactions, summary.elapsed_s) {
            (Some(done), Some(seconds)) => {
                format!("   {} in {}", render_number(done), render_seconds(seconds))
            }
            _ => String::new(),
        };
        let render = |rate: f64| format!("{}/s{done}", render_count(rate));
        self.push(metric::TRANSACTIONS_PER_S.label, summary.transactions_per_s.map(render));
        self.push(metric::CONNECTIONS_PER_S.label, summary.connections_per_s.map(render));
        let lost = summary.transactions_lost;
        self.push_part(
            &metric::TRANSACTIONS_LOST,
            lost.map(|n| format!("{n}   {}", render_loss(summary))),
        );
        let unsent = summary.transactions_unsent;
        self.push_part(&metric::TRANSACTIONS_UNSENT, unsent.map(render_number));
    }

    fn push_datagrams(&mut self, summary: &Summary) {
        let Some(counts) = summary.datagrams else {
            return;
        };
        let rate = summary
            .datagrams_per_s
            .map_or(String::new(), |rate| format!("   {}/s", render_count(rate)));
        self.push("datagrams sent", counts.sent.map(render_number));
        let refused = counts.refused.filter(|refused| *refused > 0);
        self.push("  refused by own stack", refused.map(render_number));
        self.push("  received", counts.received.map(|n| format!("{}{rate}", render_number(n))));
        let lost =
            counts.lost.map(|lost| format!("{}   {}", render_number(lost), render_loss(summary)));
        self.push("  lost", lost);
        let dropped = counts.dropped_by_socket;
        self.push("    of it in the socket", dropped.map(render_number));
        self.push("  duplicated", counts.duplicated.map(render_number));
        self.push("  reordered", counts.reordered.map(render_number));
        self.push("  late", counts.late.filter(|late| *late > 0).map(render_number));
        self.push(
            metric::JITTER.label,
            summary.jitter_ns.map(|ns| render_duration_ns(ns.max(0.0) as u64)),
        );
    }

    fn push_frames(&mut self, summary: &Summary) {
        let Some((counts, frames)) = summary.datagrams.and_then(|all| Some((all, all.frames?)))
        else {
            return;
        };
        self.push("frames sent", frames.sent.map(render_number));
        let of_sent = |count: Option<u64>| {
            let count = count?;
            let ratio = frames.sent.filter(|sent| *sent > 0).map(|sent| count as f64 / sent as f64);
            let share =
                ratio.map_or(String::new(), |ratio| format!("   {}", render_percent(ratio)));
            Some(format!("{}{share}", render_number(count)))
        };
        self.push("  completed", of_sent(frames.completed));
        self.push("  late", of_sent(frames.late));
        self.push("  dropped", of_sent(frames.dropped));
        let bursts = counts.loss_bursts.zip(counts.longest_loss_burst);
        let bursts = bursts.map(|(bursts, longest)| match bursts {
            0 => "0".to_owned(),
            _ => format!("{}   longest {}", render_number(bursts), plural(longest, "datagram")),
        });
        self.push(metric::LOSS_BURSTS.label, bursts);
        let variation = summary.delay_variation_ns.as_ref().map(render_quantiles);
        self.push(metric::DELAY_VARIATION.label, variation);
        self.push(metric::SEND_DELAY.label, summary.send_delay_ns.as_ref().map(render_quantiles));
    }

    fn push_cost(&mut self, summary: &Summary) {
        let name = format!("{}, both ends", metric::CPU_PER_GB.label);
        self.push(&name, summary.cpu_s_per_gb.map(|s| format!("{s:.3} s/GB")));
        let each = summary.cpu_s_per_transaction.map(render_seconds);
        self.push(&name, each.map(|each| format!("{each} per transaction")));
        for (kind, count) in &summary.errors {
            self.push(&format!("errors: {kind}"), Some(render_number(*count)));
        }
    }

    fn render(&self, style: Style) -> String {
        let width = self.lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (place, (name, value)) in self.lines.iter().enumerate() {
            let value = if place == 0 { style.bold(value) } else { value.clone() };
            text.push_str(&format!("{name:width$}   {value}\n"));
        }
        text
    }
}

/// The quantiles of a distribution that it supports, and its greatest value.
fn render_quantiles(latency: &Latency) -> String {
    let quantiles = [("p50", latency.p50), ("p99", latency.p99), ("p99.9", latency.p99_9)];
    let known = quantiles.into_iter().filter_map(|(name, ns)| Some((name, ns?)));
    let parts = known.chain([("max", latency.max)]);
    let parts: Vec<String> =
        parts.map(|(name, ns)| format!("{name} {}", render_duration_ns(ns))).collect();
    parts.join("   ")
}

fn render_seconds(seconds: f64) -> String {
    render_duration_ns((seconds.max(0.0) * 1e9) as u64)
}

fn render_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.001 => "<0.001 %".to_owned(),
        ..1.0 => format!("{percent:.3} %"),
        _ => format!("{percent:.1} %"),
    }
}

fn plural(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", render_number(number))
}
