//! Hosts in memory: servers that listen at once, clients that do as they are told.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use linerate_measure::plan::{Direction, Plan as TestPlan, Transport, Workload};
use linerate_measure::record::Record;
use linerate_measure::run::{ClockOffset, Draft};
use linerate_measure::sample::DatagramCounts;
use linerate_measure::{Outcome, Run};
use serde_json::value::RawValue;

use crate::agent::{AgentHello, Moment, OutputStream, StartTask, TaskEnd};
use crate::collect::Request;
use crate::host::{
    ChildEvent, ChildEventKind, HostClock, HostError, HostErrorKind, HostEvent, HostEventKind,
    HostId, Way,
};
use crate::schedule::Fleet;

/// The rate above which trials lose everything.
pub(super) const CARRIED: u64 = 70;
/// How late clients start.
pub(super) const LATE_NS: i64 = 2_000_000;

/// What goes wrong in the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    ServerFails,
    ServerHangs,
    ClientFails,
    ClientHangs,
    LoadHangs,
    Refused,
    HostLost(HostId),
}

pub(super) struct StandFleet {
    now: Moment,
    events: VecDeque<(HostId, HostEventKind)>,
    tasks: BTreeMap<u32, (HostId, Vec<String>)>,
    all: Vec<Vec<String>>,
    servers: u32,
    next_task: u32,
    pub(super) acts: Vec<Act>,
    pub(super) late_ns: i64,
    /// By so much the clock of the first host is set once its client has begun.
    pub(super) set_by_ns: i64,
    /// The last start that was named.
    start_ns: i64,
    /// What the next questions for a way to a server are answered; none: at the plan's address.
    pub(super) ways: VecDeque<Result<Way, String>>,
}

/// The clocks of all hosts are ahead by this.
const AHEAD_NS: i64 = 5_000_000_000;

fn clock(offset_ns: i64) -> HostClock {
    HostClock { offset: ClockOffset { offset_ns, bound_ns: 1000 }, round_trip_ns: 100_000 }
}

fn raw(record: &Record) -> Box<RawValue> {
    RawValue::from_string(record.render().trim_end().to_owned()).unwrap()
}

fn document() -> Box<Run> {
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    let draft = Draft::new("7".to_owned(), TestPlan::new("h", 1, workload));
    let mut run = draft.into_run(Outcome::Complete, 0, None);
    run.status.outcome = Outcome::Complete;
    run.status.unmet.clear();
    run.summary.goodput_bps = Some(1.0);
    Box::new(run)
}

impl StandFleet {
    pub(super) fn new(hosts: usize) -> Self {
        // It is wrong by a second until it is measured again.
        let clock = clock(AHEAD_NS - 1_000_000_000);
        let opened = || HostEventKind::Opened { hello: Box::new(AgentHello::default()), clock };
        Self {
            now: Moment { monotonic_ns: 0, utc_ns: 1_000_000_000_000 },
            events: (0..hosts).map(|host| (host, opened())).collect(),
            tasks: BTreeMap::new(),
            all: Vec::new(),
            servers: 0,
            next_task: 1,
            acts: Vec::new(),
            late_ns: LATE_NS,
            set_by_ns: 0,
            start_ns: 0,
            ways: VecDeque::new(),
        }
    }

    /// Before anything else the first host tells what delays it.
    pub(super) fn delay(&mut self, said: &str) {
        self.events.push_front((0, HostEventKind::Delayed(said.to_owned())));
    }

    /// The words of all programs of a name, in the order in which they were started.
    pub(super) fn started(&self, name: &str) -> Vec<&Vec<String>> {
        self.all.iter().filter(|words| words[0] == name).collect()
    }

    pub(super) fn running(&self) -> usize {
        self.tasks.len()
    }

    fn child(&mut self, task: u32, kind: ChildEventKind) {
        if let Some((host, _)) = self.tasks.get(&task) {
            self.events.push_back((*host, HostEventKind::Child(ChildEvent { task, kind })));
        }
    }

    fn print(&mut self, task: u32, record: &Record) {
        self.child(task, ChildEventKind::Line { seq: 0, json: raw(record) });
    }

    fn end(&mut self, task: u32, code: i32) {
        let end = TaskEnd { task, code: Some(code), ..TaskEnd::default() };
        self.child(task, ChildEventKind::Ended(end));
        self.tasks.remove(&task);
    }

    fn fail(&mut self, task: u32) {
        let text = "no port".to_owned();
        self.child(task, ChildEventKind::Text { stream: OutputStream::Stderr, text });
        self.end(task, 3);
    }

    fn act(&mut self, of: &[Act]) -> Option<Act> {
        let act = self.acts.first().copied().filter(|act| of.contains(act))?;
        self.acts.remove(0);
        Some(act)
    }

    fn begin_server(&mut self, task: u32) {
        match self.act(&[Act::ServerFails, Act::ServerHangs, Act::Refused]) {
            Some(Act::ServerFails) => return self.fail(task),
            Some(Act::Refused) => {
                self.child(task, ChildEventKind::Refused("no such file".to_owned()));
                self.tasks.remove(&task);
                return;
            }
            Some(_) => return,
            None => {}
        }
        self.servers += 1;
        let port = 1000 + self.servers;
        let address = format!("127.0.0.1:{port}").parse().unwrap();
        let fingerprint = format!("key{port}");
        self.print(task, &Record::Listening { version: 1, address, fingerprint });
    }

    /// The document of a client; that of a trial, whose words are `trial`, three others and `RATE:TIME`, has lost
    /// everything where its rate is above what all paths carry.
    fn document_of(&self, task: u32) -> Box<Run> {
        let mut run = document();
        let words = self.tasks.get(&task).map(|(_, words)| words.as_slice()).unwrap_or_default();
        if let [name, _, _, _, trial] = words
            && name == "trial"
        {
            let rate: u64 = trial.split_once(':').unwrap().0.parse().unwrap();
            let lost = if rate > CARRIED { 100 } else { 0 };
            let counts = DatagramCounts {
                received: Some(100 - lost),
                lost: Some(lost),
                ..DatagramCounts::default()
            };
            run.summary.datagrams = Some(counts);
        }
        run
    }

    fn begin_client(&mut self, task: u32) {
        match self.act(&[Act::ClientFails, Act::ClientHangs]) {
            Some(Act::ClientFails) => self.fail(task),
            Some(_) => {}
            None => self.print(task, &Record::Armed { version: 1, run_id: "7".to_owned() }),
        }
    }
}

impl Fleet for StandFleet {
    fn start(&mut self, host: HostId, start: StartTask) -> u32 {
        let task = self.next_task;
        self.next_task += 1;
        self.all.push(start.argv.clone());
        self.tasks.insert(task, (host, start.argv.clone()));
        if start.argv[0] == "serve" {
            self.begin_server(task)
        } else {
            self.begin_client(task)
        }
        task
    }

    /// The start is named: a test of a second, at the time of the host's clock.
    fn write(&mut self, _: HostId, task: u32, text: &str, end: bool) {
        assert!(end);
        let (seconds, fraction) = text.trim_end().trim_start_matches('@').split_once('.').unwrap();
        let start_ns =
            seconds.parse::<i64>().unwrap() * 1_000_000_000 + fraction.parse::<i64>().unwrap();
        if self.start_ns != start_ns {
            assert!(start_ns - AHEAD_NS > self.now.utc_ns, "the start lies ahead");
            self.now.monotonic_ns += 2_000_000_000;
            self.now.utc_ns += 2_000_000_000;
            self.start_ns = start_ns;
        }
        if self.act(&[Act::LoadHangs]).is_some() {
            return;
        }
        if let Some(Act::HostLost(host)) = self.acts.first().copied() {
            self.acts.remove(0);
            let error = HostError::new(HostErrorKind::ThisMachine, "cut");
            let gone: Vec<u32> = self
                .tasks
                .iter()
                .filter(|(_, (of, _))| *of == host)
                .map(|(task, _)| *task)
                .collect();
            gone.iter().for_each(|task| drop(self.tasks.remove(task)));
            self.events.push_back((host, HostEventKind::Lost { error, tasks: gone }));
        }
        let run = self.document_of(task);
        let plan = Box::new(run.plan.clone());
        let (version, run_id) = (1, "7".to_owned());
        let utc_ns = start_ns + self.late_ns;
        self.print(task, &Record::Started { version, run_id: run_id.clone(), utc_ns, plan });
        if self.set_by_ns != 0 {
            let moved = clock(AHEAD_NS + self.set_by_ns);
            self.events.push_back((0, HostEventKind::Clock(moved)));
        }
        self.print(task, &Record::Finished { version, run_id, dropped_records: 0, run });
        self.end(task, 0);
    }

    fn stop(&mut self, _: HostId, task: u32, _: Duration) {
        self.end(task, 0);
    }

    fn collect(&mut self, _: HostId, _: Option<Request>) {}

    fn measure_clock(&mut self, host: HostId) {
        self.events.push_back((host, HostEventKind::Clock(clock(AHEAD_NS))));
    }

    fn reach(&mut self, _: HostId, _: u16, _: HostId) -> Result<Way, String> {
        self.ways.pop_front().unwrap_or(Ok(Way::AsPlanned))
    }

    /// A wait without an event takes a second.
    fn next_event(&mut self, _: Duration) -> Option<HostEvent> {
        let event = self.events.pop_front();
        if event.is_none() {
            self.now.monotonic_ns += 1_000_000_000;
            self.now.utc_ns += 1_000_000_000;
        }
        event.map(|(host, kind)| HostEvent { host, at: self.now, kind })
    }

    fn now(&self) -> Moment {
        self.now
    }
}
