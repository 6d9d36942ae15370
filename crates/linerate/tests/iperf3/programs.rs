//! The programs that the tests run, ours and an installed original, and how they are started and ended.

use crate::quiet::free_port;
use crate::skipped::skip;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::ours;

/// Longer than any test here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// An implementation: its program and the words before its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ours,
    /// That prints what this release prints.
    OursAs(&'static str),
    Original,
}

impl Program {
    pub(crate) fn command(self, words: &str) -> Command {
        match self {
            Self::Ours => ours(words),
            Self::OursAs(release) => {
                let mut command = ours(words);
                command.env("LINERATE_IPERF3_VERSION", release);
                command
            }
            Self::Original => {
                let mut command = Command::new("iperf3");
                command.args(words.split_whitespace()).stdin(Stdio::null());
                command
            }
        }
    }
}

/// Whether the original is there.
pub(crate) fn has_original() -> bool {
    let found = Command::new("iperf3").arg("--version").output().is_ok();
    if !found {
        skip("iperf3 is not installed");
    }
    found
}

/// A process that is ended with the test, and its command line.
pub(crate) struct Process(pub(crate) Child, String);

impl Drop for Process {
    fn drop(&mut self) {
        // It has usually ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self(child, format!("{command:?}"))
    }

    pub(crate) fn wait(&mut self) -> i32 {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("still there after {LIMIT:?}: {}", self.1);
    }

    pub(crate) fn text(&mut self) -> String {
        let pipe = self.0.stdout.take().unwrap();
        self.read(pipe)
    }

    pub(crate) fn complaint(&mut self) -> String {
        let pipe = self.0.stderr.take().unwrap();
        self.read(pipe)
    }

    /// What comes until the process ends, for which it has its time.
    fn read(&self, mut pipe: impl Read + Send + 'static) -> String {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = pipe.read_to_string(&mut text).map(|_| text);
            // Nobody waits for it any more where it came too late.
            let _late = sender.send(read);
        });
        match receiver.recv_timeout(LIMIT) {
            Ok(read) => read.unwrap(),
            Err(_) => panic!("still printing after {LIMIT:?}: {}", self.1),
        }
    }
}

/// Whether this process listens at the port. Another one may have the socket that found the port free
/// for a moment longer: one that was forked meanwhile and has yet to become a program.
pub(crate) fn listens(process: u32, port: u16) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let links = descriptors.flatten().filter_map(|one| std::fs::read_link(one.path()).ok());
    let own: BTreeSet<_> = links.map(|link| link.display().to_string()).collect();
    let at_port = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|path| {
        let Ok(table) = File::open(path) else { return false };
        let rows = BufReader::new(table).lines().map_while(Result::ok).skip(1);
        let rows = rows.map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        // Those that listen come first. Behind them may be ten thousands that other tests have closed.
        let mut listeners = rows.take_while(|fields| fields.get(3).is_some_and(|one| one == "0A"));
        listeners.any(|fields| {
            fields.get(1).is_some_and(|local| local.ends_with(&at_port))
                && fields.get(9).is_some_and(|inode| own.contains(&format!("socket:[{inode}]")))
        })
    })
}

/// A server for one test that listens, and its port. Somebody else may take the port before it does;
/// then it gets another.
pub(crate) fn serve(program: Program, words: &str) -> (Process, u16) {
    let mut said = Vec::new();
    while said.len() < 5 {
        let port = free_port();
        let mut server = Process::start(&mut program.command(&format!("-s -1 -p {port} {words}")));
        let start = Instant::now();
        while server.0.try_wait().unwrap().is_none() {
            if listens(server.0.id(), port) {
                return (server, port);
            }
            assert!(start.elapsed() < LIMIT, "the server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        said.push(server.complaint());
    }
    panic!("no server listens: {said:?}");
}
