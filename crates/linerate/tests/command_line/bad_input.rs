//! Each bad input has its sentence and its exit code, and prints no data.

use std::fs;

use serde_json::{Value, json};

use super::run;

fn refused(words: &str, exit_code: i32, sentence: &str) {
    let ended = run(words);
    assert_eq!(ended.exit_code, exit_code, "{words}: {}", ended.stderr);
    assert!(ended.stderr.contains(sentence), "{words}: no {sentence:?} in: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{words}");
}

#[test]
fn contradictory_flags() {
    for (words, one, other) in [
        ("stream a --up --down", "--up", "--down"),
        ("stream a --up --both", "--up", "--both"),
        ("stream a --duplex --both", "--duplex", "--both"),
        ("stream a --tcp --udp", "--tcp", "--udp"),
        ("stream a --tls --udp", "--tls", "--udp"),
        ("rr a --tcp --tls", "--tcp", "--tls"),
        ("stream a --time 1s --bytes 1", "--time", "--bytes"),
        ("stream a --bytes 1 --count 1", "--bytes", "--count"),
        ("stream a --time 1s --count 1", "--time", "--count"),
        ("stream a --json --csv", "--json", "--csv"),
        ("rr a --json --ndjson", "--json", "--ndjson"),
        ("stream a --rate 1M --rate-per-flow 1M", "--rate", "--rate-per-flow"),
        ("stream a -4 -6", "-4", "-6"),
        ("rr a --size 1 --request 1", "--size", "--request"),
    ] {
        let ended = run(words);
        assert_eq!(ended.exit_code, 2, "{words}");
        for flag in [one, other, "cannot be used with"] {
            assert!(ended.stderr.contains(flag), "{words}: {}", ended.stderr);
        }
    }
    refused("stream ::1 -4", 2, "the other family");
    refused("stream a:1 --port 2", 2, "two ports: 1");
    refused("rr a --timeout 1s", 2, "needs --udp");
    refused("rr a --verify", 2, "unexpected argument '--verify'");
    refused("rr a --arrivals poisson", 2, "--rate <N>");
    refused("stream a --zero-copy --udp", 2, "--zero-copy: ");
    refused("stream a --discard --tls", 2, "--discard: ");
    refused("stream a --zero-copy --splice", 2, "both zero copy and splice");
    refused("stream a --discard --splice", 2, "both discard and splice");
    refused("stream a --discard --verify", 2, "--verify: ");
    refused("rr a --omit auto --count 5", 2, "--omit auto takes a --time");
    refused("rr a --omit auto --time 700ms", 2, "--omit auto takes 40 intervals");
    refused("rr a --omit auto --interval 1s", 2, "--omit auto takes 40 intervals");
    refused("rr a --omit often", 2, "; or auto");
    refused("rr a --repeat 2 --size 1,2", 2, "each --size is another: give one --size");
    refused("rr a --repeat 2 --start-at -", 2, "cannot be used with");
}

#[test]
fn explain_is_refused_where_further_runs_tell_nothing() {
    for (words, why) in [
        ("--udp", "is for TCP and TLS, whose senders count what they send again: leave out --udp"),
        ("--quic", "leave out --quic"),
        ("--repeat 2", "--repeat makes several: leave out one of them"),
        ("--precision 2%", "--precision makes several: leave out one of them"),
        ("--both", "explains one direction"),
        ("--duplex", "explains one direction"),
        ("--size 1,2", "each --size is another: give one --size"),
    ] {
        let words = format!("stream a --explain {words}");
        refused(&words, 2, "--explain ");
        refused(&words, 2, why);
    }
    for command in ["rr", "connect", "media", "loaded"] {
        let sentence = format!("{command} has no '--explain': only `linerate stream` over TCP");
        refused(&format!("{command} a --explain"), 2, &sentence);
    }
    for words in ["--explain", "--tls --down --explain"] {
        let ended = run(&format!("stream a {words} --dry-run"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{words}");
    }
}

#[test]
fn numbers_that_make_no_sense() {
    for (words, sentence) in [
        ("rr a --repeat 0", "a number of runs is from 1 to 1000"),
        ("rr a --repeat 1001", "a number of runs is from 1 to 1000"),
        ("rr a --precision 0%", "no number of runs makes a figure exact"),
        ("rr a --precision 2s", "is no percentage"),
        ("stream a --flows 0", "number of flows 0 is out of range"),
        ("stream a --flows -1", "negative"),
        ("stream a --flows 1000001", "out of range"),
        ("stream a --flows 5G", "too much"),
        ("stream a --flows 99999999999999999999", "'--flows <N>'"),
        ("stream a --threads 0", "threads 0 is out of range"),
        ("stream a --size 0", "out of range"),
        ("stream a --size -1", "negative"),
        ("stream a --size 8G", "too much"),
        ("stream a --size 1,x", "such as"),
        ("stream a --size 1.5", "'--size <BYTES>'"),
        ("stream a --time 0", "out of range"),
        ("stream a --time -1s", "negative"),
        ("stream a --time 10x", "such as 500ms, 10s"),
        ("stream a --time 31536000000h", "'--time <TIME>'"),
        ("stream a --bytes 0", "--bytes: "),
        ("stream a --bytes 10X", "such as"),
        ("stream a --count 0", "--count: "),
        ("stream a --rate 0", "out of range"),
        ("stream a --rate -5M", "negative"),
        ("stream a --rate 10Gbyte", "such as"),
        ("stream a --dscp 64", "0 to 63"),
        ("stream a --dscp -1", "0 to 63"),
        ("stream a --port 0", "1 to 65535"),
        ("stream a --port 65536", "1 to 65535"),
        ("stream a --cpu 0-", "no list of processors"),
        ("stream a --bind nowhere", "no address"),
        ("rr a --udp --timeout 0", "out of range"),
        ("rr a --request 0", "out of range"),
        ("rr a --rate 0", "out of range"),
        ("rr a --rate -1", "negative"),
        ("rr a --rate 1Mx", "such as"),
        ("rr a --outstanding 0", "1 to 65536"),
        ("rr a --outstanding 65537", "1 to 65536"),
        ("rr a --flows 9 --active 0", "1 to 9"),
        ("rr a --flows 9 --active 10", "1 to 9"),
        ("rr a --flows 9 --active 2 --threads 3", "at most as many threads as active flows"),
        ("rr a --flows 9 --active 2 --udp", "needs TCP or TLS"),
        ("rr a --flows 9 --active 2 --quic", "needs TCP or TLS"),
        ("rr a --flows 9 --active 2 --rate 9", "a schedule decides"),
        ("rr a --flows 9 --active 2 --outstanding 2", "one outstanding request"),
        ("rr a --arrivals random", "'--arrivals <NAME>'"),
        ("serve --port 65536", "'--port <PORT>'"),
        ("serve --max-tests 0", "would refuse every client"),
        ("serve --max-rate 0", "allows no traffic"),
        ("serve --max-time 0", "allows no test"),
        ("self --time 0", "out of range"),
        ("self --time x", "such as"),
    ] {
        refused(words, 2, sentence);
    }
}

#[test]
fn what_latency_under_load_is_not_measured_with() {
    for (flags, sentence) in [
        ("--udp", "--udp: datagrams have no congestion control"),
        ("--csv", "--csv: loaded has no rows of samples: use --json"),
        ("--ndjson", "--ndjson: loaded has no records: use --json"),
        ("--verbose", "--json has all that is known"),
        ("--report x.html", "--report: loaded has no page"),
        ("--start-at -", "--start-at: loaded has four phases"),
        ("--tls --quic", "cannot be used with"),
        ("--time 0", "--time: measured time 0 ns is out of range"),
        ("--idle-time 0", "--idle-time: measured time 0 ns is out of range"),
        ("--time 10x", "such as 500ms, 10s"),
        ("--omit auto", "such as 500ms, 10s"),
        ("--flows 0", "number of flows 0 is out of range"),
        ("--congestion reno2000-of-mine", "--congestion: "),
        ("--tag a=1 --tag a=2", "given twice"),
        ("--rate 5M", "unexpected argument '--rate'"),
    ] {
        refused(&format!("loaded a {flags}"), 2, sentence);
    }
    let dry = run("loaded a --dry-run");
    let plans: Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!((dry.exit_code, plans.as_array().unwrap().len()), (0, 19), "{}", dry.stderr);
}

#[test]
fn hosts_that_are_none() {
    refused("stream", 2, "<HOST>");
    refused("stream http://example.net/", 2, "is a URL");
    refused("stream example.net:0", 2, "no port");
    refused("stream [::1", 2, "between the brackets");
    refused("stream 1:2:3", 2, "no IPv6 address");
    refused("rr no-such-host.invalid --quiet", 3, "no-such-host.invalid");
}

#[test]
fn marks_times_and_keys() {
    refused("stream a --tag plain", 2, "give key=value");
    refused("stream a --tag =x", 2, "give key=value");
    refused("stream a --tag a=1 --tag a=2", 2, "given twice");
    refused("stream a --start-at tomorrow", 2, "RFC 3339");
    refused("stream a --start-at @1", 2, "in the past");
    refused("stream a --start-at 2001-01-01T00:00:00Z", 2, "in the past");
    refused("stream a --server-key abc", 2, "64 hexadecimal digits");
    refused("stream a --key no-such-file", 1, "can't read the shared key no-such-file");
    refused("serve --require-key no-such-file", 1, "can't read the shared key no-such-file");
}

#[test]
fn ndjson_has_a_record_of_what_is_wrong() {
    let ended = run("stream a --ndjson --flows 0");
    assert_eq!(ended.exit_code, 2);
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["record"], "error");
    assert_eq!(record["version"], 1);
    assert_eq!(record["exit_code"], 2);
    assert!(record["message"].as_str().unwrap().contains("number of flows"));
}

#[test]
fn links_that_make_no_sense() {
    refused("link", 2, "--profile");
    refused("link --profile moon", 2, "there is no profile \"moon\": geo, leo");
    refused("link no-such-file.toml", 1, "can't read no-such-file.toml");
    refused("link --profile geo --time 0", 2, "allows no test");
    refused("link --profile geo --left a/b", 2, "can't name a namespace");
    refused("link --profile geo --left a --right a", 2, "give two names");
    refused("link --profile geo --udp", 2, "--relay");
    refused("link --profile geo --relay 127.0.0.1:1", 2, "is no relay");
    refused("link --profile geo --relay 127.0.0.1:9=127.0.0.1:9", 2, "would relay to itself");
    refused("link --profile geo --relay 192.0.2.1:9=127.0.0.1:9", 1, "can't listen on 192.0.2.1:9");
    refused("link --profile geo --cpu 1 --sleep", 2, "cannot be used with");
}

#[test]
fn a_description_that_contradicts_itself_is_named_with_its_field() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("path.toml"), "both.queue = '9 packets'").unwrap();
    let ended = super::run_in(home.path(), "link path.toml");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (2, ""));
    let sentence = "path.toml: link description: to_right.queue: nothing ever waits without a rate";
    assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
}

#[test]
fn plan_values_out_of_range_are_named_by_field() {
    let home = tempfile::tempdir().unwrap();
    let written = |plans: &Value| fs::write(home.path().join("plans.json"), plans.to_string());
    for (words, field, value, sentence) in [
        ("stream a", "/workload/flows", json!(0), "workload.flows: number of flows 0 is out of"),
        (
            "stream a",
            "/workload/socket/dscp",
            json!(100),
            "workload.socket.dscp: DSCP 100 is out of",
        ),
        (
            "stream a",
            "/workload/kind/send_bytes",
            json!(0),
            "workload.kind.send_bytes: size of a send 0",
        ),
        (
            "stream a --udp",
            "/workload/kind/send_bytes",
            json!(1),
            "workload.kind.send_bytes: datagram",
        ),
        ("rr a", "/workload/kind/timeout_ns", json!(0), "workload.kind.timeout_ns: time-out 0 ns"),
        ("rr a", "/workload/verify", json!(true), "workload.verify: verification with requests"),
        ("stream a --quic --streams 1", "/port", json!(0), "port: port 0 is out of range"),
        ("stream a", "/host", json!("a b"), "host: 'a b' is no host"),
    ] {
        let dry = super::run_in(home.path(), &format!("{words} --dscp 1 --dry-run"));
        let mut document: Value = serde_json::from_str(&dry.stdout).unwrap();
        let plan = document["plan"].take();
        let mut wrong = plan.clone();
        *wrong.pointer_mut(field).unwrap_or_else(|| panic!("{words}: {field}")) = value;
        written(&wrong).unwrap();
        let ended = super::run_in(home.path(), "run plans.json");
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (2, ""), "{field}: {}", ended.stderr);
        let expected = format!("plans.json: {sentence}");
        assert!(ended.stderr.contains(&expected), "no {expected:?} in: {}", ended.stderr);
        // Of several plans, the number of the plan comes first.
        written(&json!([plan, wrong])).unwrap();
        let ended = super::run_in(home.path(), "run plans.json");
        let expected = format!("plans.json: plan 2: {sentence}");
        assert!(ended.stderr.contains(&expected), "no {expected:?} in: {}", ended.stderr);
    }
}
