//! Records as they happen, a line of JSON each (see [`linerate_measure::record`]).

use linerate_engine::event::Event;
use linerate_measure::record::Record;
use linerate_measure::repeats::Repeats;
use linerate_measure::{Outcome, Run};

use super::Printer;

const VERSION: u32 = Record::VERSION;

/// Prints a line for each event and each run.
#[derive(Default)]
pub struct NdjsonPrinter {
    /// The run that samples belong to.
    run_id: String,
}

impl Printer for NdjsonPrinter {
    fn render_event(&mut self, event: &Event) -> String {
        if let Event::Started { run_id, .. } = event {
            self.run_id.clone_from(run_id);
        }
        record_of(event.clone(), &self.run_id).render()
    }

    fn render_run(&mut self, run: &Run, dropped_records: u64) -> String {
        let run = Box::new(run.clone());
        let record = match run.status.outcome {
            Outcome::Failed => Record::Error {
                version: VERSION,
                exit_code: run.status.exit_code,
                message: run.status.message.clone().unwrap_or_default(),
                run: Some(run),
            },
            _ => Record::Finished {
                version: VERSION,
                run_id: run.run_id.clone(),
                dropped_records,
                run,
            },
        };
        record.render()
    }

    fn render_repeats(&mut self, repeats: &Repeats) -> String {
        Record::Repeated { version: VERSION, repeats: Box::new(repeats.clone()) }.render()
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
}

/// The record of a failure that came before there was a run.
pub(crate) fn render_error(exit_code: u8, message: &str) -> String {
    let message = message.to_owned();
    Record::Error { version: VERSION, exit_code, message, run: None }.render()
}

/// The record of what happened, to the run that the event itself doesn't name.
fn record_of(event: Event, run_id: &str) -> Record {
    let version = VERSION;
    match event {
        Event::Listening { address, fingerprint } => {
            Record::Listening { version, address, fingerprint }
        }
        Event::Queued { place } => Record::Queued { version, place },
        Event::Armed { run_id } => Record::Armed { version, run_id },
        Event::Started { run_id, plan, utc_ns } => {
            Record::Started { version, run_id, utc_ns, plan }
        }
        Event::Sample(sample) => Record::Sample { version, run_id: run_id.to_owned(), sample },
        Event::TestStarted { run_id, utc_ns, client, workload } => {
            Record::TestStarted { version, run_id, utc_ns, client, workload }
        }
        Event::TestEnded { run_id, utc_ns, how, figures } => {
            Record::TestEnded { version, run_id, utc_ns, how, figures }
        }
        Event::Refused { client, why } => Record::Refused { version, client, why },
        Event::Note(text) => Record::Note { version, text },
    }
}
