use proptest::prelude::*;

use super::*;

const fn stream_of(unit_bytes: u32, up_flows: u32, down_flows: u32) -> LoadKind {
    let (sent, received) = (Movement::Copy, Movement::Copy);
    LoadKind::Stream { unit_bytes, up_flows, down_flows, sent, received }
}

const STREAM: Load = Load {
    kind: stream_of(1000, 2, 1),
    datagrams: false,
    end: LoadEnd::Bytes { bytes: 101 },
    pace_bps_per_flow: Some(8_000),
    verify: true,
};

const RR: Load = Load {
    kind: LoadKind::Rr {
        request_bytes: 1,
        response_bytes: 2,
        timeout_ns: 3,
        outstanding: 5,
        schedule: None,
        flows: 4,
    },
    datagrams: true,
    end: LoadEnd::Count { count: 10 },
    pace_bps_per_flow: None,
    verify: false,
};

#[test]
fn a_stream_up_is_sent_by_the_client_and_closed_by_it() {
    let receive = Transfer {
        end: StepEnd::Peer,
        unit_bytes: 1000,
        pace: None,
        content: Content::Pattern { offset: 0 },
        framing: Framing::None,
        movement: Movement::Copy,
        yields: true,
    };
    let pace = Some(Pace { bps: 8_000, burst_ns: 1_000_000, least_bytes: 1000, first_ns: 0 });
    let send = Transfer { end: StepEnd::Bytes { bytes: 51 }, pace, ..receive.clone() };
    let FlowSteps { client, server } = steps(&STREAM, 0);
    assert_eq!(client, [Step::Send(send), Step::Close(Close::Graceful)]);
    assert_eq!(server, [Step::Receive(receive), Step::Close(Close::AfterPeer)]);
}

#[test]
fn each_end_moves_bytes_in_its_own_way() {
    let (sent, received) = (Movement::ZeroCopy, Movement::Discard);
    let kind = LoadKind::Stream { unit_bytes: 1, up_flows: 1, down_flows: 1, sent, received };
    for flow in 0..2 {
        let FlowSteps { client, server } = steps(&Load { kind, ..STREAM }, flow);
        for step in client.iter().chain(&server) {
            match step {
                Step::Send(transfer) => assert_eq!(transfer.movement, sent),
                Step::Receive(transfer) => assert_eq!(transfer.movement, received),
                _ => assert!(matches!(step, Step::Close(_)), "{step:?}"),
            }
        }
    }
}

#[test]
fn a_stream_down_is_sent_by_the_server_and_closed_by_it() {
    let FlowSteps { client, server } = steps(&STREAM, 2);
    let [Step::Receive(receive), Step::Close(Close::AfterPeer)] = &client[..] else {
        panic!("{client:?}")
    };
    let [Step::Send(send), Step::Close(Close::Graceful)] = &server[..] else {
        panic!("{server:?}")
    };
    // The only flow down has all of the direction's bytes.
    assert_eq!((send.end, receive.end), (StepEnd::Bytes { bytes: 101 }, StepEnd::Peer));
    assert_eq!(send.content, Content::Pattern { offset: 2 * 7919 });
    assert_eq!(send.content, receive.content);
}

#[test]
fn udp_transactions_time_out_and_close_nothing() {
    let FlowSteps { client, server } = steps(&RR, 3);
    let [Step::Exchange(exchange)] = &client[..] else { panic!("{client:?}") };
    let [Step::Answer(answer)] = &server[..] else { panic!("{server:?}") };
    assert_eq!((exchange.timeout_ns, answer.timeout_ns), (Some(3), None));
    assert_eq!((exchange.end, answer.end), (StepEnd::Count { count: 2 }, StepEnd::Peer));
    assert_eq!(exchange.framing, Framing::DatagramHeader);
    assert_eq!((exchange.outstanding, exchange.schedule), (5, None));
}

#[test]
fn tcp_transactions_wait_for_ever() {
    let FlowSteps { client, .. } = steps(&Load { datagrams: false, ..RR }, 0);
    let [Step::Exchange(exchange), Step::Close(Close::Graceful)] = &client[..] else {
        panic!("{client:?}")
    };
    assert_eq!(exchange.timeout_ns, None);
}

#[test]
fn there_is_nothing_past_the_last_flow() {
    let nothing = FlowSteps { client: Vec::new(), server: Vec::new() };
    assert_eq!(steps(&STREAM, 3), nothing);
    assert_eq!(steps(&RR, u32::MAX), nothing);
}

fn ends(load: &Load) -> Vec<StepEnd> {
    let own_end = |step: &Step| match step {
        Step::Send(transfer) => Some(transfer.end),
        Step::Exchange(exchange) => Some(exchange.end),
        _ => None,
    };
    (0..load.flows())
        .flat_map(|flow| {
            let FlowSteps { client, server } = steps(load, flow);
            client.iter().chain(&server).filter_map(own_end).collect::<Vec<_>>()
        })
        .collect()
}

proptest! {
    #[test]
    fn shares_are_even_and_lose_nothing(count: u64, flows in 1_u32..100) {
        let kind = LoadKind::Rr {
            request_bytes: 1,
            response_bytes: 1,
            timeout_ns: 1,
            outstanding: 1,
            schedule: None,
            flows,
        };
        let load = Load { kind, end: LoadEnd::Count { count }, ..RR };
        let shares: Vec<u64> = ends(&load)
            .into_iter()
            .map(|end| match end { StepEnd::Count { count } => count, _ => 0 })
            .collect();
        prop_assert_eq!(shares.iter().sum::<u64>(), count);
        prop_assert!(shares.is_sorted_by(|a, b| a >= b));
        prop_assert!(shares.first().zip(shares.last()).is_some_and(|(a, b)| a - b <= 1));
    }

    #[test]
    fn each_direction_gets_all_bytes(bytes in 0..u64::MAX / 2, up_flows in 1_u32..50, down_flows in 1_u32..50) {
        let kind = stream_of(1, up_flows, down_flows);
        let load = Load { kind, end: LoadEnd::Bytes { bytes }, ..STREAM };
        let sum: u64 = ends(&load)
            .into_iter()
            .map(|end| match end { StepEnd::Bytes { bytes } => bytes, _ => 0 })
            .sum();
        prop_assert_eq!(sum, 2 * bytes);
    }

    #[test]
    fn any_load_has_steps(up_flows: u32, down_flows: u32, flow: u32, end: u64, datagrams: bool) {
        let kind = stream_of(0, up_flows, down_flows);
        let load = Load { kind, datagrams, end: LoadEnd::Bytes { bytes: end }, ..STREAM };
        prop_assert_eq!(steps(&load, flow).client.is_empty(), flow >= load.flows());
    }
}

#[test]
fn a_schedule_is_shared_by_the_flows_in_turns() {
    let schedule = Some(LoadSchedule { per_s: 1000.0, poisson: false });
    let kind = LoadKind::Connect {
        request_bytes: 1,
        response_bytes: 2,
        timeout_ns: 3,
        close: Closing::Rst,
        schedule,
        flows: 4,
    };
    let load = Load { kind, datagrams: false, ..RR };
    for flow in 0..4 {
        let FlowSteps { client, server } = steps(&load, flow);
        let [Step::Connect(connection)] = &client[..] else { panic!("{client:?}") };
        let due = Schedule {
            per_s: 250.0,
            arrivals: Arrivals::Even,
            first_ns: u64::from(flow) * 1_000_000,
        };
        assert_eq!(connection.schedule, Some(due));
        assert!(matches!(&server[..], [Step::Accept(accept)] if accept.schedule.is_none()));
    }
}

#[test]
fn flows_of_a_low_rate_take_turns_and_those_of_a_high_one_begin_together() {
    let LoadKind::Stream { sent, received, .. } = STREAM.kind else { panic!() };
    let kind = LoadKind::Stream { unit_bytes: 1000, up_flows: 4, down_flows: 0, sent, received };
    let first_ns = |bps, flow| {
        let load = Load { kind, pace_bps_per_flow: Some(bps), ..STREAM };
        match &steps(&load, flow).client[..] {
            [Step::Send(Transfer { pace: Some(pace), .. }), ..] => pace.first_ns,
            other => panic!("{other:?}"),
        }
    };
    // 1,000 bytes take a second, or 0.1 ms.
    let slow = [0, 1, 2, 3].map(|flow| first_ns(8_000, flow));
    assert_eq!(slow, [0, 250_000_000, 500_000_000, 750_000_000]);
    assert_eq!([0, 1, 2, 3].map(|flow| first_ns(80_000_000, flow)), [0; 4]);
}
