//! Latency under load as text: latencies first, then goodput, responsiveness and queues, then a plot.

use linerate_measure::Direction;
use linerate_measure::loaded::{Ended, Loaded, Part, Phase, PhaseName, PhaseReason};
use linerate_measure::summary::Latency;
use linerate_measure::trust::Reason;
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};

use super::text::render_transport;
use super::{Style, Table};

/// The columns of the plot's bars.
const BAR: f64 = 40.0;
/// Reasons for doubt that the last line has; the document has all.
const REASONS_TOLD: usize = 3;

/// What a phase is about to do.
pub(crate) fn render_phase_begin(loaded_ns: u64, idle_ns: u64, name: PhaseName) -> String {
    match name {
        PhaseName::Idle => format!("linerate: idle, {}\n", render_duration_ns(idle_ns)),
        name => format!(
            "linerate: {}, until steady, at most {}\n",
            name.name(),
            render_duration_ns(loaded_ns)
        ),
    }
}

/// The whole result.
pub(crate) fn render_loaded(loaded: &Loaded, style: Style) -> String {
    let mut text = render_origin(loaded);
    if !loaded.phases.is_empty() {
        text.push_str(&render_table(&loaded.phases, style));
        loaded.phases.iter().for_each(|phase| text.push_str(&render_queue(phase)));
        text.push_str(&render_plot(&loaded.phases));
    }
    let status = &loaded.status;
    if let Some(message) = &status.message {
        text.push_str(&format!("{message}\n"));
    }
    let told = |(place, one): (usize, &PhaseReason)| {
        let reason = &one.reason;
        let told = format!("{}: {}", one.phase.name(), reason.text);
        (place < REASONS_TOLD).then(|| Reason { text: told, ..reason.clone() })
    };
    let mut gravest: Vec<_> = status.reasons.iter().collect();
    gravest.sort_by_key(|one| std::cmp::Reverse(one.reason.severity));
    let reasons: Vec<Reason> = gravest.into_iter().enumerate().filter_map(told).collect();
    let more = match status.reasons.len().saturating_sub(reasons.len()) {
        0 => String::new(),
        more => format!("; and {more} more (--json)"),
    };
    text + &format!("{}{more}\n", status.verdict.line(&reasons))
}

fn render_origin(loaded: &Loaded) -> String {
    let plan = &loaded.plan;
    let flows = if plan.flows == 1 { "1 flow".to_owned() } else { format!("{} flows", plan.flows) };
    format!(
        "latency under load: {}, port {}; load over {}, {flows}, {}\n",
        loaded.host,
        loaded.port,
        render_transport(&plan.workload(PhaseName::Up, Part::Load)),
        plan.congestion
    )
}

fn render_table(phases: &[Phase], style: Style) -> String {
    let mut head = vec!["latency, ms"];
    head.extend(phases.iter().map(|phase| phase.name.name()));
    let mut table = Table::with_head(&head);
    let mut add = |label: &str, cell: &dyn Fn(&Phase) -> Option<String>| {
        let cells = phases.iter().map(|phase| cell(phase).unwrap_or_else(|| "-".to_owned()));
        table.push(std::iter::once(label.to_owned()).chain(cells).collect());
    };
    let p50 = |latency: Option<Latency>| latency?.p50.map(ms);
    add("  request p50", &|phase| p50(phase.sparse));
    add("  request p90", &|phase| phase.sparse?.p90.map(ms));
    add("  request p99", &|phase| phase.sparse?.p99.map(ms));
    add("  request over UDP p50", &|phase| p50(phase.udp));
    add("  new connection p50, TCP", &|phase| p50(phase.foreign.tcp));
    add("    and TLS", &|phase| p50(phase.foreign.tls));
    add("    and first byte", &|phase| p50(phase.foreign.first_byte));
    add("  load's own round trip p50", &|phase| p50(phase.own));
    add("goodput, Mbit/s", &|phase| {
        let rates = [phase.goodput_up_bps, phase.goodput_down_bps];
        let texts: Vec<String> = rates.into_iter().flatten().map(|bps| figure(bps / 1e6)).collect();
        (!texts.is_empty()).then(|| texts.join(" + "))
    });
    add("RPM, draft-09", &|phase| phase.rpm.map(|rpm| format!("{:.0}", rpm.draft_09)));
    add("RPM, older formula", &|phase| phase.rpm.map(|rpm| format!("{:.0}", rpm.mean_latency)));
    add("confidence", &|phase| phase.confidence.map(|one| one.name().to_owned()));
    add("ended", &|phase| {
        Some(
            match phase.ended {
                Ended::Steady => "steady",
                Ended::TimeUp => "time up",
                Ended::Interrupted => "interrupted",
                Ended::Failed => "failed",
            }
            .to_owned(),
        )
    });
    table.render(style)
}

/// The queue that a load kept standing; nothing of a phase without one.
fn render_queue(phase: &Phase) -> String {
    let Some(queue) = phase.queue else { return String::new() };
    let (name, delay) = (phase.name.name(), render_duration_ns(queue.delay_ns));
    let goodput = match phase.name.direction() {
        Some(Direction::Down) => phase.goodput_down_bps,
        _ => phase.goodput_up_bps,
    };
    match (queue.bytes, goodput) {
        (Some(bytes), Some(bps)) => {
            format!("queue {name}: {}, {delay} at {}\n", render_bytes(bytes), render_rate(bps))
        }
        _ => format!("queue {name}: {delay} in both directions together\n"),
    }
}

/// A bar for each phase: the median of requests, and on to the 90th percentile.
fn render_plot(phases: &[Phase]) -> String {
    let longest = phases.iter().filter_map(|phase| phase.sparse?.p90.or(phase.sparse?.p50)).max();
    let Some(longest_ns) = longest.filter(|ns| *ns > 0) else { return String::new() };
    let columns = |ns: u64| (ns as f64 / longest_ns as f64 * BAR).round() as usize;
    let mut text = "request latency: # to p50, - to p90\n".to_owned();
    for phase in phases {
        let Some(p50_ns) = phase.sparse.and_then(|sparse| sparse.p50) else { continue };
        let p90_ns = phase.sparse.and_then(|sparse| sparse.p90).unwrap_or(p50_ns);
        let full = columns(p50_ns).max(1);
        let rest = columns(p90_ns).saturating_sub(full);
        text.push_str(&format!(
            "  {:<4} |{}{} {} ms\n",
            phase.name.name(),
            "#".repeat(full),
            "-".repeat(rest),
            ms(p50_ns)
        ));
    }
    text
}

fn ms(ns: u64) -> String {
    figure(ns as f64 / 1e6)
}

/// A number with three digits, or with all that stand before the point.
fn figure(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        ..10_000.0 => format!("{value:.0}"),
        _ => render_count(value),
    }
}

#[cfg(test)]
mod tests {
    use linerate_measure::Transport;
    use linerate_measure::loaded::{Confidence, LoadedPlan, Rpm, StandingQueue};
    use linerate_measure::run::exit;
    use linerate_measure::trust::{Severity, Trust};

    use super::*;

    fn latency(p50_ms: u64) -> Option<Latency> {
        let ns = |ms: u64| Some(ms * 1_000_000);
        Some(Latency { count: 100, p50: ns(p50_ms), p90: ns(p50_ms * 2), ..Latency::default() })
    }

    /// A phase whose requests take 40 ms at the median.
    fn phase(name: PhaseName) -> Phase {
        let mut phase = Phase::of(name, Ended::Steady, 0, Vec::new());
        (phase.sparse, phase.udp) = (latency(40), latency(41));
        phase.foreign.tcp = latency(42);
        phase.foreign.first_byte = latency(126);
        phase.verdict = Trust::Valid;
        if name != PhaseName::Idle {
            phase.own = latency(43);
            phase.goodput_up_bps = Some(18.84e6);
            phase.goodput_down_bps = (name == PhaseName::Both).then_some(5e6);
            phase.rpm = Some(Rpm { draft_09: 1650.4, mean_latency: 545.5, p90: None });
            phase.queue = Some(StandingQueue {
                rtt_ns: 43_000_000,
                least_rtt_ns: 3_000_000,
                delay_ns: 40_000_000,
                bytes: (name == PhaseName::Up).then_some(94_200),
            });
        }
        phase
    }

    fn loaded(phases: Vec<Phase>) -> Loaded {
        let plan = LoadedPlan {
            transport: Transport::Quic,
            flows: 2,
            congestion: "cubic".to_owned(),
            idle_ns: 2_000_000_000,
            longest_ns: 10_000_000_000,
            warm_up_ns: 1_000_000_000,
        };
        Loaded::of(("192.0.2.1".to_owned(), 5250), plan, phases)
    }

    #[test]
    fn latencies_come_first_and_each_figure_has_its_name() {
        let mut loaded =
            loaded([PhaseName::Idle, PhaseName::Up, PhaseName::Both].map(phase).into());
        loaded.phases[1].confidence = Some(Confidence::High);
        let text = render_loaded(&loaded, Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let mut rest = text.as_str();
        for part in [
            "latency under load: 192.0.2.1, port 5250; load over QUIC, 2 flows, cubic\n",
            "  request p50                   40.0     40.0",
            "  request p99                      -        -",
            "    and first byte               126      126",
            "goodput, Mbit/s                    -     18.8   18.8 + 5.00\n",
            "RPM, draft-09                      -     1650",
            "RPM, older formula                 -      546",
            "high",
            "queue up: 94.2 kB, 40.0 ms at 18.8 Mbit/s\n",
            "queue both: 40.0 ms in both directions together\n",
            "  idle |####################-------------------- 40.0 ms\n",
            "interrupted: the figures hold for the part that was done\n",
        ] {
            rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {text}")).1;
        }
        assert!(text.ends_with("\nVALID\n"), "{text}");
    }

    #[test]
    fn the_last_line_has_the_gravest_reasons_and_how_many_more_there_are() {
        let mut loaded = loaded(vec![phase(PhaseName::Idle)]);
        loaded.status.verdict = Trust::Doubtful;
        let reason = |number: usize, severity| PhaseReason {
            phase: PhaseName::Idle,
            part: Part::Udp,
            reason: Reason { severity, ..Reason::contradiction(format!("number {number}")) },
        };
        loaded.status.reasons = (1..=4).map(|number| reason(number, Severity::Doubtful)).collect();
        loaded.status.reasons.push(reason(5, Severity::Invalid));
        let text = render_loaded(&loaded, Style::Plain);
        let last =
            "DOUBTFUL: idle: number 5; idle: number 1; idle: number 2; and 2 more (--json)\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn without_a_phase_there_is_only_why() {
        let loaded = loaded(Vec::new());
        assert_eq!(loaded.status.exit_code, exit::INTERRUPTED);
        let text = render_loaded(&loaded, Style::Plain);
        assert!(text.ends_with("interrupted before anything was measured\nINVALID\n"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
