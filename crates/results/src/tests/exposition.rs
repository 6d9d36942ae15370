//! The text for monitoring systems: what it says, and that it keeps the grammar.

use std::collections::BTreeMap;

use crate::exposition::Exposition;
use crate::*;

use super::{T0, cell, new_run};

/// Puts a run of four cells, of which some are done, into a store.
pub(super) fn put(writer: &Writer, title: &str, ended_ms: i64, verdicts: [&str; 2]) {
    let new = NewRun { title: title.into(), began_ms: ended_ms - 1000, ..new_run(4) };
    let (run, _) = writer.begin_run(new).unwrap();
    for (position, values) in [(0, [1.0, 2.0, 3.0, 4.0]), (2, [3.0; 4])] {
        let attempt = writer.begin_cell(run, position, T0).unwrap();
        writer.end_cell(attempt, cell(i64::from(position) * 10, values)).unwrap();
    }
    if ended_ms > 0 {
        let iterations = (0..).zip(verdicts.map(str::to_owned)).collect();
        let status = RunStatus::Stopped;
        writer.end_run(run, RunEnd { status, partial: true, ended_ms, iterations }).unwrap();
    }
}

/// Samples by name and labels. Panics where the text isn't OpenMetrics.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut samples = BTreeMap::new();
    let mut family = String::new();
    let (body, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            let [kind, name, rest] = words[..] else { panic!("{line}") };
            assert!(is_name(name) && !rest.is_empty(), "{line}");
            match kind {
                "HELP" => name.clone_into(&mut family),
                "TYPE" => assert_eq!(rest, "gauge"),
                "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                _ => panic!("{line}"),
            }
            // What belongs to a family stands together.
            assert_eq!(name, family, "{line}");
            continue;
        }
        let (name, rest) = line.split_once('{').unwrap();
        assert_eq!(name, family, "{line}");
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        let mut letters = labels.chars().peekable();
        while letters.peek().is_some() {
            let label: String = letters.by_ref().take_while(|c| *c != '=').collect();
            assert!(is_name(&label), "{line}");
            assert_eq!(letters.next(), Some('"'), "{line}");
            loop {
                match letters.next().unwrap() {
                    '"' => break,
                    '\\' => assert!(matches!(letters.next(), Some('\\' | '"' | 'n')), "{line}"),
                    c => assert!(c != '\n' && !c.is_control(), "{line}"),
                }
            }
            assert!(matches!(letters.next(), Some(',') | None), "{line}");
        }
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite());
        assert!(samples.insert(format!("{name}{{{labels}}}"), value).is_none(), "{line} twice");
    }
    samples
}

fn of_title(samples: &BTreeMap<String, f64>, title: &str) -> Vec<String> {
    let title = format!("title=\"{title}\"");
    let of_title = samples.iter().filter(|(name, _)| name.contains(&title));
    let without = |name: &String| name.replace(&title, "").replace("{,", "{").replace("{}", "");
    of_title.map(|(name, value)| format!("{} {value}", without(name))).collect()
}

#[test]
fn the_last_finished_run_of_each_title_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let writer = Writer::open(&path).unwrap();
    put(&writer, "nightly", T0 + 5_000, ["fail", "pass"]);
    put(&writer, "nightly", T0 + 9_000, ["pass", "pass"]);
    put(&writer, "nightly", 0, ["", ""]);
    put(&writer, "weekly \"a\\b\"\n", T0 + 7_000, ["", ""]);
    writer.close().unwrap();
    let store = Store::open_to_read(&path).unwrap();
    let mut exposition = Exposition::new();
    let text = exposition.render(&store, T0 + 69_000).unwrap();
    let samples = parse(&text);
    let nightly = of_title(&samples, "nightly");
    for expected in [
        "linerate_run_age_seconds 60",
        "linerate_run_ended_timestamp_seconds 1700000009",
        "linerate_run_status{status=\"stopped\"} 1",
        "linerate_run_status{status=\"failed\"} 0",
        "linerate_run_verdict{verdict=\"pass\"} 1",
        "linerate_run_cells 4",
        "linerate_run_cells_done 2",
    ] {
        assert!(nightly.iter().any(|line| line == expected), "{expected} in {nightly:#?}");
    }
    // The first iteration: the mean of 7.5 and 9, over two engines. The second was not measured, so it has no result.
    let results = nightly.iter().filter(|line| line.starts_with("linerate_run_result"));
    let expected = "linerate_run_result{iteration=\"1\",metric=\"linerate::rx-Gbps\",unit=\"Gbit/s\",\
                    params=\"rate=1G\"} 8.25";
    assert_eq!(results.collect::<Vec<_>>(), [expected]);
    let weekly = of_title(&samples, "weekly \\\"a\\\\b\\\"\\n");
    assert!(!weekly.is_empty());
    assert!(!weekly.iter().any(|line| line.contains("verdict")), "{weekly:#?}");
    // A finished run is read once; its age goes on.
    let later = parse(&exposition.render(&store, T0 + 70_000).unwrap());
    assert!(of_title(&later, "nightly").contains(&"linerate_run_age_seconds 61".to_owned()));
}

#[test]
fn what_is_not_known_has_no_sample() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let writer = Writer::open(&path).unwrap();
    let empty = parse(&Exposition::new().render(&Store::open_to_read(&path).unwrap(), T0).unwrap());
    assert!(empty.is_empty());
    put(&writer, "ahead", T0 + 9_000, ["pass", "undecided"]);
    writer.close().unwrap();
    // The clock stands before the run's end.
    let text = Exposition::new().render(&Store::open_to_read(&path).unwrap(), T0).unwrap();
    let ahead = of_title(&parse(&text), "ahead");
    assert!(!ahead.iter().any(|line| line.contains("age")), "{ahead:#?}");
    assert!(ahead.contains(&"linerate_run_verdict{verdict=\"undecided\"} 1".to_owned()));
}
