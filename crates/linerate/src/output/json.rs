//! One JSON document; where several sizes were asked, an array of them.

use linerate_engine::event::Event;
use linerate_measure::Run;

use super::Printer;

/// Prints the run's document ([`linerate_measure::schema::run`]). Where more than one run was
/// asked it is an array of documents, even if only the first was made.
pub struct JsonPrinter {
    array: bool,
    printed: usize,
}

impl JsonPrinter {
    /// A printer of so many runs.
    pub fn new(runs: usize) -> Self {
        Self { array: runs > 1, printed: 0 }
    }
}

impl Printer for JsonPrinter {
    fn render_event(&mut self, _event: &Event) -> String {
        String::new()
    }

    fn render_run(&mut self, run: &Run, _dropped_events: u64) -> String {
        let document = render_json(run);
        let before = match (self.array, self.printed) {
            (false, _) => "",
            (true, 0) => "[\n",
            (true, _) => ",\n",
        };
        self.printed += 1;
        let after = if self.array { "" } else { "\n" };
        format!("{before}{document}{after}")
    }

    fn render_end(&mut self) -> String {
        match (self.array, self.printed) {
            (false, _) => String::new(),
            (true, 0) => "[]\n".to_owned(),
            (true, _) => "\n]\n".to_owned(),
        }
    }
}

/// A value as indented JSON. Every type of this workspace that is printed can be written as JSON;
/// were one not, an object with the reason stands in its place.
pub(crate) fn render_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
}
