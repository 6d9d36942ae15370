//! `stream --explain`: packets that get lost at random, against those that a short queue drops.

use serde_json::Value;

use crate::emulator::Emulator;
use crate::ends::Server;
use crate::skipped::skip;

/// On a busy machine a round trip may wait for threads longer than for the path, or a sender may miss its rate: then
/// losses are not the limit, or too few to tell.
const ATTEMPTS: usize = 6;

/// A path without losses, of 6 ms there and back.
const PATH: &str = "
    [both]
    delay = '3ms'
";

/// A queue of two packets in front of a slow link: a round trip takes little longer when it is full.
const SHORT_QUEUE: &str = "
    [to_left]
    delay = '5ms'
    [to_right]
    delay = '5ms'
    rate = '20Mbit/s'
    queue = '2 packets'
";

/// One in 50 long segments gets lost as it arrives.
const RANDOM_LOSS: &str = "table inet linerate {
    chain arriving {
        type filter hook input priority 0; policy accept;
        meta l4proto tcp meta length > 1000 numgen random mod 50 == 0 drop
    }
}
";

const DEPENDS_ON_RATE: [&str; 3] = ["shallow_buffer", "rate_limit", "shallow_buffer_or_rate_limit"];

/// The explanation of a stream over a path with these rules in the server's namespace; the reason if there is no path.
fn explain(link: &str, rules: Option<&str>) -> Result<Value, String> {
    let emulator = Emulator::start(link)?;
    rules.into_iter().for_each(|rules| emulator.network.filter(rules));
    let server = Server::start(&emulator.network);
    let flags = ["stream", "--explain", "--time", "4s", "--congestion", "cubic"];
    let run = server.measure(&flags);
    let explanation = run.json()["summary"]["explanation"].clone();
    assert!(explanation["sentence"].is_string(), "{}", run.json()["status"]);
    Ok(explanation)
}

/// Explains until one of these verdicts is found.
fn expect_verdict(link: &str, rules: Option<&str>, expected: &[&str]) {
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        let explanation = match explain(link, rules) {
            Ok(explanation) => explanation,
            Err(why) => return skip(&why),
        };
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
fn random_loss_is_told_from_a_short_queue() {
    expect_verdict(PATH, Some(RANDOM_LOSS), &["random_loss"]);
}

#[test]
fn a_short_queue_is_told_from_random_loss() {
    expect_verdict(SHORT_QUEUE, None, &DEPENDS_ON_RATE);
}
