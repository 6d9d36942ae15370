//! Two clocks that differ, and what is told of each direction of the path between them.

use std::process::Command;

use serde_json::Value;

use crate::document::Document;
use crate::emulator::Emulator;
use crate::ends::Server;
use crate::skipped::skip;

/// How far the server's monotonic clock is ahead.
const AHEAD_S: u32 = 86_400;
/// The path's delays.
const UP_NS: f64 = 30e6;
const DOWN_NS: f64 = 10e6;
const PATH: &str = "
    [to_right]
    delay = '30ms'
    [to_left]
    delay = '10ms'
";

/// Fails unless the delay of each direction is in its bounds. What a busy machine adds to the path's delay is the
/// path's, too.
#[track_caller]
fn assert_one_way(run: &Document, source: &str) {
    let one_way = run.json()["summary"]["one_way"].as_array().unwrap();
    assert_eq!(one_way.len(), 2, "{one_way:?}");
    for (one, direction, truth_ns) in [(&one_way[0], "up", UP_NS), (&one_way[1], "down", DOWN_NS)] {
        assert_eq!((&one["direction"], &one["source"]), (&direction.into(), &source.into()));
        let ns = |name: &str| one[name].as_f64().unwrap();
        let (least_ns, bound_ns) = (ns("least_ns"), ns("bound_ns"));
        assert!(least_ns - bound_ns >= 0.0, "{one}");
        assert!(least_ns + bound_ns >= truth_ns, "{one}");
        // Nothing tells how a round trip splits, so no bound is smaller than half of one.
        assert!(bound_ns >= 19e6, "{one}");
        assert!(one["queueing_ns"]["count"].as_u64().unwrap() > 3, "{one}");
    }
}

#[test]
fn delays_of_each_direction_are_within_their_bounds_whatever_the_clocks_say() {
    let words = ["unshare", "--time", "--monotonic", &AHEAD_S.to_string()].map(str::to_owned);
    let can = Command::new(&words[0]).args(&words[1..]).arg("true").status();
    if !can.is_ok_and(|status| status.success()) {
        return skip("a time namespace needs root, unshare and a kernel that has them");
    }
    let emulator = match Emulator::start(PATH) {
        Ok(emulator) => emulator,
        Err(why) => return skip(&why),
    };
    let server = Server::start_under(&emulator.network, &words);
    let run = server.measure(&["stream", "--udp", "--both", "--rate", "1M", "--time", "2s"]);
    run.assert_complete();
    assert_one_way(&run, "datagrams");
    // The clock that stamped them was ahead, indeed.
    let transit = |role: &str, flow: usize| -> i64 {
        run.report(role)["flows"][flow]["transit"]["least_ns"].as_i64().unwrap()
    };
    let ahead_ns = i64::from(AHEAD_S) * 1_000_000_000;
    assert!((transit("server", 0) - ahead_ns).abs() < 60_000_000_000, "{}", transit("server", 0));
    assert!((transit("client", 1) + ahead_ns).abs() < 60_000_000_000, "{}", transit("client", 1));

    // The wall clocks are one: the truth of their offset is zero, and so is their drift.
    let track = &run.json()["environment"]["clock_track"];
    assert!(
        track["pings"].as_u64().unwrap() > 12,
        "eight before the load, and more under it: {track}"
    );
    let is_zero_within =
        |value: &Value, bound: &Value| value.as_f64().unwrap().abs() <= bound.as_f64().unwrap();
    for moment in ["begin", "end"] {
        let offset = &track[moment];
        assert!(is_zero_within(&offset["offset_ns"], &offset["bound_ns"]), "{track}");
    }
    assert!(is_zero_within(&track["drift_ppm"], &track["drift_bound_ppm"]), "{track}");

    // Requests have no send times: the pings tell.
    let run = server.measure(&["rr", "--rate", "20", "--time", "2s"]);
    run.assert_complete();
    assert_one_way(&run, "pings");
}
