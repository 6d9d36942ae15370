//! When a load begins, how long it is, and which part of it counts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::delayed;
use crate::document::Document;
use crate::ends::Server;

fn utc_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

#[test]
fn a_load_begins_at_the_time_that_is_named() {
    let server = Server::start("");
    let start_ns = utc_ns() + 1_500_000_000;
    let at = format!("@{}.{:09}", start_ns / 1_000_000_000, start_ns % 1_000_000_000);
    let clients = ["stream --both --rate 10M", "rr --udp"].map(|load| {
        server.start_client(&format!("{load} --time 300ms --interval 100ms --start-at {at}"))
    });
    for client in clients {
        let document = client.finish().document(0);
        let started_ns = document.json()["environment"]["started_utc_ns"].as_i64().unwrap();
        let late_ns = started_ns - start_ns;
        assert!((0..500_000_000).contains(&late_ns), "began {late_ns} ns late");
        for role in ["client", "server"] {
            let first = document.samples(role)[0].clone();
            let lasted_ns = first["to_ns"].as_i64().unwrap() - first["from_ns"].as_i64().unwrap();
            let began_ns = first["utc_ns"].as_i64().unwrap() - lasted_ns - start_ns;
            assert!((-50_000_000..500_000_000).contains(&began_ns), "{role}: {began_ns} ns");
        }
    }
}

/// The samples of one end lie one behind the other without a gap.
#[track_caller]
fn assert_contiguous(samples: &[&Value]) {
    let time = |sample: &Value, end: &str| sample[end].as_u64().unwrap();
    assert_eq!(time(samples[0], "from_ns"), 0);
    for pair in samples.windows(2) {
        assert_eq!(time(pair[0], "to_ns"), time(pair[1], "from_ns"), "{pair:?}");
    }
}

/// Samples are never cut too early, and on a machine that is late now and then at least one is cut in time. A rest may be
/// shorter; what comes after it is none of these.
#[track_caller]
fn assert_cut_every(interval_ms: u64, samples: &[&Value], told: &str) {
    let time = |sample: &Value, end: &str| sample[end].as_u64().unwrap();
    let lasted_ms = |sample: &&Value| (time(sample, "to_ns") - time(sample, "from_ns")) / 1_000_000;
    let (_rest, whole) = samples.split_last().unwrap();
    let lengths: Vec<u64> = whole.iter().map(lasted_ms).collect();
    let shortest = lengths.iter().min();
    let in_time = interval_ms..interval_ms + interval_ms / 5;
    assert!(shortest.is_some_and(|length| in_time.contains(length)), "{told}: {lengths:?} ms");
}

/// How many samples of 100 ms a machine may have cost whose processors others had for so long.
fn intervals_late(delayed_s: f64) -> usize {
    (delayed_s * 10.0).ceil() as usize
}

fn sum_of(samples: &[&Value], place: &str) -> u64 {
    samples.iter().filter_map(|sample| sample.pointer(place).and_then(Value::as_u64)).sum()
}

#[test]
fn samples_have_the_length_that_is_asked_for() {
    let server = Server::start("");
    for load in ["stream --down --rate 50M", "stream --udp --rate 20M", "rr"] {
        let (document, delayed_s) =
            delayed::measure(&server, &format!("{load} --time 1s --interval 100ms"));
        let late = intervals_late(delayed_s);
        for role in ["client", "server"] {
            let samples = document.samples(role);
            let count = 9_usize.saturating_sub(late)..=12;
            assert!(count.contains(&samples.len()), "{load}, {role}: {}", samples.len());
            assert_cut_every(100, &samples, &format!("{load}, {role}"));
            assert_contiguous(&samples);
        }
        let elapsed_s = document.figure("elapsed_s");
        assert!((0.9..1.5).contains(&elapsed_s), "{load}: {elapsed_s}");
    }
}

#[test]
fn samples_add_up_to_the_total() {
    let server = Server::start("");
    for words in ["stream --up --bytes 3M --rate 40M", "stream --down --tls --bytes 3M --rate 40M"]
    {
        let document = server.measure(&format!("{words} --interval 100ms")).document(0);
        let (sender, receiver) =
            if words.contains("down") { ("server", "client") } else { ("client", "server") };
        for (role, place) in [(sender, "/sent/bytes"), (receiver, "/received/bytes")] {
            assert_all_but_a_rest(&document, role, place, 3_000_000);
        }
    }
    let document = server.measure("rr --count 20k --interval 100ms").document(0);
    assert_all_but_a_rest(&document, "client", "/transactions", 20_000);
}

/// A rest of less than a twentieth of an interval has no sample of its own.
#[track_caller]
fn assert_all_but_a_rest(document: &Document, role: &str, place: &str, total: u64) {
    let samples = document.samples(role);
    let sampled = sum_of(&samples, place);
    let most_of_one = samples.iter().filter_map(|s| s.pointer(place)?.as_u64()).max().unwrap_or(0);
    assert!(sampled <= total, "{role}: {sampled} of {total}");
    assert!(total - sampled <= most_of_one / 5, "{role}: {sampled} of {total}");
}

/// The samples of an end, those of the warm-up and those that count.
fn warm_and_measured<'a>(document: &'a Document, role: &str) -> (Vec<&'a Value>, Vec<&'a Value>) {
    document.samples(role).into_iter().partition(|sample| sample["warm_up"] == true)
}

#[test]
fn a_warm_up_is_marked_and_left_out() {
    let server = Server::start("");
    for load in [
        "stream --up --rate 40M",
        "stream --down --tls --flows 2 --rate 40M",
        "stream --udp --rate 40M",
        "rr",
        "rr --udp --flows 3",
    ] {
        let words = format!("{load} --omit 500ms --time 1500ms --interval 100ms");
        let (document, delayed_s) = delayed::measure(&server, &words);
        for role in ["client", "server"] {
            let (warm, measured) = warm_and_measured(&document, role);
            let told = format!("{load}, {role}");
            let late = intervals_late(delayed_s);
            let count = 4_usize.saturating_sub(late)..=7 + late;
            assert!(count.contains(&warm.len()), "{told}: {}", warm.len());
            let count = 14_usize.saturating_sub(late)..=18 + late;
            assert!(count.contains(&measured.len()), "{told}: {}", measured.len());
            assert_cut_every(100, &warm, &told);
            assert_cut_every(100, &measured, &told);
            assert_contiguous(&document.samples(role));
            // The warm-up is no shorter than asked for, and at the load's end by its plan it is over.
            let warm_ms = warm.last().unwrap()["to_ns"].as_u64().unwrap() / 1_000_000;
            assert!((500..1_500).contains(&warm_ms), "{told}: {warm_ms}");
        }
        let warm_s = |role| {
            let (warm, _) = warm_and_measured(&document, role);
            warm.last().unwrap()["to_ns"].as_f64().unwrap() / 1e9
        };
        let receiver = if load.contains("down") { "client" } else { "server" };
        let elapsed_s = document.figure("elapsed_s");
        // What a warm-up took longer is missing in what is measured.
        let expected_s = 2.0 - warm_s(if load.starts_with("rr") { "client" } else { receiver });
        let range = expected_s - 0.2 - delayed_s..expected_s + 0.45 + delayed_s;
        assert!(range.contains(&elapsed_s), "{load}: {elapsed_s} s of {range:?}");
        if load.starts_with("rr") {
            let (_, measured) = warm_and_measured(&document, "client");
            let counted = document.count("transactions");
            // A sample is cut at one moment, and the measured part of each flow at its next look.
            let sampled = sum_of(&measured, "/transactions");
            assert!(sampled.abs_diff(counted) <= counted / 20, "{load}: {sampled}, {counted}");
            assert_eq!(document.count("latency_ns/count"), counted, "{load}");
        } else {
            let bytes = document.count("received_bytes") as f64;
            let expected = 40e6 / 8.0 * elapsed_s;
            let share = 0.6 - delayed_s / elapsed_s..1.4;
            assert!(share.contains(&(bytes / expected)), "{load}: {bytes} of {expected}");
        }
    }
}

#[test]
fn a_test_takes_as_long_as_its_load() {
    let server = Server::start("");
    let ended = server.measure("stream --rate 10M --time 1s --omit 200ms");
    ended.document(0);
    assert!(ended.took >= Duration::from_millis(1_200), "{:?}", ended.took);
    assert!(ended.took < Duration::from_millis(4_000), "{:?}", ended.took);
}
