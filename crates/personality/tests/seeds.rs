//! Replays the seeds of the fuzz targets of command lines and of Crucible's files, and what fuzzing once found, on a stable
//! compiler.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/command_line.rs"]
mod targets;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/crucible.rs"]
mod crucible;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn colon_options() {
    replay("colon_options", targets::colon_options);
}

#[test]
fn crucible_matrix() {
    replay("crucible_matrix", crucible::crucible_matrix);
}

#[test]
fn crucible_run_file() {
    replay("crucible_run_file", crucible::crucible_run_file);
}

#[test]
fn ctstraffic_options() {
    replay("ctstraffic_options", targets::ctstraffic_options);
}

#[test]
fn iperf3_options() {
    replay("iperf3_options", targets::iperf3_options);
}

#[test]
fn netperf_options() {
    replay("netperf_options", targets::netperf_options);
}

#[test]
fn qperf_options() {
    replay("qperf_options", targets::qperf_options);
}
