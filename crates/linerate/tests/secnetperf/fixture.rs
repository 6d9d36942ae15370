//! Clients and servers as processes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a run may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// How a run ended and what it said.
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
}

/// The program with these words, separated by blanks, not yet started.
pub(crate) fn command(words: &str) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command.arg("secnetperf").args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs a command line to its end.
pub(crate) fn run(words: &str) -> Ended {
    let child = command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait(child, words)
}

/// Waits for the end of a program that was started with its output piped.
pub(crate) fn wait(mut child: Child, words: &str) -> Ended {
    let mut output = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("'{words}' did not end within {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(10));
    };
    Ended {
        exit_code: status.code().unwrap_or(-1),
        signal: status.signal(),
        stdout: reader.join().unwrap(),
    }
}

/// A server on a port of the kernel's choice.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(words: &str) -> Self {
        // The port that the kernel has for QUIC may be somebody's over TCP by then.
        let tries = std::iter::repeat_with(|| Self::started(words)).take(5);
        tries.flatten().next().unwrap_or_else(|| panic!("the server ended"))
    }

    /// One that leaves run documents here.
    pub(crate) fn documenting(words: &str, directory: &Path) -> Self {
        let document = || {
            let mut command = command(&format!("-bind:127.0.0.1:0 {words}"));
            command.env("LINERATE_RUN_DOCUMENT", directory);
            command
        };
        let tries = std::iter::repeat_with(|| Self::spawned(document())).take(5);
        tries.flatten().next().unwrap_or_else(|| panic!("the server ended"))
    }

    /// `None`: it ended.
    fn started(words: &str) -> Option<Self> {
        Self::spawned(command(&format!("-bind:127.0.0.1:0 {words}")))
    }

    fn spawned(mut command: Command) -> Option<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut narration = BufReader::new(child.stderr.take().unwrap());
        while !said.contains("listening on") {
            said.clear();
            if narration.read_line(&mut said).unwrap() == 0 {
                child.wait().unwrap();
                return None;
            }
        }
        let port = said.trim().rsplit(':').next().unwrap().parse().unwrap();
        // What it says later is read by nobody, and must not fill the pipe.
        thread::spawn(move || std::io::copy(&mut narration, &mut std::io::sink()));
        Some(Self { child, port })
    }

    /// Runs a client against it.
    pub(crate) fn client(&self, words: &str) -> Ended {
        run(&self.words(words))
    }

    /// The words of a client of it.
    pub(crate) fn words(&self, words: &str) -> String {
        format!("-target:127.0.0.1 -port:{} {words}", self.port)
    }

    /// Ends it as Ctrl-C does; what it said.
    pub(crate) fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The results alone: without the first and the last lines.
pub(crate) fn results(ended: &Ended) -> Vec<&str> {
    assert_eq!(ended.exit_code, 0, "{}", ended.stdout);
    let text = ended.stdout.strip_prefix("Started!\n\n").unwrap();
    text.strip_suffix("App Main returning status 0\n").unwrap().lines().collect()
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
