//! The command lines of a point: arrays of words, never a shell's string.

use std::collections::BTreeMap;

use linerate_measure::Workload;
use linerate_measure::hunt::Goal;
use serde::{Deserialize, Serialize};

/// A search that several pairs make in lockstep: each trial is a load of its own on every pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What is sought.
    pub goal: Goal,
    /// The load of a trial, as yet without a rate and a time.
    pub workload: Workload,
    /// The client of one trial, which waits for its start.
    pub trial: TaskSpec,
}

/// What the two hosts of a pair run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The server's program, which is started first and stopped last.
    pub server: TaskSpec,
    /// The client's.
    pub client: TaskSpec,
}

/// One program on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Another program than linerate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The words after the program's name.
    pub words: Vec<Word>,
    /// Variables of its environment besides those that the agent has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// When it is ready for its part.
    pub ready: Ready,
}

/// When a program is ready: a server for its client, a client for its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// At once.
    AtOnce,
    /// At the record `listening` of a native server, which tells its port and key.
    Listening,
    /// At the record `armed` of a native client, which then waits for its start on standard input.
    Armed,
    /// At a line that has this text.
    Text(String),
}

/// One word: a text, and behind it what is known only when the server is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The text.
    pub text: String,
    /// What stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Known>,
}

/// What a word is completed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The server's address.
    Address,
    /// The server's port.
    Port,
    /// The fingerprint of the server's key.
    Key,
    /// The rate and the time of a trial.
    Trial,
}

/// Where a server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Its address.
    pub address: String,
    /// Its port; for the server itself 0 takes a free one.
    pub port: u16,
    /// The fingerprint of its key; empty where it has none.
    pub key: String,
    /// The rate and the time of the trial that is made there, `RATE:TIME`; empty where none is.
    pub trial: String,
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), then: None }
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self { text, then: None }
    }
}

impl From<Known> for Word {
    fn from(known: Known) -> Self {
        Self { text: String::new(), then: Some(known) }
    }
}

impl Word {
    /// The word, completed.
    pub fn complete(&self, reached: &Reached) -> String {
        let then = match self.then {
            None => String::new(),
            Some(Known::Address) => reached.address.clone(),
            Some(Known::Port) => reached.port.to_string(),
            Some(Known::Key) => reached.key.clone(),
            Some(Known::Trial) => reached.trial.clone(),
        };
        format!("{}{then}", self.text)
    }
}

impl TaskSpec {
    /// A command of linerate.
    pub fn new(words: Vec<Word>, ready: Ready) -> Self {
        Self { program: None, words, environment: BTreeMap::new(), ready }
    }

    /// The words after the program's name, completed.
    pub fn argv(&self, reached: &Reached) -> Vec<String> {
        self.words.iter().map(|word| word.complete(reached)).collect()
    }
}
