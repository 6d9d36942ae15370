//! A run document as series, and as a run of one cell.

mod joins;

use linerate_measure::dialect::{FlowSampleExtension, iperf3};
use linerate_measure::sample::FlowSample;
use linerate_measure::window::{Span, Timeline};
use linerate_measure::{Dialect, Outcome, Role, Run, Sample};

use crate::model::{
    Aggregation, CellEnd, CellStatus, NewCell, NewDocument, NewHost, NewIteration, NewParam,
    NewRun, NewSeries, Origin, RunEnd, RunStatus,
};
use crate::outcome::{Figure, RECEIVED, SampleOutcome, TRANSACTIONS, figure_of_run};
use joins::{Joins, joins_of};

/// The series of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSeries {
    /// The times, by the clock of the end that wrote the document.
    pub timelines: Vec<Timeline>,
    /// The series over them. All are of the cell's period.
    pub series: Vec<NewSeries>,
    /// The time in which all ends measured, without warm-up; `None` where an end has no samples.
    pub period: Option<Span>,
    /// The metric that says most of it, as `source::type`; empty where there are no series.
    pub primary_metric: String,
}

/// The source that a dialect's series have.
pub fn source_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Native => "linerate",
        Dialect::Iperf3 => "iperf",
        other => other.name(),
    }
}

/// How a metric is computed from one interval of all flows or of one.
struct Metric<T> {
    name: &'static str,
    /// Its name where iperf3 measured.
    iperf_name: &'static str,
    class: &'static str,
    unit: &'static str,
    aggregation: Aggregation,
    /// The value, given the interval before, if any, and the interval's length in seconds.
    value: fn(Option<&T>, &T, f64) -> Option<f64>,
}

impl<T> Metric<T> {
    const fn rate(
        name: &'static str,
        unit: &'static str,
        value: fn(Option<&T>, &T, f64) -> Option<f64>,
    ) -> Self {
        let aggregation = Aggregation::Sum;
        Self { name, iperf_name: name, class: "throughput", unit, aggregation, value }
    }

    const fn level(
        name: &'static str,
        (class, unit): (&'static str, &'static str),
        value: fn(Option<&T>, &T, f64) -> Option<f64>,
    ) -> Self {
        Self { name, iperf_name: name, class, unit, aggregation: Aggregation::Avg, value }
    }

    const fn called_by_iperf(mut self, name: &'static str) -> Self {
        self.iperf_name = name;
        self
    }
}

fn gbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / 1e9 / seconds
}

fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// What all flows of an end come to.
const OF_AN_END: [Metric<Sample>; 8] = [
    Metric::<Sample>::rate("rx-Gbps", "Gbit/s", |_, now, s| Some(gbps(now.received?.bytes, s))),
    Metric::<Sample>::rate("tx-Gbps", "Gbit/s", |_, now, s| Some(gbps(now.sent?.bytes, s))),
    Metric::<Sample>::rate("rx-pps", "datagrams/s", |_, now, s| {
        Some(per_second(now.datagrams?.received?, s))
    }),
    Metric::<Sample>::rate("tx-pps", "datagrams/s", |_, now, s| {
        Some(per_second(now.datagrams?.sent?, s))
    }),
    Metric::<Sample>::rate("rx-lost-sec", "datagrams/s", |_, now, s| {
        Some(per_second(now.datagrams?.lost?, s))
    })
    .called_by_iperf("rx-lost/sec"),
    Metric::<Sample>::rate("transactions-sec", "transactions/s", |_, now, s| {
        Some(per_second(now.transactions?, s))
    }),
    Metric::<Sample>::level("latency-mean-us", ("latency", "us"), |_, now, _| {
        now.latency_mean_ns.map(|ns| ns / 1e3)
    }),
    Metric::<Sample>::rate("load-CPU", "CPUs", |_, now, s| {
        let load = now.cpu.as_ref()?.load;
        Some((load.user_s + load.system_s) / s)
    }),
];

/// What one flow comes to.
const OF_A_FLOW: [Metric<FlowSample>; 7] = [
    Metric::<FlowSample>::rate("rx-Gbps", "Gbit/s", |_, now, s| Some(gbps(now.received_bytes?, s))),
    Metric::<FlowSample>::rate("tx-Gbps", "Gbit/s", |_, now, s| Some(gbps(now.sent_bytes?, s))),
    Metric::<FlowSample>::rate("rx-pps", "datagrams/s", |_, now, s| {
        now.received_bytes?;
        let packets = of_iperf(now).and_then(|iperf| iperf.packets);
        let received = now.datagrams.as_ref().and_then(|datagrams| datagrams.received);
        Some(per_second(packets.or(received)?, s))
    }),
    Metric::<FlowSample>::rate("rx-lost-sec", "datagrams/s", |_, now, s| {
        let lost = of_iperf(now).and_then(|iperf| iperf.lost).map(|lost| lost as f64);
        let counted = now.datagrams.as_ref().and_then(|datagrams| datagrams.lost);
        Some(lost.or(counted.map(|lost| lost as f64))? / s)
    })
    .called_by_iperf("rx-lost/sec"),
    Metric::<FlowSample>::rate("tx-retry-sec", "segments/s", |before, now, s| {
        now.sent_bytes?;
        Some(per_second(retransmits(before, now)?, s))
    })
    .called_by_iperf("tx-retry/sec"),
    Metric::<FlowSample>::level("rtt-us", ("latency", "us"), |_, now, _| {
        let tcp = now.tcp.map(|tcp| tcp.rtt_us);
        tcp.or(now.quic.as_ref().map(|quic| quic.rtt_us)).map(f64::from)
    }),
    Metric::<FlowSample>::level("cwnd-bytes", ("count", "bytes"), |_, now, _| {
        let tcp = now.tcp.map(|tcp| tcp.cwnd_bytes());
        tcp.or(now.quic.as_ref().map(|quic| quic.cwnd_bytes)).map(|bytes| bytes as f64)
    }),
];

/// What only iperf3 counts. Its `packets` are those lost, too, as its own lines have them.
fn of_iperf(now: &FlowSample) -> Option<&iperf3::FlowInterval> {
    now.extension.as_ref().map(|FlowSampleExtension::Iperf3(iperf)| iperf)
}

/// Segments sent again in an interval: iperf3 counts them, and of others the kernel's counter tells it.
fn retransmits(before: Option<&FlowSample>, now: &FlowSample) -> Option<u64> {
    if let Some(counted) = of_iperf(now).and_then(|iperf| iperf.retransmits) {
        return Some(counted);
    }
    let total = now.tcp?.retransmitted_segments;
    let earlier = match before {
        Some(before) => before.tcp?.retransmitted_segments,
        None => 0,
    };
    // A counter that goes back is another connection's.
    total.checked_sub(earlier).map(u64::from)
}

/// When a sample was taken: what a store keeps of it, and its exact length, from which rates follow.
#[derive(Clone, Copy, Debug)]
struct Interval {
    span: Span,
    seconds: f64,
    joins: Joins,
}

/// The samples of an end that have a time, in order.
struct End<'a> {
    samples: Vec<(Interval, &'a Sample)>,
}

impl<'a> End<'a> {
    /// The end of this role, its clock moved by `shift_ns`.
    fn of(run: &'a Run, role: Role, shift_ns: i64) -> Self {
        let mut samples: Vec<(Interval, &Sample)> = Vec::new();
        // One reading of the clock for all intervals, so that each begins where the one before ended.
        let mut base = None;
        let (mut joined_begin_ms, mut last_own) = (None, None);
        let of_end: Vec<&Sample> = run.samples.iter().filter(|one| one.role == role).collect();
        for (sample, joins) in of_end.iter().zip(joins_of(&of_end)) {
            let to_ns = i64::try_from(sample.to_ns).unwrap_or(i64::MAX);
            let from_ns = i64::try_from(sample.from_ns).unwrap_or(i64::MAX);
            let begin =
                *base.get_or_insert(sample.utc_ns.saturating_sub(to_ns).saturating_add(shift_ns));
            let ms = |ns: i64| begin.saturating_add(ns).div_euclid(1_000_000);
            if to_ns <= from_ns {
                continue;
            }
            let end_ms = ms(to_ns) - 1;
            let mut begin_ms = ms(from_ns);
            let last = last_own.and_then(|place: usize| samples.get_mut(place));
            let last_ms = last.map(|(last, _)| &mut last.span.end_ms);
            match (joins, &last_ms) {
                (Joins::Next, _) => begin_ms = *joined_begin_ms.get_or_insert(begin_ms),
                (Joins::Previous, _) => {}
                (Joins::Nothing, last_ms) => {
                    let after_ms = last_ms.as_deref().map_or(i64::MIN, |last_ms| last_ms + 1);
                    let joined_ms: Option<i64> = joined_begin_ms.take();
                    begin_ms = joined_ms.map_or(begin_ms, |joined_ms| joined_ms.max(after_ms));
                }
            }
            // An interval that is shorter than a millisecond takes the one that it lies in.
            let Some(span) = Span::new(begin_ms, begin_ms.max(end_ms)) else { continue };
            let seconds = (to_ns - from_ns) as f64 / 1e9;
            let overlaps = last_ms.as_deref().is_some_and(|last_ms| *last_ms >= span.begin_ms);
            if let (Joins::Previous, Some(last_ms)) = (joins, last_ms) {
                *last_ms = end_ms.max(*last_ms);
            }
            if joins == Joins::Nothing && overlaps {
                continue;
            }
            if joins == Joins::Nothing {
                last_own = Some(samples.len());
            }
            samples.push((Interval { span, seconds, joins }, sample));
        }
        Self { samples }
    }

    /// From the first to the last interval that is no warm-up.
    fn measured(&self) -> Option<Span> {
        let is_measured = |(interval, sample): &&(Interval, &Sample)| {
            !sample.warm_up && interval.joins == Joins::Nothing
        };
        let mut measured = self.samples.iter().filter(is_measured);
        let (first, _) = measured.next()?;
        let (last, _) = measured.next_back().unwrap_or(self.samples.last()?);
        Span::new(first.span.begin_ms, last.span.end_ms)
    }

    /// The numbers of its flows, where the samples list all of them.
    fn flows(&self) -> Vec<u32> {
        let is_whole =
            self.samples.iter().all(|(_, sample)| sample.flows.len() < Sample::MAX_FLOWS);
        if !is_whole {
            return Vec::new();
        }
        let flows = self.samples.iter().flat_map(|(_, sample)| &sample.flows);
        let mut numbers: Vec<u32> = flows.map(|flow| flow.flow).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// Makes the series of a document, each with these labels and those of its end and flow. Times are by the clock of the
/// end that wrote it.
pub fn series_of(run: &Run, labels: &[(String, String)]) -> RunSeries {
    series_by_clock(run, labels, 0)
}

/// Likewise, by a clock to which that of the end that wrote the document is so far ahead.
pub fn series_by_clock(run: &Run, labels: &[(String, String)], ahead_ns: i64) -> RunSeries {
    series_of_documents(&[(run, ahead_ns)], labels)
}

/// Likewise, of all documents of one test, each with how far the clock of the end that wrote it is ahead. What an end
/// counted is taken once: from its own document, else from that of the other end.
pub fn series_of_documents(documents: &[(&Run, i64)], labels: &[(String, String)]) -> RunSeries {
    let mut made = RunSeries::default();
    let mut measured = Vec::new();
    let Some(first_document) = documents.first() else { return made };
    let source = source_of(first_document.0.dialect);
    for role in [Role::Client, Role::Server] {
        let own = documents.iter().filter(|(run, _)| run.written_by == role);
        let others = documents.iter().filter(|(run, _)| run.written_by != role);
        let ends = own.chain(others).map(|(run, ahead_ns)| end_of(run, role, *ahead_ns));
        let Some(end) = ends.into_iter().find(|end| !end.samples.is_empty()) else { continue };
        measured.push(end.measured());
        let mut of_end = labels.to_vec();
        add_label(&mut of_end, "cstype", if role == Role::Client { "client" } else { "server" });
        add_label(&mut of_end, "csid", "1");
        // Requests that a server has answered are those that its client has counted.
        let is_counted = role == Role::Server && has_metric(&made, TRANSACTIONS.0);
        let left_out = is_counted.then_some(TRANSACTIONS.0);
        add_end(&mut made, &end, (source, left_out), &of_end);
    }
    made.period = period_of(&measured);
    let of_client = documents.iter().find(|(run, _)| run.written_by == Role::Client);
    let (run, ahead_ns) = of_client.unwrap_or(first_document);
    match figure_of_run(run) {
        Some(figure) => add_figure(&mut made, &figure, (run, *ahead_ns), labels),
        None => {
            let names = [TRANSACTIONS.0, "rx-Gbps", "tx-Gbps"];
            let primary = names.into_iter().find(|name| has_metric(&made, name));
            made.primary_metric =
                primary.map(|name| format!("{source}::{name}")).unwrap_or_default();
        }
    }
    made
}

/// Makes a document's figure the metric that it is judged by. Where no end has counted that interval by interval, the
/// figure is a series of one value. So it is of a hunt, whose intervals are those of one trial.
fn add_figure(
    made: &mut RunSeries,
    figure: &Figure,
    (run, ahead_ns): (&Run, i64),
    labels: &[(String, String)],
) {
    made.primary_metric.clone_from(&figure.metric);
    let Some((source, metric)) = figure.metric.split_once("::") else { return };
    if run.hunt.is_some() {
        made.series.retain(|series| series.metric != metric);
    }
    made.period = made.period.or_else(|| whole_time(run, ahead_ns));
    let (Some(value), Some(period)) = (figure.value, made.period) else { return };
    let timeline = Timeline::new(vec![period]).filter(|_| !has_metric(made, metric));
    let Some(timeline) = timeline else { return };
    let receiver = match run.written_by {
        Role::Client if metric == RECEIVED.0 => "server",
        _ => "client",
    };
    let mut labels = labels.to_vec();
    add_label(&mut labels, "cstype", receiver);
    add_label(&mut labels, "csid", "1");
    made.series.push(NewSeries {
        in_period: true,
        source: source.to_owned(),
        metric: metric.to_owned(),
        class: "throughput".to_owned(),
        unit: figure.unit.to_owned(),
        aggregation: Aggregation::Sum,
        labels,
        timeline: made.timelines.len(),
        values: vec![value],
    });
    made.timelines.push(timeline);
}

/// From a run's begin for as long as it measured, by another clock.
fn whole_time(run: &Run, ahead_ns: i64) -> Option<Span> {
    let begin_ns = run.environment.started_utc_ns?.checked_sub(ahead_ns)?;
    let length_ms = (run.summary.elapsed_s? * 1e3).round().max(1.0);
    let begin_ms = begin_ns.div_euclid(1_000_000);
    Span::new(begin_ms, begin_ms.checked_add(length_ms as i64)?.checked_sub(1)?)
}

fn has_metric(made: &RunSeries, name: &str) -> bool {
    made.series.iter().any(|series| series.metric == name)
}

/// What an end counted by a document, its times by the clock to which that of the document's writer is ahead.
fn end_of(run: &Run, role: Role, ahead_ns: i64) -> End<'_> {
    let offset = run.environment.clock_offset.map_or(0, |offset| offset.offset_ns);
    let shift = match (run.written_by, role) {
        (Role::Client, Role::Server) => offset.saturating_neg(),
        (Role::Server, Role::Client) => offset,
        _ => 0,
    };
    End::of(run, role, shift.saturating_sub(ahead_ns))
}

/// Adds a label unless the caller has given one of that name.
fn add_label(labels: &mut Vec<(String, String)>, name: &str, value: &str) {
    if labels.iter().all(|(known, _)| known != name) {
        labels.push((name.to_owned(), value.to_owned()));
    }
}

/// The time that all ends share; where they share none, the first end's.
fn period_of(measured: &[Option<Span>]) -> Option<Span> {
    let spans: Vec<Span> = measured.iter().copied().flatten().collect();
    let begin = spans.iter().map(|span| span.begin_ms).max()?;
    let end = spans.iter().map(|span| span.end_ms).min()?;
    Span::new(begin, end).or(spans.first().copied())
}

/// Adds the series of an end but the metric that is left out.
fn add_end(
    made: &mut RunSeries,
    end: &End<'_>,
    (source, left_out): (&str, Option<&str>),
    labels: &[(String, String)],
) {
    let intervals: Vec<Interval> = end.samples.iter().map(|(interval, _)| *interval).collect();
    let mut by_flow = Vec::new();
    for flow in end.flows() {
        let states = end.samples.iter();
        let states = states.map(|(_, sample)| sample.flows.iter().find(|one| one.flow == flow));
        let states: Vec<Option<&FlowSample>> = states.collect();
        let mut labels = labels.to_vec();
        add_label(&mut labels, "stream", &flow.to_string());
        for metric in &OF_A_FLOW {
            if add_series(made, metric, source, (&intervals, &states), &labels) {
                by_flow.push(metric.name);
            }
        }
    }
    let states: Vec<Option<&Sample>> =
        end.samples.iter().map(|(_, sample)| Some(*sample)).collect();
    let is_shown =
        |metric: &&Metric<Sample>| !by_flow.contains(&metric.name) && left_out != Some(metric.name);
    for metric in OF_AN_END.iter().filter(is_shown) {
        add_series(made, metric, source, (&intervals, &states), labels);
    }
}

/// Adds the series of a metric; whether there is any value.
fn add_series<T>(
    made: &mut RunSeries,
    metric: &Metric<T>,
    source: &str,
    (intervals, states): (&[Interval], &[Option<&T>]),
    labels: &[(String, String)],
) -> bool {
    let mut times = Vec::new();
    let mut values = Vec::new();
    let mut before = None;
    // The last value's seconds, and the amount and seconds that count with the next value.
    let (mut last_s, mut joined) = (0.0, (0.0, 0.0));
    for (interval, state) in intervals.iter().zip(states) {
        let value = state.and_then(|now| (metric.value)(before, now, interval.seconds));
        before = state.or(before);
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        let seconds = interval.seconds;
        match (interval.joins, metric.aggregation) {
            (Joins::Nothing, Aggregation::Sum) => {
                last_s = seconds + joined.1;
                times.push(interval.span);
                values.push((value * seconds + joined.0) / last_s);
                joined = (0.0, 0.0);
            }
            (Joins::Nothing, _) => {
                times.push(interval.span);
                values.push(value);
            }
            (Joins::Next, Aggregation::Sum) => {
                joined = (joined.0 + value * seconds, joined.1 + seconds);
            }
            (Joins::Previous, Aggregation::Sum) => {
                if let Some(last) = values.last_mut() {
                    *last = (*last * last_s + value * seconds) / (last_s + seconds);
                    last_s += seconds;
                }
            }
            // A level of so short a time says nothing beside the next.
            (Joins::Next | Joins::Previous, _) => {}
        }
    }
    let Some(timeline) = Timeline::new(times).filter(|_| !values.is_empty()) else { return false };
    let known = made.timelines.iter().position(|known| *known == timeline);
    let timeline = known.unwrap_or_else(|| {
        made.timelines.push(timeline);
        made.timelines.len() - 1
    });
    made.series.push(NewSeries {
        in_period: true,
        source: source.to_owned(),
        metric: if source == "iperf" { metric.iperf_name } else { metric.name }.to_owned(),
        class: metric.class.to_owned(),
        unit: metric.unit.to_owned(),
        aggregation: metric.aggregation,
        labels: labels.to_vec(),
        timeline,
        values,
    });
    true
}

/// What a command adds to a document that is stored as a run of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// What was begun: `linerate stream`, `iperf3`, ...
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// When the document was written (UTC, milliseconds since 1970).
    pub now_ms: i64,
}

/// The name that a document's run has in a store: both ends of a test may write one.
pub fn run_name(run: &Run) -> String {
    let end = if run.written_by == Role::Server { ".server" } else { "" };
    format!("{}{end}", run.run_id)
}

/// A document as a run of one cell, for [`Writer::record`](crate::Writer::record). `body` is its text.
pub fn single_run(run: &Run, body: String, recorded: &Recorded) -> (NewRun, CellEnd, RunEnd) {
    let series = series_of(run, &[]);
    let is_measured = matches!(run.status.outcome, Outcome::Complete | Outcome::Untrustworthy);
    let began_ms = run.environment.started_utc_ns.map_or(recorded.now_ms, |ns| ns / 1_000_000);
    let host = |name: &str, facts: &linerate_measure::report::HostFacts| NewHost {
        name: name.to_owned(),
        transport: String::new(),
        facts: serde_json::to_string(facts).unwrap_or_default(),
        offset_ns: None,
        bound_ns: None,
    };
    let mut hosts = vec![host("client", &run.environment.client)];
    if let Some(facts) = &run.environment.server {
        let offset = run.environment.clock_offset;
        hosts.push(NewHost {
            offset_ns: offset.map(|offset| offset.offset_ns),
            bound_ns: offset.and_then(|offset| i64::try_from(offset.bound_ns).ok()),
            ..host("server", facts)
        });
    }
    let benchmark = source_of(run.dialect).to_owned();
    let new = NewRun {
        uuid: run_name(run),
        title: run.plan.title.clone().unwrap_or_default(),
        tags: run.plan.tags.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        origin: Origin {
            version: recorded.version.clone(),
            command: recorded.command.clone(),
            harness: "linerate".to_owned(),
            benchmarks: benchmark.clone(),
            ..Origin::default()
        },
        plan: serde_json::to_string(&run.plan).unwrap_or_default(),
        began_ms,
        hosts,
        iterations: vec![NewIteration {
            params: params_of(run, &benchmark),
            primary_metric: series.primary_metric.clone(),
        }],
        cells: vec![NewCell { iteration: 0, sample: 1 }],
        ..NewRun::default()
    };
    let cell = CellEnd {
        status: if is_measured { CellStatus::Done } else { CellStatus::Failed },
        exit_code: Some(run.status.exit_code.into()),
        reason: run.status.message.clone().unwrap_or_default(),
        ended_ms: recorded.now_ms,
        skew_p99_us: None,
        period: series.period,
        documents: vec![NewDocument { host: String::new(), kind: Run::SCHEMA.to_owned(), body }],
        timelines: series.timelines,
        series: series.series,
        primary_metric: series.primary_metric,
        notes: run.status.notes.clone(),
        outcome: SampleOutcome::of_runs([run]),
    };
    let status = match run.status.outcome {
        Outcome::Complete => RunStatus::Complete,
        Outcome::Interrupted => RunStatus::Stopped,
        Outcome::Untrustworthy | Outcome::Failed => RunStatus::Failed,
    };
    let partial = run.status.outcome == Outcome::Interrupted;
    let end = RunEnd { status, partial, ended_ms: recorded.now_ms, iterations: Vec::new() };
    (new, cell, end)
}

/// What was asked: of another tool's test its options by name, of linerate's own the workload and its transport.
fn params_of(run: &Run, benchmark: &str) -> Vec<NewParam> {
    let param = |arg: &str, value: String| NewParam {
        benchmark: benchmark.to_owned(),
        arg: arg.to_owned(),
        value,
        role: "client".to_owned(),
        engines: String::new(),
    };
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(options) = &run.options {
        return options.by_name.iter().map(|(arg, value)| param(arg, text(value))).collect();
    }
    let plan = serde_json::to_value(&run.plan).unwrap_or_default();
    let workload = plan.get("workload").and_then(serde_json::Value::as_object);
    let fields = workload.into_iter().flatten().filter(|(_, value)| !value.is_object());
    fields.map(|(arg, value)| param(arg, text(value))).collect()
}

#[cfg(test)]
mod tests;
