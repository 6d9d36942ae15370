//! The run document of a test: the nearest native plan, and what both ends counted.

use linerate_engine::event::Cancel;
use linerate_engine::netperf::{
    ControlPlan, Outcome, Pacing, TestEnd, TestKind, TestPlan, TestTransport,
};
use linerate_measure::dialect::EndExtension;
use linerate_measure::dialect::netperf::EndTotals;
use linerate_measure::plan::Local;
use linerate_measure::report::FlowReport;
use linerate_measure::run::Draft;
use linerate_measure::sample::Traffic;
use linerate_measure::{
    Arrivals, Dialect, Direction, End, EndReport, Kind, Plan, Rate, Role, Sample, Schedule,
    Transport, Workload,
};

use linerate_personality::getopt::{Flag, Lexeme, Lexer};
use linerate_personality::netperf::flags::GLOBAL;

use super::confidence::Agreement;
use super::figures::{Cost, Figures};
use super::planning::{Control, Request};
use crate::personality::recorder::{Recorder, command_line};
use crate::personality::run_document::RunRecord;

/// Samples are so long where no interim results are asked for.
pub(super) const INTERVAL_NS: u64 = 1_000_000_000;
/// How long a response is awaited over UDP unless told otherwise.
const RESPONSE_TIMEOUT_NS: u64 = 1_000_000_000;

/// The record of a client's test that begins.
///
/// # Errors
/// What the environment asks for can't be written.
pub(super) fn begin(
    control: &Control,
    request: &Request,
    words: &[String],
    cancel: &Cancel,
) -> Result<RunRecord, String> {
    let typed = command_line("netperf", &without_passphrase(GLOBAL, words));
    let recorder = Recorder::of_environment(Dialect::Netperf, Role::Client, typed, cancel)?;
    Ok(recorder.begin(plan(control, request)))
}

/// The words without the argument of each `-Z`.
pub(super) fn without_passphrase<T>(flags: &[Flag<T>], words: &[String]) -> Vec<String> {
    let mut told = Vec::with_capacity(words.len());
    let mut lexer = Lexer::new(flags, words);
    let mut read = 0;
    while let Some(lexeme) = lexer.next() {
        let end = words.len() - lexer.remaining();
        told.extend(words.iter().take(end).skip(read).cloned());
        read = end;
        let Ok(Lexeme::Flag(Flag { short: Some('Z'), .. }, Some(passphrase))) = lexeme else {
            continue;
        };
        // The last word is the passphrase, or the flag with the passphrase joined to it.
        let last: Option<String> = told.pop();
        let flag = last.filter(|word| *word != passphrase);
        told.extend(flag.and_then(|word| word.strip_suffix(&passphrase).map(str::to_owned)));
    }
    told
}

/// The nearest native plan.
fn plan(control: &Control, request: &Request) -> Plan {
    let TestPlan { local, family, source_ports, .. } = &request.plan;
    let ControlPlan { host, port, .. } = &control.plan;
    let mut plan = Plan::new(host.clone(), *port, workload(&request.plan));
    plan.family = *family;
    plan.local = Local {
        cpus: local.bind_cpu.into_iter().collect(),
        binds: local.address.map(Into::into).into_iter().collect(),
        source_ports: *source_ports,
        ..Local::default()
    };
    plan
}

fn workload(test: &TestPlan) -> Workload {
    let transport = match test.transport {
        TestTransport::Tcp => Transport::Tcp,
        TestTransport::Udp => Transport::Udp,
    };
    let mut workload = match test.kind {
        TestKind::Send | TestKind::SendFile => Workload::stream(Direction::Up, transport),
        TestKind::Receive => Workload::stream(Direction::Down, transport),
        TestKind::RequestResponse => Workload::rr(transport),
        TestKind::ConnectRequestResponse | TestKind::Connect => Workload::connect(transport),
    };
    set_kind(&mut workload, test);
    workload.end = match (test.end, test.kind.has_transactions()) {
        (TestEnd::Seconds(seconds), _) => {
            End::Time { duration_ns: u64::from(seconds) * 1_000_000_000 }
        }
        (TestEnd::Units(units), true) => End::Count { count: units.into() },
        (TestEnd::Units(units), false) => End::Bytes { bytes: units.into() },
        (TestEnd::Interrupt, _) => End::Time { duration_ns: 0 },
    };
    workload.threading.threads = Some(1);
    workload.interval_ns = test.interval_ns.unwrap_or(INTERVAL_NS);
    workload.threading.busy_poll = test.busy_poll;
    workload.socket.no_delay = test.options.no_delay;
    workload.socket.congestion = test.local.congestion.clone();
    workload.socket.mss_bytes = test.options.mss_bytes;
    workload.socket.dscp = test.local.service.map(|service| service >> 2);
    workload
}

/// Sizes and paces.
fn set_kind(workload: &mut Workload, test: &TestPlan) {
    let sender = if test.kind == TestKind::Receive { &test.remote } else { &test.local };
    let sizes = match test.kind {
        TestKind::Connect => (0, 0),
        _ => (test.request_bytes, test.response_bytes),
    };
    let paced = sender
        .pacing
        .map(|pacing| Schedule { per_s: sends_per_s(pacing), arrivals: Arrivals::Even });
    match &mut workload.kind {
        Kind::Stream { send_bytes, .. } => {
            // A default size is known when the kernel has granted a buffer.
            *send_bytes = sender.send_bytes.unwrap_or(0);
            let paced = sender.pacing.zip(sender.send_bytes);
            let bps = paced.map(|(pacing, bytes)| sends_per_s(pacing) * f64::from(bytes) * 8.0);
            workload.rate = bps.map(|bps| Rate::AllFlows { bps: bps as u64 });
        }
        Kind::Rr { request_bytes, response_bytes, timeout_ns, outstanding, schedule, .. } => {
            (*request_bytes, *response_bytes) = sizes;
            *timeout_ns = test.timeout_ns.unwrap_or(RESPONSE_TIMEOUT_NS);
            *outstanding = Some(test.burst.saturating_add(1));
            *schedule = paced;
        }
        Kind::Connect { request_bytes, response_bytes, schedule, .. } => {
            (*request_bytes, *response_bytes) = sizes;
            *schedule = paced;
        }
    }
}

fn sends_per_s(pacing: Pacing) -> f64 {
    f64::from(pacing.burst) * 1e6 / f64::from(pacing.interval_us.max(1))
}

/// A test has come to an end, and this is what both ends counted; `figures` are of this test alone.
pub(super) fn record_outcome(record: &mut RunRecord, outcome: &Outcome, figures: &Figures) {
    let Some(draft) = record.draft() else { return };
    draft.record_report(outcome.client.clone());
    draft.server = outcome.server_told.then(|| outcome.server.clone());
    if let Kind::Stream { direction, send_bytes, .. } = &mut draft.plan.workload.kind {
        let down = *direction == Direction::Down;
        let sender = if down { outcome.remote() } else { outcome.local() };
        *send_bytes = sender.settings().send_bytes.unwrap_or(*send_bytes);
    }
    add_figures(draft, figures);
}

/// All tests have come to an end: their means.
pub(super) fn record_figures(record: &mut RunRecord, figures: &Figures) {
    let Some(draft) = record.draft() else { return };
    let iterations = figures.agreement.iterations;
    if iterations > 1 {
        draft.notes.push(format!(
            "samples and reports are of the last of {iterations} tests; netperf's own figures are means of all"
        ));
    }
    add_figures(draft, figures);
}

fn add_figures(draft: &mut Draft, figures: &Figures) {
    let Agreement { iterations, demand, result_percent, .. } = figures.agreement;
    if let Some(totals) = totals_of(draft.client.as_mut()) {
        totals.throughput = Some(figures.throughput);
        totals.throughput_units = Some(format!("{}/s", figures.unit.name()));
        totals.iterations = Some(iterations);
        totals.confidence_width_percent = demand.map(|_| result_percent).filter(|_| iterations > 1);
        totals.iteration_throughputs = match iterations {
            0 | 1 => Vec::new(),
            _ => figures.results.clone(),
        };
        add_cost(totals, &figures.local);
    }
    if let Some(totals) = totals_of(draft.server.as_mut()) {
        add_cost(totals, &figures.remote);
    }
}

fn totals_of(report: Option<&mut EndReport>) -> Option<&mut EndTotals> {
    match report?.extension.as_mut()? {
        EndExtension::Netperf(totals) => Some(totals),
        _ => None,
    }
}

fn add_cost(totals: &mut EndTotals, cost: &Cost) {
    (totals.cpu_util_percent, totals.service_demand_us) = (cost.util_percent, cost.demand_us);
}

/// All of a test that was too short for samples, which ended at this time (UTC).
pub(super) fn whole_sample(report: &EndReport, utc_ns: i64) -> Sample {
    let sum = |traffic: fn(&FlowReport) -> Option<Traffic>| {
        report.flows.iter().filter_map(traffic).reduce(Traffic::plus)
    };
    Sample {
        to_ns: report.elapsed_ns,
        utc_ns,
        sent: sum(|flow| flow.sent),
        received: sum(|flow| flow.received),
        transactions: report.flows.iter().filter_map(|flow| flow.transactions).reduce(|a, b| a + b),
        ..Sample::nothing(report.role)
    }
}

#[cfg(test)]
mod tests {
    use super::{GLOBAL, without_passphrase};

    #[test]
    fn the_passphrase_is_left_out_wherever_it_stands() {
        for (typed, told) in [
            ("-Z 1 -H 10.0.0.1 -l 1", "-Z -H 10.0.0.1 -l 1"),
            ("-Z a -Z b -l 1", "-Z -Z -l 1"),
            ("-Zsecret -H secret", "-Z -H secret"),
            ("-cZsecret -CZ secret -l 1", "-cZ -CZ -l 1"),
            ("stray -Z -Z -l 1 -- -Z 1 -m 1", "stray -Z -l 1 -- -Z 1 -m 1"),
            ("-H Z -l 1", "-H Z -l 1"),
        ] {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(without_passphrase(GLOBAL, &words).join(" "), told, "{typed}");
        }
        let empty = ["-Z", "", "-l", "1"].map(str::to_owned);
        assert_eq!(without_passphrase(GLOBAL, &empty), ["-Z", "-l", "1"]);
    }
}
