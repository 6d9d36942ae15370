//! The agent's end of the channel.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde_json::value::RawValue;

use crate::collect::Request;

use super::message::{
    AgentHello, FromAgent, OutputStream, Readings, StartTask, TaskEnd, ToAgent, pieces,
};
use super::{
    GRACE_NS, LEASE_LIMITS_MS, LEASE_NS, Lease, MAX_LINE_TO_AGENT, MAX_TASKS, MAX_TEXT_OF_CHILD,
    MAX_WORDS, MILLISECOND_NS, Moment, SECOND_NS, VERSIONS,
};

/// A killed child is given up after so long: the kernel may hold it in a device or a file system.
const KILLED_NS: u64 = 2 * SECOND_NS;

/// The longest that a child may take from SIGTERM to SIGKILL.
const MAX_GRACE_MS: u32 = 60_000;

/// The agent's end of a channel.
#[derive(Debug)]
pub struct Agent {
    hello: AgentHello,
    stage: Stage,
    lease: Lease,
    output: VecDeque<String>,
    actions: VecDeque<Action>,
    tasks: BTreeMap<u32, TaskState>,
    lines_heard: u64,
    lines_sent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    /// The children were told to end.
    Ending {
        end: AgentEnd,
        kill_ns: u64,
    },
    /// The children were killed.
    Killed {
        end: AgentEnd,
        until_ns: u64,
    },
    Over(AgentEnd),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TaskState {
    runs: bool,
    next_line: u64,
    /// When a child that was told to end is killed.
    kill_ns: Option<u64>,
}

/// Why an agent ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// The controller has said bye.
    Bye,
    /// The input ended: the controller is gone.
    EndOfInput,
    /// Nothing was heard for the whole lease.
    Silence {
        /// Its length, milliseconds.
        lease_ms: u64,
    },
    /// The controller said what no controller says.
    Nonsense {
        /// What is wrong, a clause.
        text: String,
    },
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bye => write!(f, "the controller ended the session"),
            Self::EndOfInput => write!(f, "the input ended"),
            Self::Silence { lease_ms } => {
                write!(f, "nothing was heard from the controller for {} s", *lease_ms as f64 / 1e3)
            }
            Self::Nonsense { text } => write!(
                f,
                "the input has {text}; an agent reads what a controller of linerate writes, and is \
                 not started by hand"
            ),
        }
    }
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Start a child, and tell of it by [`Agent::handle_started`].
    Start(StartTask),
    /// Write to a child's standard input.
    Write {
        /// The child.
        task: u32,
        /// What is written.
        text: String,
        /// Whether the input ends after it.
        end: bool,
    },
    /// Send SIGTERM to a child's process group.
    Terminate {
        /// The child.
        task: u32,
    },
    /// Send SIGKILL to a child's process group.
    Kill {
        /// The child.
        task: u32,
    },
    /// Start the collectors anew, or end them.
    Collect {
        /// What is collected; none: nothing any more.
        request: Option<Request>,
    },
}

impl Agent {
    /// An agent that answers a controller's hello with this one.
    pub fn new(hello: AgentHello, now: Moment) -> Self {
        Self {
            hello,
            stage: Stage::Opening,
            lease: Lease::new(LEASE_NS, now.monotonic_ns),
            output: VecDeque::new(),
            actions: VecDeque::new(),
            tasks: BTreeMap::new(),
            lines_heard: 0,
            lines_sent: 0,
        }
    }

    /// A line arrived, without its end.
    pub fn handle_line(&mut self, line: &[u8], now: Moment) {
        if self.is_ending() {
            return;
        }
        if self.lease.is_over(now.monotonic_ns) {
            // The lines of a controller that was stopped arrive all at once.
            return self.handle_timeout(now);
        }
        let before = self.lines_heard;
        self.lines_heard += 1;
        match serde_json::from_slice(line) {
            Ok(message) => {
                self.lease.renew(now.monotonic_ns);
                self.handle_message(message, before, now);
            }
            Err(_) => self.nonsense("a line that is no message of a controller", now),
        }
    }

    /// A line of more than [`MAX_LINE_TO_AGENT`] bytes arrived.
    pub fn handle_too_long(&mut self, now: Moment) {
        self.nonsense(&format!("a line of more than {MAX_LINE_TO_AGENT} bytes"), now);
    }

    /// The input ended, or the output can't be written any more.
    pub fn handle_end(&mut self, now: Moment) {
        self.end(AgentEnd::EndOfInput, now);
    }

    /// A child runs with this process number, or could not be started: why, a sentence.
    pub fn handle_started(&mut self, task: u32, outcome: Result<u32, String>, now: Moment) {
        match outcome {
            Ok(pid) => {
                if let Some(state) = self.tasks.get_mut(&task) {
                    state.runs = true;
                }
                self.send(&FromAgent::Started { task, pid });
                if self.is_ending() {
                    self.stop(task, GRACE_NS, now);
                }
            }
            Err(text) => {
                self.tasks.remove(&task);
                self.send(&FromAgent::Refused { task, text });
                self.end_if_empty();
            }
        }
    }

    /// A child printed a line, given without its end.
    pub fn handle_child_line(&mut self, task: u32, stream: OutputStream, line: &[u8]) {
        let Some(state) = self.tasks.get_mut(&task) else { return };
        let json = match stream {
            OutputStream::Stdout => read_json(line),
            OutputStream::Stderr => None,
        };
        if let Some(json) = json {
            let seq = state.next_line;
            state.next_line += 1;
            self.send(&FromAgent::Line { task, seq, json });
        } else {
            // What is no text becomes longer in JSON: a byte takes up to six.
            for piece in pieces(&String::from_utf8_lossy(line), MAX_TEXT_OF_CHILD) {
                self.send(&FromAgent::Text { task, stream, text: piece.to_owned() });
            }
        }
    }

    /// A child has ended, and all that it printed was given to [`handle_child_line`](Self::handle_child_line).
    pub fn handle_ended(&mut self, end: TaskEnd) {
        if self.tasks.remove(&end.task).is_some() {
            self.send(&FromAgent::Ended(end));
        }
        self.end_if_empty();
    }

    /// A collector read something.
    pub fn handle_ticks(&mut self, readings: Readings) {
        if self.stage == Stage::Open {
            self.send(&FromAgent::Ticks(readings));
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Moment) {
        let now_ns = now.monotonic_ns;
        match &self.stage {
            Stage::Opening | Stage::Open => {
                if self.lease.is_over(now_ns) {
                    let lease_ms = self.lease.length_ns() / MILLISECOND_NS;
                    return self.end(AgentEnd::Silence { lease_ms }, now);
                }
                for (&task, state) in &mut self.tasks {
                    if state.kill_ns.is_some_and(|kill_ns| kill_ns <= now_ns) {
                        state.kill_ns = None;
                        self.actions.push_back(Action::Kill { task });
                    }
                }
            }
            Stage::Ending { end, kill_ns } if *kill_ns <= now_ns => {
                let until_ns = now_ns.saturating_add(KILLED_NS);
                self.stage = Stage::Killed { end: end.clone(), until_ns };
                self.actions.extend(self.tasks.keys().map(|&task| Action::Kill { task }));
            }
            Stage::Killed { end, until_ns } if *until_ns <= now_ns => {
                self.stage = Stage::Over(end.clone());
            }
            _ => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, on the clock that never goes back.
    pub fn poll_timeout(&self) -> Option<u64> {
        match &self.stage {
            Stage::Opening | Stage::Open => {
                let kills = self.tasks.values().filter_map(|state| state.kill_ns);
                kills.chain([self.lease.ends_ns()]).min()
            }
            Stage::Ending { kill_ns, .. } => Some(*kill_ns),
            Stage::Killed { until_ns, .. } => Some(*until_ns),
            Stage::Over(_) => None,
        }
    }

    /// The next line to send, without its end.
    pub fn poll_output(&mut self) -> Option<String> {
        self.output.pop_front()
    }

    /// Bytes of the lines that [`poll_output`](Self::poll_output) has not given yet.
    pub fn output_len(&self) -> usize {
        self.output.iter().map(String::len).sum()
    }

    /// Whether the agent ends because the controller is taken to be gone.
    pub fn is_alone(&self) -> bool {
        match &self.stage {
            Stage::Opening | Stage::Open => false,
            Stage::Ending { end, .. } | Stage::Killed { end, .. } | Stage::Over(end) => {
                *end != AgentEnd::Bye
            }
        }
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Why the agent ends, once all its children have ended or were given up.
    pub fn poll_end(&self) -> Option<&AgentEnd> {
        match &self.stage {
            Stage::Over(end) => Some(end),
            _ => None,
        }
    }

    fn handle_message(&mut self, message: ToAgent, before: u64, now: Moment) {
        match (&self.stage, message) {
            (Stage::Opening, ToAgent::Hello { versions, lease_ms }) => {
                self.handle_hello(&versions, lease_ms, now);
            }
            (Stage::Opening, _) => self.nonsense("another line before the controller's hello", now),
            (_, ToAgent::Hello { .. }) => self.nonsense("a second hello", now),
            (_, ToAgent::Ping { sent_ns, lines }) => {
                if lines != before {
                    return self.nonsense(&format!("{before} lines where {lines} were sent"), now);
                }
                self.send(&FromAgent::Pong {
                    sent_ns,
                    received_ns: now.utc_ns,
                    // The driver writes the line at once.
                    replied_ns: now.utc_ns,
                    lines: self.lines_sent,
                });
            }
            (_, ToAgent::Start(start)) => self.start(start),
            (_, ToAgent::Write { task, text, end }) => {
                // A child that has ended meanwhile needs no input.
                if self.tasks.contains_key(&task) {
                    self.actions.push_back(Action::Write { task, text, end });
                }
            }
            (_, ToAgent::Stop { task, grace_ms }) => {
                self.stop(task, u64::from(grace_ms.min(MAX_GRACE_MS)) * MILLISECOND_NS, now);
            }
            (_, ToAgent::Collect { request }) => {
                if let Some(Err(why)) = request.as_ref().map(Request::check) {
                    return self.nonsense(&format!("an order that can't be followed: {why}"), now);
                }
                self.actions.push_back(Action::Collect { request });
            }
            (_, ToAgent::Bye {}) => self.end(AgentEnd::Bye, now),
        }
    }

    fn handle_hello(&mut self, versions: &[u32], lease_ms: u32, now: Moment) {
        let Some(&protocol) = VERSIONS.iter().find(|version| versions.contains(version)) else {
            return self.nonsense(
                &format!(
                    "a hello of a controller that speaks other versions of the protocol than {}",
                    VERSIONS[0]
                ),
                now,
            );
        };
        let (least, most) = LEASE_LIMITS_MS;
        if !(least..=most).contains(&lease_ms) {
            return self.nonsense(
                &format!("a lease of {lease_ms} ms, where {least} to {most} are possible"),
                now,
            );
        }
        self.lease = Lease::new(u64::from(lease_ms) * MILLISECOND_NS, now.monotonic_ns);
        self.stage = Stage::Open;
        let hello = AgentHello { protocol, ..self.hello.clone() };
        self.send(&FromAgent::Hello(hello));
    }

    fn start(&mut self, start: StartTask) {
        let task = start.task;
        if let Some(why) = self.why_not(&start) {
            return self.send(&FromAgent::Refused { task, text: why });
        }
        self.tasks.insert(task, TaskState::default());
        self.actions.push_back(Action::Start(start));
    }

    fn why_not(&self, start: &StartTask) -> Option<String> {
        let has_nul = |word: &String| word.contains('\0');
        if self.tasks.contains_key(&start.task) {
            Some(format!("child {} runs already", start.task))
        } else if self.tasks.len() >= MAX_TASKS {
            Some(format!("the agent has {MAX_TASKS} children, which is the most"))
        } else if start.argv.len() > MAX_WORDS {
            Some(format!("a command line has at most {MAX_WORDS} words"))
        } else if start.argv.iter().chain(&start.program).any(has_nul) {
            Some("no word of a command line can hold a zero byte".to_owned())
        } else {
            None
        }
    }

    fn stop(&mut self, task: u32, grace_ns: u64, now: Moment) {
        if let Some(state) = self.tasks.get_mut(&task) {
            let kill_ns = now.monotonic_ns.saturating_add(grace_ns);
            state.kill_ns = Some(state.kill_ns.map_or(kill_ns, |due_ns| due_ns.min(kill_ns)));
            self.actions.push_back(Action::Terminate { task });
        }
    }

    fn nonsense(&mut self, text: &str, now: Moment) {
        self.end(AgentEnd::Nonsense { text: text.to_owned() }, now);
    }

    fn end(&mut self, end: AgentEnd, now: Moment) {
        if self.is_ending() {
            return;
        }
        if matches!(end, AgentEnd::Silence { .. } | AgentEnd::Nonsense { .. }) {
            self.send(&FromAgent::Failed { text: end.to_string() });
        }
        self.actions.push_back(Action::Collect { request: None });
        self.actions.extend(self.tasks.keys().map(|&task| Action::Terminate { task }));
        self.stage = Stage::Ending { end, kill_ns: now.monotonic_ns.saturating_add(GRACE_NS) };
        self.end_if_empty();
    }

    fn end_if_empty(&mut self) {
        if !self.tasks.is_empty() {
            return;
        }
        if let Stage::Ending { end, .. } | Stage::Killed { end, .. } = &self.stage {
            self.stage = Stage::Over(end.clone());
        }
    }

    fn is_ending(&self) -> bool {
        !matches!(self.stage, Stage::Opening | Stage::Open)
    }

    fn send(&mut self, message: &FromAgent) {
        // Nothing in a message fails to become JSON.
        if let Ok(line) = serde_json::to_string(message) {
            self.output.push_back(line);
            self.lines_sent += 1;
        }
    }
}

/// The line as a JSON object; other values of JSON, as numbers, are text that happens to be JSON.
fn read_json(line: &[u8]) -> Option<Box<RawValue>> {
    let text = str::from_utf8(line).ok()?.trim();
    if !text.starts_with('{') {
        return None;
    }
    RawValue::from_string(text.to_owned()).ok()
}
