//! Clients that are refused, give up, or start too late; servers that refuse.

use linerate_wire::Machine;
use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::frame::{TO_CLIENT_LIMIT_BYTES, encode_frame};
use linerate_wire::native::message::{FlowCount, MAX_PLAN_BYTES, RefusalCause};
use linerate_wire::native::server::{MAX_UNSENT_BYTES, Server, ServerConfig, ServerEvent};
use linerate_wire::native::{Fault, LeaseWish, Stage};

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
    server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[3,4],"software":"x"}"#));
    let cause = RefusalCause::Version;
    assert_eq!(server.poll_event(), Some(ServerEvent::TurnedAway { cause }));
    assert!(server.is_over());
    let mut client = Client::new(client_config(), now(0));
    client.handle_bytes(now(0), &server.poll_message().unwrap());
    let Some(ClientEvent::Refused { cause: RefusalCause::Version, text }) = client.poll_event()
    else {
        panic!("not refused")
    };
    assert!(text.contains("versions 1, 2") && text.contains("3, 4"), "{text}");
}

#[test]
fn a_client_that_speaks_more_versions_is_welcome() {
    let mut server = Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
    server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[3,1,2],"software":"x"}"#));
    assert!(!server.is_over());
    let hello = String::from_utf8(server.poll_message().unwrap()).unwrap();
    assert!(hello.contains("\"version\":2"), "{hello}");
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

/// Takes a client and a server through a test to its result.
fn through_a_test(client: &mut Client, server: &mut Server) {
    carry(client, server);
    server.admit([0xcd; 16], [0xab; 16], "{}");
    server.ready();
    carry(client, server);
    client.start(None);
    carry(client, server);
    server.started(0);
    carry(client, server);
    client.finish();
    carry(client, server);
    server.result("{}".to_owned());
    carry(client, server);
}

fn results(client: &mut Client) -> usize {
    let events = std::iter::from_fn(|| client.poll_event());
    events.filter(|event| matches!(event, ClientEvent::Result(_))).count()
}

#[test]
fn a_client_that_stays_has_one_test_after_the_other() {
    let mut client = Client::new(ClientConfig { stays: true, ..client_config() }, now(0));
    let mut server = Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
    for number in 0..5 {
        client.ask("{\"a\":\"next\"}".to_owned(), false);
        through_a_test(&mut client, &mut server);
        assert_eq!(results(&mut client), 1, "{number}");
        assert_eq!((client.stage(), server.stage()), (Stage::Delivering, Stage::Delivering));
    }
    let asked = std::iter::from_fn(|| server.poll_event());
    let asked = asked.filter(|event| matches!(event, ServerEvent::Request { .. }));
    assert_eq!(asked.count(), 5);
    server.handle_end(now(0));
    assert!(server.is_over() && server.poll_event().is_none());
}

#[test]
fn a_client_that_stays_with_a_server_of_version_1_leaves_after_its_test() {
    let mut client = Client::new(ClientConfig { stays: true, ..client_config() }, now(0));
    client.handle_bytes(now(0), &say(r#"{"kind":"hello","version":1,"software":"x"}"#));
    let admitted = format!(
        r#"{{"kind":"admitted","run_id":"{0}","token":"{0}","host":"{{}}"}}"#,
        "ab".repeat(16)
    );
    client.handle_bytes(now(0), &say(&admitted));
    client.handle_bytes(now(0), &say(r#"{"kind":"ready"}"#));
    client.start(None);
    client.handle_bytes(now(0), &say(r#"{"kind":"started","utc_ns":1}"#));
    client.finish();
    client.handle_bytes(now(0), &say(r#"{"kind":"result","report":"{}"}"#));
    assert_eq!((results(&mut client), client.stage()), (1, Stage::Over));
}

#[test]
fn a_second_request_in_version_1_or_before_the_result_breaks_the_protocol() {
    let request = say(r#"{"kind":"request","plan":"{}"}"#);
    let mut server = Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
    server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[1],"software":"x"}"#));
    server.handle_bytes(now(0), &request);
    server.admit([0xcd; 16], [0xab; 16], "{}");
    server.ready();
    server.handle_bytes(now(0), &say(r#"{"kind":"start"}"#));
    server.started(0);
    server.handle_bytes(now(0), &say(r#"{"kind":"finish"}"#));
    server.result("{}".to_owned());
    while server.poll_message().is_some() {}
    server.handle_bytes(now(0), &request);
    assert!(server.is_over());
    let (_, mut server) = at(Stage::Running);
    server.handle_bytes(now(0), &request);
    assert!(server.is_over());
}

/// What the server was asked, and what the client was told of a lease.
fn ask_with(lease: LeaseWish, grant: Option<[u8; 16]>) -> (Option<LeaseWish>, Option<[u8; 16]>) {
    let mut client = Client::new(ClientConfig { lease, ..client_config() }, now(0));
    let mut server = Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
    carry(&mut client, &mut server);
    let asked = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
        ServerEvent::Request { lease, .. } => Some(lease),
        _ => None,
    });
    if let Some(token) = grant {
        server.grant_lease(token);
    }
    server.admit([0xcd; 16], [0xab; 16], "{}");
    carry(&mut client, &mut server);
    assert_eq!(client.stage(), Stage::Admitted);
    let told = std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        ClientEvent::Leased(token) => Some(token),
        _ => None,
    });
    (asked, told)
}

#[test]
fn the_wish_for_a_lease_and_its_token_cross() {
    for wish in [LeaseWish::None, LeaseWish::Begin, LeaseWish::Join([9; 16])] {
        assert_eq!(ask_with(wish, None), (Some(wish), None), "an older server grants none");
    }
    assert_eq!(ask_with(LeaseWish::Begin, Some([5; 16])), (Some(LeaseWish::Begin), Some([5; 16])));
}

#[test]
fn a_lease_within_a_lease_and_a_token_that_is_none_break_the_protocol() {
    let token = "ab".repeat(16);
    for lease in [
        format!(r#""begins_lease":true,"lease":"{token}""#),
        r#""lease":"ab""#.to_owned(),
        r#""lease":7"#.to_owned(),
        format!(r#""lease":"{0}","lease":"{0}""#, token),
    ] {
        let mut server =
            Server::new(ServerConfig { expected_proof: None, ..server_config() }, now(0));
        server.handle_bytes(now(0), &say(r#"{"kind":"hello","versions":[2],"software":"x"}"#));
        server
            .handle_bytes(now(0), &say(&format!(r#"{{"kind":"request","plan":"{{}}",{lease}}}"#)));
        let failed = std::iter::from_fn(|| server.poll_event())
            .any(|event| matches!(event, ServerEvent::Failed(Fault::Protocol(_))));
        assert!(failed && server.is_over(), "{lease}");
    }
}

/// The client's stage after these seconds, of which each brings a pong and, where asked for, another flow.
fn stage_after(seconds: u64, flows_come: bool) -> Stage {
    let (mut client, mut server) = at(Stage::Admitted);
    for second in 0..seconds {
        let now = now(second * 1_000_000_000);
        client.handle_timeout(now);
        while let Some(frame) = client.poll_message() {
            server.handle_bytes(now, &frame);
        }
        while let Some(frame) = server.poll_message() {
            client.handle_bytes(now, &frame);
        }
        if flows_come {
            client.flow_stood(now);
        }
    }
    client.stage()
}

#[test]
fn a_client_waits_for_a_ready_server_from_its_last_flow_on() {
    assert_eq!(stage_after(115, false), Stage::Admitted);
    assert_eq!(stage_after(125, false), Stage::Over);
    assert_eq!(stage_after(500, true), Stage::Admitted);
}
