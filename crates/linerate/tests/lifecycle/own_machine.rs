//! `self`, from its server's start to the end of its last test.

use serde_json::Value;
use tempfile::TempDir;

use crate::document::Document;
use crate::ends::program;

#[test]
fn every_transport_is_measured() {
    let home = TempDir::new().unwrap();
    let words = ["self", "--time", "300ms", "--json"];
    let output = program(home.path()).args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut measured = Vec::new();
    for run in runs {
        let document = Document::from_value(run);
        assert_eq!(document.outcome(), "complete", "{}", document.message());
        let workload = &document.json()["plan"]["workload"];
        let (kind, transport) = (&workload["kind"]["name"], &workload["transport"]);
        let moved = if kind == "rr" { "transactions" } else { "received_bytes" };
        assert!(document.count(moved) > 0, "{workload}");
        measured.push(format!("{} {}", transport.as_str().unwrap(), kind.as_str().unwrap()));
    }
    measured.sort();
    measured.dedup();
    let all =
        ["quic rr", "quic stream", "tcp rr", "tcp stream", "tls stream", "udp rr", "udp stream"];
    assert_eq!(measured, all);
}
