//! The scheduler over hosts that exist in memory alone.

mod fleet;

use std::cell::Cell as Flag;
use std::collections::BTreeMap;

use linerate_measure::hunt::{Goal, Limits, Method, Outcome, RateUnit};
use linerate_measure::matrix::{Cell, Iteration, Setting};
use linerate_measure::order::Order;
use linerate_measure::threshold::Threshold;
use linerate_measure::{Direction, Transport, Workload};

use self::fleet::{Act, StandFleet};
use super::*;
use crate::host::Way;
use crate::plan::{
    HostSpec, Known, KubernetesHost, OnHostLoss, Pair, Plan, Point, Ready, Schedule, Search,
    TaskSpec, Via, Word, Work,
};

/// Keeps what it is told.
#[derive(Default)]
struct Kept {
    events: Vec<Event>,
}

impl Sink for Kept {
    fn handle(&mut self, event: &Event) -> Result<(), SinkError> {
        self.events.push(event.clone());
        Ok(())
    }
}

impl Kept {
    fn ends(&self) -> Vec<(u32, CellStatus)> {
        let ends = self.events.iter().filter_map(|event| match event {
            Event::CellEnded(end) => Some((end.position, end.status)),
            _ => None,
        });
        ends.collect()
    }

    fn reason(&self) -> String {
        let mut ends = self.events.iter().rev();
        let last = ends.find_map(|event| match event {
            Event::CellEnded(end) => Some(end.reason.clone()),
            _ => None,
        });
        last.unwrap_or_default()
    }
}

/// So many points on these pairs of hosts.
fn plan(points: u32, samples: u32, pairs: &[(&str, &str)]) -> Plan {
    let task = |name: &str, ready| {
        let words: Vec<Word> =
            vec![name.into(), Known::Address.into(), Known::Port.into(), Known::Key.into()];
        TaskSpec::new(words, ready)
    };
    let work = Work { server: task("serve", Ready::Listening), client: task("load", Ready::Armed) };
    let point = |number: u32| Point {
        workload: "load".to_owned(),
        iteration: Iteration {
            settings: vec![Setting { name: "number".to_owned(), value: number.to_string() }],
        },
        work: vec![work.clone()],
        search: None,
        thresholds: Vec::new(),
        expected_ns: 1_000_000_000,
        longest_ns: None,
    };
    let pair = |(place, (client, server)): (usize, &(&str, &str))| Pair {
        number: u32::try_from(place + 1).unwrap(),
        client: (*client).to_owned(),
        server: (*server).to_owned(),
        address: format!("{server}.lab"),
        port: 0,
    };
    let host = |name: &str| (name.to_owned(), HostSpec::Local { data_address: None });
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        title: None,
        tags: BTreeMap::new(),
        hosts: ["a", "b", "c", "d"].map(host).into(),
        pairs: pairs.iter().enumerate().map(pair).collect(),
        schedule: Schedule { samples, order: Order::Iteration, ..Schedule::default() },
        collect: None,
        points: (0..points).map(point).collect(),
    }
}

fn progress_of(plan: &Plan) -> Progress {
    let points = u32::try_from(plan.points.len()).unwrap();
    Progress::new(plan.schedule.order.cells(points, plan.schedule.samples, 0))
}

fn carry_out(plan: &Plan, progress: &mut Progress, fleet: &mut StandFleet) -> (RunEnding, Kept) {
    let names: Vec<String> = plan.hosts.keys().cloned().collect();
    let mut kept = Kept::default();
    let stopped = Flag::new(false);
    let ending = run(plan, progress, &names, fleet, &mut kept, &|| stopped.get()).unwrap();
    (ending, kept)
}

#[test]
fn every_cell_is_measured_once_in_order() {
    let plan = plan(2, 3, &[("a", "b"), ("c", "d")]);
    let (mut progress, mut fleet) = (progress_of(&plan), StandFleet::new(4));
    let (ending, kept) = carry_out(&plan, &mut progress, &mut fleet);
    assert_eq!(ending, RunEnding::Complete);
    assert_eq!(
        kept.ends(),
        (0..6).map(|position| (position, CellStatus::Done)).collect::<Vec<_>>()
    );
    assert_eq!(progress.over(), 6);
    // Each client knows the address, the port and the key of its own server.
    let clients: Vec<&Vec<String>> = fleet.started("load");
    assert_eq!(clients.len(), 12);
    assert_eq!(clients[0][..], ["load", "b.lab", "1001", "key1001"]);
    assert_eq!(clients[1][..], ["load", "d.lab", "1002", "key1002"]);
    assert_eq!(fleet.running(), 0, "all programs have ended");
    let Some(Event::CellEnded(end)) =
        kept.events.iter().find(|event| matches!(event, Event::CellEnded(_)))
    else {
        panic!("{:?}", kept.events);
    };
    assert_eq!(end.documents.len(), 2);
    assert_eq!(end.skew.unwrap().max_ns, fleet::LATE_NS);
}

#[test]
fn a_run_goes_on_with_the_cells_that_wait() {
    let plan = plan(2, 2, &[("a", "b")]);
    let mut progress = progress_of(&plan);
    progress.cells[0].is_over = true;
    progress.cells[2].is_over = true;
    progress.cells[1].attempts = 1;
    let (ending, kept) = carry_out(&plan, &mut progress, &mut StandFleet::new(4));
    assert_eq!(ending, RunEnding::Complete);
    // A controller that died has left an attempt; it doesn't count against the cell for good.
    assert_eq!(kept.ends(), [(1, CellStatus::Done), (3, CellStatus::Done)]);
    assert_eq!(progress.cells[1].attempts, 2);
}

#[test]
fn a_failed_attempt_is_repeated_until_there_were_enough() {
    let mut plan = plan(1, 2, &[("a", "b")]);
    plan.schedule.max_failures = 2;
    for (acts, expected) in [
        (
            vec![Act::ClientFails],
            vec![(0, CellStatus::Again), (0, CellStatus::Done), (1, CellStatus::Done)],
        ),
        (
            vec![Act::ServerFails, Act::ClientFails],
            vec![(0, CellStatus::Again), (0, CellStatus::Failed), (1, CellStatus::Done)],
        ),
    ] {
        let mut fleet = StandFleet::new(4);
        fleet.acts = acts;
        let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
        assert_eq!(ending, RunEnding::Complete);
        assert_eq!(kept.ends(), expected);
        assert_eq!(fleet.running(), 0);
    }
}

/// A plan whose one point is a binary search from 1 to 100 over two pairs.
fn hunt_plan() -> Plan {
    let mut plan = plan(1, 1, &[("a", "b"), ("c", "d")]);
    let mut workload = Workload::stream(Direction::Up, Transport::Udp);
    workload.interval_ns = 50_000_000;
    let words: Vec<Word> = ["trial".into(), Known::Address.into(), Known::Port.into()]
        .into_iter()
        .chain([Known::Key.into(), Known::Trial.into()])
        .collect();
    let goal = Goal {
        method: Method::Bisection,
        unit: RateUnit::BitsPerSecond,
        low: 1,
        high: 100,
        step: 1,
        per_item: 1,
        limits: Limits::default(),
        trial_ns: 1_000_000_000,
    };
    let trial = TaskSpec::new(words, Ready::Armed);
    plan.points[0].search = Some(Box::new(Search { goal, workload, trial }));
    plan
}

#[test]
fn pairs_of_a_hunt_make_each_trial_together() {
    let (plan, mut fleet) = (hunt_plan(), StandFleet::new(4));
    let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!(ending, RunEnding::Complete);
    assert_eq!(kept.ends(), [(0, CellStatus::Done)], "{}", kept.reason());
    assert_eq!(fleet.running(), 0, "all programs have ended");
    // Both pairs are asked for the same rates, one trial after the other.
    let trials = fleet.started("trial");
    let rates: Vec<u64> =
        trials.iter().map(|words| words[4].split_once(':').unwrap().0.parse().unwrap()).collect();
    assert_eq!(rates, [50, 50, 75, 75, 62, 62, 68, 68, 71, 71, 69, 69, 70, 70]);
    assert_eq!((&*trials[0][1], &*trials[1][1]), ("b.lab", "d.lab"));
    assert_eq!(fleet.started("serve").len(), 2, "a server serves all trials");
    let told = kept.events.iter().filter_map(|event| match event {
        Event::Record { pair, json, .. } if json.contains("\"trial\"") => Some(*pair),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 2].repeat(7));
    let Some(Event::CellEnded(end)) = kept.events.iter().rev().nth(1) else { panic!() };
    assert_eq!(end.documents.len(), 2);
    for run in end.runs() {
        let record = run.hunt.as_deref().unwrap();
        assert_eq!(record.outcome, Outcome::Bisected { rate: fleet::CARRIED, tried: true });
        assert_eq!((record.pairs, record.trials.len()), (Some(2), 7));
    }
    assert_eq!(end.notes.len(), 1, "{:?}", end.notes);
}

#[test]
fn a_trial_that_fails_ends_the_hunt_and_a_lost_pair_is_left_out() {
    let mut plan = hunt_plan();
    for (act, part) in [
        (Act::ClientFails, "the client of pair 1 ended with exit code 3: no port"),
        (Act::LoadHangs, "a client took more than twice the planned time and 60 s"),
    ] {
        let mut fleet = StandFleet::new(4);
        fleet.acts = vec![act];
        let (_, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
        assert_eq!(kept.ends(), [(0, CellStatus::Failed)]);
        assert!(kept.reason().starts_with(part), "{act:?}: {}", kept.reason());
        assert_eq!(fleet.running(), 0, "{act:?}");
    }
    plan.schedule.on_host_loss = OnHostLoss::Continue;
    plan.schedule.max_failures = 2;
    let mut fleet = StandFleet::new(4);
    fleet.acts = vec![Act::HostLost(3)];
    let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!(ending, RunEnding::Complete);
    assert_eq!(kept.ends(), [(0, CellStatus::Again), (0, CellStatus::Untrusted)]);
    assert_eq!(fleet.started("trial").len(), 2 + 7, "the other pair hunts alone");
}

#[test]
fn attempts_that_a_dead_controller_left_are_no_failures() {
    let mut plan = plan(1, 1, &[("a", "b")]);
    plan.schedule.max_failures = 2;
    let mut progress = progress_of(&plan);
    progress.cells[0].attempts = 5;
    let mut fleet = StandFleet::new(4);
    fleet.acts = vec![Act::ClientFails];
    let (_, kept) = carry_out(&plan, &mut progress, &mut fleet);
    assert_eq!(kept.ends(), [(0, CellStatus::Again), (0, CellStatus::Done)]);
    assert_eq!((progress.cells[0].attempts, progress.cells[0].failures), (7, 1));
}

#[test]
fn the_reason_of_a_failure_names_the_program_and_its_last_lines() {
    let plan = plan(1, 1, &[("a", "b")]);
    for (act, part) in [
        (Act::ServerFails, "the server of pair 1 ended with exit code 3: no port"),
        (Act::ClientFails, "the client of pair 1 ended with exit code 3: no port"),
        (Act::ServerHangs, "a server was not ready after 60 s"),
        (Act::ClientHangs, "a client was not ready after 60 s"),
        (Act::LoadHangs, "a client took more than twice the planned time and 60 s"),
        (Act::Refused, "a program of pair 1 can't run on b: no such file"),
    ] {
        let mut fleet = StandFleet::new(4);
        fleet.acts = vec![act];
        let (_, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
        assert!(kept.reason().starts_with(part), "{act:?}: {}", kept.reason());
        assert_eq!(kept.ends(), [(0, CellStatus::Failed)]);
        assert_eq!(fleet.running(), 0, "{act:?}");
    }
}

#[test]
fn a_lost_host_stops_the_run_or_its_pairs() {
    let mut plan = plan(1, 2, &[("a", "b"), ("c", "d")]);
    let mut fleet = StandFleet::new(4);
    fleet.acts = vec![Act::HostLost(3)];
    let mut progress = progress_of(&plan);
    let (ending, kept) = carry_out(&plan, &mut progress, &mut fleet);
    assert!(matches!(&ending, RunEnding::HostLost { why } if why.starts_with("d: ")), "{ending:?}");
    assert_eq!(kept.ends(), [(0, CellStatus::Again)], "the cell waits");
    assert_eq!(progress.over(), 0);

    plan.schedule.on_host_loss = OnHostLoss::Continue;
    let mut fleet = StandFleet::new(4);
    fleet.acts = vec![Act::HostLost(3)];
    let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!(ending, RunEnding::Complete);
    let last = kept.events.iter().rev().find_map(|event| match event {
        Event::CellEnded(end) => Some(end),
        _ => None,
    });
    let last = last.unwrap();
    assert_eq!(last.documents.len(), 1, "the other pair went on");
    // Sums of one pair are no samples of two.
    assert_eq!(last.status, CellStatus::Untrusted);
    assert!(last.reason.starts_with("pair 2 is left out"), "{}", last.reason);
}

#[test]
fn a_budget_drops_whole_rounds_at_the_end() {
    let mut plan = plan(3, 4, &[("a", "b")]);
    // A cell takes 2 s: after two rounds 12 s are used, and a third needs 3 s more.
    plan.schedule.budget_ns = Some(13_000_000_000);
    let mut progress = progress_of(&plan);
    let (ending, kept) = carry_out(&plan, &mut progress, &mut StandFleet::new(4));
    assert_eq!(ending, RunEnding::OverBudget { dropped: 6 });
    assert_eq!(kept.ends().len(), 6);
}

#[test]
fn a_threshold_aborts_at_its_first_failure() {
    let mut plan = plan(2, 2, &[("a", "b"), ("c", "d")]);
    let threshold = Threshold::parse("goodput_bps >= 3 abort").unwrap();
    plan.points[1].thresholds = vec![threshold];
    // Each pair has 1 bit per second, and both have 2.
    let mut progress = progress_of(&plan);
    let (ending, kept) = carry_out(&plan, &mut progress, &mut StandFleet::new(4));
    let RunEnding::Aborted { why } = ending else { panic!("{ending:?}") };
    assert!(why.contains("figure 2.0"), "{why}");
    assert_eq!(kept.ends().len(), 2);
    let judged = progress.judge.verdicts(&plan);
    assert_eq!(judged.len(), 1);
    assert_eq!(crate::judge::worst(&judged), linerate_measure::threshold::Verdict::Fail);
}

#[test]
fn a_bound_by_an_axis_is_each_pairs() {
    let mut plan = plan(1, 1, &[("a", "b"), ("c", "d")]);
    plan.points[0].iteration.settings[0].value = "1".to_owned();
    // Each pair has 1 bit per second.
    let threshold = |text| Threshold::parse(text).unwrap();
    plan.points[0].thresholds =
        vec![threshold("goodput_bps >= 0.9 * number"), threshold("goodput_bps >= 1.1 * number")];
    let mut progress = progress_of(&plan);
    carry_out(&plan, &mut progress, &mut StandFleet::new(4));
    let judged = progress.judge.verdicts(&plan);
    let verdicts: Vec<_> = judged.iter().map(|one| one.judgement.verdict).collect();
    use linerate_measure::threshold::Verdict::{Fail, Pass};
    assert_eq!(verdicts, [Pass, Fail]);
}

#[test]
fn a_client_that_starts_late_or_early_is_noted_or_not_trusted() {
    let plan = plan(1, 1, &[("a", "b")]);
    for (late_ns, status, notes) in [
        (1_000_000, CellStatus::Done, 0),
        (6_000_000, CellStatus::Done, 1),
        (1_500_000_000, CellStatus::Untrusted, 0),
        (-1_000_000, CellStatus::Done, 0),
        (-6_000_000, CellStatus::Done, 1),
        (-1_500_000_000, CellStatus::Untrusted, 0),
    ] {
        let mut fleet = StandFleet::new(4);
        fleet.late_ns = late_ns;
        let (_, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
        assert_eq!(kept.ends(), [(0, status)], "{late_ns}: {}", kept.reason());
        let Some(Event::CellEnded(end)) = kept.events.iter().rev().nth(1) else { panic!() };
        assert_eq!(end.notes.len(), notes, "{:?}", end.notes);
        let said = end.notes.join("") + &end.reason;
        let side = if late_ns < 0 { "before" } else { "after" };
        assert!(said.is_empty() || said.contains(&format!("{side} the named time")), "{said}");
    }
}

#[test]
fn the_longest_time_counts_set_up_and_repeats() {
    let mut plan = plan(2, 3, &[("a", "b")]);
    // Two set-ups, overtime, the end and the counters: 202 s, and twice the second of each cell.
    assert_eq!(longest_s(&plan), 6 * 204);
    plan.schedule.max_failures = 2;
    plan.points[1].longest_ns = Some(100_000_000_000);
    assert_eq!(longest_s(&plan), 2 * 3 * (204 + 402));
    plan.points[0].longest_ns = Some(u64::MAX);
    plan.schedule.samples = u32::MAX;
    plan.schedule.max_failures = u32::MAX;
    assert_eq!(longest_s(&plan), u64::MAX);
}

/// A load balancer may take as long as a pod.
#[test]
fn the_longest_time_has_room_for_a_load_balancer() {
    let mut plan = plan(1, 1, &[("a", "b")]);
    let pod = KubernetesHost { start_timeout_s: Some(30), ..KubernetesHost::default() };
    for (via, expected) in [(None, 204), (Some(Via::LoadBalancer), 234)] {
        let pod = KubernetesHost { via, ..pod.clone() };
        plan.hosts.insert("b".to_owned(), HostSpec::Kubernetes(Box::new(pod)));
        assert_eq!(longest_s(&plan), expected);
    }
}

fn notes(kept: &Kept) -> Vec<&str> {
    let notes = kept.events.iter().filter_map(|event| match event {
        Event::Note { text, .. } => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

#[test]
fn clients_start_once_all_ways_are_there() {
    let plan = plan(1, 1, &[("a", "b"), ("c", "d")]);
    let mut fleet = StandFleet::new(4);
    // Both pairs, then the second alone.
    fleet.ways = [
        Way::At("lb".to_owned(), 7),
        Way::Awaited(None),
        Way::Awaited(Some("no load balancer".to_owned())),
        Way::AsPlanned,
    ]
    .into_iter()
    .map(Ok)
    .collect();
    let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!((ending, kept.ends()), (RunEnding::Complete, vec![(0, CellStatus::Done)]));
    assert_eq!(notes(&kept), ["pair 2: no load balancer"]);
    let clients = fleet.started("load");
    assert_eq!(clients[0][1..3], ["lb", "7"]);
    assert_eq!(clients[1][1], plan.pairs[1].address);
    assert!(fleet.ways.is_empty());
}

#[test]
fn a_way_that_cannot_be_made_fails_the_attempt() {
    let plan = plan(1, 1, &[("a", "b")]);
    let mut fleet = StandFleet::new(4);
    fleet.ways = [Ok(Way::Awaited(None)), Err("the Service has no address".to_owned())].into();
    let (_, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!(kept.reason(), "the server of pair 1 can't be reached: the Service has no address");
    assert_eq!((kept.ends(), fleet.running()), (vec![(0, CellStatus::Failed)], 0));
    assert_eq!(fleet.started("load").len(), 0);
}

#[test]
fn the_users_stop_ends_the_wait_for_a_way() {
    let plan = plan(1, 1, &[("a", "b")]);
    let names: Vec<String> = plan.hosts.keys().cloned().collect();
    let (mut kept, mut progress, mut fleet) =
        (Kept::default(), progress_of(&plan), StandFleet::new(4));
    fleet.ways = std::iter::repeat_n(Ok(Way::Awaited(None)), 1000).collect();
    let looks = Flag::new(0);
    let stopped = || {
        looks.set(looks.get() + 1);
        looks.get() > 40
    };
    let ending = run(&plan, &mut progress, &names, &mut fleet, &mut kept, &stopped).unwrap();
    assert_eq!(ending, RunEnding::Interrupted);
    assert_eq!((fleet.started("load").len(), fleet.running()), (0, 0));
    assert!(!fleet.ways.is_empty());
}

#[test]
fn what_delays_a_host_is_noted() {
    let plan = plan(1, 1, &[("a", "b")]);
    let mut fleet = StandFleet::new(4);
    fleet.delay("its node has been pulling x for 6 s");
    let (ending, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
    assert_eq!(ending, RunEnding::Complete);
    assert_eq!(notes(&kept), ["a: its node has been pulling x for 6 s"]);
}

/// The start was named by the clock as it was before.
#[test]
fn a_clock_that_is_set_after_the_start_was_named_is_told() {
    let plan = plan(1, 1, &[("a", "b")]);
    for (set_by_ns, status) in [(0, CellStatus::Done), (7_000_000_000, CellStatus::Untrusted)] {
        let mut fleet = StandFleet::new(4);
        fleet.set_by_ns = set_by_ns;
        let (_, kept) = carry_out(&plan, &mut progress_of(&plan), &mut fleet);
        assert_eq!(kept.ends(), [(0, status)], "{}", kept.reason());
        let Some(Event::CellEnded(end)) = kept.events.iter().rev().nth(1) else { panic!() };
        match set_by_ns {
            0 => assert_eq!(end.skew.unwrap().max_ns, fleet::LATE_NS),
            _ => {
                assert!(end.reason.starts_with("the clock of a and this machine's"), "{end:?}");
                assert_eq!(end.skew, None);
            }
        }
    }
}

#[test]
fn an_event_that_cannot_be_kept_ends_the_run() {
    struct Full;
    impl Sink for Full {
        fn handle(&mut self, _: &Event) -> Result<(), SinkError> {
            Err(SinkError("the disk is full".to_owned()))
        }
    }
    let plan = plan(1, 1, &[("a", "b")]);
    let names: Vec<String> = plan.hosts.keys().cloned().collect();
    let mut fleet = StandFleet::new(4);
    let ended = run(&plan, &mut progress_of(&plan), &names, &mut fleet, &mut Full, &|| false);
    assert_eq!(ended, Err(SinkError("the disk is full".to_owned())));
}

#[test]
fn the_users_stop_ends_all_programs_and_the_cell_waits() {
    let plan = plan(1, 2, &[("a", "b")]);
    let names: Vec<String> = plan.hosts.keys().cloned().collect();
    let (mut kept, mut progress, mut fleet) =
        (Kept::default(), progress_of(&plan), StandFleet::new(4));
    fleet.acts = vec![Act::LoadHangs];
    let looks = Flag::new(0);
    let stopped = || {
        looks.set(looks.get() + 1);
        looks.get() > 40
    };
    let ending = run(&plan, &mut progress, &names, &mut fleet, &mut kept, &stopped).unwrap();
    assert_eq!(ending, RunEnding::Interrupted);
    assert_eq!(kept.ends(), [(0, CellStatus::Again)]);
    assert_eq!((progress.over(), fleet.running()), (0, 0));
    let _cell: Cell = progress.cells[0].cell;
}
