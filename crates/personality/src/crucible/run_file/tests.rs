use serde_json::json;

use super::*;
use crate::crucible::endpoint::{TopologyKind, Transport};

fn parse(value: &Value) -> Result<RunFile, String> {
    parse_run_file(&value.to_string(), Reading::Strict)
}

fn matrix() -> Value {
    json!({"sets": [{"params": [{"arg": "time", "vals": ["1"]}]}]})
}

fn current() -> Value {
    json!({
        "benchmarks": [{"name": "iperf", "ids": "1-2", "mv-params": matrix()}],
        "tags": {"mtu": "1500"},
        "run-params": {"num-samples": 3, "test-order": "r", "name": "A", "email": "a@example.org"},
        "tool-params": [{"tool": "sysstat"}, {"tool": "procstat", "enabled": "no"}],
        "endpoints": [
            {"type": "remotehosts", "settings": {"user": "me", "osruntime": "chroot"}, "remotes": [
                {"engines": [{"role": "client", "ids": [1, 2]}, {"role": "profiler"}],
                 "config": {"host": "a", "settings": {"user": "you", "disable-tools": true}}},
                {"engines": [{"role": "server", "ids": "1-2"}], "config": {"host": "b"}}]},
            {"type": "netns", "remotes": [{"engines": [{"role": "client", "ids": 7}],
                "config": {"namespace": "n", "address": "10.0.0.1"}}]},
            {"type": "local", "engines": [{"role": "server", "ids": 7}]},
        ],
    })
}

#[test]
fn current_form_is_read() {
    let file = parse(&current()).unwrap();
    let hosts: Vec<_> = file.endpoints.iter().flat_map(|endpoint| &endpoint.hosts).collect();
    let transports: Vec<Transport> = hosts.iter().map(|host| host.transport.clone()).collect();
    assert_eq!(
        transports,
        [
            Transport::Ssh("you@a".to_owned()),
            Transport::Ssh("me@b".to_owned()),
            Transport::Netns("n".to_owned()),
            Transport::Local,
        ]
    );
    assert_eq!(hosts[0].clients, [1, 2]);
    assert!(!hosts[0].has_tools && hosts[1].has_tools);
    assert_eq!(hosts[1].servers, [1, 2]);
    assert_eq!(hosts[2].address.as_deref(), Some("10.0.0.1"));
    assert_eq!(file.tags, [("mtu".to_owned(), "1500".to_owned())]);
    assert_eq!((file.params.samples, file.params.order), (3, TestOrder::Random));
    assert_eq!(file.tools, Some(vec!["sysstat".to_owned()]));
    assert_eq!(file.notes.len(), 1, "{:?}", file.notes);
}

#[test]
fn first_form_is_read() {
    let file = parse(&json!({
        "benchmark": "iperf",
        "mv-params": matrix(),
        "endpoints": [{"type": "remotehost", "host": "a", "user": "me", "client": [1, "2-3"],
            "server": 1, "userenv": "stream8",
            "config": [{"targets": "all", "settings": {"cpu-partitioning": 1}}]}],
    }))
    .unwrap();
    assert_eq!((file.benchmarks[0].name.as_str(), &file.benchmarks[0].ids), ("iperf", &None));
    assert_eq!(file.endpoints[0].hosts[0].clients, [1, 2, 3]);
    assert_eq!(file.notes.len(), 2);
}

#[test]
fn iterations_stand_in_place_of_a_matrix() {
    let mut file = current();
    let benchmark = json!({"name": "iperf", "ids": 1, "bench-params": [
        [{"arg": "time", "val": "1"}, {"arg": "length", "val": "1K", "role": "client", "id": "1"}]]});
    file["benchmarks"] = json!([benchmark]);
    let read = parse(&file).unwrap();
    let Matrix::Iterations(iterations) = &read.benchmarks[0].matrix else { panic!() };
    assert_eq!(iterations[0].len(), 2);
}

#[test]
fn topology_places_engines() {
    let remote = |host: &str| json!({"config": {"host": host}});
    let mut file = current();
    file["endpoints"] = json!([{"type": "remotehosts", "remotes": [remote("a"), remote("b")],
        "topology": {"kind": "internode", "scale_up": 4}}]);
    let topology = parse(&file).unwrap().endpoints[0].topology.clone().unwrap();
    assert_eq!(topology.kind, TopologyKind::Internode);
    assert_eq!((topology.scale_out, topology.scale_up), (None, 4));
}

#[test]
fn several_matrices_are_a_quirk() {
    let mut file = current();
    file["benchmarks"][0]["mv-params"] = json!([matrix(), {"sets": []}]);
    assert!(parse(&file).unwrap_err().contains("--compat"));
    assert!(parse_run_file(&file.to_string(), Reading::Compat).is_ok());
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let with = |pointer: &str, value: Value| {
        let mut file = current();
        *file.pointer_mut(pointer).unwrap() = value;
        file
    };
    let remote = "/endpoints/0/remotes/0";
    let refused = [
        (with("/benchmarks", json!([])), "benchmarks is empty"),
        (with("/benchmarks/0/ids", json!("2-1")), "benchmarks[0].ids"),
        (with("/benchmarks/0", json!({"name": "x", "ids": 1})), "lacks \"mv-params\""),
        (with("/endpoints/0/type", json!("kube")), "unknown key \"remotes\""),
        (with("/endpoints/0/type", json!("osp")), "one of remotehosts"),
        (with(remote, json!({"engines": [{"role": "client", "ids": 1}]})), "lacks \"config\""),
        (with(remote, json!({"config": {"host": "h"}})), "lacks \"engines\""),
        (with("/endpoints/0/settings", json!({"usr": "x"})), "unknown key \"usr\""),
        (with("/run-params", json!({"name": "x"})), "name and email"),
        (with("/run-params", json!({"num-samples": 0})), "run-params.num-samples"),
        (with("/run-params", json!({"num-samples": 100_000})), "10000 at most"),
        (with("/run-params", json!({"test-order": "x"})), "test-order"),
        (with("/run-params", json!({"ssh-key-bits": 1})), "ssh-key-bits"),
        (with("/tags", json!({"a": 1})), "tags.a"),
        (with("/tool-params", json!([{"name": "x"}])), "unknown key \"name\""),
    ];
    for (file, part) in refused {
        let why = parse(&file).unwrap_err();
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(parse_run_file("{", Reading::Strict).is_err());
}
