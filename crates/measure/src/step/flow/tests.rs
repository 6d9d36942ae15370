use proptest::prelude::*;

use super::*;
use crate::plan::{ConnectTransfer, TransferPattern};
use crate::step::{LifeStep, Size, Text};
use crate::{Arrivals, Rate, Transport};

/// Two flows up and as many down that share 101 bytes in each direction, at 8 kbit/s each.
fn stream() -> Workload {
    let mut workload = Workload::stream(Direction::Both, Transport::Tcp);
    workload.kind = Kind::Stream { direction: Direction::Both, send_bytes: 1000, media: None };
    workload.flows = 2;
    workload.end = End::Bytes { bytes: 101 };
    workload.rate = Some(Rate::EachFlow { bps: 8_000 });
    workload.payload.verify = true;
    workload
}

/// Four flows of 10 transactions in all.
fn rr(transport: Transport) -> Workload {
    let mut workload = Workload::rr(transport);
    workload.kind = Kind::Rr {
        request_bytes: 1,
        response_bytes: 2,
        timeout_ns: 3,
        outstanding: Some(5),
        active_flows: None,
        schedule: None,
    };
    workload.flows = 4;
    workload.end = End::Count { count: 10 };
    workload
}

#[test]
fn frames_are_cut_into_datagrams_of_one_size() {
    for (bps, size, datagrams, bytes) in [
        (2_000_000, 1448, 3, 1388),
        (25_000_000, 1448, 36, 1446),
        (25_000, 1448, 1, 52),
        (48_000, 48, 3, 33),
        (23_040, 48, 1, 48),
        (23_520, 48, 2, 24),
    ] {
        let mut workload = Workload::media(Direction::Down);
        workload.rate = Some(Rate::EachFlow { bps });
        let Kind::Stream { send_bytes, .. } = &mut workload.kind else { unreachable!() };
        *send_bytes = size;
        assert_eq!(workload.frame_datagrams(), Some((datagrams, bytes)), "{bps} {size}");
        assert_eq!(workload.check(), Ok(()), "{bps} {size}");
    }
}

#[test]
fn the_flows_of_a_media_load_take_turns() {
    let workload = Workload { flows: 4, ..Workload::media(Direction::Both) };
    let frames = |flow| match &flow_steps(&workload, flow).client[..] {
        [Step::Send(transfer) | Step::Receive(transfer)] => {
            assert_eq!((transfer.pace, transfer.unit_bytes), (None, 1388));
            transfer.frames.unwrap()
        }
        steps => unreachable!("{steps:?}"),
    };
    let first_ns = |flow| frames(flow).first_ns;
    assert_eq!([0, 1, 2, 3, 4, 7].map(first_ns), [0, 4, 8, 12, 0, 12].map(|ms| ms * 1_000_000));
    assert_eq!((frames(0).per_s, frames(0).datagrams), (60, 3));
    assert_eq!(frames(0).due_ns(3), 50_000_000);
}

#[test]
fn a_stream_up_is_sent_by_the_client_and_closed_by_it() {
    let receive = Transfer {
        end: StepEnd::Peer,
        unit_bytes: 1000,
        pace: None,
        frames: None,
        content: Content::Pattern { offset: 0 },
        framing: Framing::None,
        movement: Movement::Copy,
        yields: true,
    };
    let pace = Some(Pace::Even { bps: 8_000, burst_ns: 1_000_000, least_bytes: 1000, first_ns: 0 });
    let send = Transfer { end: StepEnd::Bytes { bytes: 51 }, pace, ..receive.clone() };
    let FlowSteps { client, server } = flow_steps(&stream(), 0);
    assert_eq!(client, [Step::Send(send), Step::Close(Close::Graceful)]);
    assert_eq!(server, [Step::Receive(receive), Step::Close(Close::AfterPeer)]);
}

#[test]
fn each_end_moves_bytes_in_its_own_way() {
    let mut workload = stream();
    workload.payload.variant = Variant { zero_copy: true, discard: true, ..Variant::default() };
    for flow in 0..4 {
        let FlowSteps { client, server } = flow_steps(&workload, flow);
        for step in client.iter().chain(&server) {
            match step {
                Step::Send(transfer) => assert_eq!(transfer.movement, Movement::ZeroCopy),
                Step::Receive(transfer) => assert_eq!(transfer.movement, Movement::Discard),
                _ => assert!(matches!(step, Step::Close(_)), "{step:?}"),
            }
        }
    }
    workload.payload.variant = Variant { splice: true, ..Variant::default() };
    let FlowSteps { client, server } = flow_steps(&workload, 0);
    let [Step::Send(send), _] = &client[..] else { panic!("{client:?}") };
    let [Step::Receive(receive), _] = &server[..] else { panic!("{server:?}") };
    assert_eq!((send.movement, receive.movement), (Movement::Splice, Movement::Splice));
}

#[test]
fn a_stream_down_is_sent_by_the_server_and_closed_by_it() {
    let FlowSteps { client, server } = flow_steps(&stream(), 2);
    let [Step::Receive(receive), Step::Close(Close::AfterPeer)] = &client[..] else {
        panic!("{client:?}")
    };
    let [Step::Send(send), Step::Close(Close::Graceful)] = &server[..] else {
        panic!("{server:?}")
    };
    // The first flow of its direction.
    assert_eq!((send.end, receive.end), (StepEnd::Bytes { bytes: 51 }, StepEnd::Peer));
    assert_eq!(send.content, Content::Pattern { offset: 2 * 7919 });
    assert_eq!(send.content, receive.content);
}

#[test]
fn a_duplex_flow_sends_and_receives_what_two_flows_would() {
    let (two, mut one) = (stream(), stream());
    one.payload.duplex = true;
    for flow in 0..2 {
        let (up, down) = (flow_steps(&two, flow), flow_steps(&two, flow + 2));
        let FlowSteps { client, server } = flow_steps(&one, flow);
        for (steps, sender, receiver) in
            [(&client, &up.client, &down.client), (&server, &down.server, &up.server)]
        {
            let [Step::Duplex { send, receive }, Step::Close(Close::Graceful)] = &steps[..] else {
                panic!("{steps:?}")
            };
            assert_eq!(sender[0], Step::Send((**send).clone()));
            assert_eq!(receiver[0], Step::Receive((**receive).clone()));
        }
    }
    assert_eq!(flow_steps(&one, 2), FlowSteps { client: Vec::new(), server: Vec::new() });
    assert_eq!((one.opened_flows(), one.total_flows()), (2, 4));
}

#[test]
fn a_time_includes_the_warm_up() {
    let mut workload = stream();
    (workload.end, workload.omit_ns) = (End::Time { duration_ns: 5 }, 2);
    let FlowSteps { client, .. } = flow_steps(&workload, 0);
    let [Step::Send(send), _] = &client[..] else { panic!("{client:?}") };
    assert_eq!(send.end, StepEnd::Time { duration_ns: 7 });
}

#[test]
fn udp_transactions_time_out_and_close_nothing() {
    let FlowSteps { client, server } = flow_steps(&rr(Transport::Udp), 3);
    let [Step::Exchange(exchange)] = &client[..] else { panic!("{client:?}") };
    let [Step::Answer(answer)] = &server[..] else { panic!("{server:?}") };
    assert_eq!((exchange.timeout_ns, answer.timeout_ns), (Some(3), None));
    assert_eq!((exchange.end, answer.end), (StepEnd::Count { count: 2 }, StepEnd::Peer));
    assert_eq!(exchange.framing, Framing::DatagramHeader);
    assert_eq!((exchange.outstanding, exchange.schedule), (5, None));
}

#[test]
fn tcp_transactions_wait_for_ever() {
    let FlowSteps { client, .. } = flow_steps(&rr(Transport::Tcp), 0);
    let [Step::Exchange(exchange), Step::Close(Close::Graceful)] = &client[..] else {
        panic!("{client:?}")
    };
    assert_eq!(exchange.timeout_ns, None);
}

#[test]
fn there_is_nothing_past_the_last_flow() {
    let nothing = FlowSteps { client: Vec::new(), server: Vec::new() };
    assert_eq!(flow_steps(&stream(), 4), nothing);
    assert_eq!(flow_steps(&rr(Transport::Udp), u32::MAX), nothing);
}

fn ends(workload: &Workload) -> Vec<StepEnd> {
    let own_end = |step: &Step| match step {
        Step::Send(transfer) => Some(transfer.end),
        Step::Exchange(exchange) => Some(exchange.end),
        _ => None,
    };
    (0..workload.total_flows())
        .flat_map(|flow| {
            let FlowSteps { client, server } = flow_steps(workload, flow);
            client.iter().chain(&server).filter_map(own_end).collect::<Vec<_>>()
        })
        .collect()
}

proptest! {
    #[test]
    fn shares_are_even_and_lose_nothing(count: u64, flows in 1_u32..100) {
        let load = Workload { flows, end: End::Count { count }, ..rr(Transport::Udp) };
        let shares: Vec<u64> = ends(&load)
            .into_iter()
            .map(|end| match end { StepEnd::Count { count } => count, _ => 0 })
            .collect();
        prop_assert_eq!(shares.iter().sum::<u64>(), count);
        prop_assert!(shares.is_sorted_by(|a, b| a >= b));
        prop_assert!(shares.first().zip(shares.last()).is_some_and(|(a, b)| a - b <= 1));
    }

    #[test]
    fn each_direction_gets_all_bytes(bytes in 0..u64::MAX / 2, flows in 1_u32..50) {
        let load = Workload { flows, end: End::Bytes { bytes }, ..stream() };
        let sum: u64 = ends(&load)
            .into_iter()
            .map(|end| match end { StepEnd::Bytes { bytes } => bytes, _ => 0 })
            .sum();
        prop_assert_eq!(sum, 2 * bytes);
    }

    #[test]
    fn any_load_has_steps(flows: u32, flow: u32, bytes: u64, is_datagrams: bool, send_bytes: u32) {
        let transport = if is_datagrams { Transport::Udp } else { Transport::Tls };
        let kind = Kind::Stream { direction: Direction::Both, send_bytes, media: None };
        let load = Workload { kind, transport, flows, end: End::Bytes { bytes }, ..stream() };
        prop_assert_eq!(flow_steps(&load, flow).client.is_empty(), flow >= load.total_flows());
    }
}

#[test]
fn a_schedule_is_shared_by_the_flows_in_turns() {
    let kind = Kind::Connect {
        request_bytes: 1,
        response_bytes: 2,
        timeout_ns: 3,
        close: Closing::Rst,
        transfer: None,
        hold_ns: 0,
        schedule: Some(Schedule { per_s: 1000.0, arrivals: Arrivals::Even }),
    };
    let load = Workload { kind, ..rr(Transport::Tcp) };
    for flow in 0..4 {
        let FlowSteps { client, server } = flow_steps(&load, flow);
        let [Step::Connect(connection)] = &client[..] else { panic!("{client:?}") };
        let due = FlowSchedule {
            per_s: 250.0,
            arrivals: Arrivals::Even,
            seed: u64::from(flow),
            first_ns: u64::from(flow) * 1_000_000,
        };
        assert_eq!(connection.schedule, Some(due));
        assert!(matches!(&server[..], [Step::Accept(accept)] if accept.schedule.is_none()));
    }
}

#[test]
fn both_ends_of_a_connection_have_one_life_and_one_of_them_closes_first() {
    let lives = |close| {
        let mut workload = Workload::connect(Transport::Tcp);
        let Kind::Connect { response_bytes, close: closing, .. } = &mut workload.kind else {
            panic!("a connect")
        };
        (*response_bytes, *closing) = (7, close);
        let FlowSteps { mut client, mut server } = flow_steps(&workload, 0);
        match (client.pop(), server.pop()) {
            (Some(Step::Connect(connect)), Some(Step::Accept(accept))) => {
                (connect.life, accept.life)
            }
            other => panic!("{other:?}"),
        }
    };
    for (closing, client, server) in [
        (Closing::Fin, Close::AtOnce, Close::AfterPeer),
        (Closing::Rst, Close::Reset, Close::AfterReset),
        (Closing::Server, Close::AfterPeer, Close::AtOnce),
    ] {
        let (dialed, accepted) = lives(closing);
        assert_eq!((dialed.close, accepted.close), (client, server));
        let asks =
            [LifeStep::Send { bytes: Size::Fixed(1) }, LifeStep::Receive { bytes: Size::Fixed(7) }];
        let answers =
            [LifeStep::Receive { bytes: Size::Fixed(1) }, LifeStep::Send { bytes: Size::Fixed(7) }];
        assert_eq!((&dialed.steps[..], &accepted.steps[..]), (&asks[..], &answers[..]));
        assert_eq!(accepted.mirrored(client), dialed);
    }
}

#[test]
fn a_transfer_ends_when_the_server_says_so_and_its_client_holds_the_connection() {
    let mut workload = Workload::connect(Transport::Tcp);
    workload.payload.verify = true;
    let Kind::Connect { transfer, hold_ns, timeout_ns, .. } = &mut workload.kind else {
        panic!("a connect")
    };
    let bytes = Size::Range { low_bytes: 10, high_bytes: 20 };
    let pattern = TransferPattern::PushPull;
    *transfer = Some(ConnectTransfer { pattern, push_bytes: 3, ..ConnectTransfer::new(bytes) });
    (*hold_ns, *timeout_ns) = (70, 1000);
    let FlowSteps { client, server } = flow_steps(&workload, 0);
    let ([Step::Connect(connect)], [Step::Accept(accept)]) = (&client[..], &server[..]) else {
        panic!("{client:?} {server:?}")
    };
    let done = Text::Fixed { bytes: "DONE" };
    let (push, pull) = (3, 1 << 20);
    let turns = |send_bytes, receive_bytes, sends_first| LifeStep::Alternate {
        bytes,
        send_bytes,
        receive_bytes,
        sends_first,
    };
    let told = LifeStep::ReceiveText { text: done };
    let at_client = [turns(push, pull, true), told, LifeStep::Hold { time_ns: 70 }];
    assert_eq!(connect.life.steps, at_client);
    assert_eq!(accept.life.steps, [turns(pull, push, false), LifeStep::SendText { text: done }]);
    assert_eq!((connect.timeout_ns, accept.timeout_ns), (1000, 1070));
    assert!(connect.life.is_numbered() && accept.life.is_numbered());
}

#[test]
fn a_life_of_nothing_has_no_steps_and_a_duplex_step_is_one_at_either_end() {
    assert!(Life::exchange(0, 0, Close::AtOnce).steps.is_empty());
    let fixed = Size::Fixed;
    let turns = |send_bytes, receive_bytes, sends_first| LifeStep::Alternate {
        bytes: fixed(9),
        send_bytes,
        receive_bytes,
        sends_first,
    };
    let steps = vec![LifeStep::Duplex { bytes: fixed(7) }, turns(1, 2, true)];
    let life = Life::new(steps, Close::Graceful);
    let other = life.mirrored(Close::AfterPeer);
    assert_eq!(other.steps, [LifeStep::Duplex { bytes: fixed(7) }, turns(2, 1, false)]);
    assert_eq!((life.amounts(), other.amounts()), ((7, 10), (10, 7)));
}

#[test]
fn flows_of_a_low_rate_take_turns_and_those_of_a_high_one_begin_together() {
    let first_ns = |bps, flow| {
        let load = Workload { flows: 4, rate: Some(Rate::EachFlow { bps }), ..stream() };
        match &flow_steps(&load, flow).client[..] {
            [Step::Send(Transfer { pace: Some(Pace::Even { first_ns, .. }), .. }), ..] => *first_ns,
            other => panic!("{other:?}"),
        }
    };
    // 1,000 bytes take a second, or 0.1 ms.
    let slow = [0, 1, 2, 3].map(|flow| first_ns(8_000, flow));
    assert_eq!(slow, [0, 250_000_000, 500_000_000, 750_000_000]);
    assert_eq!([0, 1, 2, 3].map(|flow| first_ns(80_000_000, flow)), [0; 4]);
}
