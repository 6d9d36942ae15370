//! Records as they happen, a line of JSON each.
//!
//! Every record has `record`, its kind, and `version`, 1. Kinds of a measurement: `started`,
//! `sample`, `finished` (with the whole run), `error` (with the run that failed), and between them
//! `queued` and `note`. Kinds of a server: `listening`, first of all, then `test_started`,
//! `test_ended`, `refused`, `note`, `error`. Readers must skip kinds and fields they don't know.

use std::net::SocketAddr;

use linerate_engine::event::{Event, TestFigures};
use linerate_measure::{Outcome, Plan, Run, Sample, Workload};
use serde::Serialize;

use super::Printer;

/// Prints a line for each event and each run.
#[derive(Default)]
pub struct NdjsonPrinter {
    /// The run that samples belong to.
    run_id: String,
}

/// The version of the records' format.
const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'a> {
    Listening {
        version: u32,
        address: SocketAddr,
        fingerprint: &'a str,
    },
    Queued {
        version: u32,
        place: u32,
    },
    Started {
        version: u32,
        run_id: &'a str,
        utc_ns: i64,
        plan: &'a Plan,
    },
    Sample {
        version: u32,
        run_id: &'a str,
        sample: &'a Sample,
    },
    Finished {
        version: u32,
        run_id: &'a str,
        dropped_records: u64,
        run: &'a Run,
    },
    Error {
        version: u32,
        exit_code: u8,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<&'a Run>,
    },
    TestStarted {
        version: u32,
        run_id: &'a str,
        utc_ns: i64,
        client: SocketAddr,
        workload: &'a Workload,
    },
    TestEnded {
        version: u32,
        run_id: &'a str,
        utc_ns: i64,
        how: &'a str,
        #[serde(flatten)]
        figures: Option<Figures>,
    },
    Refused {
        version: u32,
        client: SocketAddr,
        why: &'a str,
    },
    Note {
        version: u32,
        text: &'a str,
    },
}

/// What a test came to at the server's end.
#[derive(Serialize)]
struct Figures {
    elapsed_ns: u64,
    received_bytes: u64,
    sent_bytes: u64,
    transactions: u64,
}

impl From<TestFigures> for Figures {
    fn from(figures: TestFigures) -> Self {
        let TestFigures { elapsed_ns, received_bytes, sent_bytes, transactions } = figures;
        Self { elapsed_ns, received_bytes, sent_bytes, transactions }
    }
}

impl Printer for NdjsonPrinter {
    fn render_event(&mut self, event: &Event) -> String {
        if let Event::Started { run_id, .. } = event {
            self.run_id.clone_from(run_id);
        }
        render_line(record_of(event, &self.run_id))
    }

    fn render_run(&mut self, run: &Run, dropped_events: u64) -> String {
        let version = VERSION;
        let status = &run.status;
        render_line(match status.outcome {
            Outcome::Failed => Record::Error {
                version,
                exit_code: status.exit_code,
                message: status.message.as_deref().unwrap_or_default(),
                run: Some(run),
            },
            _ => Record::Finished {
                version,
                run_id: &run.run_id,
                dropped_records: dropped_events,
                run,
            },
        })
    }

    fn render_end(&mut self) -> String {
        String::new()
    }
}

/// The record of a failure that came before there was a run.
pub(crate) fn render_error(exit_code: u8, message: &str) -> String {
    render_line(Record::Error { version: VERSION, exit_code, message, run: None })
}

fn record_of<'a>(event: &'a Event, run_id: &'a str) -> Record<'a> {
    let version = VERSION;
    match event {
        Event::Listening { address, fingerprint } => {
            Record::Listening { version, address: *address, fingerprint }
        }
        Event::Queued { place } => Record::Queued { version, place: *place },
        Event::Started { run_id, plan, utc_ns } => {
            Record::Started { version, run_id, utc_ns: *utc_ns, plan }
        }
        Event::Sample(sample) => Record::Sample { version, run_id, sample },
        Event::TestStarted { run_id, utc_ns, client, workload } => {
            Record::TestStarted { version, run_id, utc_ns: *utc_ns, client: *client, workload }
        }
        Event::TestEnded { run_id, utc_ns, how, figures } => Record::TestEnded {
            version,
            run_id,
            utc_ns: *utc_ns,
            how,
            figures: figures.map(Figures::from),
        },
        Event::Refused { client, why } => Record::Refused { version, client: *client, why },
        Event::Note(text) => Record::Note { version, text },
    }
}

fn render_line(record: Record<'_>) -> String {
    let mut line = serde_json::to_string(&record)
        .unwrap_or_else(|error| serde_json::json!({ "record": "error", "version": VERSION, "message": error.to_string() }).to_string());
    line.push('\n');
    line
}
