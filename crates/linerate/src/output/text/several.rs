//! Several runs: a table with a row each, and below it what has no column.

use linerate_measure::trust::Trust;
use linerate_measure::{Kind, Outcome, Plan, Run};

use super::figures::{
    FIGURE_HEADS, render_cpu_per_unit, render_left_out, render_loss, render_main_figure,
    render_quantile,
};
use super::{render_title, render_transport};
use crate::host::render_host_port;
use crate::output::comparison::wrap;
use crate::output::{Style, Table};

/// The runs so far.
#[derive(Default)]
pub(super) struct SeveralRuns {
    runs: Vec<(Plan, Vec<String>, String)>,
    /// Whether all are runs of one plan, which their numbers tell apart.
    of_one_plan: bool,
}

impl SeveralRuns {
    /// Runs of one plan.
    pub(super) fn of_one_plan() -> Self {
        Self { of_one_plan: true, ..Self::default() }
    }

    /// Adds a run; `verdict` says what it isn't.
    pub(super) fn push(&mut self, run: &Run, verdict: &str) {
        let remarks = render_beside_table(run) + verdict;
        self.runs.push((run.plan.clone(), cells_of(run), remarks));
    }

    /// The table and the remarks. A row is named by its size, where the plans differ in nothing else, or by its number
    /// with its title or what it does. `with_title` begins with what all of them do.
    pub(super) fn render(self, style: Style, with_title: bool) -> String {
        let Some((first, ..)) = self.runs.first() else { return String::new() };
        let alike = self.runs.iter().all(|(plan, ..)| without_size(plan) == without_size(first));
        let title = match with_title && alike {
            true => format!("{}\n\n", render_title(first)),
            false => String::new(),
        };
        let key = match (self.of_one_plan, alike) {
            (true, _) => "run",
            (false, true) => "size",
            (false, false) => "plan",
        };
        let head: Vec<&str> = std::iter::once(key).chain(FIGURE_HEADS).chain(["outcome"]).collect();
        let mut table = Table::with_head(&head);
        let mut remarks = String::new();
        let names: Vec<String> = match alike {
            _ if self.of_one_plan => (1..=self.runs.len()).map(|n| n.to_string()).collect(),
            true => self.runs.iter().map(|(plan, ..)| render_size(plan)).collect(),
            false => (1..)
                .zip(&self.runs)
                .map(|(n, (plan, ..))| format!("{n}. {}", self.name_of(plan)))
                .collect(),
        };
        for ((_, cells, of_run), name) in self.runs.into_iter().zip(names) {
            for remark in of_run.lines() {
                remarks.push_str(&wrap(&format!("{name}: {remark}")));
            }
            table.push(std::iter::once(name).chain(cells).collect());
        }
        format!("{title}{}{remarks}", table.render(style))
    }

    /// What tells a plan from the others: its title, what it does to which server, or both.
    fn name_of(&self, plan: &Plan) -> String {
        let Some(title) = &plan.title else { return describe(plan) };
        let namesakes =
            || self.runs.iter().map(|(other, ..)| other).filter(|o| o.title == plan.title);
        let server = |plan: &Plan| render_host_port(&plan.host, plan.port);
        match namesakes().filter(|other| server(other) == server(plan)).count() {
            _ if namesakes().count() == 1 => title.clone(),
            1 => format!("{title}, {}", server(plan)),
            _ => format!("{title}, {}", describe(plan)),
        }
    }
}

/// What a plan does to which server.
fn describe(plan: &Plan) -> String {
    let what = match plan.workload.kind {
        Kind::Stream { media: Some(_), .. } => "media",
        Kind::Stream { .. } => "stream",
        Kind::Rr { .. } => "rr",
        Kind::Connect { .. } => "connect",
    };
    let server = render_host_port(&plan.host, plan.port);
    format!("{} {what} {server} {}", render_transport(&plan.workload), render_size(plan))
}

fn without_size(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    match &mut plan.workload.kind {
        Kind::Stream { send_bytes, .. } => *send_bytes = 0,
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => {
            (*request_bytes, *response_bytes) = (0, 0);
        }
    }
    plan
}

fn render_size(plan: &Plan) -> String {
    match plan.workload.kind {
        Kind::Stream { send_bytes, .. } => send_bytes.to_string(),
        Kind::Connect { transfer: Some(transfer), .. } => super::render_transfer(&transfer),
        Kind::Rr { request_bytes, response_bytes, .. }
        | Kind::Connect { request_bytes, response_bytes, .. } => {
            if request_bytes == response_bytes {
                request_bytes.to_string()
            } else {
                format!("{request_bytes}/{response_bytes}")
            }
        }
    }
}

/// What a row has no column for, a line each: what was never sent, what failed, the notes.
fn render_beside_table(run: &Run) -> String {
    let left_out = render_left_out(&run.summary);
    let notes = run.status.notes.iter().map(|note| format!("note: {note}\n"));
    left_out.into_iter().chain(notes).collect()
}

fn is_doubtful(run: &Run) -> bool {
    run.status.verdict == Some(Trust::Doubtful)
}

fn cells_of(run: &Run) -> Vec<String> {
    let summary = &run.summary;
    let outcome = match run.status.outcome {
        Outcome::Complete if is_doubtful(run) => "doubtful",
        Outcome::Complete => "valid",
        Outcome::Interrupted => "interrupted",
        Outcome::Untrustworthy => "not to be trusted",
        Outcome::Failed => "failed",
    };
    vec![
        render_main_figure(summary),
        render_quantile(summary, |latency| latency.p50),
        render_quantile(summary, |latency| latency.p99),
        render_loss(summary),
        render_cpu_per_unit(summary),
        outcome.to_owned(),
    ]
}
