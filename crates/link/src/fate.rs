//! What chance does to packets. Every sort of chance has a generator of its own, which takes the
//! same number of steps for every packet: the n-th packet's fate depends on the seed, n and the
//! description, not on when it comes or what became of others.

use linerate_measure::link::{BurstLoss, Direction, Distribution, Jitter};

use linerate_measure::random::next_word;

/// Standard deviations at which normal jitter is cut off.
const NORMAL_CUT: f64 = 4.0;
/// Widths at which Pareto jitter is cut off.
const PARETO_CUT: f64 = 100.0;

/// What chance has decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// It gets lost.
    pub(super) lost: bool,
    /// It arrives twice.
    pub(super) duplicated: bool,
    /// How long it takes, without the queue.
    pub(super) delay_ns: u64,
    /// It is held back for that long beside.
    pub(super) held_ns: Option<u64>,
}

/// The generators of one direction.
#[derive(Debug)]
pub(super) struct Chance {
    loss: u64,
    burst: u64,
    jitter: u64,
    reorder: u64,
    duplicate: u64,
    /// The model of Gilbert and Elliott is in its bad state.
    bad: bool,
    losses_in_a_row: u32,
}

impl Chance {
    /// The generators that this seed gives.
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || next_word(&mut state);
        Self {
            loss: next(),
            burst: next(),
            jitter: next(),
            reorder: next(),
            duplicate: next(),
            bad: false,
            losses_in_a_row: 0,
        }
    }

    /// Decides about the next packet.
    pub(super) fn next_fate(&mut self, direction: &Direction) -> Fate {
        let by_chance = uniform(&mut self.loss) < direction.loss;
        let in_burst = direction.burst_loss.is_some_and(|model| self.next_burst_loss(model));
        let mut lost = by_chance || in_burst;
        if direction.losses_in_a_row_max.is_some_and(|most| self.losses_in_a_row >= most) {
            lost = false;
        }
        self.losses_in_a_row = if lost { self.losses_in_a_row.saturating_add(1) } else { 0 };
        let delay_ns = match direction.jitter {
            Some(jitter) => self.next_delay_ns(direction.delay_ns, jitter),
            None => direction.delay_ns,
        };
        let held = uniform(&mut self.reorder);
        let held_ns = direction.reorder.filter(|reorder| held < reorder.share);
        Fate {
            lost,
            duplicated: uniform(&mut self.duplicate) < direction.duplicate,
            delay_ns,
            held_ns: held_ns.map(|reorder| reorder.by_ns),
        }
    }

    fn next_burst_loss(&mut self, model: BurstLoss) -> bool {
        let turn = uniform(&mut self.burst);
        self.bad = if self.bad { turn >= model.leave } else { turn < model.enter };
        let loss = if self.bad { model.loss_bad } else { model.loss_good };
        uniform(&mut self.burst) < loss
    }

    fn next_delay_ns(&mut self, delay_ns: u64, jitter: Jitter) -> u64 {
        let width = jitter.width_ns as f64;
        // Both are drawn whatever the distribution, so that all take as many steps.
        let (first, second) = (uniform(&mut self.jitter), uniform(&mut self.jitter));
        let varied_ns = match jitter.distribution {
            Distribution::Uniform => width * (2.0 * first - 1.0),
            Distribution::Normal => {
                // Box and Muller, "A note on the generation of random normal deviates" (1958).
                let normal =
                    (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                width * normal.clamp(-NORMAL_CUT, NORMAL_CUT)
            }
            Distribution::Pareto => width * ((1.0 - first).powf(-1.0 / 3.0) - 1.0).min(PARETO_CUT),
        };
        // A negative number becomes 0: nothing arrives before it was sent.
        (delay_ns as f64 + varied_ns).round() as u64
    }
}

/// A number from 0 to less than 1.
pub(super) fn uniform(state: &mut u64) -> f64 {
    (next_word(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// How many trials fail before the next one succeeds, where each does with this chance (more than
/// 0): a number with the geometric distribution, by inversion.
pub(super) fn failures_before_success(state: &mut u64, chance: f64) -> u64 {
    if chance >= 1.0 {
        return 0;
    }
    // ln_1p keeps chances below 10^-16 apart from none.
    ((1.0 - uniform(state)).ln() / (-chance).ln_1p()) as u64
}
