//! Simulated paths with a known capacity.

use linerate_measure::hunt::{Bad, Goal, Judge, Observation, Trial};
use linerate_measure::random::next_word;

const INTERVAL_NS: u64 = 50_000_000;
const WARM_UP_NS: u64 = 200_000_000;

/// What kind of path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    HardKnee,
    CapacityVaries,
    BaseLoss,
    BaseLossInBursts,
    Queue50Ms,
    Queue200Ms,
    ReceiverCollapses,
    /// The sender's own interface is the narrowest place, and drops what its queue has no room for.
    OwnQueueDrops,
    /// A transport that takes no more than its buffer holds: the sender waits.
    Backpressure,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::HardKnee,
    Kind::CapacityVaries,
    Kind::BaseLoss,
    Kind::BaseLossInBursts,
    Kind::Queue50Ms,
    Kind::Queue200Ms,
    Kind::ReceiverCollapses,
    Kind::OwnQueueDrops,
    Kind::Backpressure,
];

/// What one interval brought.
struct Interval {
    sent: u64,
    arrived: u64,
    lost: Bad,
    refused: u64,
    is_full: bool,
}

/// A path, and the virtual time that its trials took.
pub(crate) struct Path {
    kind: Kind,
    capacity_per_s: f64,
    random: u64,
    now_ns: u64,
    queue: f64,
    /// What is due and waits for room in the transport.
    waiting: f64,
    /// Where the capacity varies: by how much of it, now.
    drift: f64,
    collapsed_until_ns: u64,
    /// How far a count was ahead of its time at the end of the interval before.
    skew: [f64; 2],
}

impl Path {
    pub(crate) fn new(kind: Kind, capacity_per_s: f64, seed: u64) -> Self {
        Self {
            kind,
            capacity_per_s,
            random: seed,
            now_ns: 0,
            queue: 0.0,
            waiting: 0.0,
            drift: 0.0,
            collapsed_until_ns: 0,
            skew: [0.0; 2],
        }
    }

    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.now_ns
    }

    /// Runs a trial as long as the judge wants, on an empty queue.
    pub(crate) fn run(&mut self, goal: &Goal, trial: &Trial) -> Judge {
        let mut judge = Judge::new(goal, trial);
        (self.queue, self.waiting, self.skew) = (0.0, 0.0, [0.0; 2]);
        let per_s = goal.items_per_s(trial.rate);
        for _ in 0..WARM_UP_NS / INTERVAL_NS {
            self.interval(per_s);
        }
        for number in 0..trial.longest_ns / INTERVAL_NS {
            let Interval { sent, arrived, lost, refused, is_full } = self.interval(per_s);
            let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
            judge.handle(&Observation::Backpressure {
                from_ns,
                to_ns,
                refused,
                is_full,
                window_wait_ns: None,
            });
            judge.handle(&Observation::Sent { from_ns, to_ns, items: sent });
            judge.handle(&Observation::Arrived { from_ns, to_ns, items: arrived, bad: vec![lost] });
            if judge.verdict().is_some() {
                break;
            }
        }
        // Flows are set up, and the queue empties.
        self.now_ns += 300_000_000;
        judge
    }

    /// The next interval.
    fn interval(&mut self, per_s: f64) -> Interval {
        let seconds = INTERVAL_NS as f64 / 1e9;
        self.now_ns += INTERVAL_NS;
        let mut sent = self.whole(per_s * seconds);
        if matches!(self.kind, Kind::Backpressure) {
            self.waiting += sent as f64;
            let room = (self.capacity_per_s * (self.queue_s() + seconds) - self.queue).max(0.0);
            sent = self.waiting.min(room).floor() as u64;
            self.waiting -= sent as f64;
        }
        let base = self.base_loss(sent);
        self.queue += (sent - base.items.min(sent)) as f64;
        let room = self.serves_per_s() * seconds;
        let served = self.whole(room.min(self.queue));
        self.queue -= served as f64;
        let room = self.capacity_per_s * self.queue_s();
        let over = ((self.queue - room).max(0.0)) as u64;
        self.queue -= over as f64;
        if matches!(self.kind, Kind::OwnQueueDrops) {
            let sent = self.skewed(0, sent.saturating_sub(over), per_s);
            let arrived = self.skewed(1, served, per_s);
            let is_full = over > 0;
            return Interval { sent, arrived, lost: Bad::default(), refused: over, is_full };
        }
        let hiccup = self.hiccup();
        let dropped = Bad { items: over, events: over.min((served / 2).max(1)) };
        if over > 0 && matches!(self.kind, Kind::ReceiverCollapses) {
            self.collapsed_until_ns = self.now_ns + 200_000_000;
        }
        let arrived = served.saturating_sub(hiccup.items);
        let sent = self.skewed(0, sent, per_s);
        let arrived = self.skewed(1, arrived, per_s);
        // As a sample's unsent bytes tell it.
        let full = (0.01 * per_s).min(131_072.0 * 8.0 / crate::DATAGRAM_BITS as f64);
        let is_full = self.queue > full && matches!(self.kind, Kind::Backpressure);
        Interval { sent, arrived, lost: base.plus(dropped).plus(hiccup), refused: 0, is_full }
    }

    fn queue_s(&self) -> f64 {
        match self.kind {
            Kind::Queue50Ms => 0.05,
            Kind::Queue200Ms | Kind::Backpressure => 0.2,
            _ => 0.003,
        }
    }

    fn serves_per_s(&mut self) -> f64 {
        match self.kind {
            Kind::CapacityVaries => {
                self.drift = 0.9 * self.drift + 0.1 * (2.0 * self.chance() - 1.0);
                self.capacity_per_s * (1.0 + 0.002 * self.drift.clamp(-1.0, 1.0))
            }
            Kind::ReceiverCollapses if self.now_ns < self.collapsed_until_ns => {
                self.capacity_per_s * 0.5
            }
            _ => self.capacity_per_s,
        }
    }

    fn base_loss(&mut self, sent: u64) -> Bad {
        let run = match self.kind {
            Kind::BaseLoss => 1.0,
            Kind::BaseLossInBursts => 20.0,
            _ => return Bad::default(),
        };
        let events = self.poisson(sent as f64 * 0.0005 / run);
        Bad { items: events * run as u64, events }
    }

    /// One in four seconds: a run of 1 ms is lost.
    fn hiccup(&mut self) -> Bad {
        let happens = self.chance() < INTERVAL_NS as f64 / 4e9;
        if !matches!(self.kind, Kind::CapacityVaries) || !happens {
            return Bad::default();
        }
        Bad::one_event((self.capacity_per_s * 0.001) as u64)
    }

    /// No end counts exactly at the end of an interval: up to 0.3 ms later.
    fn skewed(&mut self, end: usize, items: u64, per_s: f64) -> u64 {
        let ahead = (self.chance() * 0.0003 * per_s).floor();
        let counted = items as f64 + ahead - self.skew[end];
        self.skew[end] = ahead.min(items as f64);
        counted.max(0.0) as u64
    }

    fn whole(&mut self, amount: f64) -> u64 {
        let up = self.chance() < amount.fract();
        amount as u64 + u64::from(up)
    }

    fn poisson(&mut self, mean: f64) -> u64 {
        let (least, mut product, mut count) = ((-mean).exp(), self.chance(), 0);
        while product > least {
            product *= self.chance();
            count += 1;
        }
        count
    }

    fn chance(&mut self) -> f64 {
        (next_word(&mut self.random) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
