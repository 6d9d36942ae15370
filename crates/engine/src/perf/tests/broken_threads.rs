use super::*;

#[test]
fn a_thread_that_cannot_go_on_ends_the_others() {
    let server = server();
    let remote = server.address();
    // The second address is nobody's (RFC 5737).
    let local = ["127.0.0.1:0", "192.0.2.1:0"].map(|text| text.parse().expect("an address"));
    let addresses = Addresses {
        remote,
        local: local.to_vec(),
        server_name: String::new(),
        numbered_names: false,
    };
    let plan = ClientPlan {
        addresses,
        threads: 2,
        connections: 2,
        repeats_streams: true,
        runs_for: Some(LIMIT * 2),
        ..three_connections(remote, false)
    };
    let began = Instant::now();
    let why = match run_client(&plan, &mut |_| {}, &Cancel::default()) {
        // The first thread's connection may stand by then.
        Ok(report) => report.broken.expect("a thread is broken"),
        Err(error) => error.to_string(),
    };
    assert!(began.elapsed() < LIMIT, "{why}");
    assert!(why.contains("os error 99"), "{why}");
}
