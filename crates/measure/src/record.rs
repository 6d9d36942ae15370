//! The records of `--ndjson`: what happens, as it happens, one JSON object (RFC 8259) a line.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hunt::TrialRecord;
use crate::plan::{Plan, Workload};
use crate::repeats::Repeats;
use crate::run::Run;
use crate::sample::Sample;

/// One record. `record` names its kind, and `version` is [`Record::VERSION`].
///
/// Kinds of a measurement: `started`, `sample`, in a hunt `trial`, `finished` or `error` at last, and between them
/// `queued`, `armed` and `note`. After several runs of one plan: `repeated`. Kinds of a server: `listening`, first of all, then `test_started`, `test_ended`,
/// `refused`, `note`, `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The server is ready for clients.
    Listening {
        /// The format's version.
        version: u32,
        /// The address it listens on, TCP and UDP.
        address: SocketAddr,
        /// The fingerprint of its key: SHA-256 of its certificate, in hexadecimal.
        fingerprint: String,
    },
    /// The client waits for its turn.
    Queued {
        /// The format's version.
        version: u32,
        /// 1: next.
        place: u32,
    },
    /// All flows stand, and the load waits for its start to be named (`--start-at -`).
    Armed {
        /// The format's version.
        version: u32,
        /// Names the run at both ends.
        run_id: String,
    },
    /// The load begins.
    Started {
        /// The format's version.
        version: u32,
        /// Names the run at both ends.
        run_id: String,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
        /// What will be done.
        plan: Box<Plan>,
    },
    /// An interval is over.
    Sample {
        /// The format's version.
        version: u32,
        /// The run that it belongs to.
        run_id: String,
        /// What one end counted in it.
        sample: Box<Sample>,
    },
    /// A trial of a hunt is over.
    Trial {
        /// The format's version.
        version: u32,
        /// What it came to.
        trial: Box<TrialRecord>,
    },
    /// The run is over.
    Finished {
        /// The format's version.
        version: u32,
        /// The run.
        run_id: String,
        /// Records that were never written because they came faster than they were read.
        dropped_records: u64,
        /// The whole document.
        run: Box<Run>,
    },
    /// All runs of one plan are over (`--repeat`, `--precision`).
    Repeated {
        /// The format's version.
        version: u32,
        /// What they come to; their documents stand in the `finished` records before.
        repeats: Box<Repeats>,
    },
    /// There is no result.
    Error {
        /// The format's version.
        version: u32,
        /// The exit code.
        exit_code: u8,
        /// What went wrong, and the way out.
        message: String,
        /// The run that failed; absent where none began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Box<Run>>,
    },
    /// A client's test began at this server.
    TestStarted {
        /// The format's version.
        version: u32,
        /// Names the run at both ends.
        run_id: String,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
        /// Where the client is.
        client: SocketAddr,
        /// What it asked for.
        workload: Box<Workload>,
    },
    /// A client's test ended at this server.
    TestEnded {
        /// The format's version.
        version: u32,
        /// Names the run at both ends.
        run_id: String,
        /// When (UTC, nanoseconds since 1970).
        utc_ns: i64,
        /// How: `complete`, or why it was cut short.
        how: String,
        /// What it came to at this end; absent where its load never began.
        #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
        figures: Option<TestFigures>,
    },
    /// A client was turned away, or spoke wrongly.
    Refused {
        /// The format's version.
        version: u32,
        /// Where the client is.
        client: SocketAddr,
        /// Why.
        why: String,
    },
    /// Something the user should know.
    Note {
        /// The format's version.
        version: u32,
        /// The sentence.
        text: String,
    },
}

/// What a test came to at the server's end, the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFigures {
    /// From the beginning of the load to the last byte that moved; of a test that was cut short, to its end.
    pub elapsed_ns: u64,
    /// Bytes of payload that arrived here.
    pub received_bytes: u64,
    /// Bytes of payload that left here.
    pub sent_bytes: u64,
    /// Requests that were answered.
    pub transactions: u64,
}

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
#[error("no record of linerate: {0}")]
pub struct RecordError(#[from] serde_json::Error);

impl Record {
    /// The version of the records' format.
    pub const VERSION: u32 = 1;

    /// Reads a line. `None`: a record of a kind that this program doesn't know; fields that it doesn't know are
    /// skipped.
    ///
    /// # Errors
    ///
    /// Where the line is no JSON object with `record`, or a known kind lacks a field.
    pub fn parse(line: &str) -> Result<Option<Self>, RecordError> {
        let value: Value = serde_json::from_str(line)?;
        match Self::deserialize(&value) {
            Ok(record) => Ok(Some(record)),
            Err(_) if is_unknown(&value) => Ok(None),
            Err(error) => Err(RecordError(error)),
        }
    }

    /// The line, with its line feed.
    pub fn render(&self) -> String {
        let line = serde_json::to_string(self);
        line.unwrap_or_else(|error| {
            // Nothing in a record can fail to be written; what can't happen is told all the same.
            serde_json::json!({ "record": "note", "version": Self::VERSION, "text": error.to_string() }).to_string()
        }) + "\n"
    }
}

/// The names of the kinds.
const KINDS: [&str; 12] = [
    "listening",
    "queued",
    "armed",
    "started",
    "sample",
    "trial",
    "finished",
    "error",
    "test_started",
    "test_ended",
    "refused",
    "note",
];

fn is_unknown(value: &Value) -> bool {
    value.get("record").and_then(Value::as_str).is_some_and(|name| !KINDS.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let (version, run_id) = (Record::VERSION, "7".to_owned());
        let address = "[::1]:5250".parse().unwrap();
        let figures =
            TestFigures { elapsed_ns: 1, received_bytes: 2, sent_bytes: 3, transactions: 4 };
        let ended = |figures| Record::TestEnded {
            version,
            run_id: run_id.clone(),
            utc_ns: -1,
            how: "complete".to_owned(),
            figures,
        };
        for record in [
            Record::Listening { version, address, fingerprint: "ab".to_owned() },
            Record::Queued { version, place: 1 },
            ended(Some(figures)),
            ended(None),
            Record::Refused { version, client: address, why: "no\nroom".to_owned() },
            Record::Note { version, text: "text".to_owned() },
            Record::Error { version, exit_code: 1, message: "why".to_owned(), run: None },
        ] {
            let line = record.render();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(Record::parse(&line).unwrap(), Some(record), "{line}");
        }
    }

    #[test]
    fn unknown_records_are_skipped() {
        let further = json!({ "record": "note", "version": 1, "text": "a", "further": [1] });
        let note = Record::Note { version: 1, text: "a".to_owned() };
        assert_eq!(Record::parse(&further.to_string()).unwrap(), Some(note));
        assert_eq!(Record::parse("{\"record\":\"of tomorrow\"}").unwrap(), None);
        for wrong in ["", "1", "{}", "{\"record\":\"note\"}", "{\"record\":7}"] {
            assert!(Record::parse(wrong).is_err(), "{wrong}");
        }
    }
}
