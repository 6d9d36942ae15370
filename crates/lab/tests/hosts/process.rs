//! The agent of the tests, what runs of it, and sessions that are looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_lab::agent::{OutputStream, StartTask, TaskEnd};
use linerate_lab::host::{
    ChildEventKind, Executable, HostClock, HostError, HostEvent, HostEventKind, HostId, LocalHost,
    NamedHost, OpenOptions, Session,
};

/// The digest that the agent of the tests says.
pub(crate) const SHA256: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// What should happen happens within this time on a busy machine, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with a copy of the agent, by whose path its processes are known.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("linerate-test-").tempdir().unwrap();
        let place = Self { directory };
        // By a process of its own: a child that another test starts at this moment would keep a copy of ours open to
        // be written, and nobody could execute it.
        let copied = Command::new("cp").arg(built_agent()).arg(place.agent()).status();
        assert!(copied.unwrap().success());
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.path().join("agent")
    }

    pub(crate) fn executable(&self) -> Executable {
        let arch = rustix::system::uname().machine().to_string_lossy().into_owned();
        Executable { path: self.agent(), sha256: SHA256.to_owned(), arch }
    }

    pub(crate) fn local(&self, name: &str) -> NamedHost {
        let host = Arc::new(LocalHost::new(self.executable()));
        NamedHost { name: name.to_owned(), host }
    }

    /// The processes whose command lines name this place, with their command lines.
    pub(crate) fn processes(&self) -> BTreeMap<u32, String> {
        let name = self.path().to_string_lossy().into_owned();
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&words).replace('\0', " ");
            if line.contains(&name) {
                found.insert(pid, line);
            }
        }
        found
    }

    /// Waits until no process of this place is left.
    #[track_caller]
    pub(crate) fn await_nothing_left(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "still there: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The example that stands beside the test program.
fn built_agent() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let agent = deps.parent().unwrap().parent().unwrap().join("examples/agent");
    assert!(agent.exists(), "cargo build -p linerate-lab --example agent makes {agent:?}");
    agent
}

/// A session, and what it has told that was not asked for yet.
pub(crate) struct Watched {
    pub(crate) session: Session,
    past: Vec<HostEvent>,
}

impl Watched {
    pub(crate) fn open(hosts: &[NamedHost]) -> Self {
        Self::open_with(hosts, &OpenOptions::default())
    }

    pub(crate) fn open_with(hosts: &[NamedHost], options: &OpenOptions) -> Self {
        Self { session: Session::open(hosts, options).unwrap(), past: Vec::new() }
    }

    /// The first event, past or to come, of which something is wanted; it is taken out.
    #[track_caller]
    pub(crate) fn await_event<T>(&mut self, want: impl Fn(&HostEvent) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut looked_at = 0;
        loop {
            while let Some(event) = self.past.get(looked_at) {
                if let Some(wanted) = want(event) {
                    self.past.remove(looked_at);
                    return wanted;
                }
                looked_at += 1;
            }
            assert!(Instant::now() < until, "not among {:?}", self.past);
            self.past.extend(self.session.next_event(Duration::from_millis(100)));
        }
    }

    #[track_caller]
    pub(crate) fn await_opened(&mut self, host: HostId) -> HostClock {
        self.await_event(|event| match &event.kind {
            HostEventKind::Opened { clock, .. } if event.host == host => Some(Ok(*clock)),
            HostEventKind::Lost { error, .. } if event.host == host => Some(Err(error.clone())),
            _ => None,
        })
        .unwrap_or_else(|error| panic!("host {host}: {error}"))
    }

    #[track_caller]
    pub(crate) fn await_lost(&mut self, host: HostId) -> (HostError, Vec<u32>) {
        self.await_event(|event| match &event.kind {
            HostEventKind::Lost { error, tasks } if event.host == host => {
                Some((error.clone(), tasks.clone()))
            }
            _ => None,
        })
    }

    pub(crate) fn start(&mut self, host: HostId, words: &[&str]) -> u32 {
        let argv = words.iter().map(|&word| word.to_owned()).collect();
        self.session.start(host, StartTask { argv, ..StartTask::default() })
    }

    /// Starts a script of the shell.
    pub(crate) fn shell(&mut self, host: HostId, script: &str) -> u32 {
        let program = Some("/bin/sh".to_owned());
        let argv = vec!["-c".to_owned(), script.to_owned()];
        self.session.start(host, StartTask { program, argv, ..StartTask::default() })
    }

    #[track_caller]
    pub(crate) fn await_child<T>(
        &mut self,
        task: u32,
        want: impl Fn(&ChildEventKind) -> Option<T>,
    ) -> T {
        self.await_event(|event| match &event.kind {
            HostEventKind::Child(child) if child.task == task => want(&child.kind),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn await_started(&mut self, task: u32) -> u32 {
        self.await_child(task, |kind| match kind {
            ChildEventKind::Started { pid } => Some(*pid),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn await_ended(&mut self, task: u32) -> TaskEnd {
        self.await_child(task, |kind| match kind {
            ChildEventKind::Ended(end) => Some(end.clone()),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn await_line(&mut self, task: u32) -> String {
        self.await_child(task, |kind| match kind {
            ChildEventKind::Line { json, .. } => Some(json.get().to_owned()),
            _ => None,
        })
    }

    #[track_caller]
    pub(crate) fn await_text(&mut self, task: u32, from: OutputStream) -> String {
        self.await_child(task, |kind| match kind {
            ChildEventKind::Text { stream, text } if *stream == from => Some(text.clone()),
            _ => None,
        })
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let _gone = rustix::process::kill_process(pid, signal);
}
