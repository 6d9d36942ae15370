//! Whether the conductor keeps its times, and what its machine did to the load meanwhile.

use std::cell::Cell;
use std::os::fd::AsFd;

use linerate_measure::report::{
    Disturbance, GAP_NS, LATE_NS, OwnQueue, SocketQueues, Standstills, ThreadDemand,
    WAKEUP_DELAY_NS,
};
use socket2::Socket;

use crate::clock::MILLISECOND_NS;
use crate::probe::Quotas;
use crate::shard::Shard;
use crate::socket::{Interface, own_queue, tcp_queues};

/// The conductor wakes up at least so often, and looks.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;

/// What disturbs a load that runs.
#[derive(Debug, Default)]
pub(super) struct Watch {
    opened_ns: u64,
    /// When the conductor is to look next; 0: the load hasn't begun, or is ending.
    due_ns: Cell<u64>,
    lateness: Standstills,
    wakeup_delay_ns: u64,
    silence: Option<Silence>,
    queues: Vec<Lengths>,
    /// Where a stream leaves this machine, and what its queue had counted before.
    own_queue: Option<(Interface, OwnQueue)>,
    /// What each thread had used when the measured part began.
    base: Vec<ThreadDemand>,
    base_quotas: Quotas,
    /// The most other tests of this server at the same time.
    pub(super) other_tests: Option<u32>,
}

/// What stood in the queues of a flow's socket, look by look.
#[derive(Clone, Debug)]
struct Lengths {
    flow: u32,
    unsent: Vec<u32>,
    unread: Vec<u32>,
    /// Of so many looks one is kept; and those since the last one.
    each: u32,
    skipped: u32,
}

impl Lengths {
    /// What is kept of a flow at most; then every second look is dropped.
    const MOST: usize = 1024;

    fn new(flow: u32) -> Self {
        Self { flow, unsent: Vec::new(), unread: Vec::new(), each: 1, skipped: 0 }
    }

    fn record(&mut self, unsent: u32, unread: u32) {
        self.skipped += 1;
        if self.skipped < self.each {
            return;
        }
        self.skipped = 0;
        self.unsent.push(unsent);
        self.unread.push(unread);
        if self.unsent.len() >= Self::MOST {
            for lengths in [&mut self.unsent, &mut self.unread] {
                let mut number = 0;
                lengths.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
            }
            self.each *= 2;
        }
    }

    fn medians(&self) -> SocketQueues {
        let median = |lengths: &[u32]| {
            let mut lengths = lengths.to_vec();
            let middle = lengths.len() / 2;
            (!lengths.is_empty()).then(|| u64::from(*lengths.select_nth_unstable(middle).1))
        };
        SocketQueues {
            notsent_bytes: median(&self.unsent),
            receive_queue_bytes: median(&self.unread),
        }
    }
}

/// Times in which nothing came.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    received_bytes: u64,
    has_begun: bool,
    quiet_ns: u64,
    longest: Standstills,
}

impl Watch {
    /// The load begins. `receives` says whether bytes of a stream, or responses, come to this end.
    pub(super) fn open(&mut self, now_ns: u64, receives: bool, shards: &[Shard]) {
        self.opened_ns = now_ns;
        self.silence = receives.then(Silence::default);
        self.begin_measuring(now_ns, shards);
    }

    /// What was before doesn't count.
    pub(super) fn begin_measuring(&mut self, now_ns: u64, shards: &[Shard]) {
        self.due_ns.set(now_ns.saturating_add(LOOK_NS));
        self.lateness = Standstills::default();
        self.wakeup_delay_ns = 0;
        self.silence = self.silence.map(|_| Silence::default());
        self.base = shards.iter().map(|shard| shard.demand().unwrap_or_default()).collect();
        self.base_quotas = Quotas::read();
        self.queues.clear();
    }

    /// The first flow's socket, where this end sends a stream.
    pub(super) fn begin_own_queue(&mut self, socket: &Socket) {
        let interface = Interface::of(socket);
        self.own_queue = interface.and_then(|interface| Some((interface, own_queue(interface)?)));
    }

    /// Looks at the queues of a flow's socket.
    pub(super) fn look_at_socket(&mut self, flow: u32, socket: &Socket) {
        let Some((unsent, unread)) = tcp_queues(socket.as_fd()) else { return };
        let place = match self.queues.iter().position(|lengths| lengths.flow == flow) {
            Some(place) => place,
            None => {
                self.queues.push(Lengths::new(flow));
                self.queues.len() - 1
            }
        };
        if let Some(lengths) = self.queues.get_mut(place) {
            lengths.record(unsent, unread);
        }
    }

    /// What stood in the queues of a flow's socket.
    pub(super) fn queues_of(&self, flow: u32) -> Option<SocketQueues> {
        self.queues.iter().find(|lengths| lengths.flow == flow).map(Lengths::medians)
    }

    /// The load is ending: nobody is late any more.
    pub(super) fn end(&mut self) {
        self.due_ns.set(0);
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        (1..=now_ns).contains(&self.due_ns.get())
    }

    /// When to look next, for a conductor that is about to wait until then. What has kept it busy past that time is its
    /// own work, and no lateness.
    pub(super) fn next_due(&self, now_ns: u64) -> Option<u64> {
        let due_ns = Some(self.due_ns.get()).filter(|due_ns| *due_ns > 0)?;
        self.due_ns.set(due_ns.max(now_ns));
        Some(due_ns.max(now_ns))
    }

    /// Looks; so much has been received.
    pub(super) fn look(&mut self, now_ns: u64, received_bytes: impl FnOnce() -> u64) {
        let late_ns = now_ns.saturating_sub(self.due_ns.get());
        let at_ns = now_ns.saturating_sub(self.opened_ns);
        self.lateness.record(late_ns, at_ns, LATE_NS);
        if late_ns > WAKEUP_DELAY_NS {
            self.wakeup_delay_ns = self.wakeup_delay_ns.saturating_add(late_ns);
        }
        self.due_ns.set(now_ns.saturating_add(LOOK_NS));
        let Some(silence) = &mut self.silence else { return };
        let received_bytes = received_bytes();
        if received_bytes == silence.received_bytes {
            // What came while the conductor stood still is seen when it wakes up.
            silence.quiet_ns += if silence.has_begun { LOOK_NS } else { 0 };
            return;
        }
        silence.longest.record(silence.quiet_ns, at_ns, GAP_NS);
        *silence = Silence { received_bytes, has_begun: true, quiet_ns: 0, ..*silence };
    }

    /// What disturbed the measured part.
    pub(super) fn disturbance(&self, shards: &[Shard]) -> Disturbance {
        let bases = self.base.iter().copied().chain(std::iter::repeat(ThreadDemand::default()));
        let demands: Vec<ThreadDemand> = shards
            .iter()
            .zip(bases)
            .filter_map(|(shard, base)| Some(shard.demand()?.since(base)))
            .collect();
        let busiest = demands.iter().copied().max_by(|a, b| a.all_s().total_cmp(&b.all_s()));
        Disturbance {
            lateness: Some(self.lateness),
            wakeup_delay_ns: Some(self.wakeup_delay_ns),
            silence: self.silence.map(|silence| silence.longest),
            wait_s: (!demands.is_empty()).then(|| demands.iter().map(|one| one.wait_s).sum()),
            busiest_thread: busiest,
            quota: Quotas::read().since(&self.base_quotas),
            own_queue: self
                .own_queue
                .and_then(|(interface, base)| Some(own_queue(interface)?.since(base))),
            other_tests: self.other_tests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED_NS: u64 = 1_000_000_000;

    fn opened(receives: bool) -> Watch {
        let mut watch = Watch::default();
        assert!(!watch.is_due(u64::MAX) && watch.next_due(5).is_none(), "it hasn't begun");
        watch.open(OPENED_NS, receives, &[]);
        watch
    }

    /// Looks at these milliseconds, when so many bytes had come.
    fn look(watch: &mut Watch, at_ms: u64, received_bytes: u64) {
        let now_ns = OPENED_NS + at_ms * MILLISECOND_NS;
        assert!(watch.is_due(now_ns), "{at_ms}");
        watch.look(now_ns, || received_bytes);
    }

    #[test]
    fn a_late_conductor_is_seen() {
        let mut watch = opened(false);
        for at_ms in [50, 101, 151] {
            look(&mut watch, at_ms, 0);
        }
        assert_eq!((watch.lateness.longest_ns, watch.wakeup_delay_ns), (MILLISECOND_NS, 0));
        look(&mut watch, 501, 0);
        let late = watch.lateness;
        assert_eq!(late.longest_ns, 300 * MILLISECOND_NS);
        assert_eq!(late.at_ns, 501 * MILLISECOND_NS);
        assert_eq!(late.total_ns, 300 * MILLISECOND_NS);
        look(&mut watch, 571, 0);
        look(&mut watch, 641, 0);
        assert_eq!(watch.lateness.total_ns, 300 * MILLISECOND_NS);
        // 20 ms are not counted yet.
        assert_eq!(watch.wakeup_delay_ns, 300 * MILLISECOND_NS);
        look(&mut watch, 712, 0);
        assert_eq!(watch.wakeup_delay_ns, 321 * MILLISECOND_NS);
        watch.begin_measuring(OPENED_NS, &[]);
        assert_eq!((watch.lateness.longest_ns, watch.wakeup_delay_ns), (0, 0));
        watch.end();
        assert!(!watch.is_due(u64::MAX));
    }

    #[test]
    fn work_of_the_conductor_is_no_lateness() {
        let mut watch = opened(false);
        let busy_until_ns = OPENED_NS + 900 * MILLISECOND_NS;
        assert_eq!(watch.next_due(busy_until_ns), Some(busy_until_ns));
        look(&mut watch, 901, 0);
        assert_eq!(watch.lateness.longest_ns, MILLISECOND_NS);
    }

    #[test]
    fn silence_is_between_arrivals_and_no_lateness() {
        let mut watch = opened(true);
        // Nothing has come yet, then something.
        for (at_ms, bytes) in [(50, 0), (100, 0), (150, 10), (200, 20)] {
            look(&mut watch, at_ms, bytes);
        }
        for at_ms in (250..=600).step_by(50) {
            look(&mut watch, at_ms, 20);
        }
        assert_eq!(watch.disturbance(&[]).silence.unwrap().longest_ns, 0, "it may be the end");
        look(&mut watch, 650, 30);
        let silence = watch.disturbance(&[]).silence.unwrap();
        assert_eq!(silence.longest_ns, 400 * MILLISECOND_NS);
        assert_eq!((silence.at_ns, silence.total_ns), (650 * MILLISECOND_NS, silence.longest_ns));
        // The conductor stood still, and nothing had come meanwhile: one look's time.
        look(&mut watch, 2_000, 30);
        look(&mut watch, 2_050, 40);
        let disturbance = watch.disturbance(&[]);
        assert_eq!(disturbance.silence, Some(silence));
        assert_eq!(disturbance.lateness.unwrap().longest_ns, 1_300 * MILLISECOND_NS);
        assert_eq!(opened(false).disturbance(&[]).silence, None);
    }

    #[test]
    fn a_long_test_keeps_few_lengths_and_its_median() {
        let mut lengths = Lengths::new(3);
        assert_eq!(lengths.medians(), SocketQueues::default());
        for look in 0..100_000 {
            lengths.record(look, 7);
        }
        assert!(lengths.unsent.len() <= Lengths::MOST);
        let medians = lengths.medians();
        assert_eq!(medians.receive_queue_bytes, Some(7));
        let unsent = medians.notsent_bytes.unwrap();
        assert!((45_000..55_000).contains(&unsent), "{unsent}");
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut watch = opened(true);
        look(&mut watch, 900, 10);
        watch.begin_measuring(OPENED_NS + 1_000 * MILLISECOND_NS, &[]);
        look(&mut watch, 1_050, 20);
        let disturbance = watch.disturbance(&[]);
        assert_eq!(disturbance.lateness, Some(Standstills::default()));
        assert_eq!(disturbance.silence, Some(Standstills::default()));
    }
}
