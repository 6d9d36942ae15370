//! Latencies that are kept, by threads.

use super::*;

#[test]
fn every_latency_is_kept_however_connections_are_dealt() {
    let server = server();
    let shape = Shape { upload: 100, download: 100, timed: false, block_bytes: 65_536 };
    for own_ports in [true, false] {
        // Two of the three are one thread's.
        let (threads, streams, latency_limit) = (2, 5, 15);
        let plan = three_connections(server.address(), own_ports);
        let plan = ClientPlan { threads, streams, latency_limit, shape, ..plan };
        let report = run_client(&plan, &mut |_| {}, &Cancel::default()).expect("it runs");
        let kept = report.latencies_us.len();
        assert_eq!((report.totals().streams, kept), (Some(15), 15), "own ports: {own_ports}");
    }
}
