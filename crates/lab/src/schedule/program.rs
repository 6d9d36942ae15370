//! One program of an attempt, and what it told.

use linerate_measure::record::Record;
use linerate_measure::{Role, Run};

use super::lockstep::Told;
use super::ways::Ways;
use crate::agent::TaskEnd;
use crate::host::HostId;
use crate::plan::Ready;

/// Documents of earlier tests that are kept of a server.
const EARLIER_RUNS: usize = 64;
/// Lines of a program's standard error that are kept for the reason of a failure.
const LAST_LINES: usize = 3;

/// One program of the attempt.
#[derive(Debug)]
pub(super) struct Program {
    /// The place of its pair in the plan.
    pub(super) place: usize,
    pub(super) pair: u32,
    pub(super) role: Role,
    pub(super) host: HostId,
    pub(super) task: u32,
    pub(super) ready: Ready,
    pub(super) is_ready: bool,
    pub(super) end: Option<TaskEnd>,
    /// What it said last on standard error.
    last: Vec<String>,
    /// When its load began, by its host's clock.
    pub(super) started_ns: Option<i64>,
    pub(super) run: Option<Box<Run>>,
    /// Documents that a server wrote before that one: a client may make several tests.
    pub(super) earlier: Vec<Run>,
}

impl Program {
    /// A program that was started as this task.
    pub(super) fn new(
        (place, pair): (usize, u32),
        role: Role,
        (host, task): (HostId, u32),
        ready: &Ready,
    ) -> Self {
        Self {
            place,
            pair,
            role,
            host,
            task,
            ready: ready.clone(),
            is_ready: *ready == Ready::AtOnce,
            end: None,
            last: Vec::new(),
            started_ns: None,
            run: None,
            earlier: Vec::new(),
        }
    }

    /// Takes a record, and says what it was.
    pub(super) fn handle_record(&mut self, json: &str, ways: &mut Ways) -> Told {
        match Record::parse(json) {
            Ok(Some(Record::Listening { address, fingerprint, .. })) => {
                if let Some(reached) = ways.server_mut(self.place) {
                    reached.port = address.port();
                    // A plan without an address leaves it to the server to tell one of its interface's.
                    if reached.address.is_empty() && !address.ip().is_unspecified() {
                        reached.address = address.ip().to_string();
                    }
                    reached.key = fingerprint;
                }
                self.is_ready |= self.ready == Ready::Listening;
            }
            Ok(Some(Record::Started { utc_ns, .. })) => self.started_ns = Some(utc_ns),
            Ok(Some(Record::Finished { run, .. })) => {
                let before = self.run.replace(run).filter(|_| self.role == Role::Server);
                self.earlier.extend(before.map(|run| *run));
                if self.earlier.len() > EARLIER_RUNS {
                    self.earlier.remove(0);
                }
                return Told::Document;
            }
            Ok(Some(Record::Sample { sample, .. })) => return Told::Sample(sample),
            Ok(Some(Record::Error { message, run, .. })) => {
                self.keep_last(message);
                self.run = run;
            }
            Ok(Some(Record::Armed { .. })) => self.is_ready |= self.ready == Ready::Armed,
            _ => {}
        }
        Told::Other
    }

    pub(super) fn handle_text(&mut self, text: String) {
        if let Ready::Text(part) = &self.ready {
            self.is_ready |= text.contains(part.as_str());
        }
        if !text.trim().is_empty() {
            self.keep_last(text);
        }
    }

    fn keep_last(&mut self, text: String) {
        if self.last.len() == LAST_LINES {
            self.last.remove(0);
        }
        self.last.push(text);
    }

    /// A sentence about how it ended.
    pub(super) fn describe_end(&self) -> String {
        let role = match self.role {
            Role::Server => "server",
            Role::Client => "client",
        };
        let end = self.end.as_ref();
        let how = match (end.and_then(|end| end.code), end.and_then(|end| end.signal)) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "gave no result".to_owned(),
        };
        let last = match self.last.as_slice() {
            [] => String::new(),
            lines => format!(": {}", lines.join(" / ")),
        };
        format!("the {role} of pair {} {how}{last}", self.pair)
    }
}
