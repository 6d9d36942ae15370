//! What can't be done, and what is said of it.

use std::net::UdpSocket;

use super::fixture::{folder, run};

#[test]
fn a_wrong_command_line_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    for (words, stdout, stderr) in [
        ("-c host --cc bbr", "", "invalid argument passed to --cc\n"),
        ("-c host -t 0", "", "invalid argument passed to -t\n"),
        ("-c host -p 70000", "", "invalid argument passed to -p\n"),
        ("-s -c host", "cannot use -c in server mode\n", ""),
    ] {
        let ended = run(words, folder.path());
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, stdout), "{words}");
        assert_eq!(ended.stderr, stderr, "{words}");
    }
    for words in ["", "-h", "-c host --bogus"] {
        let ended = run(words, folder.path());
        assert_eq!(ended.exit_code, 1, "{words}");
        assert!(ended.stdout.starts_with("Usage: qperf "), "{words}: {}", ended.stdout);
    }
    assert_eq!(run("--version", folder.path()).exit_code, 0);
}

#[test]
fn a_server_without_its_files_says_which_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run("-s", folder.path());
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("server.crt (--tls-cert)"), "{}", ended.stderr);
    assert!(ended.stderr.contains("No such file or directory"), "{}", ended.stderr);
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ended = run(&format!("-s 127.0.0.1 -p {port}"), folder().path());
    assert_eq!(ended.exit_code, 1);
    let where_to = format!("127.0.0.1:{port}");
    assert!(ended.stderr.contains(&where_to), "{}", ended.stderr);
    assert!(ended.stderr.contains("in use"), "{}", ended.stderr);
}

#[test]
fn a_key_log_that_can_t_be_written_is_told_with_its_option() {
    let folder = folder();
    for words in ["-s 127.0.0.1 -p 0", "-c 127.0.0.1"] {
        let ended = run(&format!("{words} -l nowhere/keys"), folder.path());
        assert_eq!(ended.exit_code, 1, "{words}");
        let expected = "qperf: can't write the key log nowhere/keys: ";
        assert!(ended.stderr.starts_with(expected), "{words}: {}", ended.stderr);
        assert!(ended.stderr.ends_with("; give another -l\n"), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_host_that_is_unknown_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run("-c nowhere.invalid", folder.path());
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("\"nowhere.invalid\" is unknown"), "{}", ended.stderr);
}

#[test]
fn a_client_that_nobody_answers_gives_up_after_30_s() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&format!("-c 127.0.0.1 -p {port}"), folder.path());
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("no data came from 127.0.0.1"), "{}", ended.stderr);
    // The way out of another command is none here.
    assert!(!ended.stderr.contains("--mtu"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("total:"), "{}", ended.stdout);
}

#[test]
fn every_option_that_help_lists_is_in_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/qperf.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let help = run("-h", folder.path()).stdout;
    let rows = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let names = |row: &str| {
        let spelled = row.trim().split("  ").next().unwrap_or_default().to_owned();
        let words = spelled.split([' ', ',']).filter(|word| word.starts_with('-'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let all: Vec<String> = rows.flat_map(names).collect();
    assert!(all.len() == 40, "{all:?}");
    for name in all {
        let is_there = ["`", " ", "="].iter().any(|end| manual.contains(&format!("`{name}{end}")));
        assert!(is_there, "{name} is not in the manual");
    }
}
