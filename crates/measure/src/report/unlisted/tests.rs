use proptest::prelude::*;

use super::*;
use crate::fairness::jain_index;
use crate::plan::Transport;
use crate::report::{EndReport, Verification};
use crate::sample::{CpuSeconds, Role, TcpStatus};
use crate::summary::{judge, summarize};

fn report(role: Role, flows: Vec<FlowReport>) -> EndReport {
    EndReport {
        role,
        flows,
        elapsed_ns: 2_000_000_000,
        cpu: Some(CpuSeconds { user_s: 0.25, system_s: 0.75 }),
        ..EndReport::nothing(role)
    }
}

/// The same report with all flows but the first `listed` added up.
fn folded(workload: &Workload, whole: &EndReport, listed: usize) -> EndReport {
    let (mut up, mut down) = (Span::default(), Span::default());
    for flow in &whole.flows {
        let span = Span { from_ns: flow.from_ns, to_ns: flow.to_ns };
        match workload.flow_direction(flow.flow) {
            Direction::Down => down.cover(span),
            Direction::Up | Direction::Both => up.cover(span),
        }
    }
    let listed = listed.min(whole.flows.len());
    let mut unlisted = Unlisted::default();
    for flow in &whole.flows[listed..] {
        let direction = workload.flow_direction(flow.flow);
        let span = if direction == Direction::Down { down } else { up };
        unlisted.of_mut(direction).add(workload, flow, span);
    }
    let flows = whole.flows[..listed].to_vec();
    EndReport { flows, unlisted: Some(unlisted), ..whole.clone() }
}

prop_compose! {
    /// A flow as an end may report it, but for its number.
    fn any_flow()(
        traffic: [Option<(u32, u16)>; 2],
        times: [Option<u32>; 2],
        counts: [Option<u32>; 4],
        jitter_ns in proptest::option::of(0.0..1e9_f64),
        retransmitted in proptest::option::of(0..100_u32),
        checked: Option<(u32, bool)>,
        error in proptest::option::weighted(0.1, prop_oneof![Just("reset"), Just("closed_early")]),
    ) -> FlowReport {
        let [sent, received] = traffic
            .map(|pair| pair.map(|(bytes, calls)| Traffic { bytes: bytes.into(), calls: Some(calls.into()) }));
        let [from_ns, to_ns] = times.map(|at| at.map(u64::from));
        let [transactions, transactions_lost, datagrams_sent, datagrams_received] =
            counts.map(|count| count.map(u64::from));
        let datagrams = datagrams_sent.map(|sent| DatagramCounts {
            sent: Some(sent),
            received: datagrams_received,
            ..DatagramCounts::default()
        });
        let tcp = retransmitted
            .map(|again| TcpStatus { retransmitted_segments: again, ..TcpStatus::default() });
        let verification = checked.map(|(bytes, wrong)| Verification {
            wrong_runs: Vec::new(),
            verified_bytes: bytes.into(),
            wrong_bytes: u64::from(wrong),
            first_wrong_offset: wrong.then_some(bytes.into()),
            first_wrong_extent_bytes: None,
        });
        FlowReport {
            sent, received, from_ns, to_ns, transactions, transactions_lost, datagrams, jitter_ns,
            tcp, verification, error: error.map(str::to_owned), ..FlowReport::default()
        }
    }
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let transport = prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)];
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down), Just(Direction::Both)];
    let end = prop_oneof![
        Just(End::Time { duration_ns: 1_000_000_000 }),
        Just(End::Count { count: 1_000 }),
        Just(End::Bytes { bytes: 1_000_000 }),
    ];
    (transport, direction, end, 1..20_u32, any::<bool>(), any::<bool>()).prop_map(
        |(transport, direction, end, flows, rr, verify)| {
            let mut workload =
                if rr { Workload::rr(transport) } else { Workload::stream(direction, transport) };
            workload.payload.verify = verify;
            Workload { end, flows, ..workload }
        },
    )
}

/// Sums of floating-point numbers depend on their order in the last digits.
fn close(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
        (one, other) => one == other,
    }
}

proptest! {
    #[test]
    fn a_summary_and_its_verdict_are_the_same_whether_flows_are_listed_or_added_up(
        workload in any_workload(),
        flows in proptest::collection::vec([any_flow(), any_flow()], 40),
        listed in 0..40_usize,
    ) {
        let numbered = |end: usize| -> Vec<FlowReport> {
            let number = |(flow, pair): (u32, &[FlowReport; 2])| FlowReport { flow, ..pair[end].clone() };
            (0..workload.total_flows()).zip(&flows).map(number).collect()
        };
        let client = report(Role::Client, numbered(0));
        let server = report(Role::Server, numbered(1));
        let whole = summarize(&workload, Some(&client), Some(&server));
        let reasons = judge(&workload, Some(&client), Some(&server));
        let [client, server] = [client, server].map(|whole| folded(&workload, &whole, listed));
        // As it crosses the wire.
        let text = serde_json::to_string(&server).unwrap();
        let server: EndReport = serde_json::from_str(&text).unwrap();
        let mut sums = summarize(&workload, Some(&client), Some(&server));
        prop_assert!(close(sums.fairness, whole.fairness), "{:?} {:?}", sums.fairness, whole.fairness);
        prop_assert!(close(sums.jitter_ns, whole.jitter_ns), "{:?} {:?}", sums.jitter_ns, whole.jitter_ns);
        (sums.fairness, sums.jitter_ns) = (whole.fairness, whole.jitter_ns);
        prop_assert_eq!(sums, whole);
        prop_assert_eq!(judge(&workload, Some(&client), Some(&server)), reasons);
    }

    #[test]
    fn the_index_of_shares_is_jains(shares in proptest::collection::vec(0.0..1e12_f64, 0..50)) {
        let mut sums = Shares::default();
        shares.iter().for_each(|share| sums.add(Some(*share)));
        prop_assert!(close(sums.jain_index(shares.len() as u64), jain_index(&shares)));
    }
}

#[test]
fn many_kinds_of_error_are_counted_together() {
    let mut sum = FlowSum::default();
    for number in 0..100 {
        sum.count_error(&number.to_string());
        sum.count_error("0");
    }
    assert_eq!((sum.errors.len(), sum.errors["0"], sum.errors["other"]), (65, 101, 36));
}

#[test]
fn flows_that_are_missing_among_the_unlisted_are_missed() {
    let workload = Workload { flows: 10, ..Workload::rr(Transport::Tcp) };
    let flow = |flow| FlowReport { flow, transactions: Some(1), ..FlowReport::default() };
    let whole = report(Role::Client, (0..9).map(flow).collect());
    let reasons = judge(&workload, Some(&folded(&workload, &whole, 3)), None);
    assert!(reasons[0].contains("9 flows that don't match the 10"), "{reasons:?}");
}
