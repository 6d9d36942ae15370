use linerate_measure::histogram::IntervalHistogram;
use linerate_measure::sample::Traffic;
use linerate_measure::{Direction, Role, Sample, Transport, Workload};

use super::*;

fn plan(workload: Workload) -> Plan {
    Plan::new("h", 5250, workload)
}

fn upload() -> Plan {
    let end = End::Time { duration_ns: 10_000_000_000 };
    plan(Workload { end, ..Workload::stream(Direction::Up, Transport::Tcp) })
}

fn started(plan: &Plan) -> Event {
    Event::Started { run_id: String::new(), plan: Box::new(plan.clone()), utc_ns: 0 }
}

fn sampled(sample: Sample) -> Event {
    Event::Sample(Box::new(sample))
}

/// An end's first second.
fn second(role: Role) -> Sample {
    let received = Some(Traffic { bytes: 2_450_000_000, calls: Some(1) });
    Sample { to_ns: 1_000_000_000, received, ..Sample::nothing(role) }
}

#[test]
fn it_shows_what_the_run_has_come_to_and_gives_way() {
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    let mut line = StatusLine::new(60);
    assert_eq!(line.refresh(at(5000)), "", "no run, no line");
    line.begin(&upload(), Turn::ONLY, began);
    assert_eq!(line.refresh(at(900)), "");
    assert_eq!(line.refresh(at(3100)), format!("{CLEAR}connecting to h:5250 for 3 s"));
    assert_eq!(line.refresh(at(3200)), "", "it was drawn just now");
    assert_eq!(line.give_way(), CLEAR);
    assert_eq!(line.give_way(), "", "it is away already");

    line.handle_event(&started(&upload()), at(4000));
    assert_eq!(line.refresh(at(4100)), format!("{CLEAR}0 of 10 s"));
    line.handle_event(&sampled(second(Role::Client)), at(5000));
    line.handle_event(&sampled(second(Role::Server)), at(5000));
    assert_eq!(line.refresh(at(5000)), format!("{CLEAR}1 of 10 s, 19.6 Gbit/s so far"));
    assert_eq!(line.refresh(at(5500)), "", "there is nothing new");
    assert_eq!(line.give_way(), CLEAR);
    assert_eq!(line.refresh(at(5800)), format!("{CLEAR}1 of 10 s, 19.6 Gbit/s so far"));
    assert!(line.refresh(at(16_000)).contains("waiting for the results"));
    assert_eq!(line.end(), CLEAR);
    assert_eq!(line.refresh(at(17_000)), "", "the run is over");
}

#[test]
fn it_counts_the_runs() {
    let began = Instant::now();
    let mut line = StatusLine::new(80);
    let shown = |line: &mut StatusLine, turn| {
        line.begin(&upload(), turn, began);
        line.handle_event(&started(&upload()), began);
        line.render(began).unwrap()
    };
    let turn = Turn { number: 3, of: 8, at_most: false };
    assert_eq!(shown(&mut line, turn), "run 3 of 8, 0 of 10 s");
    let turn = Turn { at_most: true, ..turn };
    assert_eq!(shown(&mut line, turn), "run 3 of at most 8, 0 of 10 s");
}

#[test]
fn each_kind_of_load_has_its_own_figures() {
    let began = Instant::now();
    let shown = |workload: Workload, samples: &[Sample]| {
        let mut line = StatusLine::new(80);
        line.handle_event(&started(&plan(workload)), began);
        samples.iter().for_each(|sample| line.handle_event(&sampled(sample.clone()), began));
        let text = line.render(began).unwrap();
        text.split_once(" s, ").unwrap().1.to_owned()
    };
    let transactions = Sample {
        transactions: Some(9_120),
        latency_mean_ns: Some(105_000.0),
        ..second(Role::Client)
    };
    let mut latencies = IntervalHistogram::default();
    (0..9_120_u64).for_each(|number| latencies.record_ns(60_000 + number * 10));
    let timed = Sample { latency_hdr: Some(latencies.to_base64()), ..transactions.clone() };
    assert_eq!(
        shown(Workload::connect(Transport::Tcp), &[timed]),
        "9.12k connections/s so far, p50 106 µs, p99 150 µs"
    );
    assert_eq!(
        shown(Workload::rr(Transport::Tcp), std::slice::from_ref(&transactions)),
        "9.12k transactions/s so far, mean 105 µs"
    );
    assert_eq!(
        shown(Workload::connect(Transport::Tcp), &[transactions]),
        "9.12k connections/s so far, mean 105 µs"
    );
    let both = Workload::stream(Direction::Both, Transport::Quic);
    assert_eq!(
        shown(both, &[second(Role::Client), second(Role::Server)]),
        "up 19.6 Gbit/s, down 19.6 Gbit/s so far"
    );
    let datagrams = linerate_measure::sample::DatagramCounts {
        received: Some(990),
        lost: Some(10),
        ..Default::default()
    };
    let lossy = Sample { datagrams: Some(datagrams), warm_up: true, ..second(Role::Server) };
    assert_eq!(
        shown(Workload::stream(Direction::Up, Transport::Udp), &[lossy]),
        "warming up, 19.6 Gbit/s, 1.00 % lost"
    );
}
