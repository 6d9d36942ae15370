//! Every way out of the store has the figure that the run's own document has.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use linerate_results::export::CdmVersion;
use linerate_results::export::cells::each_document;
use linerate_results::export::document::Form;
use linerate_results::{Store, StoreError};
use serde_json::Value;

use super::{command, run_in};

/// A server, ended when dropped.
struct Server(Child);

impl Server {
    /// Starts it and waits until it takes connections at a port.
    fn start(home: &Path, words: &str, port: u16) -> Self {
        let mut server = command(home, words);
        let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.try_wait().unwrap().is_none(), "{words} has ended");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

fn json_of(home: &Path, words: &str) -> Value {
    let ended = run_in(home, words);
    assert_eq!(ended.exit_code, 0, "{words}: {}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The figure of the document that a store keeps of its only run.
fn own_figure(home: &Path) -> f64 {
    let lines = run_in(home, "results export last --store r.db").stdout;
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = lines.find(|line| line["record"] == "document").unwrap();
    let summary = &line["document"]["summary"];
    let requests = summary["transactions_per_s"].as_f64();
    let requests = requests.or(summary["connections_per_s"].as_f64());
    let received = || summary["goodput_bps"].as_f64().map(|bps| bps / 1e9);
    let sent = || summary["sent_bps"].as_f64().map(|bps| bps / 1e9);
    requests.or_else(received).or_else(sent).unwrap()
}

/// What documents of an index come to: value times time over the period.
fn figure_of_documents(path: &Path) -> f64 {
    let store = Store::open_to_read(path).unwrap();
    let run = store.find("last").unwrap();
    let primary = store.details(run.id).unwrap().iterations[0].primary_metric.clone();
    let (mut sum, mut series, mut period) = (0.0, Vec::new(), None);
    each_document(&store, run.id, (CdmVersion::V10, &Form::default()), |document| {
        let body: Value = serde_json::from_str(&document.body).unwrap();
        let described = &body["metric_desc"];
        if let (Some(source), Some(metric)) =
            (described["source"].as_str(), described["type"].as_str())
            && primary == format!("{source}::{metric}")
        {
            series.push(described["metric_desc-uuid"].clone());
        }
        if let (Some(begin), Some(end)) =
            (body["period"]["begin"].as_i64(), body["period"]["end"].as_i64())
        {
            period = Some((begin, end));
        }
        let data = &body["metric_data"];
        if let (Some(value), Some((begin, end))) = (data["value"].as_f64(), period)
            && series.contains(&described["metric_desc-uuid"])
        {
            let from = data["begin"].as_i64().unwrap().max(begin);
            let to = data["end"].as_i64().unwrap().min(end);
            sum += value * (to - from + 1).max(0) as f64;
        }
        Ok::<_, StoreError>(())
    })
    .unwrap();
    let (begin, end) = period.unwrap();
    sum / (end - begin + 1) as f64
}

#[track_caller]
fn assert_equal(what: &str, words: &str, found: f64, own: f64, share: f64) {
    assert!((found / own - 1.0).abs() <= share, "{words}: {what} has {found}, its document {own}");
}

/// Runs a command that keeps its run, and compares all outputs.
fn compare_outputs(home: &Path, words: &str) {
    let path = home.join("r.db");
    for name in ["r.db", "r.db-wal", "r.db-shm"] {
        let _absent = std::fs::remove_file(home.join(name));
    }
    let output = command(home, words).env("LINERATE_STORE", &path).output().unwrap();
    assert!(path.exists(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    let own = own_figure(home);
    let shown = json_of(home, "results show last --json --store r.db");
    assert_equal(
        "show",
        words,
        shown["iterations"][0]["mean"]["mean"].as_f64().unwrap(),
        own,
        1e-9,
    );
    let metrics = run_in(home, "results metrics --store r.db").stdout;
    let result = metrics.lines().find(|line| line.starts_with("linerate_run_result{")).unwrap();
    let value: f64 = result.rsplit(' ').next().unwrap().parse().unwrap();
    assert_equal("metrics", words, value, own, 1e-9);
    let result = json_of(
        home,
        &format!(
            "crucible get result --run {} --store r.db --output-format json",
            shown["run"]["run"].as_str().unwrap()
        ),
    );
    let value = result["runs"][0]["iterations"][0]["results"][0]["mean"].as_f64().unwrap();
    assert_equal("crucible get", words, value, own, 1e-9);
    // Series count whole milliseconds and whole intervals, and a flood's last ones differ from the others.
    assert_equal("the index", words, figure_of_documents(&path), own, 0.1);
    let diff = json_of(home, "results diff last last --json --store r.db");
    assert!(
        !diff["comparison"]["iterations"][0]["figures"].as_array().unwrap().is_empty(),
        "{words}"
    );
}

#[test]
fn native_runs_have_one_figure_in_all_outputs() {
    let home = tempfile::tempdir().unwrap();
    let port = crate::quiet::free_port();
    let _server = Server::start(home.path(), &format!("serve -p {port} --bind 127.0.0.1"), port);
    for words in [
        "stream --rate 50M",
        "stream --rate 50M --reverse",
        "stream --rate 50M --bidir",
        "stream --rate 50M --tls --insecure",
        "stream --rate 50M --quic --insecure",
        "stream --rate 20M --udp",
        "media --insecure",
        "rr --rate 500",
        "rr --udp --rate 500",
        "rr --tls --insecure --rate 500",
        "rr --quic --insecure --rate 500",
        "connect --rate 100",
    ] {
        let (workload, rest) = words.split_once(' ').unwrap();
        compare_outputs(home.path(), &format!("{workload} 127.0.0.1 -p {port} -t 2 {rest}"));
    }
}

#[test]
fn other_tools_have_one_figure_in_all_outputs() {
    let home = tempfile::tempdir().unwrap();
    let port = crate::quiet::free_port();
    {
        let _server = Server::start(home.path(), &format!("iperf3 -s -p {port}"), port);
        for rest in ["-b 50M", "-b 50M -R", "-u -b 20M"] {
            compare_outputs(home.path(), &format!("iperf3 -c 127.0.0.1 -p {port} -t 2 {rest}"));
        }
    }
    let port = crate::quiet::free_port();
    let _server = Server::start(home.path(), &format!("netserver -D -p {port}"), port);
    for test in ["TCP_RR", "UDP_RR", "TCP_CRR", "TCP_STREAM"] {
        compare_outputs(home.path(), &format!("netperf -H 127.0.0.1 -p {port} -l 2 -t {test}"));
    }
}
