//! Losses that depend on the rate, told from losses that don't, by two further runs.
//!
//! One run can't tell random loss from a shallow buffer or a policer. Two runs that are paced below its goodput can:
//!
//! * Random loss takes the same share of the segments at any rate.
//! * A buffer or a policer takes next to none at half of the rate. Just below the whole rate a buffer that drops bursts
//!   takes none either, as paced segments are no bursts; a rate limit without a buffer still does.
//!
//! Whether a share stayed or vanished is an exact test. If the second run loses the r-fold share of the first, its
//! losses are binomial among the losses of both, with the probability r n / (N + r n). N and n are the segments of the
//! first and the second run (Przyborowski and Wilenski, Homogeneity of results in testing samples from Poisson series,
//! 1940). The share stayed if r of at most a third is ruled out, and vanished if r of at least a third is. Where neither
//! is, the counts are too small.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::comparison::regularised_beta;
use crate::plan::{Direction, End, Plan, Rate};
use crate::run::{Outcome, Run};
use crate::trust::Trust;
use crate::units::{render_percent, render_rate};

#[cfg(test)]
mod tests;

/// What the second and the third run are paced at, as shares of the first one's goodput.
const PACED: [f64; 2] = [0.5, 0.925];
/// The share of the first run's loss ratio that parts losses that stayed from losses that vanished.
const PARTING: f64 = 1.0 / 3.0;
/// How probable counts may be at most under what they rule out.
const SIGNIFICANCE: f64 = 0.001;
/// A paced run is so long that this number of segments would be lost if their share stayed.
const LOSSES_WANTED: f64 = 60.0;
/// The least length of a paced run, and the most if the first run was shorter.
const LEAST_NS: f64 = 2e9;
const MOST_NS: f64 = 10e9;
/// A paced run carried its rate from this share on.
const CARRIED: f64 = 0.9;
/// Larger counts are scaled down to this sum: they are certain long before.
const MOST_COUNTED: f64 = 20_000.0;

/// What the losses of a run were, as its two further runs tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// What it was.
    pub verdict: LossVerdict,
    /// The verdict in words, with the figures that it was told from.
    pub sentence: String,
    /// The run that was explained, and the paced runs after it; empty where losses were not the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<LossRun>,
}

/// What losses depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossVerdict {
    /// The limit was not losses: no further run was made.
    NotNeeded,
    /// The share that was lost is the same at lower rates.
    RandomLoss,
    /// A shallow buffer, or a policer with a small bucket, drops bursts: paced, nearly the whole rate is carried
    /// without losses.
    ShallowBuffer,
    /// A policer or the like: losses begin between half and the whole of the rate, also if segments are paced.
    RateLimit,
    /// One of the two: losses vanished at half of the rate, and the third run doesn't tell which.
    ShallowBufferOrRateLimit,
    /// The counts are too small, or a run couldn't be made.
    NotTold,
}

/// What one of the runs sent and lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossRun {
    /// The run's name in the records of both ends.
    pub run_id: String,
    /// The rate that it was paced at; absent: the run that was explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_bps: Option<f64>,
    /// Its goodput.
    pub goodput_bps: f64,
    /// How long the sender sent.
    pub elapsed_s: f64,
    /// Full segments that its payload makes, all flows together.
    pub sent_segments: u64,
    /// Segments that were sent again.
    pub retransmitted_segments: u64,
    /// The second as a share of the first.
    pub lost_ratio: f64,
}

impl LossRun {
    /// What the sender of a run over TCP or TLS counted; `None` where the kernel told nothing.
    fn of(run: &Run, paced_bps: Option<f64>) -> Option<Self> {
        let workload = &run.plan.workload;
        let way = workload.direction().filter(|way| *way != Direction::Both)?;
        let sender = run.reports.iter().find(|report| report.role == way.sender())?;
        let (mut sent, mut again) = (0.0, 0_u64);
        for flow in sender.flows.iter().filter(|flow| workload.flow_direction(flow.flow) == way) {
            let Some(tcp) = flow.tcp.filter(|tcp| tcp.mss_bytes > 0) else { continue };
            let bytes = flow.sent.map_or(0, |sent| sent.bytes);
            sent += bytes as f64 / f64::from(tcp.mss_bytes);
            again = again.saturating_add(u64::from(tcp.retransmitted_segments));
        }
        let goodput_bps = run.summary.goodput_bps.filter(|bps| bps.is_finite() && *bps > 0.0)?;
        (sent >= 1.0 && sender.elapsed_ns > 0).then(|| Self {
            run_id: run.run_id.clone(),
            paced_bps,
            goodput_bps,
            elapsed_s: sender.elapsed_ns as f64 / 1e9,
            sent_segments: sent as u64,
            retransmitted_segments: again,
            lost_ratio: again as f64 / sent,
        })
    }

    /// Whether it carried the rate that it was paced at.
    fn carried(&self) -> bool {
        self.paced_bps.is_some_and(|bps| self.goodput_bps >= CARRIED * bps)
    }

    fn describe(&self) -> String {
        let ratio = render_percent(self.lost_ratio);
        match self.paced_bps {
            None => {
                let rate = render_rate(self.goodput_bps);
                format!("{ratio} of the segments were sent again at {rate}")
            }
            Some(bps) => format!("{ratio} paced at {}", render_rate(bps)),
        }
    }
}

/// The runs that explain one.
#[derive(Clone, Debug)]
pub struct Inquiry {
    plan: Plan,
    runs: Vec<LossRun>,
    settled: Option<Explanation>,
}

impl Inquiry {
    /// The explanation of a run begins with the run itself.
    pub fn of(run: &Run) -> Self {
        let mut inquiry = Self { plan: run.plan.clone(), runs: Vec::new(), settled: None };
        let limit = run.summary.limits.iter().find(|limit| limit.flow.is_none());
        match (limit, LossRun::of(run, None)) {
            (Some(limit), _) if limit.cause != Cause::Loss => {
                inquiry.settled = Some(Explanation {
                    verdict: LossVerdict::NotNeeded,
                    sentence: format!(
                        "no further run is needed: the limit was {}, not losses",
                        limit.describe()
                    ),
                    runs: Vec::new(),
                });
            }
            (Some(_), Some(first)) if run.status.outcome != Outcome::Interrupted => {
                inquiry.runs.push(first);
            }
            (Some(_), _) => inquiry.settle("the run was cut off, or its segments were not counted"),
            (None, _) => inquiry.settle("what limited the run is not known"),
        }
        inquiry
    }

    /// The next run to make; `None`: there are enough.
    pub fn next_plan(&self) -> Option<Plan> {
        let first = self.runs.first().filter(|_| self.settled.is_none())?;
        let share = PACED.get(self.runs.len() - 1)?;
        let mut plan = self.plan.clone();
        let workload = &mut plan.workload;
        workload.rate = Some(Rate::AllFlows { bps: (first.goodput_bps * share) as u64 });
        workload.end = End::Time { duration_ns: paced_time_ns(first, *share) };
        workload.omit_ns = 0;
        plan.start_at_utc_ns = None;
        plan.local.finds_warm_up = false;
        Some(plan)
    }

    /// The run of the next plan is over.
    pub fn handle_run(&mut self, run: &Run) {
        let status = &run.status;
        let bps = match run.plan.workload.rate {
            Some(Rate::AllFlows { bps } | Rate::EachFlow { bps }) => bps as f64,
            None => 0.0,
        };
        let which = format!("the run paced at {}", render_rate(bps));
        match status.outcome {
            Outcome::Interrupted => self.settle(&format!("{which} was cut off")),
            Outcome::Failed => {
                let why = status.message.as_deref().unwrap_or("no reason is known");
                self.settle(&format!("{which} failed: {why}"));
            }
            Outcome::Complete | Outcome::Untrustworthy if status.trust() == Trust::Invalid => {
                self.settle(&format!("{which} is invalid"));
            }
            Outcome::Complete | Outcome::Untrustworthy => match LossRun::of(run, Some(bps)) {
                Some(paced) => self.runs.push(paced),
                None => self.settle(&format!("the segments of {which} were not counted")),
            },
        }
    }

    /// What the runs tell.
    pub fn explanation(self) -> Explanation {
        self.settled.unwrap_or_else(|| explain(self.runs))
    }

    fn settle(&mut self, why: &str) {
        self.settled = Some(Explanation {
            verdict: LossVerdict::NotTold,
            sentence: format!("the losses can't be explained: {why}"),
            runs: std::mem::take(&mut self.runs),
        });
    }
}

/// The verdict of the run that was explained, and the two paced ones.
fn explain(runs: Vec<LossRun>) -> Explanation {
    let verdict = match &runs[..] {
        [first, half, nearly] => judge(first, half, nearly),
        _ => LossVerdict::NotTold,
    };
    let told = runs.iter().map(LossRun::describe).collect::<Vec<_>>().join(", ");
    let what = match verdict {
        LossVerdict::RandomLoss => "random loss: slower senders lose the same share",
        LossVerdict::ShallowBuffer => {
            "a shallow buffer, or a policer with a small bucket, drops bursts: a paced sender loses next to nothing"
        }
        LossVerdict::RateLimit => {
            "a rate limit, as of a policer: losses vanish at half of the rate, and just below the rate they don't"
        }
        LossVerdict::ShallowBufferOrRateLimit => {
            "a shallow buffer or a policer: losses vanish at half of the rate"
        }
        LossVerdict::NotTold | LossVerdict::NotNeeded => {
            "the losses are too few, or too uneven, to tell what they depend on: measure for longer"
        }
    };
    Explanation { verdict, sentence: format!("{what} ({told})"), runs }
}

fn judge(first: &LossRun, half: &LossRun, nearly: &LossRun) -> LossVerdict {
    let counts = |run: &LossRun| (run.retransmitted_segments, run.sent_segments);
    let change = |paced: &LossRun| change(counts(first), counts(paced));
    match (change(half), change(nearly)) {
        (Change::Stayed, Change::Stayed | Change::NotTold) => LossVerdict::RandomLoss,
        (Change::Vanished, Change::Vanished) if nearly.carried() => LossVerdict::ShallowBuffer,
        (Change::Vanished, Change::Stayed) => LossVerdict::RateLimit,
        (Change::Vanished, _) => LossVerdict::ShallowBufferOrRateLimit,
        // Losses that come back at half of the rate, and not above it, came and went for another reason.
        (Change::Stayed, Change::Vanished) | (Change::NotTold, _) => LossVerdict::NotTold,
    }
}

/// What became of the share that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Stayed,
    Vanished,
    NotTold,
}

/// What became of it from a run to another, each as the segments that were lost and those that were sent.
fn change(first: (u64, u64), other: (u64, u64)) -> Change {
    let (sent, sent_other) = (first.1 as f64, other.1 as f64);
    let all = first.0 as f64 + other.0 as f64;
    if first.0 == 0 || sent < 1.0 || sent_other < 1.0 {
        return Change::NotTold;
    }
    let expected = PARTING * sent_other / (sent + PARTING * sent_other);
    let scale = (MOST_COUNTED / all).min(1.0);
    let (lost, lost_other) = (first.0 as f64 * scale, other.0 as f64 * scale);
    // P(B <= k) and P(B >= k) of the binomial distribution by the beta function (Abramowitz and Stegun, 26.5.24).
    let at_most = regularised_beta(1.0 - expected, lost, lost_other + 1.0);
    let at_least = match other.0 {
        0 => 1.0,
        _ => regularised_beta(expected, lost_other, lost + 1.0),
    };
    match () {
        () if at_least < SIGNIFICANCE => Change::Stayed,
        () if at_most < SIGNIFICANCE => Change::Vanished,
        () => Change::NotTold,
    }
}

/// How long a run at this share of the rate has to be.
fn paced_time_ns(first: &LossRun, share: f64) -> u64 {
    let losses_per_s = first.retransmitted_segments as f64 / first.elapsed_s * share;
    let most_ns = MOST_NS.max(first.elapsed_s * 1e9);
    (LOSSES_WANTED / losses_per_s * 1e9).clamp(LEAST_NS, most_ns) as u64
}
