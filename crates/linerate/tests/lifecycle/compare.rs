//! `compare`: commands in pairs, and stored runs. What is asserted are counts, orders and words, never a rate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use linerate_measure::comparison::{Comparison, Finding, Side, Trust, draw_order};
use rustix::process::{Pid, Signal, kill_process};

use crate::ends::Server;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("compare").args(words).env("HOME", home).current_dir(home).stdin(Stdio::null());
    command
}

fn compare(home: &Path, words: &[&str]) -> Output {
    command(home, words).output().unwrap()
}

/// The document, and the exit code of the program, which the document has, too.
fn document(output: &Output) -> Comparison {
    let text = String::from_utf8_lossy(&output.stdout);
    let comparison: Comparison = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    assert_eq!(output.status.code(), Some(comparison.status.exit_code.into()));
    comparison
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A client of another tool, which does this.
fn client(home: &Path, folder: &str, script: &str) -> String {
    let path = home.join(folder).join("secnetperf");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn pairs_are_made_in_the_order_that_the_seed_draws() {
    let server = Server::start("");
    let rr = format!(
        "rr 127.0.0.1 --port {} --server-key {} --count 200",
        server.port, server.fingerprint
    );
    let b = format!("linerate {rr} --title 'of B'");
    let output = compare(server.home(), &[&rr, &b, "--pairs", "6", "--seed", "7", "--json"]);
    let comparison = document(&output);
    assert_eq!(
        (comparison.seed, comparison.complete_pairs()),
        (Some(7), 6),
        "{}",
        complaint(&output)
    );
    let sides: Vec<Side> = comparison.runs.iter().map(|run| run.side).collect();
    assert_eq!(sides, draw_order(7, 6).concat());
    let mut ids: Vec<&str> =
        comparison.runs.iter().filter_map(|run| run.run_id.as_deref()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12);
    let names: Vec<&str> = comparison.metrics.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names[0], "transactions_per_s");
    assert!(names.contains(&"latency_p50_ns"), "{names:?}");
    assert!(comparison.metrics.iter().all(|one| one.pairs == 6));
    assert_eq!(complaint(&output).matches("pair 6 of 6").count(), 2);
}

#[test]
fn a_condition_that_holds_with_its_whole_interval_fails() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let a = client(home, "a", "echo 'Result: Upload 1000 kbps.'");
    let b = client(home, "b", "echo 'Result: Upload 900 kbps.'");
    let judged = |conditions: &[&str]| {
        let mut words = vec![a.as_str(), b.as_str(), "--pairs", "6", "--quiet", "--json"];
        conditions.iter().for_each(|condition| words.extend(["--fail-if", condition]));
        document(&compare(home, &words))
    };
    let failed = judged(&["goodput > 1%", "goodput < -2%"]);
    assert_eq!(failed.status.exit_code, 7);
    assert_eq!(
        failed.conditions.iter().map(|one| one.holds).collect::<Vec<_>>(),
        [Some(false), Some(true)]
    );
    assert_eq!(
        (failed.metrics[0].verdict, failed.status.verdict),
        (Finding::AHigher, Trust::Valid)
    );
    assert_eq!(judged(&["goodput < -20%"]).status.exit_code, 0);
    assert_eq!(judged(&["p99 > 3%"]).status.exit_code, 6, "the figure is not there");
    let text = compare(home, &[&a, &b, "--pairs", "6", "--seed", "1"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("B worse") && text.ends_with("\nVALID\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn records_come_as_runs_end_and_the_document_last() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let a = client(home, "a", "echo 'Result: 98 RPS'");
    let output = compare(home, &[&a, &a, "--pairs", "3", "--ndjson", "--quiet"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        records.iter().map(|record| record["record"].as_str().unwrap()).collect();
    assert_eq!(kinds, [&["run"; 6][..], &["finished"]].concat());
    assert_eq!(records[6]["comparison"]["metrics"][0]["verdict"], "too_few");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn failing_runs_end_the_comparison_and_are_told() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let a = client(home, "a", "echo 'Result: 98 RPS'");
    let b = client(home, "b", "echo no way >&2; exit 3");
    let output = compare(home, &[&a, &b, "--pairs", "9", "--json"]);
    let comparison = document(&output);
    assert_eq!((comparison.status.verdict, comparison.status.exit_code), (Trust::Invalid, 1));
    let failed: Vec<_> = comparison.runs.iter().filter(|run| run.side == Side::B).collect();
    assert_eq!(failed.len(), 3, "there is no fourth attempt");
    assert!(
        failed.iter().all(|run| run.exit_code == 3 && run.message.as_deref() == Some("no way"))
    );
    assert!(complaint(&output).contains("B failed: no way"), "{}", complaint(&output));
    // One that fails now and then costs a pair.
    let rarely = client(
        home,
        "c",
        "n=$(cat n 2>/dev/null); echo $((n + 1)) > n; [ \"$n\" != 1 ] && echo 'Result: 9 RPS'",
    );
    let comparison = document(&compare(home, &[&a, &rarely, "--pairs", "8", "--json"]));
    assert_eq!((comparison.complete_pairs(), comparison.status.exit_code), (7, 0));
    assert_eq!(comparison.status.reasons, ["7 of 8 pairs are complete"]);
}

#[test]
fn an_interrupt_ends_the_running_client_and_keeps_what_there_is() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let a = client(home, "a", "echo $$ > pid; exec sleep 1000");
    let child = command(home, &[&a, &a, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let pid = loop {
        assert!(began.elapsed() < LIMIT, "no client was started");
        let written = fs::read_to_string(home.join("pid")).unwrap_or_default();
        if let Ok(pid) = written.trim().parse::<i32>() {
            break pid;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let comparison = document(&output);
    assert!(comparison.status.interrupted && comparison.status.exit_code == 130);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "its client is left");
}

#[test]
fn stored_runs_are_doubtful_and_what_else_differs_is_told() {
    let server = Server::start("");
    for (file, words) in
        [("old.json", "rr --count 50"), ("new.json", "rr --count 50 --request 100")]
    {
        let ended = server.measure(&format!("{words} --output {file}"));
        assert!(matches!(ended.exit_code, Some(0 | 6)), "{}", ended.stderr);
    }
    let comparison = document(&compare(server.home(), &["old.json", "new.json", "--json"]));
    assert_eq!((comparison.status.verdict, comparison.status.exit_code), (Trust::Doubtful, 0));
    assert_eq!(comparison.metrics[0].verdict, Finding::TooFew);
    assert!(comparison.differences.iter().any(|one| one.field.starts_with("plan.workload")));
    let text = compare(server.home(), &["old.json", "new.json"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("DOUBTFUL: not interleaved: drift can't be told from difference"),
        "{text}"
    );
    assert!(text.contains("differs: plan.workload"), "{text}");
    // Three runs a side have an interval.
    let run = fs::read_to_string(server.home().join("old.json")).unwrap();
    for (file, rates) in [("a.json", [100.0, 101.0, 102.0]), ("b.json", [50.0, 51.0, 52.0])] {
        let mut document: serde_json::Value = serde_json::from_str(&run).unwrap();
        let runs = rates.map(|rate| {
            document["summary"]["transactions_per_s"] = rate.into();
            document.clone()
        });
        fs::write(server.home().join(file), serde_json::to_string(&runs).unwrap()).unwrap();
    }
    let comparison = document(&compare(
        server.home(),
        &["a.json", "b.json", "--json", "--fail-if", "transactions < -9%"],
    ));
    assert_eq!((comparison.metrics[0].verdict, comparison.status.exit_code), (Finding::AHigher, 7));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("file"), "{}").unwrap();
    for (words, part) in [
        (&["stream 'HOST", "stream HOST"][..], "A: \"stream 'HOST\" has an open quote"),
        (
            &["stream HOST", "ping HOST"],
            "B: no figures can be read of \"ping\": begin with one of stream, media, rr",
        ),
        (&["stream HOST", " "], "B: it is empty"),
        (&["file", "stream HOST"], "file is a file and \"stream HOST\" is none"),
        (&["file", "file"], "file holds no run"),
        (&["rr HOST", "rr HOST", "--pairs", "1001"], "from 1 to 1000"),
        (&["rr HOST", "rr HOST", "--pairs", "0"], "from 1 to 1000"),
        (&["rr HOST", "rr HOST", "--fail-if", "speed < -2%"], "no figure that is compared"),
        (&["rr HOST", "rr HOST", "--json", "--ndjson"], "cannot be used with"),
    ] {
        let output = compare(home, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", complaint(&output));
        assert!(complaint(&output).contains(part), "{words:?}: {}", complaint(&output));
    }
}
