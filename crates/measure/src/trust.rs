//! Whether a result can be believed: a verdict, and the reasons for it.
//!
//! A reason has a code for programs and a sentence for people. Each names the end, the time, the figure and the limit
//! that the figure passed, and says what to do about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Role;

mod gate;
mod series;

pub(crate) use gate::OWN_PROCESSORS;
pub use gate::{Judged, judge_run};

/// How far a result can be trusted, the best first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// No reason speaks against it.
    #[default]
    Valid,
    /// With the reasons that stand beside.
    Doubtful,
    /// Not at all: there is no result, or it is wrong.
    Invalid,
}

impl Trust {
    /// The verdict that these reasons come to.
    pub fn of(reasons: &[Reason]) -> Self {
        let severities = reasons.iter().map(|reason| reason.severity);
        severities.max().map_or(Self::Valid, |severity| match severity {
            Severity::Doubtful => Self::Doubtful,
            Severity::Invalid => Self::Invalid,
        })
    }

    /// The word that texts end with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Doubtful => "DOUBTFUL",
            Self::Invalid => "INVALID",
        }
    }

    /// The verdict in a line: the word, and the sentences of the gravest reasons first.
    pub fn line(self, reasons: &[Reason]) -> String {
        let mut ordered: Vec<&Reason> = reasons.iter().collect();
        ordered.sort_by_key(|reason| std::cmp::Reverse(reason.severity));
        let texts: Vec<&str> = ordered.iter().map(|reason| reason.text.as_str()).collect();
        match texts.is_empty() {
            true => self.word().to_owned(),
            false => format!("{}: {}", self.word(), texts.join("; ")),
        }
    }
}

/// How much a reason weighs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The figures may be off.
    Doubtful,
    /// The figures are wrong, or don't mean what was asked.
    Invalid,
}

/// What a reason is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The figures of the two ends contradict each other or the plan, or received bytes were wrong.
    Contradiction,
    /// The thread that conducts an end's load woke up late.
    StoodStill,
    /// A receiver got nothing for a while, and something before and after.
    Gap,
    /// More time was measured than was asked for.
    Stretched,
    /// Less time was measured than was asked for.
    Shortened,
    /// Flows ended far apart, and no time is known that all of them shared.
    UnevenEnds,
    /// The sender didn't keep to the rate, and the path was not the reason.
    RateMissed,
    /// Requests or connections that were due were never begun.
    ScheduleMissed,
    /// Requests were sent long after they were due.
    ScheduleSlipped,
    /// The machines at the ends dropped datagrams themselves.
    OwnDrops,
    /// A thread of the load waited for a processor that other programs used.
    CpuContended,
    /// The control group's CPU quota stopped an end.
    CpuQuota,
    /// The hypervisor gave an end's processors to others.
    CpuSteal,
    /// Waits for a processor make up a good part of the latency.
    WaitInLatency,
    /// An end slept between packets, though the test asked for busy polling.
    BusyPollRefused,
    /// A kernel granted other socket buffers than the test asked for.
    BufferSize,
    /// The server served other tests at the same time.
    OtherTests,
    /// The rate rose for most of the run, or became another in it for good.
    NotSteady,
    /// The clock that gives samples their time of day was set.
    Clock,
    /// There were fewer runs or intervals than what was asked for takes.
    Few,
    /// Of several runs: one could not be measured.
    RunFailed,
    /// Of several runs: the precision that was asked for was not reached.
    NotConverged,
    /// Of several runs: some are doubtful or invalid themselves.
    DoubtfulRuns,
}

/// The unit of a reason's value and limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonUnit {
    /// Seconds.
    S,
    /// A share, from 0 to 1.
    Ratio,
    /// Bits per second.
    Bps,
    /// Bytes.
    Bytes,
    /// Times as much.
    Times,
    /// A number of things.
    Count,
}

/// Why a result is doubtful or invalid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What it is about.
    pub code: ReasonCode,
    /// How much it weighs.
    pub severity: Severity,
    /// The end it happened at; absent: both, or neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Role>,
    /// When, since that end's load began, on that end's clock; absent: all the time, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// What was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The limit that it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// The unit of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ReasonUnit>,
    /// The reason in a sentence with its figures.
    pub text: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl Reason {
    /// A reason for doubt with its sentence and nothing else.
    pub(crate) fn doubt(code: ReasonCode, text: String) -> Self {
        Self { code, severity: Severity::Doubtful, ..Self::contradiction(text) }
    }

    /// There were so many, and fewer than `least`.
    pub(crate) fn few(there: usize, least: usize, text: String, way_out: &str) -> Self {
        Self {
            value: Some(there as f64),
            limit: Some(least as f64),
            unit: Some(ReasonUnit::Count),
            way_out: Some(way_out.to_owned()),
            ..Self::doubt(ReasonCode::Few, text)
        }
    }

    /// Figures that contradict each other: the sentence has them.
    pub fn contradiction(text: String) -> Self {
        Self {
            code: ReasonCode::Contradiction,
            severity: Severity::Invalid,
            end: None,
            at_ns: None,
            value: None,
            limit: None,
            unit: None,
            text,
            way_out: None,
        }
    }
}

#[cfg(test)]
mod tests;
