//! Collecting with a clock of the test's own, and series from what was collected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::agent::Moment;

const SECOND_NS: u64 = 1_000_000_000;

/// Time that passes when the test says so, and processor time that readings cost.
#[derive(Clone, Default)]
struct FakeClock(Arc<Mutex<(u64, u64)>>);

impl FakeClock {
    fn advance_to(&self, monotonic_ns: u64) {
        self.0.lock().unwrap().0 = monotonic_ns;
    }

    fn spend(&self, cpu_ns: u64) {
        self.0.lock().unwrap().1 += cpu_ns;
    }
}

/// The clock of UTC stands at 1000 s plus 0.25 s when the monotonic one stands at 0.
impl Clock for FakeClock {
    fn now(&mut self) -> Moment {
        let monotonic_ns = self.0.lock().unwrap().0;
        Moment { monotonic_ns, utc_ns: 1_000_250_000_000 + monotonic_ns.cast_signed() }
    }

    fn cpu_ns(&mut self) -> u64 {
        self.0.lock().unwrap().1
    }
}

/// A source with one counter that grows by 7 each reading.
struct FakeReader {
    source: Source,
    cost_ns: u64,
    clock: FakeClock,
    count: u64,
    columns: Vec<Column>,
}

impl FakeReader {
    fn boxed(source: Source, cost_ns: u64, clock: &FakeClock) -> Box<dyn Reader> {
        let columns = vec![column("grown-sec", &[], Rule::Rate)];
        Box::new(Self { source, cost_ns, clock: clock.clone(), count: u64::MAX - 7000, columns })
    }
}

impl Reader for FakeReader {
    fn source(&self) -> Source {
        self.source
    }

    fn read(&mut self, values: &mut Vec<Value>) -> Result<bool, String> {
        self.clock.spend(self.cost_ns);
        let is_first = self.count == u64::MAX - 7000;
        self.count += 7;
        values.push(Value::Count(self.count));
        Ok(is_first)
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }
}

fn column(metric: &str, names: &[(&str, &str)], rule: Rule) -> Column {
    let names = names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Column {
        source: "test".to_owned(),
        metric: metric.to_owned(),
        names: names.collect(),
        unit: "1/s".to_owned(),
        rule,
        scale: 1.0,
    }
}

/// Runs a collector until a time, each tick at its time.
fn run(collector: &mut Collector, clock: &mut FakeClock, until_ns: u64) -> Vec<Ticks> {
    let mut all = Vec::new();
    while collector.next_at_ns() <= until_ns {
        clock.advance_to(collector.next_at_ns());
        all.extend(collector.tick(clock));
    }
    all
}

#[test]
fn ticks_come_at_whole_periods_of_utc_and_are_sent_each_second() {
    let mut clock = FakeClock::default();
    let readers = vec![FakeReader::boxed(Source::Net, 1000, &clock)];
    let mut collector = Collector::new(readers, 10.0, &mut clock);
    assert_eq!(collector.next_at_ns(), SECOND_NS / 20);
    let messages = run(&mut collector, &mut clock, 3 * SECOND_NS);
    let rows: Vec<usize> = messages.iter().map(|ticks| ticks.rows.len()).collect();
    assert_eq!(rows, [10, 10, 10]);
    assert!(messages[0].columns.is_some() && messages[1].columns.is_none());
    let times = messages.iter().flat_map(|ticks| &ticks.rows).map(|row| row.utc_ns);
    assert!(
        times.clone().all(|utc_ns| utc_ns % 100_000_000 == 0),
        "{:?}",
        times.collect::<Vec<_>>()
    );
}

#[test]
fn a_late_thread_leaves_ticks_out() {
    let mut clock = FakeClock::default();
    let readers = vec![FakeReader::boxed(Source::Net, 1000, &clock)];
    let mut collector = Collector::new(readers, 1.0, &mut clock);
    assert_eq!(collector.next_at_ns(), 750_000_000);
    clock.advance_to(5 * SECOND_NS);
    assert_eq!(collector.tick(&mut clock).len(), 1);
    assert_eq!(collector.next_at_ns(), 5_750_000_000);
}

#[test]
fn the_dearest_source_is_read_less_often_until_the_budget_holds() {
    let mut clock = FakeClock::default();
    // 13 ms of processor time a reading is 1.3 % at 1 Hz, the interrupts of a large machine.
    let readers = vec![
        FakeReader::boxed(Source::Net, 100_000, &clock),
        FakeReader::boxed(Source::Interrupts, 13_000_000, &clock),
    ];
    let mut collector = Collector::new(readers, 1.0, &mut clock);
    run(&mut collector, &mut clock, 60 * SECOND_NS);
    let rates: Vec<_> = collector.rates().collect();
    assert_eq!(rates, [(Source::Net, 1.0), (Source::Interrupts, 0.25)]);
    let spent_before = clock.cpu_ns();
    let messages = run(&mut collector, &mut clock, 160 * SECOND_NS);
    let share = (clock.cpu_ns() - spent_before) as f64 / (100 * SECOND_NS) as f64;
    assert!(share < BUDGET, "{share}");
    assert!(messages.iter().all(|ticks| ticks.source == Source::Net || ticks.hz == 0.25));
}

#[test]
fn sending_counts_against_the_budget() {
    let mut clock = FakeClock::default();
    let readers = vec![FakeReader::boxed(Source::Net, 300_000, &clock)];
    let mut collector = Collector::new(readers, 10.0, &mut clock);
    for _ in 0..200 {
        clock.advance_to(collector.next_at_ns());
        let sent = collector.tick(&mut clock);
        let rows: usize = sent.iter().map(|ticks| ticks.rows.len()).sum();
        clock.spend(400_000 * rows as u64);
    }
    // 0.3 % for reading alone would fit; with sending it is 0.7 %.
    assert_eq!(collector.rates().collect::<Vec<_>>(), [(Source::Net, 5.0)]);
}

#[test]
fn a_source_dearer_than_the_budget_is_read_about_once_a_minute() {
    let mut clock = FakeClock::default();
    let readers = vec![FakeReader::boxed(Source::Interrupts, 900_000_000, &clock)];
    let mut collector = Collector::new(readers, 1.0, &mut clock);
    run(&mut collector, &mut clock, 600 * SECOND_NS);
    assert_eq!(collector.rates().collect::<Vec<_>>(), [(Source::Interrupts, 1.0 / 32.0)]);
}

#[test]
fn counters_near_the_end_of_their_range_survive_the_way() {
    let mut clock = FakeClock::default();
    let readers = vec![FakeReader::boxed(Source::Net, 1000, &clock)];
    let mut collector = Collector::new(readers, 1.0, &mut clock);
    let mut gatherer = Gatherer::new();
    for ticks in run(&mut collector, &mut clock, 20 * SECOND_NS) {
        let line = serde_json::to_string(&ticks).unwrap();
        let back: Ticks = serde_json::from_str(&line).unwrap();
        assert_eq!(back, ticks);
        gatherer.handle_ticks(back).unwrap();
    }
    let gathered = gatherer.take(250_000_000);
    let series = &gathered[0].series[0];
    assert_eq!(series.values, vec![7.0; 19]);
    assert_eq!(gathered[0].spans_ns[0], (1_000_750_000_000, 1_001_750_000_000));
}

#[test]
fn values_read_back_as_what_they_were() {
    let values = [
        Value::Count(u64::MAX),
        Value::Count(0),
        Value::Level(5.0),
        Value::Level(0.1 + 0.2),
        Value::Absent,
    ];
    let text = serde_json::to_string(&values).unwrap();
    assert_eq!(text, "[18446744073709551615,0,5.0,0.30000000000000004,null]");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&text).unwrap(), values);
    for wrong in ["[-1]", "[\"1\"]", "[true]", "[[1]]", "[1e999]"] {
        assert!(serde_json::from_str::<Vec<Value>>(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Value::level(f64::NAN), Value::Absent);
}

fn message(columns: Option<Vec<Column>>, rows: &[(u64, &[Value])]) -> Ticks {
    let rows = rows.iter().map(|(at_s, values)| Row {
        monotonic_ns: at_s * SECOND_NS,
        utc_ns: (at_s * SECOND_NS).cast_signed(),
        values: values.to_vec(),
    });
    Ticks {
        source: Source::Net,
        hz: 1.0,
        cpu_share: 0.001,
        columns,
        rows: rows.collect(),
        failed: None,
    }
}

fn values(messages: Vec<Ticks>) -> BTreeMap<String, Vec<f64>> {
    let mut gatherer = Gatherer::new();
    messages.into_iter().for_each(|ticks| gatherer.handle_ticks(ticks).unwrap());
    let series = gatherer.take(0).into_iter().flat_map(|gathered| gathered.series);
    series.map(|series| (series.metric, series.values)).collect()
}

/// NaN equals NaN here.
#[track_caller]
fn assert_values(values: &BTreeMap<String, Vec<f64>>, metric: &str, expected: &[f64]) {
    assert_eq!(format!("{:?}", values[metric]), format!("{expected:?}"), "{metric}");
}

#[test]
fn rates_levels_and_shares_come_from_two_readings() {
    use Value::{Count, Level};
    let columns = vec![
        column("a-sec", &[], Rule::Rate),
        column("level", &[], Rule::Level),
        column("share", &[], Rule::Share(3)),
        column("all", &[], Rule::Whole),
    ];
    let found = values(vec![message(
        Some(columns),
        &[
            (1, &[Count(10), Level(0.5), Count(2), Count(100)]),
            (3, &[Count(30), Level(1.5), Count(5), Count(110)]),
            (4, &[Count(30), Level(2.5), Count(6), Count(110)]),
        ],
    )]);
    assert_values(&found, "a-sec", &[10.0, 0.0]);
    assert_values(&found, "level", &[1.5, 2.5]);
    assert_values(&found, "share", &[0.3, f64::NAN]);
    assert!(!found.contains_key("all"));
}

#[test]
fn a_counter_that_goes_back_is_a_gap() {
    use Value::{Absent, Count};
    let wraps = 1_u64 << 32;
    let found = values(vec![message(
        Some(vec![column("a-sec", &[], Rule::Rate)]),
        &[
            (1, &[Count(wraps - 1)]),
            (2, &[Count(5)]),
            (3, &[Count(9)]),
            (4, &[Absent]),
            (5, &[Count(10)]),
        ],
    )]);
    assert_values(&found, "a-sec", &[f64::NAN, 4.0, f64::NAN, f64::NAN]);
}

#[test]
fn columns_come_and_go() {
    use Value::Count;
    let a = || column("a-sec", &[], Rule::Rate);
    let b = || column("b-sec", &[("dev", "eth1")], Rule::Rate);
    let found = values(vec![
        message(Some(vec![a()]), &[(1, &[Count(1)]), (2, &[Count(2)])]),
        message(Some(vec![b(), a()]), &[(3, &[Count(70), Count(4)]), (4, &[Count(71), Count(5)])]),
        message(Some(vec![a()]), &[(5, &[Count(6)])]),
        message(Some(vec![a(), b()]), &[(6, &[Count(7), Count(90)]), (7, &[Count(8), Count(91)])]),
    ]);
    assert_values(&found, "a-sec", &[1.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
    let gap = f64::NAN;
    assert_values(&found, "b-sec", &[gap, gap, 1.0, gap, gap, 1.0]);
}

#[test]
fn series_of_the_next_cell_begin_where_those_of_the_last_one_end() {
    use Value::Count;
    let a = || column("a-sec", &[], Rule::Rate);
    let gone = || column("gone-sec", &[], Rule::Rate);
    let mut gatherer = Gatherer::new();
    let first = [(1, [Count(1), Count(1)].as_slice()), (2, &[Count(2), Count(2)])];
    gatherer.handle_ticks(message(Some(vec![gone(), a()]), &first)).unwrap();
    assert_eq!(gatherer.take(0)[0].series.len(), 2);
    assert_eq!(gatherer.take(0), []);
    // The clock of UTC stands an hour earlier now.
    let mut later = message(Some(vec![a()]), &[(4, &[Count(6)]), (5, &[Count(7)])]);
    later.rows.iter_mut().for_each(|row| row.utc_ns -= 3_600_000_000_000);
    gatherer.handle_ticks(later).unwrap();
    let gathered = gatherer.take(0);
    let at = |at_s: i64| (at_s - 3600) * 1_000_000_000;
    assert_eq!(gathered[0].spans_ns, [(at(2), at(4)), (at(4), at(5))]);
    assert_eq!(gathered[0].series.len(), 1);
    assert_eq!(gathered[0].series[0].values, [2.0, 1.0]);
}

#[test]
fn series_with_the_same_gaps_stand_together() {
    use Value::{Absent, Count};
    let names = ["a-sec", "b-sec", "c-sec", "d-sec"];
    let columns = names.iter().map(|name| column(name, &[], Rule::Rate)).collect();
    let full = |count: u64| [Count(count), Count(count), Count(count), Absent];
    let gap = |count: u64| [Count(count), Absent, Absent, Absent];
    let mut gatherer = Gatherer::new();
    let rows = [(1, full(1)), (2, full(2)), (3, gap(3)), (4, full(4)), (5, full(5))];
    let rows: Vec<_> = rows.iter().map(|(at_s, values)| (*at_s, values.as_slice())).collect();
    gatherer.handle_ticks(message(Some(columns), &rows)).unwrap();
    let gathered = gatherer.take(0).remove(0).without_gaps();
    let names = |gathered: &Gathered| -> Vec<String> {
        gathered.series.iter().map(|series| series.metric.clone()).collect()
    };
    assert_eq!(names(&gathered[0]), ["a-sec"]);
    assert_eq!(gathered[0].spans_ns.len(), 4);
    assert_eq!(names(&gathered[1]), ["b-sec", "c-sec"]);
    let begins: Vec<i64> = gathered[1].spans_ns.iter().map(|span| span.0 / 1_000_000_000).collect();
    assert_eq!((begins, gathered[1].series[0].values.len(), gathered.len()), (vec![1, 4], 2, 2));
}

#[test]
fn what_no_collector_sends_is_refused() {
    use Value::Count;
    let a = || column("a-sec", &[], Rule::Rate);
    let long = column("a-sec", &[("dev", &"x".repeat(200))], Rule::Rate);
    let mut endless = column("e", &[], Rule::Level);
    endless.scale = f64::INFINITY;
    let cases = [
        (message(None, &[(1, &[Count(1)])]), "values for 0 columns"),
        (message(Some(vec![a()]), &[(1, &[])]), "0 values for 1 columns"),
        (message(Some(vec![a(), a()]), &[]), "twice"),
        (message(Some(vec![long]), &[]), "longer than 128 bytes"),
        (message(Some(vec![endless]), &[]), "scale"),
        (message(Some(vec![column("s", &[], Rule::Share(0))]), &[]), "share of none"),
        (message(Some(vec![column("s", &[], Rule::Share(9))]), &[]), "share of none"),
        (message(Some(vec![a()]), &[(2, &[Count(1)]), (2, &[Count(1)])]), "not after"),
        (message(Some(vec![a()]), &vec![(1, [Count(1)].as_slice()); 65]), "65 rows"),
        (Ticks { hz: f64::NAN, ..message(None, &[]) }, "readings a second"),
    ];
    for (ticks, expected) in cases {
        let mut gatherer = Gatherer::new();
        let refused = gatherer.handle_ticks(ticks).unwrap_err();
        assert!(refused.contains(expected) && refused.starts_with("ticks of net: "), "{refused}");
    }
}

#[test]
fn notes_tell_what_was_not_collected_as_asked() {
    let mut gatherer = Gatherer::new();
    gatherer.handle_ticks(Ticks { hz: 0.25, ..message(None, &[]) }).unwrap();
    let failed = Some("can't read /proc/pressure/cpu".to_owned());
    gatherer
        .handle_ticks(Ticks { source: Source::Scheduler, failed, ..message(None, &[]) })
        .unwrap();
    let notes = gatherer.notes(1.0);
    assert!(notes[0].contains("net was read 0.25 times a second"), "{notes:?}");
    assert!(notes[1].contains("scheduler could not be collected: can't read"), "{notes:?}");
}

#[test]
fn an_agent_reads_what_it_is_asked_for_until_it_is_told_to_stop() {
    use crate::agent::Collectors;
    fn open(sources: &[Source], _: &[String]) -> Vec<Box<dyn Reader>> {
        let of = |source: &Source| FakeReader::boxed(*source, 1, &FakeClock::default());
        sources.iter().map(of).collect()
    }
    let mut collectors = HostCollectors::new(open);
    assert_eq!(collectors.poll_timeout(), None);
    let sources = vec![Source::Net, Source::Cpu];
    let request = Request { sources, hz: 10.0, interfaces: Vec::new() };
    collectors.begin(Some(request), Moment::now());
    let mut sent = Vec::new();
    while sent.len() < 4 {
        let due_ns = collectors.poll_timeout().unwrap();
        let left_ns = due_ns.saturating_sub(Moment::now().monotonic_ns);
        std::thread::sleep(std::time::Duration::from_nanos(left_ns));
        sent.extend(collectors.collect(Moment::now()));
    }
    assert_eq!((sent[0].collector.as_str(), sent[1].collector.as_str()), ("net", "cpu"));
    let ticks: Ticks = serde_json::from_str(sent[0].data.get()).unwrap();
    assert_eq!(sent[0].from_ns, ticks.rows[0].utc_ns);
    collectors.begin(None, Moment::now());
    assert_eq!(collectors.poll_timeout(), None);
    assert!(collectors.collect(Moment::now()).is_empty());
}

#[test]
fn requests_are_checked() {
    let request = |sources: &[Source], hz: f64, interface: &str| Request {
        sources: sources.to_vec(),
        hz,
        interfaces: vec![interface.to_owned()],
    };
    assert_eq!(request(&Source::ALL, 10.0, "eth0").check(), Ok(()));
    for (wrong, expected) in [
        (request(&[], 1.0, "eth0"), "cpu, interrupts"),
        (request(&[Source::Net, Source::Cpu, Source::Net], 1.0, "eth0"), "net is named twice"),
        (request(&[Source::Net], 0.5, "eth0"), "hz = 0.5"),
        (request(&[Source::Net], f64::NAN, "eth0"), "hz = NaN"),
        (request(&[Source::Net], 1.0, "../../etc"), "name of a network interface"),
        (request(&[Source::Net], 1.0, "sixteen-letters-"), "name of a network interface"),
    ] {
        let refused = wrong.check().unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}
