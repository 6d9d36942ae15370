//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/iperf3.rs"]
mod targets;

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn client() {
    replay("iperf3_client", targets::iperf3_client);
}

#[test]
fn server() {
    replay("iperf3_server", targets::iperf3_server);
}

#[test]
fn documents() {
    replay("iperf3_documents", targets::iperf3_documents);
}

#[test]
fn datagram() {
    replay("iperf3_datagram", targets::iperf3_datagram);
}
