//! One JSON document; where several sizes were asked, an array of them; of several runs of one plan, one that holds
//! them.

use linerate_engine::event::Event;
use linerate_measure::Run;
use linerate_measure::repeats::Repeats;

use super::{Expected, Printer};

/// Prints the run's document ([`linerate_measure::schema::run`]). Where more than one run was
/// asked it is an array of documents, even if only the first was made. Runs of one plan stand in the
/// document of what they come to ([`linerate_measure::schema::repeats`]).
pub struct JsonPrinter {
    form: Form,
    printed: usize,
}

/// What holds the runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Alone,
    Array,
    Repeats,
}

impl JsonPrinter {
    /// A printer of so many runs.
    pub fn new(runs: usize) -> Self {
        Self::for_runs(Expected::Runs(runs))
    }

    /// A printer of these runs.
    pub fn for_runs(expected: Expected) -> Self {
        let form = match expected {
            Expected::Runs(0 | 1) => Form::Alone,
            Expected::Runs(_) => Form::Array,
            Expected::Repeats => Form::Repeats,
        };
        Self { form, printed: 0 }
    }
}

impl Printer for JsonPrinter {
    fn render_event(&mut self, _event: &Event) -> String {
        String::new()
    }

    fn render_run(&mut self, run: &Run, _dropped_events: u64) -> String {
        let document = render_json(run);
        let before = match (self.form, self.printed) {
            (Form::Alone, _) => "",
            (Form::Array, 0) => "[\n",
            (Form::Repeats, 0) => DOCUMENTS_BEGIN,
            (Form::Array | Form::Repeats, _) => ",\n",
        };
        self.printed += 1;
        let after = if self.form == Form::Alone { "\n" } else { "" };
        format!("{before}{document}{after}")
    }

    fn render_repeats(&mut self, repeats: &Repeats) -> String {
        let begin = if self.printed == 0 { DOCUMENTS_BEGIN } else { "" };
        let rest = render_json(repeats);
        // The runs are printed as they end, so the rest of the object stands behind them.
        format!("{begin}\n],{}\n", rest.strip_prefix('{').unwrap_or(&rest))
    }

    fn render_end(&mut self) -> String {
        match (self.form, self.printed) {
            (Form::Alone | Form::Repeats, _) => String::new(),
            (Form::Array, 0) => "[]\n".to_owned(),
            (Form::Array, _) => "\n]\n".to_owned(),
        }
    }
}

/// What stands before the first run of several of one plan.
const DOCUMENTS_BEGIN: &str = "{\n\"documents\": [\n";

/// A value as indented JSON. Every type of this workspace that is printed can be written as JSON;
/// were one not, an object with the reason stands in its place.
pub(crate) fn render_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
}
