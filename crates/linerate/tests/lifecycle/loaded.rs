//! Latency under load against a server of this machine: which tests are made, what is printed, how it ends. No latency
//! or rate of this machine is judged.

use std::collections::HashSet;
use std::time::Duration;

use linerate_measure::loaded::{Ended, Loaded, Part, PhaseName};
use linerate_measure::{Outcome, Transport};
use rustix::process::Signal;
use serde_json::Value;

use crate::ends::{Ended as Over, Server, holds_within};
use crate::resources::{Held, assert_idle};

const SHORT: &str = "loaded --time 200ms --idle-time 200ms --omit 50ms";

/// How often it is measured at most where the machine has no time for it.
const ATTEMPTS: usize = 3;

/// The document of a client, whose exit code it has.
#[track_caller]
fn read(stdout: &str, exit_code: Option<i32>) -> Loaded {
    let loaded: Loaded =
        serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!(exit_code, Some(loaded.status.exit_code.into()), "{:?}", loaded.status);
    loaded
}

/// Measures at a server that takes one test and ends then: all tests are one to it.
fn measure_at_a_server_for_one_test() -> (Server, Loaded) {
    let server = Server::start("--max-tests 1 --one-off");
    let words = format!("{SHORT} --quic --title here --tag a=b --exclusive");
    let ended = server.start_client(&words).finish();
    let loaded = read(&ended.stdout, ended.exit_code);
    (server, loaded)
}

#[test]
fn each_phase_has_its_tests_and_their_documents() {
    // A busy machine may make a run untrustworthy, and an end that has no processor for seconds is given up.
    let is_measured = |loaded: &Loaded| matches!(loaded.status.exit_code, 0 | 6);
    let (mut server, mut loaded) = measure_at_a_server_for_one_test();
    for _ in 1..ATTEMPTS {
        if !is_measured(&loaded) {
            (server, loaded) = measure_at_a_server_for_one_test();
        }
    }
    assert!(is_measured(&loaded), "{:?}", loaded.status);
    assert!(holds_within(Duration::from_secs(60), || !server.is_running()), "it has served");
    assert_eq!(server.exit_code(), Some(0), "{}", server.stderr());
    assert_eq!(
        (loaded.plan.transport, loaded.plan.congestion.as_str()),
        (Transport::Quic, "cubic")
    );
    assert_eq!((loaded.title.as_deref(), loaded.tags.len()), (Some("here"), 1));
    let names: Vec<PhaseName> = loaded.phases.iter().map(|phase| phase.name).collect();
    assert_eq!(names, PhaseName::ALL);
    for phase in &loaded.phases {
        let parts: Vec<Part> = phase.runs.iter().map(|one| one.part).collect();
        assert_eq!(parts, Part::of(phase.name));
        assert_eq!(phase.ended, Ended::TimeUp, "it is too short to be steady");
        for one in &phase.runs {
            assert_eq!(one.run.reports.len(), 2, "{:?} {:?}", phase.name, one.part);
            let texts = one.run.status.reasons.iter().map(|reason| reason.text.as_str());
            let told: Vec<&str> = texts.filter(|text| text.contains("tests")).collect();
            assert_eq!(told, Vec::<&str>::new(), "its own parts are no other tests");
        }
        let is_up = matches!(phase.name, PhaseName::Up | PhaseName::Both);
        let is_down = matches!(phase.name, PhaseName::Down | PhaseName::Both);
        assert!(is_up || phase.goodput_up_bps.is_none(), "{:?}", phase.name);
        assert!(is_down || phase.goodput_down_bps.is_none(), "{:?}", phase.name);
        assert_eq!(phase.confidence.is_some(), phase.name != PhaseName::Idle);
    }
    let runs = loaded.phases.iter().flat_map(|phase| &phase.runs);
    let ids: HashSet<&str> = runs.map(|one| one.run.run_id.as_str()).collect();
    assert_eq!(ids.len(), 19, "four without a load, and five thrice");
    let mut served = 0;
    let are_told = || {
        let records = server.records();
        let started = records.iter().filter(|record| record["record"] == "test_started");
        let started = started.filter_map(|record| record["run_id"].as_str());
        served += started.filter(|id| ids.contains(id)).count();
        served == 19
    };
    assert!(holds_within(Duration::from_secs(60), are_told), "each is one of the server's");
}

#[test]
fn a_server_without_room_leaves_a_document_and_its_exit_code() {
    let server = Server::start("--max-tests 1");
    let _other = server.start_test("stream --rate 1M --time 600s");
    let ended = server.start_client(SHORT).finish();
    let loaded = read(&ended.stdout, ended.exit_code);
    assert_eq!((ended.exit_code, loaded.status.outcome), (Some(5), Outcome::Failed));
    assert_eq!((loaded.phases.len(), loaded.phases[0].ended), (1, Ended::Failed));
    let outcomes: Vec<Outcome> =
        loaded.phases[0].runs.iter().map(|one| one.run.status.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed]);
    assert!(ended.stderr.contains("--max-tests"), "{}", ended.stderr);
}

#[test]
fn the_load_has_a_congestion_control_that_this_user_may_choose() {
    let server = Server::start("");
    let ended = server.start_client(&format!("{SHORT} --dry-run")).finish();
    assert_eq!(ended.exit_code, Some(0), "{}", ended.stderr);
    let chosen = ["\"cubic\"", "\"reno\""].into_iter().find(|name| ended.stdout.contains(name));
    let name = chosen.expect("a control of the load").trim_matches('"');
    let words = format!("stream --time 50ms --congestion {name}");
    let ended = server.start_client(&words).finish();
    assert!(matches!(ended.exit_code, Some(0 | 6)), "{name}: {}", ended.stderr);
}

#[test]
fn a_congestion_control_that_cant_be_had_is_named_with_those_that_can() {
    let server = Server::start("");
    let ended = server.start_client("stream --time 1s --congestion none_of_mine").finish();
    let run: linerate_measure::Run = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.exit_code, run.status.outcome), (Some(1), Outcome::Failed));
    let message = run.status.message.unwrap();
    assert!(message.contains("no congestion control \"none_of_mine\" (--congestion)"), "{message}");
    assert!(message.contains("reno"), "{message}");
}

/// Sends a signal while the path is filled: four tests without a load, then the load and four beside it. `None`: an end had
/// no processor for seconds, and was given up.
fn signal_while_loaded(server: &Server, signal: Signal) -> Option<Over> {
    let mut client = server.start_client("loaded --time 60s --idle-time 100ms --omit 0");
    let mut tests = 0;
    while tests < 9 && client.is_running() {
        std::thread::sleep(Duration::from_millis(10));
        let is_test = |record: &Value| record["record"] == "test_started";
        tests += server.records().iter().filter(|record| is_test(record)).count();
    }
    let has_begun = tests == 9;
    if has_begun {
        client.signal(signal);
    }
    has_begun.then(|| client.finish())
}

#[test]
fn a_killed_client_leaves_nothing_at_a_server_of_one_test() {
    let killed = || {
        let server = Server::start("--max-tests 1");
        let idle = Held::by_idle(&server);
        let ended = signal_while_loaded(&server, Signal::KILL)?;
        Some((server, idle, ended))
    };
    let (server, idle, ended) = (0..ATTEMPTS).find_map(|_| killed()).expect("a load that begins");
    assert_eq!(ended.exit_code, None, "it was killed");
    assert_idle(&server, idle, Duration::from_secs(60));
    server.measure("rr --count 1").document(0);
}

#[test]
fn a_signal_leaves_the_phases_before_and_the_part_that_was_done() {
    let interrupted = || signal_while_loaded(&Server::start(""), Signal::INT);
    let ended = (0..ATTEMPTS).find_map(|_| interrupted()).expect("a load that begins");
    let loaded = read(&ended.stdout, ended.exit_code);
    assert_eq!((ended.exit_code, loaded.status.outcome), (Some(130), Outcome::Interrupted));
    let names: Vec<PhaseName> = loaded.phases.iter().map(|phase| phase.name).collect();
    assert_eq!(names, [PhaseName::Idle, PhaseName::Up]);
    assert_eq!(loaded.phases[1].ended, Ended::Interrupted);
    assert_eq!(loaded.phases[0].ended, Ended::TimeUp);
}
