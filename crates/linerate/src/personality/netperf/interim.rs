//! Interim results (`-D`): what this end counted in each interval, as it happens.

use linerate_engine::netperf::TestKind;
use linerate_measure::Sample;
use linerate_personality::netperf::options::Layout;
use linerate_personality::netperf::unit::Unit;

use super::planning::Request;

/// Renders interim results; it counts them for the names of `-k`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interim {
    layout: Option<Layout>,
    unit: Unit,
    kind: TestKind,
    count: u32,
    /// Where the intervals begin in which nothing came since the last result.
    idle_from_ns: Option<u64>,
}

impl Interim {
    pub(super) fn new(request: &Request) -> Self {
        // Columns show the sentence, as the tables do.
        let layout = request.selection.as_ref().map(|selection| selection.layout);
        Self { layout, unit: request.unit, kind: request.plan.kind, count: 0, idle_from_ns: None }
    }

    /// Begins with another iteration, whose time begins anew.
    pub(super) fn restart(&mut self) {
        self.idle_from_ns = None;
    }

    /// The lines for one interval. As in the original an interval ends with something that was
    /// counted: one in which nothing came is part of the next.
    pub(super) fn render_sample(&mut self, sample: &Sample) -> String {
        let units = self.units(sample);
        let from_ns = self.idle_from_ns.take().unwrap_or(sample.from_ns);
        let length_s = sample.to_ns.saturating_sub(from_ns) as f64 / 1e9;
        if units == 0 || length_s <= 0.0 {
            self.idle_from_ns = Some(from_ns);
            return String::new();
        }
        let rate = self.unit.rate(units as f64, length_s);
        let unit = self.unit.name();
        let ending = ending(sample.utc_ns);
        let n = self.count;
        self.count += 1;
        match self.layout {
            Some(Layout::Csv) => format!("{rate:7.2},{unit}/s,{length_s:.3},{ending}\n"),
            Some(Layout::KeyValue) => format!(
                "NETPERF_INTERIM_RESULT[{n}]={rate:.2}\n\
                 NETPERF_UNITS[{n}]={unit}/s\n\
                 NETPERF_INTERVAL[{n}]={length_s:.3}\n\
                 NETPERF_ENDING[{n}]={ending}\n"
            ),
            Some(Layout::Columns) | None => format!(
                "Interim result: {rate:7.2} {unit}/s over {length_s:.3} seconds ending at {ending}\n"
            ),
        }
    }

    fn units(&self, sample: &Sample) -> u64 {
        let sent = sample.sent.as_ref().map_or(0, |traffic| traffic.bytes);
        let received = sample.received.as_ref().map_or(0, |traffic| traffic.bytes);
        match self.kind {
            _ if self.unit == Unit::Transactions => sample.transactions.unwrap_or(0),
            TestKind::Send | TestKind::SendFile => sent,
            TestKind::Receive => received,
            _ => sent.saturating_add(received),
        }
    }
}

/// Seconds since 1970, with milliseconds.
fn ending(utc_ns: i64) -> String {
    let ms = utc_ns.max(0) / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}
