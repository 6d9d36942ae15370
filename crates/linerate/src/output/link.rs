//! An emulated link as text: what it does, when it begins; what it did, when it ends.

use linerate_link::Pace;
use linerate_measure::link::report::{Counters, Waiting};
use linerate_measure::link::{Amount, Direction, Link, Report};
use linerate_measure::summary::Latency;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};

use super::{Style, Table};

/// What the link will do, and between what: a line for each part of `between`.
pub(crate) fn render_link_begin(link: &Link, between: &[String; 3], pace: &Pace) -> String {
    let name = link.name.as_deref().unwrap_or("link");
    let mut text = format!("{name}, seed {}, MTU {} B\n", link.seed, link.mtu_bytes);
    let [left, right, how] = between;
    text += &format!("  left       {left}\n  right      {right}\n");
    text += &format!("  to right   {}\n", render_direction(&link.to_right));
    text += &format!("  to left    {}\n", render_direction(&link.to_left));
    if let (Some(first), Some(last)) = (link.changes.first(), link.changes.last()) {
        let (count, first, last) =
            (link.changes.len(), render_duration_ns(first.at_ns), render_duration_ns(last.at_ns));
        text += &format!("  changes    {count}, from {first} to {last}\n");
    }
    let waiting = match (pace.waiting, pace.cpu) {
        (Waiting::Spinning, Some(cpu)) => format!("spinning on processor {cpu}"),
        (Waiting::Spinning, None) => "spinning".to_owned(),
        (Waiting::Sleeping, _) => "sleeping between packets".to_owned(),
    };
    text += &format!("  emulator   {waiting}\n  {how}\nthe link is up; Ctrl-C ends it\n");
    text
}

/// What the link did.
pub(crate) fn render_link_report(report: &Report) -> String {
    let elapsed = render_duration_ns(report.elapsed_ns);
    let mut text = format!("link up for {elapsed}, seed {}\n\n", report.link.seed);
    let mut table = Table::with_head(&["", "to right", "to left"]);
    let (right, left) = (&report.to_right, &report.to_left);
    let rate = |bps: Option<f64>| bps.map_or_else(|| "-".to_owned(), render_rate);
    table.push(vec!["rate".to_owned(), rate(right.delivered_bps), rate(left.delivered_bps)]);
    for (name, of, always) in ROWS {
        let (right, left) = (of(&right.counters), of(&left.counters));
        if always || right > 0 || left > 0 {
            table.push(vec![
                name.to_owned(),
                render_count(right as f64),
                render_count(left as f64),
            ]);
        }
    }
    text += &table.render(Style::Plain);
    text.push('\n');
    text += &render_quantiles("left late by", report.accuracy.delay_error_ns.as_ref());
    text += &render_quantiles("unseen for up to", report.accuracy.unseen_ns.as_ref());
    if report.accuracy.late > 0 {
        text += &format!(
            "{} packets later than {}, {} behind in all\n",
            report.accuracy.late,
            render_duration_ns(report.accuracy.late_after_ns),
            render_duration_ns(report.accuracy.behind_ns)
        );
    }
    for missing in &report.not_emulated {
        text += &format!("not emulated: {missing}\n");
    }
    for note in &report.status.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(message) = &report.status.message {
        text += &format!("{message}\n");
    }
    text
}

/// Name, figure, and whether it is shown where it is 0.
type Row = (&'static str, fn(&Counters) -> u64, bool);

const ROWS: [Row; 13] = [
    ("packets offered", |of| of.offered, true),
    ("delivered", |of| of.delivered, true),
    ("lost by chance", |of| of.lost_at_random, true),
    ("lost in the queue", |of| of.lost_in_queue, true),
    ("doubled", |of| of.duplicated, false),
    ("reordered", |of| of.reordered, false),
    ("corrupted", |of| of.corrupted, false),
    ("  flipped bits", |of| of.flipped_bits, false),
    ("marked (ECN)", |of| of.marked, false),
    ("undeliverable", |of| of.undeliverable, false),
    ("lost by the emulator", |of| of.lost_in_emulator, false),
    ("lost before it", |of| of.lost_before.unwrap_or(0), false),
    ("under way at the end", |of| of.in_flight, false),
];

fn render_quantiles(name: &str, latency: Option<&Latency>) -> String {
    let Some(latency) = latency else { return String::new() };
    let quantile = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), render_duration_ns);
    format!(
        "{name}: p50 {}, p99 {}, p99.9 {}, at most {}\n",
        quantile(latency.p50),
        quantile(latency.p99),
        quantile(latency.p99_9),
        render_duration_ns(latency.max)
    )
}

fn render_direction(direction: &Direction) -> String {
    let mut parts = vec![format!("delay {}", render_duration_ns(direction.delay_ns))];
    if let Some(jitter) = direction.jitter {
        let shape = format!("{:?}", jitter.distribution).to_lowercase();
        let order = if jitter.may_reorder { ", may reorder" } else { "" };
        parts.push(format!("jitter {} ({shape}{order})", render_duration_ns(jitter.width_ns)));
    }
    if let Some(rate_bps) = direction.rate_bps {
        parts.push(render_rate(rate_bps as f64));
    }
    for (name, amount) in [("queue", direction.queue), ("marks at", direction.mark_at)] {
        if let Some(amount) = amount {
            parts.push(format!("{name} {}", render_amount(amount)));
        }
    }
    if direction.loss > 0.0 {
        parts.push(format!("loss {}", render_share(direction.loss)));
    }
    if let Some(model) = direction.burst_loss {
        let (mean, burst) = (render_share(model.mean_loss()), 1.0 / model.leave);
        parts.push(format!("burst loss {mean}, bad for {burst:.1} packets"));
    }
    if let Some(reorder) = direction.reorder {
        let (share, by) = (render_share(reorder.share), render_duration_ns(reorder.by_ns));
        parts.push(format!("{share} held back by {by}"));
    }
    if direction.duplicate > 0.0 {
        parts.push(format!("{} doubled", render_share(direction.duplicate)));
    }
    if let Some(corrupt) = direction.corrupt {
        let repaired = if corrupt.repair_checksums { ", checksums repaired" } else { "" };
        parts.push(match (corrupt.bit_error_rate, corrupt.packets) {
            (Some(rate), _) => format!("bit errors {rate:e}{repaired}"),
            (None, share) => format!("{} corrupted{repaired}", render_share(share.unwrap_or(0.0))),
        });
    }
    parts.join(", ")
}

fn render_amount(amount: Amount) -> String {
    match amount {
        Amount::Packets(packets) => format!("{packets} packets"),
        Amount::Bytes(bytes) => render_bytes(bytes),
    }
}

fn render_share(share: f64) -> String {
    // As many digits as say it, and none that binary fractions add.
    format!("{} %", (share * 1e11).round() / 1e9)
}
