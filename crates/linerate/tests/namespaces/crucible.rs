//! A run file of Crucible over two namespaces: servers tell the addresses of their interfaces.

use std::process::Command;

use serde_json::{Value, json};

use crate::in_network;
use crate::network::SERVER_DEVICE;

#[test]
fn client_reaches_the_address_of_the_servers_interface() {
    in_network(|network| {
        let folder = tempfile::tempdir().unwrap();
        let remote = |role: &str, namespace: &str| {
            let engines = [json!({"role": role, "ids": 1})];
            json!({"engines": engines, "config": {"namespace": namespace}})
        };
        let file = json!({
            "benchmarks": [{"name": "iperf", "ids": 1, "mv-params": {"sets": [{"params": [
                {"arg": "time", "vals": ["1"]}, {"arg": "bitrate", "vals": ["4M"]},
                {"arg": "ipv", "vals": ["4", "6"], "role": "all"},
                {"arg": "ifname", "vals": [SERVER_DEVICE], "role": "server"}]}]}}],
            "run-params": {"max-sample-failures": 3},
            "endpoints": [{"type": "netns", "remotes": [
                remote("client", &network.client), remote("server", &network.server)]}],
        });
        std::fs::write(folder.path().join("run.json"), file.to_string()).unwrap();
        let crucible = |words: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
                .arg("crucible")
                .args(words.split_whitespace())
                .current_dir(folder.path())
                .env("LINERATE_STORE", folder.path().join("results.db"))
                .output()
                .unwrap();
            // A busy machine's measurement is not to be trusted.
            assert!(matches!(output.status.code(), Some(0 | 6)), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        crucible("run run.json --id run-1");
        let shown = crucible("get result --run run-1 --output-format json");
        let document: Value = serde_json::from_str(&shown).unwrap();
        for iteration in document["runs"][0]["iterations"].as_array().unwrap() {
            let value = iteration["samples"][0]["values"]["iperf::rx-Gbps"].as_f64().unwrap();
            assert!(value > 0.0, "{document}");
        }
    });
}
