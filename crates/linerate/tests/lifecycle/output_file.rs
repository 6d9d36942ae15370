//! `--output` after a real measurement: the file is whole or not there.

use crate::skipped::skip;
use std::fs;
use std::process::Command;

use crate::document::Document;
use crate::ends::Server;

#[test]
fn the_file_has_the_whole_result() {
    let server = Server::start("");
    let ended = server.measure("rr --count 10 --output run.json");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(0), ""));
    let text = fs::read_to_string(server.home().join("run.json")).unwrap();
    assert_eq!(Document::parse(&text).count("transactions"), 10);
}

#[test]
fn a_device_without_room_is_an_error() {
    let server = Server::start("");
    let ended = server.measure("rr --count 10 --output /dev/full");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("/dev/full: No space left"), "{}", ended.stderr);
}

#[test]
fn a_reader_that_leaves_ends_a_long_test_in_every_format() {
    let server = Server::start("");
    // What prints intervals stops at the next; a document has no reader to miss before its end.
    for (format, time) in [("", "60s"), ("--ndjson", "60s"), ("--json", "1s"), ("--csv", "1s")] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(["rr", "127.0.0.1", "--server-key", &server.fingerprint, "--time", time])
            .args(["--port", &server.port.to_string(), "--interval", "100ms"])
            .args(format.split_whitespace())
            .env("HOME", server.home())
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(141), "{format}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{format}");
    }
}

/// Mounts a file system of one page, measures, and lists what is there afterwards. The mount is
/// this shell's alone and goes with it.
const ON_A_FULL_DISK: &str = r#"
mkdir small && mount -t tmpfs -o size=4k none small || exit 77
"$@" --output small/run.json
code=$?
ls -A small
exit $code
"#;

#[test]
fn a_full_disk_leaves_no_file() {
    let server = Server::start("");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", ON_A_FULL_DISK, "sh", env!("CARGO_BIN_EXE_linerate")])
        .args(["rr", "127.0.0.1", "--count", "10", "--json", "--quiet"])
        .args(["--port", &server.port.to_string(), "--server-key", &server.fingerprint])
        .current_dir(server.home())
        .output();
    let output = match output {
        Ok(output)
            if !matches!(output.status.code(), Some(77) | None)
                && !output.stderr.starts_with(b"unshare:") =>
        {
            output
        }
        other => {
            return skip(&format!("a mount of one's own needs root and unshare: {other:?}"));
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a file was left");
}
