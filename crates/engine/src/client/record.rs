//! What is known of a run so far, and the document it becomes.

use linerate_measure::Plan;
use linerate_measure::report::{EndReport, HostFacts};
use linerate_measure::run::{ClockOffset, Environment, Outcome, Run, Status, exit};
use linerate_measure::sample::Sample;
use linerate_measure::summary::{
    Unmet, judge, judge_server_times, machine_notes, summarize, unmet,
};

use crate::control::random;
use crate::error::Error;
use crate::event::{Cancel, Sink};
use crate::probe::host_facts;

/// What is known of a run so far.
pub(super) struct Record {
    plan: Plan,
    pub(super) run_id: String,
    pub(super) server_host: Option<HostFacts>,
    pub(super) started_utc_ns: Option<i64>,
    pub(super) clock_offset: Option<ClockOffset>,
    pub(super) control_rtt_ns: Option<u64>,
    pub(super) samples: Vec<Sample>,
    pub(super) client: Option<EndReport>,
    pub(super) server: Option<EndReport>,
    pub(super) notes: Vec<String>,
    /// From the load's opening until the server's result had come.
    pub(super) load_ns: Option<u64>,
    host: HostFacts,
}

impl Record {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            run_id: local_run_id(),
            server_host: None,
            started_utc_ns: None,
            clock_offset: None,
            control_rtt_ns: None,
            samples: Vec::new(),
            client: None,
            server: None,
            notes: Vec::new(),
            load_ns: None,
            host: host_facts(),
        }
    }

    /// The document. `outcome` says whether the session came to its end.
    pub(super) fn into_run(
        mut self,
        outcome: Result<(), Error>,
        sink: &Sink,
        cancel: &Cancel,
    ) -> Run {
        let summary = summarize(&self.plan.workload, self.client.as_ref(), self.server.as_ref());
        let (outcome, exit_code, message) = self.conclude(outcome, cancel);
        let mut notes = std::mem::take(&mut self.notes);
        for report in self.client.iter().chain(&self.server) {
            let role = format!("{:?}", report.role).to_lowercase();
            notes.extend(report.notes.iter().map(|note| format!("{role}: {note}")));
        }
        let unmet = self.unmet(outcome);
        notes.extend(unmet.iter().map(Unmet::note));
        notes.extend(machine_notes(self.client.as_ref(), self.server.as_ref()));
        if sink.dropped() > 0 {
            notes
                .push(format!("{} events were not shown: the reader was too slow", sink.dropped()));
        }
        let client = self.client.as_ref().map_or(self.host, |report| report.host.clone());
        let server = self.server.as_ref().map(|report| report.host.clone()).or(self.server_host);
        self.samples.sort_by_key(|sample| (sample.to_ns, sample.role));
        Run {
            schema: Run::SCHEMA.to_owned(),
            run_id: self.run_id,
            plan: self.plan,
            environment: Environment {
                client,
                server,
                started_utc_ns: self.started_utc_ns,
                clock_offset: self.clock_offset,
                control_rtt_ns: self.control_rtt_ns,
            },
            samples: self.samples,
            summary,
            reports: self.client.into_iter().chain(self.server).collect(),
            status: Status { outcome, exit_code, message, unmet, notes },
        }
    }

    /// What was asked for and not got; nothing where nothing was measured.
    fn unmet(&self, outcome: Outcome) -> Vec<Unmet> {
        if outcome == Outcome::Failed {
            return Vec::new();
        }
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let interrupted = outcome == Outcome::Interrupted;
        unmet(&self.plan.workload, client, server, &self.samples, interrupted)
    }

    fn conclude(
        &self,
        outcome: Result<(), Error>,
        cancel: &Cancel,
    ) -> (Outcome, u8, Option<String>) {
        match outcome {
            Err(Error::Interrupted) => {
                let message = "before the load began: nothing was measured".to_owned();
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message))
            }
            Err(error @ (Error::Peer(_) | Error::Io { .. })) if cancel.requested() => {
                let message = format!("what the server had to tell didn't come: {error}");
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message))
            }
            Err(error) => (Outcome::Failed, error.exit_code(), Some(error.to_string())),
            Ok(()) if cancel.requested() => {
                let measured = self.client.as_ref().is_some_and(|report| report.elapsed_ns > 0);
                let message = match self.plan.workload.omit_ns {
                    1.. if !measured => "in the warm-up: nothing was measured",
                    _ => "the figures hold for the part that was done",
                };
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message.to_owned()))
            }
            Ok(()) => {
                let workload = &self.plan.workload;
                let mut doubts = judge(workload, self.client.as_ref(), self.server.as_ref());
                if let (Some(server), Some(load_ns)) = (&self.server, self.load_ns) {
                    doubts.extend(judge_server_times(workload, server, load_ns));
                }
                if doubts.is_empty() {
                    (Outcome::Complete, exit::VALID, None)
                } else {
                    (Outcome::Untrustworthy, exit::UNTRUSTWORTHY, Some(doubts.join("; ")))
                }
            }
        }
    }
}

/// Names a run until the server has given it a name.
fn local_run_id() -> String {
    let bytes: [u8; 16] = random().unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
