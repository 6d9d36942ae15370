//! `stream --explain`: segments that get lost at random, against those that a policer drops.

use serde_json::Value;

use crate::emulator::Emulator;
use crate::ends::Server;
use crate::in_network;
use crate::network::Network;
use crate::skipped::skip;

/// On a busy machine a sender may miss its rate: then losses are not the limit, or too few to tell.
const ATTEMPTS: usize = 6;

/// A path on which a few milliseconds for which a busy machine lets packets wait are no queue.
const PATH: &str = "
    [both]
    delay = '10ms'
";

/// One in 50 long packets gets lost as it arrives.
const RANDOM_LOSS: &str = "numgen random mod 50 == 0 drop";

/// A policer of 20 Mbit/s. Its bucket holds what a sender at half of the rate makes up for after a standstill.
const POLICER: &str = "limit rate over 2500 kbytes/second burst 64 kbytes drop";

const DEPENDS_ON_RATE: [&str; 3] = ["shallow_buffer", "rate_limit", "shallow_buffer_or_rate_limit"];

/// The explanation of a stream to this server.
fn explain(server: &Server<'_>) -> Value {
    let flags = ["stream", "--explain", "--time", "4s", "--congestion", "cubic"];
    let run = server.measure(&flags);
    let explanation = run.json()["summary"]["explanation"].clone();
    assert!(explanation["sentence"].is_string(), "{}", run.json()["status"]);
    explanation
}

/// Explains losses by this rule for long packets that arrive at the server, until one of these verdicts is found.
fn expect_verdict(network: &Network, rule: &str, expected: &[&str]) {
    network.filter(&format!(
        "table inet linerate {{
            chain arriving {{
                type filter hook input priority 0; policy accept;
                meta l4proto tcp meta length > 1000 {rule}
            }}
        }}
        "
    ));
    let server = Server::start(network);
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        let explanation = explain(&server);
        if expected.contains(&explanation["verdict"].as_str().unwrap()) {
            assert_is_told_from_three_runs(&explanation);
            return;
        }
        found.push(explanation);
    }
    panic!("none is one of {expected:?}: {found:#?}");
}

/// The explained run, one at half of its rate, and one just below it.
fn assert_is_told_from_three_runs(explanation: &Value) {
    let runs = explanation["runs"].as_array().unwrap();
    let figure = |run: usize, name: &str| runs[run][name].as_f64().unwrap();
    assert_eq!(runs.len(), 3, "{explanation:#}");
    assert!(runs[0]["paced_bps"].is_null(), "{explanation:#}");
    for (run, share) in [(1, 0.5), (2, 0.925)] {
        let off_bps = figure(run, "paced_bps") - share * figure(0, "goodput_bps");
        assert!(off_bps.abs() <= 1.0, "{explanation:#}");
    }
    for run in 0..3 {
        let ratio = figure(run, "retransmitted_segments") / figure(run, "sent_segments");
        assert!((ratio - figure(run, "lost_ratio")).abs() <= 1e-3, "{explanation:#}");
    }
}

#[test]
fn random_loss_is_told_from_a_policer() {
    match Emulator::start(PATH) {
        Ok(path) => expect_verdict(&path.network, RANDOM_LOSS, &["random_loss"]),
        Err(why) => skip(&why),
    }
}

#[test]
fn a_policer_is_told_from_random_loss() {
    in_network(|network| expect_verdict(network, POLICER, &DEPENDS_ON_RATE));
}
