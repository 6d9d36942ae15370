//! What queries answer, right and as the original.

use std::collections::BTreeMap;

use linerate_measure::window::{Span, Timeline};

use super::{T0, filled, new_run, only, seconds, series};
use crate::breakout::Breakout;
use crate::query::{Filter, SeriesQuery};
use crate::*;

#[test]
fn windows_are_right_and_the_originals_where_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let period = store.details(run).unwrap().iterations[0].samples[0].period.clone().unwrap().uuid;
    let mut query = SeriesQuery::new(run, "linerate", "rx-Gbps");
    query.period = Some(period);
    assert_eq!(only(&store, &query), [7.5]);
    query.resolution = 2;
    assert_eq!(only(&store, &query), [4.5, 10.5]);
    query.aggregation = Some(Aggregation::Avg);
    assert_eq!(only(&store, &query), [2.25, 5.25]);
    // The original divides by the four series of the run.
    query.compat = true;
    assert_eq!(only(&store, &query), [4.5 / 4.0, 10.5 / 4.0]);
    query.aggregation = Some(Aggregation::Max);
    assert_eq!(only(&store, &query), [4.0, 8.0]);
    query.aggregation = Some(Aggregation::Min);
    assert_eq!(only(&store, &query), [1.0, 3.0]);
    // An edge within a span: a millisecond short there.
    query.aggregation = None;
    (query.begin_ms, query.end_ms, query.resolution) = (Some(T0), Some(T0 + 1499), 1);
    let short = 3.0 * (1000.0 + 2.0 * 499.0) / 1500.0;
    assert!((only(&store, &query)[0] - short).abs() < 1e-12);
    query.compat = false;
    assert!((only(&store, &query)[0] - 3.0 * 2000.0 / 1500.0).abs() < 1e-12);
}

#[test]
fn all_periods_at_once_are_what_each_is_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let details = store.details(run).unwrap();
    let samples = details.iterations.iter().flat_map(|iteration| &iteration.samples);
    let periods: Vec<_> = samples.filter_map(|sample| sample.period.clone()).collect();
    assert!(!periods.is_empty());
    for resolution in [1, 3] {
        let all = store.query_periods(run, ("linerate", "rx-Gbps"), resolution).unwrap();
        assert_eq!(all.unit, "Gbit/s");
        assert_eq!(all.windows.len(), periods.len());
        for period in &periods {
            let mut query = SeriesQuery::new(run, "linerate", "rx-Gbps");
            (query.period, query.resolution) = (Some(period.uuid.clone()), resolution);
            let alone = store.query(&query).unwrap();
            assert_eq!(all.windows[&period.uuid], alone.groups[0].windows);
        }
    }
    let apart = store.query_periods_by(run, ("linerate", "rx-Gbps"), "csid").unwrap();
    for period in &periods {
        let mut query = SeriesQuery::new(run, "linerate", "rx-Gbps");
        (query.period, query.breakouts) = (Some(period.uuid.clone()), vec![Breakout::each("csid")]);
        for group in store.query(&query).unwrap().groups {
            let pair = group.label().trim_matches(['<', '>']).to_owned();
            let value = group.windows[0].value;
            assert_eq!(apart.get(&(period.uuid.clone(), pair)).copied(), value);
        }
    }
    assert!(apart.len() >= 2 * periods.len(), "{apart:?}");
    assert!(store.query_periods_by(run, ("linerate", "rx-Gbps"), "none").unwrap().is_empty());
    assert!(store.query_periods(run, ("linerate", "none"), 1).is_err());
    assert!(store.query_periods(run, ("linerate", "rx-Gbps"), 0).is_err());
}

#[test]
fn gaps_count_for_sums_and_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let mut query = SeriesQuery::new(run, "linerate", "rx-Gbps");
    // Four seconds, six without data, four seconds.
    let answer = store.query(&query).unwrap();
    let window = answer.groups[0].windows[0];
    assert_eq!(answer.groups[0].series, 2, "the pieces of a series are one");
    assert!((window.coverage - 8.0 / 14.0).abs() < 1e-12);
    assert!((window.value.unwrap() - (30.0 + 120.0) / 14.0).abs() < 1e-12);
    query.aggregation = Some(Aggregation::Avg);
    assert!((only(&store, &query)[0] - 150.0 / 16.0).abs() < 1e-12);
    (query.begin_ms, query.end_ms) = (Some(T0 + 5000), Some(T0 + 6000));
    assert_eq!(store.query(&query).unwrap().groups[0].windows[0].value, None);
    query.compat = true;
    assert_eq!(store.query(&query).unwrap().groups[0].windows[0].value, Some(0.0));
    assert_eq!(answer.unit, "Gbit/s");
}

#[test]
fn breakouts_and_filters() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let mut query = SeriesQuery::new(run, "linerate", "rx-Gbps");
    query.breakouts = vec![Breakout::each("cstype"), Breakout::each("csid")];
    let labels = |query: &SeriesQuery| -> BTreeMap<String, f64> {
        let groups = store.query(query).unwrap().groups;
        groups.iter().map(|g| (g.label(), g.windows[0].value.unwrap())).collect()
    };
    assert_eq!(labels(&query).keys().collect::<Vec<_>>(), ["<server>-<1>", "<server>-<2>"]);
    assert!(store.query(&query).unwrap().remaining.is_empty());
    query.filter = Some(Filter::parse("gt:5").unwrap());
    assert_eq!(labels(&query).keys().collect::<Vec<_>>(), ["<server>-<2>"]);
    query.filter = None;
    query.breakouts = vec![Breakout::parse("csid=R/[12]/").unwrap()];
    assert_eq!(labels(&query).keys().collect::<Vec<_>>(), ["</[12]/>"]);
    query.breakouts = vec![Breakout::parse("csid=2").unwrap()];
    assert_eq!(labels(&query).len(), 1);
    assert_eq!(store.query(&query).unwrap().remaining, ["cstype"]);
    for wrong in ["gt", "eq:1", "gt:x", "lt:nan"] {
        assert!(Filter::parse(wrong).is_err(), "{wrong}");
    }
    query.breakouts = vec![Breakout::each("cpu")];
    let told = store.query(&query).unwrap_err().to_string();
    assert!(told.contains("csid, cstype"), "{told}");
    let told = store.query(&SeriesQuery::new(run, "linerate", "x")).unwrap_err().to_string();
    assert!(told.contains("rx-Gbps"), "{told}");
    let told = store.query(&SeriesQuery::new(run, "x", "x")).unwrap_err().to_string();
    assert!(told.contains("linerate"), "{told}");
}

#[test]
fn iperfs_quirks_are_shown_where_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(1)).unwrap();
    let attempt = writer.begin_cell(run, 0, T0).unwrap();
    let half = |i: i64| Span { begin_ms: T0 + i * 500, end_ms: T0 + i * 500 + 499 };
    let timeline = Timeline::new((0..4).map(half).collect()).unwrap();
    let make = |metric: &str, stream, values: [f64; 4]| NewSeries {
        source: "iperf".into(),
        ..series(metric, &[("csid", "1"), ("stream", stream)], values.to_vec())
    };
    let end = CellEnd {
        period: timeline.range(),
        timelines: vec![timeline],
        series: vec![
            make("tx-Gbps", "1", [1.0, 2.0, 3.0, 4.0]),
            make("tx-Gbps", "2", [10.0, 20.0, 30.0, 40.0]),
            make("tx-retry/sec", "1", [8.0; 4]),
        ],
        ..CellEnd::without_result(CellStatus::Done, "", T0)
    };
    writer.end_cell(attempt, end).unwrap();
    let store = Store::open_to_read(&path).unwrap();
    let mut query = SeriesQuery::new(run, "iperf", "tx-Gbps");
    (query.begin_ms, query.end_ms, query.resolution) = (Some(T0), Some(T0 + 3999), 8);
    let right = [11.0, 22.0, 33.0, 44.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(only(&store, &query), right);
    query.compat = true;
    assert_eq!(only(&store, &query), [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0]);
    query.metric = "tx-retry/sec".into();
    assert_eq!(only(&store, &query), [4.0, 0.0, 4.0, 0.0, 4.0, 0.0, 4.0, 0.0]);
    query.compat = false;
    assert_eq!(only(&store, &query), [8.0, 8.0, 8.0, 8.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn many_parts_come_to_what_one_would() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(1)).unwrap();
    let attempt = writer.begin_cell(run, 0, T0).unwrap();
    let timeline = seconds(0, 2500);
    let values: Vec<f64> = (0..2500).map(|i| f64::from(i % 7)).collect();
    let end = CellEnd {
        period: timeline.range(),
        timelines: vec![timeline],
        series: vec![series("x", &[], values.clone())],
        ..CellEnd::without_result(CellStatus::Done, "", T0)
    };
    writer.end_cell(attempt, end).unwrap();
    let store = Store::open_to_read(&path).unwrap();
    let mut query = SeriesQuery::new(run, "linerate", "x");
    for aggregation in [Aggregation::Sum, Aggregation::Avg] {
        query.aggregation = Some(aggregation);
        for resolution in [1, 2, 3, 100, 2500] {
            query.resolution = resolution;
            let answer = store.query(&query).unwrap();
            let windows = &answer.groups[0].windows;
            let total: f64 =
                windows.iter().map(|w| w.value.unwrap() * (w.end_ms - w.begin_ms + 1) as f64).sum();
            let expected: f64 = values.iter().sum::<f64>() * 1000.0;
            assert!((total - expected).abs() < 1e-6 * expected, "{resolution}");
            assert!(windows.iter().all(|w| w.coverage == 1.0));
        }
    }
    (query.begin_ms, query.end_ms) = (Some(T0 + 1_200_000), Some(T0 + 1_201_999));
    query.resolution = 2;
    assert_eq!(only(&store, &query), [values[1200], values[1201]]);
}
