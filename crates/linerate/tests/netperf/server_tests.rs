//! Every test, over both families: what one end sends the other receives.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};

use linerate_engine::event::{Cancel, Event, Sink};
use linerate_engine::netperf::{
    Client, ControlPlan, Pacing, TestEnd, TestKind, TestPlan, TestTransport,
};

use linerate_wire::netperf::classic::Classic;
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::test::{Length, Part, Request, Transport};

use crate::service::{PATIENCE, Service, tcp, udp};

const BYTES: u32 = 3_000_000;
const SECOND: TestEnd = TestEnd::Seconds(1);

fn loopback(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }
}

#[test]
fn every_byte_that_one_end_sends_the_other_receives() {
    let service = Service::start(None);
    for v6 in [false, true] {
        for kind in [TestKind::Send, TestKind::SendFile, TestKind::Receive] {
            for end in [TestEnd::Units(BYTES), SECOND] {
                let outcome = service.run(v6, &tcp(kind, end)).unwrap();
                let (local, remote) = (outcome.local(), outcome.remote());
                let (sender, receiver) =
                    if kind == TestKind::Receive { (remote, local) } else { (local, remote) };
                assert_eq!(sender.bytes_sent(), receiver.bytes_received(), "{kind:?} {end:?} {v6}");
                assert!(sender.bytes_sent() >= 1_000_000, "{kind:?} {end:?} {v6}");
                if end == TestEnd::Units(BYTES) {
                    let whole = u64::from(BYTES)
                        .next_multiple_of(sender.settings().send_bytes.unwrap().into());
                    assert_eq!(sender.bytes_sent(), whole, "as many whole sends as it takes");
                } else {
                    let elapsed_ns = outcome.client.elapsed_ns;
                    assert!(elapsed_ns >= 900_000_000, "{kind:?}: {elapsed_ns}");
                }
                assert_eq!(local.congestion(), remote.congestion());
                assert!(!outcome.interrupted);
            }
        }
    }
}

#[test]
fn both_ends_count_the_same_transactions() {
    let service = Service::start(None);
    let kinds = [TestKind::RequestResponse, TestKind::ConnectRequestResponse, TestKind::Connect];
    for v6 in [false, true] {
        for (kind, burst) in kinds.map(|kind| (kind, 0)).into_iter().chain([(kinds[0], 7)]) {
            let plan = TestPlan {
                request_bytes: 100,
                response_bytes: 200_000,
                burst,
                ..tcp(kind, TestEnd::Units(50))
            };
            let outcome = service.run(v6, &plan).unwrap();
            assert_eq!(outcome.local().transactions(), 50, "{kind:?} {burst} {v6}");
            assert_eq!(outcome.remote().transactions(), 50, "{kind:?} {burst} {v6}");
            assert_eq!(outcome.local().latency().len(), 50, "{kind:?} {burst} {v6}");
            let bytes = if kind == TestKind::Connect { 0 } else { 50 * 200_000 };
            assert_eq!(outcome.local().bytes_received(), bytes);
            assert_eq!(outcome.remote().bytes_sent(), bytes);
            assert!(outcome.client.errors.is_empty(), "{:?}", outcome.client.errors);
        }
    }
}

#[test]
fn connections_end_soon_after_their_time() {
    let service = Service::start(None);
    for kind in [TestKind::ConnectRequestResponse, TestKind::Connect] {
        let plan = TestPlan { source_ports: Some((20_000, 32_000)), ..tcp(kind, SECOND) };
        let outcome = service.run(false, &plan).unwrap();
        assert!(outcome.local().transactions() > 10, "{kind:?}");
        let told = outcome.remote().transactions();
        assert!(told.abs_diff(outcome.local().transactions()) <= 1, "{kind:?}: {told}");
    }
}

#[test]
fn datagrams_are_counted_at_both_ends() {
    let service = Service::start(None);
    for v6 in [false, true] {
        let mut plan = udp(TestKind::Send, SECOND, loopback(v6));
        plan.local.send_bytes = Some(1000);
        let sent = service.run(v6, &plan).unwrap();
        assert!(sent.remote().receive_calls() > 0);
        assert!(sent.local().send_calls() >= sent.remote().receive_calls());
        assert_eq!(sent.local().bytes_sent(), 1000 * sent.local().send_calls());
        assert_eq!(sent.remote().bytes_received(), 1000 * sent.remote().receive_calls());

        let mut plan = udp(TestKind::Receive, SECOND, loopback(v6));
        plan.remote.send_bytes = Some(1000);
        let received = service.run(v6, &plan).unwrap();
        assert!(received.local().receive_calls() > 0);
        assert!(received.remote().send_calls() >= received.local().receive_calls());
        // Not the time of a timer that waited for a sign which was lost.
        assert!(received.client.elapsed_ns < 4_000_000_000, "{}", received.client.elapsed_ns);

        for burst in [0, 5] {
            let plan = TestPlan { burst, ..udp(TestKind::RequestResponse, SECOND, loopback(v6)) };
            let asked = service.run(v6, &plan).unwrap();
            assert!(asked.local().transactions() > 10);
            assert!(asked.remote().transactions() >= asked.local().transactions());
            assert_eq!(asked.local().latency().len(), asked.local().transactions());
        }
    }
}

#[test]
fn a_pace_is_kept_at_the_end_that_sends() {
    let service = Service::start(None);
    let pacing = Some(Pacing { burst: 10, interval_us: 100_000 });
    for kind in [TestKind::Send, TestKind::Receive] {
        let mut plan = tcp(kind, SECOND);
        plan.local.pacing = pacing;
        plan.remote.pacing = pacing;
        plan.local.send_bytes = Some(1000);
        plan.remote.send_bytes = Some(1000);
        let outcome = service.run(false, &plan).unwrap();
        let sent = outcome.local().bytes_sent().max(outcome.remote().bytes_sent());
        // 100 sends in a second, and what a burst allows beyond.
        assert!((20_000..=160_000).contains(&sent), "{kind:?}: {sent}");
    }
}

#[test]
fn one_connection_carries_many_tests_and_their_samples() {
    let service = Service::start(None);
    let cancel = Cancel::default();
    let mut client = Client::connect(&service.control(false), &cancel).unwrap();
    let calibration = client.calibrate(&cancel).unwrap();
    assert!(calibration.cpus >= 1 && calibration.rate > 0.0);
    for _ in 0..3 {
        let plan = tcp(TestKind::RequestResponse, TestEnd::Units(20));
        let outcome = client.run(&plan, &Sink::none(), &cancel).unwrap();
        assert_eq!(outcome.remote().transactions(), 20);
    }
    let (sink, events) = Sink::bounded(100);
    let mut plan = tcp(TestKind::Receive, SECOND);
    plan.interval_ns = Some(200_000_000);
    (plan.local.cpu, plan.remote.cpu) = (true, true);
    let outcome = client.run(&plan, &sink, &cancel).unwrap();
    client.close();
    drop(sink);
    let received: u64 = events
        .iter()
        .map(|event| match event {
            Event::Sample(sample) => sample.received.map_or(0, |received| received.bytes),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(received > 0 && received <= outcome.local().bytes_received());
    for end in [outcome.local(), outcome.remote()] {
        let cpu = end.cpu().expect("it was asked for");
        assert!(cpu.util_percent > 0.0 && cpu.util_percent <= 100.0, "{cpu:?}");
    }
}

/// A client of 2.4.5 closes its data connection when it has the results, not before.
#[test]
fn requests_of_before_2_6_end_without_a_word() {
    let service = Service::start(None);
    for length in [Length::Seconds(2), Length::Units(100)] {
        let request = Request { length, cpu: true, ..Request::new(Part::Answer, Transport::Tcp) };
        let mut control = TcpStream::connect(service.address(false)).unwrap();
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        let asked = Classic::Rr.encode_request(Form::Short, &request, None).into_bytes();
        control.write_all(&asked).unwrap();
        let mut answer = [0; 256];
        control.read_exact(&mut answer).unwrap();
        let word = |answer: &[u8; 256], at: usize| {
            u32::from_be_bytes(answer[at..at + 4].try_into().unwrap())
        };
        let port = u16::try_from(word(&answer, 8 + 4 * 5)).unwrap();
        let mut data = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for _ in 0..100 {
            data.write_all(&[1]).unwrap();
            data.read_exact(&mut [0]).unwrap();
        }
        control.read_exact(&mut answer).unwrap();
        assert_eq!((word(&answer, 4), word(&answer, 16)), (0, 100), "{length:?}");
        let elapsed_s = f32::from_bits(word(&answer, 20));
        // The silence that follows is no part of it.
        assert!(elapsed_s > 0.0 && elapsed_s < 2.0, "{length:?}: {elapsed_s}");
    }
}

#[test]
fn clients_of_before_2_6_are_served() {
    let service = Service::start(Some("open"));
    let control = ControlPlan {
        short_messages: true,
        passphrase: Some("open".to_owned()),
        ..service.control(false)
    };
    let cancel = Cancel::default();
    let mut client = Client::connect(&control, &cancel).unwrap();
    for kind in [TestKind::RequestResponse, TestKind::ConnectRequestResponse] {
        let outcome = client.run(&tcp(kind, TestEnd::Units(20)), &Sink::none(), &cancel).unwrap();
        assert_eq!((outcome.local().transactions(), outcome.remote().transactions()), (20, 20));
    }
    for kind in [TestKind::Send, TestKind::Receive] {
        let plan = tcp(kind, TestEnd::Units(BYTES));
        let outcome = client.run(&plan, &Sink::none(), &cancel).unwrap();
        assert_eq!(outcome.local().bytes_moved(), outcome.remote().bytes_moved());
    }
    // Nothing on the wire says when these are over.
    let mut plan = TestPlan { end: SECOND, ..TestPlan::new(TestKind::Send, TestTransport::Udp) };
    plan.local.send_bytes = Some(100);
    let outcome = client.run(&plan, &Sink::none(), &cancel).unwrap();
    assert!(outcome.remote().receive_calls() > 0);
    client.close();
}
