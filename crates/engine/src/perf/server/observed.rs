//! What the clients of a server do, as tests with samples and reports.
//!
//! A server of this dialect sees connections and no tests. What the connections of one address over one transport do
//! counts as one test: from when the first of them stands until none has stood for [`QUIET_NS`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use linerate_measure::dialect::perf::{self, EndTotals};
use linerate_measure::dialect::{EndExtension, SampleExtension};
use linerate_measure::sample::Traffic;
use linerate_measure::{EndReport, FlowReport, Role, Sample};

use super::ServerEvent;
use super::clients::{ClientCounts, ClientKey};
use crate::clock::{MILLISECOND_NS, monotonic_ns, utc_ns};
use crate::load::{Interval, Intervals};
use crate::probe::MachineTimes;

/// A test is over when its address has had no connection for so long.
const QUIET_NS: u64 = 500 * MILLISECOND_NS;
/// How often the counts are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Tests at a time. What further addresses do is not recorded.
const TESTS_LIMIT: usize = 1024;

/// What the clients of one test asked for and what came of it.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// What this end counted, all connections and streams as one flow.
    pub own: EndReport,
    /// Requests that were more than a header.
    pub uploads: u64,
    /// Requests for an answer that has an end.
    pub downloads: u64,
    /// Requests for an answer without an end.
    pub endless: u64,
    /// The most connections at a time on each thread, added up.
    pub most_open: u64,
    /// Whether connections still stood: the server ended.
    pub is_cut_off: bool,
}

/// The counts of a test at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    received_bytes: u64,
    sent_bytes: u64,
    connections: u64,
    streams: u64,
    uploads: u64,
    downloads: u64,
    endless: u64,
    last_ns: u64,
    open: u64,
}

impl Reading {
    fn of(counts: &ClientCounts) -> Self {
        Self {
            received_bytes: counts.received_bytes.value(),
            sent_bytes: counts.sent_bytes.value(),
            connections: counts.connections.value(),
            streams: counts.streams.value(),
            uploads: counts.asked.uploads.value(),
            downloads: counts.asked.downloads.value(),
            endless: counts.asked.endless.value(),
            last_ns: counts.last_ns.value(),
            open: counts.open[0].value(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.received_bytes = self.received_bytes.saturating_add(other.received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.connections = self.connections.saturating_add(other.connections);
        self.streams = self.streams.saturating_add(other.streams);
        self.uploads = self.uploads.saturating_add(other.uploads);
        self.downloads = self.downloads.saturating_add(other.downloads);
        self.endless = self.endless.saturating_add(other.endless);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.open = self.open.saturating_add(other.open);
    }
}

/// One test.
struct Test {
    number: u64,
    /// When its first connection stood.
    began_ns: u64,
    machine: MachineTimes,
    /// What threads count now.
    open: Vec<Arc<ClientCounts>>,
    /// What they had counted whenever none of their connections was left.
    closed: Reading,
    /// The most connections at a time, by thread.
    most_open: HashMap<u32, u64>,
    is_cut_off: bool,
    intervals: Intervals,
    sampled: Reading,
}

impl Test {
    fn new(number: u64, counts: Arc<ClientCounts>, interval_ns: u64) -> Self {
        let began_ns = counts.first_ns.value();
        Self {
            number,
            began_ns,
            machine: MachineTimes::now(),
            open: vec![counts],
            closed: Reading::default(),
            most_open: HashMap::new(),
            is_cut_off: false,
            intervals: Intervals::begin(interval_ns, began_ns),
            sampled: Reading::default(),
        }
    }

    /// All that was counted. Counts that are written no more are added up and dropped.
    fn read(&mut self) -> Reading {
        let mut sum = self.closed;
        let Self { open, closed, most_open, is_cut_off, .. } = self;
        open.retain(|counts| {
            let is_closed = counts.is_closed();
            *is_cut_off |= counts.is_cut_off();
            let most = most_open.entry(counts.thread).or_default();
            *most = (*most).max(counts.open[1].value());
            let reading = Reading::of(counts);
            sum.add(&reading);
            if is_closed {
                closed.add(&reading);
            }
            !is_closed
        });
        sum
    }

    fn sample(&mut self, reading: Reading, now_ns: u64) -> Sample {
        let traffic = |now: u64, before: u64| {
            Some(Traffic { bytes: now.saturating_sub(before), calls: None })
        };
        let before = std::mem::replace(&mut self.sampled, reading);
        let Interval { index, from_ns, to_ns, utc_ns } = self.intervals.cut(now_ns);
        let own = perf::Interval {
            connections: Some(reading.connections.saturating_sub(before.connections)),
            streams: Some(reading.streams.saturating_sub(before.streams)),
        };
        Sample {
            index,
            from_ns,
            to_ns,
            utc_ns,
            sent: traffic(reading.sent_bytes, before.sent_bytes),
            received: traffic(reading.received_bytes, before.received_bytes),
            extension: Some(SampleExtension::Perf(own)),
            ..Sample::nothing(Role::Server)
        }
    }

    fn report(&self, reading: &Reading, ended_ns: u64) -> TestReport {
        let elapsed_ns = ended_ns.saturating_sub(self.began_ns);
        let traffic = |bytes| Some(Traffic { bytes, calls: None });
        let flow = FlowReport {
            sent: traffic(reading.sent_bytes),
            received: traffic(reading.received_bytes),
            from_ns: Some(0),
            to_ns: Some(elapsed_ns),
            ..FlowReport::default()
        };
        let totals = EndTotals {
            connections: Some(reading.connections),
            streams: Some(reading.streams),
            ..EndTotals::default()
        };
        let own = EndReport {
            flows: vec![flow],
            elapsed_ns,
            machine_cpu: MachineTimes::now().cpus_since(&self.machine),
            extension: Some(EndExtension::Perf(totals)),
            ..EndReport::nothing(Role::Server)
        };
        TestReport {
            own,
            uploads: reading.uploads,
            downloads: reading.downloads,
            endless: reading.endless,
            most_open: self.most_open.values().copied().fold(0, u64::saturating_add),
            is_cut_off: self.is_cut_off || reading.open > 0,
        }
    }
}

/// The tests of a server.
struct Tests {
    interval_ns: u64,
    by_client: HashMap<ClientKey, Test>,
    count: u64,
    events: Sender<ServerEvent>,
}

impl Tests {
    /// An address has its first connection on a thread, or after a pause another first one.
    fn add(&mut self, counts: Arc<ClientCounts>) {
        let key = counts.key;
        if let Some(test) = self.by_client.get_mut(&key) {
            test.open.push(counts);
            return;
        }
        if self.by_client.len() >= TESTS_LIMIT {
            return;
        }
        self.count += 1;
        let test = Test::new(self.count, counts, self.interval_ns);
        let ago_ns = monotonic_ns().saturating_sub(test.began_ns);
        self.tell(ServerEvent::TestStarted {
            number: self.count,
            client: key.address,
            transport: key.transport,
            utc_ns: utc_ns() - ago_ns.cast_signed(),
        });
        self.by_client.insert(key, test);
    }

    /// Takes the samples that are due, and ends the tests that are over.
    fn tick(&mut self, now_ns: u64) {
        let mut over = Vec::new();
        for (key, test) in &mut self.by_client {
            let reading = test.read();
            let quiet_ns = now_ns.saturating_sub(reading.last_ns);
            if reading.open == 0 && quiet_ns >= QUIET_NS {
                over.push(*key);
            } else if now_ns >= test.intervals.next_ns() && reading.open > 0 {
                let (number, sample) = (test.number, Box::new(test.sample(reading, now_ns)));
                let _unheard = self.events.send(ServerEvent::TestSample { number, sample });
            }
        }
        for key in over {
            self.end(key, now_ns);
        }
    }

    fn end(&mut self, key: ClientKey, now_ns: u64) {
        let Some(mut test) = self.by_client.remove(&key) else { return };
        let reading = test.read();
        let has_ended = reading.open == 0;
        let ended_ns = if has_ended { reading.last_ns.max(test.began_ns + 1) } else { now_ns };
        let number = test.number;
        let since = test.intervals.elapsed_ns(ended_ns);
        let moved = reading.received_bytes + reading.sent_bytes + reading.connections
            > test.sampled.received_bytes + test.sampled.sent_bytes + test.sampled.connections;
        if moved || since > self.interval_ns / 20 {
            let sample = Box::new(test.sample(reading, ended_ns));
            self.tell(ServerEvent::TestSample { number, sample });
        }
        let report = Box::new(test.report(&reading, ended_ns));
        self.tell(ServerEvent::TestEnded { number, report });
    }

    fn tell(&self, event: ServerEvent) {
        // Nobody listens any more only when the program is ending.
        let _unheard = self.events.send(event);
    }
}

/// Records until the server's threads have ended.
pub(super) fn run(
    interval_ns: u64,
    counts: &Receiver<Arc<ClientCounts>>,
    events: Sender<ServerEvent>,
) {
    let mut tests = Tests { interval_ns, by_client: HashMap::new(), count: 0, events };
    loop {
        let ended = loop {
            match counts.try_recv() {
                Ok(counts) => tests.add(counts),
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        let now_ns = monotonic_ns();
        tests.tick(now_ns);
        if ended {
            let left: Vec<ClientKey> = tests.by_client.keys().copied().collect();
            left.into_iter().for_each(|key| tests.end(key, now_ns));
            return;
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use linerate_measure::Transport;

    use super::super::clients::Clients;
    use super::*;
    use crate::transport::multiplexer::Link;

    const INTERVAL_NS: u64 = 1000 * MILLISECOND_NS;

    #[test]
    fn a_test_lasts_until_its_address_had_no_connection_for_a_while() {
        let (sender, counts) = channel();
        let (events, told) = channel();
        let (by_client, count) = (HashMap::new(), 0);
        let mut tests = Tests { interval_ns: INTERVAL_NS, by_client, count, events };
        let mut clients = Clients::new((Transport::Tls, 3), sender);
        let remote = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let link = |index| Link { index, generation: 0 };
        clients.begin(link(0), remote);
        clients.record_received(link(0), 100);
        tests.add(counts.recv().unwrap());
        let began_ns = monotonic_ns();
        tests.tick(began_ns + INTERVAL_NS);
        clients.end(link(0));
        let ended_ns = monotonic_ns();
        tests.tick(ended_ns + QUIET_NS / 2);
        // Another connection in time belongs to the same test.
        clients.begin(link(1), remote);
        tests.add(counts.recv().unwrap());
        clients.record_sent(link(1), 7);
        clients.record_answered(link(1));
        clients.end(link(1));
        tests.tick(monotonic_ns() + QUIET_NS);
        let told: Vec<ServerEvent> = told.try_iter().collect();
        let [
            ServerEvent::TestStarted { number: 1, transport: Transport::Tls, .. },
            ServerEvent::TestSample { sample: first, .. },
            ServerEvent::TestSample { sample: last, .. },
            ServerEvent::TestEnded { number: 1, report },
        ] = &told[..]
        else {
            panic!("{told:?}")
        };
        assert_eq!((first.index, first.from_ns, last.index), (0, 0, 1));
        assert_eq!(first.received.map(|received| received.bytes), Some(100));
        assert_eq!(last.from_ns, first.to_ns);
        let flow = &report.own.flows[0];
        assert_eq!(flow.received.map(|received| received.bytes), Some(100));
        assert_eq!(flow.sent.map(|sent| sent.bytes), Some(7));
        assert_eq!((report.most_open, report.is_cut_off), (1, false));
        let Some(EndExtension::Perf(totals)) = report.own.extension else { panic!("{report:?}") };
        assert_eq!((totals.connections, totals.streams), (Some(2), Some(1)));
    }
}
