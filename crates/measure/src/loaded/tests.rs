//! Formulas against values worked out by hand, and what runs of parts come to.

use proptest::prelude::*;

use super::*;
use crate::Plan;
use crate::histogram::Histogram;
use crate::plan::{Direction, End, Transport, Workload};
use crate::report::{Disturbance, EndReport, Standstills};
use crate::run::{Draft, Outcome, Run, exit};
use crate::sample::{FlowSample, QuicStatus, Role, Sample, TcpStatus, Traffic};
use crate::trust::{Reason, ReasonCode, Severity, Trust};

const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

fn asked(transport: Transport) -> LoadedPlan {
    LoadedPlan {
        transport,
        flows: 1,
        congestion: "cubic".to_owned(),
        idle_ns: 2 * SECOND_NS,
        longest_ns: 10 * SECOND_NS,
        warm_up_ns: SECOND_NS,
    }
}

fn rpm_of(foreign_ms: f64, self_ms: f64) -> Rpm {
    let input = RpmInput {
        foreign_mean_ns: foreign_ms * 3e6,
        self_mean_ns: self_ms * 1e6,
        p90_ns: Some(((foreign_ms * 3e6) as u64, (self_ms * 1e6) as u64)),
    };
    Rpm::of(&input).unwrap()
}

#[test]
fn the_two_formulas_differ_as_their_authors_say() {
    // Foreign 20 ms: 3000 a minute. Self 200 ms: 300. Their mean is 1650, and 60 s over the mean of 110 ms is 545.
    let rpm = rpm_of(20.0, 200.0);
    assert!((rpm.draft_09 - 1650.0).abs() < 1e-9, "{rpm:?}");
    assert!((rpm.mean_latency - 545.454_545).abs() < 1e-3, "{rpm:?}");
    assert!((rpm.p90.unwrap() - 545.454_545).abs() < 1e-3, "{rpm:?}");
    let equal = rpm_of(60.0, 60.0);
    assert!((equal.draft_09 - 1000.0).abs() < 1e-9 && (equal.mean_latency - 1000.0).abs() < 1e-9);
}

#[test]
fn without_a_latency_there_is_no_rate() {
    for (foreign_mean_ns, self_mean_ns) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0)] {
        assert_eq!(Rpm::of(&RpmInput { foreign_mean_ns, self_mean_ns, p90_ns: None }), None);
    }
    let input = RpmInput { foreign_mean_ns: 3e9, self_mean_ns: 1e9, p90_ns: Some((0, 0)) };
    assert_eq!(Rpm::of(&input).unwrap().p90, None);
}

#[test]
fn a_trimmed_mean_leaves_the_worst_twentieth_out() {
    let mut histogram = Histogram::new();
    assert_eq!(trimmed_mean_ns(&histogram), None);
    histogram.record_ns(500 * MS_NS);
    let near = |ns: Option<f64>, wanted: f64| assert!((ns.unwrap() / wanted - 1.0).abs() < 2e-3);
    near(trimmed_mean_ns(&histogram), 500e6);
    // 95 of 10 ms stay, of 5 of 500 ms none.
    (0..95).for_each(|_| histogram.record_ns(10 * MS_NS));
    (0..4).for_each(|_| histogram.record_ns(500 * MS_NS));
    near(trimmed_mean_ns(&histogram), 10e6);
    // Of 20 one is left out: 10 of 10 ms and 9 of 20 ms.
    let mut histogram = Histogram::new();
    (0..10).for_each(|_| histogram.record_ns(10 * MS_NS));
    (0..10).for_each(|_| histogram.record_ns(20 * MS_NS));
    near(trimmed_mean_ns(&histogram), 280e6 / 19.0);
}

proptest! {
    #[test]
    fn longer_latencies_never_make_a_path_more_responsive(
        foreign_ms in 0.01..10_000.0_f64,
        self_ms in 0.01..10_000.0_f64,
        longer in 1.0..100.0_f64,
    ) {
        let rpm = rpm_of(foreign_ms, self_ms);
        for worse in [rpm_of(foreign_ms * longer, self_ms), rpm_of(foreign_ms, self_ms * longer)] {
            prop_assert!(worse.draft_09 <= rpm.draft_09 * (1.0 + 1e-9));
            prop_assert!(worse.mean_latency <= rpm.mean_latency * (1.0 + 1e-9));
            prop_assert!(worse.p90 <= rpm.p90);
        }
        // The mean of rates is never below the rate of the mean.
        prop_assert!(rpm.draft_09 >= rpm.mean_latency * (1.0 - 1e-9));
    }

    #[test]
    fn a_trimmed_mean_is_between_the_least_and_the_mean(
        latencies_us in prop::collection::vec(1..1_000_000_u64, 1..300),
    ) {
        let mut histogram = Histogram::new();
        latencies_us.iter().for_each(|us| histogram.record_ns(us * 1_000));
        let trimmed = trimmed_mean_ns(&histogram).unwrap();
        let mean = latencies_us.iter().sum::<u64>() as f64 * 1e3 / latencies_us.len() as f64;
        let least = *latencies_us.iter().min().unwrap() as f64 * 1e3;
        prop_assert!((least * 0.998..=mean * 1.002).contains(&trimmed), "{least} {trimmed} {mean}");
    }
}

#[test]
fn every_workload_of_every_phase_is_one_that_can_be_measured() {
    for transport in [Transport::Tcp, Transport::Tls, Transport::Quic] {
        let asked = asked(transport);
        let mut per_s = 0.0;
        for phase in PhaseName::ALL {
            for part in Part::of(phase) {
                let workload = asked.workload(phase, part);
                assert_eq!(workload.check(), Ok(()), "{phase:?} {part:?}");
                per_s += workload.schedule().map_or(0.0, |schedule| schedule.per_s);
                assert_eq!(workload.direction(), phase.direction().filter(|_| part == Part::Load));
                assert_eq!(workload.omit_ns > 0, phase != PhaseName::Idle);
            }
        }
        assert!((per_s / 4.0 - PROBES_PER_S).abs() < 1e-9, "{per_s}");
    }
    let asked = asked(Transport::Tcp);
    let load = asked.workload(PhaseName::Up, Part::Load);
    assert_eq!(load.socket.congestion.as_deref(), Some("cubic"));
    assert_eq!(load.end, End::Time { duration_ns: 10 * SECOND_NS });
    let idle = asked.workload(PhaseName::Idle, Part::Sparse);
    assert_eq!(idle.end, End::Time { duration_ns: 2 * SECOND_NS });
}

/// The samples of an end: bytes received and the mean latency of each interval.
fn samples(
    role: Role,
    count: u64,
    bytes: impl Fn(u64) -> u64,
    ms: impl Fn(u64) -> f64,
) -> Vec<Sample> {
    let sample = |place: u64| Sample {
        from_ns: place * INTERVAL_NS,
        to_ns: (place + 1) * INTERVAL_NS,
        received: Some(Traffic { bytes: bytes(place), calls: None }),
        latency_mean_ns: Some(ms(place) * 1e6),
        ..Sample::nothing(role)
    };
    (0..count).map(sample).collect()
}

/// A watch of one direction's load and of requests.
fn watched(
    direction: Direction,
    count: u64,
    bytes: impl Fn(u64) -> u64,
    ms: impl Fn(u64) -> f64,
) -> Watch {
    let mut watch = Watch::default();
    let stream = Workload::stream(direction, Transport::Tcp);
    for sample in samples(direction.receiver(), count, bytes, |_| 0.0) {
        watch.handle_sample(Part::Load, &stream, &sample);
    }
    let rr = Workload::rr(Transport::Tcp);
    for sample in samples(Role::Client, count, |_| 1, ms) {
        watch.handle_sample(Part::Sparse, &rr, &sample);
    }
    watch
}

#[test]
fn a_phase_is_steady_where_goodput_and_latency_are_known_to_a_tenth() {
    let level = |place: u64| 1_000_000 + place * 7 % 5 * 1_000;
    let even = |place: u64| 40.0 + (place * 3 % 4) as f64 / 10.0;
    for direction in [Direction::Up, Direction::Down] {
        assert!(watched(direction, 50, level, even).is_done());
        assert!(!watched(direction, 49, level, even).is_done(), "too short");
        let rises = watched(direction, 60, |place| 100_000 * (place + 1), even);
        assert_eq!(rises.steadiness().goodput_varied_by, None);
        assert_eq!(rises.steadiness().confidence(), Confidence::Medium);
        let falls = watched(direction, 60, |place| 100_000 * (61 - place), even);
        assert_eq!(falls.steadiness().goodput_varied_by, None);
        let wild =
            watched(direction, 60, level, |place| if place / 9 % 2 == 0 { 1.0 } else { 90.0 });
        assert_eq!(wild.steadiness().confidence(), Confidence::Medium);
        let neither = watched(direction, 60, |place| place * 9, |place| place as f64);
        assert_eq!(neither.steadiness().confidence(), Confidence::Low);
    }
}

#[test]
fn the_less_steady_of_two_directions_counts() {
    let mut watch = watched(Direction::Up, 60, |_| 1_000_000, |_| 5.0);
    let both = Workload::stream(Direction::Both, Transport::Tcp);
    for (role, step) in [(Role::Server, 0), (Role::Client, 100_000)] {
        for sample in samples(role, 60, |place| 1_000_000 + place * step, |_| 0.0) {
            watch.handle_sample(Part::Load, &both, &sample);
        }
    }
    assert_eq!(watch.steadiness().goodput_varied_by, None, "down rises");
}

fn text_of(latencies_ms: &[u64]) -> Option<String> {
    let mut histogram = Histogram::new();
    latencies_ms.iter().for_each(|ms| histogram.record_ns(ms * MS_NS));
    Some(histogram.to_base64())
}

fn run_of(workload: Workload, client: EndReport, samples: Vec<Sample>) -> Run {
    let server = EndReport { elapsed_ns: client.elapsed_ns, ..EndReport::nothing(Role::Server) };
    let draft = Draft {
        client: Some(client),
        server: Some(server),
        samples,
        ..Draft::new("7".to_owned(), Plan::new("h", 5250, workload))
    };
    draft.into_run(Outcome::Complete, exit::VALID, None)
}

/// Round trips that a load's sender told, in ms, of TCP or QUIC.
fn told(role: Role, flow: u32, transport: Transport, rtts_ms: &[u32]) -> Vec<Sample> {
    let sample = |(place, rtt_ms): (usize, &u32)| {
        let (rtt_us, min_rtt_us) = (rtt_ms * 1_000, 5_000);
        let quic = QuicStatus { rtt_us, min_rtt_us, ..QuicStatus::default() };
        let tcp = TcpStatus { rtt_us, min_rtt_us: Some(min_rtt_us), ..TcpStatus::default() };
        let is_quic = transport == Transport::Quic;
        let flow = FlowSample {
            flow,
            tcp: (!is_quic).then_some(tcp),
            quic: is_quic.then(|| Box::new(quic)),
            ..FlowSample::default()
        };
        let place = place as u64;
        Sample {
            from_ns: place * INTERVAL_NS,
            to_ns: (place + 1) * INTERVAL_NS,
            flows: vec![flow],
            ..Sample::nothing(role)
        }
    };
    rtts_ms.iter().enumerate().map(sample).collect()
}

/// The parts of a phase: the load's round trip is 45 ms, a new connection takes 120 ms.
fn parts(phase: PhaseName, transport: Transport) -> Vec<PartRun> {
    let asked = asked(transport);
    let elapsed_ns = if phase == PhaseName::Idle { asked.idle_ns } else { asked.longest_ns };
    Part::of(phase)
        .into_iter()
        .map(|part| {
            let workload = asked.workload(phase, part);
            let mut client = EndReport { elapsed_ns, ..EndReport::nothing(Role::Client) };
            let mut samples = Vec::new();
            match part {
                Part::Load => {
                    let sender = phase.direction().unwrap().sender();
                    let flow = u32::from(phase == PhaseName::Both);
                    let role = if phase == PhaseName::Both { Role::Server } else { sender };
                    samples = told(role, flow, transport, &[45; 40]);
                }
                Part::Sparse => {
                    samples = told(Role::Client, 3, transport, &[51; 40]);
                    client.latency_hdr = text_of(&[50; 400]);
                }
                Part::Udp => client.latency_hdr = text_of(&[50; 400]),
                Part::Tcp => client.establishment_hdr = text_of(&[40; 200]),
                Part::Tls => {
                    client.establishment_hdr = text_of(&[80; 200]);
                    client.first_byte_hdr = text_of(&[120; 200]);
                }
            }
            let mut run = run_of(workload, client, samples);
            if part == Part::Load {
                run.summary.goodput_bps = Some(40e6);
                run.summary.goodput_up_bps = Some(19e6);
                run.summary.goodput_down_bps = Some(21e6);
            }
            PartRun { part, run }
        })
        .collect()
}

fn is_near(value_ns: u64, wanted_ms: u64) -> bool {
    (value_ns as f64 / (wanted_ms * MS_NS) as f64 - 1.0).abs() < 2e-3
}

#[test]
fn a_phase_has_the_figures_of_its_runs() {
    for transport in [Transport::Tcp, Transport::Quic] {
        let up = Phase::of(PhaseName::Up, Ended::TimeUp, 0, parts(PhaseName::Up, transport));
        assert!(is_near(up.sparse.unwrap().p50.unwrap(), 50));
        assert!(is_near(up.udp.unwrap().p99.unwrap(), 50));
        assert!(is_near(up.foreign.tcp.unwrap().p50.unwrap(), 40));
        assert!(is_near(up.foreign.tls.unwrap().p50.unwrap(), 80));
        assert!(is_near(up.foreign.first_byte.unwrap().p50.unwrap(), 120));
        assert!(is_near(up.own.unwrap().p50.unwrap(), 45));
        assert_eq!((up.goodput_up_bps, up.goodput_down_bps), (Some(40e6), None));
        for one in &up.runs {
            let lists_flows = one.run.samples.iter().any(|sample| !sample.flows.is_empty());
            assert_eq!(lists_flows, one.part == Part::Load, "{:?}", one.part);
        }
        let queue = up.queue.unwrap();
        assert!(is_near(queue.delay_ns, 40) && queue.least_rtt_ns == 5 * MS_NS, "{queue:?}");
        // 40 Mbit/s for 40 ms are 200 kB.
        assert!((199_000..201_000).contains(&queue.bytes.unwrap()), "{queue:?}");
        // F is 60 s / 40 ms, L is 60 s / 45 ms.
        let rpm = up.rpm.unwrap();
        assert!((rpm.draft_09 / 1416.7 - 1.0).abs() < 3e-3, "{rpm:?}");
        assert!((rpm.mean_latency / 1411.8 - 1.0).abs() < 3e-3, "{rpm:?}");
        let down = Phase::of(PhaseName::Down, Ended::Steady, 0, parts(PhaseName::Down, transport));
        assert_eq!((down.goodput_up_bps, down.goodput_down_bps), (None, Some(40e6)));
        assert!(is_near(down.own.unwrap().p50.unwrap(), 45), "the server's word");
        let both = Phase::of(PhaseName::Both, Ended::Steady, 0, parts(PhaseName::Both, transport));
        assert_eq!((both.goodput_up_bps, both.goodput_down_bps), (Some(19e6), Some(21e6)));
        assert_eq!(both.queue.map(|queue| queue.bytes), Some(None), "it is that of two queues");
    }
    let idle = Phase::of(PhaseName::Idle, Ended::TimeUp, 0, parts(PhaseName::Idle, Transport::Tcp));
    assert_eq!((idle.own, idle.queue, idle.rpm, idle.confidence), (None, None, None, None));
    assert!(idle.sparse.is_some() && idle.foreign.first_byte.is_some());
}

#[test]
fn warm_up_and_the_other_ends_round_trips_dont_count() {
    let mut parts = parts(PhaseName::Up, Transport::Tcp);
    let samples = &mut parts[0].run.samples;
    samples.extend(told(Role::Server, 0, Transport::Tcp, &[900; 100]));
    let mut early = told(Role::Client, 0, Transport::Tcp, &[800; 100]);
    early.iter_mut().for_each(|sample| sample.warm_up = true);
    samples.extend(early);
    let up = Phase::of(PhaseName::Up, Ended::TimeUp, 0, parts);
    assert!(is_near(up.own.unwrap().max, 45), "{:?}", up.own);
}

fn disturb(parts: &mut [PartRun], part: Part, disturb: impl Fn(&mut Disturbance)) {
    let one = parts.iter_mut().find(|one| one.part == part).unwrap();
    let of_role = |role: Role| one.run.reports.iter().find(|report| report.role == role).cloned();
    let mut server = of_role(Role::Server).unwrap();
    disturb(server.disturbance.get_or_insert_default());
    let draft = Draft {
        client: of_role(Role::Client),
        server: Some(server),
        ..Draft::new("7".to_owned(), one.run.plan.clone())
    };
    one.run = draft.into_run(Outcome::Complete, exit::VALID, None);
}

#[test]
fn a_part_that_stood_still_makes_the_whole_doubtful() {
    let late = Standstills { longest_ns: 300 * MS_NS, at_ns: SECOND_NS, total_ns: 300 * MS_NS };
    let mut idle = parts(PhaseName::Idle, Transport::Tcp);
    for part in [Part::Udp, Part::Tcp] {
        disturb(&mut idle, part, |disturbance| disturbance.lateness = Some(late));
    }
    let mut phases = vec![Phase::of(PhaseName::Idle, Ended::TimeUp, 0, idle)];
    assert_eq!(phases[0].verdict, Trust::Doubtful);
    for name in [PhaseName::Up, PhaseName::Down, PhaseName::Both] {
        phases.push(Phase::of(name, Ended::Steady, 0, parts(name, Transport::Tcp)));
    }
    let loaded = Loaded::of(("h".to_owned(), 5250), asked(Transport::Tcp), phases);
    let mut status = loaded.status;
    assert_eq!((status.outcome, status.verdict), (Outcome::Complete, Trust::Doubtful));
    assert_eq!(status.reasons.len(), 1, "told once: {:?}", status.reasons);
    assert_eq!((status.reasons[0].phase, status.reasons[0].part), (PhaseName::Idle, Part::Udp));
    assert_eq!(status.exit_code, exit::VALID);
    status.be_strict();
    assert_eq!(status.exit_code, exit::UNTRUSTWORTHY);
}

#[test]
fn the_parts_of_a_phase_are_no_other_tests_and_those_of_others_are() {
    // A server that knows leases counts the parts as one test.
    let counted =
        [(4, 1, None), (4, 4, None), (4, 5, Some(1.0)), (4, 7, Some(3.0)), (0, 1, Some(1.0))];
    for (siblings, others, told) in counted {
        let mut parts = parts(PhaseName::Up, Transport::Tcp);
        disturb(&mut parts, Part::Load, |disturbance| disturbance.other_tests = Some(others));
        assert_eq!(parts[0].run.status.verdict, Some(Trust::Doubtful));
        let up = Phase::of(PhaseName::Up, Ended::TimeUp, siblings, parts);
        let reasons: Vec<_> = up.reasons().map(|(_, reason)| (reason.code, reason.value)).collect();
        let wanted = told.map(|value| (ReasonCode::OtherTests, Some(value)));
        assert_eq!(reasons, wanted.into_iter().collect::<Vec<_>>(), "{others}");
        let verdict = if told.is_some() { Trust::Doubtful } else { Trust::Valid };
        assert_eq!((up.verdict, up.runs[0].run.status.verdict), (verdict, Some(verdict)));
    }
}

#[test]
fn of_unsteady_rates_only_a_change_of_the_load_is_a_reason() {
    let cases = [
        (Part::Load, Some(0.5), true),
        (Part::Load, None, false),
        (Part::Sparse, Some(0.5), false),
        (Part::Sparse, None, false),
    ];
    for (part, value, is_told) in cases {
        let mut parts = parts(PhaseName::Up, Transport::Tcp);
        let status = &mut parts.iter_mut().find(|one| one.part == part).unwrap().run.status;
        status.reasons.push(Reason {
            code: ReasonCode::NotSteady,
            severity: Severity::Doubtful,
            value,
            ..Reason::contradiction("the rate".to_owned())
        });
        status.verdict = Some(Trust::Doubtful);
        let up = Phase::of(PhaseName::Up, Ended::TimeUp, 0, parts);
        assert_eq!(up.reasons().count(), usize::from(is_told), "{part:?} {value:?}");
        let verdict = if is_told { Trust::Doubtful } else { Trust::Valid };
        assert_eq!(up.verdict, verdict, "{part:?} {value:?}");
    }
}

#[test]
fn one_dip_or_spike_leaves_a_phase_steady() {
    for around in [0.5, 1.5] {
        let bytes = |place: u64| {
            let level = 1_000_000 + place * 7 % 5 * 200;
            if place == 27 { (level as f64 * around) as u64 } else { level }
        };
        assert!(watched(Direction::Up, 60, bytes, |_| 5.0).is_done(), "{around}");
    }
}

#[test]
fn intervals_in_which_nothing_arrived_count() {
    let mut watch = Watch::default();
    let up = Workload::stream(Direction::Up, Transport::Tcp);
    let mut all = samples(Role::Server, 60, |_| 1_000_000, |_| 0.0);
    for sample in all.iter_mut().skip(1).step_by(2) {
        sample.received = None;
    }
    all.iter().for_each(|sample| watch.handle_sample(Part::Load, &up, sample));
    let varied_by = watch.steadiness().goodput_varied_by;
    assert!(varied_by.is_some_and(|share| share > 0.1), "{varied_by:?}");
}

#[test]
fn an_error_of_this_end_leaves_the_phases_before() {
    let idle = Phase::of(PhaseName::Idle, Ended::TimeUp, 0, parts(PhaseName::Idle, Transport::Tcp));
    let mut loaded = Loaded::of(("h".to_owned(), 1), asked(Transport::Tcp), vec![idle]);
    loaded.status.fail(exit::FAILED, "no thread".to_owned());
    let status = &loaded.status;
    assert_eq!((status.outcome, status.verdict), (Outcome::Failed, Trust::Invalid));
    assert_eq!((status.exit_code, status.message.as_deref()), (exit::FAILED, Some("no thread")));
    assert_eq!(loaded.phases.len(), 1);
}

#[test]
fn times_that_a_schedule_or_a_late_answer_accounts_for_are_no_doubt() {
    // Latencies of 50 ms at 20 a second: 200 ms more or less than 2 s are the probes' own doing.
    for (elapsed_ms, is_told) in [(1_820, false), (2_190, false), (1_700, true), (2_300, true)] {
        let mut idle = parts(PhaseName::Idle, Transport::Tcp);
        let one = idle.iter_mut().find(|one| one.part == Part::Udp).unwrap();
        let mut client = one.run.reports[0].clone();
        client.elapsed_ns = elapsed_ms * MS_NS;
        one.run = run_of(one.run.plan.workload.clone(), client, Vec::new());
        assert_eq!(one.run.status.verdict, Some(Trust::Doubtful), "{elapsed_ms}");
        let idle = Phase::of(PhaseName::Idle, Ended::TimeUp, 0, idle);
        assert_eq!(idle.verdict == Trust::Doubtful, is_told, "{elapsed_ms}");
    }
}

#[test]
fn a_part_that_told_nothing_leaves_doubt() {
    let mut up = parts(PhaseName::Up, Transport::Tcp);
    let draft = Draft::new("7".to_owned(), up[2].run.plan.clone());
    up[2].run = draft.into_run(Outcome::Interrupted, exit::INTERRUPTED, None);
    assert_eq!(up[2].run.status.verdict, Some(Trust::Valid));
    let up = Phase::of(PhaseName::Up, Ended::Steady, 0, up);
    assert_eq!((up.verdict, up.udp), (Trust::Doubtful, None));
    assert!(up.reasons().all(|(part, reason)| part == Part::Udp && reason.text.contains("UDP")));
}

#[test]
fn a_part_that_failed_leaves_what_came_before_and_its_exit_code() {
    let idle = Phase::of(PhaseName::Idle, Ended::TimeUp, 0, parts(PhaseName::Idle, Transport::Tcp));
    let mut up = parts(PhaseName::Up, Transport::Tcp);
    let plan = up[1].run.plan.clone();
    let why = Some("no room".to_owned());
    up[1].run = Draft::new("7".to_owned(), plan).into_run(Outcome::Failed, exit::BUSY, why);
    let up = Phase::of(PhaseName::Up, Ended::Interrupted, 0, up);
    assert_eq!(up.ended, Ended::Failed);
    let server = ("h".to_owned(), 5250);
    let loaded = Loaded::of(server.clone(), asked(Transport::Tcp), vec![idle.clone(), up]);
    let status = &loaded.status;
    assert_eq!((status.outcome, status.exit_code), (Outcome::Failed, exit::BUSY));
    assert_eq!((status.verdict, status.message.as_deref()), (Trust::Invalid, Some("no room")));
    assert!(loaded.phases[0].sparse.is_some());
    for phases in [vec![], vec![idle]] {
        let cut = Loaded::of(server.clone(), asked(Transport::Tcp), phases).status;
        assert_eq!((cut.outcome, cut.exit_code), (Outcome::Interrupted, exit::INTERRUPTED));
    }
}

#[test]
fn a_document_reads_back_and_names_what_the_schema_names() {
    let names = PhaseName::ALL;
    let phases = names.map(|name| Phase::of(name, Ended::Steady, 0, parts(name, Transport::Quic)));
    let loaded = Loaded::of(("h".to_owned(), 5250), asked(Transport::Quic), phases.to_vec());
    assert_eq!((loaded.status.outcome, loaded.status.verdict), (Outcome::Complete, Trust::Valid));
    let value = serde_json::to_value(&loaded).unwrap();
    assert_eq!(serde_json::from_value::<Loaded>(value.clone()).unwrap(), loaded);
    let schema = crate::schema::loaded();
    let known = |schema: &serde_json::Value, value: &serde_json::Value| {
        let properties = schema["properties"].as_object().unwrap();
        for name in value.as_object().unwrap().keys() {
            assert!(properties.contains_key(name), "{name} is not in the schema");
        }
        for name in schema["required"].as_array().unwrap() {
            assert!(value.get(name.as_str().unwrap()).is_some(), "{name} is missing");
        }
    };
    known(&schema, &value);
    for phase in value["phases"].as_array().unwrap() {
        known(&schema["$defs"]["Phase"], phase);
    }
    known(&schema["$defs"]["LoadedStatus"], &value["status"]);
    assert_eq!(value["schema"], Loaded::SCHEMA);
    assert!(value["phases"][1]["self"]["p50"].is_u64(), "{}", value["phases"][1]["self"]);
    let names: Vec<_> =
        value["phases"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["idle", "up", "down", "both"]);
}
