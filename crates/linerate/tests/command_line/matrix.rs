//! Matrices on this machine: plans, results, exit codes.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A place for a plan and a store.
pub(crate) struct Place {
    home: TempDir,
}

impl Place {
    pub(crate) fn with_plan(plan: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("plan.toml"), plan).unwrap();
        Self { home }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn matrix(&self, flags: &[&str]) -> Command {
        let mut command = linerate(self.home.path());
        command.arg("matrix").arg(self.path("plan.toml")).args(flags);
        command
    }

    fn run(&self, flags: &[&str]) -> Output {
        self.matrix(flags).output().unwrap()
    }
}

fn linerate(home: &Path) -> Command {
    let mut command = crate::command(home, "");
    command.env("LINERATE_STORE", home.join("results.db"));
    command
}

/// A busy machine may make a sample untrustworthy.
fn assert_measured(output: &Output) {
    let code = output.status.code();
    let said = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text));
    assert!(matches!(code, Some(0 | 6)), "{code:?}: {}{}", said[0], said[1]);
}

#[test]
fn a_local_matrix_measures_every_cell_once() {
    // iperf3's server can't tell a port of its own choice.
    let port = crate::quiet::free_port();
    let place = Place::with_plan(&format!(
        r#"
title = "of a test"
[topology]
port = {port}
[schedule]
samples = 2
[[cells]]
workload = "stream"
protocol = ["tcp", "udp"]
bytes = ["20k", "40k"]
zip = []
thresholds = ["received_bytes >= bytes"]
[[cells]]
workload = "rr"
count = 20
server = {{ cpu = 0 }}
[[cells]]
workload = "iperf3"
bytes = "100K"
"#
    ));
    let output = place.run(&["--json", "--quiet", "--order", "iteration"]);
    assert_measured(&output);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["ending"], "complete");
    let cells = result["cells"].as_array().unwrap();
    let order: Vec<(u64, u64)> = cells
        .iter()
        .map(|cell| (cell["point"].as_u64().unwrap(), cell["sample"].as_u64().unwrap()))
        .collect();
    let expected: Vec<(u64, u64)> =
        (1..=2).flat_map(|sample| (0..6).map(move |point| (point, sample))).collect();
    assert_eq!(order, expected);
    for cell in cells {
        assert_eq!((&cell["over"], &cell["attempts"]), (&true.into(), &1.into()), "{cell}");
    }
    let figure = |point: usize, sample: usize, name: &str| {
        result["points"][point]["samples"][sample]["pairs"][0][name].as_f64()
    };
    for sample in 0..2 {
        assert_eq!(figure(0, sample, "received_bytes"), Some(20_000.0));
        assert_eq!(figure(1, sample, "received_bytes"), Some(40_000.0));
        assert_eq!(figure(4, sample, "transactions"), Some(20.0));
        assert!(figure(5, sample, "received_bytes").unwrap() >= 100_000.0);
    }
    // A point without thresholds has no verdict; the metric that says most of it comes from what was measured.
    let verdict = |point: usize| &result["points"][point]["verdict"];
    assert!(verdict(0).is_string() && verdict(4).is_null(), "{result}");
    let shown = linerate(place.home.path()).args(["results", "show", "last", "--json"]).output();
    let shown: Value = serde_json::from_slice(&shown.unwrap().stdout).unwrap();
    let iterations = shown["iterations"].as_array().unwrap();
    assert_eq!(iterations[5]["primary_metric"], "iperf::rx-Gbps");
}

#[test]
fn a_hunt_is_a_cell_whose_figure_is_the_rate_that_it_found() {
    // With a limit of all datagrams a rate passes if anything arrives: the steps of --compat are known.
    let place = Place::with_plan(
        r#"
[[cells]]
workload = "rr"
count = 20
[[hunt]]
compat = true
rate = ["1M..5M", "1M..9M"]
loss = "100%"
time = "500ms"
size = 500
thresholds = ["hunt_rate_bps >= 4M"]
[[hunt]]
requests = true
rate = "20"
time = "1s"
"#,
    );
    let output = place.run(&["--json", "--quiet"]);
    assert_measured(&output);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["ending"], "complete");
    assert_eq!(result["cells"].as_array().unwrap().len(), 4);
    let figures = |point: usize| &result["points"][point]["samples"][0]["pairs"][0];
    assert_eq!(figures(0)["transactions"], 20.0);
    assert_eq!(figures(1), &json!({ "hunt_rate_bps": 4e6 }));
    assert_eq!(figures(2), &json!({ "hunt_rate_bps": 8e6 }));
    // One rate is kept, or isn't; a busy machine may not even offer it.
    let of_requests = figures(3).as_object().unwrap();
    assert!(of_requests.values().all(|rate| *rate == 20.0), "{of_requests:?}");
    for point in [1, 2] {
        let point = &result["points"][point];
        let undecided = point["samples"][0]["trusted"] == false;
        let verdict = if undecided { "undecided" } else { "pass" };
        assert_eq!(point["verdict"], verdict, "{result}");
    }
    let store = linerate_results::Store::open_to_read(&place.path("results.db")).unwrap();
    let run = store.find("last").unwrap().id;
    let mut trials = Vec::new();
    store
        .each_document(run, |document| {
            let run: Value = serde_json::from_str(&document.body).unwrap();
            trials.extend(run["hunt"]["trials"].as_array().map(Vec::len));
            Ok::<_, linerate_results::StoreError>(())
        })
        .unwrap();
    trials.sort_unstable();
    assert_eq!(trials.len(), 3, "{trials:?}");
    assert!(trials.contains(&2) && trials.contains(&3), "{trials:?}");
}

#[test]
fn pairs_of_a_hunt_make_its_trials_together() {
    let place = Place::with_plan(
        r#"
[topology]
scale_up = 2
[[hunt]]
compat = true
rate = "1M..5M"
loss = "100%"
time = "500ms"
size = 500
thresholds = ["hunt_rate_bps >= 4M"]
"#,
    );
    let dry = place.run(&["--dry-run"]);
    let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(shown.contains("hunt --start-at - --trial {rate:time}"), "{shown}");
    let output = place.run(&["--ndjson", "--quiet"]);
    assert_measured(&output);
    let records: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trials = records.iter().filter(|record| record["child"]["record"] == "trial");
    let trials: Vec<(u64, u64)> = trials
        .map(|record| {
            let rate = record["child"]["trial"]["rate"].as_u64().unwrap();
            (record["pair"].as_u64().unwrap(), rate)
        })
        .collect();
    let expected = [(1, 3_000_000), (2, 3_000_000), (1, 4_000_000), (2, 4_000_000)];
    assert_eq!(trials, expected);
    let ended = records.iter().find(|record| record["record"] == "cell_ended").unwrap();
    let hunts = ended["documents"].as_array().unwrap().iter();
    let hunts: Vec<&Value> =
        hunts.filter(|one| one["role"] == "client").map(|one| &one["run"]["hunt"]).collect();
    let outcome = json!({ "is": "bisected", "rate": 4_000_000, "tried": true });
    assert_eq!(hunts.len(), 2, "{ended}");
    for hunt in hunts {
        assert_eq!((&hunt["outcome"], &hunt["pairs"]), (&outcome, &json!(2)));
        assert_eq!(hunt["trials"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn counters_of_the_host_are_kept_with_the_run() {
    let place = Place::with_plan(
        r#"
[collect]
hz = 10
sources = ["cpu", "net", "protocols", "memory"]
[[cells]]
workload = "stream"
rate = "2M"
time = "2s"
"#,
    );
    let output = place.run(&["--quiet"]);
    assert_measured(&output);
    let store = linerate_results::Store::open_to_read(&place.path("results.db")).unwrap();
    let run = store.find("last").unwrap().id;
    let metrics = store.metrics(run).unwrap();
    for (source, metric) in [
        ("mpstat", "Busy-CPU"),
        ("mpstat", "NonBusy-CPU"),
        ("sar-net", "L2-Gbps"),
        ("sar-tasks", "Context-switches-sec"),
        ("sar-mem", "Memory-Free-KB"),
        ("protocols", "InSegs-sec"),
    ] {
        let types = metrics.get(source).unwrap_or_else(|| panic!("{source} in {metrics:?}"));
        assert!(types.iter().any(|one| one == metric), "{metric} in {types:?}");
    }
    let mut ask = linerate_results::query::SeriesQuery::new(run, "mpstat", "Busy-CPU");
    ask.breakouts = vec![linerate_results::breakout::Breakout::parse("num").unwrap()];
    let answer = store.query(&ask).unwrap();
    assert!(!answer.groups.is_empty());
    for group in &answer.groups {
        let window = group.windows[0];
        let busy = window.value.unwrap();
        assert!((0.0..=1.001).contains(&busy), "{group:?}");
        assert!(window.coverage > 0.0, "{group:?}");
    }
}

#[test]
fn thresholds_decide_the_exit_code() {
    let cells = "[[cells]]\nworkload = \"stream\"\nbytes = \"20k\"\nthresholds = ";
    for (threshold, codes) in [
        ("[\"received_bytes <= 1 abort\"]", [7, 6]),
        ("[\"received_bytes <= 1 warn\"]", [0, 6]),
        ("[\"received_bytes == 1\"]", [2, 2]),
    ] {
        let place = Place::with_plan(&format!("{cells}{threshold}"));
        let output = place.run(&["--quiet"]);
        let code = output.status.code().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(codes.contains(&code), "{threshold}: {code}: {said}");
    }
}

#[test]
fn a_dry_run_fits_80_columns_and_has_every_program() {
    let place = Place::with_plan(
        "[topology]\nscale_up = 2\n[[cells]]\nworkload = \"stream\"\nrate = [\"1M\", \"2M\"]\n\
         protocol = [\"udp\", \"quic\"]\nrate-per-flow = \"1M\"\nexclude = [{ rate = \"2M\" }]",
    );
    let refused = place.run(&["--dry-run"]);
    assert_eq!(refused.status.code(), Some(2), "both rates can't be");
    let place = Place::with_plan(
        "[topology]\nscale_up = 2\n[[cells]]\nworkload = \"stream\"\nrate = [\"1M\", \"2M\"]\n\
         protocol = [\"udp\", \"quic\"]",
    );
    let text = place.run(&["--dry-run"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let document: Value =
        serde_json::from_slice(&place.run(&["--dry-run", "--json"]).stdout).unwrap();
    assert_eq!(document["cells"].as_array().unwrap().len(), 4);
    let programs = document["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 4 * 2 * 2);
    let argv = programs[1]["argv"].as_array().unwrap();
    assert!(argv.contains(&"--rate=1M".into()) && argv.contains(&"--udp".into()), "{argv:?}");
    assert!(!place.path("results.db").exists(), "a dry run leaves nothing");
}

#[test]
fn values_that_no_command_takes_are_refused_before_anything_runs() {
    for (cell, part) in [
        ("workload = \"streams\"", "cells[0].workload is streams: write stream"),
        ("workload = \"stream\"\nrate = \"fast\"", "cells[0].rate"),
        ("workload = \"stream\"\nflow = 2", "cells[0].flow is no parameter of stream: write flows"),
        (
            "workload = \"stream\"\nprotocol = \"sctp\"",
            "cells[0].protocol is sctp: write tcp, tls, udp, quic",
        ),
        ("workload = \"stream\"\nsize = \"1,2\"", "cells[0].size has several sizes"),
        ("workload = \"stream\"\nverify = 1", "cells[0].verify is 1: write true or false"),
        (
            "workload = \"rr\"\nthresholds = [\"goodput_bps > 1\"]",
            "rr with these parameters has no goodput_bps",
        ),
        ("workload = \"stream\"\nreport = \"x.html\"", "cells[0].report is no parameter of stream"),
        ("workload = \"netperf\"\nzz = 1", "cells[0].zz is no parameter of netperf"),
        ("workload = \"iperf3\"\ntime = -1", "iperf3 refuses"),
        ("workload = \"hunt\"", "cells[0].workload is hunt: write [[hunt]]"),
        ("workload = \"rr\"\n[[hunt]]\nrate = \"9M..1M\"", "hunt[0].rate"),
        ("workload = \"rr\"\n[[hunt]]\nprotocol = \"tcp\"", "a stream over TCP loses nothing"),
        ("workload = \"rr\"\n[[hunt]]\nlatency = \"1ms\"", "hunt[0].latency"),
        (
            "workload = \"rr\"\n[[hunt]]\nstart_at = \"-\"",
            "hunt[0].start_at is no parameter of hunt",
        ),
        (
            "workload = \"rr\"\n[[hunt]]\nthresholds = [\"goodput_bps > 1\"]",
            "hunt with these parameters has no goodput_bps: there are hunt_rate_bps",
        ),
    ] {
        let place = Place::with_plan(&format!("[[cells]]\n{cell}"));
        let output = place.run(&[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{cell}: {said}");
        assert!(said.contains(part), "{cell}: {said}");
        assert!(!place.path("results.db").exists());
    }
}
