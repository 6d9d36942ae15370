//! Replays the seeds of the fuzz target of chunks, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/results.rs"]
mod fuzz;

#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn chunks() {
    replay::replay("results_chunk", fuzz::chunk);
}
