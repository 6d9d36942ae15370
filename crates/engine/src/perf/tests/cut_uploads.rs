use linerate_measure::dialect::perf::EndTotals;

use super::*;

/// Long enough for megabytes on a busy machine.
const CUT_AFTER: Duration = Duration::from_secs(2);

/// What a run of uploads comes to whose server ends, or that ends itself, long before they do.
fn cut_uploads(copies: bool, own_ports: bool, by_server: bool) -> (EndTotals, u64) {
    let server = server();
    let shape = Shape { upload: 60_000_000, download: 0, timed: true, block_bytes: 65_536 };
    let runs_for = (!by_server).then_some(CUT_AFTER);
    let plan = ClientPlan {
        copies,
        shape,
        runs_for,
        tells: Tells { streams: true, ..Tells::default() },
        ..three_connections(server.address(), own_ports)
    };
    let mut told_bytes = 0;
    let mut tell = |event| {
        if let ClientEvent::StreamEnded(outcome) = event {
            told_bytes += outcome.upload.map_or(0, |upload| upload.bytes);
        }
    };
    let report = std::thread::scope(|scope| {
        let client = scope.spawn(|| run_client(&plan, &mut tell, &Cancel::default()));
        if by_server {
            std::thread::sleep(CUT_AFTER);
            drop(server);
        }
        client.join().expect("it ends").expect("it goes on")
    });
    (report.totals(), told_bytes)
}

#[test]
fn acknowledged_bytes_count_when_either_end_cuts_a_run() {
    for by_server in [false, true] {
        for (copies, own_ports) in [(false, true), (true, false)] {
            let (totals, told_bytes) = cut_uploads(copies, own_ports, by_server);
            let case = format!("by server {by_server}, copies {copies}");
            assert_eq!(totals.connections, Some(3), "{case}");
            assert!(totals.uploaded_bytes > Some(1_000_000), "{case}: {totals:?}");
            assert_eq!(totals.uploaded_bytes, Some(told_bytes), "{case}");
        }
    }
}
