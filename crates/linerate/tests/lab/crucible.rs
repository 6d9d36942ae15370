//! Crucible's files and command lines, run by the program.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use linerate_personality::crucible::iperf::{control_port, listens};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::skipped::skip;

const RUN: &str = "00000000-0000-4000-8000-000000000001";

/// Runs the program in a folder whose store is its own.
fn crucible(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("crucible")
        .args(words)
        .current_dir(folder)
        .env("LINERATE_STORE", folder.join("results.db"))
        .env("HOME", folder)
        .output()
        .unwrap()
}

fn write(folder: &TempDir, name: &str, value: &Value) {
    std::fs::write(folder.path().join(name), value.to_string()).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The standard output of a run that ended with one of these codes.
fn said(output: &Output, codes: &[i32]) -> String {
    let code = output.status.code();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(code.is_some_and(|code| codes.contains(&code)), "{code:?}\n{stdout}\n{stderr}");
    stdout
}

/// The first of so many numbers in a row whose ports nobody has, and no other test here gets. An engine has the port
/// 30000 and twice its number, below those that the system hands out by itself.
fn free_engines(count: u32) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let place = std::process::id() * 16 + NEXT.fetch_add(count, Ordering::Relaxed);
        let first = 10 + place % 1_350;
        let is_free = |engine: u32| {
            let address = ("0.0.0.0", control_port(engine));
            TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
        };
        if (first..first + count).all(is_free) {
            return first;
        }
    }
}

fn local_run(params: &Value, run_params: &Value) -> Value {
    json!({
        "benchmarks": [{"name": "iperf", "ids": "1-2", "mv-params": {"sets": [{"params": params}]}}],
        "tags": {"mtu": "65536"},
        "run-params": run_params,
        "endpoints": [{"type": "local", "engines": [
            {"role": "client", "ids": "1-2"}, {"role": "server", "ids": "1-2"}]}],
    })
}

#[test]
fn multiplex_prints_iterations_and_ends_as_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = json!({"sets": [{"params": [
        {"arg": "time", "vals": ["1", "2"]}, {"arg": "bs", "vals": ["1M"], "role": "all"}]}]});
    write(&folder, "mv-params.json", &matrix);
    let requirements = json!({
        "validations": {"n": {"args": ["bs"], "vals": ".+", "convert": "K"}, "t": {"args": ["time"], "vals": "[1-9]"}},
        "units": {"n": {"K": {"M": "1024"}}}});
    write(&folder, "requirements.json", &requirements);
    let words = ["multiplex", "--requirements", "requirements.json"];
    let iterations: Value =
        serde_json::from_str(&said(&crucible(folder.path(), &words), &[0])).unwrap();
    let bs = json!({"arg": "bs", "role": "all", "val": "1024K"});
    let time = |val: &str| json!({"arg": "time", "role": "client", "val": val});
    assert_eq!(iterations, json!([[time("1"), bs], [time("2"), bs]]));
    write(
        &folder,
        "prefix.json",
        &json!({"sets": [{"params": [{"arg": "time", "vals": ["1x"]}]}]}),
    );
    write(&folder, "none.json", &json!({"other": 1}));
    let with = |input: &'static str| {
        ["multiplex", "--input", input, "--requirements", "requirements.json"]
    };
    said(&crucible(folder.path(), &with("prefix.json")), &[4]);
    said(&crucible(folder.path(), &with("none.json")), &[1]);
    said(&crucible(folder.path(), &with("absent.json")), &[2]);
    said(&crucible(folder.path(), &[&with("prefix.json")[..], &["--compat"]].concat()), &[0]);
    said(&crucible(folder.path(), &["multiplex", "--output", "/dev/null/x"]), &[7]);
    said(&crucible(folder.path(), &["multiply"]), &[2]);
}

#[test]
fn link_of_that_name_is_crucible() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("crucible");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &link).unwrap();
    let output = Command::new(link).arg("--help").output().unwrap();
    let help = said(&output, &[0]);
    for part in ["multiplex", "get metric", "prefix-value", "whole-run"] {
        assert!(help.contains(part), "{help}");
    }
}

#[test]
fn dry_run_prints_pairs_and_command_lines() {
    let folder = tempfile::tempdir().unwrap();
    let params = json!([
        {"arg": "time", "vals": ["1"]}, {"arg": "protocol", "vals": ["tcp", "udp"]},
        {"arg": "length", "vals": ["1K"], "ids": ["2"]}]);
    write(&folder, "run.json", &local_run(&params, &json!({"num-samples": 2})));
    let shown = said(&crucible(folder.path(), &["run", "run.json", "--dry-run"]), &[0]);
    for part in [
        "client-2 on local to server-2 on local (127.0.0.1, port 30004)",
        "iteration 2: time=1 protocol=udp length=1K",
        "client-1: iperf3 --format k -c SERVER -p 30002 --udp -t 1\n",
        "client-2: iperf3 --format k -c SERVER -p 30004 --udp --length 1K -t 1\n",
        "server-1: iperf3 -s --format k -p 30002\n",
        "samples of each iteration: 2, order: sample",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!folder.path().join("results.db").exists());
}

#[test]
fn dry_run_keeps_the_settings_of_two_benchmarks_apart() {
    let folder = tempfile::tempdir().unwrap();
    let benchmark = |id: u32, time: &str| {
        let params = json!([{"arg": "time", "vals": [time]}]);
        json!({"name": "iperf", "ids": id, "mv-params": {"sets": [{"params": params}]}})
    };
    let mut file = local_run(&json!([]), &json!({}));
    file["benchmarks"] = json!([benchmark(1, "3"), benchmark(2, "5")]);
    write(&folder, "run.json", &file);
    let shown = said(&crucible(folder.path(), &["run", "run.json", "--dry-run"]), &[0]);
    for part in [
        "iteration 1: benchmarks[0].time=3 benchmarks[1].time=5\n",
        "client-1: iperf3 --format k -c SERVER -p 30002 -t 3\n",
        "client-2: iperf3 --format k -c SERVER -p 30004 -t 5\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn wrong_runs_are_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let time = |val: &str| json!([{"arg": "time", "vals": [val]}]);
    let good = local_run(&time("1"), &json!({}));
    let with = |pointer: &str, value: Value| {
        let mut file = good.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        file
    };
    let engines = "/endpoints/0/engines";
    let refused = [
        (with("/benchmarks/0/name", json!("uperf")), "\"uperf\" can't be run"),
        (local_run(&time("10abc"), &json!({})), "--compat"),
        (local_run(&json!([{"arg": "tme", "vals": ["1"]}]), &json!({})), "\"tme\""),
        (
            local_run(&json!([{"arg": "passthru", "vals": ["--nonsense"]}]), &json!({})),
            "iperf3 can't take",
        ),
        (with(engines, json!([{"role": "client", "ids": "1-2"}])), "the servers none"),
        (with("/benchmarks/0/ids", json!(1)), "the engine 2, which no benchmark uses"),
        (with("/endpoints/0/type", json!("vm")), "has to be one of"),
    ];
    for (file, part) in refused {
        write(&folder, "run.json", &file);
        let output = crucible(folder.path(), &["run", "run.json"]);
        said(&output, &[2]);
        assert!(text(&output.stderr).contains(part), "{part}: {}", text(&output.stderr));
    }
    assert!(!folder.path().join("results.db").exists());
}

/// Two iterations, two samples, two pairs: what was measured is found again by the queries.
#[test]
fn run_on_this_machine_is_stored_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let params = json!([
        {"arg": "time", "vals": ["1"]}, {"arg": "length", "vals": ["1K", "16K"]},
        {"arg": "bitrate", "vals": ["8M"]}]);
    let run_params = json!({"num-samples": 2, "test-order": "iteration", "max-sample-failures": 3,
        "name": "A", "email": "a@example.org"});
    let mut file = local_run(&params, &run_params);
    let first = free_engines(2);
    let ids = format!("{first}-{}", first + 1);
    file["benchmarks"][0]["ids"] = json!(ids);
    file["endpoints"][0]["engines"] =
        json!([{"role": "client", "ids": ids}, {"role": "server", "ids": ids}]);
    write(&folder, "run.json", &file);
    said(&crucible(folder.path(), &["run", "run.json", "--id", RUN]), &[0, 6]);
    let shown = said(&crucible(folder.path(), &["get", "result", "--run", RUN]), &[0]);
    for part in [
        &format!("run-id: {RUN}\n  tags: mtu=65536\n  benchmark: iperf\n"),
        "  common params: bitrate=8M time=1\n",
        "    source: iperf\n",
        "      unique params: length=1K\n",
        "      unique params: length=16K\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert_eq!(shown.matches("sample-id: ").count(), 4, "{shown}");
    assert_eq!(shown.matches("result: (iperf::rx-Gbps) samples: ").count(), 2, "{shown}");
    let by_user =
        ["get", "result", "--user", "A", "--email", "a@example.org", "--output-format", "json"];
    let document: Value =
        serde_json::from_str(&said(&crucible(folder.path(), &by_user), &[0])).unwrap();
    let samples = &document["runs"][0]["iterations"][0]["samples"];
    let period = samples[0]["primary-period-id"].as_str().unwrap();
    // Both pairs together sent 16 Mbit/s; a busy machine carries less.
    let value = samples[0]["values"]["iperf::rx-Gbps"].as_f64().unwrap();
    assert!(value > 0.0 && value < 0.1, "{value}");
    let words = [
        "get",
        "metric",
        "--source",
        "iperf",
        "--type",
        "rx-Gbps",
        "--period",
        period,
        "--breakout",
        "csid",
        "--output-format",
        "json",
    ];
    let metric: Value =
        serde_json::from_str(&said(&crucible(folder.path(), &words), &[0])).unwrap();
    let labels: Vec<&String> = metric["values"].as_object().unwrap().keys().collect();
    assert_eq!(labels, ["<1>", "<2>"], "{metric}");
    let table = said(&crucible(folder.path(), &words[..8]), &[0]);
    assert!(table.contains("source  ") && table.contains("rx-Gbps"), "{table}");
    let unknown = ["get", "metric", "--source", "iperf", "--type", "x", "--run", RUN];
    let output = crucible(folder.path(), &unknown);
    said(&output, &[1]);
    assert!(text(&output.stderr).contains("rx-Gbps"), "{}", text(&output.stderr));
}

/// Every loss is allowed, so that each step passes as long as anything arrives.
#[test]
fn hunt_takes_the_steps_of_a_binary_search() {
    hunt(free_engines(1), &[]);
}

#[test]
fn hunt_with_the_original_takes_the_same_steps() {
    let Some(original) = original() else { return };
    let notes = hunt(free_engines(1), &["--iperf3", &original]);
    assert!(notes.contains(&format!("{original} measured, which is iperf 3.")), "{notes}");
}

/// The path of the original iperf3.
fn original() -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&path).map(|folder| folder.join("iperf3"));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        skip("there is no iperf3");
    }
    Some(found?.to_str().unwrap().to_owned())
}

/// Hunts with these words besides; the notes.
fn hunt(id: u32, more: &[&str]) -> String {
    let id = id.to_string();
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["crucible", "engine"]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    };
    let server = program().args(["server", "--id", &id]).args(more).stderr(Stdio::piped()).spawn();
    let mut server = server.unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("Server listening on")));
    let params = ["protocol=udp", "time=1", "bitrate-range=1M-5M", "max-loss-pct=100"];
    let params = params.iter().flat_map(|param| ["--param", param]);
    let client = ["client", "--id", &id, "--address", "127.0.0.1"];
    let output = program().args(client).args(params).args(more).output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    // What the engine started ends with it.
    let until = Instant::now() + Duration::from_secs(60);
    let port = control_port(id.parse().unwrap());
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let is_there = |path: &str| listens(&std::fs::read_to_string(path).unwrap_or_default(), port);
    while tables.into_iter().any(is_there) {
        assert!(Instant::now() < until, "a server is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    let finished: Value = serde_json::from_str(&said(&output, &[0])).unwrap();
    assert_eq!(finished["record"], "finished");
    let notes = finished["run"]["status"]["notes"].as_array().unwrap();
    let hunt = notes.iter().filter_map(Value::as_str).find(|note| note.starts_with("hunt: "));
    let hunt = hunt.unwrap();
    assert!(hunt.starts_with("hunt: 3M PASS "), "{hunt}");
    assert!(hunt.contains(", 4M PASS ") && hunt.contains("; final answer 4M"), "{hunt}");
    Value::from(notes.clone()).to_string()
}

/// TCP and UDP: the store has what both ends of the original counted. A complete run has nothing to take up again.
#[test]
fn original_measures_in_both_roles() {
    let Some(original) = original() else { return };
    let folder = tempfile::tempdir().unwrap();
    let params = json!([
        {"arg": "time", "vals": ["1"]}, {"arg": "protocol", "vals": ["tcp", "udp"]},
        {"arg": "bitrate", "vals": ["8M"]}]);
    let mut file = local_run(&params, &json!({"max-sample-failures": 3}));
    let id = free_engines(1);
    file["benchmarks"][0]["ids"] = json!(id);
    file["endpoints"][0]["engines"] =
        json!([{"role": "client", "ids": id}, {"role": "server", "ids": id}]);
    write(&folder, "run.json", &file);
    let run = ["run", "run.json", "--iperf3", &original];
    let shown = said(&crucible(folder.path(), &[&run[..], &["--dry-run"]].concat()), &[0]);
    assert!(shown.contains(&format!("client-{id}: {original} --format k -c SERVER")), "{shown}");
    said(&crucible(folder.path(), &[&run[..], &["--id", RUN]].concat()), &[0, 6]);
    let words = ["get", "result", "--run", RUN, "--output-format", "json"];
    let shown = said(&crucible(folder.path(), &words), &[0]);
    let document: Value = serde_json::from_str(&shown).unwrap();
    let types = &document["runs"][0]["metrics"][0]["types"];
    for name in ["rx-Gbps", "tx-Gbps", "rx-pps", "rx-lost/sec", "tx-retry/sec"] {
        assert!(types.as_array().unwrap().contains(&json!(name)), "{name}: {document}");
    }
    for iteration in document["runs"][0]["iterations"].as_array().unwrap() {
        let value = iteration["samples"][0]["values"]["iperf::rx-Gbps"].as_f64().unwrap();
        assert!(value > 0.0 && value < 0.1, "{document}");
    }
    // The program belongs to the plan that a run is taken up with.
    said(&crucible(folder.path(), &[&run[..], &["--resume", RUN]].concat()), &[0, 6]);
    let output = crucible(folder.path(), &["run", "run.json", "--resume", RUN]);
    said(&output, &[2]);
    assert!(text(&output.stderr).contains("another plan"), "{}", text(&output.stderr));
}

#[test]
fn program_that_cannot_measure_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, printed: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{printed}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = script("old", "echo iperf 3.1.3");
    let other = script("other", "echo hello");
    let broken =
        script("broken", "[ $1 = --version ] && echo iperf 3.12 || echo '{\"intervals\": 7}'");
    let refused = [
        ("/nowhere/iperf3", "there is no such program on this host"),
        (&old, "3.7 is the oldest"),
        (&other, "isn't iperf3"),
        (&broken, "no JSON document that can be read"),
    ];
    for (program, part) in refused {
        let client = ["engine", "client", "--address", "127.0.0.1", "--iperf3", program];
        let output = crucible(folder.path(), &client);
        said(&output, &[1]);
        let told = text(&output.stderr);
        assert!(told.contains(part) && told.contains(program), "{part}: {told}");
    }
}
