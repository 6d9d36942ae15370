use super::*;
use crate::matrix::Setting;

fn point(name: &str, value: &str) -> Iteration {
    Iteration { settings: vec![Setting { name: name.into(), value: value.into() }] }
}

fn judge(text: &str, figures: &[f64], with_confidence: bool) -> Verdict {
    let threshold = Threshold::parse(text).unwrap();
    let bound = threshold.bound_at(&point("rate", "1G")).unwrap();
    let seen: Vec<Observation> = figures
        .iter()
        .map(|figure| Observation { figure: Some(*figure), is_trusted: true })
        .collect();
    threshold.judge(bound, &seen, with_confidence).verdict
}

#[test]
fn bounds_have_the_unit_of_the_figure() {
    for (text, bound) in [
        ("goodput_bps >= 0.95 * rate", 0.95e9),
        ("goodput_bps>=rate", 1e9),
        ("goodput_bps >= rate * 0.5", 0.5e9),
        ("goodput_bps > 2.5G", 2.5e9),
        ("loss_ratio <= 0.1% abort", 0.001),
        ("loss_ratio.max<0.01", 0.01),
        ("latency_p99.9_ns < 2ms warn", 2e6),
        ("latency_p99.9_ns.p50 < 2ms warn abort", 2e6),
        ("elapsed_s >= 500ms", 0.5),
        ("transactions_per_s >= 10k", 10_000.0),
        ("received_bytes >= 1Mi", 1_048_576.0),
        ("datagrams_lost <= 0", 0.0),
    ] {
        let threshold = Threshold::parse(text).unwrap();
        assert_eq!(threshold.bound_at(&point("rate", "1G")).unwrap(), bound, "{text}");
        assert!(metric_of(&threshold.figure).is_some(), "{text}");
        assert_eq!(threshold.text(), text);
        assert_eq!(threshold.aborts, text.contains("abort"));
        assert_eq!(threshold.warns, text.contains("warn"));
    }
}

#[test]
fn what_is_no_threshold_is_refused_with_its_text() {
    for text in [
        "",
        "goodput_bps",
        "goodput_bps = 1",
        ">= 1",
        "goodput_bps >=",
        "goodput_bps >= abort",
        "goodput_bps >= -1",
        "goodput_bps >= 1X",
        "goodput_bps >= 2 * 3",
        "goodput_bps >= x * rate",
        "goodput_bps >= rate now",
        "loss_ratio <= 1G",
        "loss_ratio <= 0.1% warn warn",
        "goodput bps >= 1",
    ] {
        let error = Threshold::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("threshold {}", quoted(text))), "{error}");
    }
}

#[test]
fn the_statistic_over_samples_decides() {
    assert_eq!(judge("goodput_bps >= 2", &[1.0, 4.0], false), Verdict::Pass);
    assert_eq!(judge("goodput_bps.min >= 2", &[1.0, 4.0], false), Verdict::Fail);
    assert_eq!(judge("goodput_bps.max < 4", &[1.0, 4.0], false), Verdict::Fail);
    assert_eq!(judge("goodput_bps.p50 >= 3", &[9.0, 1.0, 3.0], false), Verdict::Pass);
    assert_eq!(judge("goodput_bps.p50 > 2.5", &[1.0, 2.0, 3.0, 4.0], false), Verdict::Fail);
}

#[test]
fn what_samples_cannot_tell_is_undecided() {
    let threshold = Threshold::parse("goodput_bps >= 2").unwrap();
    let judged = |figure, is_trusted| {
        threshold.judge(2.0, &[Observation { figure, is_trusted }], false).verdict
    };
    assert_eq!(judged(Some(3.0), true), Verdict::Pass);
    assert_eq!(judged(Some(3.0), false), Verdict::Undecided);
    assert_eq!(judged(None, true), Verdict::Undecided);
    assert_eq!(threshold.judge(2.0, &[], false).verdict, Verdict::Undecided);
    // Mean 10, half of the interval 2.48.
    assert_eq!(judge("goodput_bps >= 9", &[9.0, 10.0, 11.0], true), Verdict::Undecided);
    assert_eq!(judge("goodput_bps >= 7", &[9.0, 10.0, 11.0], true), Verdict::Pass);
    assert_eq!(judge("goodput_bps >= 13", &[9.0, 10.0, 11.0], true), Verdict::Fail);
    assert_eq!(judge("goodput_bps >= 7", &[9.0], true), Verdict::Undecided);
}

#[test]
fn every_figure_of_a_summary_can_be_named() {
    use crate::sample::{CpuSeconds, DatagramCounts};
    use crate::summary::{CpuOfEnds, Latency, Summary};

    let cpu = Some(CpuSeconds { user_s: 1.0, system_s: 2.0 });
    let latency = Latency { count: 9, p50: Some(5), p99_9: Some(7), ..Latency::default() };
    let summary = Summary {
        goodput_bps: Some(1e9),
        latency_ns: Some(latency),
        datagrams: Some(DatagramCounts { lost: Some(3), ..DatagramCounts::default() }),
        cpu_s: Some(CpuOfEnds { client: cpu, server: None }),
        errors: [("refused".to_owned(), 2), ("timeout".to_owned(), 3)].into(),
        ..Summary::default()
    };
    let figures = figures(&summary);
    let known = figures_of(None);
    for name in figures.keys() {
        assert!(known.contains(name), "{name}");
    }
    for (name, figure) in [
        ("goodput_bps", 1e9),
        ("latency_p99.9_ns", 7.0),
        ("datagrams_lost", 3.0),
        ("cpu_client_s", 3.0),
        ("errors", 5.0),
    ] {
        assert_eq!(figures.get(name), Some(&figure), "{name} of {figures:?}");
    }
}
