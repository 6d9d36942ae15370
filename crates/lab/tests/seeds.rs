//! Replays the seeds of the fuzz target of plans, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/lab.rs"]
mod fuzz;

#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn matrix_plans() {
    replay::replay("matrix_plan", fuzz::matrix_plan);
}
