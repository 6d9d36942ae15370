//! What collectors of hosts have counted, as series for the store.

use std::collections::{BTreeMap, BTreeSet};

use linerate_lab::collect::{Gathered, Gatherer, Series, Ticks};
use linerate_measure::window::{Span, Timeline};
use linerate_results::{Aggregation, NewSeries, model};

use super::recorder::ms;

/// What is known of the hosts' counters.
#[derive(Default)]
pub(super) struct Collected {
    hosts: BTreeMap<String, Host>,
    /// Sentences that were told.
    told: BTreeSet<String>,
}

#[derive(Default)]
struct Host {
    gatherer: Gatherer,
    offset_ns: i64,
}

impl Collected {
    /// What was counted until now belongs to no cell.
    pub(super) fn begin_cell(&mut self) {
        for host in self.hosts.values_mut() {
            host.gatherer.take(0);
        }
    }

    /// Takes a host's message. `offset_ns` is the host's clock less the controller's.
    ///
    /// # Errors
    ///
    /// When it is no message of a collector: a sentence.
    pub(super) fn handle_ticks(
        &mut self,
        name: &str,
        offset_ns: i64,
        data: &str,
    ) -> Result<(), String> {
        let ticks: Ticks = serde_json::from_str(data)
            .map_err(|error| format!("{name} sent no counters: {error}"))?;
        let host = self.hosts.entry(name.to_owned()).or_default();
        host.offset_ns = offset_ns;
        host.gatherer.handle_ticks(ticks).map_err(|why| format!("{name} sent no counters: {why}"))
    }

    /// Adds the series since the cell's begin to what the cell came to, and sentences that were not told before.
    pub(super) fn end_cell(&mut self, asked_hz: f64, end: &mut model::CellEnd) {
        for (name, host) in &mut self.hosts {
            for gathered in host.gatherer.take(host.offset_ns) {
                gathered.without_gaps().iter().for_each(|gathered| add(name, gathered, end));
            }
            let notes =
                host.gatherer.notes(asked_hz).into_iter().map(|note| format!("{name}: {note}"));
            end.notes.extend(notes.filter(|note| self.told.insert(note.clone())));
        }
    }
}

/// Adds series that share their times.
fn add(host: &str, gathered: &Gathered, end: &mut model::CellEnd) {
    // The end of a span belongs to it in the store.
    let spans = gathered.spans_ns.iter().map(|(from, to)| Span::new(ms(*from), ms(*to) - 1));
    let Some(timeline) = spans.collect::<Option<Vec<_>>>().and_then(Timeline::new) else {
        end.notes.push(format!("{host}: times of {} are not in order", gathered.source.name()));
        return;
    };
    let place = end.timelines.len();
    let series = gathered.series.iter().filter(|series| !series.is_idle());
    let before = end.series.len();
    end.series.extend(series.map(|series| stored(host, series, place)));
    if end.series.len() > before {
        end.timelines.push(timeline);
    }
}

fn stored(host: &str, series: &Series, timeline: usize) -> NewSeries {
    let of_host = [("cstype", "profiler"), ("csid", host), ("hostname", host)];
    let of_host = of_host.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let names = series.names.iter().map(|(name, value)| (name.clone(), value.clone()));
    let unit = series.unit.as_str();
    let adds_up = unit != "%" && (series.is_throughput || ["kB", "count"].contains(&unit));
    NewSeries {
        in_period: false,
        source: series.source.clone(),
        metric: series.metric.clone(),
        class: series.class().to_owned(),
        unit: series.unit.clone(),
        aggregation: if adds_up { Aggregation::Sum } else { Aggregation::Avg },
        labels: of_host.into_iter().chain(names).collect(),
        timeline,
        values: series.values.clone(),
    }
}
