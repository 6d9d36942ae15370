//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/measure.rs"]
mod targets;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[allow(clippy::expect_used, clippy::indexing_slicing, reason = "a target fails by panicking")]
#[path = "../../../fuzz/src/life.rs"]
mod life;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn units() {
    replay("units", targets::units);
}

#[test]
fn histogram() {
    replay("histogram", targets::histogram);
}

#[test]
fn link() {
    replay("link", targets::link);
}

#[test]
fn connection_life() {
    replay("connection_life", life::connection_life);
}
