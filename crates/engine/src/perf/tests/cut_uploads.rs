use super::*;

/// Long enough for megabytes on a busy machine.
const CUT_AFTER: Duration = Duration::from_secs(2);

/// What a run of uploads comes to whose server ends, or that ends itself, long before they do.
fn cut_uploads(copies: bool, own_ports: bool, by_server: bool) -> (Totals, u64) {
    let server = server();
    let shape = Shape { upload: 60_000_000, download: 0, timed: true, block_bytes: 65_536 };
    let runs_for = (!by_server).then_some(CUT_AFTER);
    let plan = ClientPlan {
        copies,
        shape,
        runs_for,
        tells_streams: true,
        ..three_connections(server.address(), own_ports)
    };
    let mut told_bytes = 0;
    let mut tell = |event| {
        if let ClientEvent::StreamEnded(outcome) = event {
            told_bytes += outcome.upload.map_or(0, |upload| upload.bytes);
        }
    };
    let totals = std::thread::scope(|scope| {
        let client = scope.spawn(|| run_client(&plan, &mut tell, &Cancel::default()));
        if by_server {
            std::thread::sleep(CUT_AFTER);
            drop(server);
        }
        client.join().expect("it ends").expect("it goes on")
    });
    (totals, told_bytes)
}

#[test]
fn what_was_acknowledged_counts_whoever_cuts_a_run() {
    for by_server in [false, true] {
        for (copies, own_ports) in [(false, true), (true, false)] {
            let (totals, told_bytes) = cut_uploads(copies, own_ports, by_server);
            let case = format!("by server {by_server}, copies {copies}");
            assert_eq!(totals.connections, 3, "{case}");
            assert!(totals.uploaded_bytes > 1_000_000, "{case}: {}", totals.uploaded_bytes);
            assert_eq!(totals.uploaded_bytes, told_bytes, "{case}");
        }
    }
}
