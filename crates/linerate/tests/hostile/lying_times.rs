//! Servers that say times which can't be: no goodput made of them is trusted.

use std::io::Read;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::hostile_servers::{Act, Server, met};

/// The server's result: half of what the client sends, and these times.
fn say_result(server: &mut Server, times: &Value) -> Option<()> {
    server.start()?;
    server.await_message("finish")?;
    let host = json!({
        "version": "1", "hostname": "h", "kernel": "k", "architecture": "a", "cpus_online": 1,
    });
    let mut flow = json!({ "flow": 0, "received": { "bytes": 125_000, "calls": 10 } });
    for (name, value) in times.as_object()? {
        flow[name] = value.clone();
    }
    let report = json!({
        "role": "server", "host": host, "flows": [flow], "elapsed_ns": 1,
        "cpu": { "user_s": 0, "system_s": 0 },
    });
    server.say(&json!({ "kind": "result", "report": report.to_string() }));
    server.stay()
}

fn take_in(mut socket: TcpStream) {
    let mut bytes = [0; 65_536];
    while socket.read(&mut bytes).is_ok_and(|length| length > 0) {}
}

const CASES: [(&str, Act, &str); 5] = [
    (
        "a span of a tenth",
        |server| say_result(server, &json!({ "from_ns": 0, "to_ns": 100_000_000 })),
        "within 0.100 s by the server's clock",
    ),
    (
        "a span of a nanosecond",
        |server| say_result(server, &json!({ "from_ns": 5, "to_ns": 6 })),
        "within 0.000000001 s by the server's clock",
    ),
    (
        "no times",
        |server| say_result(server, &json!({})),
        "125000 bytes from the client and no time",
    ),
    (
        "an end before the start",
        |server| say_result(server, &json!({ "from_ns": 9, "to_ns": 5 })),
        "and no time",
    ),
    (
        "an hour",
        |server| say_result(server, &json!({ "from_ns": 0, "to_ns": 3_600_000_000_000_u64 })),
        "received for 3600.000 s by its own clock",
    ),
];

#[test]
fn a_goodput_over_times_that_contradict_the_clients_is_untrustworthy() {
    std::thread::scope(|scope| {
        for (how, act, words) in CASES {
            scope.spawn(move || {
                let (ended, _) = met("stream --up --rate 1M --time 2s", act, take_in);
                let document = ended.document(6);
                assert_eq!(document.outcome(), "untrustworthy", "{how}");
                let message = document.message();
                assert!(message.contains(words), "{how}: no {words:?} in {message}");
            });
        }
    });
}
