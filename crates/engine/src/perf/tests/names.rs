use super::*;

#[test]
fn a_name_that_tls_cannot_say_is_no_hindrance() {
    let server = server();
    let remote = server.address();
    for server_name in ["host.example.", "127.1", "a.example", "", "a b", "-"] {
        let addresses = Addresses {
            remote,
            local: Vec::new(),
            server_name: server_name.to_owned(),
            numbered_names: true,
        };
        let plan = ClientPlan { addresses, ..three_connections(remote, false) };
        let report = run_client(&plan, &mut |_| {}, &Cancel::default()).expect("it goes on");
        let totals = report.totals();
        assert_eq!((totals.connections, totals.streams), (Some(3), Some(6)), "{server_name:?}");
    }
}
