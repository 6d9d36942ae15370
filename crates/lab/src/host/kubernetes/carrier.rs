//! The thread that carries the lines of one pod: starts the pod, attaches, and moves bytes until one end is gone.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::attach::{Attached, Received};
use super::look::Running;
use super::objects::CONTAINER;
use super::pods::{Place, Pods, Watcher};
use super::trouble::{ClusterError, Trouble};

/// A container that has just begun may not take an attach yet.
const ATTACH_PATIENCE: Duration = Duration::from_secs(5);

/// After the end of its input an agent has so long to end.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// So much is sent with one message, bytes.
const PIECE: usize = 16 << 10;

/// After so long without a byte the pod's node is named among the errors.
const SILENT: Duration = Duration::from_secs(2);

/// What is known of a pod, for its host.
#[derive(Debug, Default)]
pub(super) struct PodState {
    pub(super) running: Option<Running>,
    pub(super) trouble: Option<ClusterError>,
    /// The cluster's last word while the pod is awaited.
    pub(super) said: String,
    /// A sentence about a wait that lasts, until somebody takes it.
    pub(super) reminder: Option<String>,
}

/// The pipes of a channel, at the end of the thread.
pub(super) struct Carrier {
    pub(super) pods: Arc<Pods>,
    pub(super) place: Place,
    pub(super) known: Arc<Mutex<PodState>>,
    pub(super) to_agent: PipeReader,
    pub(super) from_agent: PipeWriter,
    pub(super) errors: PipeWriter,
}

impl Watcher for Carrier {
    fn is_gone(&self) -> bool {
        let mut files = [PollFd::new(&self.to_agent, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let looked = poll(&mut files, Some(&now));
        looked.is_err() || files[0].revents().contains(PollFlags::HUP)
    }

    fn tell(&self, said: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).said = said.to_owned();
    }

    fn remind(&self, said: String) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).reminder = Some(said);
    }
}

impl Carrier {
    /// Carries lines until the end, and leaves what went wrong with the host and among the errors.
    pub(super) fn run(mut self) {
        match self.carry() {
            Ok(()) => {}
            Err(error) => {
                let _reader_gone =
                    writeln!(self.errors, "{}: {}", error.trouble.sentence(), error.said);
                self.known.lock().unwrap_or_else(PoisonError::into_inner).trouble = Some(error);
            }
        }
    }

    fn carry(&mut self) -> Result<(), ClusterError> {
        let Some(running) = self.pods.start(self.place, self)? else { return Ok(()) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).running = Some(running.clone());
        let Some(attached) = self.attach(&running)? else { return Ok(()) };
        let this_machine = |error: io::Error| {
            ClusterError::new(
                Trouble::Config,
                format!("this machine can't hold the channel: {error}"),
            )
        };
        rustix::io::ioctl_fionbio(&self.to_agent, true).map_err(|e| this_machine(e.into()))?;
        rustix::io::ioctl_fionbio(&self.from_agent, true).map_err(|e| this_machine(e.into()))?;
        let mut flow = Flow {
            attached,
            input: Some(&mut self.to_agent),
            output: &mut self.from_agent,
            errors: &mut self.errors,
            undelivered: Vec::new(),
            is_flushed: true,
            until: None,
            heard: Instant::now(),
            names_node: Some(running.node.clone()),
        };
        let end = flow.run().map_err(this_machine)?;
        match end {
            FlowEnd::Gone => Ok(()),
            FlowEnd::Broken(mut error) => {
                if let Some(why) = self.pods.why_ended(&running) {
                    error = ClusterError::new(Trouble::Ended, why);
                }
                Err(error)
            }
        }
    }

    fn attach(&self, running: &Running) -> Result<Option<Attached>, ClusterError> {
        let began = Instant::now();
        loop {
            let (client, namespace) = (&self.pods.client, &self.pods.namespace);
            let error = match Attached::open(client, namespace, &running.pod, CONTAINER) {
                Ok(attached) => return Ok(Some(attached)),
                Err(error) => error,
            };
            let may_pass = matches!(error.trouble, Trouble::Refused | Trouble::Unreachable);
            if !may_pass || began.elapsed() > ATTACH_PATIENCE {
                return Err(match self.pods.why_ended(running) {
                    Some(why) => ClusterError::new(Trouble::Ended, why),
                    None => error,
                });
            }
            if self.is_gone() {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(300));
        }
    }
}

/// Bytes between the pipes and an attach.
struct Flow<'a> {
    attached: Attached,
    input: Option<&'a mut PipeReader>,
    output: &'a mut PipeWriter,
    errors: &'a mut PipeWriter,
    /// What the reader of the output has not taken yet.
    undelivered: Vec<u8>,
    is_flushed: bool,
    /// When the last words have come late enough, once the input has ended.
    until: Option<Instant>,
    heard: Instant,
    names_node: Option<String>,
}

enum FlowEnd {
    /// Nobody listens any more, or the agent ended after its input did.
    Gone,
    Broken(ClusterError),
}

impl Flow<'_> {
    fn run(&mut self) -> io::Result<FlowEnd> {
        loop {
            match self.turn() {
                Ok(false) => {}
                Ok(true) => return Ok(FlowEnd::Gone),
                // The attach ends with the agent.
                Err(_) if self.until.is_some() => return Ok(FlowEnd::Gone),
                Err(error) => return Ok(FlowEnd::Broken(error)),
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(FlowEnd::Gone);
            }
            self.name_the_node();
            if self.wait()? {
                return Ok(FlowEnd::Gone);
            }
        }
    }

    /// Moves what can be moved. True when nobody listens any more.
    fn turn(&mut self) -> Result<bool, ClusterError> {
        if !self.is_flushed {
            self.is_flushed = self.attached.flush()?;
        }
        let mut bytes = [0; PIECE];
        while let (Some(input), true) = (&mut self.input, self.is_flushed) {
            match input.read(&mut bytes) {
                Ok(0) => {
                    self.input = None;
                    self.until = Some(Instant::now() + LAST_WORDS);
                    self.is_flushed = self.attached.end_input()?;
                }
                Ok(count) => {
                    self.is_flushed = self.attached.send(bytes.get(..count).unwrap_or_default())?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Ok(true),
            }
        }
        loop {
            if !self.deliver() {
                return Ok(true);
            }
            if !self.undelivered.is_empty() {
                return Ok(false);
            }
            let received = self.attached.receive()?;
            if received != Received::Nothing {
                self.heard = Instant::now();
            }
            match received {
                Received::Stdout(bytes) => self.undelivered = bytes,
                Received::Stderr(bytes) => {
                    let _reader_gone = self.errors.write_all(&bytes);
                }
                Received::Ended(status) => return self.ended(&status),
                Received::Other => {}
                Received::Nothing => return Ok(false),
            }
        }
    }

    /// The container's end: all that it wrote has come before.
    fn ended(&self, status: &str) -> Result<bool, ClusterError> {
        if self.until.is_some() {
            return Ok(true);
        }
        let status: serde_json::Value = serde_json::from_str(status).unwrap_or_default();
        if status["status"] == "Success" {
            return Ok(true);
        }
        let said = status["message"].as_str().unwrap_or("the agent has ended").to_owned();
        Err(ClusterError::new(Trouble::Ended, said))
    }

    /// False when nobody takes what comes any more.
    fn deliver(&mut self) -> bool {
        while !self.undelivered.is_empty() {
            match self.output.write(&self.undelivered) {
                Ok(written) => drop(self.undelivered.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// A host that is lost is told apart by its node, once.
    fn name_the_node(&mut self) {
        if self.heard.elapsed() < SILENT {
            return;
        }
        if let Some(node) = self.names_node.take().filter(|node| !node.is_empty()) {
            let _reader_gone = write!(self.errors, "the pod is on node {node} ");
        }
    }

    /// Waits until something can be moved. True when nobody takes what comes any more.
    fn wait(&self) -> io::Result<bool> {
        let mut of_attach = PollFlags::empty();
        if self.undelivered.is_empty() {
            of_attach |= PollFlags::IN;
        }
        if !self.is_flushed {
            of_attach |= PollFlags::OUT;
        }
        let descriptor = self.attached.descriptor();
        let mut files = vec![PollFd::new(&descriptor, of_attach)];
        if let (Some(input), true) = (&self.input, self.is_flushed) {
            files.push(PollFd::new(&**input, PollFlags::IN));
        }
        let wants_room =
            if self.undelivered.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        files.push(PollFd::new(&*self.output, wants_room));
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        match poll(&mut files, Some(&timeout)) {
            Ok(_) => {
                let of_output = files.last().map(PollFd::revents);
                Ok(of_output.is_some_and(|events| events.contains(PollFlags::ERR)))
            }
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
