//! `--output`: whole or not there, and found out before anything is measured.

use std::fs;

use super::{command, run_in};

#[test]
fn unwritable_output_is_refused_before_the_measurement() {
    let home = tempfile::tempdir().unwrap();
    // A server would have been looked for, were the file all right: exit code 3.
    for target in ["no/such/directory/run.json", ".", "/"] {
        let ended = run_in(home.path(), &format!("stream no-such-host.invalid --output {target}"));
        assert_eq!(ended.exit_code, 1, "{target}: {}", ended.stderr);
        assert!(ended.stderr.contains("can't write the result to"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_run_is_a_document_too() {
    let home = tempfile::tempdir().unwrap();
    let ended = run_in(home.path(), "stream no-such-host.invalid --json --output run.json");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (3, ""));
    let text = fs::read_to_string(home.path().join("run.json")).unwrap();
    let run: linerate_measure::Run = serde_json::from_str(&text).unwrap();
    assert_eq!(run.status.exit_code, 3);
    assert_eq!(run.plan.host, "no-such-host.invalid");
}

#[test]
fn several_sizes_are_an_array_even_if_the_first_fails() {
    let home = tempfile::tempdir().unwrap();
    let ended = run_in(home.path(), "rr no-such-host.invalid --json --size 1,64");
    assert_eq!(ended.exit_code, 3);
    let runs: Vec<linerate_measure::Run> = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(runs.len(), 1);
}

#[test]
fn a_full_device_is_told_with_its_name() {
    let home = tempfile::tempdir().unwrap();
    let ended = run_in(home.path(), "stream no-such-host.invalid --json --output /dev/full");
    assert_eq!(ended.exit_code, 1);
    assert!(
        ended.stderr.contains("can't write the result to /dev/full: No space left"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_reader_that_has_gone_ends_every_output_alike_and_without_a_word() {
    let home = tempfile::tempdir().unwrap();
    let unreachable = "stream no-such-host.invalid --quiet";
    let outputs = [
        "schema",
        "--help",
        "--version",
        "completions bash",
        "self --time 100ms",
        "link --profile geo --relay 127.0.0.1:0=127.0.0.1:9 --time 100ms --quiet",
        "link --profile geo --relay 127.0.0.1:0=127.0.0.1:9 --time 100ms --quiet --json",
        &format!("{unreachable} --dry-run"),
        &format!("{unreachable} --json"),
        &format!("{unreachable} --ndjson"),
        &format!("{unreachable} --csv"),
    ];
    for words in outputs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(home.path(), words).stdout(writer).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(141), "{words}: {stderr}");
        let why_not_measured = stderr.starts_with("linerate: the host");
        assert!(stderr.is_empty() || why_not_measured, "{words}: {stderr}");
    }
}
