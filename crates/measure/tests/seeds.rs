//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/measure.rs"]
mod targets;

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
