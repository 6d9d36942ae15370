//! Servers with a correct control connection that don't take part in the load: the client's result reports that,
//! in time.

use std::io::Write;
use std::net::TcpStream;
use std::thread::{scope, sleep};
use std::time::Duration;

use linerate_measure::report::{EndReport, FlowReport};
use linerate_measure::sample::{Role, Traffic};
use serde_json::json;

use crate::hostile_servers::{Server, met};

/// Longer than any client of these tests may take.
const FOR_EVER: Duration = Duration::from_secs(150);
/// So much later may all of it be where the machine is busy.
const BUSY: Duration = Duration::from_secs(15);

/// Starts, and has a result that claims something for each flow.
fn goes_along(server: &mut Server) -> Option<()> {
    server.start()?;
    server.await_message("finish")?;
    let received = Some(Traffic { bytes: 1, calls: Some(1) });
    let report = EndReport {
        role: Role::Server,
        flows: vec![FlowReport { flow: 0, received, ..FlowReport::default() }],
        elapsed_ns: 1,
        ..EndReport::nothing(Role::Server)
    };
    let report = serde_json::to_string(&report).unwrap();
    server.say(&json!({ "kind": "result", "report": report }));
    server.stay()
}

/// Sends responses when the client has begun to send requests that are longer than all buffers, and
/// takes none of them.
fn answers_unread(mut socket: TcpStream) {
    for _ in 0..4 {
        sleep(Duration::from_secs(1));
        let _gone = socket.write_all(&[0; 8]);
    }
    sleep(FOR_EVER);
}

#[test]
fn a_response_before_its_request_was_sent_ends_the_flow() {
    let schedule = "rr --rate 1000 --request 1M --response 1 --time 10s";
    for words in ["rr --outstanding 8 --request 1M --response 1 --count 100", schedule] {
        let (ended, _) = met(words, goes_along, answers_unread);
        let document = ended.document(6);
        assert!(document.message().contains("early_response"), "{}", document.message());
        assert!(!ended.stderr.contains("panicked"), "{words}: {}", ended.stderr);
        let error = document.report("client")["flows"][0]["error"].to_string();
        let sentence = "a response came before its request had been sent";
        assert!(error.contains(sentence), "{words}: {error}");
    }
}

#[test]
fn a_load_without_a_time_does_not_wait_for_ever() {
    scope(|scope| {
        for words in [
            "rr --count 5",
            "rr --outstanding 8 --count 100",
            "stream --up --bytes 1G",
            "stream --up --count 100000",
            "stream --down --bytes 1M",
        ] {
            scope.spawn(move || {
                let (ended, _) = met(words, goes_along, |socket| {
                    sleep(FOR_EVER);
                    drop(socket);
                });
                assert!(ended.took < Duration::from_secs(34) + BUSY, "{words}: {:?}", ended.took);
                let document = ended.document(6);
                let message = document.message();
                assert!(message.contains("given_up"), "{words}: {message}");
                let notes = document.report("client")["notes"].to_string();
                assert!(notes.contains("nothing moved for 30 s"), "{words}: {notes}");
            });
        }
    });
}
