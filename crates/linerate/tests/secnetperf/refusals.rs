//! What can't be done is refused in the original's words, with its status. The texts are the original's
//! own output.

use crate::skipped::skip;
use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use super::fixture::{Server, command, run};

const HELP: &str = "\nPlease run 'secnetperf -help' for command line options.\n";

#[track_caller]
fn refused(words: &str, status: i32, text: &str) {
    let ended = run(words);
    assert_eq!(ended.stdout, format!("{text}App Main returning status {status}\n"), "{words}");
    assert_eq!(ended.exit_code, status, "{words}");
}

#[test]
fn options_that_go_together_or_not() {
    for (words, sentence) in [
        ("-rstream:1 -up:512", "Must specify a 'runtime' if using a repeat parameter!"),
        ("-rstream:1 -run:1s", "Must specify a 'streams' if using 'rstream'!"),
        ("-iosize:100 -up:1000", "'iosize' too small'!"),
        ("--mtu-limit:1199", "'--mtu-limit' takes 1200 to 65507 bytes of UDP payload, not '1199'!"),
        (
            "--mtu-limit:65508",
            "'--mtu-limit' takes 1200 to 65507 bytes of UDP payload, not '65508'!",
        ),
        ("--mtu-limit:x", "'--mtu-limit' takes 1200 to 65507 bytes of UDP payload, not 'x'!"),
        ("-tcp:1 -encrypt:0 -up:1000", "TCP mode doesn't support disabling encryption!"),
        ("-tcp:1 -cibir:aabb -up:1000", "TCP mode doesn't support CIBIR!"),
        ("-cibir:00112233445566 -up:100", "Cibir ID must be a hex string <= 6 bytes."),
        (
            "-bind:bogus -up:100",
            "Failed to decode bind IP address: 'bogus'!\nMust be *, a IPv4 or a IPv6 address.",
        ),
    ] {
        refused(&format!("-target:127.0.0.1 {words}"), 22, &format!("{sentence}\n{HELP}"));
    }
    let sentence = "iouring is not supported on this build";
    refused("-target:127.0.0.1 -io:iouring -up:1000", 95, &format!("{sentence}\n{HELP}"));
    let sentence = "Failed to decode IP address: 'foo'!\nMust be *, a IPv4 or a IPv6 address.";
    refused("-bind:foo", 22, &format!("{sentence}\n{HELP}"));
    refused(
        "-target:no.such.host.invalid",
        22,
        &format!("Failed to resolve remote address!\n{HELP}"),
    );
}

#[test]
fn profiles_that_are_none() {
    refused("-exec:foo", 22, "Failed to parse execution profile[foo]!\n");
    refused("-target:a -scenario:foo", 22, "Failed to parse scenario profile[foo]!\n");
}

#[test]
fn help_is_given_with_the_originals_status() {
    for words in ["-help", "-target:a -HELP", "/?"] {
        let ended = run(words);
        assert_eq!(ended.exit_code, 22, "{words}");
        assert!(ended.stdout.contains("secnetperf usage:"), "{words}");
        assert!(ended.stdout.ends_with("App Main returning status 22\n"), "{words}");
    }
}

#[test]
fn the_kernels_driver_is_not_here() {
    let ended = run("-driverName:x");
    assert_eq!(ended.stdout, "Kernel mode main not supported on this platform\n");
    assert_eq!(ended.exit_code, 95);
}

#[test]
fn a_server_that_is_not_there_is_111() {
    // Nothing listens on the port: it was bound and closed.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ended = run(&format!("-target:127.0.0.1 -port:{port} -tcp:1 -up:1000"));
    assert_eq!(
        ended.stdout,
        "Started!\n\nError: No Successful Connections!\nApp Main returning status 111\n"
    );
    assert_eq!(ended.exit_code, 111);
    let ended = run(&format!("-target:127.0.0.1 -port:{port} -up:1000 -maxruntime:300 -trimout"));
    assert_eq!(ended.stdout, "Error: No Successful Connections!\n");
    assert_eq!(ended.exit_code, 111);
}

#[test]
fn a_limit_of_latencies_is_told_where_the_original_tells_it() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let limited = "Warning! Limiting request latency tracking to 1073741823 requests\n";
    for (seconds, warning) in [(135, ""), (536, ""), (537, limited)] {
        let ended =
            run(&format!("-target:127.0.0.1 -port:{port} -tcp:1 -plat:1 -up:8 -run:{seconds}s"));
        assert_eq!(
            ended.stdout,
            format!(
                "{warning}Started!\n\nError: No Successful Connections!\n\
                 App Main returning status 111\n"
            )
        );
    }
}

#[test]
fn json_modes_print_only_documents_on_standard_output() {
    for (words, status) in [
        ("-target:127.0.0.1 -iosize:100 -up:1000", 22),
        ("-target:no.such.host.invalid", 22),
        ("-exec:foo", 22),
        ("-driverName:x", 95),
        ("-target:127.0.0.1 -bind:192.0.2.1 -down:1000", 5),
    ] {
        let output = command(&format!("{words} --json")).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{words}");
        let told = String::from_utf8(output.stderr).unwrap();
        let sentence = told.strip_prefix("secnetperf: ").and_then(|rest| rest.lines().next());
        assert!(sentence.is_some_and(|sentence| sentence.len() > 10), "{words}: {told}");
        let output = command(&format!("{words} --ndjson")).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words}");
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&record["event"], &record["status"]), (&"error".into(), &status.into()));
        let message = record["message"].as_str().and_then(|message| message.lines().next());
        assert_eq!(message, sentence, "{words}");
    }
}

#[test]
fn the_next_address_of_a_name_is_tried_where_the_first_refuses() {
    // A mount namespace of its own has a table of hosts with two addresses of one name.
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("hosts");
    std::fs::write(&table, "::1 two.test\n127.0.0.1 two.test\n").unwrap();
    let server = Server::start("");
    for carriage in ["-tcp:1", ""] {
        let script = "mount --bind \"$1\" /etc/hosts || exit 77\nshift\nexec \"$@\"";
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "sh", "-c", script, "sh"]).arg(&table);
        let words = format!("-target:two.test -port:{} -down:1000 {carriage}", server.port);
        let client = command(&words);
        inside.arg(client.get_program()).args(client.get_args());
        let output = inside.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        if told.starts_with("unshare") || output.status.code() == Some(77) {
            return skip(&format!("a mount namespace needs root: {told}"));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{carriage}: {text} {told}");
        assert!(text.contains("Completed 1 connections and 1 streams!"), "{carriage}: {text}");
        let next = format!("trying 127.0.0.1:{}", server.port);
        assert!(told.contains("no connection to [::1]") && told.contains(&next), "{told}");
    }
}
