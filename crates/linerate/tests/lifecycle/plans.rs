//! `run` measures what `--dry-run` prints, and what somebody wrote.

use std::fs;

use serde_json::{Value, json};

use crate::document::Document;
use crate::ends::{Client, Server};

/// What `--dry-run` prints of a client's command.
fn printed(server: &Server, words: &str) -> String {
    let ended = server.start_client_of("127.0.0.1", &format!("{words} --dry-run")).finish();
    assert_eq!(ended.exit_code, Some(0), "{words}: {}", ended.stderr);
    ended.stdout
}

/// The runs of the plans in this text.
fn runs(server: &Server, name: &str, text: &str) -> Vec<Document> {
    fs::write(server.home().join(name), text).unwrap();
    let words = format!("run {name} --json --quiet --server-key {}", server.fingerprint);
    let ended = Client::start(server.home(), &words).finish();
    assert_eq!(ended.exit_code, Some(0), "{name}: {}", ended.stderr);
    match serde_json::from_str(&ended.stdout).unwrap() {
        Value::Array(several) => several.into_iter().map(Document::from_value).collect(),
        single => vec![Document::from_value(single)],
    }
}

#[test]
fn every_dry_run_has_a_plan_that_runs() {
    let server = Server::start("");
    for words in [
        "stream --up --bytes 1M --title t --tag a=b",
        "stream --both --tls --flows 2 --count 50 --size 1000 --verify --no-delay --threads 1",
        "stream --udp --down --rate 5M --time 200ms --interval 100ms --dscp 10",
        "media --down --flows 2 --fps 50 --rate 1M --time 200ms --buffer-depth 50ms",
        "stream --quic --bytes 300k --flows 3 --streams 3 --pacing off --cipher chacha20",
        "stream --count 20 --size 100,2000 --bind 127.0.0.0/29",
        "rr --count 50 --request 10 --response 2000",
        "rr --udp --rate 500 --time 200ms --arrivals poisson --timeout 900ms --outstanding 50",
        "rr --quic --datagram --count 20 --flows 2",
        "connect --tls --count 5 --handshake resumed",
        "connect --count 10 --close rst --flows 2 --rate 400",
    ] {
        let text = printed(&server, words);
        let dry: Value = serde_json::from_str(&text).unwrap();
        let dry = if dry.is_array() { dry } else { json!([dry]) };
        let runs = runs(&server, "plan.json", &text);
        assert_eq!(runs.len(), dry.as_array().unwrap().len(), "{words}");
        for (run, dry) in runs.iter().zip(dry.as_array().unwrap()) {
            assert_eq!(run.json()["plan"], dry["plan"], "{words}");
            assert_eq!(run.outcome(), "complete", "{words}");
        }
    }
}

#[test]
fn dry_run_of_self_has_plans_that_run() {
    let server = Server::start("");
    let ended = Client::start(server.home(), "self --time 100ms --dry-run").finish();
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (Some(0), ""));
    let mut dry: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(dry.as_array().unwrap().len(), 8);
    for document in dry.as_array_mut().unwrap() {
        let plan = &mut document["plan"];
        assert_eq!((&plan["host"], &plan["port"]), (&json!("127.0.0.1"), &json!(5250)));
        assert_eq!(plan["workload"]["end"]["duration_ns"], 100_000_000);
        plan["port"] = server.port.into();
    }
    let runs = runs(&server, "plan.json", &dry.to_string());
    for (run, dry) in runs.iter().zip(dry.as_array().unwrap()) {
        assert_eq!(run.json()["plan"], dry["plan"]);
    }
    assert_eq!(runs.len(), 8);
}

#[test]
fn a_plan_file_runs_against_each_of_its_hosts() {
    let server = Server::start("");
    let port = server.port;
    let text = format!(
        "host = ['127.0.0.1', 'localhost', '127.0.0.1:{port}', '[::ffff:127.0.0.1]:{port}']
        port = {port}
        [workload]
        kind = {{ name = 'rr', request_bytes = 1, response_bytes = 1, timeout_ns = 1000000000 }}
        transport = 'tcp'
        end = {{ by = 'count', count = 10 }}
        flows = 1
        interval_ns = 1000000000"
    );
    let runs = runs(&server, "plan.toml", &text);
    let hosts: Vec<_> = runs.iter().map(|run| run.json()["plan"]["host"].clone()).collect();
    assert_eq!(hosts, ["127.0.0.1", "localhost", "127.0.0.1", "::ffff:127.0.0.1"]);
    assert!(runs.iter().all(|run| run.count("transactions") == 10));
}

/// A server that can't be reached says nothing of the others.
#[test]
fn the_next_host_is_measured_where_one_is_not_there() {
    let server = Server::start("--bind 127.0.0.1");
    let mut dry: Value = serde_json::from_str(&printed(&server, "rr --count 5")).unwrap();
    dry["plan"]["host"] = json!(["127.0.0.2", "127.0.0.1"]);
    fs::write(server.home().join("plan.json"), dry.to_string()).unwrap();
    let words = format!("run plan.json --json --server-key {}", server.fingerprint);
    let ended = Client::start(server.home(), &words).finish();
    let outcomes: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended.exit_code, Some(3), "{}", ended.stderr);
    assert_eq!(outcomes[0]["status"]["outcome"], "failed");
    assert_eq!(outcomes[1]["status"]["outcome"], "complete");
}
