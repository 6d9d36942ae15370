//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/wire.rs"]
mod targets;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/perf.rs"]
mod perf;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

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
