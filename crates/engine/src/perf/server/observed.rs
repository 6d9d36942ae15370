//! What the clients of a server do, as tests with samples and reports for an observer.
//!
//! A server of this dialect sees connections and no tests. What the connections of one address over one transport do
//! counts as one test: from when the first of them stands until none has stood for [`QUIET_NS`].

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_measure::dialect::perf::{self, EndTotals};
use linerate_measure::dialect::{EndExtension, SampleExtension};
use linerate_measure::sample::Traffic;
use linerate_measure::{EndReport, FlowReport, Role, Sample, Transport};

use super::clients::{ClientCounts, ClientKey};
use crate::clock::{MILLISECOND_NS, utc_of};
use crate::event::{OBSERVED_INTERVAL_NS, Observe, TestEnding, TestObserver};
use crate::load::{Interval, Intervals};
use crate::probe::MachineTimes;

/// A test is over when its address has had no connection for so long.
const QUIET_NS: u64 = 500 * MILLISECOND_NS;
/// How often it is looked whether a test is over.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// Tests at a time. What further addresses do is not observed.
const TESTS_LIMIT: usize = 1024;

/// The clients of an address begin a test: they have no other over this transport.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Where the server listens.
    pub local: SocketAddr,
    /// Their address.
    pub client: IpAddr,
    /// [`Transport::Quic`], or [`Transport::Tls`]: sealed frames over TCP.
    pub transport: Transport,
}

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
    observer: Box<dyn TestObserver<TestReport>>,
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
    fn new(mut observer: Box<dyn TestObserver<TestReport>>, counts: Arc<ClientCounts>) -> Self {
        let began_ns = counts.first_ns.value();
        observer.started(utc_of(began_ns));
        Self {
            observer,
            began_ns,
            machine: MachineTimes::now(),
            open: vec![counts],
            closed: Reading::default(),
            most_open: HashMap::new(),
            is_cut_off: false,
            intervals: Intervals::begin(OBSERVED_INTERVAL_NS, began_ns),
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

    fn sample(&mut self, reading: Reading, now_ns: u64) {
        let traffic = |now: u64, before: u64| {
            Some(Traffic { bytes: now.saturating_sub(before), calls: None })
        };
        let before = std::mem::replace(&mut self.sampled, reading);
        let Interval { index, from_ns, to_ns, utc_ns } = self.intervals.cut(now_ns);
        let own = perf::Interval {
            connections: Some(reading.connections.saturating_sub(before.connections)),
            streams: Some(reading.streams.saturating_sub(before.streams)),
        };
        self.observer.sampled(&Sample {
            index,
            from_ns,
            to_ns,
            utc_ns,
            sent: traffic(reading.sent_bytes, before.sent_bytes),
            received: traffic(reading.received_bytes, before.received_bytes),
            extension: Some(SampleExtension::Perf(own)),
            ..Sample::nothing(Role::Server)
        });
    }

    /// It is over at this time, or earlier where its last connection has ended.
    fn end(mut self, now_ns: u64) {
        let reading = self.read();
        let is_cut_off = self.is_cut_off || reading.open > 0;
        let ended_ns =
            if reading.open == 0 { reading.last_ns.max(self.began_ns + 1) } else { now_ns };
        let moved = reading.received_bytes + reading.sent_bytes + reading.connections
            > self.sampled.received_bytes + self.sampled.sent_bytes + self.sampled.connections;
        if moved || self.intervals.is_long(ended_ns) {
            self.sample(reading, ended_ns);
        }
        let report = self.report(&reading, ended_ns);
        let how = match is_cut_off {
            true => TestEnding::Interrupted("the server was stopped".to_owned()),
            false => TestEnding::Complete,
        };
        self.observer.ended(Some(report), &how);
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
        }
    }
}

/// The tests of a server that are observed.
pub(super) struct ObservedTests {
    observe: Arc<dyn Observe<Asked, TestReport>>,
    /// Where the server listens.
    local: SocketAddr,
    by_client: HashMap<ClientKey, Test>,
    /// When [`ObservedTests::tick`] is next of use; `None`: there is no test.
    due_ns: Option<u64>,
}

impl ObservedTests {
    pub(super) fn new(observe: Arc<dyn Observe<Asked, TestReport>>, local: SocketAddr) -> Self {
        Self { observe, local, by_client: HashMap::new(), due_ns: None }
    }

    /// An address has its first connection on a thread, or after a pause another first one.
    pub(super) fn add(&mut self, counts: Arc<ClientCounts>) {
        let key = counts.key;
        if let Some(test) = self.by_client.get_mut(&key) {
            test.open.push(counts);
        } else if self.by_client.len() < TESTS_LIMIT {
            let ClientKey { address: client, transport } = key;
            let observer = self.observe.begin(&Asked { local: self.local, client, transport });
            let test = Test::new(observer, counts);
            let look_ns = test.began_ns.saturating_add(LOOK_NS);
            self.due_ns = Some(self.due_ns.map_or(look_ns, |due_ns| due_ns.min(look_ns)));
            self.by_client.insert(key, test);
        }
    }

    /// How long [`ObservedTests::tick`] is of no use, ns.
    pub(super) fn left_ns(&self, now_ns: u64) -> u64 {
        self.due_ns.map_or(u64::MAX, |due_ns| due_ns.saturating_sub(now_ns))
    }

    /// Takes the samples that are due, and ends the tests that are over.
    pub(super) fn tick(&mut self, now_ns: u64) {
        let is_over = |test: &mut Test| {
            let reading = test.read();
            let quiet_ns = now_ns.saturating_sub(reading.last_ns);
            if now_ns >= test.intervals.next_ns() && reading.open > 0 {
                test.sample(reading, now_ns);
            }
            reading.open == 0 && quiet_ns >= QUIET_NS
        };
        let over = self.by_client.extract_if(|_, test| is_over(test));
        over.for_each(|(_, test)| test.end(now_ns));
        let left_ns = |test: &Test| match test.intervals.next_ns().saturating_sub(now_ns) {
            // It has no connection now, and no sample for as long.
            0 => LOOK_NS,
            left_ns => left_ns.min(LOOK_NS),
        };
        let left_ns = self.by_client.values().map(left_ns).min();
        self.due_ns = left_ns.map(|left_ns| now_ns.saturating_add(left_ns));
    }

    /// The server's threads have ended.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.by_client.drain().for_each(|(_, test)| test.end(now_ns));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::super::Message;
    use super::super::clients::Clients;
    use super::*;
    use crate::clock::monotonic_ns;
    use crate::transport::multiplexer::Link;

    /// What observers were told.
    #[derive(Debug, Default)]
    struct Told {
        begun: Vec<Transport>,
        samples: Vec<Sample>,
        ends: Vec<(TestReport, TestEnding)>,
    }

    #[derive(Clone, Debug, Default)]
    struct Listener(Arc<Mutex<Told>>);

    impl Observe<Asked, TestReport> for Listener {
        fn begin(&self, asked: &Asked) -> Box<dyn TestObserver<TestReport>> {
            self.0.lock().unwrap().begun.push(asked.transport);
            Box::new(self.clone())
        }
    }

    impl TestObserver<TestReport> for Listener {
        fn started(&mut self, _utc_ns: i64) {}

        fn sampled(&mut self, sample: &Sample) {
            self.0.lock().unwrap().samples.push(sample.clone());
        }

        fn ended(self: Box<Self>, report: Option<TestReport>, how: &TestEnding) {
            self.0.lock().unwrap().ends.push((report.unwrap(), how.clone()));
        }
    }

    #[test]
    fn a_test_lasts_until_its_address_had_no_connection_for_a_while() {
        let (sender, messages) = channel();
        let listener = Listener::default();
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut tests = ObservedTests::new(Arc::new(listener.clone()), remote);
        let mut clients = Clients::new((Transport::Tls, 3), sender);
        let link = |index| Link { index, generation: 0 };
        let next = || match messages.recv().unwrap() {
            Message::Client(counts) => counts,
            Message::Event(event) => panic!("{event:?}"),
        };
        clients.begin(link(0), remote);
        clients.record_received(link(0), 100);
        assert_eq!(tests.left_ns(monotonic_ns()), u64::MAX);
        tests.add(next());
        let began_ns = monotonic_ns();
        assert!(tests.left_ns(began_ns) <= LOOK_NS);
        let sampled_ns = began_ns + OBSERVED_INTERVAL_NS;
        assert_eq!(tests.left_ns(sampled_ns), 0);
        tests.tick(sampled_ns);
        assert_eq!(tests.left_ns(sampled_ns), LOOK_NS, "not at each event");
        clients.end(link(0));
        let ended_ns = monotonic_ns();
        tests.tick(ended_ns + QUIET_NS / 2);
        // Another connection in time belongs to the same test.
        clients.begin(link(1), remote);
        tests.add(next());
        clients.record_sent(link(1), 7);
        clients.record_answered(link(1));
        clients.end(link(1));
        tests.tick(monotonic_ns() + QUIET_NS);
        let told = listener.0.lock().unwrap();
        let Told { begun, samples, ends } = &*told;
        let ([Transport::Tls], [first, last], [(report, how)]) =
            (&begun[..], &samples[..], &ends[..])
        else {
            panic!("{told:?}")
        };
        assert_eq!((first.index, first.from_ns, last.index), (0, 0, 1));
        assert_eq!(first.received.map(|received| received.bytes), Some(100));
        assert_eq!(last.from_ns, first.to_ns);
        let flow = &report.own.flows[0];
        assert_eq!(flow.received.map(|received| received.bytes), Some(100));
        assert_eq!(flow.sent.map(|sent| sent.bytes), Some(7));
        assert_eq!((report.most_open, how), (1, &TestEnding::Complete));
        let Some(EndExtension::Perf(totals)) = report.own.extension else { panic!("{report:?}") };
        assert_eq!((totals.connections, totals.streams), (Some(2), Some(1)));
    }
}
