//! The agent as a process: its input and output, its children, its clock.
//!
//! One thread waits for all of them (poll(2)). Output that the controller does not take stops the reading
//! of the children's, so they wait in their own writes, and memory stays bounded.

mod child;
mod hello;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use self::child::Child;
pub use self::child::become_child;
pub use self::hello::hello;
use super::{
    Action, Agent, AgentEnd, AgentHello, MAX_LINE_OF_CHILD, MAX_LINE_TO_AGENT, MAX_TEXT_OF_CHILD,
    Moment, Readings,
};
use crate::collect::Request;
use crate::host::{Lines, Taken};

/// With so much output waiting, bytes, children are not read.
const ENOUGH_OUTPUT: usize = 1 << 20;

/// With so much output waiting, bytes, the controller is taken to be gone. A child that is read may add a long line
/// of each of its outputs that is no JSON, of which each byte takes up to six; the rest is for pongs and readings.
const MAX_OUTPUT: usize = ENOUGH_OUTPUT + 6 * (MAX_LINE_OF_CHILD + MAX_TEXT_OF_CHILD) + (32 << 20);

/// The last output has so long to go.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Readers of the host's counters, which the agent starts, asks and stops.
pub trait Collectors {
    /// Starts reading what is asked for, in place of what was read before; none: nothing is read any more.
    fn begin(&mut self, request: Option<Request>, now: Moment);

    /// When [`collect`](Self::collect) has something to do, on the clock that never goes back.
    fn poll_timeout(&self) -> Option<u64>;

    /// Reads what is due, and gives what is to be sent.
    fn collect(&mut self, now: Moment) -> Vec<Readings>;
}

/// Nothing is read.
impl Collectors for () {
    fn begin(&mut self, _: Option<Request>, _: Moment) {}

    fn poll_timeout(&self) -> Option<u64> {
        None
    }

    fn collect(&mut self, _: Moment) -> Vec<Readings> {
        Vec::new()
    }
}

/// An agent's process.
#[derive(Debug)]
pub struct AgentProcess {
    executable: PathBuf,
    agent: Agent,
    input: Option<File>,
    output: Option<File>,
    unsent: Vec<u8>,
    lines: Lines,
    children: BTreeMap<u32, Child>,
}

impl AgentProcess {
    /// An agent that reads and writes these files, and starts this executable.
    pub fn new(hello: AgentHello, executable: PathBuf, input: File, output: File) -> Self {
        Self {
            executable,
            agent: Agent::new(hello, Moment::now()),
            input: Some(input),
            output: Some(output),
            unsent: Vec::new(),
            lines: Lines::new(MAX_LINE_TO_AGENT),
            children: BTreeMap::new(),
        }
    }

    /// Does what the controller says, until its end, or until `stop` is set, by a signal. No child is left then.
    ///
    /// # Errors
    /// Those of poll(2): this machine is out of memory.
    pub fn run(
        mut self,
        collectors: &mut dyn Collectors,
        stop: &AtomicBool,
    ) -> io::Result<AgentEnd> {
        if let Some(output) = self.output.as_ref().filter(|file| !rustix::termios::isatty(file)) {
            rustix::io::ioctl_fionbio(output, true)?;
        }
        // Login files may have printed something without an end of line.
        self.unsent.push(b'\n');
        loop {
            while let Some(action) = self.agent.poll_action() {
                self.perform(action, collectors);
            }
            self.send();
            if let Some(end) = self.agent.poll_end() {
                let end = end.clone();
                self.send_the_last();
                return Ok(end);
            }
            self.wait(collectors.poll_timeout(), None)?;
            if stop.load(Ordering::Relaxed) {
                self.agent.handle_end(Moment::now());
            }
            self.receive();
            self.attend_children();
            for readings in collectors.collect(Moment::now()) {
                self.agent.handle_ticks(readings);
            }
            self.agent.handle_timeout(Moment::now());
        }
    }

    fn perform(&mut self, action: Action, collectors: &mut dyn Collectors) {
        match action {
            Action::Start(start) => {
                let task = start.task;
                let outcome = Child::start(&self.executable, start).map(|child| {
                    let pid = child.pid();
                    self.children.insert(task, child);
                    pid
                });
                self.agent.handle_started(task, outcome, Moment::now());
            }
            Action::Write { task, text, end } => {
                if let Some(child) = self.children.get_mut(&task) {
                    child.write(&text, end);
                }
            }
            Action::Terminate { task } => {
                if let Some(child) = self.children.get(&task) {
                    child.signal(rustix::process::Signal::TERM);
                }
            }
            Action::Kill { task } => {
                if let Some(child) = self.children.get(&task) {
                    child.signal(rustix::process::Signal::KILL);
                }
            }
            Action::Collect { request } => collectors.begin(request, Moment::now()),
        }
    }

    /// Waits until there is something to do, or until the output can take more if that alone is asked for.
    fn wait(&self, also_due_ns: Option<u64>, last: Option<Duration>) -> io::Result<()> {
        let mut files = Vec::with_capacity(2 + 4 * self.children.len());
        if let (Some(output), false) = (&self.output, self.unsent.is_empty()) {
            files.push(PollFd::new(output, PollFlags::OUT));
        }
        if last.is_none() {
            files.extend(self.input.iter().map(|input| PollFd::new(input, PollFlags::IN)));
            let has_room = has_room(&self.unsent, &self.agent);
            for child in self.children.values() {
                child.watch(has_room, self.agent.is_alone(), &mut files);
            }
        }
        let now_ns = Moment::now().monotonic_ns;
        let due_ns = self.agent.poll_timeout().into_iter().chain(also_due_ns).min();
        let wait =
            last.or(due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns))));
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self) {
        let Some(input) = &mut self.input else { return };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut files = [PollFd::new(&*input, PollFlags::IN)];
        if !poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0) {
            return;
        }
        let mut bytes = [0; 16 << 10];
        let count = match input.read(&mut bytes) {
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
            {
                return;
            }
            Err(_) => 0,
        };
        let now = Moment::now();
        if count == 0 {
            self.input = None;
            return self.agent.handle_end(now);
        }
        self.lines.push(bytes.get(..count).unwrap_or_default());
        while let Some(taken) = self.lines.take() {
            match taken {
                Taken::Line(line) => self.agent.handle_line(line, now),
                Taken::TooLong(_) => self.agent.handle_too_long(now),
            }
        }
    }

    fn attend_children(&mut self) {
        let mut ended = Vec::new();
        for (&task, child) in &mut self.children {
            child.feed();
            let has_room = has_room(&self.unsent, &self.agent);
            let is_over = match (child.has_ended(), has_room) {
                (true, true) => child.read_last(task, &mut self.agent),
                // Nobody waits for the rest of what the child has printed.
                (true, false) => self.agent.is_alone(),
                (false, true) => {
                    child.read(task, &mut self.agent);
                    false
                }
                (false, false) => false,
            };
            if is_over {
                ended.push(task);
            }
        }
        for task in ended {
            if let Some(child) = self.children.remove(&task) {
                self.agent.handle_ended(child.reap(task));
            }
        }
        if rustix::process::getpid().is_init() {
            self.reap_orphans();
        }
    }

    /// The first process of a container inherits those whose parents have ended.
    fn reap_orphans(&self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while let Ok(Some(_)) = waitid(WaitId::All, look) {
            // A child of the agent is in the way until it is reaped with what it printed.
            if self.children.values().any(Child::has_ended) {
                return;
            }
            let _reaped = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }

    fn send(&mut self) {
        while let Some(line) = self.agent.poll_output() {
            self.unsent.extend_from_slice(line.as_bytes());
            self.unsent.push(b'\n');
        }
        while let (Some(output), false) = (&mut self.output, self.unsent.is_empty()) {
            match output.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.output = None,
            }
        }
        if self.unsent.len() > MAX_OUTPUT {
            self.output = None;
        }
        if self.output.is_none() {
            self.unsent.clear();
            self.agent.handle_end(Moment::now());
        }
    }

    fn send_the_last(&mut self) {
        let until_ns = Moment::now().monotonic_ns.saturating_add(LAST_OUTPUT.as_nanos() as u64);
        while !self.unsent.is_empty() {
            let left_ns = until_ns.saturating_sub(Moment::now().monotonic_ns);
            if left_ns == 0 || self.wait(None, Some(Duration::from_nanos(left_ns))).is_err() {
                return;
            }
            self.send();
        }
    }
}

/// Whether children are read: the output that waits is bounded, and with it the agent's memory.
fn has_room(unsent: &[u8], agent: &Agent) -> bool {
    unsent.len() + agent.output_len() < ENOUGH_OUTPUT
}
