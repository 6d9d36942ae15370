//! The figures of a run that are compared.

use std::collections::BTreeMap;

use crate::metric::{
    CONNECTIONS_PER_S, CPU_PER_GB, CPU_PER_TRANSACTION, ESTABLISHMENT, FIRST_BYTE, GOODPUT,
    HUNT_RATE_BPS, HUNT_RATE_PER_S, LATENCY, Metric, TRANSACTIONS_PER_S, Unit,
};
use crate::run::Run;
use crate::summary::{Latency, Summary};
use crate::threshold::hunted;

/// Figures of one run by name.
pub type Figures = BTreeMap<String, f64>;

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// What is measured.
    pub metric: Metric,
    /// The quantile of a latency; absent of other figures.
    pub quantile: Option<&'static str>,
    /// What people call it: `goodput`, `cpu`, `p99`.
    pub short_name: &'static str,
}

impl Compared {
    const fn whole(metric: Metric, short_name: &'static str) -> Self {
        Self { metric, quantile: None, short_name }
    }

    const fn quantile(metric: Metric, quantile: &'static str, short_name: &'static str) -> Self {
        Self { metric, quantile: Some(quantile), short_name }
    }

    /// Its name in documents: `goodput_bps`, `latency_p99_ns`.
    pub fn name(&self) -> String {
        self.quantile.map_or_else(|| self.metric.name.to_owned(), |part| self.metric.part(part))
    }

    /// Whether more of it is better.
    pub fn more_is_better(&self) -> bool {
        matches!(self.metric.unit, Unit::BitsPerSecond | Unit::PerSecond)
    }

    /// The figure of this name in documents.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        COMPARED.iter().find(|one| one.name() == name)
    }

    /// The figure that people call so, or that documents name so.
    pub fn called(text: &str) -> Option<&'static Self> {
        let by_short_name = COMPARED.iter().find(|one| one.short_name == text);
        by_short_name.or_else(|| Self::of_name(text))
    }
}

/// All figures that are compared, in the order of tables. Of a workload only some are measured.
pub const COMPARED: &[Compared] = &[
    Compared::whole(GOODPUT, "goodput"),
    Compared::whole(TRANSACTIONS_PER_S, "transactions"),
    Compared::whole(CONNECTIONS_PER_S, "connections"),
    Compared::whole(CPU_PER_GB, "cpu"),
    Compared::whole(CPU_PER_TRANSACTION, "cpu-transaction"),
    Compared::quantile(LATENCY, "p50", "p50"),
    Compared::quantile(LATENCY, "p90", "p90"),
    Compared::quantile(LATENCY, "p99", "p99"),
    Compared::quantile(LATENCY, "p99.9", "p99.9"),
    Compared::quantile(ESTABLISHMENT, "p50", "establishment-p50"),
    Compared::quantile(ESTABLISHMENT, "p99", "establishment-p99"),
    Compared::quantile(FIRST_BYTE, "p50", "first-byte-p50"),
    Compared::quantile(FIRST_BYTE, "p99", "first-byte-p99"),
    Compared::whole(HUNT_RATE_BPS, "hunt-rate"),
    Compared::whole(HUNT_RATE_PER_S, "hunt-requests"),
];

/// The figures of a run: those of its summary, where a warm-up was looked for with rates that leave it out; of a hunt,
/// whose summary is that of one trial, the rate that it found.
pub fn figures_of_run(run: &Run) -> Figures {
    let Some(hunt) = run.hunt.as_deref() else { return without_warm_up(run) };
    let found =
        hunt.outcome.rate().map(|rate| (hunted(hunt.goal.unit).name.to_owned(), rate as f64));
    found.into_iter().collect()
}

fn without_warm_up(run: &Run) -> Figures {
    let mut figures = figures_of(&run.summary);
    // The rate of one direction alone is not that of both.
    let is_whole = run.steadiness.len() == run.plan.workload.directions().len();
    if !run.plan.local.finds_warm_up || !is_whole {
        return figures;
    }
    let mut rates = BTreeMap::<&str, f64>::new();
    for one in &run.steadiness {
        *rates.entry(&one.name).or_default() += one.rate;
    }
    for (name, figure) in &mut figures {
        *figure = rates.get(name.as_str()).copied().unwrap_or(*figure);
    }
    figures
}

/// The figures of a summary. Goodput is left out where transactions are counted: it says the same.
pub fn figures_of(summary: &Summary) -> Figures {
    let counts_transactions =
        summary.transactions_per_s.is_some() || summary.connections_per_s.is_some();
    let value = |one: &Compared| match (one.metric, one.quantile) {
        (GOODPUT, _) => summary.goodput_bps.filter(|_| !counts_transactions),
        (TRANSACTIONS_PER_S, _) => summary.transactions_per_s,
        (CONNECTIONS_PER_S, _) => summary.connections_per_s,
        (CPU_PER_GB, _) => summary.cpu_s_per_gb.filter(|_| !counts_transactions),
        (CPU_PER_TRANSACTION, _) => summary.cpu_s_per_transaction,
        (LATENCY, Some(part)) => quantile_of(summary.latency_ns.as_ref(), part),
        (ESTABLISHMENT, Some(part)) => quantile_of(summary.establishment_ns.as_ref(), part),
        (FIRST_BYTE, Some(part)) => quantile_of(summary.first_byte_ns.as_ref(), part),
        _ => None,
    };
    COMPARED.iter().filter_map(|one| Some((one.name(), value(one)?))).collect()
}

fn quantile_of(latency: Option<&Latency>, part: &str) -> Option<f64> {
    let latency = latency?;
    let value = match part {
        "p50" => latency.p50,
        "p90" => latency.p90,
        "p99" => latency.p99,
        "p99.9" => latency.p99_9,
        _ => None,
    };
    value.map(|value_ns| value_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Draft, Outcome};
    use crate::steady::Steadiness;
    use crate::{Plan, Transport, Workload};

    #[test]
    fn names_differ_and_figures_are_those_of_the_summary() {
        for (place, one) in COMPARED.iter().enumerate() {
            let others = &COMPARED[..place];
            assert!(
                others
                    .iter()
                    .all(|other| other.name() != one.name() && other.short_name != one.short_name)
            );
            assert_eq!(Compared::called(one.short_name), Some(one));
            assert_eq!(Compared::called(&one.name()), Some(one));
        }
        let latency = Latency { p50: Some(5), p99: Some(9), ..Latency::default() };
        let summary = Summary {
            goodput_bps: Some(1e9),
            cpu_s_per_gb: Some(0.5),
            transactions_per_s: Some(1e3),
            cpu_s_per_transaction: Some(1e-6),
            latency_ns: Some(latency),
            ..Summary::default()
        };
        let figures = figures_of(&summary);
        let expected = [
            ("transactions_per_s", 1e3),
            ("cpu_s_per_transaction", 1e-6),
            ("latency_p50_ns", 5.0),
            ("latency_p99_ns", 9.0),
        ];
        assert_eq!(figures, expected.map(|(name, value)| (name.to_owned(), value)).into());
        let mut run = Draft::new(String::new(), Plan::new("host", 1, Workload::rr(Transport::Tcp)))
            .into_run(Outcome::Complete, 0, None);
        run.summary = summary.clone();
        run.steadiness = vec![Steadiness {
            name: "transactions_per_s".to_owned(),
            direction: None,
            intervals: 40,
            warm_up_ns: Some(1),
            rate: 1.5e3,
            varied_by: None,
            change: None,
        }];
        assert_eq!(figures_of_run(&run), figures);
        run.plan.local.finds_warm_up = true;
        assert_eq!(figures_of_run(&run).get("transactions_per_s"), Some(&1.5e3));
        assert_eq!(figures_of_run(&run).len(), figures.len());
        let stream = figures_of(&Summary { transactions_per_s: None, ..summary });
        assert_eq!(
            (stream.get("goodput_bps"), stream.get("cpu_s_per_gb")),
            (Some(&1e9), Some(&0.5))
        );
        assert!(
            COMPARED[0].more_is_better()
                && !COMPARED[3].more_is_better()
                && !COMPARED[5].more_is_better()
        );
    }

    #[test]
    fn a_hunts_figure_is_the_rate_that_it_found() {
        use crate::hunt::{Goal, HuntRecord, Limits, Method, Outcome, RateUnit};
        use crate::{Direction, Plan, Transport, Workload};

        let workload = Workload::stream(Direction::Up, Transport::Udp);
        let draft = Draft::new("1".to_owned(), Plan::new("h", 1, workload));
        let mut run = draft.into_run(crate::Outcome::Complete, 0, None);
        run.summary.goodput_bps = Some(5.0);
        let goal = Goal {
            method: Method::Sequential,
            unit: RateUnit::BitsPerSecond,
            low: 1,
            high: 9,
            step: 1,
            per_item: 1,
            limits: Limits::default(),
            trial_ns: 1,
        };
        let outcome = Outcome::Found { rate: 7, failing_rate: 8 };
        let record =
            HuntRecord { goal, trials: Vec::new(), outcome, pairs: None, reported_trial: None };
        assert_eq!(figures_of_run(&run).get("goodput_bps"), Some(&5.0));
        run.hunt = Some(Box::new(record));
        assert_eq!(figures_of_run(&run), [("hunt_rate_bps".to_owned(), 7.0)].into());
    }
}
