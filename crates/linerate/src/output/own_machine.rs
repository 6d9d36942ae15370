//! The table of `self`: a row for each test, printed as it ends.

use linerate_measure::{Outcome, Run};

use super::Style;
use super::table::render_row;
use super::text::{
    FIGURE_HEADS, render_cpu_per_unit, render_loss, render_main_figure, render_quantile,
};

/// A table of tests against this machine itself.
pub struct OwnMachineTable {
    style: Style,
    /// The machine, once a run has told it.
    machine: Option<String>,
    trouble: Vec<String>,
}

/// Widths of the columns: rows are printed before all are known.
const WIDTHS: [usize; 6] = [10, 12, 8, 8, 8, 14];

impl OwnMachineTable {
    /// An empty table.
    pub fn new(style: Style) -> Self {
        Self { style, machine: None, trouble: Vec::new() }
    }

    /// The headings.
    pub fn render_head(&self) -> String {
        let head: Vec<String> =
            std::iter::once("test").chain(FIGURE_HEADS).map(str::to_owned).collect();
        self.style.bold(&render_row(&head, &WIDTHS)) + "\n"
    }

    /// A test's row.
    pub fn render_row(&mut self, name: &str, run: &Run) -> String {
        let summary = &run.summary;
        let host = &run.environment.client;
        self.machine = Some(format!(
            "linerate {}, {}, {} processors ({})",
            host.version,
            host.kernel,
            host.cpus_online,
            host.cpu_model.as_deref().unwrap_or(&host.architecture)
        ));
        if run.status.outcome != Outcome::Complete {
            let message = run.status.message.as_deref().unwrap_or("not valid");
            self.trouble.push(format!("{name}: {message}"));
        }
        let row = [
            name.to_owned(),
            render_main_figure(summary),
            render_quantile(summary, |latency| latency.p50),
            render_quantile(summary, |latency| latency.p99),
            render_loss(summary),
            render_cpu_per_unit(summary),
        ];
        render_row(&row, &WIDTHS) + "\n"
    }

    /// What stands below: what wasn't valid, and the machine unless `quiet`.
    pub fn render_end(&self, quiet: bool) -> String {
        let mut text = String::new();
        if let Some(machine) = self.machine.as_ref().filter(|_| !quiet) {
            text.push_str(&format!("\n{machine}\n"));
        }
        for trouble in &self.trouble {
            text.push_str(&format!("{}\n", self.style.warning(trouble)));
        }
        text
    }
}
