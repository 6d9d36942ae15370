//! A child of an agent.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getppid, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};

use crate::agent::{
    Agent, MAX_LINE_OF_CHILD, MAX_TEXT_OF_CHILD, OutputStream, StartTask, TaskEnd, TaskUsage,
};
use crate::host::{Lines, Taken};

/// The most input that a child has not taken, bytes; what comes above it is left out.
const MAX_INPUT: usize = 4 << 20;

/// Reads of a pipe whose child has ended: by default a pipe holds as much as one read takes.
const MOST_LAST_READS: usize = 64;

/// The unit of processor times in /proc, nanoseconds (USER_HZ is 100 on all architectures that Rust's Linux runs on).
const TICK_NS: u64 = 10_000_000;

/// A child of an agent, in a process group of its own.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    /// Readable when the child has ended.
    pidfd: OwnedFd,
    stdin: Option<File>,
    unwritten: Vec<u8>,
    ends_input: bool,
    stdout: Output,
    stderr: Output,
    /// Reads since the child was seen to have ended.
    last_reads: usize,
}

#[derive(Debug)]
struct Output {
    stream: OutputStream,
    file: Option<File>,
    lines: Lines,
}

/// Becomes a child of the agent whose process number is given: asks the kernel to kill this process when the agent
/// ends, and executes the program. Returns only what went wrong.
pub fn become_child(agent: u32, program: &OsStr, words: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // An agent that ended before that was asked for sends nothing.
    let parent = getppid().map_or(0, number);
    if parent != agent {
        return io::Error::other("the agent has ended");
    }
    Command::new(program).args(words).exec()
}

/// Names a store in which commands of linerate keep their runs.
const STORE_VARIABLE: &str = "LINERATE_STORE";

/// A process number as the type that has no negative ones.
fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

impl Child {
    /// Starts the agent's own executable, or the program that the order names, through [`become_child`].
    pub(super) fn start(executable: &Path, start: StartTask) -> Result<Self, String> {
        let program = start.program.as_deref().map_or(executable.as_os_str(), OsStr::new);
        let mut child = Command::new(executable)
            .args(["agent", "--child-of", &std::process::id().to_string(), "--"])
            .arg(program)
            .args(&start.argv)
            // What children measure is kept by the controller, not once more by each child.
            .env_remove(STORE_VARIABLE)
            .envs(&start.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", executable.display()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| "the child has no process number".to_owned())?;
        let prepared = || -> io::Result<Self> {
            let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
            let stdin = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
            let stdout = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
            let stderr = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
            for pipe in [&stdin, &stdout, &stderr].into_iter().flatten() {
                rustix::io::ioctl_fionbio(pipe, true)?;
            }
            Ok(Self {
                pid,
                pidfd,
                stdin,
                unwritten: start.stdin.into_bytes(),
                ends_input: !start.keep_stdin,
                stdout: Output::new(OutputStream::Stdout, stdout),
                stderr: Output::new(OutputStream::Stderr, stderr),
                last_reads: 0,
            })
        };
        let mut prepared = prepared().map_err(|error| {
            let _gone = kill_process_group(pid, Signal::KILL);
            let _reaped = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
            format!("the child can't be watched: {error}")
        })?;
        prepared.feed();
        Ok(prepared)
    }

    pub(super) fn pid(&self) -> u32 {
        number(self.pid)
    }

    /// Adds the files by which something of this child is noticed. Without room for what it prints, its end is of
    /// interest only to an agent that is alone.
    pub(super) fn watch<'a>(&'a self, has_room: bool, is_alone: bool, files: &mut Vec<PollFd<'a>>) {
        if has_room || is_alone {
            files.push(PollFd::new(&self.pidfd, PollFlags::IN));
        }
        if let (Some(stdin), false) = (&self.stdin, self.unwritten.is_empty()) {
            files.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if has_room {
            let outputs = [&self.stdout.file, &self.stderr.file];
            files.extend(outputs.into_iter().flatten().map(|f| PollFd::new(f, PollFlags::IN)));
        }
    }

    pub(super) fn write(&mut self, text: &str, end: bool) {
        if !self.ends_input && self.unwritten.len() + text.len() <= MAX_INPUT {
            self.unwritten.extend_from_slice(text.as_bytes());
        }
        self.ends_input |= end;
        self.feed();
    }

    /// Writes what the child's standard input takes.
    pub(super) fn feed(&mut self) {
        while let (Some(stdin), false) = (&mut self.stdin, self.unwritten.is_empty()) {
            match stdin.write(&self.unwritten) {
                Ok(written) => drop(self.unwritten.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The child reads no more.
                Err(_) => self.unwritten.clear(),
            }
        }
        if self.ends_input {
            self.stdin = None;
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let _gone = kill_process_group(self.pid, signal);
    }

    pub(super) fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), look), Ok(None))
    }

    /// Passes a little of what the child has printed on. Whether there was something.
    pub(super) fn read(&mut self, task: u32, agent: &mut Agent) -> bool {
        let is_read = [&mut self.stdout, &mut self.stderr].map(|output| output.read(task, agent));
        is_read.contains(&true)
    }

    /// Passes a little on of what a child has printed that has ended. Whether that was all. Others of its group may
    /// hold the pipe's other end, and write to it, for ever: they are ended first, and one that has left the group
    /// gets no more than a pipe holds.
    pub(super) fn read_last(&mut self, task: u32, agent: &mut Agent) -> bool {
        self.signal(Signal::KILL);
        self.last_reads += 1;
        let is_over = !self.read(task, agent) || self.last_reads > MOST_LAST_READS;
        if is_over {
            self.stdout.finish(task, agent);
            self.stderr.finish(task, agent);
        }
        is_over
    }

    /// Ends what is left of the child's process group, then the child's entry in the kernel's list: only until then
    /// nobody else has its number.
    pub(super) fn reap(self, task: u32) -> TaskEnd {
        let usage = read_usage(self.pid);
        self.signal(Signal::KILL);
        match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED) {
            Ok(Some(status)) => TaskEnd {
                task,
                code: status.exit_status(),
                signal: status.terminating_signal(),
                usage,
            },
            _ => TaskEnd { task, code: None, signal: None, usage },
        }
    }
}

impl Output {
    fn new(stream: OutputStream, file: Option<File>) -> Self {
        let most = match stream {
            OutputStream::Stdout => MAX_LINE_OF_CHILD,
            OutputStream::Stderr => MAX_TEXT_OF_CHILD,
        };
        Self { stream, file, lines: Lines::new(most) }
    }

    /// Whether something was read.
    fn read(&mut self, task: u32, agent: &mut Agent) -> bool {
        let mut bytes = [0; 64 << 10];
        let Some(file) = &mut self.file else { return false };
        match file.read(&mut bytes) {
            Ok(0) => {
                self.finish(task, agent);
                false
            }
            Ok(count) => {
                self.lines.push(bytes.get(..count).unwrap_or_default());
                while let Some(taken) = self.lines.take() {
                    let (Taken::Line(line) | Taken::TooLong(line)) = taken;
                    agent.handle_child_line(task, self.stream, line);
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => {
                self.file = None;
                false
            }
        }
    }

    /// The last line may have no end.
    fn finish(&mut self, task: u32, agent: &mut Agent) {
        self.file = None;
        let rest = self.lines.rest();
        if !rest.is_empty() {
            agent.handle_child_line(task, self.stream, rest);
        }
    }
}

/// What a process that has ended used: its entry in /proc stays until it is reaped (proc(5): stat, fields 14 and
/// 15).
fn read_usage(pid: Pid) -> TaskUsage {
    let path = format!("/proc/{}/stat", number(pid));
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    // The name in brackets may hold anything; the third field follows it.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let ticks = |field: usize| rest.split_whitespace().nth(field - 3)?.parse::<u64>().ok();
    let ns = |field| ticks(field).unwrap_or(0).saturating_mul(TICK_NS);
    TaskUsage { user_ns: ns(14), system_ns: ns(15) }
}
