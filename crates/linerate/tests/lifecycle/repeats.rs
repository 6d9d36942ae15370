//! `--repeat` and `--precision`: several runs of one plan. What is asserted are counts, orders and words, never a rate.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use linerate_measure::Run;
use linerate_measure::comparison::{Comparison, Side, Trust};
use linerate_measure::record::Record;
use linerate_measure::repeats::{Ending, Repeats};
use rustix::process::{Pid, Signal, kill_process};

use crate::ends::{Ended, Server, program};

/// The document of a client that made several runs, whose exit code it has.
fn document(ended: &Ended) -> Repeats {
    let repeats: Repeats = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
    assert_eq!(ended.exit_code, Some(repeats.status.exit_code.into()), "{:?}", repeats.status);
    repeats
}

/// A client that makes one run, which a busy machine may make untrustworthy.
fn one_run(server: &Server, words: &str) -> Run {
    let ended = measure(server, words);
    assert!(matches!(ended.exit_code, Some(0 | 6)), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A client with no word of its own on formats.
fn measure(server: &Server, words: &str) -> Ended {
    let words = format!("{words} --quiet --server-key {}", server.fingerprint);
    server.start_client_of("127.0.0.1", &words).finish()
}

#[test]
fn runs_follow_each_other_each_with_its_document_and_a_summary_stands_beside() {
    let server = Server::start("");
    let repeats = document(&measure(&server, "rr --count 200 --repeat 4 --json"));
    assert_eq!((repeats.status.outcome, repeats.most_runs), (Ending::Complete, 4));
    assert!(matches!(repeats.status.exit_code, 0 | 6), "{:?}", repeats.status);
    let of_runs: Vec<&str> = repeats.runs.iter().map(|run| run.run_id.as_str()).collect();
    let of_documents: Vec<&str> = repeats.documents.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(of_runs, of_documents);
    assert_eq!(of_runs.iter().collect::<BTreeSet<_>>().len(), 4, "each run is one of its own");
    assert!(repeats.documents.iter().all(|run| run.reports.len() == 2));
    let served: Vec<String> = (0..4)
        .map(|_| server.await_record("test_started")["run_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(of_runs, served, "the server served them in their order");
    let rate = &repeats.metrics[0];
    assert_eq!((rate.name.as_str(), rate.runs), ("transactions_per_s", 4));
    assert!(rate.least <= rate.median && rate.median <= rate.greatest, "{rate:?}");
    assert!(rate.low.unwrap() <= rate.mean && rate.mean <= rate.high.unwrap(), "{rate:?}");
    assert!(repeats.metrics.iter().any(|one| one.name == "latency_p50_ns"));
}

#[test]
fn the_runs_of_two_series_are_compared_as_stored_runs() {
    let server = Server::start("");
    let ended = measure(&server, "rr --count 50 --repeat 3 --json --output runs.json");
    assert!(matches!(ended.exit_code, Some(0 | 6)), "{}", ended.stderr);
    let compared = program(server.home())
        .args(["compare", "runs.json", "runs.json", "--json"])
        .output()
        .unwrap();
    let comparison: Comparison = serde_json::from_slice(&compared.stdout).unwrap();
    let of_side = |side: Side| comparison.runs.iter().filter(|run| run.side == side).count();
    assert_eq!((of_side(Side::A), of_side(Side::B)), (3, 3));
    assert_eq!(comparison.status.verdict, Trust::Doubtful, "they were not interleaved");
}

#[test]
fn records_and_rows_of_each_run_come_first_and_the_summary_last() {
    let server = Server::start("");
    let ended = measure(&server, "rr --count 50 --repeat 3 --ndjson");
    let records: Vec<Record> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finished: Vec<&str> = records
        .iter()
        .filter_map(|record| match record {
            Record::Finished { run_id, .. } => Some(run_id.as_str()),
            _ => None,
        })
        .collect();
    let Some(Record::Repeated { repeats, .. }) = records.last() else { panic!("{records:?}") };
    let told: Vec<&str> = repeats.runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!((finished, repeats.documents.len()), (told, 0));
    assert_eq!(ended.exit_code, Some(repeats.status.exit_code.into()));

    let rows = measure(&server, "rr --count 50 --repeat 3 --csv").stdout;
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let (kind, rate) = (column("row"), column("transactions_per_s"));
    let of_kind = |name: &str| -> Vec<f64> {
        let rows = rows.iter().filter(|row| row[kind] == name);
        rows.map(|row| row[rate].parse().unwrap()).collect()
    };
    let (mut rates, median) = (of_kind("summary"), of_kind("median"));
    rates.sort_by(f64::total_cmp);
    assert_eq!((rates.len(), median.as_slice()), (3, &rates[1..2]));
    let last: Vec<&str> = rows.iter().rev().take(4).map(|row| row[kind]).collect();
    assert_eq!(last, ["high", "low", "mean", "median"]);
}

#[test]
fn text_has_a_row_for_each_run_and_how_much_they_vary() {
    let server = Server::start("");
    let text = measure(&server, "rr --count 50 --repeat 3").stdout;
    let row = |begin: &str| text.lines().any(|line| line.starts_with(begin));
    for begin in ["run ", "1 ", "2 ", "3 ", "3 runs of 3; +- is the 95 % interval", "transactions "]
    {
        assert!(row(begin), "no row {begin:?} in {text}");
    }
    let last = text.lines().last().unwrap();
    assert!(last == "VALID" || text.contains("\nDOUBTFUL: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_precision_ends_the_runs_from_the_eighth_on_or_is_told_with_its_width() {
    let server = Server::start("");
    let fine = document(&measure(&server, "rr --count 20 --precision 0.000001% --repeat 9 --json"));
    assert_eq!((fine.status.outcome, fine.runs.len()), (Ending::DidNotConverge, 9));
    assert!(
        fine.status.reasons[0].text.starts_with("did not converge: transactions_per_s is known to")
    );
    assert!(matches!(fine.status.exit_code, 0 | 6), "{:?}", fine.status);
    let coarse = document(&measure(&server, "rr --count 20 --precision 90% --repeat 12 --json"));
    let reached = coarse.precision.unwrap().reached.unwrap();
    match coarse.status.outcome {
        Ending::Converged => assert!(reached <= 0.9 && coarse.runs.len() >= 8),
        _ => assert!(reached > 0.9 && coarse.runs.len() == 12, "{:?}", coarse.status),
    }
}

#[test]
fn an_interrupt_ends_the_series_and_keeps_the_runs_that_were_made() {
    let server = Server::start("");
    let words = format!(
        "rr 127.0.0.1 --port {} --server-key {} --count 500 --repeat 900 --ndjson --quiet",
        server.port, server.fingerprint
    );
    let mut child = program(server.home())
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (mut finished, mut last) = (0, String::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        last = line.unwrap();
        finished += usize::from(last.contains("\"record\":\"finished\""));
        if finished == 2 {
            kill_process(pid, Signal::INT).unwrap();
            finished += 1;
        }
    }
    let Ok(Record::Repeated { repeats, .. }) = serde_json::from_str(&last) else {
        panic!("{last}")
    };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!((repeats.status.outcome, repeats.status.exit_code), (Ending::Interrupted, 130));
    assert!((2..900).contains(&repeats.runs.len()));
    assert!(repeats.runs[..2].iter().all(|run| !run.figures.is_empty()), "{repeats:?}");
}

#[test]
fn a_run_that_cannot_be_made_ends_the_series() {
    let mut server = Server::start("--one-off");
    let repeats = document(&measure(&server, "rr --count 20 --repeat 5 --json"));
    assert_eq!(repeats.status.outcome, Ending::Failed, "{:?}", repeats.status);
    assert_eq!((repeats.runs.len(), repeats.status.verdict), (2, Trust::Doubtful));
    assert_eq!(repeats.documents.len(), 2, "the failed one has its document, too");
    assert_eq!(repeats.status.reasons[0].text, "1 of 5 runs were measured");
    assert!(repeats.status.reasons[1].text.starts_with("a run failed: "), "{:?}", repeats.status);
    let began = std::time::Instant::now();
    while server.is_running() && began.elapsed() < crate::ends::LONGEST {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn a_warm_up_is_looked_for_in_the_intervals_of_a_run() {
    let server = Server::start("");
    let run = one_run(&server, "rr --time 1200ms --omit auto --json");
    assert!(run.plan.local.finds_warm_up);
    assert_eq!((run.plan.workload.omit_ns, run.plan.workload.interval_ns), (0, 20_000_000));
    assert!(run.samples.iter().all(|sample| !sample.warm_up));
    // A machine that is busy for most of the run leaves fewer intervals.
    for one in &run.steadiness {
        assert_eq!((one.name.as_str(), one.direction), ("transactions_per_s", None));
        assert!(one.intervals >= 40, "{one:?}");
    }
    let plain = one_run(&server, "rr --time 1200ms --interval 20ms --json");
    assert!(!plain.plan.local.finds_warm_up);
}
