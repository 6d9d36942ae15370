//! Metrics that are pushed to a collector, which stands in the test.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use super::index::{assert_ended, header, read_request};
use super::results::keep_matrix;
use super::{command, run_in};

/// What a collector was sent: the first line, the credential, and the message.
struct Pushed {
    line: String,
    credential: Option<String>,
    message: Value,
}

/// Answers requests one after the other, each with one of these heads and bodies.
fn collect(answers: Vec<(&'static str, &'static str)>) -> (SocketAddr, Receiver<Pushed>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, pushed) = channel();
    thread::spawn(move || {
        for (head, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (asked, message) = read_request(&stream).unwrap();
            assert_eq!(header(&asked, "content-type"), Some("application/json"));
            let pushed = Pushed {
                line: asked.lines().next().unwrap().to_owned(),
                credential: header(&asked, "authorization").map(str::to_owned),
                message: serde_json::from_str(&message).unwrap(),
            };
            told.send(pushed).unwrap();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (address, pushed)
}

#[test]
fn a_run_is_pushed_once() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    std::fs::write(home.path().join("auth"), "Bearer t0\n").unwrap();
    let (address, pushed) = collect(vec![("503 Busy\r\nRetry-After: 1", "full"), ("200 OK", "{}")]);
    let words =
        format!("results metrics last --store s.db --otlp http://{address} --auth-file auth");
    // Info, end, both numbers of cells, three statuses and two results.
    let said = ["1 runs: 9 data points pushed, 0 rejected"];
    assert_ended(&run_in(home.path(), &words), 0, &said);
    let (first, second) = (pushed.recv().unwrap(), pushed.recv().unwrap());
    assert_eq!(first.message, second.message);
    assert_eq!(second.line, "POST /v1/metrics HTTP/1.1");
    assert_eq!(second.credential.as_deref(), Some("Bearer t0"));
    let of_resource = &second.message["resourceMetrics"][0];
    assert_eq!(of_resource["resource"]["attributes"][0]["key"], "service.name");
    let metrics = of_resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let result = metrics.iter().find(|metric| metric["name"] == "linerate.run.result").unwrap();
    let point = &result["gauge"]["dataPoints"][0];
    assert_eq!(
        (&point["asDouble"], &point["timeUnixNano"]),
        (&4.5.into(), &"1700000020000000000".into())
    );
    assert_eq!(point["attributes"][0]["value"]["stringValue"], "nightly?[2J");
    // No run has a threshold, so nothing tells of a verdict.
    assert!(metrics.iter().all(|metric| metric["name"] != "linerate.run.verdict"));
}

#[test]
fn what_a_collector_does_not_take_is_told() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    let partly = r#"{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"too old"}}"#;
    let (address, pushed) = collect(vec![
        ("200 OK", partly),
        ("400 Bad Request", r#"{"message":"no such tenant"}"#),
        ("200 OK", "<html>"),
    ]);
    let mut with_variable = command(home.path(), "results metrics --store s.db --otlp");
    let with_variable = with_variable.arg(format!("http://{address}/otlp/push"));
    let output = with_variable.env("LINERATE_OTLP_AUTH", "Basic u:p").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("too old") && said.contains("rejected 2 of 9 data points"), "{said}");
    let seen = pushed.recv().unwrap();
    assert_eq!(seen.line, "POST /otlp/push HTTP/1.1");
    assert_eq!(seen.credential.as_deref(), Some("Basic dTpw"));
    let words = format!("results metrics --store s.db --otlp http://{address}/");
    assert_ended(&run_in(home.path(), &words), 1, &["HTTP status 400, no such tenant"]);
    assert_ended(&run_in(home.path(), &words), 1, &["what can't be understood"]);
}

#[test]
fn pushes_that_make_no_sense_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let metrics = |words: &str| run_in(home.path(), &format!("results metrics {words}"));
    assert_ended(&metrics("--otlp http://h"), 0, &["no finished run to push"]);
    assert_ended(&metrics("last --otlp http://h"), 2, &["there is no store"]);
    keep_matrix(&home.path().join("s.db"));
    assert_ended(&metrics("last --store s.db"), 2, &["--otlp"]);
    assert_ended(&metrics("--ca ca.pem --store s.db"), 2, &["--otlp"]);
    assert_ended(&metrics("none --otlp http://h --store s.db"), 2, &["results list"]);
    assert_ended(&metrics("--otlp h:4318 --store s.db"), 2, &["--otlp h:4318", "http://collector"]);
    assert_ended(
        &metrics("--otlp http://u:secret@h --store s.db"),
        2,
        &["--auth-file", "LINERATE_OTLP_AUTH"],
    );
}
