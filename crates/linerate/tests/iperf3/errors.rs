//! Every wrong command line with its sentence and exit code, as the original has them.

use std::net::TcpListener;
use std::process::Command;

use linerate::personality::iperf3::read;
use linerate_personality::iperf3::command_line::UsageError;
use linerate_personality::iperf3::fault::render_failure;
use linerate_personality::iperf3::release::Release;

use super::cli::document;
use super::ours;
use super::programs::{Program, serve};

/// Words, and what stands behind `parameter error - `.
const PARAMETERS: &[(&str, &str)] = &[
    ("", "must either be a client (-c) or server (-s)"),
    ("-u", "must either be a client (-c) or server (-s)"),
    ("-s -c h", "cannot be both server and client"),
    ("-c h -s", "cannot be both server and client"),
    ("-c h -p 0", "port number must be between 1 and 65535 inclusive"),
    ("-c h -p 65536", "port number must be between 1 and 65535 inclusive"),
    ("-c h --cport 0", "port number must be between 1 and 65535 inclusive"),
    ("-c h -f x", "bad format specifier (valid formats are in the set [kmgtKMGT])"),
    ("-c h -i 0.05", "invalid report interval (min = 0.1, max = 60 seconds)"),
    ("-c h -i 61", "invalid report interval (min = 0.1, max = 60 seconds)"),
    ("-c h -i x", "invalid report interval (min = 0.1, max = 60 seconds)"),
    ("-s -u", "some option you are trying to set is client only"),
    ("-s -A 0,1", "some option you are trying to set is client only"),
    ("-s --username x", "some option you are trying to set is client only"),
    ("-c h -D", "some option you are trying to set is server only"),
    ("-c h -t 86401", "test duration valid values are 0 to 86400 seconds"),
    ("-c h -t -1", "test duration valid values are 0 to 86400 seconds"),
    ("-c h -t x", "test duration valid values are 0 to 86400 seconds"),
    ("-s --server-max-duration 86401", "test duration valid values are 0 to 86400 seconds"),
    ("-c h -P 0", "invalid number of parallel streams (min = 1, max = 1048576)"),
    ("-c h -P 1048577", "invalid number of parallel streams (min = 1, max = 1048576)"),
    ("-c h -l 2M", "block size too large (maximum = 1048576 bytes)"),
    ("-c h -l -1", "block size too large (maximum = 1048576 bytes)"),
    ("-c h -u -l 15", "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
    ("-c h -u -l 65508", "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
    ("-c h -l 10x", "invalid unit value or suffix: '10x'"),
    ("-c h -n abc", "invalid unit value or suffix: 'abc'"),
    ("-c h -k -5", "invalid unit value or suffix: '-5'"),
    ("-c h -b 1x", "invalid unit value or suffix: '1x'"),
    ("-s --server-bitrate-limit 1q", "invalid unit value or suffix: '1q'"),
    ("-c h -w 513M", "socket buffer size too large (maximum = 536870912 bytes)"),
    ("-c h -M 32768", "TCP MSS too large (maximum = 32767 bytes)"),
    ("-c h -O 601", "bogus value for --omit (maximum = 600 seconds)"),
    ("-c h -n 5 -t 5", "only one test end condition (-t, -n, -k) may be specified"),
    ("-c h -n 5 -k 5", "only one test end condition (-t, -n, -k) may be specified"),
    ("-c h -b 1M/1001", "invalid burst count (maximum = 1000)"),
    ("-c h -b 1M/0", "invalid burst count (maximum = 1000)"),
    ("-c h -S 256", "bad TOS value (must be between 0 and 255 inclusive)"),
    (
        "-c h --dscp 64",
        "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, af31-33, \
         af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])",
    ),
    ("-c h -L 1048576", "unable to set IPv6 flow label"),
    ("-c h -R --bidir", "cannot be both reverse and bidirectional"),
    ("-c h -A x", "unable to set CPU affinity"),
    ("-c h -u -F f", "cannot transfer file using UDP"),
    ("-c h -R --rcv-timeout 50", "receive timeout value is incorrect or not in range"),
    ("-c h --rcv-timeout 500", "client receive timeout is valid only in receiving mode"),
    ("-c h --snd-timeout -1", "send timeout value is incorrect or not in range"),
    (
        "-c h --username x",
        "you must specify a username, password, and path to a valid RSA public key",
    ),
    (
        "-s --rsa-private-key-path x",
        "you must specify a path to a valid RSA private key and a user credential file",
    ),
    (
        "-s --rsa-private-key-path x --authorized-users-path /nowhere",
        "cannot access authorized users file",
    ),
    ("-s --time-skew-threshold 0", "skew threshold must be a positive number"),
    ("-s --idle-timeout 0", "idle timeout parameter is not positive or larger than allowed limit"),
    ("-s --server-bitrate-limit 1M/61", "invalid time interval for calculating average data rate"),
    (
        "-c h --cntl-ka=10/2/5",
        "control connection Keepalive period should be larger than the full retry period \
         (interval * count)",
    ),
    (
        "-s --max-tests 0",
        "invalid unit value or suffix: --max-tests is '0': write a number of tests from 1 to 1024",
    ),
    ("-c h --sctp", "no SCTP support available"),
];

const USAGE: &str =
    "\nUsage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";

fn ended(words: &str) -> (i32, String, String) {
    let output = ours(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn wrong_parameters_are_told_as_the_original_tells_them() {
    for (words, error) in PARAMETERS {
        let line: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let Err(UsageError::Parameter(failure)) = read(&line) else {
            panic!("{words} was taken");
        };
        assert_eq!(render_failure(&failure, Release::V3_21), *error, "{words}");
    }
}

#[test]
fn a_wrong_parameter_ends_the_program_with_1_and_the_usage() {
    let auth = "you must specify a username, password, and path to a valid RSA public key";
    for (words, error) in [
        ("", "must either be a client (-c) or server (-s)"),
        ("-c h -n 5q", "invalid unit value or suffix: '5q'"),
        ("-c h -A x", "unable to set CPU affinity"),
        ("-c h --username x --rsa-public-key-path /nowhere", auth),
    ] {
        let expected = format!("iperf3: parameter error - {error}\n{USAGE}");
        assert_eq!(ended(words), (1, String::new(), expected), "{words}");
    }
}

#[test]
fn invalid_flags_get_the_c_librarys_errors() {
    for (words, error) in [
        ("-c", "option requires an argument -- 'c'"),
        ("-c h -q", "invalid option -- 'q'"),
        ("-c h --nosuch", "unrecognized option '--nosuch'"),
        ("-c h --json=5", "option '--json' doesn't allow an argument"),
        ("-c h --port", "option '--port' requires an argument"),
    ] {
        let expected = format!("iperf3: {error}\n{USAGE}");
        assert_eq!(ended(words), (1, String::new(), expected), "{words}");
    }
}

#[test]
fn an_older_release_words_some_errors_otherwise() {
    let mut command = ours("-c h -t -1");
    let output = command.env("LINERATE_IPERF3_VERSION", "3.12").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.starts_with("iperf3: parameter error - test duration too long (maximum"),
        "{text}"
    );
    let mut command = ours("-v");
    let output = command.env("LINERATE_IPERF3_VERSION", "2.0").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it can be 3.12 or 3.21"));
}

#[test]
fn version_and_help_go_to_standard_output() {
    let (code, version, stderr) = ended("-v");
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(version.starts_with("iperf 3.21 (linerate "), "{version}");
    assert!(version.contains("Optional features available: CPU affinity setting"), "{version}");
    let (code, help, _) = ended("--help");
    assert_eq!(code, 0);
    super::matches(&help, "help.txt");
}

#[test]
fn streams_beyond_the_descriptors_are_told_with_both_numbers() {
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_linerate");
    let line = format!("ulimit -n 1000; exec {program} iperf3 -c 127.0.0.1 -p 1 -P 10001");
    let ended = shell.args(["-c", &line]).env_remove("LINERATE_IPERF3_VERSION").output().unwrap();
    let said = "iperf3: error - invalid number of parallel streams (min = 1, max = 1048576): 10001 \
                streams need 10033 open files where this process may have 1000: ask for fewer with -P, \
                or raise the limit (ulimit -n)\n";
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
        (Some(1), said)
    );
}

#[test]
fn a_server_that_cannot_begin_says_so_in_the_form_that_was_asked_for() {
    let taken = TcpListener::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = "error - unable to start listener for connections: Address already in use";
    let expected = format!("iperf3: {said}\niperf3: exiting\n");
    assert_eq!(ended(&format!("-s -p {port}")), (1, String::new(), expected));
    let (code, stdout, stderr) = ended(&format!("-s -p {port} -J"));
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert_eq!(document(&stdout)["error"], said);
    let (code, stdout, stderr) = ended(&format!("-s -p {port} --json-stream"));
    assert_eq!((code, stderr.as_str()), (1, ""));
    let first = format!("{{\"event\":\"error\",\"data\":\"{said}\"}}\n");
    assert!(stdout.starts_with(&first), "{stdout}");
}

#[test]
fn a_client_that_cannot_begin_says_so_in_the_form_that_was_asked_for() {
    let said = "unable to connect to server - server may have stopped running or use a different \
                port, firewall issue, etc.: Name or service not known";
    let words = "-c 127.0.0.1 -p 1 -B nowhere.invalid";
    assert_eq!(ended(words), (1, String::new(), format!("iperf3: error - {said}\n")));
    let (code, stdout, stderr) = ended(&format!("{words} -J"));
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert_eq!(document(&stdout)["error"], said);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log").display().to_string();
    assert_eq!(ended(&format!("{words} --logfile {log}")), (1, String::new(), String::new()));
    assert_eq!(std::fs::read_to_string(log).unwrap(), format!("iperf3: error - {said}\n"));
}

#[test]
fn a_congestion_control_that_is_not_there_is_told_in_the_originals_words_alone() {
    let (_server, port) = serve(Program::Ours, "");
    let said = "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on \
                this host";
    let (code, _, stderr) = ended(&format!("-c 127.0.0.1 -p {port} -C nosuch"));
    assert_eq!((code, stderr), (1, format!("iperf3: error - {said}\n")));
}

#[test]
fn a_server_says_what_rate_it_refused() {
    for (words, rate) in [("-b 3M", 3_000_000.into()), ("-b 0", serde_json::Value::Null)] {
        let (mut server, port) = serve(Program::Ours, "-J -F /nowhere/file");
        assert_eq!(ended(&format!("-c 127.0.0.1 -p {port} -u {words}")).0, 1);
        let document = document(&server.text());
        assert_eq!(document["error"], "error - cannot transfer file using UDP");
        assert_eq!(document["start"]["target_bitrate"], rate);
    }
}

#[test]
fn a_log_file_that_cannot_be_written_is_told() {
    let said = "iperf3: error - unable to open log file: No such file or directory\n";
    let ends = |words: &str, said: &str| {
        let words = format!("{words} --logfile /nowhere/log");
        assert_eq!(ended(&words), (1, String::new(), said.to_owned()), "{words}");
    };
    ends("-c h", said);
    ends("-s -J", said);
    ends("-s", &format!("{said}iperf3: exiting\n"));
}
