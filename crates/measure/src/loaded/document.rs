//! Latency under load as one document, whatever happened.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::{Ended, Phase};
use super::workloads::{LoadedPlan, Part, PhaseName};
use crate::run::{Outcome, exit};
use crate::trust::{Reason, Trust};

/// Latency under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// The version of this document's format: `linerate.loaded/1`.
    pub schema: String,
    /// How latencies were probed and phases ended: `linerate-1`.
    pub algorithm: String,
    /// The server's host name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// A title for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Free `key=value` marks.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// What was asked.
    pub plan: LoadedPlan,
    /// What was measured, as far as it came.
    pub phases: Vec<Phase>,
    /// How it ended, and whether it can be trusted.
    pub status: LoadedStatus,
}

/// How a measurement of latency under load ended, and whether it can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedStatus {
    /// How it ended.
    pub outcome: Outcome,
    /// The worst verdict of all runs.
    pub verdict: Trust,
    /// The exit code of the command ([`exit`]).
    pub exit_code: u8,
    /// Why it is doubtful or invalid: what the runs say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<PhaseReason>,
    /// What went wrong; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A reason for doubt, and where it arose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReason {
    /// The phase.
    pub phase: PhaseName,
    /// The part of it; the first one, where several of its parts have the same reason.
    pub part: Part,
    /// The reason.
    pub reason: Reason,
}

impl LoadedStatus {
    /// Takes doubt for failure: a doubtful result has the exit code of an invalid one.
    pub fn be_strict(&mut self) {
        if self.verdict == Trust::Doubtful && self.exit_code == exit::VALID {
            self.exit_code = exit::UNTRUSTWORTHY;
        }
    }

    /// An error of this end kept a phase from being measured. The phases before it stay.
    pub fn fail(&mut self, exit_code: u8, message: String) {
        (self.outcome, self.verdict) = (Outcome::Failed, Trust::Invalid);
        (self.exit_code, self.message) = (exit_code, Some(message));
    }

    fn of(phases: &[Phase]) -> Self {
        let runs = || phases.iter().flat_map(|phase| &phase.runs).map(|one| &one.run.status);
        let failed = runs().find(|status| status.outcome == Outcome::Failed);
        let verdict = phases.iter().map(|phase| phase.verdict).max().unwrap_or(Trust::Invalid);
        let is_cut_off = phases.len() < PhaseName::ALL.len()
            || phases.iter().any(|phase| phase.ended == Ended::Interrupted);
        let (outcome, exit_code, message) = match failed {
            Some(status) => (Outcome::Failed, status.exit_code, status.message.clone()),
            None if is_cut_off => {
                let message = match phases.len() {
                    0 => "interrupted before anything was measured",
                    _ => "interrupted: the figures hold for the part that was done",
                };
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message.to_owned()))
            }
            None if verdict == Trust::Invalid => {
                let wrong = runs().find(|status| status.trust() == Trust::Invalid);
                let message = wrong.and_then(|status| status.message.clone());
                (Outcome::Untrustworthy, exit::UNTRUSTWORTHY, message)
            }
            None => (Outcome::Complete, exit::VALID, None),
        };
        Self { outcome, verdict, exit_code, reasons: reasons_of(phases), message }
    }
}

/// What a machine does in a phase happens to all its parts: it is told once, at its gravest.
fn reasons_of(phases: &[Phase]) -> Vec<PhaseReason> {
    let mut reasons: Vec<PhaseReason> = Vec::new();
    for phase in phases {
        for (part, reason) in phase.reasons() {
            let same = reasons.iter_mut().find(|told| {
                told.phase == phase.name
                    && (told.reason.code, told.reason.end) == (reason.code, reason.end)
            });
            match same {
                Some(told) if told.reason.severity < reason.severity => {
                    told.reason = reason.clone();
                }
                Some(_) => {}
                None => {
                    let (phase, reason) = (phase.name, reason.clone());
                    reasons.push(PhaseReason { phase, part, reason });
                }
            }
        }
    }
    reasons
}

impl Loaded {
    /// The name and version of the document's format.
    pub const SCHEMA: &'static str = "linerate.loaded/1";
    /// How latencies are probed and phases end, as of this release.
    pub const ALGORITHM: &'static str = "linerate-1";

    /// What these phases come to, against this server.
    pub fn of((host, port): (String, u16), plan: LoadedPlan, phases: Vec<Phase>) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            algorithm: Self::ALGORITHM.to_owned(),
            host,
            port,
            title: None,
            tags: BTreeMap::new(),
            plan,
            status: LoadedStatus::of(&phases),
            phases,
        }
    }
}
