//! Connections that come and go, more at once than a process may have open files.

use std::time::Duration;

use serde_json::Value;

use crate::alone;
use crate::low_limit::measure;
use crate::many::{SOURCES, tcp_sockets};

#[test]
fn twenty_thousand_connections_are_held_where_a_process_may_have_4000_open_files() {
    let _one = alone();
    let words = format!(
        "connect --flows 20000 --transfer 100 --verify --hold 5s --close rst --time 11s \
         --timeout 30s {SOURCES}"
    );
    let (document, peak) = std::thread::scope(|scope| {
        let run = scope.spawn(|| measure(4000, &words));
        let mut peak = 0;
        while !run.is_finished() {
            peak = tcp_sockets().max(peak);
            std::thread::sleep(Duration::from_millis(20));
        }
        (run.join().unwrap(), peak)
    });
    assert_eq!(document.outcome(), "complete", "{}", document.message());
    assert_eq!(document.json()["summary"]["errors"], Value::Null);
    // Both ends of each are this machine's.
    assert!(peak >= 39_000, "{peak} sockets at the peak");
    assert!(document.count("transactions") >= 20_000);
    for role in ["client", "server"] {
        let threads = document.report(role)["host"]["ran_on_cpus"].as_array().unwrap().len();
        assert!(threads >= 6, "{role}: {threads}");
    }
}
