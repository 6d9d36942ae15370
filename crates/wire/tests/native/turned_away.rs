//! Clients that are refused, give up, or start too late; servers that refuse.

use linerate_wire::Machine;
use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::frame::{TO_CLIENT_LIMIT_BYTES, encode_frame};
use linerate_wire::native::message::{FlowCount, MAX_PLAN_BYTES, RefusalCause};
use linerate_wire::native::server::{MAX_UNSENT_BYTES, Server, ServerConfig, ServerEvent};
use linerate_wire::native::{Fault, Stage};

use crate::pair::{Link, Pair, client_config, now, server_config};

fn carry(client: &mut Client, server: &mut Server) {
    for _ in 0..50 {
        while let Some(frame) = client.poll_message() {
            server.handle_bytes(now(0), &frame);
        }
        while let Some(frame) = server.poll_message() {
            client.handle_bytes(now(0), &frame);
        }
    }
}

fn say(json: &str) -> Vec<u8> {
    encode_frame(json.as_bytes(), TO_CLIENT_LIMIT_BYTES).unwrap()
}

/// A conversation that has come to `stage`.
fn at(stage: Stage) -> (Client, Server) {
    let mut client = Client::new(client_config(), now(0));
    let mut server = Server::new(server_config(), now(0));
    for step in 0..6 {
        if client.stage() >= stage {
            break;
        }
        match step {
            1 => server.admit([1; 16], [2; 16], "{}"),
            2 => server.ready(),
            3 => client.start(None),
            4 => server.started(5),
            5 => client.finish(),
            _ => {}
        }
        carry(&mut client, &mut server);
    }
    assert_eq!(client.stage(), stage);
    while client.poll_event().is_some() || server.poll_event().is_some() {}
    (client, server)
}

#[test]
fn a_wrong_key_and_none_are_refused() {
    for proof in [Some([8; 32]), None] {
        let client = ClientConfig { proof, ..client_config() };
        let pair = Pair::with(Link::default(), client, server_config()).run();
        let cause = RefusalCause::Key;
        assert!(matches!(
            &pair.client_events[..],
            [ClientEvent::Refused { cause: RefusalCause::Key, .. }]
        ));
        assert_eq!(pair.server_events, [ServerEvent::TurnedAway { cause }]);
    }
}

#[test]
fn a_key_that_nobody_asks_for_is_no_harm() {
    let server = ServerConfig { expected_proof: None, ..server_config() };
    let pair = Pair::with(Link::default(), client_config(), server).run();
    assert!(matches!(pair.client_events.last(), Some(ClientEvent::Result(_))));
}

#[test]
fn a_client_of_other_versions_is_told_both() {
    let mut server = Server::new(server_config(), now(0));
    server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[2,3],"software":"x"}"#));
    let cause = RefusalCause::Version;
    assert_eq!(server.poll_event(), Some(ServerEvent::TurnedAway { cause }));
    assert!(server.is_over());
    let mut client = Client::new(client_config(), now(0));
    client.handle_bytes(now(0), &server.poll_message().unwrap());
    let Some(ClientEvent::Refused { cause: RefusalCause::Version, text }) = client.poll_event()
    else {
        panic!("not refused")
    };
    assert!(text.contains("version 1") && text.contains("2, 3"), "{text}");
}

#[test]
fn a_client_that_speaks_more_versions_is_welcome() {
    let mut server = Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
    server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[3,1,2],"software":"x"}"#));
    assert!(!server.is_over());
    let hello = String::from_utf8(server.poll_message().unwrap()).unwrap();
    assert!(hello.contains("\"version\":1"), "{hello}");
}

#[test]
fn a_server_that_answers_in_another_version_is_named() {
    let mut client = Client::new(client_config(), now(0));
    client.handle_bytes(now(0), &say(r#"{"kind":"hello","version":9,"software":"x"}"#));
    let fault = Fault::Version { theirs: 9 };
    assert_eq!(client.poll_event(), Some(ClientEvent::Failed(fault)));
}

#[test]
fn a_refusal_names_its_cause_at_every_stage_before_the_load() {
    for stage in [Stage::Asking, Stage::Admitted, Stage::Ready, Stage::Starting] {
        let (mut client, mut server) = at(stage);
        server.refuse(RefusalCause::Busy, "two tests run; try again later");
        carry(&mut client, &mut server);
        let text = "two tests run; try again later".to_owned();
        let cause = RefusalCause::Busy;
        assert_eq!(client.poll_event(), Some(ClientEvent::Refused { cause, text }), "{stage:?}");
        assert!(client.is_over() && server.is_over());
    }
}

#[test]
fn a_client_gives_up_at_every_stage_before_the_load() {
    for stage in [Stage::Asking, Stage::Admitted, Stage::Ready, Stage::Starting] {
        let (mut client, mut server) = at(stage);
        client.finish();
        assert!(client.is_over());
        carry(&mut client, &mut server);
        assert_eq!(server.poll_event(), Some(ServerEvent::Finish), "{stage:?}");
        assert!(server.is_over(), "{stage:?}");
    }
}

#[test]
fn a_server_reports_its_failure_at_every_stage() {
    let stages = [Stage::Asking, Stage::Admitted, Stage::Ready, Stage::Starting, Stage::Running];
    for stage in stages {
        let (mut client, mut server) = at(stage);
        server.error("no more descriptors");
        carry(&mut client, &mut server);
        let fault = Fault::Reported("no more descriptors".to_owned());
        assert_eq!(client.poll_event(), Some(ClientEvent::Failed(fault)), "{stage:?}");
    }
}

#[test]
fn commands_out_of_place_do_nothing() {
    let (mut client, mut server) = at(Stage::Asking);
    client.start(None);
    client.sent(&[FlowCount { flow: 0, datagrams: 1 }]);
    server.ready();
    server.started(1);
    server.sample("{}".to_owned());
    server.sent(&[FlowCount { flow: 0, datagrams: 1 }]);
    server.result("{}".to_owned());
    assert!(client.poll_message().is_none() && server.poll_message().is_none());
    assert_eq!((client.stage(), server.stage()), (Stage::Asking, Stage::Asking));
}

#[test]
fn samples_are_dropped_for_a_client_that_does_not_read_and_results_are_not() {
    let (_, mut server) = at(Stage::Running);
    let sample = "s".repeat(100_000);
    for _ in 0..100 {
        server.sample(sample.clone());
    }
    server.sample("s".repeat(2 * MAX_UNSENT_BYTES));
    server.result("r".repeat(2 * MAX_UNSENT_BYTES));
    let frames: Vec<Vec<u8>> = std::iter::from_fn(|| server.poll_message()).collect();
    assert_eq!(frames.len() as u64 - 1 + server.dropped_samples(), 101);
    assert!(server.dropped_samples() > 80);
    assert!(frames.last().unwrap().len() > 2 * MAX_UNSENT_BYTES);
}

#[test]
fn counts_of_many_flows_go_in_several_messages() {
    let (mut client, mut server) = at(Stage::Running);
    let counts: Vec<FlowCount> =
        (0..10_000).map(|flow| FlowCount { flow, datagrams: u64::from(flow) }).collect();
    client.sent(&counts);
    carry(&mut client, &mut server);
    let mut told = Vec::new();
    while let Some(ServerEvent::PeerSent(part)) = server.poll_event() {
        told.extend(part);
    }
    assert_eq!(told, counts);
}

#[test]
fn a_document_that_fits_no_message_fails_here_and_not_there() {
    let plan = "p".repeat(MAX_PLAN_BYTES + 1);
    let mut client = Client::new(ClientConfig { plan, ..client_config() }, now(0));
    let mut server = Server::new(server_config(), now(0));
    carry(&mut client, &mut server);
    let failed = std::iter::from_fn(|| client.poll_event()).last();
    assert!(matches!(failed, Some(ClientEvent::Failed(Fault::Unsendable(_)))), "{failed:?}");
    assert!(!server.is_over());

    let (mut client, mut server) = at(Stage::Running);
    server.result("r".repeat(TO_CLIENT_LIMIT_BYTES));
    let failed = server.poll_event();
    assert!(matches!(failed, Some(ServerEvent::Failed(Fault::Unsendable(_)))), "{failed:?}");
    carry(&mut client, &mut server);
    let failed = client.poll_event();
    assert!(matches!(failed, Some(ClientEvent::Failed(Fault::Reported(_)))), "{failed:?}");
}
