//! What is known of a run while it goes on, and the document it becomes.

use std::collections::BTreeMap;

use super::{Environment, Iteration, Outcome, Run, Status, exit};
use crate::dialect::{Dialect, DialectOptions};
use crate::limits::{Measured, find_limits};
use crate::plan::{Direction, Plan};
use crate::quantile::latency_intervals;
use crate::report::{EndReport, HostFacts};
use crate::sample::{Role, Sample, fit_machine};
use crate::steady::{LEAST_INTERVALS, Steadiness, measured_intervals, steadiness, steady_fairness};
use crate::summary::{Summary, Unmet, judge_dialect, machine_notes, summarize, unmet};
use crate::trust::{Judged, Reason, Severity, Trust, judge_run};

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
    /// Why the figures of a test of linerate's own contradict each other.
    pub contradictions: Vec<String>,
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
            contradictions: Vec::new(),
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
        // An end reads its counters when it has heard the other's last word, later than its flows ended.
        fit_machine(&mut report.machine_cpu, report.elapsed_ns);
        match report.role {
            Role::Client => self.client = Some(report),
            Role::Server => self.server = Some(report),
        }
    }

    /// The document: the summary is computed, the run is judged, notes are collected, samples are put in order of time.
    /// A complete run that turns out to be invalid is untrustworthy. The exit code of a test of linerate's own says so;
    /// another dialect's stays its original's.
    pub fn into_run(mut self, outcome: Outcome, exit_code: u8, message: Option<String>) -> Run {
        let mut summary =
            summarize(&self.plan.workload, self.client.as_ref(), self.server.as_ref());
        if matches!(outcome, Outcome::Complete | Outcome::Interrupted) {
            self.add_limits(&mut summary);
        }
        let latency_hdr = self.client.as_ref().and_then(|report| report.latency_hdr.as_deref());
        summary.latency_intervals = latency_intervals(latency_hdr, &self.samples);
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let unmet = self.unmet(outcome);
        let steadiness = self.steadiness();
        if self.dialect == Dialect::Native && summary.fairness.is_some() {
            let steady = steady_fairness(&self.plan.workload, &self.samples, &steadiness);
            summary.fairness = steady.or(summary.fairness);
        }
        let reasons = self.reasons(outcome, &summary, &unmet, &steadiness);
        let mut notes = std::mem::take(&mut self.notes);
        for report in client.into_iter().chain(server) {
            let role = report.role.name();
            notes.extend(report.notes.iter().map(|note| format!("{role}: {note}")));
        }
        notes.extend(unmet.iter().map(Unmet::note));
        notes.extend(machine_notes(client, server));
        notes.extend(self.rises(&steadiness));
        notes.extend(self.is_half_steady(&steadiness));
        let status = self.status((outcome, exit_code, message), reasons, unmet, notes);
        let told = |report: Option<&EndReport>| {
            report.map(|report| report.host.clone()).filter(|host| *host != HostFacts::default())
        };
        let (client_host, server_host) = (told(client), told(server));
        let mut environment = self.environment;
        environment.client = client_host.unwrap_or(environment.client);
        environment.server = server_host.or(environment.server);
        self.samples.sort_by_key(|sample| (sample.to_ns, sample.role));
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
            status,
        }
    }

    /// Finds what limited the run, and each interval.
    fn add_limits(&mut self, summary: &mut Summary) {
        let Some(client) = &self.client else { return };
        let (server, samples) = (self.server.as_ref(), &self.samples[..]);
        let workload = &self.plan.workload;
        let control_rtt_ns = self.environment.control_rtt_ns;
        let found =
            find_limits(Measured { workload, client, server, samples, summary, control_rtt_ns });
        summary.limits = found.limits;
        let mut places: BTreeMap<(Role, u32), usize> = BTreeMap::new();
        for (place, sample) in self.samples.iter().enumerate() {
            places.entry((sample.role, sample.index)).or_insert(place);
        }
        for (role, index, cause) in found.intervals {
            let place = places.get(&(role, index));
            if let Some(sample) = place.and_then(|place| self.samples.get_mut(*place)) {
                sample.limit = Some(cause);
            }
        }
    }

    /// How steady each direction's rate was. Intervals of other dialects are not all of one kind.
    fn steadiness(&self) -> Vec<Steadiness> {
        match self.dialect {
            Dialect::Native => steadiness(&self.plan.workload, &self.samples),
            _ => Vec::new(),
        }
    }

    /// The note on a warm-up that was looked for and has no end.
    fn rises(&self, steadiness: &[Steadiness]) -> Option<String> {
        let rises = steadiness.iter().any(|one| one.warm_up_ns.is_none());
        (self.plan.local.finds_warm_up && rises).then(|| {
            "the rate rose for most of the run, so no warm-up was left out: measure for longer"
                .to_owned()
        })
    }

    /// The note on a warm-up that could be looked for in one direction of two.
    fn is_half_steady(&self, steadiness: &[Steadiness]) -> Option<String> {
        let directions = self.plan.workload.directions().len();
        let half = !steadiness.is_empty() && steadiness.len() < directions;
        (self.plan.local.finds_warm_up && half).then(|| {
            "only one direction has intervals enough to find a warm-up, so the figure of both \
             directions together leaves none out: measure for longer"
                .to_owned()
        })
    }

    /// That a warm-up was to be found, in fewer intervals than that takes. A run that asked for none needs none.
    fn too_few_intervals(&self, steadiness: &[Steadiness]) -> Option<Reason> {
        if !self.plan.local.finds_warm_up
            || !steadiness.is_empty()
            || self.dialect != Dialect::Native
        {
            return None;
        }
        let role = match self.plan.workload.direction() {
            Some(Direction::Up | Direction::Both) => Role::Server,
            Some(Direction::Down) | None => Role::Client,
        };
        let measured = measured_intervals(&self.samples, role).len();
        (measured < LEAST_INTERVALS).then(|| {
            let text = format!(
                "no warm-up could be looked for in {measured} intervals: it takes {LEAST_INTERVALS}"
            );
            Reason::few(
                measured,
                LEAST_INTERVALS,
                text,
                "measure for longer, or in shorter intervals",
            )
        })
    }

    /// Why the figures are doubtful or invalid, as far as the run came.
    fn reasons(
        &self,
        outcome: Outcome,
        summary: &Summary,
        unmet: &[Unmet],
        steadiness: &[Steadiness],
    ) -> Vec<Reason> {
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let workload = &self.plan.workload;
        let contradictions = match (outcome, self.dialect) {
            (Outcome::Complete, Dialect::Native) => self.contradictions.clone(),
            (Outcome::Complete, dialect) => judge_dialect(dialect, workload, client, server),
            _ => Vec::new(),
        };
        let mut reasons: Vec<Reason> =
            contradictions.into_iter().map(Reason::contradiction).collect();
        if matches!(outcome, Outcome::Complete | Outcome::Interrupted) {
            let samples = &self.samples[..];
            let has_bursts = self.options.as_ref().is_some_and(|options| options.has_bursts);
            reasons.extend(judge_run(Judged {
                workload,
                client,
                server,
                samples,
                is_native: self.dialect == Dialect::Native,
                has_bursts,
                summary,
                unmet,
                steadiness,
            }));
            reasons.extend(self.too_few_intervals(steadiness));
        }
        reasons
    }

    /// How the run ended, where it came so far.
    fn status(
        &self,
        (outcome, exit_code, message): (Outcome, u8, Option<String>),
        reasons: Vec<Reason>,
        unmet: Vec<Unmet>,
        notes: Vec<String>,
    ) -> Status {
        let verdict = match outcome {
            Outcome::Failed | Outcome::Untrustworthy => Trust::Invalid,
            Outcome::Complete | Outcome::Interrupted => Trust::of(&reasons),
        };
        let is_wrong = outcome == Outcome::Complete && verdict == Trust::Invalid;
        let (outcome, exit_code, message) = match is_wrong {
            false => (outcome, exit_code, message),
            true => {
                let native = self.dialect == Dialect::Native;
                let exit_code = if native { exit::UNTRUSTWORTHY } else { exit_code };
                let why = reasons.iter().filter(|reason| reason.severity == Severity::Invalid);
                let why: Vec<&str> = why.map(|reason| reason.text.as_str()).collect();
                (Outcome::Untrustworthy, exit_code, Some(why.join("; ")))
            }
        };
        Status { outcome, exit_code, verdict: Some(verdict), reasons, message, unmet, notes }
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
