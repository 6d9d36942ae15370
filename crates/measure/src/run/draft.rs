//! What is known of a run while it goes on, and the document it becomes.

use super::{Environment, Iteration, Outcome, Run, Status};
use crate::dialect::{Dialect, DialectOptions};
use crate::plan::Plan;
use crate::report::{EndReport, HostFacts};
use crate::sample::{Role, Sample};
use crate::steady::steadiness;
use crate::summary::{Unmet, judge_dialect, machine_notes, summarize, unmet};

/// What is known of a run so far.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose test it is.
    pub dialect: Dialect,
    /// The end that writes the document.
    pub written_by: Role,
    /// Names the run at both ends.
    pub run_id: String,
    /// What was asked.
    pub plan: Plan,
    /// The same in the words of the dialect's original.
    pub options: Option<DialectOptions>,
    /// Where it is done. A machine that an end's report tells replaces the one here.
    pub environment: Environment,
    /// What both ends have counted, in any order.
    pub samples: Vec<Sample>,
    /// The client's report.
    pub client: Option<EndReport>,
    /// The server's report.
    pub server: Option<EndReport>,
    /// Iterations of the test before the one of samples and reports.
    pub earlier_iterations: Vec<Iteration>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Draft {
    /// A native run of this plan, of which nothing is known.
    pub fn new(run_id: String, plan: Plan) -> Self {
        Self {
            dialect: Dialect::Native,
            written_by: Role::Client,
            run_id,
            plan,
            options: None,
            environment: Environment::default(),
            samples: Vec::new(),
            client: None,
            server: None,
            earlier_iterations: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Begins another iteration of the test. What is known of the last one goes to the earlier iterations.
    pub fn begin_iteration(&mut self) {
        if self.client.is_none() && self.server.is_none() && self.samples.is_empty() {
            return;
        }
        let reports = self.client.take().into_iter().chain(self.server.take()).collect();
        let started_utc_ns = self.environment.started_utc_ns.take();
        let samples = std::mem::take(&mut self.samples);
        self.earlier_iterations.push(Iteration { started_utc_ns, samples, reports });
    }

    /// Drops an iteration that has no result: the one before it is the last.
    pub fn drop_iteration(&mut self) {
        let Some(last) = self.earlier_iterations.pop() else { return };
        self.environment.started_utc_ns = last.started_utc_ns;
        self.samples = last.samples;
        (self.client, self.server) = (None, None);
        for report in last.reports {
            match report.role {
                Role::Client => self.client = Some(report),
                Role::Server => self.server = Some(report),
            }
        }
    }

    /// Takes an end's report. Where it doesn't tell the machine, the machine is the environment's.
    pub fn record_report(&mut self, mut report: EndReport) {
        let machine = match report.role {
            Role::Client => Some(&self.environment.client),
            Role::Server => self.environment.server.as_ref(),
        };
        if let (true, Some(machine)) = (report.host.kernel.is_empty(), machine) {
            let ran_on_cpus = std::mem::take(&mut report.host.ran_on_cpus);
            report.host = HostFacts { ran_on_cpus, ..machine.clone() };
        }
        report.limit_flows(&self.plan.workload);
        match report.role {
            Role::Client => self.client = Some(report),
            Role::Server => self.server = Some(report),
        }
    }

    /// The document: the summary is computed, notes are collected, samples are put in order of time. Whether a test of
    /// linerate's own can be trusted is part of its outcome; another dialect's is judged here.
    pub fn into_run(mut self, outcome: Outcome, exit_code: u8, message: Option<String>) -> Run {
        let (outcome, message) = self.judged(outcome, message);
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let summary = summarize(&self.plan.workload, client, server);
        let mut notes = std::mem::take(&mut self.notes);
        for report in client.into_iter().chain(server) {
            let role = format!("{:?}", report.role).to_lowercase();
            notes.extend(report.notes.iter().map(|note| format!("{role}: {note}")));
        }
        let unmet = self.unmet(outcome);
        notes.extend(unmet.iter().map(Unmet::note));
        notes.extend(machine_notes(client, server));
        let told = |report: Option<&EndReport>| {
            report.map(|report| report.host.clone()).filter(|host| *host != HostFacts::default())
        };
        let (client_host, server_host) = (told(client), told(server));
        let mut environment = self.environment;
        environment.client = client_host.unwrap_or(environment.client);
        environment.server = server_host.or(environment.server);
        self.samples.sort_by_key(|sample| (sample.to_ns, sample.role));
        let steadiness = match self.dialect {
            Dialect::Native => steadiness(&self.plan.workload, &self.samples),
            _ => Vec::new(),
        };
        let rises = steadiness.iter().any(|one| one.warm_up_ns.is_none());
        if self.plan.local.finds_warm_up && rises {
            notes.push(
                "the rate rose for most of the run, so no warm-up was left out: measure for longer"
                    .to_owned(),
            );
        }
        Run {
            schema: Run::SCHEMA.to_owned(),
            run_id: self.run_id,
            dialect: self.dialect,
            written_by: self.written_by,
            plan: self.plan,
            options: self.options,
            environment,
            samples: self.samples,
            summary,
            reports: self.client.into_iter().chain(self.server).collect(),
            earlier_iterations: self.earlier_iterations,
            hunt: None,
            steadiness,
            status: Status { outcome, exit_code, message, unmet, notes },
        }
    }

    /// The outcome of another dialect's test, which is not to be trusted where its figures contradict each other.
    fn judged(&self, outcome: Outcome, message: Option<String>) -> (Outcome, Option<String>) {
        if self.dialect == Dialect::Native || outcome != Outcome::Complete {
            return (outcome, message);
        }
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let doubts = judge_dialect(self.dialect, &self.plan.workload, client, server);
        match doubts.is_empty() {
            true => (outcome, message),
            false => (Outcome::Untrustworthy, Some(doubts.join("; "))),
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
}
