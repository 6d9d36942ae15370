//! Another dialect's tests, judged as far as their figures allow.

use super::super::judge_dialect;
use super::*;
use crate::dialect::Dialect;
use crate::run::{Draft, Outcome};

const ALL: [Dialect; 3] = [Dialect::Iperf3, Dialect::Netperf, Dialect::Perf];

#[test]
fn a_peer_that_tells_nothing_is_no_reason() {
    let (workload, client, _) = sound();
    let rr = Workload::rr(Transport::Tcp);
    for dialect in ALL {
        assert!(judge_dialect(dialect, &workload, Some(&client), None).is_empty(), "{dialect:?}");
        let kept = rr_client(100, 7);
        assert!(judge_dialect(dialect, &rr, Some(&kept), None).is_empty(), "{dialect:?}");
        let silent = FlowReport { received: None, ..receiver(0, 0, 0) };
        let silent = report(Role::Client, vec![silent]);
        assert!(judge_dialect(dialect, &workload, Some(&silent), None).is_empty(), "{dialect:?}");
    }
}

#[test]
fn figures_that_contradict_each_other_are_reasons_in_every_dialect() {
    let (mut workload, mut client, server) = sound();
    for dialect in ALL {
        let judge = |workload: &Workload, client: &EndReport| {
            judge_dialect(dialect, workload, Some(client), Some(&server))
        };
        client.flows[0].received = Some(Traffic { bytes: 0, calls: None });
        assert_one_reason(&judge(&workload, &client), &["nothing arrived from the server"]);
        client.flows[0].received = Some(Traffic { bytes: 1_001, calls: None });
        assert_one_reason(&judge(&workload, &client), &["1001 bytes arrived", "1000 were sent"]);
        workload.omit_ns = 1;
        assert!(judge(&workload, &client).is_empty(), "{dialect:?}");
        workload.omit_ns = 0;
        client.flows[0].received = Some(Traffic { bytes: 1_000, calls: None });
        client.flows[0].error = Some("reset: gone".to_owned());
        assert_one_reason(&judge(&workload, &client), &["1 of 1 flows ended before their time"]);
        client.flows[0].error = None;
        let rr = Workload::rr(Transport::Tcp);
        let none = judge_dialect(dialect, &rr, Some(&rr_client(0, 0)), None);
        assert_one_reason(&none, &["no transaction was completed"]);
    }
}

#[test]
fn only_iperf3_lists_its_streams_and_ends_when_bytes_are_sent() {
    let (mut workload, client, server) = sound();
    workload.flows = 3;
    let judge = |dialect, workload: &Workload| {
        judge_dialect(dialect, workload, Some(&client), Some(&server))
    };
    assert_eq!(judge(Dialect::Iperf3, &workload).len(), 2);
    assert!(judge(Dialect::Perf, &workload).is_empty());
    workload.flows = 1;
    workload.end = End::Bytes { bytes: 2_000 };
    assert!(judge(Dialect::Iperf3, &workload).is_empty());
    let reasons = judge(Dialect::Netperf, &workload);
    assert_one_reason(&reasons, &["2000 bytes were asked for", "1000 arrived"]);
}

#[test]
fn a_complete_test_whose_figures_contradict_each_other_is_untrustworthy() {
    let (mut workload, client, server) = sound();
    workload.end = End::Time { duration_ns: 2 * SECOND_NS };
    let mut draft = Draft::new(String::new(), crate::Plan::new("host", 1, workload));
    draft.dialect = Dialect::Netperf;
    (draft.client, draft.server) = (Some(client), Some(server));
    let run = draft.clone().into_run(Outcome::Complete, 0, None);
    assert_eq!((run.status.outcome, run.status.message), (Outcome::Complete, None));
    let flow = &mut draft.client.as_mut().unwrap().flows[0];
    flow.received = Some(Traffic { bytes: 1_001, calls: None });
    let run = draft.clone().into_run(Outcome::Complete, 0, None);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Untrustworthy, 0));
    assert!(run.status.message.unwrap().contains("1001 bytes arrived"));
    let run = draft.into_run(Outcome::Failed, 1, Some("why".to_owned()));
    assert_eq!(run.status.message.as_deref(), Some("why"));
}
