//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/wire.rs"]
mod targets;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/perf.rs"]
mod perf;

fn replay(target: &str, feed: fn(&[u8])) {
    let seeds = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        feed(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{target} has no seeds");
}

#[test]
fn client_frames() {
    replay("client_frames", targets::client_frames);
}

#[test]
fn server_frames() {
    replay("server_frames", targets::server_frames);
}

#[test]
fn client_machine() {
    replay("client_machine", targets::client_machine);
}

#[test]
fn server_machine() {
    replay("server_machine", targets::server_machine);
}

#[test]
fn datagram() {
    replay("datagram", targets::datagram);
}

#[test]
fn opening() {
    replay("opening", targets::opening);
}

#[test]
fn perf_frames() {
    replay("perf_frames", perf::perf_frames);
}

#[test]
fn perf_request() {
    replay("perf_request", perf::perf_request);
}
