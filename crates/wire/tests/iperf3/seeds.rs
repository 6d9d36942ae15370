//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/iperf3.rs"]
mod targets;

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
