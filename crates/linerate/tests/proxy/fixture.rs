//! A proxy as a process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};

/// A proxy on a port of the kernel's choice.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) port: u16,
    /// What it said when it began.
    pub(crate) beginning: String,
    output: Option<BufReader<std::process::ChildStdout>>,
    narration: Option<JoinHandle<String>>,
    _home: tempfile::TempDir,
}

/// How a proxy ended, and what it said.
pub(crate) struct Summary {
    pub(crate) exit_code: i32,
    pub(crate) text: String,
    pub(crate) narration: String,
}

impl Proxy {
    /// One to this port of this machine, with further words of the command line.
    pub(crate) fn start(target: u16, words: &str) -> Self {
        Self::start_with(target, &format!("--alpn perf {words}"))
    }

    /// One over QUIC with these words alone.
    pub(crate) fn start_with(target: u16, words: &str) -> Self {
        Self::started(target, words, 4)
    }

    /// One that splits TCP.
    pub(crate) fn start_tcp(target: u16, words: &str) -> Self {
        Self::started(target, &format!("--tcp {words}"), 2)
    }

    /// One that begins with so many lines.
    fn started(target: u16, words: &str, lines: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(crate::PROGRAM)
            .args(["proxy", &format!("127.0.0.1:{target}")])
            .args(["--bind", "127.0.0.1", "--port", "0"])
            .args(words.split_whitespace())
            .env("XDG_STATE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let narration = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut beginning = String::new();
        for _ in 0..lines {
            output.read_line(&mut beginning).unwrap();
        }
        let address = beginning.split([' ', ',']).nth(2).unwrap_or_default();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        let (output, narration) = (Some(output), Some(narration));
        Self { child, port, beginning, output, narration, _home: home }
    }

    /// A client's words through the proxy.
    pub(crate) fn words(&self, words: &str) -> String {
        format!("-target:127.0.0.1 -port:{} {words}", self.port)
    }

    /// Its resident memory, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes << 10
    }

    /// Ends it with a signal.
    pub(crate) fn stop(mut self, signal: Signal) -> Summary {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut text = String::new();
        self.output.take().unwrap().read_to_string(&mut text).unwrap();
        let exit_code = self.child.wait().unwrap().code().unwrap_or(-1);
        let narration = self.narration.take().unwrap().join().unwrap();
        Summary { exit_code, text, narration }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
