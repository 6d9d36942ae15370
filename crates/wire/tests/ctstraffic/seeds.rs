//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/ctstraffic.rs"]
mod targets;

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn datagram() {
    replay("ctstraffic_datagram", targets::ctstraffic_datagram);
}

#[test]
fn frames() {
    replay("ctstraffic_frames", targets::ctstraffic_frames);
}
