//! What is known of a run so far, and the document it becomes.

use linerate_measure::Plan;
use linerate_measure::one_way::OneWay;
use linerate_measure::run::{Draft, Outcome, Run, exit};
use linerate_measure::summary::{judge, judge_server_times};

use crate::control::random;
use crate::error::Error;
use crate::event::{Cancel, Sink};
use crate::probe::host_facts;

/// What is known of a run so far.
pub(super) struct Record {
    pub(super) draft: Draft,
    /// From the load's opening until the server's result had come.
    pub(super) load_ns: Option<u64>,
    /// The delays of the path's two directions.
    pub(super) one_way: Vec<OneWay>,
}

impl Record {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut draft = Draft::new(random_run_id(), plan.clone());
        draft.environment.client = host_facts();
        Self { draft, load_ns: None, one_way: Vec::new() }
    }

    /// The document. `outcome` says whether the session came to its end.
    pub(super) fn into_run(
        mut self,
        outcome: Result<(), Error>,
        sink: &Sink,
        cancel: &Cancel,
    ) -> Run {
        let (outcome, exit_code, message) = self.conclude(outcome, cancel);
        self.draft.contradictions = self.contradictions();
        let mut run = self.draft.into_run(outcome, exit_code, message);
        run.summary.one_way = self.one_way;
        let dropped = sink.dropped();
        if dropped > 0 {
            let note = format!("{dropped} events were not shown: the reader was too slow");
            run.status.notes.push(note);
        }
        run
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
                let message = format!("the server's report didn't arrive: {error}");
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message))
            }
            Err(error) => (Outcome::Failed, error.exit_code(), Some(error.to_string())),
            Ok(()) if cancel.requested() => {
                let measured =
                    self.draft.client.as_ref().is_some_and(|report| report.elapsed_ns > 0);
                let message = match self.draft.plan.workload.omit_ns {
                    1.. if !measured => "in the warm-up: nothing was measured",
                    _ => "the figures hold for the part that was done",
                };
                (Outcome::Interrupted, exit::INTERRUPTED, Some(message.to_owned()))
            }
            Ok(()) => (Outcome::Complete, exit::VALID, None),
        }
    }

    /// What both ends counted that can't be so.
    fn contradictions(&self) -> Vec<String> {
        let workload = &self.draft.plan.workload;
        let (client, server) = (self.draft.client.as_ref(), self.draft.server.as_ref());
        let mut doubts = judge(workload, client, server);
        if let (Some(server), Some(load_ns)) = (server, self.load_ns) {
            doubts.extend(judge_server_times(workload, server, load_ns));
        }
        doubts
    }
}

/// A name for a run that no other end has named.
pub fn random_run_id() -> String {
    let bytes: [u8; 16] = random().unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
