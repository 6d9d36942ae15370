//! A flow that breaks under load is data: it is counted, and the others go on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use crate::conversation::{Conversation, connect_data, stream, workload};
use crate::ends::Server;
use crate::resources::{Held, assert_idle};

/// What each flow carries here.
const BYTES: usize = 100_000;

/// A client made by hand whose two flows stand and whose load runs.
fn running(server: &Server, direction: &str) -> (Conversation, [TcpStream; 2], [u8; 16]) {
    running_plan(server, &workload(&stream(direction), "tcp", 2))
}

/// Likewise, of a workload with two flows.
fn running_plan(server: &Server, plan: &Value) -> (Conversation, [TcpStream; 2], [u8; 16]) {
    let mut conversation = Conversation::connect(server.port);
    conversation.greet();
    let token = conversation.ask(plan);
    let flows = [0, 1].map(|flow| connect_data(server.port, flow, token));
    assert_eq!(conversation.hear()["kind"], "ready");
    conversation.say(&json!({ "kind": "start" }));
    assert_eq!(conversation.hear()["kind"], "started");
    (conversation, flows, token)
}

/// A flow that is cut off when the load's time is up has ended as planned, and is told all the same.
#[test]
fn flows_that_break_after_the_time_is_up_are_told() {
    let server = Server::start("");
    let mut plan = workload(&stream("up"), "tcp", 2);
    plan["end"] = json!({ "by": "time", "duration_ns": 300_000_000 });
    let (mut conversation, [mut first, second], _) = running_plan(&server, &plan);
    first.write_all(&vec![0; BYTES]).unwrap();
    // Until the server's clock says so, too.
    std::thread::sleep(Duration::from_secs(1));
    reset(first);
    std::thread::sleep(Duration::from_millis(300));
    second.shutdown(std::net::Shutdown::Write).unwrap();
    let report = finish(&mut conversation);
    assert_eq!(report.get("errors"), None, "{report}");
    let told = |note: &Value| note.as_str().unwrap().contains("1 of 2 flows broke after");
    assert!(report["notes"].as_array().unwrap().iter().any(told), "{report}");
}

fn reset(flow: TcpStream) {
    set_socket_linger(&flow, Some(Duration::ZERO)).unwrap();
    drop(flow);
}

/// Ends the load; the server's report.
fn finish(conversation: &mut Conversation) -> Value {
    conversation.say(&json!({ "kind": "finish" }));
    loop {
        let message = conversation.hear();
        match message["kind"].as_str() {
            Some("result") => {
                return serde_json::from_str(message["report"].as_str().unwrap()).unwrap();
            }
            kind => assert_eq!(kind, Some("sample"), "{message}"),
        }
    }
}

#[test]
fn a_reset_flow_is_counted_by_its_kind() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let (mut conversation, [mut first, mut second], _) = running(&server, "up");
    first.write_all(&vec![0; BYTES]).unwrap();
    // All of it has to be there: a reset throws away what is still on its way.
    std::thread::sleep(Duration::from_millis(300));
    reset(first);
    // And the server has to see that before its client is done.
    std::thread::sleep(Duration::from_millis(300));
    second.write_all(&vec![0; BYTES]).unwrap();
    second.shutdown(std::net::Shutdown::Write).unwrap();
    let report = finish(&mut conversation);
    assert_eq!(report["errors"], json!({ "reset": 1 }), "{report}");
    for flow in report["flows"].as_array().unwrap() {
        assert_eq!(flow["received"]["bytes"], BYTES, "{flow}");
        let broken = flow["flow"] == 0;
        assert_eq!(flow["error"].as_str().is_some_and(|e| e.starts_with("reset")), broken);
    }
    server.measure("rr --count 3").document(0);
    drop((conversation, second));
    assert_idle(&server, idle, Duration::from_secs(5));
}

#[test]
fn other_flows_continue_when_one_fails() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let (mut conversation, [first, mut second], _) = running(&server, "down");
    reset(first);
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..20 {
        second.read_exact(&mut bytes).unwrap();
    }
    conversation.say(&json!({ "kind": "finish" }));
    let mut rest = 0;
    while let length @ 1.. = second.read(&mut bytes).unwrap() {
        rest += length;
    }
    assert!(rest < 64 << 20, "{rest} bytes came after the end");
    drop((second, conversation));
    assert_idle(&server, idle, Duration::from_secs(5));
    server.measure("rr --count 3").document(0);
}

#[test]
fn connections_that_belong_to_no_test_are_closed() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let (mut conversation, flows, token) = running(&server, "up");
    let strange = [
        // No test has this token; this test has no flow 2; its flow 0 stands already.
        connect_data(server.port, 0, [9; 16]),
        connect_data(server.port, 2, token),
        connect_data(server.port, 0, token),
    ];
    for mut socket in strange {
        assert_eq!(socket.read(&mut [0; 16]).unwrap_or(0), 0, "{socket:?}");
    }
    drop(flows);
    assert_eq!(finish(&mut conversation)["flows"].as_array().unwrap().len(), 2);
    drop(conversation);
    assert_idle(&server, idle, Duration::from_secs(5));
}
