//! The thread of one host: opens the channel, keeps the heartbeat, passes lines on.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::gate::Pass;
use super::session::{HostClock, HostEvent, HostEventKind, HostId, OpenOptions, Order, Shared};
use super::{Channel, Host, HostError, HostErrorKind, LastWords, Lines, Taken};
use crate::agent::{AgentHello, Controller, ControllerEvent, Failure, MAX_LINE_FROM_AGENT, Moment};

/// What is kept of the standard error of the program that reaches the host, bytes.
const MAX_STDERR: usize = 4096;

/// A channel is opened at most so often; a host that needs more can't be mended.
pub(super) const MOST_OPENINGS: u32 = 3;

/// A program that carries a channel has so long to end by itself after the agent's end.
const END_OF_CARRIER: Duration = Duration::from_secs(2);

/// How often a host that is not open yet is asked what delays it.
const ASK_EVERY_NS: u64 = 1_000_000_000;

/// A host's thread.
#[derive(Debug)]
pub(super) struct HostThread {
    pub(super) id: HostId,
    pub(super) host: Arc<dyn Host>,
    pub(super) options: OpenOptions,
    /// Bytes of this host's events that nobody has taken yet.
    pub(super) untaken: Arc<AtomicUsize>,
    pub(super) shared: Arc<Shared>,
    pub(super) events: Sender<HostEvent>,
    pub(super) orders: Receiver<Order>,
    pub(super) woken: PipeReader,
}

/// A channel in use.
struct Conversation<'thread> {
    thread: &'thread HostThread,
    controller: Controller,
    to_agent: Option<File>,
    from_agent: Option<File>,
    errors: Option<File>,
    carrier: Option<Child>,
    unsent: Vec<u8>,
    lines: Lines,
    stderr: Vec<u8>,
    hello: Option<AgentHello>,
    pass: Option<Pass<'thread>>,
}

/// How a conversation ended.
enum End {
    Closed,
    NoHello(LastWords),
    Lost { error: HostError, tasks: Vec<u32> },
}

impl HostThread {
    pub(super) fn run(self) {
        let kind = self.conduct();
        self.tell(kind, Moment::now());
    }

    /// Opens the channel, again if the host could be mended, and uses it until its end.
    fn conduct(&self) -> HostEventKind {
        let lost = |error| HostEventKind::Lost { error, tasks: Vec::new() };
        let mut last = LastWords::default();
        for _ in 0..MOST_OPENINGS {
            let Some(pass) = self.shared.gate.pass() else { return HostEventKind::Closed };
            let conversation = match self.host.open().and_then(|channel| self.begin(channel, pass))
            {
                Ok(conversation) => conversation,
                Err(error) => return lost(error),
            };
            match conversation.run() {
                End::Closed => return HostEventKind::Closed,
                End::Lost { error, tasks } => return HostEventKind::Lost { error, tasks },
                End::NoHello(words) => {
                    last = words;
                    let Some(_pass) = self.shared.gate.pass() else {
                        return HostEventKind::Closed;
                    };
                    if let Err(error) = self.host.mend(&last, &self.shared.ends) {
                        return lost(error);
                    }
                }
            }
        }
        lost(HostError::from_last_words(&last))
    }

    fn begin<'thread>(
        &'thread self,
        channel: Channel,
        pass: Pass<'thread>,
    ) -> Result<Conversation<'thread>, HostError> {
        let now = Moment::now();
        let hello_ns = u64::try_from(self.options.hello.as_nanos()).unwrap_or(u64::MAX);
        let conversation = Conversation {
            thread: self,
            controller: Controller::new(now.monotonic_ns.saturating_add(hello_ns), now),
            to_agent: Some(channel.to_agent.into()),
            from_agent: Some(channel.from_agent.into()),
            errors: channel.errors.map(File::from),
            carrier: channel.child,
            unsent: Vec::new(),
            lines: Lines::new(MAX_LINE_FROM_AGENT),
            stderr: Vec::new(),
            hello: None,
            pass: Some(pass),
        };
        let files = [&conversation.to_agent, &conversation.from_agent, &conversation.errors];
        for file in files.into_iter().flatten() {
            rustix::io::ioctl_fionbio(file, true)
                .map_err(|error| HostError::new(HostErrorKind::ThisMachine, &error.to_string()))?;
        }
        Ok(conversation)
    }

    fn tell(&self, kind: HostEventKind, at: Moment) {
        let event = HostEvent { host: self.id, at, kind };
        self.untaken.fetch_add(event.weight(), Ordering::Relaxed);
        // Nobody listens to a session that ends.
        let _unheard = self.events.send(event);
    }
}

impl Conversation<'_> {
    fn run(mut self) -> End {
        loop {
            if let Some(end) = self.take_events() {
                return end;
            }
            self.send();
            if let Err(error) = self.wait() {
                let error = HostError::new(HostErrorKind::ThisMachine, &error.to_string());
                return self.lose(error);
            }
            self.take_orders();
            self.receive();
            self.controller.handle_timeout(Moment::now());
            if self.is_opening()
                && let Some(said) = self.thread.host.reminder()
            {
                self.thread.tell(HostEventKind::Delayed(said), Moment::now());
            }
        }
    }

    /// A channel holds its pass until the host is open.
    fn is_opening(&self) -> bool {
        self.pass.is_some()
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<()> {
        let mut files = vec![PollFd::new(&self.thread.woken, PollFlags::IN)];
        for file in [&self.from_agent, &self.errors].into_iter().flatten() {
            files.push(PollFd::new(file, PollFlags::IN));
        }
        if let (Some(to_agent), false) = (&self.to_agent, self.unsent.is_empty()) {
            files.push(PollFd::new(to_agent, PollFlags::OUT));
        }
        let timeout = self.controller.poll_timeout().map(|due_ns| {
            let mut wait_ns = due_ns.saturating_sub(Moment::now().monotonic_ns);
            if self.is_opening() {
                wait_ns = wait_ns.min(ASK_EVERY_NS);
            }
            Timespec::try_from(Duration::from_nanos(wait_ns))
                .unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
        });
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_orders(&mut self) {
        let mut bytes = [0; 64];
        let mut files = [PollFd::new(&self.thread.woken, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0) {
            // All that was written before the orders are looked at.
            let _woken = (&self.thread.woken).read(&mut bytes);
        }
        while let Ok(order) = self.thread.orders.try_recv() {
            let now = Moment::now();
            match order {
                Order::Start(start) => self.controller.start(start),
                Order::Write { task, text, end } => self.controller.write(task, &text, end),
                Order::Stop { task, grace_ms } => self.controller.stop(task, grace_ms),
                Order::Collect { request } => self.controller.collect(request),
                Order::MeasureClock => self.controller.measure_clock(now),
                Order::Bye => self.controller.bye(now),
            }
        }
    }

    fn send(&mut self) {
        while let Some(line) = self.controller.poll_output() {
            self.unsent.extend_from_slice(line.as_bytes());
            self.unsent.push(b'\n');
        }
        while let (Some(file), false) = (&mut self.to_agent, self.unsent.is_empty()) {
            match file.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The end of what the agent writes says more.
                Err(_) => self.to_agent = None,
            }
        }
        if self.to_agent.is_none() {
            self.unsent.clear();
        }
    }

    fn receive(&mut self) {
        let mut bytes = [0; 16 << 10];
        if let Some(count) = read_some(&mut self.errors, &mut bytes) {
            self.stderr.extend_from_slice(bytes.get(..count).unwrap_or_default());
            let surplus = self.stderr.len().saturating_sub(MAX_STDERR);
            self.stderr.drain(..surplus);
        }
        if self.from_agent.is_none() {
            return;
        }
        let count = read_some(&mut self.from_agent, &mut bytes);
        let now = Moment::now();
        self.lines.push(bytes.get(..count.unwrap_or(0)).unwrap_or_default());
        while let Some(taken) = self.lines.take() {
            match taken {
                Taken::Line(line) => self.controller.handle_line(line, now),
                Taken::TooLong(_) => self.controller.handle_too_long(),
            }
        }
        if self.from_agent.is_none() {
            self.controller.handle_line(self.lines.rest(), now);
            self.controller.handle_end();
        }
    }

    fn take_events(&mut self) -> Option<End> {
        while let Some(event) = self.controller.poll_event() {
            let at = Moment::now();
            match event {
                ControllerEvent::Opened(hello) => {
                    if let Some(error) = self.wrong_digest(&hello) {
                        return Some(self.lose(error));
                    }
                    self.hello = Some(hello);
                }
                ControllerEvent::ClockMeasured => self.tell_clock(at),
                ControllerEvent::Failed(Failure::NoHello { ended, noise }) => {
                    let code = self.close(Duration::from_secs(u64::from(ended)));
                    let stderr = self.stderr_text();
                    return Some(End::NoHello(LastWords { stdout: noise, stderr, code, ended }));
                }
                ControllerEvent::Failed(failure) => {
                    self.close(Duration::ZERO);
                    let said = self.stderr_text();
                    let error = HostError::new(HostErrorKind::Channel(failure), &said);
                    return Some(self.lose(error));
                }
                ControllerEvent::Closed => {
                    self.close(END_OF_CARRIER);
                    return Some(End::Closed);
                }
                event => {
                    if let Some(kind) = for_the_session(event) {
                        self.thread.tell(kind, at);
                    }
                }
            }
        }
        let most = self.thread.options.untaken;
        if self.thread.untaken.load(Ordering::Relaxed) > most {
            let text = format!("more than {} MiB that this program had no time for", most >> 20);
            let kind = HostErrorKind::Channel(Failure::Nonsense { text });
            return Some(self.lose(HostError::new(kind, "")));
        }
        None
    }

    fn wrong_digest(&self, hello: &AgentHello) -> Option<HostError> {
        (!self.thread.host.accepts(&hello.sha256))
            .then(|| HostError::new(HostErrorKind::Digest { found: hello.sha256.clone() }, ""))
    }

    /// The first measurement of the clock opens the host.
    fn tell_clock(&mut self, at: Moment) {
        let (Some(offset), Some(round_trip_ns)) =
            (self.controller.clock_offset(), self.controller.round_trip_ns())
        else {
            return;
        };
        let clock = HostClock { offset, round_trip_ns };
        self.pass = None;
        let kind = match self.hello.take() {
            Some(hello) => HostEventKind::Opened { hello: Box::new(hello), clock },
            None => HostEventKind::Clock(clock),
        };
        self.thread.tell(kind, at);
    }

    fn lose(&mut self, error: HostError) -> End {
        let tasks = self.controller.tasks().collect();
        self.close(Duration::ZERO);
        End::Lost { error, tasks }
    }

    /// Closes the channel and ends its carrier, whose last words are kept.
    fn close(&mut self, patience: Duration) -> Option<i32> {
        self.to_agent = None;
        let code = self.carrier.take().and_then(|child| super::channel::end(child, patience));
        let mut bytes = [0; MAX_STDERR];
        while let Some(count) = read_some(&mut self.errors, &mut bytes) {
            self.stderr.extend_from_slice(bytes.get(..count).unwrap_or_default());
            let surplus = self.stderr.len().saturating_sub(MAX_STDERR);
            self.stderr.drain(..surplus);
        }
        code
    }

    fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Reads what is there: the number of bytes, none where there are none now or any more. A file that has ended is
/// closed.
fn read_some(file: &mut Option<File>, bytes: &mut [u8]) -> Option<usize> {
    match file.as_mut()?.read(bytes) {
        Ok(0) => *file = None,
        Ok(count) => return Some(count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(_) => *file = None,
    }
    None
}

/// What a session tells of a controller's event.
fn for_the_session(event: ControllerEvent) -> Option<HostEventKind> {
    match event {
        ControllerEvent::Child(child) => Some(HostEventKind::Child(child)),
        ControllerEvent::Ticks(readings) => Some(HostEventKind::Ticks(readings)),
        ControllerEvent::Silent => Some(HostEventKind::Silent),
        ControllerEvent::Heard => Some(HostEventKind::Heard),
        ControllerEvent::Opened(_)
        | ControllerEvent::ClockMeasured
        | ControllerEvent::Failed(_)
        | ControllerEvent::Closed => None,
    }
}
