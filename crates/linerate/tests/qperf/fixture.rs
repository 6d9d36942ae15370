//! Clients and servers as processes.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The longest that a run may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a server's certificate and key, under the names that it looks for.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let identity = linerate_engine::make_identity().unwrap();
    let write = |name: &str, tag: &str, der: Vec<u8>| {
        std::fs::write(folder.path().join(name), pem::encode(&pem::Pem::new(tag, der))).unwrap();
    };
    write("server.crt", "CERTIFICATE", identity.certificate_der);
    write("server.key", "PRIVATE KEY", identity.private_key_der);
    folder
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with these words, separated by blanks, in a folder; not yet started.
pub(crate) fn command(words: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("qperf").args(words.split_whitespace()).current_dir(folder);
    command
}

/// A program that runs. What it says is read meanwhile.
pub(crate) struct Running {
    child: Child,
    stdout: Said,
    stderr: Said,
}

/// What a program says, as far as it has been read.
struct Said {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Said {
    fn by(from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut lines = BufReader::new(from);
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                read.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { text, reader: Some(reader) }
    }

    /// All of it, once the program has ended.
    fn whole(&mut self) -> String {
        self.reader.take().unwrap().join().unwrap();
        self.text.lock().unwrap().clone()
    }
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Said::by(child.stdout.take().unwrap());
        let stderr = Said::by(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it did not end within {LIMIT:?}");
            thread::sleep(Duration::from_millis(10));
        };
        Ended {
            exit_code: status.code().unwrap_or(-1),
            stdout: self.stdout.whole(),
            stderr: self.stderr.whole(),
        }
    }

    /// Ends it as this signal does.
    pub(crate) fn signal(self, signal: rustix::process::Signal) -> Ended {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        self.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Runs a command line to its end.
pub(crate) fn run(words: &str, folder: &Path) -> Ended {
    Running::start(command(words, folder)).wait()
}

/// A server on a port of the kernel's choice.
pub(crate) struct Server {
    running: Running,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
}

impl Server {
    pub(crate) fn start(words: &str) -> Self {
        Self::start_in(folder(), words, |_| ())
    }

    /// One in this folder, with something done to its command before it starts.
    pub(crate) fn start_in(folder: TempDir, words: &str, change: impl Fn(&mut Command)) -> Self {
        let mut command = command(&format!("-s {words}"), folder.path());
        change(&mut command);
        Self::listen(folder, command, "127.0.0.1")
    }

    /// One on this address.
    pub(crate) fn start_on(address: &str) -> Self {
        let folder = folder();
        let command = command("-s", folder.path());
        Self::listen(folder, command, address)
    }

    /// A proxy, which listens as a server does.
    pub(crate) fn proxy(words: &str) -> Self {
        Self::proxy_in(folder(), words)
    }

    /// Likewise, in this folder.
    pub(crate) fn proxy_in(folder: TempDir, words: &str) -> Self {
        let command = command(words, folder.path());
        Self::listen(folder, command, "127.0.0.1")
    }

    fn listen(folder: TempDir, mut command: Command, address: &str) -> Self {
        command.args(["--listen-addr", address, "--listen-port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Said::by(child.stdout.take().unwrap());
        let mut narration = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("listening on") {
            said.clear();
            assert!(narration.read_line(&mut said).unwrap() > 0, "the server ended");
        }
        let port = said.trim().rsplit(':').next().unwrap().parse().unwrap();
        let running = Running { child, stdout, stderr: Said::by(narration) };
        Self { running, port, folder }
    }

    /// Runs a client of it.
    pub(crate) fn client(&self, words: &str) -> Ended {
        self.client_to("127.0.0.1", words)
    }

    /// Runs a client of it, whose address is written like this.
    pub(crate) fn client_to(&self, host: &str, words: &str) -> Ended {
        run(&format!("-c {host} -p {} {words}", self.port), self.folder.path())
    }

    /// Waits until it has said this on standard output.
    pub(crate) fn await_said(&self, words: &str) {
        let end = Instant::now() + LIMIT;
        while !self.running.stdout.text.lock().unwrap().contains(words) {
            assert!(Instant::now() < end, "it did not say {words:?} within {LIMIT:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it as Ctrl-C does; what it said, and its folder.
    pub(crate) fn stop(self) -> (Ended, TempDir) {
        (self.running.signal(rustix::process::Signal::INT), self.folder)
    }
}

/// The text with every number as `#`.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '0'..='9' if shown.ends_with('#') => {}
            '0'..='9' => shown.push('#'),
            other => shown.push(other),
        }
    }
    shown
}
