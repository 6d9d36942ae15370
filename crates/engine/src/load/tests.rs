use std::time::Duration;

use linerate_measure::summary::judge;
use linerate_measure::{Arrivals, Direction, Rate, Schedule, Transport};

use super::*;
use crate::clock::SECOND_NS;
use crate::flow::Ending;
use crate::shard::OwnLoop;

/// When the loads of these tests open.
const OPENED_NS: u64 = 7;

/// A client's load that is open and whose shard does this.
fn opened(workload: &Workload, make: fn(Vec<Arc<FlowShared>>) -> OwnLoop) -> Load {
    let waker = Arc::new(Waker::new().unwrap());
    let connections = Some(Connections::Made(make));
    let mut load = Load::prepare(Role::Client, workload, &[], &waker, connections).unwrap();
    load.open(OPENED_NS);
    load
}

/// Flows that do nothing until they are stopped.
fn idle(flows: Vec<Arc<FlowShared>>) -> OwnLoop {
    Box::new(move |_, local| {
        flows.iter().for_each(|flow| flow.set_ready(local));
        while local.phase() < Phase::Stop {
            std::thread::sleep(Duration::from_millis(1));
        }
        flows.iter().for_each(|flow| flow.set_ended(Ending::default(), local));
    })
}

/// Flows whose connections are reset.
fn reset(flows: Vec<Arc<FlowShared>>) -> OwnLoop {
    Box::new(move |_, local| {
        let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset).into();
        flows.iter().for_each(|flow| flow.end_unbegun(&error, local));
    })
}

fn by_count(workload: Workload) -> Workload {
    Workload { end: End::Count { count: 10 }, ..workload }
}

fn stands_still_after(load: &mut Load, seconds: u64) -> bool {
    load.tick(OPENED_NS + seconds * SECOND_NS);
    load.phase.current() == Phase::Abort
}

#[test]
fn a_load_without_a_time_that_stands_still_is_given_up_and_says_so() {
    for end in [End::Count { count: 10 }, End::Bytes { bytes: 10 }] {
        let workload = Workload { end, ..Workload::stream(Direction::Up, Transport::Tcp) };
        let mut load = opened(&workload, idle);
        assert!(!stands_still_after(&mut load, 1) && !stands_still_after(&mut load, 29));
        assert!(stands_still_after(&mut load, 30));
        let (_, report) = load.finish(40 * SECOND_NS);
        assert!(report.notes.iter().any(|note| note.contains("nothing moved for 30 s")));
    }
    let hour_ns = 3_600 * SECOND_NS;
    let by_time = End::Time { duration_ns: hour_ns };
    let mut load = opened(&Workload { end: by_time, ..Workload::rr(Transport::Tcp) }, idle);
    assert!(!stands_still_after(&mut load, 3_599));
}

#[test]
fn an_error_counts_once_for_each_connection_however_many_flows_go_over_it() {
    for (duplex, errors) in [(false, 4), (true, 2)] {
        let mut stream = Workload::stream(Direction::Both, Transport::Tcp);
        stream.payload.duplex = duplex;
        let load = opened(&Workload { flows: 2, ..stream }, reset);
        let (_, report) = load.finish(OPENED_NS + SECOND_NS);
        assert_eq!(report.errors, [("reset".to_owned(), errors)].into());
        assert_eq!(report.flows.iter().filter(|flow| flow.error.is_some()).count(), 4);
    }
}

#[test]
fn progress_at_either_end_puts_off_the_standstill() {
    let mut load = opened(&by_count(Workload::rr(Transport::Tcp)), idle);
    assert!(!stands_still_after(&mut load, 20));
    load.flows[0].as_ref().unwrap().tally.record_sent(1);
    assert!(!stands_still_after(&mut load, 21) && !stands_still_after(&mut load, 50));
    let mut sample = load.tick(OPENED_NS + 51 * SECOND_NS).unwrap();
    sample.received = Some(linerate_measure::sample::Traffic { bytes: 1, calls: Some(1) });
    load.handle_peer_sample(&sample, 51 * SECOND_NS);
    assert!(!stands_still_after(&mut load, 80));
    // One in which nothing moved puts nothing off.
    sample.received = None;
    load.handle_peer_sample(&sample, 80 * SECOND_NS);
    assert!(stands_still_after(&mut load, 82));
}

#[test]
fn a_load_of_which_little_is_due_does_not_stand_still() {
    let mut rr = Workload::rr(Transport::Tcp);
    let Kind::Rr { schedule, .. } = &mut rr.kind else { panic!() };
    *schedule = Some(Schedule { per_s: 1.0 / 60.0, arrivals: Arrivals::Even });
    let mut stream = Workload::stream(Direction::Up, Transport::Udp);
    stream.rate = Some(Rate::AllFlows { bps: 1448 * 8 / 60 });
    for workload in [rr, stream] {
        let mut load = opened(&by_count(workload), idle);
        assert!(!stands_still_after(&mut load, 89));
        assert!(stands_still_after(&mut load, 92));
    }
}

/// The first flow's thread fails, the others have none.
fn failing(flows: Vec<Arc<FlowShared>>) -> OwnLoop {
    if flows.iter().all(|flow| flow.number > 0) {
        return idle(flows);
    }
    Box::new(|_, _| panic!("as a test wants it"))
}

#[test]
fn a_thread_that_fails_ends_the_load_and_makes_it_no_sound_result() {
    let mut workload = Workload { flows: 2, ..Workload::rr(Transport::Tcp) };
    workload.threading.threads = Some(2);
    let mut load = opened(&workload, failing);
    let began = std::time::Instant::now();
    while !load.all_ended() {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody said that it has failed");
        std::thread::sleep(Duration::from_millis(1));
    }
    load.tick(OPENED_NS + 1);
    assert_eq!(load.phase.current(), Phase::Abort, "the other thread goes on");
    let (_, report) = load.finish(SECOND_NS);
    assert!(report.flows[0].error.as_ref().unwrap().starts_with("thread_failed"));
    assert_eq!(report.flows[1].error, None);
    let reasons = judge(&workload, Some(&report), None);
    assert!(reasons.iter().any(|reason| reason.contains("thread_failed")), "{reasons:?}");
}

mod lives;
